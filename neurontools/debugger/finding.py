"""Looking for values in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from emulator.dtypes import numpy_dtype
from formats.dtypes import Dtype
from formats.errors import NotFoundError
from neurontools.debugger.errors import UsageError
from neurontools.debugger.execution import Execution
from neurontools.debugger.expressions import Expression, Situation
from neurontools.debugger.frames import bound
from neurontools.debugger.memory import cast_values, hbm_bytes, parse_format, parse_spot
from neurontools.debugger.names import parse_core, parse_number
from neurontools.debugger.results import Array, Found
from neurontools.debugger.tensors import NAMED

__all__ = ["find_values"]

_MOST = 20
_SPACES = ("sbuf", "psum", "hbm")
_LENGTH = re.compile(r"\+\s*(\w+)")


def find_values(execution: Execution, text: str, at: Situation, format: str = "") -> Found:
    """Return where values follow each other: "x, 1.5", "sbuf, 7, 8", "0:0x4000, +64, 255", "hbm, 0".

    The place is a tensor, a slice, a memory, or an address with the number of bytes to look at behind it. `format` is
    a count of places at most and an element type, as `examine` takes them; without one it is that of the tensor, fp32
    for what has a fraction, else 32-bit integers. Raises UsageError, NotFoundError.
    """
    parts = [part.strip() for part in _commas(bound(execution, text.strip()))]
    most, _, typed = parse_format(format) if format else (None, "", None)
    given = typed if format.strip("/0123456789:") else None
    name = NAMED.fullmatch(parts[0])
    tensor = name is not None and name[1] in execution.tensors.names(at.core)
    length = _LENGTH.fullmatch(parts[1]) if len(parts) > 1 else None
    wanted = parts[2 if length is not None else 1 :]
    if not wanted:
        raise UsageError("find TENSOR, VALUE…; find sbuf|psum|hbm, VALUE…; find ADDRESS, +BYTES, VALUE…")
    numbers = [Expression(part).value(at) for part in wanted]
    if any(np.ndim(each) for each in numbers):
        raise UsageError("find takes numbers, not arrays")
    if tensor:
        return _in_tensor(execution, parts[0], at, numbers, tuple(wanted), most or _MOST)
    dtype = given or (Dtype.FLOAT32 if any(isinstance(each, float) for each in numbers) else Dtype.INT32)
    needle = cast_values(numbers, numpy_dtype(dtype), ", ".join(wanted)).tobytes()
    places: list[str] = []
    for where, first, data, written in _ranges(execution, parts[0], at, length):
        places += (f"{where}{first + one:#x}" for one in _matches(data, written, needle, dtype.size))
        if len(places) > (most or _MOST):
            break
    kept = places[: most or _MOST]
    return Found(tuple(wanted), tuple(kept), len(places) > len(kept))


def _commas(text: str) -> list[str]:
    """Return the parts of a line between commas that stand in no bracket."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]


def _in_tensor(execution: Execution, text: str, at: Situation, numbers: list[object], wanted: tuple[str, ...],
               most: int) -> Found:  # fmt: skip
    found, complete = execution.tensors.elements(text, at.core)
    values = np.asarray(found.array)
    flat = values.reshape(-1).astype(np.float64) if values.dtype.isbuiltin != 1 else values.reshape(-1)
    here = np.ones(max(flat.size - len(numbers) + 1, 0), np.bool_)
    for offset, number in enumerate(numbers):
        part = flat[offset : offset + here.size]
        # Who looks for NaN means any: it equals nothing, itself included.
        here &= np.isnan(part) if number != number else part == number
        if complete is not None:
            here &= complete.reshape(-1)[offset : offset + here.size]
    hits = np.flatnonzero(here)
    places = [f"{found.name}{found.selection}[{', '.join(map(str, np.unravel_index(hit, values.shape)))}]"
              for hit in hits[:most]]  # fmt: skip
    return Found(wanted, tuple(places), hits.size > most)


def _ranges(execution: Execution, text: str, at: Situation, length: re.Match[str] | None) -> Iterator[
    tuple[str, int, Array, Array | None]
]:  # fmt: skip
    """Yield the ranges of a place: how addresses in it begin, its first address, bytes, which of them are written."""
    device = execution.device
    core, rest = parse_core(text)
    core = at.core if core is None else core
    if rest.lower() in _SPACES and length is None:
        if rest.lower() == "hbm":
            for address in sorted(device.hbm.allocations):
                held = device.hbm.find(address)
                if held is not None and held.touched:
                    yield "hbm:", held.address, held.data, None if held.whole else held.written
            return
        space = rest.upper()
        memory = device.cores[core].memory
        for row in range(memory.array(space).shape[0]):
            yield f"nc{core} {rest.lower()}:{row}:", 0, memory.array(space)[row], memory.written(space)[row]
        return
    spot = parse_spot(device, text, core)
    if spot is None:
        raise NotFoundError(f"{text!r} is no tensor, memory or address")
    if length is None:
        raise UsageError("how many bytes? find ADDRESS, +BYTES, VALUE…")
    size = parse_number(length[1], "a number of bytes")
    if size < 1 or spot.address + size > spot.end:
        raise NotFoundError(f"{size} bytes do not fit at {text}; there are {spot.end - spot.address}")
    if spot.space == "HBM":
        data, written = hbm_bytes(device, spot.address, size)
        yield "hbm:", spot.address, data, written
        return
    memory = device.cores[spot.core or 0].memory
    part = slice(spot.address, spot.address + size)
    row = spot.partition or 0
    yield (f"nc{spot.core} {spot.space.lower()}:{row}:", spot.address, memory.array(spot.space)[row, part],
           memory.written(spot.space)[row, part])  # fmt: skip


def _matches(data: Array, written: Array | None, needle: bytes, step: int) -> Iterator[int]:
    raw, at = data.tobytes(), 0
    while (at := raw.find(needle, at)) >= 0:
        if at % step == 0 and (written is None or bool(written[at : at + len(needle)].all())):
            yield at
        at += 1
