"""Races of a transfer that reads: do its bytes matter? The program runs again with other ones in their place.

A compiler may spill a whole tile of which a part is still written, and write that part of the spill again before
anybody reads it. Nothing in the order of accesses tells that from a race that matters; bytes that are put there do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from emulator.checks import Finding
    from emulator.checks.finding import Site
    from emulator.device import Device
    from emulator.events import Event
    from emulator.runtime import Result
    from formats.regions import Region

    Bytes = npt.NDArray[np.uint8]

__all__ = ["Again", "drop_unused"]

Again = Callable[[Sequence[Sequence[Any]]], "Sequence[Result]"]
"""Run once more, with observers of each rank; return the result of each."""

_MOST = 16  # findings that are tried together
# NaN of every width, numbers as large as they get, and small ones of the other sign.
_PATTERNS = (0xFF, 0x7B, 0x83)


class _Filled:
    """Let some transfers read other bytes than are there, for the moment of their effect."""

    def __init__(self, findings: Sequence[Finding], pattern: int) -> None:
        self._pattern = pattern
        self._wanted: dict[tuple[int, str, int], list[Region]] = {}
        for one in findings:
            self._wanted.setdefault(_place(_reader(one)), []).extend(one.regions)
        self._held: list[tuple[Bytes, Bytes]] = []
        self.met = 0

    def attach(self, device: Device) -> None:
        """Begin with a device that has its program."""
        self._device = device

    def on_effect(self, event: Event) -> None:
        """Put the pattern where the transfer is about to read."""
        if event.kind != "dma" or (event.core, event.engine, event.pc) not in self._wanted:
            return
        for region in self._wanted[event.core, event.engine, event.pc]:
            view = self._view(region)
            self._held.append((view, view.copy()))
        self.met += len(self._held)
        for view, _ in self._held:
            view[...] = self._pattern

    def on_event(self, event: Event) -> None:
        """Put back what was there."""
        while self._held:
            view, before = self._held.pop()
            view[...] = before

    def _view(self, region: Region) -> Bytes:
        import numpy as np  # deferred: start-up

        memory = self._device.cores[region.core].sbuf
        offset, shape, strides = region.walk(memory.shape[1])
        return np.ndarray(shape, np.uint8, memory, offset, strides)


def drop_unused(results: Sequence[Result], again: Again) -> None:
    """Make notes of races in which a transfer takes bytes from SBUF that no output depends on.

    `results` are those of a program, or of each rank. All races are tried together; where any output changes, all stay
    as they are.
    """
    from emulator.checks import KINDS  # deferred: start-up

    wanted = [[one for one in result.findings if one.tool == "racecheck" and one.regions and _is_spill(one)]
              for result in results]  # fmt: skip
    if not 0 < sum(map(len, wanted)) <= _MOST:
        return
    for pattern in _PATTERNS:
        filled = [_Filled(mine, pattern) for mine in wanted]
        made = again([(one,) if mine else () for one, mine in zip(filled, wanted, strict=True)])
        same = all(new.ok and _same(new, old) for new, old in zip(made, results, strict=True))
        if not same or not all(one.met or not mine for one, mine in zip(filled, wanted, strict=True)):
            return
    for one in (one for mine in wanted for one in mine):
        one.kind, one.severity = "unused-read", KINDS["racecheck:unused-read"].severity
        one.message += "; other bytes were put there, and no output changed"
        one.hint, one.waits = "nothing: what is read there is not used", ()


def _same(new: Result, old: Result) -> bool:
    return all(new.outputs[name].tobytes() == array.tobytes() for name, array in old.outputs.items())


def _reader(finding: Finding) -> Site:
    return finding.site if finding.kind == "write-read" or finding.other is None else finding.other


def _place(site: Site) -> tuple[int, str, int]:
    return site.core, site.engine, site.pc


def _is_spill(finding: Finding) -> bool:
    """Return whether a finding is of a transfer that reads SBUF, and it is known where."""
    return finding.kind in ("write-read", "read-write") and all(one.space == "SBUF" for one in finding.regions)
