"""What decides how fast an engine takes an operand: place, element type, stride. Source: hardware.md 2.3, 3.4."""

from __future__ import annotations

from formats.dtypes import DTYPES, Dtype
from formats.isa import AccessPattern, Instruction
from formats.named_tuple import NamedTuple
from formats.neuron_core import PSUM_BASE

__all__ = ["Tile", "tile", "tiles"]

_WIDE16 = frozenset((Dtype.BFLOAT16, Dtype.FLOAT16))
_WIDE8 = frozenset((Dtype.FLOAT8E3, Dtype.FLOAT8E4, Dtype.FLOAT8E5, Dtype.FLOAT8E4FN))


class Tile(NamedTuple):
    """One operand; `elements` are per partition, `step` is that of the fastest dimension that moves, in elements."""

    elements: int
    in_psum: bool
    dtype: int
    step: int

    @property
    def contiguous(self) -> bool:
        """Return whether the fastest dimension takes neighbouring elements."""
        return self.step == 1

    @property
    def is_wide16(self) -> bool:
        """Return whether elements are 16-bit floats."""
        return self.dtype in _WIDE16

    @property
    def is_wide8(self) -> bool:
        """Return whether elements are 8-bit floats."""
        return self.dtype in _WIDE8

    @property
    def is_float(self) -> bool:
        """Return whether elements are floats of 32 bits or fewer, as the Vector engine computes with."""
        return self.dtype == Dtype.FLOAT32 or self.is_wide16 or self.is_wide8

    @property
    def size(self) -> int:
        """Return the bytes of an element."""
        info = DTYPES.get(Dtype(self.dtype)) if self.dtype in Dtype.__members__.values() else None
        return info.size if info else 1

    @property
    def stride(self) -> int:
        """Return the bytes from one element to the next along the fastest dimension."""
        return abs(self.step) * self.size


def tile(word: Instruction, name: str) -> Tile | None:
    """Return an operand of a word, None where the word does not use it."""
    if not word.uses(name):
        return None
    pattern = getattr(word, name)
    if not isinstance(pattern, AccessPattern):
        return None
    # dimensions of one element do not move
    step = next((s for s, count in zip(pattern.steps, pattern.counts, strict=True) if count > 1), 1)
    return Tile(pattern.elements, pattern.address >= PSUM_BASE, int(word.dtype_of(word.OPERANDS[name])), step)


def tiles(word: Instruction, *names: str) -> list[Tile]:
    """Return those of the operands named that the word uses."""
    return [found for name in names if (found := tile(word, name)) is not None]
