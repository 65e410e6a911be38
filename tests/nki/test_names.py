"""Every documented name exists, with its parameters in order; and nothing promises what `later` refuses."""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path

import pytest

import neurontools.nki as nki

MODULES = ["nki", "nki.isa", "nki.language", "nki.collectives"]


@pytest.mark.parametrize("name", MODULES)
def test_documented_names_and_parameters(name: str, reference_data: Path) -> None:
    file = reference_data.parents[1] / "tools" / "api_names.json"
    if not file.is_file():
        pytest.skip(f"no {file}")
    described = json.loads(file.read_text())["modules"][name]
    module = importlib.import_module("neurontools." + name)
    for function, parameters in described["functions"].items():
        found = list(inspect.signature(getattr(module, function)).parameters.values())
        if [one.kind for one in found] == [inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD]:
            continue  # refused for now
        documented = [one["name"] for one in parameters]
        assert [one.name for one in found][: len(documented)] == documented, function
        assert all(
            one.default is not one.empty
            for one in found[len(documented) :]
            if one.kind is not inspect.Parameter.VAR_KEYWORD
        ), function
    for kind, what in described["classes"].items():
        if kind.startswith("_"):
            continue
        for member in what.get("members", []):
            assert hasattr(getattr(module, kind), member), f"{kind}.{member}"
        for method in [*what.get("methods", {}), *what.get("attributes", [])]:
            assert hasattr(getattr(module, kind), method), f"{kind}.{method}"
    for constant in described["constants"]:
        assert hasattr(module, constant), constant


def test_import_time_names_of_real_kernels() -> None:
    # Source: nki.md 2, import-time names beyond the documentation.
    for path in (
        "isa.constants.dge_mode",
        "isa.constants.oob_mode",
        "isa.constants.matmul_perf_mode",
        "isa.constants.engine",
        "dtype.bfloat16",
        "typing.tensor",
        "typing.mutable_tensor",
        "collectives.ReplicaGroup",
        "language.NKIObject",
        "language.bool",
        "language.range",
        "cpu_simulate",
        "tensor.NkiTensor",
    ):
        value: object = nki
        for part in path.split("."):
            value = getattr(value, part)
    assert nki.typing.tensor[128, 512] is nki.typing.tensor
    assert nki.collectives.ReplicaGroup([[0, 1]]).groups == [[0, 1]]


def test_versions_are_ordered() -> None:
    gen2, gen3 = nki.isa.nc_version.gen2, nki.isa.nc_version.gen3
    assert gen2 < gen3 and gen3 >= gen2 and not gen2 > gen3 and gen2 <= gen2
    assert nki.isa.get_nc_version() is nki.isa.nc_version.gen4 and nki.isa.get_nc_sub_version() == 0
