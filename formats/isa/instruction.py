"""The base of every instruction word: registration, encoding, decoding, text."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple

from formats.dtypes import Dtype
from formats.errors import FormatError
from formats.isa.enums import ActivationFunction, AluOp, BranchCompare, UpdateMode, WaitMode
from formats.isa.field import Enumeration, Field, Float32, Integer
from formats.isa.operand import Access, DmaAccess, Pattern, Pointer
from formats.isa.syntax import Formatter, Item, Tokens, parse_integer

__all__ = ["ENGINES", "EXTENSION_OPCODE", "WORD", "Instruction", "Unknown", "Update", "Wait"]

WORD = 64
ENGINES = ("PE", "Activation", "Pool", "DVE", "SP")
# The escape to extension words; no public file shows this opcode (isa.md 6), and its meaning is ours.
EXTENSION_OPCODE = 0xEE
_CACHE_LIMIT = 1 << 16
_OURS_FROM: dict[type[IntEnum], int] = {AluOp: 0x80, BranchCompare: 0x80, ActivationFunction: 0xC0, Dtype: 0x80}


class Wait(NamedTuple):
    """Condition before a word may start: semaphore or event `index` against `value`."""

    mode: int
    index: int
    value: int

    def __bool__(self) -> bool:
        return self.mode != 0


class Update(NamedTuple):
    """Signal when a word completes."""

    mode: int
    index: int
    value: int

    def __bool__(self) -> bool:
        return self.mode != 0


def wait_text(mode: int, index: int, value: int) -> str:
    """Return a wait in the profiler grammar."""
    if mode == WaitMode.SEM_GE:
        return f"S[{index}]>={value}"
    if mode == WaitMode.SEM_EQ:
        return f"S[{index}]=={value}"
    if mode == WaitMode.SEM_GT:
        return f"S[{index}]>{value}"
    if mode == WaitMode.EVENT_SET:
        return f"E[{index}]==1-"
    return f"wait{mode}[{index}]:{value}"


def update_text(mode: int, index: int, value: int) -> str:
    """Return an update in the profiler grammar."""
    if mode == UpdateMode.SEM_INC:
        return f"S[{index}]++@complete"
    if mode == UpdateMode.SEM_DEC:
        return f"S[{index}]--@complete"
    if mode == UpdateMode.SEM_ADD_IMM:
        return f"S[{index}]+={value}@complete"
    if mode == UpdateMode.SEM_WRITE_IMM:
        return f"S[{index}]={value}@complete"
    if mode == UpdateMode.EVENT_SET:
        return f"E[{index}]+@complete"
    return f"update{mode:#x}[{index}]:{value}@complete"


_WAIT = re.compile(r"([SE])\[(\d+)\](>=|==|>)(\d+)(-?)$")
_UPDATE = re.compile(r"([SE])\[(\d+)\](\+\+|--|\+=|=|\+)(\d*)@complete$")
_ODD = re.compile(r"(wait|update)(0x[0-9a-f]+|\d+)\[(\d+)\]:(\d+)(?:@complete)?$")


def parse_sync(word: str) -> tuple[str, int, int, int] | None:
    """Return ("wait" or "update", mode, index, value) of a synchronisation token, None for any other."""
    match = _WAIT.match(word)
    if match:
        kind, index, op, value = match[1], int(match[2]), match[3], int(match[4])
        if kind == "E":
            return "wait", WaitMode.EVENT_SET, index, value if value != 1 else 0
        return "wait", {">=": WaitMode.SEM_GE, "==": WaitMode.SEM_EQ, ">": WaitMode.SEM_GT}[op], index, value
    match = _UPDATE.match(word)
    if match:
        index, op = int(match[2]), match[3]
        if match[1] == "E":
            return "update", UpdateMode.EVENT_SET, index, 0
        mode = {"++": UpdateMode.SEM_INC, "--": UpdateMode.SEM_DEC, "+=": UpdateMode.SEM_ADD_IMM,
                "=": UpdateMode.SEM_WRITE_IMM}.get(op)
        return None if mode is None else ("update", mode, index, int(match[4] or 0))
    match = _ODD.match(word)
    return (match[1], int(match[2], 0), int(match[3]), int(match[4])) if match else None


class Instruction:
    """One instruction word; the class declares it, an instance is its raw bytes and reads fields on access."""

    __slots__ = ("raw",)

    NAME: ClassVar[str] = ""
    OPCODE: ClassVar[int] = -1
    CODE: ClassVar[int] = -1              # extension code; -1 for real words
    SIZE: ClassVar[int] = WORD
    ENGINES: ClassVar[tuple[str, ...]] = ()
    GENERATIONS: ClassVar[tuple[str, ...]] = ("gen2", "gen3", "gen4")
    CITE: ClassVar[str] = ""
    PROVENANCE: ClassVar[str] = "observed"
    SYNTAX: ClassVar[tuple[Item, ...]] = ()
    FIELDS: ClassVar[dict[str, Field[Any]]] = {}
    OPERANDS: ClassVar[dict[str, Pattern | Pointer]] = {}
    # False where the grammar leaves out a field that some words use, so that `asm` has to check each word.
    TEXT_IS_WHOLE: ClassVar[bool] = True
    RULES: ClassVar[tuple[tuple[str, Any], ...]] = ()
    _TEMPLATE: ClassVar[bytes] = bytes(WORD)
    OURS_CODES: ClassVar[tuple[tuple[int, int], ...]] = ()
    HEADER: ClassVar[dict[str, Field[Any]]] = {}
    _OURS_MASK: ClassVar[int] = 0
    _HIDDEN: ClassVar[tuple[int, int]] = (0, 0)
    _FORMATTERS: ClassVar[tuple[Formatter, ...] | None] = None
    raw: bytes

    opcode = Integer(0, 1, "opcode", provenance="observed", cite="isa.md 1")
    length = Integer(1, 1, "length of a word in dwords", default=0x10, cite="isa.md 1")
    flags = Integer(2, 1, "flags; 9 in NOTIFY words of the loader", provenance="inferred", cite="isa.md 1")
    hint = Integer(3, 1, "debug or branch hint", provenance="inferred", cite="isa.md 1")
    wait_mode = Enumeration(4, WaitMode, "how the word waits", cite="isa.md 2")
    wait_index = Integer(5, 1, "semaphore or event waited for", cite="isa.md 2")
    update_mode = Enumeration(6, UpdateMode, "what the word signals at completion", cite="isa.md 2")
    update_index = Integer(7, 1, "semaphore or event signalled", cite="isa.md 2")
    wait_value = Integer(8, 4, "value waited for", cite="isa.md 2")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        fields: dict[str, Field[Any]] = {}
        for base in reversed(cls.__mro__):
            fields.update((n, f) for n, f in vars(base).items() if isinstance(f, Field))
        cls.FIELDS = fields
        cls.OPERANDS = {n: f for n, f in fields.items() if isinstance(f, Pattern | Pointer)}
        if cls.OPCODE < 0 and not cls.NAME:
            return
        _check(cls)
        template = bytearray(cls.SIZE)
        for field in fields.values():
            if field.default and not field.alias:
                field.write(template, field.default)
        template[0] = max(cls.OPCODE, 0)
        if cls.CODE >= 0:
            template[12:16] = cls.CODE.to_bytes(2, "little") + (cls.SIZE // WORD).to_bytes(2, "little")
        cls._TEMPLATE = bytes(template)
        cls._OURS_MASK = 0
        if cls.CODE < 0:
            for field in fields.values():
                if field.provenance == "ours" and not field.alias:
                    cls._OURS_MASK |= field.mask
            # One-byte enumerations whose codes from 0x80 up are ours; ids of the public function table go beyond that.
            cls.OURS_CODES = tuple((f.offset, _OURS_FROM[f.enum]) for f in fields.values()
                                   if isinstance(f, Enumeration) and f.limit == 255 and f.enum in _OURS_FROM)

    def __init__(self, **values: Any) -> None:
        word = bytearray(self._TEMPLATE)
        fields = self.FIELDS
        for name, value in values.items():
            try:
                field = fields[name]
            except KeyError:
                raise FormatError(f"{self.NAME} has no such field", field=name) from None
            field.write(word, value)
        self.raw = bytes(word)

    @classmethod
    def from_raw(cls, raw: bytes) -> Instruction:
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

    def replace(self, **values: Any) -> Instruction:
        """Return a copy with some fields changed."""
        word = bytearray(self.raw)
        for name, value in values.items():
            self.FIELDS[name].write(word, value)
        return type(self).from_raw(bytes(word))

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
        return {name: field.read(self.raw) for name, field in self.FIELDS.items()}

    @property
    def provenance(self) -> str:
        """Return how the meaning of the word is known."""
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
    def reads(self) -> tuple[Access | DmaAccess, ...]:
        """Return what the word reads: on-chip accesses or the source of a DMA."""
        return self._accesses("read")

    @property
    def writes(self) -> tuple[Access | DmaAccess, ...]:
        """Return what the word writes: on-chip accesses or the destination of a DMA."""
        return self._accesses("write")

    def _accesses(self, role: str) -> tuple[Access | DmaAccess, ...]:
        raw, found = self.raw, []
        for name, field in self.OPERANDS.items():
            if role in field.role and field.enabled(raw):
                value = field.read(raw)
                dtype = field.dtype if isinstance(field.dtype, Dtype) else self.FIELDS[field.dtype].read(raw)
                pattern = value if isinstance(field, Pattern) else _single(value)
                found.append(Access(name, pattern, dtype, self.FIELDS[field.partitions].read(raw)))
        return tuple(found)

    @classmethod
    def _formatters(cls) -> tuple[Formatter, ...]:
        formatters = cls.__dict__.get("_FORMATTERS")
        if formatters is None:
            formatters = cls._FORMATTERS = tuple(item.bind(cls) for item in cls.SYNTAX)
            visible = sum({1 << b for name in _SYNC + ("opcode",) + tuple(n for i in cls.SYNTAX for n in i.covers)
                           for b in _bits(cls.FIELDS[name].mask)})
            hidden = ((1 << 8 * cls.SIZE) - 1) & ~visible
            cls._HIDDEN = hidden, int.from_bytes(cls._TEMPLATE, "little") & hidden
        return formatters

    @property
    def operands(self) -> str:
        """Return the operand text without the name, as a profile prints it."""
        raw = self.raw
        sync = raw[4:12]
        prefix = _SYNC_TEXT.get(sync)
        if prefix is None:
            prefix = _sync_text(sync)
        parts = [prefix] if prefix else []
        for formatter in self._formatters():
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
        """Return text that assembles to exactly this word: `text`, and in braces what the profiler does not print."""
        text = self.text
        hidden, default = self._HIDDEN
        if int.from_bytes(self.raw, "little") & hidden == default and self.TEXT_IS_WHOLE and not self._may_round():
            return text
        try:
            plain = type(self).parse(text[len(self.NAME):])
        except FormatError:
            return f"{text} {{raw={self.raw.hex()}}}"
        if plain.raw == self.raw:
            return text
        extra = []
        for name, field in self.FIELDS.items():
            if not field.alias and field.read(plain.raw) != field.read(self.raw) and isinstance(field, Integer | Enumeration):
                extra.append(f"{name}={int(field.read(self.raw)):#x}")
        with_extra = f"{text} {{{' '.join(extra)}}}"
        if extra and type(self).parse(with_extra[len(self.NAME):]).raw == self.raw:
            return with_extra
        return f"{text} {{raw={self.raw.hex()}}}"

    def _may_round(self) -> bool:
        return any(isinstance(f, Float32) and f.read(self.raw) != 0 for f in self.FIELDS.values())

    @classmethod
    def parse(cls, operands: str) -> Instruction:
        """Return the word that operand text gives; the inverse of `text` and of `asm` without the name."""
        body, hidden = _split_hidden(operands)
        if "raw" in hidden:
            return cls.from_raw(_parse_raw(hidden["raw"], cls.SIZE))
        rest, values = [], {}
        for word in body.split():
            sync = parse_sync(word)
            if sync is None or (sync[0] == "wait" and "wait_mode" in values) or (sync[0] == "update" and "update_mode" in values):
                rest.append(word)
            else:
                kind, mode, index, value = sync
                values.update({f"{kind}_mode": mode, f"{kind}_index": index})
                if kind == "wait":
                    values["wait_value"] = value
        tokens = Tokens(rest)
        for item in cls.SYNTAX:
            item.parse(cls, tokens, values)
        if tokens.bare or tokens.keyed:
            raise FormatError(f"{cls.NAME} has no such operand", got=" ".join([*tokens.bare, *tokens.keyed]))
        for name, text in hidden.items():
            if name not in cls.FIELDS:
                raise FormatError(f"{cls.NAME} has no such field", field=name)
            values[name] = parse_integer(text, name)
        return cls(**values)

    @classmethod
    def describe(cls) -> dict[str, Any]:
        """Return the declaration as plain data, for JSON, manuals and `explain`."""
        return {"name": cls.NAME, "opcode": cls.OPCODE, "code": None if cls.CODE < 0 else cls.CODE, "bytes": cls.SIZE,
                "engines": list(cls.ENGINES), "generations": list(cls.GENERATIONS), "summary": (cls.__doc__ or "").split("\n")[0],
                "cite": cls.CITE, "provenance": cls.PROVENANCE,
                "fields": [{"name": n, "kind": f.kind, "offset": f.offset, "size": f.size, "mask": hex(f.mask >> (8 * f.offset)),
                            "doc": f.doc, "unit": f.unit, "cite": f.cite or cls.CITE, "provenance": f.provenance,
                            **({"role": f.role} if isinstance(f, Pattern | Pointer) else {})}
                           for n, f in cls.FIELDS.items()]}


Instruction.HEADER = {n: f for n, f in vars(Instruction).items() if isinstance(f, Field)}
_SYNC = ("wait_mode", "wait_index", "wait_value", "update_mode", "update_index")
_SYNC_TEXT: dict[bytes, str] = {}


def _sync_text(sync: bytes) -> str:
    parts = []
    if sync[0]:
        parts.append(wait_text(sync[0], sync[1], int.from_bytes(sync[4:8], "little")))
    if sync[2]:
        parts.append(update_text(sync[2], sync[3], 0))
    text = " ".join(parts)
    if len(_SYNC_TEXT) < _CACHE_LIMIT:
        _SYNC_TEXT[sync] = text
    return text


def _single(address: int) -> Any:
    from formats.isa.operand import AccessPattern
    return AccessPattern(address, (1,), (1,))


def _bits(mask: int) -> list[int]:
    return [b for b in range(mask.bit_length()) if mask >> b & 1]


_LABEL = re.compile(r" ?\((?:Tensor|Vector|Scalar|Sync|GpSimd|q[^)]*)\)")
_BRACES = re.compile(r"\{([^{}]*)\}\s*$")


def _split_hidden(text: str) -> tuple[str, dict[str, str]]:
    text = _LABEL.sub("", text).replace("$S[", "S[").replace("$E[", "E[")
    match = _BRACES.search(text)
    if not match:
        return text, {}
    return text[:match.start()], Tokens(match[1].split()).keyed


def _parse_raw(text: str, size: int) -> bytes:
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raise FormatError("not hexadecimal", field="raw", got=repr(text)) from None
    if len(raw) != size:
        raise FormatError("wrong length", field="raw", expected=f"{size} bytes", got=len(raw))
    return raw


def _check(cls: type[Instruction]) -> None:
    """Refuse a declaration that overlaps itself, leaves the word, or has no words for what it declares."""
    taken = 0
    for name, field in cls.FIELDS.items():
        if field.offset + field.size > cls.SIZE:
            raise TypeError(f"{cls.__name__}.{name} ends after the word")
        if not field.doc or not (field.cite or cls.CITE):
            raise TypeError(f"{cls.__name__}.{name} has no doc or no cite")
        if field.alias:
            continue
        if taken & field.mask:
            raise TypeError(f"{cls.__name__}.{name} overlaps another field")
        taken |= field.mask
    if cls.CODE >= 0 and any(12 <= f.offset < 16 for f in cls.FIELDS.values()):
        raise TypeError(f"{cls.__name__} uses the extension header")
    for operand in cls.OPERANDS.values():
        for needed in (operand.dtype, operand.partitions):
            if not isinstance(needed, Dtype) and needed not in cls.FIELDS:
                raise TypeError(f"{cls.__name__}: operand needs field {needed}")


class Unknown(Instruction):
    """A word whose opcode, or whose use of it, is not established; kept byte for byte."""

    __slots__ = ()
    NAME = "UNKNOWN"
    CITE = "isa.md 6"
    PROVENANCE = "observed"
    ENGINES = ENGINES

    @property
    def name(self) -> str:
        return f"OPCODE_{self.raw[0]:02X}"

    @property
    def text(self) -> str:
        sync = _sync_text(self.raw[4:12])
        return f"{self.name} {sync + ' ' if sync else ''}bytes={self.raw[12:].hex()}"

    @property
    def asm(self) -> str:
        return self.text if self.raw[1] == 0x10 and not any(self.raw[2:4]) else f"{self.name} {{raw={self.raw.hex()}}}"
