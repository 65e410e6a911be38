"""The language of .exp files: the state that a golden program must leave, one statement a line.

    S[6] = 1                           a semaphore; those that are not named must be 0
    E[3] = 1                           an event; likewise
    R[dve,4] = 7                       a register of an engine
    words dve = 3                      words that an engine completed
    sbuf p0 0x5000 f32 = 1.5 2.5       values from a byte of a partition on, bit for bit (any NaN is nan)
    psum p0-3 0x0 f32 ~ 0.7615942      the same row in several partitions, within a millionth
    fresh sbuf p1 0x5000 8             bytes that nothing wrote
    output y[0,:4] = 1 2 3 4           part of an output tensor
    fault = oob dve pc 1 src1          kind, engine, word and, where the fault names one, operand
    hang = deadlock dve 0              reason, then engine and pc of each wait

A run that should neither fault nor hang names neither. Bytes on the chip that a program writes, its loads apart, must
all be named, so a stray write fails. `#` begins a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from emulator.device import Device
from neurontools.assembly.assembler import engine_name

__all__ = ["KINDS", "Statement", "check", "parse"]

KINDS: dict[str, Any] = {
    "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i32": np.int32, "u32": np.uint32,
    "i16": np.int16, "u16": np.uint16, "i8": np.int8, "u8": np.uint8,
    "f8e4": ml_dtypes.float8_e4m3, "f8e5": ml_dtypes.float8_e5m2,
}  # fmt: skip
_TOLERANCE = 1e-6
_FORMS = {
    "counter": re.compile(r"([SE])\[(\d+)\] = (-?\d+)"),
    "register": re.compile(r"R\[(\w+),(\d+)\] = (\d+)"),
    "words": re.compile(r"words (\w+) = (\d+)"),
    "memory": re.compile(r"(sbuf|psum) p(\d+)(?:-(\d+))? (0x[0-9a-f]+) (\w+) ([=~]) (.+)"),
    "fresh": re.compile(r"fresh (sbuf|psum) p(\d+)(?:-(\d+))? (0x[0-9a-f]+) (\d+)"),
    "output": re.compile(r"output (\w+)\[([-\d:,]*)\] ([=~]) (.+)"),
    "fault": re.compile(r"fault = (\w+) (\w+) pc (\d+)(?: (\w+))?"),
    "hang": re.compile(r"hang = (deadlock|livelock|instruction limit|time limit)((?: \w+ \d+)*)"),
}


class Statement(NamedTuple):
    """One line of a .exp file: `form` is a key of the table above, `parts` what its pattern caught."""

    line: int
    text: str
    form: str
    parts: tuple[str, ...]


def parse(path: Path) -> list[Statement]:
    """Return the statements of a file; a line that is none is a ValueError with file and line."""
    found = []
    for number, full in enumerate(path.read_text().splitlines(), 1):
        text = full.split("#", 1)[0].strip()
        if not text:
            continue
        for form, pattern in _FORMS.items():
            if match := pattern.fullmatch(text):
                found.append(Statement(number, text, form, tuple(part or "" for part in match.groups())))
                break
        else:
            raise ValueError(f"{path.name}:{number}: not a statement: {text}")
    if not found:
        raise ValueError(f"{path.name}: says nothing")
    return found


def check(device: Device, statements: list[Statement]) -> Iterator[str]:
    """Yield a line for everything in which the device is not as stated."""
    core = device.cores[0]
    named: dict[str, set[int]] = {"S": set(), "E": set()}
    ends = {statement.form for statement in statements}
    for statement in statements:
        form, parts = statement.form, statement.parts
        got: object = None
        if form == "counter":
            kind, index, wanted = parts[0], int(parts[1]), int(parts[2])
            named[kind].add(index)
            present = (core.semaphores if kind == "S" else core.events)[index]
            got = None if present == wanted else present
        elif form == "register":
            value = int(core.engines[engine_name(parts[0])].registers[int(parts[1])])
            got = None if value == int(parts[2]) else value
        elif form == "words":
            count = core.engines[engine_name(parts[0])].completed
            got = None if count == int(parts[1]) else count
        elif form == "memory":
            got = _memory(core.memory.array(parts[0].upper()), parts[1:])
        elif form == "fresh":
            rows, first, size = _rows(parts[1], parts[2]), int(parts[3], 16), int(parts[4])
            got = "written" if core.memory.written(parts[0].upper())[rows, first : first + size].any() else None
        elif form == "output":
            array = device.tensor(parts[0])[_index(parts[1])].reshape(-1)
            got = _differs(array, parts[3], parts[2])
        else:
            got = _end(device, form, parts)
        if got is not None:
            yield f"line {statement.line}: {statement.text}: got {got}"
    for kind, counters in (("S", core.semaphores), ("E", core.events)):
        for index in range(256):
            if counters[index] and index not in named[kind]:
                yield f"{kind}[{index}] is {counters[index]}, which no line says"
    if device.fault is not None and "fault" not in ends:
        yield device.fault.text()
    if device.hang is not None and "hang" not in ends:
        yield device.hang.text()


def _rows(first: str, last: str) -> slice:
    return slice(int(first), int(last or first) + 1)


def _memory(memory: Any, parts: tuple[str, ...]) -> object:
    first, last, byte, kind, sign, text = parts
    dtype, start = np.dtype(KINDS[kind]), int(byte, 16)
    size = dtype.itemsize * len(text.split())
    rows = memory[_rows(first, last), start : start + size].copy().view(dtype)
    for number, row in enumerate(rows, int(first)):
        got = _differs(row, text, sign)
        if got is not None:
            return f"p{number}: {got}"
    return None


def _differs(array: Any, text: str, sign: str) -> object:
    """Return None where an array holds the numbers of a text, else what it holds."""
    whole = array.dtype.kind in "iu"
    numbers = [int(word, 0) if whole else float(word) for word in text.split()]
    with np.errstate(over="ignore"):
        wanted = np.array(numbers).astype(array.dtype)
    if sign == "=" and not whole and not np.array_equal(wanted.astype(float), np.array(numbers), equal_nan=True):
        return f"numbers that {array.dtype.name} does not hold"  # rounding here would hide rounding there
    if wanted.shape == array.shape:
        if sign == "~":
            same = bool(np.allclose(array.astype(float), wanted.astype(float), rtol=_TOLERANCE, atol=0, equal_nan=True))
        else:
            nan = np.zeros(array.shape, bool) if whole else np.isnan(array) & np.isnan(wanted)
            bits = f"u{array.dtype.itemsize}"
            same = bool((nan | (np.ascontiguousarray(array).view(bits) == wanted.view(bits))).all())
        if same:
            return None
    return " ".join(str(value) for value in array)


def _index(text: str) -> tuple[Any, ...]:
    parts: list[Any] = []
    for part in filter(None, text.split(",")):
        ends = [int(end) if end else None for end in part.split(":")]
        parts.append(ends[0] if len(ends) == 1 else slice(*ends))
    return tuple(parts)


def _end(device: Device, form: str, parts: tuple[str, ...]) -> object:
    if form == "fault":
        fault = device.fault
        if fault is None:
            return "no fault"
        found = (fault.kind, fault.engine, str(fault.pc), fault.operand or "")
        return None if found == (parts[0], engine_name(parts[1]), *parts[2:]) else fault.text()
    hang = device.hang
    if hang is None:
        return "no hang"
    words = parts[1].split()
    wanted = {(engine_name(name), int(pc)) for name, pc in zip(words[::2], words[1::2], strict=True)}
    return None if (hang.reason, {(w.engine, w.pc) for w in hang.waits}) == (parts[0], wanted) else hang.text()
