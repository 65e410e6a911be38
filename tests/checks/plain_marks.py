"""initcheck with a mark for each byte of a core's memories, which it was written as: the plain way of doing it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from emulator.access import Operand
from emulator.checks import initcheck
from emulator.checks.initcheck import Initcheck
from emulator.checks.mark_rows import MarkRows, folded
from emulator.checks.poison import _BLOCK as BLOCK
from emulator.checks.poison import Marks, Planes, unwritten_in
from emulator.checks.undefined import BandedPlanes
from emulator.core import Core
from emulator.device import Device
from formats import isa
from formats.regions import Region
from tests.checks import plain_flow

__all__ = ["PlainPlanes", "marks_of", "plainly"]


class PlainPlanes(Planes):
    """The marks of every memory, byte by byte."""

    def look(self, core: Core, operand: Operand, fresh: MarkRows | None = None) -> MarkRows | None:
        """Return the marks of an operand; what nothing ever wrote gets the number of `fresh`."""
        marks = self.read(core, operand, 0 if fresh is None else fresh.number)
        return None if marks is None else folded(marks)

    def missing_in(self, region: Region) -> tuple[Region, int] | None:
        """Return the box around bytes of a region that nothing wrote."""
        return unwritten_in(self._device, region)

    def put(self, core: Core, operand: Operand, marks: MarkRows | None) -> None:
        """Give an operand marks."""
        self.write(core, operand, None if marks is None else marks.spread())


class PlainUnwritten:
    """Which bytes of an operand nothing wrote."""

    is_any = False  # not surely: whoever has to know looks at the written plane

    def __init__(self, core: Core, operand: Operand) -> None:
        self._core, self._regions = core, operand.regions

    def marks(self, number: int) -> MarkRows:
        """Return the number by itself: the planes look for the bytes."""
        return MarkRows(np.zeros(0, np.intp), np.zeros((0, 0), np.int16), number)

    def boxes(self) -> list[tuple[Region, int]]:
        """Return the box around such bytes of each region."""
        device = self._core.device
        assert isinstance(device, Device)
        return [found for region in self._regions if (found := unwritten_in(device, region)) is not None]


class PlainFlow(plain_flow.Flow):
    """What engines keep, as arrays."""

    def reaches(self, word: Any) -> bool:
        """Return whether an engine holds anything undefined, whatever the word."""
        return self.dirty

    def load(self, word: isa.LoadWeights, marks: Any) -> None:
        """Latch the marks of a stationary tile."""
        super().load(word, None if marks is None else marks.spread())

    def held(self, word: Any, engine: str) -> Any:
        """Return what of an engine a word's results depend on."""
        return tuple(
            None if one is None else folded(one.reshape(one.shape[0], -1)) for one in super().held(word, engine)
        )


def _outputs_of(
    flow: PlainFlow,
    word: Any,
    engine: str,
    inputs: Mapping[str, MarkRows | None],
    outputs: Mapping[str, Operand],
    core: Core,
) -> dict[str, MarkRows | None]:
    given = {name: None if marks is None else marks.spread() for name, marks in inputs.items()}
    made = plain_flow.outputs_of(flow, word, engine, given, outputs, core)
    return {name: None if marks is None else folded(np.ascontiguousarray(marks)) for name, marks in made.items()}


@contextmanager
def plainly() -> Iterator[None]:
    """Have initcheck follow marks byte by byte."""
    with (
        patch.object(initcheck, "BandedPlanes", PlainPlanes),
        patch.object(initcheck, "Unwritten", PlainUnwritten),
        patch.object(initcheck, "Flow", PlainFlow),
        patch.object(initcheck, "outputs_of", _outputs_of),
    ):
        yield


def marks_of(check: Initcheck) -> dict[Any, set[tuple[int, ...]]]:
    """Return the marks of every byte that has one, (row, column, mark), by memory."""
    planes = check._planes
    found: dict[Any, set[tuple[int, ...]]] = {}
    for key, flat in planes._hbm.items():
        _add(found, key, flat[None, :], 0)
    if isinstance(planes, BandedPlanes):
        assert not planes._chip
        for place, bands in planes._bands.items():
            for low, high in zip(bands._lows, bands._highs, strict=True):
                _add(found, place, bands.spread(low, high), low)
    else:
        for place, plane in planes._chip.items():
            for block in range(planes._blocks[place].bit_length()):
                low = block * BLOCK
                _add(found, place, plane[:, low : low + BLOCK], low)
    return found


def _add(found: dict[Any, set[tuple[int, ...]]], key: Any, plane: Marks, low: int) -> None:
    rows, columns = np.nonzero(plane)
    if rows.size:
        marked = zip(rows.tolist(), (columns + low).tolist(), plane[rows, columns].tolist(), strict=True)
        found.setdefault(key, set()).update(marked)
