"""What a well-formed word obeys: ranges, partitions, memory, element types, equal counts. One word at a time.

Rules are data: each says what it asks, where that is from, and how sure that is. Most follow from the kinds of fields
a class declares; the rest stand in the classes, as `RULES`. Whether a whole program is right (semaphores that meet,
queues and variables that exist) is not asked here.
"""

from __future__ import annotations

from collections.abc import Iterator

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
from formats.neuron_core import PARTITIONS, PSUM_BASE, PSUM_BYTES, SBUF_BYTES, start_partitions
from formats.targets import Target

__all__ = ["Problem", "Rule", "are_operands_sound", "check", "rules_of"]


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
# Of words that differ in addresses only: their operands, None where one of them breaks a rule at any address.
_USES: dict[tuple[type[Instruction], str, bytes], tuple[Use, ...] | None] = {}


def are_operands_sound(word: Instruction, target: str | Target = "gen3") -> bool:
    """Return whether `check` finds nothing in the operands of a word; programs have many words of few kinds."""
    generation, cls = generation_of(target), type(word)
    if generation not in cls.GENERATIONS:
        return True  # nothing else is asked of such a word
    known = cls, generation, word.without_addresses()
    uses = _USES.get(known)
    if uses is None:
        if known in _USES:
            return False
        if len(_USES) >= _MOST_KINDS:
            _USES.clear()
        uses = uses_of(word)
        context = Context(generation, uses)
        broken = any(
            field in cls.OPERANDS for rule in rules_of(cls) if not rule.placed for field, _ in rule.check(word, context)
        )
        _USES[known] = None if broken else uses
        if broken:
            return False
    raw, fields, placed = word.raw, cls.FIELDS, []
    rules = _placed_rules(cls)
    if _stand_well(raw, known, uses):
        rules = tuple([rule for rule in rules if rule.check not in _STANDING])
        if not rules:
            return True
    for name, pattern, dtype_field, dtype, size, partitions_field, partitions in uses:
        at = fields[name].offset
        address = int.from_bytes(raw[at : at + 4], "little")
        moved = AccessPattern(address, pattern.steps, pattern.counts)
        placed.append(Use(name, moved, dtype_field, dtype, size, partitions_field, partitions))
    context = Context(generation, tuple(placed))
    for rule in rules:
        for _ in rule.check(word, context):
            return False
    return True


class _Stand(NamedTuple):
    """What the rules about places ask of the address of an operand: `low` and `high` are bytes from it on."""

    at: int
    size: int
    low: int
    high: int
    partitions: int
    starts: tuple[int, ...]


_STANDS: dict[tuple[type[Instruction], str, bytes], tuple[_Stand, ...]] = {}


def _stand_well(raw: bytes, known: tuple[type[Instruction], str, bytes], uses: tuple[Use, ...]) -> bool:
    """Return whether the operands of a word obey `_memory`, `_start_partition` and `_alignment`, without their texts.

    Words of a kind differ in their addresses alone.
    """
    stands = _STANDS.get(known)
    if stands is None:
        if len(_STANDS) >= _MOST_KINDS:
            _STANDS.clear()
        stands = _STANDS[known] = tuple(
            _Stand(known[0].FIELDS[use.name].offset, use.size, *span(use), use.partitions,
                   start_partitions(use.partitions))
            for use in uses
        )  # fmt: skip
    for at, size, low, high, partitions, starts in stands:
        address = int.from_bytes(raw[at : at + 4], "little")
        space, partition, byte = place(address)
        limit = PSUM_BYTES if space == "PSUM" else SBUF_BYTES[known[1]]
        if (
            address % size
            or byte + low < 0
            or byte + high > limit
            or partition + partitions > PARTITIONS
            or partition not in starts
        ):
            return False
    return True


_STANDING = (_memory, _start_partition, _alignment)


def _placed_rules(cls: type[Instruction]) -> tuple[Rule, ...]:
    found = _PLACED.get(cls)
    if found is None:
        found = _PLACED[cls] = tuple(rule for rule in rules_of(cls) if rule.placed)
    return found


_PLACED: dict[type[Instruction], tuple[Rule, ...]] = {}
