"""Expansion of windows: reduce-window and select-and-scatter as folds over strided slices, map as its body."""

from __future__ import annotations

from itertools import product

import ml_dtypes
import numpy as np

from formats.hlo.attributes import WindowDimension
from neurontools.compiler.element_types import element_type
from neurontools.compiler.graph import Graph, Node, Value
from neurontools.compiler.rewriting import Builder, Rule
from neurontools.compiler.tile_folds import fold_of

__all__ = ["WINDOWS"]

_FEW = 6  # window elements up to which each is a slice of its own


def _neutral(fold: str | None, dtype: str) -> float | None:
    """Return the number that a fold leaves everything unchanged with."""
    kind = element_type(dtype)
    if fold == "add" or fold == "or" or fold == "xor":
        return 0
    if fold == "multiply":
        return 1
    if kind.kind == "pred":
        return {"and": 1, "maximum": 0, "minimum": 1}.get(fold or "")
    if kind.kind == "float":
        facts = ml_dtypes.finfo(kind.numpy)  # type: ignore[no-untyped-call]  # it has no types
        largest = float(np.inf if np.isinf(kind.numpy.type(np.inf)) else facts.max)
        return {"maximum": -largest, "minimum": largest}.get(fold or "")
    high = (1 << kind.bits - (kind.kind == "signed")) - 1
    low = -high - 1 if kind.kind == "signed" else 0
    return {"maximum": low, "minimum": high, "and": -1 if kind.kind == "signed" else high}.get(fold or "")


def _reduce_window(b: Builder, node: Node, operands: list[Value]) -> list[Value]:
    many = len(operands) // 2
    arrays, starts = operands[:many], operands[many:]
    body: Graph = node.attrs["body"]
    windows: tuple[WindowDimension, ...] = node.attrs["window"]
    fold = fold_of(body)
    neutral = _neutral(fold, arrays[0].dtype) if many == 1 else None
    padding = [(one.padding_low, one.padding_high, one.base_dilation - 1) for one in windows]
    padded = []
    for array, start in zip(arrays, starts, strict=True):
        filler = start if neutral is None else b.constant(neutral, array.dtype)
        padded.append(b.pad(array, filler, padding))
    shape = node.results[0].shape
    for axis, window in enumerate(windows):
        padded = _fold_axis(b, body, padded, axis, window, shape[axis])
    spread = [b.broadcast(start, shape, ()) for start in starts]
    return b.apply(body, [*spread, *padded], shape)


def _fold_axis(
    b: Builder, body: Graph, arrays: list[Value], axis: int, window: WindowDimension, count: int
) -> list[Value]:
    """Fold a window along one dimension: few elements one by one, many by doubling what is folded already."""
    size, step, stride = window.size, window.window_dilation, window.stride
    if size == 1 and stride == 1 and arrays[0].shape[axis] == count:
        return arrays

    def shifted(values: list[Value], by: int, length: int, every: int = 1) -> list[Value]:
        starts = [by if i == axis else 0 for i in range(len(values[0].shape))]
        shape = [length if i == axis else extent for i, extent in enumerate(values[0].shape)]
        strides = [every if i == axis else 1 for i in range(len(shape))]
        return [b.slice(one, starts, shape, strides) for one in values]

    if size <= _FEW:
        total = shifted(arrays, 0, count, stride)
        for place in range(1, size):
            other = shifted(arrays, place * step, count, stride)
            total = b.apply(body, [*total, *other], total[0].shape)
        return total
    # Folds of 1, 2, 4, ... elements at every place; the window is put together from them.
    places = (count - 1) * stride + 1
    powers = [arrays]
    reach = 1
    while 2 * reach <= size:
        last = powers[-1]
        length = last[0].shape[axis] - reach * step
        low, high = shifted(last, 0, length), shifted(last, reach * step, length)
        powers.append(b.apply(body, [*low, *high], low[0].shape))
        reach *= 2
    total, done = [], 0
    for power in range(len(powers) - 1, -1, -1):
        if size & (1 << power):
            part = shifted(powers[power], done * step, places)
            total = b.apply(body, [*total, *part], part[0].shape) if total else part
            done += 1 << power
    return shifted(total, 0, count, stride)


def _select_and_scatter(b: Builder, node: Node, operands: list[Value]) -> list[Value]:
    """Expand into: which element of its window each place chose, then what every window element is given."""
    array, source, start = operands
    select: Graph = node.attrs["select"]
    scatter: Graph = node.attrs["scatter"]
    windows: tuple[WindowDimension, ...] = node.attrs["window"]
    # What lies outside is never chosen: where it is, the choice is kept apart by a test.
    padding = [(one.padding_low, one.padding_high, 0) for one in windows]
    padded = b.pad(array, b.constant(0, array.dtype), padding)
    inside = b.pad(b.full(1, "pred", array.shape), b.constant(0, "pred"), padding)
    shape, strides = source.shape, [one.stride for one in windows]
    best = chosen = found = None
    for number, place in enumerate(product(*(range(one.size) for one in windows))):
        value = b.slice(padded, place, shape, strides)
        legal = b.slice(inside, place, shape, strides)
        mine = b.full(number, "s32", shape)
        if best is None or chosen is None or found is None:
            best, chosen, found = value, mine, legal
            continue
        keep = b.apply(select, [best, value], shape)[0]
        better = b.op("and", legal, b.op("or", b.op("not", found), b.op("not", keep)))
        best = b.op("select", better, value, best)
        chosen = b.op("select", better, mine, chosen)
        found = b.op("or", found, legal)
    assert chosen is not None  # a window has elements
    total = b.broadcast(start, padded.shape, ())
    for number, place in enumerate(product(*(range(one.size) for one in windows))):
        here = b.compare("EQ", chosen, b.full(number, "s32", shape))
        old = b.slice(total, place, shape, strides)
        new = b.op("select", here, b.apply(scatter, [old, source], shape)[0], old)
        total = _put(b, total, new, place, strides)
    # The padding is taken off again; elements that a negative one cut off are in no window, and keep the start value.
    return [b.pad(total, start, [(-low, -high, 0) for low, high, _ in padding])]


def _put(b: Builder, total: Value, new: Value, place: tuple[int, ...], strides: list[int]) -> Value:
    """Return a tensor with every `strides`-th element from `place` on replaced."""
    return b.graph.add("strided-update", (total, new), total.dtype, total.shape, starts=place, strides=tuple(strides))


def _map(b: Builder, node: Node, operands: list[Value]) -> list[Value]:
    return b.apply(node.attrs["body"], operands, node.result.shape)


WINDOWS: dict[str, Rule] = {
    "map": _map,
    "reduce-window": _reduce_window,
    "select-and-scatter": _select_and_scatter,
}
