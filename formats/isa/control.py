"""Words every engine has: synchronisation, ordering, waits; and the loader's own. Source: isa.md 7, 10."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

from formats.dtypes import Dtype
from formats.errors import FormatError
from formats.isa.enums import BranchCompare, OrderingMode, RangeClearMode, UpdateMode, WaitMode
from formats.isa.field import Bytes, Enumeration, Integer
from formats.isa.instruction import ENGINES, Instruction, Update, Wait, parse_sync, update_text, wait_text
from formats.isa.syntax import Formatter, Item, Key, Literal, Tokens, parse_integer

__all__ = ["CompareBranch", "Drain", "EventSemaphore", "EventSemaphoreRangeClear", "Nop", "Notify", "Opcode95", "OpcodeA1",
           "OpcodeCC", "SetOrderingMode", "TensorLoad", "TensorStore", "Write"]


class _SecondSlot(Item):
    """The second wait and the second update of EVENT_SEMAPHORE."""

    covers = ("wait2_mode", "wait2_index", "wait2_value", "update2_mode", "update2_index", "update2_value")

    def bind(self, cls: type[Instruction]) -> Formatter:
        def text(raw: bytes) -> str:
            parts = []
            if raw[32]:
                parts.append(wait_text(raw[32], raw[33], int.from_bytes(raw[36:40], "little")))
            if raw[34]:
                parts.append(update_text(raw[34], raw[35], int.from_bytes(raw[40:44], "little")))
            return " ".join(parts)
        return text

    def parse(self, cls: type[Instruction], tokens: Tokens, values: dict[str, Any]) -> None:
        # A wait such as `S[2]>=1` holds an equals sign, so the tokeniser has keyed it.
        words = [*tokens.bare, *(f"{k}={v}" for k, v in tokens.keyed.items())]
        for word in words:
            sync = parse_sync(word)
            if sync is None:
                continue
            kind, mode, index, value = sync
            values.update({f"{kind}2_mode": mode, f"{kind}2_index": index, f"{kind}2_value": value})
            if word in tokens.bare:
                tokens.bare.remove(word)
            else:
                tokens.keyed.pop(word.partition("=")[0])


class EventSemaphore(Instruction):
    """Wait and signal without touching data; the only word with two waits and two updates."""

    __slots__ = ()
    TEXT_IS_WHOLE = False
    NAME = "EVENT_SEMAPHORE"
    OPCODE = 0xA0
    ENGINES = ENGINES
    CITE = "isa.md 7 (a0)"
    setter = Integer(12, 1, "setter", provenance="inferred")
    wait2_mode = Enumeration(32, WaitMode, "second wait: how")
    wait2_index = Integer(33, 1, "second wait: semaphore or event")
    update2_mode = Enumeration(34, UpdateMode, "second update: what")
    update2_index = Integer(35, 1, "second update: semaphore or event")
    wait2_value = Integer(36, 4, "second wait: value")
    update2_value = Integer(40, 4, "second update: value for += and =")
    SYNTAX = (Key("setter"), _SecondSlot())

    @classmethod
    def parse(cls, operands: str) -> Instruction:
        """Return the word; sync tokens before `setter=` fill the header, those after it the second slot."""
        head, found, tail = operands.partition("setter=")
        if not found:
            raise FormatError("operand is missing", field="setter")
        number, _, rest = tail.partition(" ")
        braces = rest[rest.index("{"):] if "{" in rest else ""
        word = super().parse(f"{head} setter={number} {braces}")
        values: dict[str, Any] = {}
        for token in rest.replace(braces, "").replace("$", "").split():
            sync = parse_sync(token)
            if sync is None:
                raise FormatError(f"{cls.NAME} has no such operand", got=token)
            kind, mode, index, value = sync
            values.update({f"{kind}2_mode": mode, f"{kind}2_index": index, f"{kind}2_value": value})
        return word.replace(**values)

    @property
    def wait2(self) -> Wait:
        """Return the second condition."""
        return Wait(self.raw[32], self.raw[33], int.from_bytes(self.raw[36:40], "little"))

    @property
    def update2(self) -> Update:
        """Return the second signal."""
        return Update(self.raw[34], self.raw[35], int.from_bytes(self.raw[40:44], "little"))


class Nop(Instruction):
    """Do nothing but wait and signal."""

    __slots__ = ()
    NAME = "NOP"
    OPCODE = 0xA4
    ENGINES = ENGINES
    CITE = "isa.md 7 (a4)"
    cycle = Integer(12, 4, "cycles", unit="cycles")
    SYNTAX = (Key("cycle"),)


class SetOrderingMode(Instruction):
    """Choose how strictly the stream is ordered."""

    __slots__ = ()
    NAME = "SET_ORDERING_MODE"
    OPCODE = 0xB1
    ENGINES = ENGINES
    CITE = "isa.md 7 (b1)"
    ordering_mode = Enumeration(12, OrderingMode, "ordering mode")
    SYNTAX = (Key("ordering_mode"),)


class OpcodeCC(Instruction):
    """Mark the start of a gen3 stream; the loader drops it. Its real name is unknown."""

    __slots__ = ()
    NAME = "OPCODE_CC"
    OPCODE = 0xCC
    ENGINES = ENGINES
    GENERATIONS = ("gen3", "gen4")
    CITE = "isa.md 7 (cc)"


class Opcode95(Instruction):
    """Configure Pool, perhaps; written by the loader. Its real name is unknown."""

    __slots__ = ()
    NAME = "OPCODE_95"
    OPCODE = 0x95
    ENGINES = ("Pool",)
    CITE = "isa.md 10.2 (95)"
    PROVENANCE = "inferred"
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


class Drain(Instruction):
    """Wait until everything before has completed."""

    __slots__ = ()
    NAME = "DRAIN"
    OPCODE = 0xA2
    ENGINES = ENGINES
    CITE = "isa.md 10.2 (a2)"
    unknown_40 = Integer(40, 4, "unknown; 1 in the first epilogue word of a stream", provenance="inferred")


class _WriteItem(Item):
    """`data=a[,b] size=4[,4] dst=a[,b]`."""

    covers = ("size0", "size1", "address0", "address1", "data0", "data1")

    def bind(self, cls: type[Instruction]) -> Formatter:
        unpack: Callable[..., tuple[int, ...]] = struct.Struct("<QQQQ").unpack_from

        def text(raw: bytes) -> str:
            a, b, c, d = unpack(raw, 16)
            if raw[13] or b or d:
                return f"data={c:#x},{d:#x} size={raw[12]},{raw[13]} dst={a:#x},{b:#x}"
            return f"data={c:#x} size={raw[12]} dst={a:#x}"
        return text

    def parse(self, cls: type[Instruction], tokens: Tokens, values: dict[str, Any]) -> None:
        for key, names in (("data", ("data0", "data1")), ("size", ("size0", "size1")), ("dst", ("address0", "address1"))):
            for name, text in zip(names, tokens.need(key).split(","), strict=False):
                values[name] = parse_integer(text, key)


class Write(Instruction):
    """Write one or two values to device addresses: registers, doorbells, semaphores."""

    __slots__ = ()
    NAME = "WRITE"
    OPCODE = 0xA5
    ENGINES = ENGINES
    CITE = "isa.md 10.2 (a5)"
    size0 = Integer(12, 1, "bytes of the first value", unit="bytes", default=4)
    size1 = Integer(13, 1, "bytes of the second value, 0 for none", unit="bytes")
    address0 = Integer(16, 8, "first device address")
    address1 = Integer(24, 8, "second device address")
    data0 = Integer(32, 8, "first value")
    data1 = Integer(40, 8, "second value")
    SYNTAX = (_WriteItem(),)


class Notify(Instruction):
    """Send a notification to the host."""

    __slots__ = ()
    NAME = "NOTIFY"
    OPCODE = 0xA6
    ENGINES = ENGINES
    CITE = "isa.md 10.2 (a6)"
    notify_hint = Integer(36, 2, "which notification")
    trace = Integer(39, 1, "1 starts a trace record", default=1, provenance="inferred")
    SYNTAX = (Key("notify_hint", "hint"), Literal("notification=EXPLICIT"), Literal("trace=START"))


class _BranchItem(Item):
    """`cmp_op=EQ dtype=int32 cmp0=$R[0] cmp1=0 label_id=1024 [debugHint=2]`."""

    covers = ("compare", "dtype", "register", "constant", "target", "hint")

    def bind(self, cls: type[Instruction]) -> Formatter:
        names = [BranchCompare(c).name if c in set(BranchCompare) else hex(c) for c in range(256)]

        def text(raw: bytes) -> str:
            label = int.from_bytes(raw[48:52], "little")
            condition = ""
            if raw[12]:
                dtype = Dtype(raw[13]).spelling if raw[13] in set(Dtype) else hex(raw[13])
                condition = f" dtype={dtype} cmp0=$R[{raw[16]}] cmp1={int.from_bytes(raw[32:36], 'little')}"
            hint = f" debugHint={raw[3]}" if raw[3] else ""
            return f"cmp_op={names[raw[12]]}{condition} label_id={label}{hint}"
        return text

    def parse(self, cls: type[Instruction], tokens: Tokens, values: dict[str, Any]) -> None:
        name = tokens.need("cmp_op")
        values["compare"] = parse_integer(name, "cmp_op") if name[:1].isdigit() else name
        if (text := tokens.take("dtype")) is not None:
            values["dtype"] = parse_integer(text, "dtype") if text[:1].isdigit() else Dtype.from_spelling(text)
        if (text := tokens.take("cmp0")) is not None:
            match = re.fullmatch(r"\$?R\[(\d+)\]", text)
            if not match:
                raise FormatError("not a register", field="cmp0", expected="$R[n]", got=repr(text))
            values["register"] = int(match[1])
        if (text := tokens.take("cmp1")) is not None:
            values["constant"] = parse_integer(text, "cmp1") & 0xFFFFFFFF
        label = parse_integer(tokens.need("label_id"), "label_id")
        values["target"] = label - (1 << 32) if label >= 1 << 31 else label
        if (text := tokens.take("debugHint")) is not None:
            values["hint"] = parse_integer(text, "debugHint")


class CompareBranch(Instruction):
    """Branch when a register compares with a constant; the offset counts from the branch word."""

    __slots__ = ()
    TEXT_IS_WHOLE = False
    NAME = "COMPARE_BRANCH"
    OPCODE = 0xA9
    ENGINES = ENGINES
    CITE = "isa.md 10.2 (a9)"
    compare = Enumeration(12, BranchCompare, "comparison")
    dtype = Enumeration(13, Dtype, "element type compared", default=Dtype.INT32)
    branch_kind = Integer(14, 1, "3 relative, 1 through registers", default=3, provenance="inferred")
    register = Integer(16, 1, "register compared", provenance="inferred")
    constant = Integer(32, 4, "constant compared with")
    target_registers = Integer(36, 2, "unknown; register pair of kind 1", provenance="inferred")
    target = Integer(48, 4, "offset of the target from this word", unit="bytes", signed=True)
    SYNTAX = (_BranchItem(),)


class _RegisterLoadItem(Item):
    """`addr=uint32@0x…[steps][counts] data=$R[n],…`."""

    covers = ("dtype", "count0", "count1", "address", "step0", "step1", "registers")

    def bind(self, cls: type[Instruction]) -> Formatter:
        def text(raw: bytes) -> str:
            address, step0, step1 = struct.unpack_from("<Qii", raw, 16)
            dtype = Dtype(raw[12]).spelling if raw[12] in set(Dtype) else f"dtype{raw[12]:#04x}"
            registers = ",".join(f"$R[{raw[32 + i]}]" for i in range(min(raw[14] * raw[15], 32)))
            return f"addr={dtype}@{address:#x}[{step0},{step1}][{raw[14]},{raw[15]}] data={registers}"
        return text

    def parse(self, cls: type[Instruction], tokens: Tokens, values: dict[str, Any]) -> None:
        text = tokens.need("addr")
        match = re.fullmatch(r"(\w+)@0x([0-9a-f]+)\[(-?\d+),(-?\d+)\]\[(\d+),(\d+)\]", text)
        if not match:
            raise FormatError("not an address", field="addr", expected="dtype@0xaddress[a,b][c,d]", got=repr(text))
        registers = [int(n) for n in re.findall(r"R\[(\d+)\]", tokens.need("data"))]
        if len(registers) > 32:
            raise FormatError("too many registers", field="data", expected="at most 32", got=len(registers))
        dtype = match[1]
        values.update(dtype=int(dtype[5:], 0) if dtype.startswith("dtype0x") else Dtype.from_spelling(dtype),
                      address=int(match[2], 16), step0=int(match[3]), step1=int(match[4]), count0=int(match[5]),
                      count1=int(match[6]), registers=tuple(registers) + (0,) * (32 - len(registers)))


class TensorLoad(Instruction):
    """Load registers from device memory."""

    __slots__ = ()
    TEXT_IS_WHOLE = False
    NAME = "TENSOR_LOAD"
    OPCODE = 0xAA
    ENGINES = ENGINES
    CITE = "isa.md 10.2 (aa)"
    dtype = Enumeration(12, Dtype, "element type", default=Dtype.UINT32)
    count0 = Integer(14, 1, "elements of the inner dimension", default=1)
    count1 = Integer(15, 1, "elements of the outer dimension", default=1)
    address = Integer(16, 8, "device address")
    step0 = Integer(24, 4, "inner step in elements", unit="elements", signed=True, provenance="inferred")
    step1 = Integer(28, 4, "outer step in elements", unit="elements", signed=True, provenance="inferred")
    registers = Bytes(32, 32, "registers loaded, one byte each")
    SYNTAX = (_RegisterLoadItem(),)


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
    SYNTAX = (Key("dtype"), Key("store_kind"), Key("count0"), Key("count1"), Key("address", style="hex"), Key("step0"),
              Key("data", style="bytes"))


class EventSemaphoreRangeClear(Instruction):
    """Clear a range of semaphores."""

    __slots__ = ()
    NAME = "EVENT_SEMAPHORE_RANGE_CLEAR"
    OPCODE = 0xB0
    ENGINES = ENGINES
    CITE = "isa.md 10.2 (b0)"
    mode = Enumeration(12, RangeClearMode, "what is cleared", default=RangeClearMode.SEMAPHORE_ZERO, provenance="inferred")
    first = Integer(13, 1, "first semaphore")
    last = Integer(14, 1, "last semaphore")
    SYNTAX = (Key("mode"), Key("first"), Key("last"))
