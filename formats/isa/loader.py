"""Words that only the loader writes: branches, register loads, device writes, notifications. Source: isa.md 10."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator

from formats.dtypes import Dtype
from formats.engines import ENGINES
from formats.errors import FormatError
from formats.isa.behaviour import Duration
from formats.isa.declared import Declared
from formats.isa.enums import BranchCompare, RangeClearMode
from formats.isa.field import Bytes, Enumeration, Integer
from formats.isa.instruction import Instruction
from formats.isa.rule import Context, Finding, Rule
from formats.isa.signals import HEADER_SLOT, Store
from formats.isa.syntax import (
    SPELLINGS,
    Formatter,
    Item,
    Key,
    Literal,
    Omitter,
    Tokens,
    enum_text,
    parse_dtype,
    parse_integer,
)
from formats.neuron_core import WORD

__all__ = [
    "CompareBranch",
    "Drain",
    "EventSemaphoreRangeClear",
    "Notify",
    "Opcode95",
    "OpcodeA1",
    "TensorLoad",
    "TensorStore",
    "Write",
]

# Numbers have few digits: int() refuses thousands of them with an error that is not ours.
_REGISTER = re.compile(r"\$?R\[(\d{1,12})\]", re.ASCII)
_REGISTERS_FROM = re.compile(r"(\w+)@0x([0-9a-f]+)\[(-?\d{1,12}),(-?\d{1,12})\]\[(\d{1,12}),(\d{1,12})\]", re.ASCII)


class Opcode95(Instruction):
    """Configure Pool, perhaps; written by the loader. Its real name is unknown."""

    __slots__ = ()
    NAME = "OPCODE_95"
    OPCODE = 0x95
    ENGINES = ("Pool",)
    CITE = "isa.md 10.2 (95)"
    PROVENANCE = "inferred"
    COST = Duration("control")
    mode = Integer(12, 1, "1 with address and size, 2 with zeros", provenance="inferred")
    unknown_13 = Integer(13, 1, "unknown; 0xff", provenance="inferred")
    address = Integer(16, 8, "address in HBM", provenance="inferred")
    bytes = Integer(28, 4, "size", unit="bytes", provenance="inferred")
    SYNTAX = (Key("mode"), Key("address", style="hex"), Key("bytes", style="hex"))


class OpcodeA1(Instruction):
    """Halt, perhaps; written by the loader after an engine's register 4. Its real name is unknown."""

    __slots__ = ()
    NAME = "OPCODE_A1"
    OPCODE = 0xA1
    ENGINES = ENGINES
    CITE = "isa.md 10.2 (a1)"
    PROVENANCE = "inferred"
    COST = Duration("control")


class Drain(Instruction):
    """Wait until everything before has completed."""

    __slots__ = ()
    CALM = True
    NAME = "DRAIN"
    OPCODE = 0xA2
    ENGINES = ENGINES
    CITE = "isa.md 10.2 (a2)"
    COST = Duration("control")
    DRAINS = True
    unknown_40 = Integer(40, 4, "unknown; 1 in the first epilogue word of a stream", provenance="inferred")


class _WriteItem(Item):
    """`data=a[,b] size=4[,4] dst=a[,b]`."""

    def covers(self, cls: type[Declared]) -> tuple[str, ...]:
        return ("size0", "size1", "address0", "address1", "data0", "data1")

    def form(self, cls: type[Declared]) -> str:
        return "data=0xN[,0xN] size=N[,N] dst=0xADDRESS[,0xADDRESS]"

    def bind(self, cls: type[Declared]) -> Formatter:
        unpack: Callable[..., tuple[int, ...]] = struct.Struct("<QQQQ").unpack_from

        def text(raw: bytes) -> str:
            a, b, c, d = unpack(raw, 16)
            # by any trace of a second value, so that an odd word reads back bit for bit
            if raw[13] or b or d:
                return f"data={c:#x},{d:#x} size={raw[12]},{raw[13]} dst={a:#x},{b:#x}"
            return f"data={c:#x} size={raw[12]} dst={a:#x}"

        return text

    def parse(self, cls: type[Declared], tokens: Tokens, values: dict[str, object]) -> None:
        counts = set()
        for key, stem in (("data", "data"), ("size", "size"), ("dst", "address")):
            texts = tokens.need(key).split(",")
            counts.add(len(texts))
            values.update((f"{stem}{i}", parse_integer(text, key)) for i, text in enumerate(texts[:2]))
        if counts not in ({1}, {2}):
            raise FormatError("data, size and dst hold one value each, or two each", field="data")


