"""Words that touch registers, device addresses and the program counter, and words that only wait and signal.

Waits and updates in headers, and the second slot of EVENT_SEMAPHORE, belong to the sequencer. Source: isa.md 7, 10.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial

from emulator.dtypes import Step, element_type
from emulator.engines.registry import executes
from emulator.port import Port
from formats import isa
from formats.dtypes import Dtype
from formats.errors import UnsupportedError
from formats.isa import BranchCompare, RangeClearMode

__all__ = ["nothing"]

_RELATIVE = 3  # branch kind: offset from the branch word
_IMMEDIATE = 1  # store kind: the data are in the word
_REGISTER_BYTES = 4
_COMPARE: dict[int, Callable[[int, int], bool]] = {
    BranchCompare.EQ: operator.eq,
    BranchCompare.NE: operator.ne,
    BranchCompare.LT: operator.lt,
    BranchCompare.LE: operator.le,
    BranchCompare.GT: operator.gt,
    BranchCompare.GE: operator.ge,
}


def _done() -> None:
    return None


@executes(
    isa.EventSemaphore,
    isa.Nop,
    isa.SetOrderingMode,
    isa.OpcodeCC,
    isa.Drain,
    isa.Notify,
    isa.ActTableLoad,
    quiet=True,
    lasting=True,
)
def nothing(word: isa.Instruction, port: Port) -> Step:
    """Return the empty effect of a word that only waits and signals, or only costs time."""
    return _done


@executes(isa.Opcode95, isa.OpcodeA1, isa.Unknown)
def unknown(word: isa.Instruction, port: Port) -> Step:
    """Return a step that refuses: the word's meaning is not public."""

    def refuse() -> None:
        raise UnsupportedError(f"{word.name}: the meaning of this word is not known, so it cannot be executed")

    return refuse


@executes(isa.Write, quiet=True)
def write(word: isa.Write, port: Port) -> Step:
    """Return the write of one or two values to device addresses."""
    values = [(word.address0, word.size0, word.data0)]
    if word.size1:
        values.append((word.address1, word.size1, word.data1))

    def store() -> None:
        for address, size, value in values:
            port.write_device(address, size, value & ((1 << 8 * size) - 1))

    return store


def _require_registers(word: isa.TensorLoad | isa.TensorStore) -> None:
    if element_type(word.dtype).size != _REGISTER_BYTES:
        raise UnsupportedError(f"{word.NAME} of {element_type(word.dtype).spelling}: registers hold 32 bits")


@executes(isa.TensorLoad, quiet=True)
def tensor_load(word: isa.TensorLoad, port: Port) -> Step:
    """Return the load of registers from device memory, inner dimension first."""
    _require_registers(word)
    total = word.count0 * word.count1
    if total > len(word.registers):
        raise UnsupportedError(f"TENSOR_LOAD of {total} registers: the word has room for {len(word.registers)}")
    places = [
        (
            register,
            word.address + _REGISTER_BYTES * (number % word.count0 * word.step0 + number // word.count0 * word.step1),
        )
        for number, register in enumerate(word.registers[:total])
    ]
    registers = port.registers

    def load() -> None:
        for register, address in places:
            registers[register] = port.read_device(address, _REGISTER_BYTES)

    return load


@executes(isa.RegisterLoad)
def register_load(word: isa.RegisterLoad, port: Port) -> Step:
    """Return the load of one register from a tile of one 32-bit integer."""
    if element_type(word.dtype) not in (Dtype.INT32, Dtype.UINT32):
        raise UnsupportedError(f"REGISTER_LOAD of {element_type(word.dtype).spelling}: registers hold 32-bit integers")
    source = port.read("src").reshape(-1)
    if source.size != 1:
        raise UnsupportedError(f"REGISTER_LOAD of {source.size} elements: the word loads one register")
    register, registers = word.register, port.registers

    def load() -> None:
        registers[register] = int(source[0]) & 0xFFFFFFFF

    return load


@executes(isa.TensorStore, quiet=True)
def tensor_store(word: isa.TensorStore, port: Port) -> Step:
    """Return the store of immediates to device addresses."""
    _require_registers(word)
    if word.store_kind != _IMMEDIATE or word.count1 > 1:
        raise UnsupportedError(
            f"TENSOR_STORE of kind {word.store_kind} over {word.count1} rows is not known: only "
            "immediates in one row have been seen"
        )
    data = bytes(word.data)
    if word.count0 * _REGISTER_BYTES > len(data):
        room = len(data) // _REGISTER_BYTES
        raise UnsupportedError(f"TENSOR_STORE of {word.count0} words: the word has room for {room}")
    values = [
        (
            word.address + _REGISTER_BYTES * number * word.step0,
            int.from_bytes(data[_REGISTER_BYTES * number : _REGISTER_BYTES * (number + 1)], "little"),
        )
        for number in range(word.count0)
    ]

    def store() -> None:
        for address, value in values:
            port.write_device(address, _REGISTER_BYTES, value)

    return store


@executes(isa.CompareBranch, quiet=True)
def compare_branch(word: isa.CompareBranch, port: Port) -> Step:
    """Return the branch by a byte offset from this word, taken when the register compares with the constant."""
    if word.branch_kind != _RELATIVE:
        raise UnsupportedError(
            f"COMPARE_BRANCH of kind {word.branch_kind}: a branch through registers leaves the "
            "stream, and its registers are not certain"
        )
    offset = word.target
    if word.compare == BranchCompare.ALWAYS:
        return partial(port.branch, offset)
    test = _COMPARE.get(int(word.compare))
    if test is None:
        raise UnsupportedError(f"COMPARE_BRANCH: comparison {int(word.compare)} is not known")
    if word.dtype not in (Dtype.INT32, Dtype.UINT32):
        raise UnsupportedError(f"COMPARE_BRANCH on {element_type(word.dtype).spelling}: registers hold 32-bit integers")
    sign = 1 << 31 if word.dtype == Dtype.INT32 else 0  # adding it mod 2**32 orders signed numbers as unsigned ones
    constant = (word.constant + sign) & 0xFFFFFFFF
    register, registers = word.register, port.registers

    def branch() -> None:
        if test((int(registers[register]) + sign) & 0xFFFFFFFF, constant):
            port.branch(offset)

    return branch


@executes(isa.EventSemaphoreRangeClear, quiet=True)
def event_semaphore_range_clear(word: isa.EventSemaphoreRangeClear, port: Port) -> Step:
    """Return the clearing of a range of semaphores."""
    if word.mode != RangeClearMode.SEMAPHORE_ZERO:
        raise UnsupportedError(f"EVENT_SEMAPHORE_RANGE_CLEAR: mode {int(word.mode)} is not known")
    first, last = word.first, word.last

    def clear() -> None:
        for index in range(first, last + 1):
            port.set_semaphore(index, 0)

    return clear
