"""Memory and tensors as lines."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neurontools.debugger.results import Examined, TensorValue, printable
from neurontools.text.table import bold, count

__all__ = ["examined_lines", "tensor_lines"]

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


def tensor_lines(item: TensorValue) -> Iterator[str]:
    """Return a tensor with its figures."""
    values = printable(item.array)
    shape = ", ".join(map(str, item.array.shape))
    line = f"{item.name}{item.selection}: {item.array.dtype.name}[{shape}] in {item.space}"
    found = item.statistics
    if found.minimum is not None:
        line += f", min {found.minimum:.6g}, mean {found.mean:.6g}, max {found.maximum:.6g}"
    line += f", {found.nans} NaN" if found.nans else ""
    line += f", {found.infinities} infinite" if found.infinities else ""
    if item.unwritten:
        line += f", {count(item.unwritten, 'element')} never written"
    yield bold(line)
    yield from np.array2string(values, threshold=_ELEMENTS, max_line_width=110, separator=", ").splitlines()
