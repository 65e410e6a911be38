"""What transfers overwrote in device memory, so that who looks at a run when it is over finds it as it was then."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from emulator.checks.inside import bytes_of
from emulator.checks.row_sets import Mask, RowSet, scattered_by
from emulator.device import Device
from emulator.dma.transfer import Side, Transfer

__all__ = ["Answers", "Before", "Bytes", "HeldRows", "HeldSide", "Stores", "before_of"]

Bytes = npt.NDArray[np.uint8]


class HeldSide:
    """The bytes of a side as they were before it was written; `now` are those that are there."""

    __slots__ = ("_side", "_was", "changed", "is_taken", "now", "span")

    def __init__(self, device: Device, side: Side) -> None:
        self._side, self.span = side, side.span
        self.now = bytes_of(device, side, writes=True)
        self._was = self.now.copy()
        self.changed: bool | None = None  # what `changes` said, None where nobody has asked
        self.is_taken = False  # whether anybody has bytes of it

    def put(self, held: Bytes | None = None) -> None:
        """Write bytes, those that were there where none are given."""
        self.now[...] = self._was if held is None else held
        self.changed = None

    def changes(self, low: int, high: int) -> bool:
        """Return whether what may share bytes with a range in the span is not what it was, once the store is over."""
        if self.changed is None:
            self.changed = not bool((self._was == self.now).all())
        return self.changed

    def has(self, low: int, high: int) -> bool:
        """Return whether a range is all there in one piece."""
        first, behind = self.span
        return first <= low and high <= behind and self._side.nbytes == behind - first

    def part(self, low: int, high: int) -> Bytes | None:
        """Return what a range was that is there; nothing where the side goes through its bytes in another order."""
        steps = [step for step, _ in self._side.dims]
        if steps != sorted(steps, reverse=True):
            return None
        first, _ = self.span
        self.is_taken = True
        return self._was.reshape(-1)[low - first : high - first].copy()


class HeldRows:
    """The bytes of rows as they were before a transfer scattered them, in the order of their addresses."""

    def __init__(self, device: Device, rows: RowSet) -> None:
        self._device, self.rows = device, rows
        low = rows.box.byte
        self.span = low, rows.box.end
        self._at = rows.lows - low
        self.was = self.now

    @property
    def _windows(self) -> Bytes:
        nbytes, box = self.rows.nbytes, self.rows.box
        data = self._device.hbm.view(box.byte, box.nbytes)
        return np.ndarray((box.nbytes - nbytes + 1, nbytes), np.uint8, data, 0, (1, 1))

    @property
    def now(self) -> Bytes:
        """Return a copy of the bytes as they are."""
        return self._windows[self._at]

    def put(self, held: Bytes | None = None) -> None:
        """Write bytes, those that were there where none are given."""
        self._windows[self._at] = self.was if held is None else held
        self.__dict__.pop("changed", None)

    @cached_property
    def changed(self) -> Mask:
        """Return which rows are not what they were, once the store is over."""
        found: Mask = (self.was != self.now).any(1)
        return found

    def changes(self, low: int, high: int) -> bool:
        """Return whether a row that shares bytes with a range is not what it was."""
        return bool(self.changed[self.rows.range(low, high)].any())

    def has(self, low: int, high: int) -> bool:
        """Return whether a range lies in a row."""
        return self._holder(low, high) >= 0

    def part(self, low: int, high: int) -> Bytes | None:
        """Return what a range was that lies in a row."""
        row = self._holder(low, high)
        first = int(self.rows.lows[row])
        return self.was[row, low - first : high - first].copy()

    def _holder(self, low: int, high: int) -> int:
        at = self.rows.range(low, high)
        for row in range(at.start, at.stop):
            if self.rows.lows[row] <= low and high <= self.rows.lows[row] + self.rows.nbytes:
                return row
        return -1


Before = list[HeldSide | HeldRows]
Answers = list[tuple[int, int, bool]]  # which store, which of its sides, whether it changed anything


def before_of(device: Device, transfer: Transfer) -> Before:
    """Return the bytes of device memory that a transfer is about to overwrite."""
    rows = scattered_by(transfer)
    if rows is not None:
        return [HeldRows(device, rows)]
    return [HeldSide(device, side) for side in transfer.writes if side.space == "HBM"]


class Stores:
    """The stores of a run, in order; `rewind` takes them back, and `redo` carries out one after the other again."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._stores: list[tuple[Transfer, Before]] = []
        self._behind: list[list[Bytes]] = []  # what each brought, from the last one back, once they are taken back
        self._next = 0

    def keep(self, transfer: Transfer) -> None:
        """Keep what a transfer is about to overwrite."""
        if not transfer.facts.writes_hbm:
            return
        before = before_of(self._device, transfer)
        if before:
            self._stores.append((transfer, before))

    @property
    def moving(self) -> Before | None:
        """Return what the transfer under way overwrites; None where the last store is over."""
        return self._stores[-1][1] if self._stores and self._stores[-1][0].state != "done" else None

    def rewind(self) -> None:
        """Have the bytes of device memory be as before all stores."""
        for _, before in reversed(self._stores):
            self._behind.append([each.now.copy() for each in before])
            for each in before:
                each.put()
        self._next = 0

    def redo(self, transfer: Transfer) -> Before:
        """Carry out the next store where it is that of a transfer, and return what it overwrites."""
        if self._next >= len(self._stores) or self._stores[self._next][0] is not transfer:
            return []
        before, behind = self._stores[self._next][1], self._behind.pop()
        self._next += 1
        for each, held in zip(before, behind, strict=True):
            each.put(held)
        return before

    @property
    def answers(self) -> Answers | None:
        """Return whether stores changed anything, as far as somebody asked; None where more was asked of their bytes.

        Whoever finds the same answers to the same questions finds the same of a run that goes the same way.
        """
        found: Answers = []
        for number, (_, before) in enumerate(self._stores):
            for place, held in enumerate(before):
                if isinstance(held, HeldRows) or held.is_taken:
                    return None
                if held.changed is not None:
                    found.append((number, place, held.changed))
        return found

    def give(self, answers: Answers) -> bool:
        """Return whether stores give these answers; afterwards the bytes are as the run has left them."""
        if not answers:
            return True
        asked: dict[int, list[tuple[int, bool]]] = {}
        for number, place, changed in answers:
            asked.setdefault(number, []).append((place, changed))
        self.rewind()
        is_same = True
        for number, (transfer, before) in enumerate(self._stores):
            self.redo(transfer)
            for place, changed in asked.get(number, ()):
                held = before[place]
                is_same = is_same and held.changes(*held.span) is changed
        return is_same

    def redo_all(self) -> None:
        """Carry out what is left: the bytes are as the run has left them."""
        for transfer, _ in self._stores[self._next :]:
            self.redo(transfer)
