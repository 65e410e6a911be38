"""Buffers of the ranks of a collective, and what a move does to them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import DTypeLike, NDArray

from emulator.machine.collectives.plan import Plan
from emulator.machine.collectives.steps import Move, Piece
from formats.errors import FormatError, UnsupportedError

__all__ = ["Buffers", "folded"]

Array = NDArray[np.generic]
_FOLDS = {"add": np.add, "min": np.minimum, "max": np.maximum}


def folded(parts: list[Array], op: str) -> Array:
    """Return parts folded from the first to the last, as one transfer does.

    Floats of 8 and 16 bits are summed in 32 bits and rounded once, at the end (ours: no page says how); everything else
    in its own type.
    """
    fold, dtype = _FOLDS[op], parts[0].dtype
    wide = dtype if dtype.kind in "iub" or dtype.itemsize >= 4 else np.dtype(np.float32)
    total = parts[0].astype(wide)
    for part in parts[1:]:
        total = fold(total, part.astype(wide))
    return total.astype(dtype)


class Buffers:
    """The elements of every rank's "in", "out", "work" and "tmp"."""

    def __init__(self, plan: Plan, inputs: Mapping[int, Array], dtype: DTypeLike) -> None:
        self.dtype = np.dtype(dtype)
        self._arrays: dict[tuple[int, str], Array] = {}
        for rank in plan.ranks:
            given = np.asarray(inputs[rank]).reshape(-1)
            if given.size != plan.inputs[rank] or given.dtype != self.dtype:
                raise FormatError(f"input of rank {rank}", expected=f"{plan.inputs[rank]} of {self.dtype}",
                                  got=f"{given.size} of {given.dtype}")  # fmt: skip
            self._arrays[rank, "in"] = given.copy()
            self._arrays[rank, "out"] = np.zeros(plan.outputs[rank], self.dtype)
        self._sizes = {"work": max(plan.inputs.values(), default=0)}
        self._scratch = plan.scratch

    def array(self, rank: int, buffer: str) -> Array:
        """Return a buffer of a rank, which appears when it is first asked for."""
        found = self._arrays.get((rank, buffer))
        if found is None:
            size = self._scratch[rank] if buffer == "tmp" else self._sizes[buffer]
            found = self._arrays[rank, buffer] = np.zeros(size, self.dtype)
        return found

    def read(self, piece: Piece) -> Array:
        """Return a copy of a piece's elements."""
        array = self.array(piece.rank, piece.buffer)
        if len(piece.spans) == 1:
            (start, stop), = piece.spans  # fmt: skip
            return array[start:stop].copy()
        parts = [array[start:stop] for start, stop in piece.spans]
        return np.concatenate(parts) if parts else array[:0].copy()

    def value(self, move: Move) -> Array:
        """Return what a move carries: its pieces as they are now, folded."""
        parts = [self.read(piece) for piece in move.reads]
        if len(parts) > 1 and move.op not in _FOLDS:
            raise UnsupportedError(f"a transfer that folds by {move.op!r}")
        return parts[0] if len(parts) == 1 else folded(parts, move.op)

    def write(self, piece: Piece, value: Array) -> None:
        """Put elements into a piece."""
        array, at = self.array(piece.rank, piece.buffer), 0
        for start, stop in piece.spans:
            array[start:stop] = value[at : at + stop - start]
            at += stop - start
