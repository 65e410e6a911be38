"""Which bytes of a word are understood; what else is set may only be ignored where the list here says why.

A byte is understood where a field with a known meaning holds a value with a known meaning. Waits and updates are left
to those who carry them out, codes of activation functions to the file's own tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from enum import IntEnum
from functools import cache
from itertools import groupby
from typing import Any

from formats.isa.enums import ActivationFunction, UpdateMode, WaitMode
from formats.isa.field import Enumeration, Field, Integer, Text
from formats.isa.instruction import Instruction
from formats.isa.unknown import Unknown
from formats.named_tuple import NamedTuple

__all__ = ["IGNORED_BYTES", "NOT_PRINTED", "IgnoredByte", "UnknownByte", "is_understood", "unknown_bytes"]


class IgnoredByte(NamedTuple):
    """A byte whose meaning is not known and that may be ignored at these values; `shown_by` says what shows it."""

    word: str
    field: str
    values: tuple[int, ...]
    reason: str
    shown_by: str


class UnknownByte(NamedTuple):
    """A byte of a word that is not understood, and why."""

    offset: int
    value: int
    reason: str

    def __str__(self) -> str:
        return f"byte {self.offset} is {self.value:#04x}: {self.reason}"


_SEEN = "gen2 files compute what their kernels mean without it"
_LOADER = "every such word of the loader has it, and no data"
IGNORED_BYTES: tuple[IgnoredByte, ...] = (
    IgnoredByte("LDWEIGHTS", "unknown_46", (2, 15), f"follows the element type; {_SEEN}", "12 gen2 files"),
    IgnoredByte("MATMUL", "unknown_46", (16,), f"is the same in every word; {_SEEN}", "12 gen2 files"),
    IgnoredByte("ACTIVATE", "unknown_15", (1,), f"repeats no_bias; {_SEEN}", "12 gen2 files"),
    IgnoredByte("DRAIN", "unknown_40", (1,), f"{_LOADER}: the first of each epilogue", "100 words, 10 captures"),
    IgnoredByte("NOTIFY", "flags", (9,), f"{_LOADER}: it goes to the host", "400 words, 10 captures"),
    IgnoredByte("TENSOR_STORE", "unknown_30", (4,), _LOADER, "90 words, 10 captures"),
    IgnoredByte("OPCODE_95", "unknown_13", (255,), _LOADER, "40 words, 10 captures"),
)
# Fields that are understood and may change without a change of the text a profiler prints; braces show them (`asm`).
# "*" stands for every word.
NOT_PRINTED: dict[tuple[str, str], str] = {
    **{("*", name): "means nothing while the mode beside it is 0" for name in (
        "wait_index", "wait_value", "update_index", "wait2_index", "wait2_value", "update2_index", "update2_value")},
    **{("*", name): "is not used while the flag or pointer beside it is off" for name in (
        "bias_dtype", "bias_pointer", "on_false", "on_false_dtype", "on_false_tile", "reduce_res", "reduce_res_dtype",
        "indices", "indices_dtype", "predicate", "predicate_dtype")},
    **{("*", name): "is carried out in full and printed to six digits" for name in ("scale", "immediate")},
    ("SCALAR_TENSOR_TENSOR", "immediate0_is_integer"): "a zero is the same number either way",
    ("COPY_PREDICATED", "src"): "is not used while an immediate stands for it",
    ("COPY_PREDICATED", "src_dtype"): "is not used while an immediate stands for it",
    ("MATMUL", "transpose_mode"): "is carried out; printed for LDWEIGHTS only",
    ("LDWEIGHTS", "row_groups"): "weights and words of other groups are refused as they meet",
    ("LDWEIGHTS", "column_groups"): "weights and words of other groups are refused as they meet",
    ("MATMUL", "row_groups"): "weights and words of other groups are refused as they meet",
    ("MATMUL", "column_groups"): "weights and words of other groups are refused as they meet",
    ("NOTIFY", "trace"): "notifications go to the host alone",
    ("PSEUDO_DMA_TRIGGER", "queue"): "a name that cannot be printed stands in braces, and no block has it",
    ("COMPARE_BRANCH", "branch_kind"): "another kind than relative is refused as it is reached",
    ("COMPARE_BRANCH", "dtype"): "an unconditional branch compares nothing",
    ("COMPARE_BRANCH", "register"): "an unconditional branch compares nothing",
    ("COMPARE_BRANCH", "constant"): "an unconditional branch compares nothing",
    ("COMPARE_BRANCH", "target_registers"): "an unconditional branch compares nothing; register pairs are refused",
    ("TENSOR_LOAD", "registers"): "those behind the count are not loaded",
}  # fmt: skip
_EVERY = frozenset(range(256))
_IGNORED = {(each.word, each.field): each for each in IGNORED_BYTES}
# Codes that somebody else judges: the sequencer, and the activation tables of the file.
_JUDGED_ELSEWHERE = (WaitMode, UpdateMode, ActivationFunction)
_ALWAYS = ("opcode", "wait_mode", "wait_index", "wait_value", "update_mode", "update_index")


def is_understood(word: Instruction) -> bool:
    """Return whether every byte of a word is understood, or may be ignored."""
    cls = type(word)
    match = _MATCHES.get(cls)
    if match is None:
        match = _MATCHES[cls] = _pattern(cls).fullmatch
    return match(word.raw) is not None


def unknown_bytes(word: Instruction) -> tuple[UnknownByte, ...]:
    """Return the bytes of a word that are not understood; an unknown word is one at its first byte."""
    cls = type(word)
    if cls is Unknown:
        return (UnknownByte(0, word.raw[0], "the opcode, or this use of it, is not established"),)
    raw = word.raw
    texts = [field for field in cls.FIELDS.values() if isinstance(field, Text)]
    behind = {offset: field.name for field in texts for offset in range(field.offset, field.offset + field.size)
              if 0 in raw[field.offset:offset]}  # fmt: skip
    found = [(offset, reasons.get(raw[offset], "")) for offset, reasons in enumerate(_reasons(cls))]
    found += [(offset, f"{name} has ended before it") for offset, name in behind.items() if raw[offset]]
    return tuple(UnknownByte(offset, raw[offset], reason) for offset, reason in sorted(found) if reason)


def _reasons(cls: type[Instruction]) -> list[dict[int, str]]:
    """Return, of every byte of a class, why which values are not understood."""
    found = _REASONS.get(cls)
    if found is None:
        found = _REASONS[cls] = [_reasons_at(cls, offset) for offset in range(cls.SIZE)]
    return found


def _reasons_at(cls: type[Instruction], offset: int) -> dict[int, str]:
    found: dict[int, str] = {}
    for values, reason in _refused_at(cls, offset):
        for value in values:
            found.setdefault(value, reason(value))
    return found


def _refused_at(cls: type[Instruction], offset: int) -> Iterator[tuple[AbstractSet[int], Callable[[int], str]]]:
    """Yield values of a byte that are not understood, and what says why; what says so first is the reason."""
    if cls.CODE >= 0 and 12 <= offset < 16:  # the extension's code and length
        return
    usual, known = cls.defaults()[offset], 0
    for field in _fields_at(cls)[offset]:
        bits = field.mask >> 8 * offset & 0xFF
        known |= bits
        ignored = _IGNORED.get((cls.NAME, field.name))
        if field.name in _ALWAYS:
            continue
        if not _has_meaning(cls, field):
            allowed = {one >> 8 * (offset - field.offset) & 0xFF for one in ignored.values} if ignored else set()
            yield _EVERY - allowed - {usual}, _meaningless(field.name)
        elif isinstance(field, Integer) and field.known is not None:
            yield _EVERY - set(field.known) - {usual}, _unknown_value(field.name)
        elif isinstance(field, Enumeration) and field.enum not in _JUDGED_ELSEWHERE:
            yield from _codes_at(field, bits, usual)
    if known != 0xFF:
        yield (
            _others(usual, known),
            lambda value: f"no field of {cls.NAME} is known in bits {(value ^ usual) & ~known & 0xFF:#04x}",
        )


def _meaningless(name: str) -> Callable[[int], str]:
    return lambda value: f"what {name} means is not known"


def _unknown_value(name: str) -> Callable[[int], str]:
    return lambda value: f"what {name} {value} means is not known"


def _fields_at(cls: type[Instruction]) -> list[list[Field[Any]]]:
    """Return, of every byte of a class, the fields that it is of."""
    found = _FIELDS.get(cls)
    if found is None:
        found = _FIELDS[cls] = [[] for _ in range(cls.SIZE)]
        for field in cls.FIELDS.values():
            for offset in range(field.offset, field.offset + field.size):
                found[offset].append(field)
    return found


@cache
def _others(usual: int, known: int) -> frozenset[int]:
    """Return the values of a byte that differ from the usual one in bits of no field."""
    return frozenset(value for value in _EVERY if (value ^ usual) & ~known & 0xFF)


def _codes_at(field: Enumeration, bits: int, usual: int) -> Iterator[Any]:
    refused = _without_code(field.enum, bits, usual & bits)
    if refused:
        yield refused, lambda value: f"{field.name} has no code {(value & bits) // (bits & -bits):#x}"


@cache
def _without_code(enum: type[IntEnum], bits: int, usual: int) -> frozenset[int]:
    """Return the values of a byte that hold no code of an enumeration in some bits, nor what these usually hold."""
    allowed = {usual, *[code * (bits & -bits) for code in map(int, enum)]}
    return frozenset([value for value in _EVERY if value & bits not in allowed])


def _has_meaning(cls: type[Instruction], field: Field[Any]) -> bool:
    if field.name == "hint":  # a branch prints it, and it changes no result
        return any("hint" in item.covers(cls) for item in cls.SYNTAX)
    return field.name not in ("length", "flags") and not field.name.startswith("unknown_")


def _pattern(cls: type[Instruction]) -> re.Pattern[bytes]:
    """Return what the bytes of understood words match: one lookup a word, however many fields it has."""
    if cls is Unknown:
        return re.compile(b".*", re.DOTALL)
    parts = []
    for offset in range(cls.SIZE):
        if any(isinstance(field, Text) and field.offset < offset for field in _fields_at(cls)[offset]):
            parts.append(b"(?:\\x00|(?<!\\x00).)")  # nothing follows the zero that ends a name
            continue
        refused = frozenset[int]().union(*(found for found, _ in _refused_at(cls, offset)))
        parts.append(_one_of(_EVERY - refused))
    runs = [(part, len(list(run))) for part, run in groupby(parts)]
    return re.compile(b"".join([part if count == 1 else b"%b{%d}" % (part, count) for part, count in runs]), re.DOTALL)


@cache
def _one_of(values: frozenset[int]) -> bytes:
    """Return a pattern of one byte of these values, as short as ranges make it: patterns are made at every start."""
    if values == _EVERY:
        return b"."
    if len(values) == 1:
        (only,) = values
        return b"\\x%02x" % only
    first = sorted([value for value in values if value - 1 not in values])
    last = sorted([value for value in values if value + 1 not in values])
    return b"[%b]" % b"".join([b"\\x%02x-\\x%02x" % pair for pair in zip(first, last, strict=True)])


_FIELDS: dict[type[Instruction], list[list[Field[Any]]]] = {}
_REASONS: dict[type[Instruction], list[dict[int, str]]] = {}
_MATCHES: dict[type[Instruction], Callable[[bytes], re.Match[bytes] | None]] = {}
