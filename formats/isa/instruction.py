"""The base of every instruction word: declaration, encoding, reading of fields, text both ways."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, ClassVar, Self

from formats.dtypes import Dtype
from formats.errors import FormatError
from formats.isa.declare import check_declaration
from formats.isa.declared import Declared
from formats.isa.enums import ActivationFunction, AluOp, BranchCompare, UpdateMode, WaitMode
from formats.isa.field import Enumeration, Field, Integer, Json
from formats.isa.operand import Access, AccessPattern, DmaAccess, DmaAddressField, Pattern, Pointer
from formats.isa.plain import describe_class
from formats.isa.rule import Rule
from formats.isa.signals import HEADER_SLOT, Awaited, Part, Signal, SyncReader, unpacker
from formats.isa.sync import Update, Wait, header_text, header_values, parse_sync
from formats.isa.syntax import Formatter, Item, Omitter, Tokens, parse_integer, parse_raw, split_braces
from formats.named_tuple import NamedTuple
from formats.neuron_core import WORD

__all__ = ["EXTENSION_OPCODE", "Instruction", "header_sync"]

# The escape to extension words; no public file shows this opcode (isa.md 6), and its meaning is ours.
EXTENSION_OPCODE = 0xEE
# Codes of ours begin where none was ever seen: at 0x80 in most enumerations. Activation functions of real tables go up
# to 130 (isa.md 5), so ours begin at 0xC0.
_OURS_FROM: dict[type[IntEnum], int] = {AluOp: 0x80, BranchCompare: 0x80, ActivationFunction: 0xC0, Dtype: 0x80}
_SYNC = ("wait_mode", "wait_index", "wait_value", "update_mode", "update_index")
# The highest byte of an address, but for its last bit, is 0 in SBUF and more in PSUM.
_HEADER, _WHERE = b"\xff" * 11, b"\xff\xff\xff\x01"


class _Plan(NamedTuple):
    """What turning words of one class into text needs, worked out once."""

    formatters: tuple[Formatter, ...]
    omitters: tuple[Omitter, ...]
    hidden: int  # bits that no item prints, and their values in a fresh word
    hidden_default: int
    undeclared: int  # bits that no field has
    hidden_fields: tuple[Field[Any], ...]


class Instruction(Declared):
    """One instruction word; the class declares it, an instance is its raw bytes and reads fields on access."""

    __slots__ = ()

    SYNTAX: ClassVar[tuple[Item, ...]] = ()
    # What a well-formed word of this class obeys, besides what its fields imply.
    RULES: ClassVar[tuple[Rule, ...]] = ()
    # What in a word waits or signals, and what reads it (see formats.isa.signals).
    SYNC: ClassVar[tuple[Part, ...]] = (HEADER_SLOT,)
    SYNC_READER: ClassVar[SyncReader]
    # Beginning of the operand behind which synchronisation tokens are no longer the header's.
    HEADER_ENDS: ClassVar[str] = ""
    # Bits of ours in a word that real files have too, and bytes whose codes are ours from a limit on.
    OURS_MASK: ClassVar[int] = 0
    OURS_CODES: ClassVar[tuple[tuple[int, int], ...]] = ()
    _PLAN: ClassVar[_Plan | None] = None
    _KEPT: ClassVar[int] = 0
    _POINTERS: ClassVar[tuple[tuple[Pointer, int], ...]] = ()

    opcode = Integer(0, 1, "opcode", provenance="observed", cite="isa.md 1")
    length = Integer(1, 1, "length of a word in dwords", unit="dwords", default=0x10, cite="isa.md 1")
    flags = Integer(2, 1, "flags; 9 in NOTIFY words of the loader", provenance="inferred", cite="isa.md 1")
    hint = Integer(3, 1, "debug or branch hint", provenance="inferred", cite="isa.md 1")
    wait_mode = Enumeration(4, WaitMode, "how the word waits", cite="isa.md 2")
    wait_index = Integer(5, 1, "semaphore or event waited for", cite="isa.md 2")
    update_mode = Enumeration(6, UpdateMode, "what the word signals at completion", cite="isa.md 2")
    update_index = Integer(7, 1, "semaphore or event signalled", cite="isa.md 2")
    wait_value = Integer(8, 4, "value waited for", cite="isa.md 2")

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        fields: dict[str, Field[Any]] = {}
        for base in reversed(cls.__mro__):
            fields.update((n, f) for n, f in vars(base).items() if isinstance(f, Field))
        cls.FIELDS = fields
        cls.OPERANDS = {n: f for n, f in fields.items() if isinstance(f, Pattern | Pointer)}
        cls._PLAN, cls._KEPT, cls._POINTERS = None, 0, ()
        if "SYNC" in vars(cls):
            cls.SYNC_READER = SyncReader(fields, cls.SYNC)
        if not cls.NAME:
            return
        check_declaration(cls, cls.SYNTAX)
        cls.DIALECT = "extended" if cls.CODE >= 0 else "neuron"
        template = bytearray(cls.SIZE)
        for field in fields.values():
            if field.default and not field.alias:
                field.write(template, field.default)
        # shared bases and `Unknown` have no opcode
        template[0] = max(cls.OPCODE, 0)
        if cls.CODE >= 0:
            template[12:16] = cls.CODE.to_bytes(2, "little") + (cls.SIZE // WORD).to_bytes(2, "little")
        else:
            cls._mark_ours()
        cls._TEMPLATE = bytes(template)

    @classmethod
    def _mark_ours(cls) -> None:
        cls.OURS_MASK, codes = 0, []
        for field in cls.FIELDS.values():
            if field.provenance == "ours" and not field.alias:
                cls.OURS_MASK |= field.mask
            elif isinstance(field, Enumeration) and field.limit == 255 and field.enum in _OURS_FROM:
                limit = _OURS_FROM[field.enum]
                if limit == 0x80:  # the top bit alone tells, so one mask does for all of them
                    cls.OURS_MASK |= 0x80 << 8 * field.offset
                else:
                    codes.append((field.offset, limit))
        cls.OURS_CODES = tuple(codes)

    def __init__(self, **values: Any) -> None:
        word = bytearray(self._TEMPLATE)
        fields = self.FIELDS
        for name, value in values.items():
            try:
                field = fields[name]
            except KeyError:
                raise FormatError(f"{self.NAME} has no such field", field=name) from None
            field.write(word, value)
        # `opcode` is a field like any other and may be given, but it cannot make a word of another class
        if word[0] != self._TEMPLATE[0]:
            raise FormatError("another opcode", field="opcode", expected=hex(self._TEMPLATE[0]), got=hex(word[0]))
        self.raw = bytes(word)

    @classmethod
    def from_raw(cls, raw: bytes) -> Self:
        """Return the instruction that `raw` is, keeping every bit."""
        self = cls.__new__(cls)
        self.raw = raw
        return self

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash(self.raw)

    def __repr__(self) -> str:
        return f"<{self.asm}>"

    def encode(self) -> bytes:
        """Return the bytes of the word."""
        return self.raw

    def replace(self, **values: Any) -> Self:
        """Return a copy with some fields changed."""
        word = bytearray(self.raw)
        for name, value in values.items():
            if name not in self.FIELDS or name == "opcode":
                raise FormatError(f"{self.NAME} has no such field", field=name)
            self.FIELDS[name].write(word, value)
        return type(self).from_raw(bytes(word))

    @classmethod
    def of(cls, word: Instruction) -> Self:
        """Return the word of this class that has the bits of another with the same layout."""
        return cls.from_raw(bytes((cls.OPCODE,)) + word.raw[1:])

    def headed_like(self, word: Instruction) -> Self:
        """Return this word with the flags, waits and updates of another."""
        return self.from_raw(self.raw[:2] + word.raw[2:12] + self.raw[12:])

    @property
    def body(self) -> bytes:
        """Return the bytes that say what the word does, whatever it waits for and signals."""
        return self.raw[:1] + self.raw[12:]

    def without_addresses(self) -> bytes:
        """Return the bytes that its cost depends on: no header, and of operands' addresses only which memory it is."""
        raw = self.raw
        size = len(raw)
        kept = self._KEPT or self._kept()
        if self._POINTERS:
            kept = self.kept_bits()
        return (int.from_bytes(raw, "little") & kept).to_bytes(size, "little")

    def kept_bits(self) -> int:
        """Return the bits that `without_addresses` keeps, of any word that is the same in these."""
        kept, raw = self._KEPT or self._kept(), self.raw
        for pointer, bits in self._POINTERS:
            if not pointer.enabled(raw):
                kept |= bits  # an immediate stands there
        return kept

    @classmethod
    def _kept(cls) -> int:
        """Return the bits of words that differ in more than header and addresses; kept for the next one."""
        left_out = bytearray(cls.SIZE)
        left_out[1:12] = _HEADER
        # Addresses are left out but for the bit that tells PSUM from SBUF: a word costs the same anywhere in one
        # memory.
        where = int.from_bytes(_WHERE, "little")
        for operand in cls.OPERANDS.values():
            left_out[operand.offset : operand.offset + 4] = _WHERE
        cls._POINTERS = tuple(
            (operand, where << 8 * operand.offset)
            for operand in cls.OPERANDS.values()
            if isinstance(operand, Pointer) and operand.flag is not None
        )
        for field in cls.FIELDS.values():
            if isinstance(field, DmaAddressField):
                left_out[field.offset : field.offset + field.size] = b"\xff" * field.size
        cls._KEPT = ~int.from_bytes(left_out, "little")
        return cls._KEPT

    @property
    def name(self) -> str:
        """Return the opcode's name."""
        return self.NAME

    @property
    def size(self) -> int:
        """Return the bytes the word takes."""
        return len(self.raw)

    @property
    def fields(self) -> dict[str, Any]:
        """Return every field's value by name."""
        raw = self.raw
        return {name: field.read(raw) for name, field in self.FIELDS.items()}

    @property
    def provenance(self) -> str:
        """Return how the meaning of the word is known: documented, observed, inferred or ours."""
        return self.PROVENANCE

    @property
    def wait(self) -> Wait:
        """Return the condition in the header."""
        raw = self.raw
        return Wait(raw[4], raw[5], int.from_bytes(raw[8:12], "little"))

    @property
    def update(self) -> Update:
        """Return the signal in the header."""
        raw = self.raw
        return Update(raw[6], raw[7], 1)

    @property
    def waits(self) -> tuple[Awaited, ...]:
        """Return what has to hold before the word may start, in the order in which it is looked at."""
        return self.SYNC_READER.waits(self.raw)

    @property
    def signals(self) -> tuple[Signal, ...]:
        """Return what the word signals: itself at completion, by a barrier, by a write, or by the DMA it starts."""
        return self.SYNC_READER.signals(self.raw)

    def without_waits(self) -> Self:
        """Return a copy that waits for no semaphore or event."""
        return self.replace(**dict.fromkeys(self.SYNC_READER.waiting, 0))

    @property
    def reads(self) -> tuple[Access | DmaAccess, ...]:
        """Return what the word reads: on-chip accesses or the source of a DMA."""
        return self._accesses("read")

    @property
    def writes(self) -> tuple[Access | DmaAccess, ...]:
        """Return what the word writes: on-chip accesses or the destination of a DMA."""
        return self._accesses("write")

    def _accesses(self, role: str) -> tuple[Access, ...]:
        raw, found = self.raw, []
        for name, field in self.OPERANDS.items():
            if role in field.role and field.enabled(raw):
                value = field.read(raw)
                pattern = value if isinstance(value, AccessPattern) else AccessPattern(value, (1,), (1,))
                found.append(Access(name, pattern, self.dtype_of(field), self.FIELDS[field.partitions].read(raw)))
        return tuple(found)

    @classmethod
    def _plan(cls) -> _Plan:
        plan = cls.__dict__.get("_PLAN")
        if plan is None:
            spoken = {"opcode", *_SYNC, *(name for item in cls.SYNTAX for name in item.covers(cls))}
            visible = declared = 0
            for name, field in cls.FIELDS.items():
                declared |= field.mask
                visible |= field.mask if name in spoken else 0
            hidden = ((1 << 8 * cls.SIZE) - 1) & ~visible
            plan = cls._PLAN = _Plan(
                tuple(item.bind(cls) for item in cls.SYNTAX),
                tuple(omits for item in cls.SYNTAX if (omits := item.omits(cls)) is not None),
                hidden,
                int.from_bytes(cls._TEMPLATE, "little") & hidden,
                hidden & ~declared,
                tuple(f for n, f in cls.FIELDS.items() if n not in spoken and not f.alias),
            )
        return plan

    @property
    def operands(self) -> str:
        """Return the operand text without the name, as a profile prints it."""
        raw = self.raw
        prefix = header_text(raw[4:12])[0]
        parts = [prefix] if prefix else []
        for formatter in (self._PLAN or self._plan()).formatters:
            piece = formatter(raw)
            if piece:
                parts.append(piece)
        return " ".join(parts)

    @property
    def text(self) -> str:
        """Return name, blank and operands in the profiler's grammar (isa.md 12)."""
        operands = self.operands
        return f"{self.NAME} {operands}" if operands else self.NAME

    @property
    def asm(self) -> str:
        """Return text that assembles to exactly this word: `text`, and in braces what the profiler does not print.

        Braces hold `field=bits` in hexadecimal, or `raw=` and all bytes where bits are set that no field has.
        """
        raw, plan = self.raw, self._PLAN or self._plan()
        names = list(header_text(raw[4:12])[1])
        for omits in plan.omitters:
            names += omits(raw)
        differs = int.from_bytes(raw, "little") & plan.hidden ^ plan.hidden_default
        if differs:
            if differs & plan.undeclared:
                return f"{self.text} {{raw={raw.hex()}}}"
            fresh = self._TEMPLATE
            names += [f.name for f in plan.hidden_fields if f.peek(raw) != f.peek(fresh)]
        if not names:
            return self.text
        fields = self.FIELDS
        return f"{self.text} {{{' '.join([f'{name}={fields[name].peek(raw):#x}' for name in names])}}}"

    @classmethod
    def parse(cls, operands: str) -> Self:
        """Return the word that operand text gives; the inverse of `text` and of `asm` without the name."""
        body, hidden = split_braces(operands)
        if "raw" in hidden:
            return cls._from_raw_text(hidden, body)
        tokens, in_header = Tokens(), True
        values: dict[str, object] = {}
        for word in body.split():
            if cls.HEADER_ENDS and word.startswith(cls.HEADER_ENDS):
                in_header = False
            sync = parse_sync(word)
            if sync is None:
                tokens.add(word)
            elif in_header and f"{sync.kind}_mode" not in values:
                values.update(header_values(sync))
            else:
                tokens.syncs.append(sync)
        for item in cls.SYNTAX:
            item.parse(cls, tokens, values)
        tokens.refuse_rest(cls.NAME)
        made = cls(**values)
        if not hidden:
            return made
        patched = bytearray(made.raw)
        for name, text in hidden.items():
            field = cls.FIELDS.get(name)
            if field is None or name == "opcode":
                raise FormatError(f"{cls.NAME} has no such field", field=name)
            if isinstance(field, Enumeration) and not text[:1].isdigit():
                field.poke(patched, field.code(text))
            else:
                field.poke(patched, parse_integer(text, name))
        return cls.from_raw(bytes(patched))

    @classmethod
    def _from_raw_text(cls, hidden: dict[str, str], body: str) -> Self:
        made = cls.from_raw(parse_raw(hidden["raw"]))
        ours = cls.CODE < 0 or made.raw[12:16] == cls._TEMPLATE[12:16]
        if len(hidden) > 1 or len(made.raw) != cls.SIZE or made.raw[0] != cls.OPCODE or not ours:
            raise FormatError(f"not the bytes of {cls.NAME} alone", field="raw", expected=f"{cls.SIZE} bytes of it")
        if body.split() not in ([], made.operands.split()):
            raise FormatError("text and raw bytes disagree", field="raw", expected=made.operands, got=body.strip())
        return made

    @classmethod
    def synopsis(cls) -> str:
        """Return the grammar of the word's text; capitals stand for values, brackets for what may be left out."""
        words = [item.form(cls) for item in cls.SYNTAX]
        return " ".join([cls.NAME, "[WAIT]", "[UPDATE]", *words])

    @classmethod
    def describe(cls) -> dict[str, Json]:
        """Return the declaration as plain data, for JSON, manuals and `explain`."""
        return describe_class(cls, cls.synopsis())


Instruction.HEADER = {n: f for n, f in vars(Instruction).items() if isinstance(f, Field)}
Instruction.SYNC_READER = SyncReader(Instruction.HEADER, Instruction.SYNC)
# How the header synchronises, for the emulator's innermost loop: mode, index, update mode, update index, value.
header_sync = unpacker(Instruction.HEADER, "wait_mode", "wait_index", "update_mode", "update_index", "wait_value")
