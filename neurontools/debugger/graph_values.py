"""The result of an operation of the graph, put together from wherever it lies now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from emulator.dtypes import numpy_dtype
from formats.dtypes import Dtype
from formats.errors import FormatError, NotFoundError
from formats.named_tuple import NamedTuple
from formats.neff.operations import Held, Operation, Piece, Walk
from formats.neff.tiles import Tile
from neurontools.debugger.graphs import held_text
from neurontools.debugger.place import place_of
from neurontools.debugger.results import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.machine_view import MachineView
    from neurontools.debugger.graphs import Graphs

__all__ = ["Looked", "in_tensor", "indices", "look", "piece_values", "shown_type", "stands"]


class Places(Protocol):
    """What a program calls its data: `neurontools.debugger.tensors`."""

    device: MachineView
    graphs: Graphs | None

    def tiles(self, core: int) -> Sequence[Tile]:
        """Return the tiles of a core."""

    def raw(self, name: str, core: int) -> tuple[Array, Array | None]:
        """Return the bytes of a variable, and which are written."""


class Looked(NamedTuple):
    """A result as it is now: its elements, which are there (None for all), where, and what there is to know of them."""

    values: Array
    there: Array | None
    space: str
    note: str = ""


def look(tensors: Places, operation: Operation, held: Held | None, core: int) -> Looked:
    """Return a result as it is now; NotFoundError for one that nothing holds."""
    if held is None or not (held.tensor or held.number is not None or held.pieces):
        raise NotFoundError(f"%{operation.key} {held_text(held)}; nothing holds its values")
    if held.number is not None:
        values = np.full(held.shape, held.number, numpy_dtype(Dtype.from_numpy_name(held.kept)))
        return Looked(shown_type(values, held), None, "no memory: a constant")
    if held.tensor:
        data, written = tensors.raw(held.tensor, core)
        values, there = in_tensor(held, data, written)
        missing = 0 if there is None else there.size - int(there.sum())
        note = "" if not missing else f"{missing} of {values.size} elements are not computed yet"
        return Looked(shown_type(values, held), there if missing else None, "HBM", note)
    return _gathered(tensors, operation, held)


def shown_type(values: Array, held: Held) -> Array:
    """Return elements in the type that the graph has, where memory has them in another one of the same numbers."""
    if held.dtype == "pred":
        return np.not_equal(values, 0)
    if held.dtype in ("s64", "u64") and values.dtype.kind in "iu":
        return values.astype(np.int64 if held.dtype == "s64" else np.uint64)
    return values


def in_tensor(held: Held, data: Array, written: Array | None) -> tuple[Array, Array | None]:
    """Return the elements of a result in the bytes of its tensor, and which are written (None for all)."""
    kind = numpy_dtype(Dtype.from_numpy_name(held.kept))
    size = kind.itemsize
    steps = [step * (count - 1) for step, count in zip(held.strides, held.shape, strict=True) if count]
    first, last = held.offset + sum(min(0, one) for one in steps), held.offset + sum(max(0, one) for one in steps)
    empty = 0 in held.shape
    if not empty and not 0 <= first <= last < data.size // size:
        raise FormatError("result lies outside of its tensor", field=held.tensor)
    if empty:
        return np.zeros(held.shape, kind), None
    strides = [step * size for step in held.strides]
    values: Array = np.ndarray(held.shape, kind, np.ascontiguousarray(data), held.offset * size, strides)
    if written is None:
        return values, None
    # An element is there once all of its bytes are written.
    whole = np.ascontiguousarray(written[: written.size // size * size].reshape(-1, size).all(axis=1))
    return values, np.ndarray(held.shape, np.bool_, whole, held.offset, held.strides)


def indices(first: int, *walks: Walk) -> Array:
    """Return the numbers that walks count, the first one outermost, as one line."""
    found = np.array([first], np.int64)
    for walk in walks:
        for step, count in walk:
            found = (found[:, None] + step * np.arange(count, dtype=np.int64)[None, :]).reshape(-1)
    return found


def piece_values(piece: Piece, kept: str, tile: Tile, memory: Array) -> Array:
    """Return the elements of a piece, row by row, from the bytes of the memory that its tile lies in."""
    kind = numpy_dtype(Dtype.from_numpy_name(kept))
    begin, width = tile.offset + piece.offset, tile.partition_bytes - piece.offset
    rows = memory[tile.partition + piece.partition :][: piece.partitions, begin : begin + width]
    places = indices(0, piece.form.tile)
    if (
        rows.shape != (piece.partitions, width)
        or int(places.min()) < 0
        or (int(places.max()) + 1) * kind.itemsize > width
    ):
        raise FormatError("piece lies outside of its tile", field=piece.tile)
    # Widths need not be whole elements: a tile may end inside of what would be the next one.
    whole = np.ascontiguousarray(rows[:, : width // kind.itemsize * kind.itemsize]).view(kind)
    return whole[:, places].reshape(-1)


def _gathered(tensors: Places, operation: Operation, held: Held) -> Looked:
    """Return a result from its pieces, on whichever core: some may be there no more, others not yet."""
    kind = numpy_dtype(Dtype.from_numpy_name(held.kept))
    size = int(np.prod(held.shape, dtype=np.int64))
    # What is not there shows as NaN, where a type has one.
    values, there = np.zeros(size, kind), np.zeros(size, np.bool_)
    if Dtype.from_numpy_name(held.kept).is_float:
        values[:] = np.nan
    later = gone = ended = 0
    names: set[str] = set()
    for piece in held.pieces:
        core = piece.core
        if core >= len(tensors.device.cores):
            raise FormatError("piece lies on a core that the program does not have", field=piece.tile, got=core)
        chosen = _tile(tensors, piece, held.by or operation.name, core)
        numbers = indices(piece.first, piece.form.rows, piece.form.inner)
        if chosen is None:
            later += numbers.size
            continue
        tile, state = chosen
        if state == "gone":
            gone += numbers.size
            continue
        ended += numbers.size if state == "ended" else 0
        names.add(tile.space)
        values[numbers] = piece_values(piece, held.kept, tile, tensors.device.cores[core].memory.array(tile.space))
        there[numbers] = True
    notes = []
    if gone:
        notes.append(f"{gone} of {size} elements are gone, their tiles have been given to others")
    if ended:
        notes.append(f"the life of {'all' if ended == size else ended} elements has ended, nothing lies there since")
    if later:
        notes.append(f"{later} of {size} elements are not computed yet")
    tiles = len(held.pieces)
    cores = " and ".join(f"nc{one}" for one in sorted({piece.core for piece in held.pieces}))
    space = f"{' and '.join(sorted(names)) or 'SBUF'} of {cores}, {tiles} tile{'s' if tiles != 1 else ''}"
    return Looked(shown_type(values.reshape(held.shape), held), None if there.all() else there.reshape(held.shape),
                  space, "; ".join(notes))  # fmt: skip


def _tile(tensors: Places, piece: Piece, maker: str, core: int) -> tuple[Tile, str] | None:
    """Return the tile that a piece lies in, and whether it is "live", "ended" or "gone"; None before it is computed."""
    tiles = tensors.tiles(core)
    found = None
    # The last one that has been made: a tile of a loop stands in the list once for each turn, under one name.
    for number, tile in enumerate(tiles):
        if tile.name == piece.tile and _made(tensors, tile, maker, core):
            found = number, tile
    if found is None:
        return None
    number, tile = found
    if any(stands(tensors.device, core, engine) <= last for engine, (_, last) in tile.pcs.items()):
        return tile, "live"
    # Tiles are in the order in which the builder placed them: only later ones can have taken the place of this one.
    for other in tiles[number + 1 :]:
        if _meet(tile, other) and any(
            stands(tensors.device, core, engine) > first for engine, (first, _) in other.pcs.items()
        ):
            return tile, "gone"
    return tile, "ended"


def _made(tensors: Places, tile: Tile, maker: str, core: int) -> bool:
    """Return whether the operation that makes a tile has completed its words on it."""
    words = tensors.graphs.all_words(core).get(maker, {}) if tensors.graphs is not None else {}
    asked = False
    for engine, (first, last) in tile.pcs.items():
        own = [pc for pc in words.get(engine, ()) if first <= pc <= last]
        if own:
            asked = True
            if stands(tensors.device, core, engine) <= own[-1]:
                return False
    return asked


def _meet(one: Tile, other: Tile) -> bool:
    return (
        one.space == other.space
        and one.partition < other.partition + other.partitions
        and other.partition < one.partition + one.partitions
        and one.offset < other.offset + other.partition_bytes
        and other.offset < one.offset + one.partition_bytes
    )


def stands(machine: MachineView, core: int, name: str) -> int:
    """Return the pc of the oldest word of an engine that has not completed; past the last one at the end."""
    engine = machine.cores[core].engines[name]
    index = place_of(machine, engine)
    words = engine.words
    return words[index].pc if index < len(words) else (words[-1].pc + 1 if words else 0)
