"""What a well-formed word obeys: ranges, partitions, memory, element types, equal counts. One word at a time.

Rules are data: each says what it asks, where that is from, and how sure that is. Most follow from the kinds of fields
a class declares; the rest stand in the classes, as `RULES`. Whether a whole program is right (semaphores that meet,
queues and variables that exist) is not asked here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING

from formats.dtypes import DTYPES, Dtype
from formats.isa.codec import generation_of
from formats.isa.control import EventSemaphore
from formats.isa.enums import ActivationFunction, UpdateMode
from formats.isa.extension_dma import DmaIndirect
from formats.isa.field import Enumeration
from formats.isa.instruction import EXTENSION_OPCODE, Instruction
from formats.isa.operand import AccessPattern
from formats.isa.rule import KNOWN_DTYPES, Context, Finding, Problem, Rule, Use, place, span, uses_of
from formats.isa.unknown import Unknown
from formats.named_tuple import NamedTuple
from formats.neuron_core import (
    PARTITIONS,
    PSUM_BASE,
    PSUM_BYTES,
    PSUM_PARTITION_STRIDE,
    SBUF_BYTES,
    SBUF_PARTITION_STRIDE,
    start_partitions,
)
from formats.targets import Target

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = [
    "Problem",
    "Rule",
    "are_all_sound",
    "are_operands_sound",
    "check",
    "operand_problems",
    "problems_of",
    "rules_of",
]


def _length(word: Instruction, context: Context) -> Iterator[Finding]:
    if word.raw[1] != 0x10:
        yield "length", f"{word.raw[1]:#x} is not 0x10"


def _undeclared(word: Instruction, context: Context) -> Iterator[Finding]:
    mask = _undeclared_mask(type(word))
    bits = int.from_bytes(word.raw, "little") & mask
    if bits:
        first = ((bits & -bits).bit_length() - 1) // 8
        yield f"byte {first}", f"{word.raw[first]:#04x} where no field is known"


def _undeclared_mask(cls: type[Instruction]) -> int:
    found = _MASKS.get(cls)
    if found is None:
        # bytes 12 to 15 of an extension word: code and length, which no field declares
        declared = 0xFFFFFFFF << 96 if cls.CODE >= 0 else 0
        for field in cls.FIELDS.values():
            declared |= field.mask
        found = _MASKS[cls] = ((1 << 8 * cls.SIZE) - 1) & ~declared
    return found


_MASKS: dict[type[Instruction], int] = {}


def _names(word: Instruction, context: Context) -> Iterator[Finding]:
    for field in _enumerations(type(word)):
        value = field.read(word.raw)
        if type(value) is int:
            yield field.name, f"code {value:#x} has no name in {field.enum.__name__}"


def _enumerations(cls: type[Instruction]) -> tuple[Enumeration, ...]:
    found = _NAMED.get(cls)
    if found is None:
        # Function ids are bound by the file's own table; element types count where their operand is used.
        found = _NAMED[cls] = tuple(
            f
            for f in cls.FIELDS.values()
            if isinstance(f, Enumeration) and f.enum is not ActivationFunction and f.enum is not Dtype
        )
    return found


_NAMED: dict[type[Instruction], tuple[Enumeration, ...]] = {}


def _update_value(word: Instruction, context: Context) -> Iterator[Finding]:
    if word.raw[6] in (UpdateMode.SEM_ADD_IMM, UpdateMode.SEM_WRITE_IMM):
        yield "update_mode", f"{UpdateMode(word.raw[6]).name} takes a value, which the header has no place for"


def _dtypes(word: Instruction, context: Context) -> Iterator[Finding]:
    for use in context.uses:
        if use.dtype not in KNOWN_DTYPES:
            yield use.dtype_field, f"element type {use.dtype:#x} of {use.name} is not known"


def _partitions(word: Instruction, context: Context) -> Iterator[Finding]:
    for use in context.uses:
        if not 1 <= use.partitions <= PARTITIONS:
            yield use.partitions_field, f"{use.partitions} partitions are not 1 to {PARTITIONS}"


def _memory(word: Instruction, context: Context) -> Iterator[Finding]:
    for use in context.uses:
        space, partition, byte = place(use.pattern.address)
        limit = PSUM_BYTES if space == "PSUM" else SBUF_BYTES[context.generation]
        low, high = span(use)
        if byte + low < 0 or byte + high > limit:
            reach = f"{byte + low:#x} to {byte + high:#x}"
            yield use.name, f"bytes {reach} of a partition leave {space} ({limit:#x} bytes)"
        if partition + use.partitions > PARTITIONS:
            yield use.name, f"partitions {partition} to {partition + use.partitions - 1} leave {space}"


def _start_partition(word: Instruction, context: Context) -> Iterator[Finding]:
    if isinstance(word, DmaIndirect):
        return  # indices are fetched one by one, not by lanes
    for use in context.uses:
        space, partition, _ = place(use.pattern.address)
        allowed = start_partitions(use.partitions)
        if partition not in allowed:
            starts = " or ".join(map(str, allowed))
            yield use.name, f"{use.partitions} partitions start at {partition} of {space}, not at {starts}"


def _alignment(word: Instruction, context: Context) -> Iterator[Finding]:
    for use in context.uses:
        if use.pattern.address % use.size:
            spelling = DTYPES[Dtype(use.dtype)].spelling
            yield use.name, f"address {use.pattern.address:#x} is not a multiple of {use.size} ({spelling})"


def _counts(word: Instruction, context: Context) -> Iterator[Finding]:
    for use in context.uses:
        if not all(use.pattern.counts):
            yield use.name, f"a dimension of zero elements in {list(use.pattern.counts)}"


_COMMON: tuple[Rule, ...] = (
    Rule("The length byte is 16 dwords.", "observed", "isa.md 1", _length),
    Rule("Bytes that no field names are zero.", "observed", "isa.md 1", _undeclared),
    Rule("Codes of enumerations have names, function ids excepted.", "observed", "isa.md 2, 5", _names),
    Rule(
        "Updates that take a value stand in the second slot of EVENT_SEMAPHORE.",
        "inferred",
        "isa.md 2, 7",
        _update_value,
    ),
)
_ON_CHIP: tuple[Rule, ...] = (
    Rule("Element types of used operands are known.", "documented", "isa.md 5", _dtypes),
    Rule("1 to 128 partitions.", "documented", "hardware.md 2.1", _partitions),
    Rule("Every dimension has an element.", "observed", "isa.md 4", _counts),
    Rule("Operands stay inside SBUF or PSUM.", "documented", "hardware.md 2.1", _memory, True),
    Rule(
        "More than 64 partitions start at 0, more than 32 at 0 or 64, fewer at 0, 32, 64 or 96.",
        "documented",
        "hardware.md 2.3",
        _start_partition,
        True,
    ),
    Rule("Addresses are multiples of the element size.", "documented", "hardware.md 2.2", _alignment, True),
)


def rules_of(cls: type[Instruction]) -> tuple[Rule, ...]:
    """Return every rule for words of a class: common ones, those of its operands, its own."""
    found = _RULES_OF.get(cls)
    if found is None:
        common = tuple(r for r in _COMMON if r.check is not _update_value or cls is not EventSemaphore)
        found = _RULES_OF[cls] = (*common, *(_ON_CHIP if cls.OPERANDS else ()), *cls.RULES)
    return found


_RULES_OF: dict[type[Instruction], tuple[Rule, ...]] = {}


def check(word: Instruction, target: str | Target = "gen3", engine: str | None = None) -> list[Problem]:
    """Return every rule that a word breaks on `target`, and in the stream of `engine` if that is named.

    An `Unknown` word gives one problem, since nothing else about it can be judged.
    """
    generation, cls = generation_of(target), type(word)
    if isinstance(word, Unknown):
        what = "an extension word cut off or without a class" if word.raw[0] == EXTENSION_OPCODE else "not established"
        return [Problem("opcode", f"{word.raw[0]:#04x} is {what}", "observed", "isa.md 6")]
    if generation not in cls.GENERATIONS:
        return [Problem("opcode", f"{cls.NAME} does not exist on {generation}", "observed", cls.CITE)]
    problems, context = [], Context(generation, uses_of(word))
    if engine is not None and engine not in cls.ENGINES:
        owners = ", ".join(cls.ENGINES)
        problems.append(Problem("opcode", f"{cls.NAME} is for {owners}, not {engine}", "observed", cls.CITE))
    if engine == "Pool":
        problems += [
            Problem(use.name, "Pool cannot reach PSUM", "documented", "hardware.md 2.4")
            for use in context.uses
            if use.pattern.address >= PSUM_BASE
        ]
    for rule in rules_of(cls):
        problems += [
            Problem(field, message, rule.provenance, rule.cite) for field, message in rule.check(word, context)
        ]
    return problems


_MOST_KINDS = 1 << 13
_MANY = 32  # words of a class beyond which they are looked at together, kind by kind
_FEW_KINDS = 16  # of those
_MOST_SOUND = 1 << 15  # words that are known to be sound: a kernel that differs in a few has the others
Kept = tuple[type[Instruction], bytes]
_RAW = attrgetter("raw")
_SOUND: dict[str, set[Kept]] = {}  # by generation


def are_operands_sound(word: Instruction, target: str | Target = "gen3") -> bool:
    """Return whether `check` finds nothing in the operands of a word; programs have many words of few kinds."""
    generation = generation_of(target)
    kind = _kind_of(word, generation)
    if not kind.is_asked:
        return kind.is_sound
    rules = kind.others if _stand_well(word.raw, kind) else kind.rules
    if not rules:
        return True
    context = _context(word, kind, generation)
    for rule in rules:
        for _ in rule.check(word, context):
            return False
    return True


def operand_problems(word: Instruction, target: str | Target = "gen3") -> list[Problem]:
    """Return what `check` finds in the operands of a word."""
    generation, cls = generation_of(target), type(word)
    kind = _kind_of(word, generation)
    if not kind.is_asked:
        if kind.is_sound:
            return []
        rules, context = rules_of(cls), Context(generation, uses_of(word))
    else:
        rules = kind.others if _stand_well(word.raw, kind) else kind.rules
        if not rules:
            return []
        context = _context(word, kind, generation)
    return [
        Problem(field, message, rule.provenance, rule.cite)
        for rule in rules
        for field, message in rule.check(word, context)
        if field in cls.OPERANDS
    ]


def _context(word: Instruction, kind: _Kind, generation: str) -> Context:
    """Return what rules need of a word of a kind."""
    raw, fields, placed = word.raw, word.FIELDS, []
    for name, pattern, dtype_field, dtype, size, partitions_field, partitions in kind.uses:
        at = fields[name].offset
        address = int.from_bytes(raw[at : at + 4], "little")
        moved = AccessPattern(address, pattern.steps, pattern.counts)
        placed.append(Use(name, moved, dtype_field, dtype, size, partitions_field, partitions))
    return Context(generation, tuple(placed))


def are_all_sound(words: Iterable[Instruction], target: str | Target = "gen3") -> bool:
    """Return whether `check` finds nothing in the operands of any of many words; False may also mean that it might."""
    known, fresh = _unknown(words, target)
    for cls, found in fresh.items():
        if not _are_sound(cls, list(found.values()), target):
            return False
        _remember(known, [(cls, raw) for raw in found])
    return True


def problems_of(words: Iterable[Instruction], target: str | Target = "gen3") -> dict[Kept, list[Problem]]:
    """Return what `check` finds in the operands of many words, by class and bytes; those without are not among them."""
    known, fresh = _unknown(words, target)
    problems: dict[Kept, list[Problem]] = {}
    for cls, found in fresh.items():
        if len(found) < _MANY or not _are_sound(cls, list(found.values()), target):
            for raw, word in found.items():
                if broken := operand_problems(word, target):
                    problems[cls, raw] = broken
        _remember(known, [(cls, raw) for raw in found if (cls, raw) not in problems])
    return problems


def _unknown(
    words: Iterable[Instruction], target: str | Target
) -> tuple[set[Kept], dict[type[Instruction], dict[bytes, Instruction]]]:
    """Return the words that are known to be sound, and those of many that are not, by class and bytes."""
    known = _SOUND.setdefault(generation_of(target), set())
    fresh: dict[type[Instruction], dict[bytes, Instruction]] = {}
    words = list(words)
    if known.issuperset(zip(map(type, words), map(_RAW, words), strict=True)):  # as a rule
        return known, fresh
    for word in words:
        if (word.__class__, word.raw) not in known:
            fresh.setdefault(type(word), {})[word.raw] = word
    return known, fresh


def _remember(known: set[Kept], sound: list[Kept]) -> None:
    if len(known) + len(sound) > _MOST_SOUND:
        known.clear()
    known.update(sound[:_MOST_SOUND])


def _are_sound(cls: type[Instruction], words: list[Instruction], target: str | Target) -> bool:
    raws = [word.raw for word in words]
    if len(words) < _MANY or len(set(map(len, raws))) > 1:
        return all(are_operands_sound(word, target) for word in words)
    import numpy as np  # deferred: start-up

    rows = np.frombuffer(b"".join(raws), np.uint8).reshape(len(raws), -1)
    for _ in range(_FEW_KINDS):
        word = cls.from_raw(rows[0].tobytes())
        size = len(word.raw)
        mask = np.frombuffer((word.kept_bits() & (1 << 8 * size) - 1).to_bytes(size, "little"), np.uint8)
        alike = (rows & mask == rows[0] & mask).all(1)
        kind = _kind_of(word, generation_of(target))
        if kind.others or not kind.is_sound or (kind.is_asked and not _all_stand_well(rows[alike], kind)):
            return all(are_operands_sound(word, target) for word in words)
        rows = rows[~alike]
        if not rows.size:
            return True
    return all(are_operands_sound(cls.from_raw(row.tobytes()), target) for row in rows)


class _Stand(NamedTuple):
    """What the rules about places ask of the address of an operand: `low` and `high` are bytes from it on."""

    at: int
    size: int
    low: int
    high: int
    partitions: int
    starts: tuple[int, ...]


class _Kind(NamedTuple):
    """What is known of words that differ in addresses only.

    Where `is_asked` is not set, they are all sound or all not; else by `rules`, or by those of them in `others` where
    the operands stand as `stands` has it.
    """

    is_asked: bool
    is_sound: bool
    uses: tuple[Use, ...] = ()
    limit: int = 0  # bytes of a partition of SBUF
    stands: tuple[_Stand, ...] = ()
    rules: tuple[Rule, ...] = ()
    others: tuple[Rule, ...] = ()


_KINDS: dict[tuple[type[Instruction], str, bytes], _Kind] = {}


def _kind_of(word: Instruction, generation: str) -> _Kind:
    known = type(word), generation, word.without_addresses()
    kind = _KINDS.get(known)
    if kind is None:
        if len(_KINDS) >= _MOST_KINDS:
            _KINDS.clear()
        kind = _KINDS[known] = _new_kind(word, generation)
    return kind


def _new_kind(word: Instruction, generation: str) -> _Kind:
    cls = type(word)
    if generation not in cls.GENERATIONS:
        return _Kind(False, True)  # nothing else is asked of such a word
    uses = uses_of(word)
    context = Context(generation, uses)
    rules = rules_of(cls)
    if any(field in cls.OPERANDS for rule in rules if not rule.placed for field, _ in rule.check(word, context)):
        return _Kind(False, False)
    stands = tuple(
        _Stand(cls.FIELDS[use.name].offset, use.size, *span(use), use.partitions, start_partitions(use.partitions))
        for use in uses
    )
    placed = tuple(rule for rule in rules if rule.placed)
    others = tuple(rule for rule in placed if rule.check not in _STANDING)
    return _Kind(bool(placed), True, uses, SBUF_BYTES[generation], stands, placed, others)


def _stand_well(raw: bytes, kind: _Kind) -> bool:
    """Return whether the operands of a word obey `_memory`, `_start_partition` and `_alignment`, without their texts.

    Words of a kind differ in their addresses alone.
    """
    for at, size, low, high, partitions, starts in kind.stands:
        address = int.from_bytes(raw[at : at + 4], "little")
        space, partition, byte = place(address)
        limit = PSUM_BYTES if space == "PSUM" else kind.limit
        if (
            address % size
            or byte + low < 0
            or byte + high > limit
            or partition + partitions > PARTITIONS
            or partition not in starts
        ):
            return False
    return True


def _all_stand_well(rows: npt.NDArray[np.uint8], kind: _Kind) -> bool:
    """Return the same of all of many words of a kind, a row each."""
    import numpy as np  # deferred: start-up

    for at, size, low, high, partitions, starts in kind.stands:
        address = rows[:, at : at + 4].copy().view("<u4")[:, 0].astype(np.int64)
        if (address % size).any():
            return False
        in_psum = address >= PSUM_BASE
        for part, base, stride, limit in (
            (address[~in_psum], 0, SBUF_PARTITION_STRIDE, kind.limit),
            (address[in_psum], PSUM_BASE, PSUM_PARTITION_STRIDE, PSUM_BYTES),
        ):
            partition, byte = np.divmod(part - base, stride)
            if (
                (byte + low < 0).any()
                or (byte + high > limit).any()
                or (partition + partitions > PARTITIONS).any()
                or not set(partition.tolist()) <= set(starts)
            ):
                return False
    return True


_STANDING = (_memory, _start_partition, _alignment)
