"""Reductions: kept dimensions on partitions, folded ones inside them.

A fold that one instruction does exactly (floats by add, multiply, maximum, minimum; truth values) is that
instruction. Any other body is carried out on pairs of elements until one is left; the operations that HLO allows here
may be regrouped, and keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from formats.dtypes import Dtype
from formats.neuron_core import PARTITIONS
from neurontools.builder.trace import View
from neurontools.compiler.arrays import Array, merged
from neurontools.compiler.element_types import element_type
from neurontools.compiler.elementwise import evaluate
from neurontools.compiler.emitter import Emitter
from neurontools.compiler.graph import Graph, Node, Value
from neurontools.compiler.kernels import NS_BYTE, NS_ELEMENT, tile_elements
from neurontools.compiler.loading import load, part_of, store, without_folded
from neurontools.compiler.lowering import Lowering, lowers
from neurontools.compiler.tile_folds import NEUTRAL, fold_of, instruction_of, paired
from neurontools.compiler.tile_folds import folded as folded_tile
from neurontools.compiler.tiling import tiles

__all__ = ["reduce_arrays"]

_FEW = 32  # rows below which parts of each are folded apart


@lowers("reduce")
def _reduce(self: Lowering, node: Node) -> None:
    many = len(node.operands) // 2
    outs = [self.result(node, i) for i in range(many)]
    if not node.results[0].size:
        return
    body: Graph = node.attrs["body"]
    folded = tuple(node.attrs["dimensions"])
    arrays = [self.array(one) for one in node.operands[:many]]
    kept = [axis for axis in range(len(arrays[0].shape)) if axis not in folded]
    starts: list[Value | None] = list(node.operands[many:])
    fold = fold_of(body)
    if fold is not None and self.splats.get(starts[0]) == NEUTRAL.get(fold, object()):  # type: ignore[arg-type]
        starts = [None]
    if not prod(arrays[0].shape):
        for out, start in zip(outs, node.operands[many:], strict=True):
            first = self.array(start)
            self.copy(out, first._replace(shape=out.shape, strides=(0,) * len(out.shape)))
        return
    turned = [one.permuted([*kept, *folded]) for one in arrays]
    initial = [None if one is None else self.array(one) for one in starts]
    if not kept:
        reduce_arrays(self, body, turned, outs, len(folded), initial)
        return
    work = prod(turned[0].shape) * many * (4 * NS_BYTE + len(body.nodes) * NS_ELEMENT)
    if prod(turned[0].shape[: len(kept)]) < 2 * _FEW:
        work = 0.0  # halves would be folded in another order
    for begin, end in self.portions(turned[0].shape[0], work):
        cut = [
            [one.sliced((begin, *(0 for _ in one.shape[1:])), (end - begin, *one.shape[1:])) for one in group]
            for group in (turned, outs)
        ]
        reduce_arrays(self, body, cut[0], cut[1], len(folded), initial)


def reduce_arrays(
    self: Lowering,
    body: Graph,
    arrays: Sequence[Array],
    outs: Sequence[Array],
    folded: int,
    initial: Sequence[Array | None],
) -> None:
    """Append the fold of the last `folded` dimensions of arrays, from `initial` where that is given."""
    split = len(arrays[0].shape) - folded
    kept_shape, kept_strides = merged(
        [arrays[0].shape[:split]] * (len(arrays) + len(outs)),
        [one.strides[:split] for one in arrays] + [one.strides for one in outs],
    )
    fold_shape, fold_strides = merged([one.shape[split:] for one in arrays], [one.strides[split:] for one in arrays])
    sources = [
        one._replace(shape=kept_shape + fold_shape, strides=mine + inner)
        for one, mine, inner in zip(arrays, kept_strides, fold_strides, strict=False)
    ]
    targets = [
        one._replace(shape=kept_shape, strides=mine)
        for one, mine in zip(outs, kept_strides[len(arrays) :], strict=True)
    ]
    most = tile_elements(3 * len(arrays) + len(body.nodes))
    inner = prod(fold_shape)
    rows = prod(kept_shape)
    parts = max(-(-inner // most), min(PARTITIONS, inner // 512) if rows < _FEW else 1)
    if parts > 1 and fold_shape:
        _in_parts(self, body, sources, targets, len(fold_shape), initial, parts)
        return
    instruction = instruction_of(body, self.emitter.wide_sums) if len(arrays) == 1 else None
    e = self.emitter
    for tile in tiles(sources[0].shape, most, len(fold_shape)):
        loaded = [load(e, part_of(one, one.strides, tile), tile) for one in sources]
        if instruction is not None:
            results = [folded_tile(e, loaded[0], tile, len(fold_shape), instruction)]
        else:
            results = paired(e, body, loaded, tile, len(fold_shape))
        if any(one is not None for one in initial):
            results = evaluate(e, body, [*_starting(e, initial, results), *results])
        out_tile = without_folded(tile, len(fold_shape))
        for target, made in zip(targets, results, strict=True):
            if made.dtype is not target.dtype:  # what parts of a sum are kept in is wider than the result
                cast = e.like(made, target.dtype)
                e.cast(cast, made)
                made = cast
            store(e, part_of(target, target.strides, out_tile), made)


def _starting(e: Emitter, initial: Sequence[Array | None], results: Sequence[View]) -> list[View]:
    """Return the start values as tiles of one element a partition."""
    out = []
    for array, like in zip(initial, results, strict=True):
        assert array is not None  # all or none
        one = e.tile(array.dtype, like.partitions)
        e.copy(one, View(array.allocation, array.dtype, 0, 1, array.offset * array.dtype.size, ((0, like.partitions),)))
        out.append(one._replace(dims=tuple((0, count) for _, count in like.dims)))
    return out


def _in_parts(
    self: Lowering,
    body: Graph,
    sources: Sequence[Array],
    targets: Sequence[Array],
    folded: int,
    initial: Sequence[Array | None],
    parts: int,
) -> None:
    """Fold parts of the outermost folded dimension apart from each other, then the results."""
    kept = len(sources[0].shape) - folded
    extent = sources[0].shape[kept]
    size = max(1, -(-extent // parts))
    whole, rest = divmod(extent, size)
    count = whole + bool(rest)
    shape = (*sources[0].shape[:kept], count)
    wide = instruction_of(body, self.emitter.wide_sums) is not None and len(sources) == 1
    middles = []
    for value in body.roots:
        dtype = element_type(value.dtype).storage
        middles.append(self.emitter.tensor(Dtype.FLOAT32 if wide and dtype.is_float else dtype, shape))
    inside = sources[0].shape[kept + 1 :]
    cut = [
        one._replace(
            shape=(*one.shape[:kept], whole, size, *inside),
            strides=(*one.strides[:kept], one.strides[kept] * size, *one.strides[kept:]),
        )
        for one in sources
    ]
    lead = [0] * (kept + 1)
    first = [one.sliced(lead, (*shape[:-1], whole)) for one in middles]
    none = [None] * len(sources)
    reduce_arrays(self, body, cut, first, folded, none)
    if rest:
        begin = [0] * kept + [whole * size] + [0] * (folded - 1)
        tails = [one.sliced(begin, (*one.shape[:kept], rest, *inside)) for one in sources]
        last = [one.sliced([*lead[:-1], whole], (*shape[:-1], 1)) for one in middles]
        reduce_arrays(self, body, tails, [one._replace(shape=shape[:-1], strides=one.strides[:-1]) for one in last],
                      folded, none)  # fmt: skip
    reduce_arrays(self, body, middles, targets, 1, initial)
