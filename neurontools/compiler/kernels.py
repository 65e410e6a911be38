"""One kernel of element-wise nodes: tile by tile, loads, instructions, stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod

from formats.dtypes import Dtype
from formats.named_tuple import NamedTuple
from formats.neuron_core import PARTITIONS
from neurontools.builder.trace import Allocation, Space, View
from neurontools.compiler.arrays import Array, merged, row_major
from neurontools.compiler.element_types import is_float
from neurontools.compiler.elementwise import apply, as_stored
from neurontools.compiler.emitter import Emitter
from neurontools.compiler.fusion import Group
from neurontools.compiler.graph import Node, Value
from neurontools.compiler.loading import load, part_of, store, without_folded
from neurontools.compiler.tile_folds import fold_tile
from neurontools.compiler.tile_math import constant_like
from neurontools.compiler.tiling import Tile, tiles

__all__ = ["NS_BYTE", "NS_ELEMENT", "Parts", "Splat", "load", "part_of", "run_kernel", "store", "tile_elements"]

_BUDGET = 120 << 10  # bytes of a partition that the tiles of a kernel may take together
# About what one core takes, to tell whether two are worth it: bytes through its DMA rings, 128 lanes at 1 GHz.
NS_BYTE, NS_ELEMENT = 1 / 150, 1 / PARTITIONS
_TEMPORARIES = 14  # tiles that one node may need at a time besides its operands


class Splat(NamedTuple):
    """Stand for a constant whose elements are all one number."""

    dtype: Dtype
    value: int | float


def tile_elements(live: int, temporaries: int = _TEMPORARIES, longest: int = 2048) -> int:
    """Return how many elements of 4 bytes a partition of each tile may have where `live` tiles are live."""
    room = _BUDGET // (4 * (live + temporaries))
    return max(64, min(longest, 1 << room.bit_length() - 1))


Portions = Callable[[int, float], Iterable[tuple[int, int]]]


def _undivided(extent: int, nanoseconds: float) -> Iterable[tuple[int, int]]:
    return ((0, extent),)


class Part(NamedTuple):
    """A part of a value that only lies in a tile of a core: its view, and the elements of the value, rows first."""

    tile: View
    first: int
    rows: tuple[tuple[int, int], ...]
    inner: tuple[tuple[int, int], ...]
    core: int = 0


Parts = dict[Value, list[Part]]


def run_kernel(
    e: Emitter,
    group: Group,
    inputs: Mapping[Value, Array | Splat],
    outputs: Mapping[Value, Array],
    parts: Parts | None = None,
    portions: Portions = _undivided,
    longest: int = 2048,
) -> bool:
    """Append a kernel over all elements of a group's index space; False where a row takes more room than there is.

    `parts` gets the places of values that are no output; `portions` says how the outermost dimension is shared between
    cores.
    """
    space = _space_of(group, inputs, outputs)
    folds = len(space.shape) - space.rows
    row = prod(space.shape[space.rows :])
    most = tile_elements(_live(group), _temporaries(group))
    if folds and most < row <= longest and not any(one.opcode in _HEAVY and not _is_light(one) for one in group.nodes):
        most = tile_elements(_live(group), 4, longest)
    if folds and row > most:
        return False
    arrays = sum(isinstance(one, Array) for one in inputs.values()) + len(outputs)
    nanoseconds = prod(space.shape) * (4 * arrays * NS_BYTE + len(group.nodes) * NS_ELEMENT)
    for begin, end in portions(space.shape[0], nanoseconds) if space.rows else ((0, 0),):
        shape = (end - begin, *space.shape[1:]) if space.rows else space.shape
        starts = (begin, *(0 for _ in shape[1:])) if space.rows else None
        for tile in tiles(shape, most, folds, starts):
            values = _run_tile(e, group, inputs, outputs, space, tile, folds)
            if parts is not None:
                _note(parts, e.core, group, outputs, values, space, tile, folds)
    return True


def _note(
    parts: Parts,
    core: int,
    group: Group,
    outputs: Mapping[Value, Array],
    values: Mapping[Value, View],
    space: _Space,
    tile: Tile,
    folds: int,
) -> None:
    """Note where the results of a group's nodes lie that are not stored."""
    row = without_folded(tile, folds)
    for node in group.nodes:
        value = node.result
        view = values[value]
        if value in outputs or view.allocation.space is Space.HBM:
            continue
        in_row = bool(folds) and _is_row(group, value)
        shape = space.shape[: space.rows] if in_row else space.shape
        dense = Array(_NOWHERE, Dtype.UINT8, 0, shape, row_major(shape))
        part = part_of(dense, dense.strides, row if in_row else tile)
        rows, inner = part.dims[: tile.rows], part.dims[tile.rows :]
        if prod(count for _, count in view.dims) == prod(count for _, count in inner):
            parts.setdefault(value, []).append(Part(view, part.offset, rows, inner, core))


