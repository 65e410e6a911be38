"""Documented limits of each generation, as data with their source."""

from __future__ import annotations

from formats.named_tuple import NamedTuple
from formats.neuron_core import MOVING_COLUMNS, SBUF_BYTES, SBUF_TAKEN

__all__ = ["LIMITS", "TRANSPOSE_VECTOR", "Limits"]

# largest side of a transpose on the Vector engine (hardware.md 2.3)
TRANSPOSE_VECTOR = 32


class Limits(NamedTuple):
    """Limits of one generation, free sizes in elements; cite and provenance cover the row."""

    generation: str
    number: int
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

    @property
    def sbuf_bytes(self) -> int:
        """Return the bytes of a partition of SBUF."""
        return SBUF_BYTES[self.generation]

    @property
    def sbuf_usable_bytes(self) -> int:
        """Return the bytes of a partition that the documentation leaves to kernels."""
        return self.sbuf_bytes - SBUF_TAKEN[self.generation][0]


_PE_FLOATS = frozenset({"float8_e4m3", "float8_e5m2", "bfloat16", "float16", "tfloat32", "float32"})
_CITE = "hardware.md 2.1, 3.3, 5.1 (NKI arch guides and nki.isa docstrings)"

LIMITS: dict[str, Limits] = {
    "gen2": Limits(
        "gen2",
        2,
        {"float32": MOVING_COLUMNS["gen2"]},
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
        {"float32": MOVING_COLUMNS["gen3"]},
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
        {"float32": MOVING_COLUMNS["gen4"], "bfloat16": 2 * MOVING_COLUMNS["gen4"]},
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
