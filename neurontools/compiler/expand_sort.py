"""Expansion of sorts: a network of comparisons that any comparator and any number of operands go through together."""

from __future__ import annotations

from math import prod

from neurontools.compiler.element_types import is_float
from neurontools.compiler.graph import Graph, Node, Value
from neurontools.compiler.rewriting import Builder, Rule

__all__ = ["SORTS", "extreme_of", "sorted_by", "top_of"]


def _sort(b: Builder, node: Node, operands: list[Value]) -> list[Value]:
    return sorted_by(b, node.attrs["body"], operands, node.attrs["dimension"])


def sorted_by(b: Builder, body: Graph, operands: list[Value], dimension: int) -> list[Value]:
    """Return arrays sorted along a dimension, equal elements in the order they had.

    Bitonic merges: of each pair the number of the element decides where the comparator does not. Elements that fill
    the length up to a power of two have higher numbers than all others, and stand behind them.
    """
    shape = operands[0].shape
    count = shape[dimension]
    if count < 2 or not prod(shape):
        return operands
    rank = len(shape)
    order = [axis for axis in range(rank) if axis != dimension] + [dimension]
    back = [order.index(axis) for axis in range(rank)]
    lines = [b.reshape(b.transpose(one, order), (prod(shape) // count, count)) for one in operands]
    size = 1 << (count - 1).bit_length()
    rows = lines[0].shape[0]
    padding = [(0, 0, 0), (0, size - count, 0)]
    # Any value would do: whether an element is real is told by its number, not by the comparator.
    lines = [b.pad(one, b.constant(0, one.dtype), padding) for one in lines]
    values = [*lines, b.iota("s32", (rows, size), 1)]
    width = 2
    while width <= size:
        # The first step of a merge pairs mirror images: so both halves may ascend, and no step needs a direction.
        values = _exchange(b, body, values, rows, size, width, count, mirrored=True)
        part = width // 2
        while part >= 2:
            values = _exchange(b, body, values, rows, size, part, count, mirrored=False)
            part //= 2
        width *= 2
    results = [b.part(one, 1, 0, count) for one in values[:-1]]
    turned = tuple(shape[axis] for axis in order)
    return [b.transpose(b.reshape(one, turned), back) for one in results]


def _exchange(
    b: Builder, body: Graph, values: list[Value], rows: int, size: int, width: int, count: int, *, mirrored: bool
) -> list[Value]:
    """Put the smaller of each pair first: element i of a block with its mirror image, or with that half a block on."""
    half = width // 2
    blocks = [b.reshape(one, (rows, size // width, width)) for one in values]
    first = [b.part(one, 2, 0, half) for one in blocks]
    second = [b.part(one, 2, half, half) for one in blocks]
    if mirrored:
        second = [b.reverse(one, (2,)) for one in second]
    shape = first[0].shape
    swap = _out_of_order(b, body, first, second, count, shape)
    low = [b.op("select", swap, two, one) for one, two in zip(first, second, strict=True)]
    high = [b.op("select", swap, one, two) for one, two in zip(first, second, strict=True)]
    if mirrored:
        high = [b.reverse(one, (2,)) for one in high]
    joined = [b.concatenate([one, two], 2) for one, two in zip(low, high, strict=True)]
    return [b.reshape(one, (rows, size)) for one in joined]


def _out_of_order(
    b: Builder, body: Graph, first: list[Value], second: list[Value], count: int, shape: tuple[int, ...]
) -> Value:
    """Return where the second element of a pair belongs before the first."""
    mine, other = first[-1], second[-1]
    # A comparator takes the two elements of one operand side by side (HLO's sort).
    pairs = [one for both in zip(second[:-1], first[:-1], strict=True) for one in both]
    turned = [one for both in zip(first[:-1], second[:-1], strict=True) for one in both]
    before = b.apply(body, pairs, shape)[0]
    behind = b.apply(body, turned, shape)[0]
    earlier = b.compare("LT", other, mine)
    tied = b.op("and", b.op("not", b.op("or", before, behind)), earlier)
    wanted = b.op("or", before, tied)
    real = b.compare("LT", b.op("maximum", mine, other), b.full(count, "s32", shape))
    return b.op("select", real, wanted, earlier)


def _topk(b: Builder, node: Node, operands: list[Value]) -> list[Value]:
    return top_of(b, operands[0], node.attrs["k"], node.attrs.get("largest", True), node.results[1].dtype)


def top_of(b: Builder, array: Value, k: int, largest: bool, dtype: str) -> list[Value]:
    """Return the first `k` elements in order along the last dimension, and their places.

    Floats are in XLA's total order: of the largest, NaN comes first, before infinity, and 0 before -0.
    """
    body, (left, right) = _comparator(array.dtype)
    order = "TOTALORDER" if is_float(array.dtype) else ""
    body.roots = [body.add("compare", (left, right), "pred", (), direction=_FIRST[largest], type=order)]
    return _best(b, body, array, k, dtype)


def extreme_of(b: Builder, array: Value, largest: bool, dtype: str) -> Value:
    """Return where the last dimension is largest or smallest; any NaN counts as that, and -0 equals 0."""
    body, (left, right) = _comparator(array.dtype)

    def test(direction: str, one: Value, other: Value) -> Value:
        return body.add("compare", (one, other), "pred", (), direction=direction, type="")

    first = test(_FIRST[largest], left, right)
    if is_float(array.dtype):
        # A NaN before what is none; of two NaN neither, so that the first one's place is found.
        alone = body.add("and", (test("NE", left, left), test("EQ", right, right)), "pred", ())
        first = body.add("or", (first, alone), "pred", ())
    body.roots = [first]
    return _best(b, body, array, 1, dtype)[1]


_FIRST = {True: "GT", False: "LT"}


def _comparator(dtype: str) -> tuple[Graph, tuple[Value, Value]]:
    """Return a body without roots for pairs of an element and its place, and its two elements."""
    body = Graph("top")
    elements = body.parameter(dtype, ()), body.parameter(dtype, ())
    for _ in range(2):  # places, which the comparator is given and does not look at
        body.parameter("s32", ())
    return body, elements


def _best(b: Builder, body: Graph, array: Value, k: int, dtype: str) -> list[Value]:
    axis = len(array.shape) - 1
    places = b.iota("s32", array.shape, axis)
    values, places = sorted_by(b, body, [array, places], axis)
    return [b.part(values, axis, 0, k), b.convert(b.part(places, axis, 0, k), dtype)]


SORTS: dict[str, Rule] = {"sort": _sort, "topk": _topk}
