"""Rows of an indirect transfer: one form, an address for each of them on both sides, and parts for whoever asks.

A row is a part of its transfer, and a transfer has thousands.  What planning, regions and moves ask of all of them is
answered from arrays of addresses; sides and parts of single rows are made for messages, checks and dumps.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.dma.transfer import Facts, Part, Request, Side, facts_of
from formats.isa import Instruction

__all__ = ["Numbers", "Rows", "RowsRequest"]

Numbers = npt.NDArray[np.int64]
_made = tuple.__new__  # a named tuple in half the time
_LARGEST = 1 << 62  # of what fits a 64-bit address with something to spare


class Rows:
    """Copies of one form, in order; `source` and `target` are those of row 0 at index 0.

    Row r of side `moving` (0 the source, 1 the target) lies at index r times `index_step`, that of the other one at r
    times `row_step`.  With `skip`, runs of the moving side outside its variable are left out.  `moved` is where rows
    begin on the moving side, `whole` which of them are not cut: None where all are there. `sets` is what checks make of
    each side, once they have.
    """

    __slots__ = ("_cut", "adds", "index_step", "moved", "moving", "numbers", "op", "row_step", "sets", "sides", "whole")

    def __init__(
        self, op: str, source: Side, target: Side, moving: int, numbers: Numbers, index_step: int, row_step: int,
        skip: bool = False,
    ) -> None:  # fmt: skip
        self.op, self.sides, self.moving = op, (source, target), moving
        self.numbers, self.index_step, self.row_step = numbers, index_step, row_step
        self.adds = op == "add"
        self.sets: list[Any] | None = None
        side = self.sides[moving]
        count, address = numbers.size, side.address
        ends = (int(numbers.min()), int(numbers.max())) if count > 1 else (int(numbers[0]),) * 2 if count else (0, 0)
        first, last = (number * index_step + address for number in ends)
        if first > last:
            first, last = last, first
        fits = first > -_LARGEST and last < _LARGEST
        self.moved: npt.NDArray[Any] = (numbers if fits else numbers.astype(object)) * index_step + address
        self.whole: npt.NDArray[np.bool_] | None = None
        self._cut: npt.NDArray[np.bool_] | None = None  # by row that is not whole and by run, which are there
        if skip and side.limit is not None:
            low, high = side.span
            _, begin, nbytes = side.limit
            if first + low - address < begin or last + high - address > begin + nbytes:
                self.whole = whole = self._inside(self.moved, low - address, high - address)
                kept = self._inside(self.moved[~whole, None] + _walk(side), 0, side.run)
                if kept.any():
                    self._cut = kept

    def _inside(self, places: npt.NDArray[Any], low: int, high: int) -> npt.NDArray[np.bool_]:
        """Return which of some places keep all bytes from `low` to `high` behind them in the variable."""
        limit = self.sides[self.moving].limit
        assert limit is not None
        found = (places + low >= limit.address) & (places + high <= limit.address + limit.nbytes)
        return found.astype(np.bool_)  # of Python's own numbers it is an array of objects

    @property
    def count(self) -> int:
        """Return the number of parts."""
        if self.whole is None:
            return self.numbers.size
        return int(np.count_nonzero(self.whole)) + (0 if self._cut is None else int(np.count_nonzero(self._cut)))

    @property
    def is_cut(self) -> bool:
        """Return whether there is a row of which some runs are left out."""
        return self._cut is not None

    @property
    def form(self) -> tuple[Side, Side]:
        """Return the sides whose form all have that are in `places`: single runs where a row is cut."""
        if self._cut is None:
            return self.sides
        source, target = self.sides
        return source._replace(dims=()), target._replace(dims=())

    def places(self, which: int) -> npt.NDArray[Any]:
        """Return where rows begin on the source (0) or the target (1), runs where a row is cut."""
        side = self.sides[which]
        if which == self.moving:
            found = self.moved
        else:
            found = side.address + self.row_step * np.arange(self.numbers.size, dtype=np.int64)
        if self._cut is not None:
            found = (found[:, None] + _walk(side))[self._left()]
        elif self.whole is not None:
            found = found[self.whole]
        return found

    def _left(self) -> npt.NDArray[np.bool_]:
        """Return which runs are there, by row."""
        assert self.whole is not None and self._cut is not None
        found = np.ones((self.whole.size, self._cut.shape[1]), np.bool_)
        found[~self.whole] = self._cut
        return found

    @property
    def even(self) -> Side | None:
        """Return all rows of the side that does not move, as one side; None where some are left out."""
        if self.whole is not None:
            return None
        side = self.sides[1 - self.moving]
        return side._replace(dims=((self.row_step, self.numbers.size), *side.dims))

    @property
    def facts(self) -> Facts:
        """Return what planning asks of all of them."""
        count = self.count if self._cut is None else int(np.count_nonzero(self._left()))
        if not count:
            return facts_of(())
        source, target = self.form
        one = facts_of((Part(self.op, self._copies(source, target)),))
        if count == 1:
            return one
        return Facts(one.nbytes * count, one.pieces * count, one.hbm_bytes * count, one.writes_hbm, one.op)

    def _copies(self, source: Side, target: Side) -> tuple[tuple[Side, Side], ...]:
        return ((target, target), (source, target)) if self.adds else ((source, target),)

    def parts(self) -> tuple[Part, ...]:
        """Return a part for each row, or for each run that is left of one."""
        moving, step, fixed = self.moving, self.row_step, self.sides[1 - self.moving]
        beside = fixed.address
        found: list[Part] = []
        whole = None if self.whole is None else self.whole.tolist()
        left = None if self._cut is None else iter(self._cut)
        for row, (number, place) in enumerate(zip(self.numbers.tolist(), self.moved.tolist(), strict=True)):
            chosen = number, row, self.index_step
            if whole is None or whole[row]:
                found.append(self._part(place, beside, chosen))
            elif left is not None:
                for at in np.flatnonzero(next(left)).tolist():
                    there, here = int(_walk(self.sides[moving])[at]), int(_walk(fixed)[at])
                    found.append(self._part(place + there, beside + here, chosen, single=True))
            beside += step
        return tuple(found)

    def part(self, row: int) -> Part:
        """Return the part of a row that is not cut."""
        beside = self.sides[1 - self.moving].address + row * self.row_step
        return self._part(int(self.moved[row]), beside, (int(self.numbers[row]), row, self.index_step))

    def _part(self, moved: int, beside: int, chosen: tuple[int, int, int], single: bool = False) -> Part:
        moving = self.moving
        space, core, _, dims, run, dtype, limit, _ = self.sides[moving]
        one = _made(Side, (space, core, moved, () if single else dims, run, dtype, limit, chosen))
        space, core, _, dims, run, dtype, limit, none = self.sides[1 - moving]
        other = _made(Side, (space, core, beside, () if single else dims, run, dtype, limit, none))
        source, target = (other, one) if moving else (one, other)
        return _made(Part, (self.op, self._copies(source, target), None, 1.0, (), 1))


def _walk(side: Side) -> Numbers:
    """Return where the runs of a side begin, from its own begin, in the order of the walk."""
    steps = [step * np.arange(count, dtype=np.int64) for step, count in side.dims]
    return reduce(lambda outer, inner: np.add.outer(outer, inner).reshape(-1), steps, np.zeros(1, np.int64))


class RowsRequest(Request):
    """What an indirect word asks of a queue: rows, and parts for whoever asks."""

    __slots__ = ("rows",)

    def __init__(
        self, rows: Rows, *, queue: str, core: int, engine: str, pc: int, semaphore: int, increment: int,
        instruction: Instruction,
    ) -> None:  # fmt: skip
        super().__init__(
            queue=queue, core=core, engine=engine, pc=pc, parts=(), semaphore=semaphore, increment=increment,
            instruction=instruction, facts=rows.facts,
        )  # fmt: skip
        self.rows = rows
        del self.parts

    def begin(self) -> tuple[tuple[Part, ...], int]:
        """Return the first part, if any, and how many there are."""
        rows = self.rows
        if rows.whole is None and rows.count:
            return (rows.part(0),), rows.count
        return super().begin()

    def __getattr__(self, name: str) -> tuple[Part, ...]:
        """Make the parts for the first that asks for them."""
        if name != "parts":
            raise AttributeError(name)
        self.parts = made = self.rows.parts()
        return made
