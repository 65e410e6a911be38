"""From one matrix multiplication to LDWEIGHTS and MATMUL words; first and last flags of PSUM groups."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from formats.dtypes import Dtype
from formats.isa import Fp32Pass, LoadWeights, MatMul, TransposeMode
from formats.isa.pe import FIRST_OF_GROUP, LAST_OF_GROUP
from formats.named_tuple import NamedTuple
from neurontools.builder.areas import Access, access_to
from neurontools.builder.chip import Chip
from neurontools.builder.dims import common, elements, merge, split
from neurontools.builder.encode import limit_of, pad, refuse
from neurontools.builder.planes import part_of
from neurontools.builder.templates import Spot, Template, keep, template_of
from neurontools.builder.trace import Allocation, MatmulOp, View

__all__ = ["MatmulEncoder", "Passes", "PsumLife", "backwards", "moves_bits_of", "unwritten"]

Mask = npt.NDArray[np.bool_]
_SRC, _DST = MatMul.FIELDS["src"].offset, MatMul.FIELDS["dst"].offset
_MOVING = limit_of(MatMul.FIELDS["src"])  # type: ignore[arg-type]
ACC_FLAGS = MatMul.FIELDS["acc_flags"].offset
# 2-byte columns are streamed as neuronx-cc does, in blocks of 32: `[-1,0,-32][32,1,4]` (isa.md 7)
_BLOCK = 32


class Passes(NamedTuple):
    """Words of one multiplication: `pairs` of LDWEIGHTS and MATMUL in order, `per_piece` of them for each result.

    With one pass the weights serve the pairs behind them too, and need not be loaded again. `weights` is the access to
    the stationary operand, `rest` those to moving and dst, in the order of the operands in the words' spots.
    """

    pairs: tuple[tuple[Template, Template], ...]
    per_piece: int
    weights: tuple[Access, ...]
    rest: tuple[Access, ...]


_encoded: dict[Any, Passes] = {}  # also by the one thing that a chip decides of them


class MatmulEncoder:
    """Encode the multiplications of one program; those of one shape share their work."""

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        self._known: dict[Any, Passes] = {}

    def encode(self, op: MatmulOp, first: bool) -> Passes:
        """Return the words of a multiplication; `first` makes it overwrite PSUM, else it adds.

        fp32 takes a LOW and a HIGH pass; a transpose of gen3 moves bits in one. Source: isa.md 7, 11.
        """
        left, right, out = op.stationary, op.moving, op.dst
        key = (
            first, op.is_transpose, op.accumulate,
            left[1::2], right[1::2], out[1::2],  # type, partitions, dims of each
        )  # fmt: skip
        known = self._known.get(key)
        if known is None:
            known = _encoded.get((self.chip.transpose_mode, key))
            if known is not None:
                self._known[key] = known
        if known is None:
            pairs, per_piece = _pairs(op, self.chip, first)
            loads, *rest = (access_to(number, view.dims, view.dtype.size, view is out)
                            for number, view in enumerate((left, right, out)))  # fmt: skip
            known = self._known[key] = Passes(tuple(pairs), per_piece, (loads,), tuple(rest))
            keep(_encoded, (self.chip.transpose_mode, key), known)
        return known


def backwards(view: View) -> tuple[Spot, tuple[int, tuple[int, ...], tuple[int, ...]]]:
    """Return the pattern that streams the stationary columns backwards, as the array wants. Source: isa.md 7, 11."""
    dims = merge(view.dims)
    last = sum(step * (count - 1) for step, count in dims)
    spot = (LoadWeights.FIELDS["src"].offset, 0, last * view.dtype.size)
    columns = elements(dims)
    if len(dims) == 1 and dims[0][0] == 1 and view.dtype.size == 2 and columns > _BLOCK and columns % _BLOCK == 0:
        return spot, (0, (-1, 0, -_BLOCK), (_BLOCK, 1, columns // _BLOCK))
    # unused dimensions of PE words have step 0 (isa.md 4)
    return spot, pad(0, tuple((-step, count) for step, count in dims), 3, 0)


def _pairs(op: MatmulOp, chip: Chip, first: bool) -> tuple[list[tuple[Template, Template]], int]:
    stationary, moving, dst = op.stationary, op.moving, op.dst
    columns = elements(stationary.dims)
    if stationary.partitions != moving.partitions:
        raise refuse(op, f"contracts {stationary.partitions} with {moving.partitions} partitions")
    if dst.partitions != columns:
        raise refuse(op, f"writes {dst.partitions} partitions from {columns} stationary columns")
    if len(merge(stationary.dims)) > 3:
        raise refuse(op, "has a stationary operand of more than three dimensions")
    shared = common([moving.dims, dst.dims])
    if shared is None:
        raise refuse(op, f"moves {elements(moving.dims)} elements into {elements(dst.dims)}")
    moves_bits = moves_bits_of(op, chip)
    mode = TransposeMode.ENABLED if moves_bits else TransposeMode.DISABLED
    default = stationary.dtype if moves_bits else Dtype.FLOAT32
    dst_dtype = 0 if dst.dtype is default else int(dst.dtype)
    if stationary.dtype is not Dtype.FLOAT32:
        halves = [(Fp32Pass.NONE, Fp32Pass.NONE)]
    elif moves_bits:
        halves = [(Fp32Pass.LOW, Fp32Pass.LOW_HIGH)]
    else:
        # gen2 marks the identity of a transpose as a HIGH pass: ones and zeros have no low half.
        moving_pass = Fp32Pass.HIGH if op.is_transpose and not chip.transpose_mode else Fp32Pass.LOW_HIGH
        halves = [(Fp32Pass.LOW, moving_pass), (Fp32Pass.HIGH, moving_pass)]
    shape: dict[str, Any] = {"transpose_mode": mode, "rows": stationary.partitions, "cols": columns}
    spot, pattern = backwards(stationary)
    pairs: list[tuple[Template, Template]] = []
    for piece in split(shared, [_MOVING, _MOVING]):
        spots = (
            (_SRC, 1, piece.offsets[0] * moving.dtype.size),
            (_DST, 2, piece.offsets[1] * dst.dtype.size),
        )
        source, target = (pad(0, dims, _MOVING.dims, 0) for dims in piece.dims)
        for number, (weight_pass, moving_pass) in enumerate(halves):
            weights = LoadWeights(src=pattern, dtype=stationary.dtype, fp32_mode=weight_pass, **shape)
            flags = FIRST_OF_GROUP if first and number == 0 else 0
            matmul = MatMul(src=source, dst=target, dtype=moving.dtype, fp32_mode=moving_pass, acc_flags=flags,
                            dst_dtype=dst_dtype, **shape)  # fmt: skip
            pairs.append((template_of(weights.raw, (spot,)), template_of(matmul.raw, spots)))
    return pairs, len(halves)


def moves_bits_of(op: MatmulOp, chip: Chip) -> bool:
    """Return whether a multiplication is a transpose that passes bits through, which never adds. Source: isa.md 11."""
    return op.is_transpose and chip.transpose_mode and op.dst.dtype is op.stationary.dtype and op.accumulate is not True


class _Tile:
    """The life of one PSUM tile: views of it that are known to be written, and the words that may end each group.

    Partitions `first` to `last` - 1 and bytes `low` to `high` - 1 hold all that was written; `plane` tells which bytes
    of the views but for those in `noted`, which nobody has asked about yet.
    """

    __slots__ = ("first", "groups", "high", "last", "low", "noted", "plane", "views")

    def __init__(self) -> None:
        self.views: set[tuple[object, ...]] = set()
        self.groups: dict[tuple[object, ...], tuple[int, ...]] = {}
        self.first = self.low = 1 << 62
        self.last = self.high = -1
        self.noted: list[View] = []
        self.plane: Mask | None = None

    def wrote(self, key: tuple[object, ...], view: View) -> None:
        """Note a view that was not written before."""
        self.views.add(key)
        self.noted.append(view)
        low, high = _span(view)
        self.first, self.last = min(self.first, view.partition), max(self.last, view.partition + view.partitions)
        self.low, self.high = min(self.low, low), max(self.high, high)

    def is_outside(self, view: View) -> bool:
        """Return whether nothing was written in the box of a view."""
        low, high = _span(view)
        return (
            low >= self.high
            or high <= self.low
            or view.partition >= self.last
            or view.partition + view.partitions <= self.first
        )

    def written(self, allocation: Allocation) -> Mask:
        """Return which bytes of its allocation were written, by partition."""
        plane = self.plane
        if plane is None:
            plane = self.plane = np.zeros((allocation.partitions, allocation.partition_bytes), dtype=bool)
        for one in self.noted:
            part_of(plane, one)[...] = True
        self.noted.clear()
        return plane


class PsumLife:
    """What has been written in each PSUM tile so far: decides between overwriting and adding, and marks last words.

    `accumulate=None` follows the tile's life: bytes that nothing wrote are overwritten, others are added to. `raw` is
    the stream of the Tensor engine, whose words are named by their first byte.
    """

    def __init__(self, raw: bytearray) -> None:
        self.raw = raw
        self._tiles: dict[int, _Tile] = {}

    def wrote(self, view: View) -> None:
        """Remember that the program wrote a view."""
        tile = self._tiles.get(view.allocation.id)
        if tile is None:
            tile = self._tiles[view.allocation.id] = _Tile()
        key = _key(view)
        if key not in tile.views:
            tile.wrote(key, view)

    def state(self, view: View) -> str:
        """Return "written", "fresh" or "mixed" for the bytes of a view."""
        tile = self._tiles.get(view.allocation.id)
        if tile is None:
            return "fresh"
        key = _key(view)
        if key in tile.views:
            return "written"
        if tile.is_outside(view):
            return "fresh"
        # Bytes first: to ask for elements takes ten times as long, and only bytes of some elements make a difference.
        written = part_of(tile.written(view.allocation), view)
        if written.all():
            tile.views.add(key)  # and stays so
            return "written"
        return "mixed" if written.any() and written.all(axis=-1).any() else "fresh"

    def mask(self, view: View) -> Mask:
        """Return which elements of a view have been written, as (partitions, *counts)."""
        tile = self._tiles.get(view.allocation.id)
        if tile is None:
            return np.zeros((view.partitions, *(count for _, count in view.dims)), dtype=bool)
        return np.asarray(part_of(tile.written(view.allocation), view).all(axis=-1))

    def completed(self, view: View, first: bool, words: tuple[int, ...]) -> None:
        """Remember that words wrote a view and complete an accumulation step; a new group ends the one before it."""
        self.wrote(view)
        groups = self._tiles[view.allocation.id].groups
        key = _key(view)
        # A product that overwrites begins a group: whatever words ended the one before are now known to be its last.
        if first:
            self._mark(groups.get(key, ()))
        groups[key] = words

    def end(self, allocation: int) -> None:
        """Forget a tile that nothing touches any more, and mark the last words of its groups."""
        tile = self._tiles.pop(allocation, None)
        if tile is not None:
            for words in tile.groups.values():
                self._mark(words)

    def _mark(self, words: tuple[int, ...]) -> None:
        for word in words:
            self.raw[word + ACC_FLAGS] |= LAST_OF_GROUP


def _key(view: View) -> tuple[object, ...]:
    return view.dtype.size, view.partition, view.partitions, view.offset, view.dims


def _span(view: View) -> tuple[int, int]:
    """Return the lowest byte of a view in each partition, and the one behind its highest."""
    size = view.dtype.size
    low = high = view.offset
    for step, count in view.dims:
        if step > 0:
            high += step * (count - 1) * size
        else:
            low += step * (count - 1) * size
    return low, high + size


def unwritten(allocation: Allocation, view: View, mask: Mask) -> list[View]:
    """Return views of the elements that `mask` says were never written, one per run of the innermost dimension."""
    found: list[View] = []
    rows = mask.reshape(view.partitions, -1)
    for start, stop in _equal_rows(rows):
        fresh = np.flatnonzero(~rows[start])
        if not fresh.size:
            continue
        for run in np.split(fresh, np.flatnonzero(np.diff(fresh) != 1) + 1):
            for place in _runs(view, int(run[0]), int(run[-1]) + 1):
                found.append(
                    View(
                        allocation,
                        view.dtype,
                        view.partition + start,
                        stop - start,
                        view.offset + place[0] * view.dtype.size,
                        ((place[1], place[2]),),
                    )
                )
    return found


def _equal_rows(rows: Mask) -> list[tuple[int, int]]:
    cuts = np.flatnonzero((rows[1:] != rows[:-1]).any(axis=1)) + 1
    edges = [0, *(int(cut) for cut in cuts), len(rows)]
    return list(pairwise(edges))


def _runs(view: View, start: int, stop: int) -> list[tuple[int, int, int]]:
    """Return (first element, step, count) of the stretch `start` to `stop` - 1 of the view's walk."""
    step, count = view.dims[-1] if view.dims else (1, 1)
    runs: list[tuple[int, int, int]] = []
    at = start
    while at < stop:
        inner = at % count
        length = min(count - inner, stop - at)
        offset, rest = inner * step, at // count
        for outer_step, outer_count in reversed(view.dims[:-1]):
            rest, place = divmod(rest, outer_count)
            offset += place * outer_step
        runs.append((offset, step, length))
        at += length
    return runs