def _write_sizes(word: Write, context: Context) -> Iterator[Finding]:
    if not 1 <= word.size0 <= 8 or word.size1 > 8:
        yield "size0", f"sizes {word.size0} and {word.size1} are not 1 to 8 (second: 0 to 8)"


class Write(Instruction):
    """Write one or two values to device addresses: registers, doorbells, semaphores."""

    __slots__ = ()
    BESIDE = True
    NAME = "WRITE"
    OPCODE = 0xA5
    ENGINES = ENGINES
    CITE = "isa.md 10.2 (a5)"
    size0 = Integer(12, 1, "bytes of the first value", unit="bytes", default=4, known=range(1, 9))
    size1 = Integer(13, 1, "bytes of the second value, 0 for none", unit="bytes", known=range(9))
    address0 = Integer(16, 8, "first device address")
    address1 = Integer(24, 8, "second device address")
    data0 = Integer(32, 8, "first value")
    data1 = Integer(40, 8, "second value")
    SYNC = (HEADER_SLOT, Store("size0", "address0", "data0"), Store("size1", "address1", "data1"))
    SYNTAX = (_WriteItem(),)
    RULES = (Rule("Values have 1 to 8 bytes.", "observed", "isa.md 10.2 (a5)", _write_sizes),)


class Notify(Instruction):
    """Send a notification to the host."""

    __slots__ = ()
    NAME = "NOTIFY"
    OPCODE = 0xA6
    ENGINES = ENGINES
    CITE = "isa.md 10.2 (a6)"
    COST = Duration("control")
    notify_hint = Integer(36, 2, "which notification")
    trace = Integer(39, 1, "1 starts a trace record", default=1, provenance="inferred")
    SYNTAX = (Key("notify_hint", "hint"), Literal("notification=EXPLICIT"), Literal("trace=START"))


class _BranchItem(Item):
    """`cmp_op=EQ dtype=int32 cmp0=$R[0] cmp1=0 label_id=1024 [debugHint=2]`."""

    def covers(self, cls: type[Declared]) -> tuple[str, ...]:
        return ("compare", "dtype", "register", "constant", "target", "hint")

    def form(self, cls: type[Declared]) -> str:
        return "cmp_op=NAME [dtype=DTYPE cmp0=$R[N] cmp1=N] label_id=N [debugHint=N]"

    def bind(self, cls: type[Declared]) -> Formatter:
        names = [enum_text(code) for code in cls.FIELDS["compare"].table]  # type: ignore[attr-defined]

        def text(raw: bytes) -> str:
            # the profiler prints the signed offset as an unsigned number (isa.md 10.2)
            label = int.from_bytes(raw[48:52], "little")
            condition = ""
            if raw[12]:
                constant = int.from_bytes(raw[32:36], "little")
                condition = f" dtype={SPELLINGS[raw[13]]} cmp0=$R[{raw[16]}] cmp1={constant}"
            hint = f" debugHint={raw[3]}" if raw[3] else ""
            return f"cmp_op={names[raw[12]]}{condition} label_id={label}{hint}"

        return text

    def omits(self, cls: type[Declared]) -> Omitter | None:
        # An unconditional branch prints neither what it would compare nor how.
        fields = [cls.FIELDS[name] for name in ("dtype", "register", "constant")]
        parts = [(field.name, field.peek, field.peek(cls.defaults())) for field in fields]
        return lambda raw: () if raw[12] else tuple([name for name, peek, value in parts if peek(raw) != value])

    def parse(self, cls: type[Declared], tokens: Tokens, values: dict[str, object]) -> None:
        name = tokens.need("cmp_op")
        values["compare"] = parse_integer(name, "cmp_op") if name[:1].isdigit() else name
        if (text := tokens.take("dtype")) is not None:
            values["dtype"] = parse_dtype(text)
        if (text := tokens.take("cmp0")) is not None:
            match = _REGISTER.fullmatch(text)
            if not match:
                raise FormatError("not a register", field="cmp0", expected="$R[n]", got=repr(text))
            values["register"] = int(match[1])
        if (text := tokens.take("cmp1")) is not None:
            constant = parse_integer(text, "cmp1")
            # a negative constant is welcome from a person; the field holds its 32 bits
            values["constant"] = constant + (1 << 32) if -(1 << 31) <= constant < 0 else constant
        label = parse_integer(tokens.need("label_id"), "label_id")
        values["target"] = label - (1 << 32) if 1 << 31 <= label < 1 << 32 else label
        if (text := tokens.take("debugHint")) is not None:
            values["hint"] = parse_integer(text, "debugHint")


