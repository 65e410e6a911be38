"""Folds of tiles: one instruction where that is exact, else any body on neighbours until one element is left."""

from __future__ import annotations

from math import prod

from formats.dtypes import Dtype
from formats.isa import AluOp
from neurontools.builder.trace import View
from neurontools.compiler.element_types import element_type, is_float
from neurontools.compiler.elementwise import as_stored, evaluate, stored_constant
from neurontools.compiler.emitter import Emitter
from neurontools.compiler.graph import Graph, Node
from neurontools.compiler.tile_math import constant_like
from neurontools.compiler.tiling import Tile

__all__ = ["NEUTRAL", "fold_of", "fold_tile", "folded", "instruction_of", "is_tile_fold", "paired"]

_FLOAT_FOLDS = {"add": AluOp.ADD, "multiply": AluOp.MULTIPLY, "maximum": AluOp.MAX, "minimum": AluOp.MIN}
_TRUTH_FOLDS = {"and": AluOp.MIN, "or": AluOp.MAX, "maximum": AluOp.MAX, "minimum": AluOp.MIN, "add": AluOp.MAX,
                "multiply": AluOp.MIN}  # fmt: skip
_BIT_FOLDS = {"and": AluOp.BITWISE_AND, "or": AluOp.BITWISE_OR, "xor": AluOp.BITWISE_XOR}
# Bodies of one operation whose operands may change places.
_ANY_ORDER = {"add", "multiply", "maximum", "minimum", "and", "or", "xor"}
# Values that change nothing as the start of a fold; 0 is one for sums although -0 + 0 is 0.
NEUTRAL = {"add": 0.0, "multiply": 1.0, "maximum": float("-inf"), "minimum": float("inf")}


def fold_of(body: Graph) -> str | None:
    """Return the opcode of a body that is one operation of its two parameters, else None."""
    if len(body.roots) != 1 or len(body.parameters) != 2:
        return None
    node = body.roots[0].node
    if len(node.operands) == 2 and set(node.operands) == set(body.parameters):
        return node.opcode
    return None


def instruction_of(body: Graph, wide_sums: bool = True) -> AluOp | None:
    """Return the operator of an instruction that does a body exactly, else None.

    Instructions fold in fp32. Without `wide_sums` sums and products of shorter floats are rounded at every step.
    """
    fold = fold_of(body)
    if fold is None:
        return None
    dtype = body.parameters[0].dtype
    if is_float(dtype):
        if not wide_sums and dtype != "f32" and fold in ("add", "multiply"):
            return None
        return _FLOAT_FOLDS.get(fold)
    return _TRUTH_FOLDS.get(fold) if dtype == "pred" else _BIT_FOLDS.get(fold)


def is_tile_fold(node: Node) -> bool:
    """Return whether a reduction has one operand and starts at a constant, as folds inside kernels do."""
    return len(node.operands) == 2 and node.operands[1].node.opcode == "constant" and node.operands[1].size == 1


def fold_tile(e: Emitter, node: Node, given: View, tile: Tile, folds: int) -> View:
    """Append a reduction of a tile's last dimensions, start value and all; return one element a row."""
    body: Graph = node.attrs["body"]
    dtype = node.result.dtype
    given = as_stored(e, dtype, given)
    op = instruction_of(body, e.wide_sums)
    made = folded(e, given, tile, folds, op) if op is not None else paired(e, body, [given], tile, folds)[0]
    start = stored_constant(node.operands[1]).reshape(-1)[0].item()
    if NEUTRAL.get(fold_of(body) or "") != start:
        first = constant_like(e, made, element_type(dtype).storage, start)
        made = evaluate(e, body, [first, made])[0]
    storage = element_type(dtype).storage
    if made.dtype is not storage:
        narrow = e.like(made, storage)
        e.cast(narrow, made)
        made = narrow
    return made


def _kept_dims(tile: Tile, folds: int) -> tuple[int, ...]:
    kept = len(tile.starts) - folds
    return tuple(extent for axis, extent in zip(tile.splits[tile.rows :], tile.free, strict=True) if axis < kept)


def folded(e: Emitter, loaded: View, tile: Tile, folds: int, op: AluOp) -> View:
    """Return one instruction's fold; floats are folded in fp32."""
    dtype = Dtype.FLOAT32 if loaded.dtype.is_float else loaded.dtype
    out = e.tile(dtype, loaded.partitions, _kept_dims(tile, folds))
    if not folds:
        e.cast(out, loaded)
        return out
    e.reduce(out, loaded, op, folds)
    return out


def paired(e: Emitter, body: Graph, loaded: list[View], tile: Tile, folds: int) -> list[View]:
    """Return the fold of any body, by pairs of what is left again and again.

    A body of one operation that does not mind the order takes halves, whose elements lie side by side; any other takes
    neighbours: it may only be regrouped, as the one that finds the first NaN. The tiles that are given stay as they
    are: in a kernel others may read them behind the fold.
    """
    kept = _kept_dims(tile, folds)
    if not folds:
        return loaded
    left = prod(tile.free) // max(prod(kept), 1)
    current = [_flat(e, one, kept, left) for one in loaded]
    turned = fold_of(body) in _ANY_ORDER
    while left > 1:
        half = left // 2
        step, second = (1, left - half) if turned else (2, 1)
        made = evaluate(e, body, [
            _span(one, start, half, step) for start in (0, second) for one in current
        ])  # fmt: skip
        if left % 2:
            alone = half if turned else left - 1
            made = [_with_one_more(e, one, old, kept, half, alone) for one, old in zip(made, current, strict=True)]
        current = made
        left -= half
    return [one._replace(dims=one.dims[:-1] or ((1, 1),)) if kept else _span(one, 0, 1) for one in current]


def _with_one_more(e: Emitter, made: View, old: View, kept: tuple[int, ...], half: int, alone: int) -> View:
    """Return what was made of pairs, and behind it the element that had no other."""
    both = e.tile(made.dtype, made.partitions, (*kept, half + 1))
    e.cast(_span(both, 0, half), made)
    e.cast(_span(both, half, 1), _span(old, alone, 1))
    return both


def _flat(e: Emitter, view: View, kept: tuple[int, ...], left: int) -> View:
    """Return a tile as (kept..., folded) with the folded dimensions made one; copied where elements repeat."""
    if any(step == 0 for step, _ in view.dims):
        dense = e.like(view, view.dtype)
        e.cast(dense, view)
        view = dense
    outer = view.dims[: len(kept)]
    return view._replace(dims=(*outer, (1, left)))


def _span(view: View, start: int, count: int, every: int = 1) -> View:
    step = view.dims[-1][0]
    dims = (*view.dims[:-1], (step * every, count))
    return view._replace(offset=view.offset + start * step * view.dtype.size, dims=dims)
