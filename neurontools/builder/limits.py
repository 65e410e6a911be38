"""Documented limits of each generation, as data with their source."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["LIMITS", "PARTITIONS", "PSUM_BANK_BYTES", "Limits"]

PARTITIONS = 128
PSUM_BANK_BYTES = 2048
PSUM_PARTITION_BYTES = 16384
# largest side of a transpose on the Vector engine (hardware.md 2.3)
TRANSPOSE_VECTOR = 32


class Limits(NamedTuple):
    """Limits of one generation; bytes per partition, free sizes in elements; cite and provenance cover the row."""

    generation: str
    number: int
    sbuf_bytes: int
    sbuf_usable_bytes: int
    stationary_free: int
    moving_free: dict[str, int]
    psum_crosses_banks: bool
    transpose_exact: bool
    matmul_dtypes: frozenset[str]
    activation_constant_bias: bool
    scalar_engine_copies: bool
    hardware_dge: bool
    logical_cores: int
    cite: str
    provenance: str


_PE_FLOATS = frozenset({"float8_e4m3", "float8_e5m2", "bfloat16", "float16", "tfloat32", "float32"})
_CITE = "hardware.md 2.1, 3.3, 5.1 (NKI arch guides and nki.isa docstrings)"

# sbuf_usable_bytes leaves the 16 KiB that the v2 allocator guide reserves; for gen3 and gen4 that reserve is inferred.
LIMITS: dict[str, Limits] = {
    "gen2": Limits(
        "gen2",
        2,
        192 << 10,
        176 << 10,
        128,
        {"float32": 512},
        False,
        False,
        _PE_FLOATS,
        False,
        False,
        False,
        1,
        _CITE,
        "documented",
    ),
    "gen3": Limits(
        "gen3",
        3,
        224 << 10,
        208 << 10,
        128,
        {"float32": 512},
        False,
        True,
        _PE_FLOATS,
        True,
        True,
        True,
        2,
        _CITE,
        "documented",
    ),
    "gen4": Limits(
        "gen4",
        4,
        256 << 10,
        240 << 10,
        128,
        {"float32": 4096, "bfloat16": 8192},
        True,
        True,
        _PE_FLOATS | {"float8_e4m3fn"},
        True,
        True,
        True,
        2,
        _CITE,
        "documented",
    ),
}
