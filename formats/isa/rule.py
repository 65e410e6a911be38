"""What a rule is, what rules look at (the on-chip operands that a word uses), and rules that many classes share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

from formats.dtypes import DTYPES, Dtype
from formats.isa.declared import Declared
from formats.isa.enums import AluOp
from formats.isa.operand import AccessPattern
from formats.named_tuple import NamedTuple
from formats.neuron_core import PSUM_BASE, PSUM_PARTITION_STRIDE, SBUF_PARTITION_STRIDE
from formats.regions import shape_of

__all__ = [
    "KNOWN_DTYPES",
    "Context",
    "Finding",
    "Problem",
    "Rule",
    "Use",
    "comparison",
    "elements",
    "groups",
    "has_elements",
    "in_psum",
    "place",
    "same_elements",
    "same_elements_documented",
    "span",
    "uses_of",
]

# Bytes of each element type that has a meaning.
KNOWN_DTYPES: dict[int, int] = {int(code): info.size for code, info in DTYPES.items() if code}


class Problem(NamedTuple):
    """One rule that a word breaks: the field, what is wrong, and how the rule is known and from where."""

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
    """What a rule may need besides the word."""

    generation: str
    uses: tuple[Use, ...]


Finding = tuple[str, str]


class Rule(NamedTuple):
    """A rule in words, its source, and the function that yields (field, message) for a word.

    `placed` tells that more of an operand's address counts than which memory it is in.
    """

    doc: str
    provenance: str
    cite: str
    check: Callable[[Any, Context], Iterator[Finding]]
    placed: bool = False


def uses_of(word: Declared) -> tuple[Use, ...]:
    """Return the on-chip operands that a word uses; an unused pattern or pointer is not among them."""
    raw, fields, found = word.raw, word.FIELDS, []
    for name, field in word.OPERANDS.items():
        if not field.enabled(raw):
            continue
        value = field.read(raw)
        pattern = value if isinstance(value, AccessPattern) else AccessPattern(value, (1,), (1,))
        dtype, source = int(word.dtype_of(field)), name if isinstance(field.dtype, Dtype) else field.dtype
        found.append(
            Use(
                name,
                pattern,
                source,
                dtype,
                KNOWN_DTYPES.get(dtype, 1),
                field.partitions,
                fields[field.partitions].read(raw),
            )
        )
    return tuple(found)


def place(address: int) -> tuple[str, int, int]:
    """Return ("SBUF" or "PSUM", partition, byte) of an engine address."""
    if address < PSUM_BASE:
        return "SBUF", address // SBUF_PARTITION_STRIDE, address % SBUF_PARTITION_STRIDE
    return "PSUM", (address - PSUM_BASE) // PSUM_PARTITION_STRIDE, (address - PSUM_BASE) % PSUM_PARTITION_STRIDE


def span(use: Use) -> tuple[int, int]:
    """Return the first byte, relative to the address, and the byte after the last that a pattern touches."""
    shape = shape_of(zip(use.pattern.steps, use.pattern.counts, strict=True), use.size)
    return shape.shift, shape.shift + shape.reach


def elements(word: Declared, name: str) -> int:
    """Return the elements of an operand in each partition."""
    return prod(word.FIELDS[name].read(word.raw).counts)


def _same(operands: tuple[str, ...], provenance: str, cite: str) -> Rule:
    def run(word: Declared, context: Context) -> Iterator[Finding]:
        counts = {name: elements(word, name) for name in operands if word.uses(name)}
        if len(set(counts.values())) > 1:
            yield operands[-1], "elements differ: " + ", ".join(f"{name} {count}" for name, count in counts.items())

    return Rule(f"{', '.join(operands[:-1])} and {operands[-1]} have equally many elements.", provenance, cite, run)


def same_elements(*operands: str) -> Rule:
    """Return the rule that those operands in use have equally many elements in each partition, as files show."""
    return _same(operands, "observed", "isa.md 11")


def same_elements_documented(*operands: str) -> Rule:
    """Return the same rule for words of ours, whose instructions say so."""
    return _same(operands, "documented", "nki.isa pages")


def has_elements(name: str, wanted: int | Callable[[Any], int], doc: str) -> Rule:
    """Return the rule that an operand in use has so many elements in each partition."""

    def run(word: Declared, context: Context) -> Iterator[Finding]:
        count = wanted if isinstance(wanted, int) else wanted(word)
        if word.uses(name) and elements(word, name) != count:
            yield name, f"{elements(word, name)} elements, not {count}"

    return Rule(doc, "documented", "nki.isa pages", run)


_COMPARISONS = (AluOp.EQUAL, AluOp.NOT_EQUAL, AluOp.GREATER, AluOp.GREATER_EQUAL, AluOp.LESS, AluOp.LESS_EQUAL)


def comparison(*names: str) -> Rule:
    """Return the rule that operators are comparisons."""

    def run(word: Declared, context: Context) -> Iterator[Finding]:
        for name in names:
            if word.FIELDS[name].read(word.raw) not in _COMPARISONS:
                yield name, "the operator is no comparison"

    return Rule("Operators are comparisons.", "documented", "nki.isa pages", run)


def groups(of: int) -> Rule:
    """Return the rule that a word works on whole groups of partitions."""

    def run(word: Declared, context: Context) -> Iterator[Finding]:
        channels = word.FIELDS["channels"].read(word.raw)
        if channels % of or not channels:
            yield "channels", f"{channels} is no multiple of {of}"

    return Rule(f"Partitions are a multiple of {of}.", "documented", "nki.isa pages", run)


def in_psum(cite: str) -> Rule:
    """Return the rule that the result lies in PSUM."""

    def run(word: Any, context: Context) -> Iterator[Finding]:
        if word.dst.address < PSUM_BASE:
            yield "dst", f"{word.dst.address:#x} is not in PSUM"

    return Rule("dst is in PSUM.", "documented", cite, run)
