"""Names that kernels use beyond the documented ones (those: tests/api_names), and the order of versions."""

from __future__ import annotations

import neurontools.nki as nki


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