def _branch_target(word: CompareBranch, context: Context) -> Iterator[Finding]:
    if word.target % WORD:
        yield "target", f"{word.target} is not a multiple of 64 bytes"


class CompareBranch(Instruction):
    """Branch when a register compares with a constant; the offset counts from the branch word."""

    __slots__ = ()
    CALM = True
    NAME = "COMPARE_BRANCH"
    OPCODE = 0xA9
    ENGINES = ENGINES
    CITE = "isa.md 10.2 (a9)"
    COST = Duration("branch")
    BRANCHES = DECIDES = REGISTERS = True
    compare = Enumeration(12, BranchCompare, "comparison")
    dtype = Enumeration(13, Dtype, "element type compared", default=Dtype.INT32)
    branch_kind = Integer(14, 1, "3 relative, 1 through registers", default=3, provenance="inferred")
    register = Integer(16, 1, "register compared", provenance="inferred")
    constant = Integer(32, 4, "constant compared with")
    # Read from the constant's upper half, which holds 1 and 2 in branches of kind 1: R1 and R2, it seems (isa.md 10.2).
    target_registers = Bytes(
        34, 2, "register pair that holds the target in kind 1, perhaps", provenance="inferred", alias=True
    )
    target = Integer(48, 4, "offset of the target from this word", unit="bytes", signed=True)
    SYNTAX = (_BranchItem(),)
    RULES = (Rule("The target is a word.", "observed", "isa.md 10.2 (a9)", _branch_target),)

    @property
    def compared(self) -> tuple[int, ...]:
        """Return the register that it compares, none where it branches always."""
        return () if self.compare == BranchCompare.ALWAYS else (self.register,)


class _RegisterLoadItem(Item):
    """`addr=uint32@0x…[steps][counts] data=$R[n],…`."""

    def covers(self, cls: type[Declared]) -> tuple[str, ...]:
        return ("dtype", "count0", "count1", "address", "step0", "step1", "registers")

    def form(self, cls: type[Declared]) -> str:
        return "addr=DTYPE@0xADDRESS[STEP,STEP][COUNT,COUNT] data=$R[N],..."

    def bind(self, cls: type[Declared]) -> Formatter:
        def text(raw: bytes) -> str:
            address, step0, step1 = struct.unpack_from("<Qii", raw, 16)
            dtype = SPELLINGS[raw[12]]
            registers = ",".join(f"$R[{raw[32 + i]}]" for i in range(min(raw[14] * raw[15], 32)))
            return f"addr={dtype}@{address:#x}[{step0},{step1}][{raw[14]},{raw[15]}] data={registers}"

        return text

    def omits(self, cls: type[Declared]) -> Omitter | None:
        return lambda raw: ("registers",) if any(raw[32 + min(raw[14] * raw[15], 32) : 64]) else ()

    def parse(self, cls: type[Declared], tokens: Tokens, values: dict[str, object]) -> None:
        text = tokens.need("addr")
        match = _REGISTERS_FROM.fullmatch(text)
        if not match:
            raise FormatError("not an address", field="addr", expected="dtype@0xaddress[a,b][c,d]", got=repr(text))
        words = tokens.need("data")
        found = [_REGISTER.fullmatch(word) for word in words.split(",")] if words else []
        registers = [int(word[1]) for word in found if word]
        if len(registers) != len(found) or len(registers) != min(int(match[5]) * int(match[6]), 32):
            raise FormatError("not one register for each element", field="data", got=repr(words))
        values.update(
            dtype=parse_dtype(match[1], "addr"),
            address=int(match[2], 16),
            step0=int(match[3]),
            step1=int(match[4]),
            count0=int(match[5]),
            count1=int(match[6]),
            registers=tuple(registers) + (0,) * (32 - len(registers)),
        )


