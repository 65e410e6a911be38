"""Memory and tensors as lines."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neurontools.debugger.results import (
    Array,
    Computed,
    Defined,
    Display,
    Edited,
    Examined,
    Found,
    Lines,
    Statistics,
    TensorValue,
    printable,
)
from neurontools.text.table import bold, count, duration

__all__ = ["defined_lines", "display_lines", "edited_lines", "examined_lines", "found_lines", "script_lines",
           "tensor_lines", "value_lines"]  # fmt: skip

_ELEMENTS = 1000  # of a tensor, printed in full; larger ones lose their middle
_ROW = 4  # values of `x` on a line that fit every format


def examined_lines(item: Examined) -> Iterator[str]:
    """Return values in memory, some on a line, each line with its address."""
    size = item.values.dtype.itemsize
    values = printable(item.values).tolist()
    each = max(_ROW, 16 // size)
    if item.space == "HBM":
        head = f"hbm {item.name} "
    else:
        head = f"nc{item.core} {item.space.lower()} partition {item.partition} "
    for start in range(0, len(values), each):
        cells = [
            (f"0x{value:0{2 * size}x}" if item.base == "x" else f"{value:.7g}" if item.base == "f" else str(value))
            if written
            else "never-written"
            for value, written in zip(values[start : start + each], item.written[start : start + each], strict=True)
        ]
        yield f"{head}{item.address + start * size:#x}:  " + "  ".join(cells)


def value_lines(item: TensorValue | Computed) -> Iterator[str]:
    """Return what an expression is: a tensor with its figures, an array, or one number."""
    if isinstance(item, TensorValue):
        yield from tensor_lines(item)
    elif isinstance(item.value, tuple):
        yield f"{item.expression} = {item.value}"
    elif np.ndim(item.value):
        array = np.asarray(item.value)
        shape = ", ".join(map(str, array.shape))
        numbers = array.dtype.kind in "iuf" or array.dtype.isbuiltin != 1
        figures = _figures(TensorValue("", "", "", array, 0).statistics) if numbers and not item.base else ""
        yield bold(f"{item.expression} = {array.dtype.name}[{shape}]{figures}")
        yield from _array(array, item.base)
    else:
        yield f"{item.expression} = {_number(item.value, item.base)}"


def _number(value: object, base: str) -> str:
    plain = value.item() if isinstance(value, np.generic) and value.dtype.isbuiltin == 1 else value
    if isinstance(value, np.generic) and value.dtype.isbuiltin != 1:
        plain = float(value)
    if isinstance(plain, str):
        return repr(plain)
    if isinstance(plain, bool):
        return str(int(plain)) if base else str(plain)
    if isinstance(plain, float) and base in ("x", "u", "o", "t"):
        # The bits, in the type that the number has: fp32 where it is Python's own.
        with np.errstate(over="ignore"):
            typed = value if isinstance(value, np.generic) else np.float32(plain)
        plain = int.from_bytes(typed.tobytes(), "little")
    # An element has the bits of its type; other numbers those of a register, or as many as they take.
    width = 8 * value.itemsize if isinstance(value, np.generic) else 32
    if isinstance(plain, int) and base == "f" and width == 32:
        return f"{np.uint32(plain & 0xFFFF_FFFF).view(np.float32):.9g}"
    if isinstance(plain, int) and base in ("x", "u", "o", "t"):
        while not -(1 << width - 1) <= plain < 1 << width:
            width *= 2
        whole = plain % (1 << width)
        return {"x": f"{whole:#x}", "u": str(whole), "o": f"{whole:#o}", "t": f"{whole:#b}"}[base]
    if isinstance(plain, float):
        return str(int(plain)) if base == "d" and np.isfinite(plain) else f"{plain:.9g}"
    return str(plain)


def _array(array: Array, base: str) -> Iterator[str]:
    if base in ("x", "u", "o", "t"):
        raw = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
        width = 2 * array.dtype.itemsize
        letter = {"x": f"#0{width + 2}x", "u": "d", "o": "#o", "t": f"#0{8 * array.dtype.itemsize + 2}b"}[base]
        text = np.array2string(raw, threshold=_ELEMENTS, max_line_width=110, separator=", ",
                               formatter={"int": lambda one: format(int(one), letter)})  # fmt: skip
    else:
        values = printable(array)
        if base == "d" and values.dtype.kind == "f":
            values = np.where(np.isfinite(values), np.trunc(values), 0).astype(np.int64)
        if base == "f" and array.dtype.kind in "iu" and array.dtype.itemsize == 4:
            values = np.ascontiguousarray(array).view(np.float32)
        text = np.array2string(values, threshold=_ELEMENTS, max_line_width=110, separator=", ")
    yield from text.splitlines()


def edited_lines(item: Edited) -> Iterator[str]:
    """Return what was changed."""
    before = f" (was {item.old})" if item.old else ""
    yield f"#{item.number}  {duration(item.time_ps)}  set {item.place} = {item.new}{before}"


def found_lines(item: Found) -> Iterator[str]:
    """Return where values stand."""
    yield from item.places
    if not item.places:
        yield f"{', '.join(item.values)} stands nowhere there"
    elif item.more:
        yield "and elsewhere; a count in the format, as /100, shows more"


def display_lines(items: tuple[Display, ...]) -> Iterator[str]:
    """Return what is shown at every stop."""
    for item in items:
        yield f"{item.number}: {'/' + item.base + ' ' if item.base else ''}{item.expression}"


def defined_lines(item: Defined) -> Iterator[str]:
    """Return a name and what it stands for."""
    if len(item.lines) == 1:
        yield f"{item.name} = {item.lines[0]}"
    else:
        yield f"{item.name}:"
        yield from (f"  {line}" for line in item.lines)


def script_lines(item: Lines) -> Iterator[str]:
    """Return how many lines follow: they show themselves as they run."""
    yield f"{item.name}: {count(len(item.lines), 'command')}"


def tensor_lines(item: TensorValue) -> Iterator[str]:
    """Return a tensor with its figures."""
    values = printable(item.array)
    shape = ", ".join(map(str, item.array.shape))
    line = f"{item.name}{item.selection}: {item.array.dtype.name}[{shape}] in {item.space}"
    line += _figures(item.statistics)
    if item.note:
        line += f"; {item.note}"
    elif item.unwritten:
        line += f", {count(item.unwritten, 'element')} never written"
    yield bold(line)
    yield from np.array2string(values, threshold=_ELEMENTS, max_line_width=110, separator=", ").splitlines()


def _figures(found: Statistics) -> str:
    line = ""
    if found.minimum is not None:
        line = f", min {found.minimum:.6g}, mean {found.mean:.6g}, max {found.maximum:.6g}"
    line += f", {found.nans} NaN" if found.nans else ""
    return line + (f", {found.infinities} infinite" if found.infinities else "")
