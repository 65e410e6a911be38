"""Every documented entry of NKI is there, is built into words, and says what it does on which generation."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from neurontools import builder
from neurontools.builder.limits import LIMITS
from tests.api_names import support
from tests.api_names.samples import SAMPLES
from tests.api_names.support import Entry, entries, exceptions, property_tests, rows

MOST_MISSING = 5
NAMES = {**vars(nl), **vars(nisa)}


def of(entry: Entry) -> Any:
    """Return what an entry's name leads to."""
    if entry.module.endswith(".NkiTensor"):
        holder: Any = importlib.import_module("neurontools.nki.tensor").NkiTensor
    else:
        holder = importlib.import_module("neurontools." + entry.module)
    return getattr(holder, entry.name)


def full_name(entry: Entry) -> str:
    return f"{entry.module}.{entry.name}"


@pytest.mark.parametrize("module", support.described())
def test_documented_names_and_parameters(module: str) -> None:
    described, here = support.described()[module], importlib.import_module("neurontools." + module)
    for function, parameters in described["functions"].items():
        found = list(inspect.signature(getattr(here, function)).parameters.values())
        documented = [one["name"] for one in parameters]
        assert [one.name for one in found][: len(documented)] == documented, function
        for one, expected in zip(found, parameters, strict=False):
            if "default" in expected and expected["default"] != "...":  # literal dots stand for a long number
                wanted = eval(expected["default"], NAMES)
                wanted = tuple(wanted) if isinstance(wanted, list) else wanted
                assert one.default == wanted, f"{function}: {one.name} is {one.default!r}"
        assert all(
            one.default is not one.empty
            for one in found[len(documented) :]
            if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
        ), function
    for name, what in described["classes"].items():
        one = getattr(here, name.removeprefix("_TileSize") or "tile_size", None) or getattr(here, name)
        for member in (*what.get("members", []), *what.get("methods", {}), *what.get("attributes", []),
                       *what.get("properties", [])):  # fmt: skip
            assert hasattr(one, member), f"{name}.{member}"
        for method, parameters in what.get("methods", {}).items():
            if method.startswith("__") or not parameters:
                continue
            found = list(inspect.signature(getattr(one, method)).parameters)[1:]
            assert found[: len(parameters)] == [each["name"] for each in parameters], f"{name}.{method}"


def test_every_entry_is_there_or_listed_with_a_reason() -> None:
    missing = set()
    for row in rows():
        assert of(row.entry) is not None or row.entry.kind == "value", row.entry
        if not row.generations:
            missing.add(full_name(row.entry))
            assert row.refusal.startswith("UnsupportedError"), row
    assert missing == set(exceptions()) and all(exceptions().values())
    assert len(missing) <= MOST_MISSING


def test_every_function_and_method_has_a_sample_and_no_sample_is_left_over() -> None:
    known = {(entry.module, entry.name): entry.kind for entry in entries()}
    for (module, name), kind in known.items():
        assert kind in ("class", "value") or name in SAMPLES[module], (module, name)
    helpers = {"square", "relu"}  # operators beyond the documented names
    for module, samples in SAMPLES.items():
        for name in samples:
            assert (module, name) in known or hasattr(importlib.import_module("neurontools.nki.language"), name), name
    assert helpers <= set(SAMPLES["nki.language"])


@pytest.mark.parametrize("target", support.TARGETS)
def test_every_sample_becomes_a_neff(target: str) -> None:
    for entry in entries():
        for traces in support.traces_of(entry, target)[0]:
            if any(trace.ops for trace in traces):
                assert builder.build(traces, entry.name) is not None, entry


def test_an_entry_that_a_generation_lacks_is_refused_by_its_number() -> None:
    later = [row for row in rows() if 0 < len(row.generations) < len(support.TARGETS)]
    assert {row.entry.name for row in later} >= {"activate2", "nc_matmul_mx", "core_barrier", "range_select"}
    for row in later:
        first = LIMITS[row.generations[0]].number
        assert row.generations == tuple(support.TARGETS.values())[first - 2 :], row
        for target, generation in support.TARGETS.items():
            if generation not in row.generations:
                _, why = support.traces_of(row.entry, target)
                assert why.startswith("NkiValidationError") and f"gen{first}" in why and generation in why, why


# Values, questions and handles, of which no element comes out.
WITHOUT_CASES = {"get_nc_version", "get_nc_sub_version", "NkiInstruction", "VirtualRegister"}


def test_every_instruction_has_a_property_test() -> None:
    tested = property_tests()
    for row in rows():
        if row.entry.module == "nki.isa" and row.entry.kind == "function" and row.entry.name not in WITHOUT_CASES:
            assert tested.get(row.entry.name), f"no property test of 200 cases calls nisa.{row.entry.name}"


def test_the_page_is_up_to_date(root: Path) -> None:
    assert (root / "docs" / "nki-support.md").read_text() == support.page(), "run `python -m tools`"