def _register_count(word: TensorLoad, context: Context) -> Iterator[Finding]:
    if not 1 <= word.count0 * word.count1 <= 32:
        yield "count0", f"{word.count0} × {word.count1} registers are not 1 to 32"


class TensorLoad(Instruction):
    """Load registers from device memory."""

    __slots__ = ()
    CALM = True
    NAME = "TENSOR_LOAD"
    OPCODE = 0xAA
    ENGINES = ENGINES
    CITE = "isa.md 10.2 (aa)"
    COST = Duration("device_read")
    DECIDES = True
    dtype = Enumeration(12, Dtype, "element type", default=Dtype.UINT32)
    count0 = Integer(14, 1, "elements of the inner dimension", default=1)
    count1 = Integer(15, 1, "elements of the outer dimension", default=1)
    address = Integer(16, 8, "device address")
    step0 = Integer(24, 4, "inner step in elements", unit="elements", signed=True, provenance="inferred")
    step1 = Integer(28, 4, "outer step in elements", unit="elements", signed=True, provenance="inferred")
    registers = Bytes(32, 32, "registers loaded, one byte each")
    REGISTERS = True
    SYNTAX = (_RegisterLoadItem(),)
    RULES = (Rule("1 to 32 registers are loaded.", "inferred", "isa.md 10.2 (aa)", _register_count),)

    @property
    def loaded(self) -> tuple[int, ...]:
        """Return the registers that it loads, as many as it has elements."""
        return tuple(self.registers[: self.count0 * self.count1])


class TensorStore(Instruction):
    """Store immediates to device addresses, the counterpart of TENSOR_LOAD; the name is an inference."""

    __slots__ = ()
    NAME = "TENSOR_STORE"
    OPCODE = 0xAB
    ENGINES = ENGINES
    CITE = "isa.md 10.2 (ab)"
    PROVENANCE = "inferred"
    dtype = Enumeration(12, Dtype, "element type", default=Dtype.UINT32, provenance="inferred")
    store_kind = Integer(13, 1, "unknown; 1 may say immediate", provenance="inferred")
    count0 = Integer(14, 1, "elements of the inner dimension", provenance="inferred")
    count1 = Integer(15, 1, "elements of the outer dimension", provenance="inferred")
    address = Integer(16, 8, "device address", provenance="inferred")
    step0 = Integer(24, 4, "step in elements", unit="elements", signed=True, provenance="inferred")
    unknown_30 = Integer(30, 2, "unknown; 4", provenance="inferred")
    data = Bytes(32, 32, "data words", provenance="inferred")
    SYNTAX = (
        Key("dtype"),
        Key("store_kind"),
        Key("count0"),
        Key("count1"),
        Key("address", style="hex"),
        Key("step0"),
        Key("data", style="bytes"),
    )


def _clear_range(word: EventSemaphoreRangeClear, context: Context) -> Iterator[Finding]:
    if word.first > word.last:
        yield "last", f"the range {word.first} to {word.last} is empty"


class EventSemaphoreRangeClear(Instruction):
    """Clear a range of semaphores."""

    __slots__ = ()
    CALM = True
    NAME = "EVENT_SEMAPHORE_RANGE_CLEAR"
    OPCODE = 0xB0
    ENGINES = ENGINES
    CITE = "isa.md 10.2 (b0)"
    COST = Duration("control")
    mode = Enumeration(
        12, RangeClearMode, "what is cleared", default=RangeClearMode.SEMAPHORE_ZERO, provenance="inferred"
    )
    first = Integer(13, 1, "first semaphore")
    last = Integer(14, 1, "last semaphore")
    SYNTAX = (Key("mode"), Key("first"), Key("last"))
    RULES = (Rule("The range is not empty.", "observed", "isa.md 10.2 (b0)", _clear_range),)
