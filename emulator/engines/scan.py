"""TENSOR_TENSOR_SCAN: a recurrence along the free dimensions, in fp32. Source: hardware.md 5.2."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from emulator import alu
from emulator.dtypes import Array, Step, bind_load, bind_store, chain
from emulator.engines.operands import elements, immediate_float, pointer_dtype, require_elements, squeezed
from emulator.engines.registry import executes
from emulator.engines.rows import turned
from emulator.port import Port
from emulator.scratch import scratch, scratch_apart
from formats import isa
from formats.isa import AluOp

__all__: list[str] = []


def _columns(view: Array, code: int) -> tuple[Array, Step]:
    """Return the tile as rows of one element per partition, in stream order, and the step that fills them."""
    values, load = bind_load(squeezed(view), code)
    rows, turn = turned(values)
    return rows, chain(load, turn)


# Words of one size share their buffers, and so the thousands of little views over them.
_KNOWN: dict[tuple[Any, ...], list[tuple[Array, Array, Array]]] = {}
_KEPT = 32
_NARROW = 64  # partitions up to which NumPy's own recurrence takes less time than a sum for each element of a row


def _rows(*arrays: Array) -> list[tuple[Array, Array, Array]]:
    """Return the rows of three arrays of one shape, whose rows lie equally far apart, side by side."""
    key = (arrays[0].shape, *(array.ctypes.data for array in arrays))
    found = _KNOWN.get(key)
    if found is None:
        if len(_KNOWN) >= _KEPT:
            _KNOWN.clear()
        found = _KNOWN[key] = list(zip(*arrays, strict=True))
    return found


@executes(isa.TensorTensorScan, lasting=True)
def tensor_tensor_scan(word: isa.TensorTensorScan, port: Port) -> Step:
    """Return dst[i] = (src[i] op0 dst[i-1]) op1 src1[i], starting from the initial value."""
    op0, op1 = alu.alu_op(word.op0), alu.alu_op(word.op1)
    first, second = alu.float32(op0), alu.float32(op1)
    swap0 = bool(word.reverse0) and op0 not in alu.UNARY
    swap1 = bool(word.reverse1) and op1 not in alu.UNARY
    dst = squeezed(port.write("dst"))
    src, src1 = port.read("src"), port.read("src1")
    require_elements(word, "src", src, elements(dst))
    require_elements(word, "src1", src1, elements(dst))
    a, load_a = _columns(src, word.src_dtype)
    b, load_b = _columns(src1, word.src1_dtype)
    partitions = dst.shape[0]
    pointer = port.pointer("initial_pointer")
    load_initial: Step | None = None
    if pointer is None:
        initial = np.full(partitions, immediate_float(word, "initial"))
    else:
        initial = scratch((partitions,), np.float32)
        start, refresh = bind_load(pointer, pointer_dtype(word, "initial_pointer"))
        load_initial = chain(refresh, partial(np.copyto, initial, start.reshape(partitions, copy=False)))
    rows = scratch_apart(elements(dst), partitions, np.float32)
    places = _rows(a, b, rows)
    results = np.moveaxis(rows.reshape((*dst.shape[1:], partitions), copy=False), -1, 0)

    sums = op0 is AluOp.MULTIPLY and op1 is AluOp.ADD and not swap1

    def recur() -> None:
        previous = initial
        if sums and np.equal(a, 1).all() and not np.isnan(b).any():  # which of two NaNs a sum keeps may differ
            # A running sum: a product by one is the number itself.
            if partitions <= _NARROW:
                np.add(previous, b[0], b[0])
                np.add.accumulate(b, 0, None, rows)
                return
            for _, y, result in places:
                np.add(previous, y, result)
                previous = result
            return
        for x, y, result in places:
            if swap0:
                first(previous, x, result)
            else:
                first(x, previous, result)
            if swap1:
                second(y, result, result)
            else:
                second(result, y, result)
            previous = result

    return chain(load_a, load_b, load_initial, recur, bind_store(results, dst, word.dst_dtype))
