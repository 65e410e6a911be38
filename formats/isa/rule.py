"""What a rule is, and what rules look at: the on-chip operands that a word uses and where they lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from formats.dtypes import DTYPES, Dtype
from formats.isa.instruction import Instruction
from formats.isa.operand import (
    PSUM_BASE,
    PSUM_PARTITION_STRIDE,
    SBUF_PARTITION_STRIDE,
    AccessPattern,
)
from formats.isa.pe import MatMul

__all__ = ["KNOWN_DTYPES", "Context", "Finding", "Problem", "Rule", "Use", "place", "span", "uses_of"]

# Bytes of each element type that has a meaning.
KNOWN_DTYPES: dict[int, int] = {int(code): info.size for code, info in DTYPES.items() if code}


class Problem(NamedTuple):
    """One rule that a word breaks: the field, what is wrong, and how and whence the rule is known."""

    field: str
    message: str
    provenance: str
    cite: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message} [{self.provenance}; {self.cite}]"


class Use(NamedTuple):
    """One on-chip operand that a word really uses; `size` is the bytes of an element, 1 where the type is not known."""

    name: str
    pattern: AccessPattern
    dtype_field: str
    dtype: int
    size: int
    partitions_field: str
    partitions: int


class Context(NamedTuple):
    """What a rule may need beside the word."""

    generation: str
    uses: tuple[Use, ...]


Finding = tuple[str, str]


class Rule(NamedTuple):
    """A rule in words, its source, and the function that yields (field, message) for a word."""

    doc: str
    provenance: str
    cite: str
    check: Callable[[Any, Context], Iterator[Finding]]


def uses_of(word: Instruction) -> tuple[Use, ...]:
    """Return the on-chip operands that a word uses; an unused pattern or pointer is not among them."""
    raw, fields, found = word.raw, word.FIELDS, []
    for name, field in word.OPERANDS.items():
        if not field.enabled(raw):
            continue
        value = field.read(raw)
        pattern = value if isinstance(value, AccessPattern) else AccessPattern(value, (1,), (1,))
        fixed = isinstance(field.dtype, Dtype)
        dtype = int(field.dtype) if isinstance(field.dtype, Dtype) else int(fields[field.dtype].read(raw))
        if isinstance(word, MatMul) and name == "dst" and not dtype:
            dtype = int(word.writes[0].dtype)
        found.append(Use(name, pattern, name if fixed else str(field.dtype), dtype, KNOWN_DTYPES.get(dtype, 1),
                         field.partitions, fields[field.partitions].read(raw)))
    return tuple(found)


def place(address: int) -> tuple[str, int, int]:
    """Return ("SBUF" or "PSUM", partition, byte) of an engine address."""
    if address < PSUM_BASE:
        return "SBUF", address // SBUF_PARTITION_STRIDE, address % SBUF_PARTITION_STRIDE
    return "PSUM", (address - PSUM_BASE) // PSUM_PARTITION_STRIDE, (address - PSUM_BASE) % PSUM_PARTITION_STRIDE


def span(use: Use) -> tuple[int, int]:
    """Return the first byte, relative to the address, and the byte after the last that a pattern touches."""
    low = high = 0
    for step, count in zip(use.pattern.steps, use.pattern.counts, strict=True):
        if count:
            move = step * (count - 1)
            low, high = (low + move, high) if move < 0 else (low, high + move)
    return low * use.size, (high + 1) * use.size