class _Space(NamedTuple):
    """A kernel's index space with neighbouring dimensions made one; strides of every array in it."""

    shape: tuple[int, ...]
    rows: int
    strides: Mapping[Value, tuple[int, ...]]


def _space_of(group: Group, inputs: Mapping[Value, Array | Splat], outputs: Mapping[Value, Array]) -> _Space:
    arrays = {value: one for value, one in (*inputs.items(), *outputs.items()) if isinstance(one, Array)}
    plain = {
        value: tuple(step for step, extent in zip(one.strides, one.shape, strict=True) if extent != 1)
        for value, one in arrays.items()
    }
    kept, folded = group.shape[: group.split], group.shape[group.split :]
    names = list(arrays)
    shape, outer = merged([kept] * len(names), [plain[one][: len(kept)] for one in names])
    full = [one for one in names if len(plain[one]) == len(group.shape) and folded]
    inner_shape, inner = merged([folded] * max(len(full), 1), [plain[one][len(kept) :] for one in full] or [folded])
    strides = dict(zip(names, outer, strict=True))
    for one, steps in zip(full, inner, strict=False):
        strides[one] += steps
    return _Space(shape + inner_shape, len(shape), strides)


_HEAVY = frozenset({"atan2", "cbrt", "cosine", "divide", "log-plus-one", "popcnt", "power", "reduce-precision",
                    "remainder", "sine", "count-leading-zeros"})  # fmt: skip


def _is_light(node: Node) -> bool:
    """Return whether a node is one instruction for floats."""
    return node.opcode == "divide" and is_float(node.result.dtype)


def _temporaries(group: Group) -> int:
    """Return how many tiles a node of the group may need at a time besides its operands and result."""
    return _TEMPORARIES if any(one.opcode in _HEAVY for one in group.nodes) else 4


def _live(group: Group) -> int:
    """Return how many tiles of the whole index space are needed at the same time."""
    last: dict[Value, int] = {}
    for number, node in enumerate(group.nodes):
        for value in node.operands:
            last[value] = number
    for value in group.outputs:
        last[value] = len(group.nodes)
    size = prod(group.shape)
    alive: set[Value] = set()
    most = 1
    for number, node in enumerate(group.nodes):
        alive |= {one for one in (*node.operands, *node.results) if one.size == size}
        most = max(most, len(alive))
        alive = {one for one in alive if last.get(one, -1) > number}
    return most


def _run_tile(
    e: Emitter,
    group: Group,
    inputs: Mapping[Value, Array | Splat],
    outputs: Mapping[Value, Array],
    space: _Space,
    tile: Tile,
    folds: int,
) -> Mapping[Value, View]:
    """Append the instructions of one tile; return where its values lie."""
    row = without_folded(tile, folds)
    spread = tuple((0, extent) for extent in _folded_free(tile, folds))
    like = {False: _shape_alone(tile), True: _shape_alone(row)}
    values: dict[Value, View] = {}

    def operand(value: Value, in_row: bool) -> View:
        found = values.get(value)
        if found is None:
            given = inputs[value]
            if isinstance(given, Splat):
                return constant_like(e, like[in_row], given.dtype, given.value)
            part = row if in_row else tile
            found = values[value] = load(e, part_of(given, space.strides[value], part), part)
        return found

    for node in group.nodes:
        e.origin = node.origin
        result = node.result
        in_row = bool(folds) and _is_row(group, result)
        if node.opcode == "reduce":
            values[result] = fold_tile(e, node, operand(node.operands[0], False), tile, folds)
        elif node.opcode == "broadcast":
            base = operand(node.operands[0], True)
            values[result] = base._replace(dims=(*(base.dims if row.free else ()), *spread))
        elif node.opcode == "reshape":
            values[result] = operand(node.operands[0], in_row)
        else:
            values[result] = apply(e, node, [operand(one, in_row) for one in node.operands])
    for value, array in outputs.items():
        e.origin = value.node.origin
        part = row if folds and _is_row(group, value) else tile
        store(e, part_of(array, space.strides[value], part), as_stored(e, value.dtype, values[value]))
    return values


def _is_row(group: Group, value: Value) -> bool:
    """Return whether a value has one element a row."""
    return value.size != prod(group.shape)


def _folded_free(tile: Tile, folds: int) -> tuple[int, ...]:
    kept = len(tile.starts) - folds
    return tuple(extent for axis, extent in zip(tile.splits, tile.shape, strict=True) if axis >= kept)


_NOWHERE = Allocation(-1, Space.SBUF, "none", Dtype.UINT8, (1, 1))


def _shape_alone(tile: Tile) -> View:
    """Return a view that only says how many partitions and elements there are."""
    return View(_NOWHERE, Dtype.UINT8, 0, tile.partitions, 0, tuple((1, extent) for extent in tile.free) or ((1, 1),))
