"""Where the dashboard's reports come from: sessions as they are now, or a recorded stream of neuron-monitor."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import Any

from neurontools.command.files import read_text
from neurontools.monitor.config import DEFAULT
from neurontools.monitor.files import sound_reports_of
from neurontools.monitor.report import Sample, make_report, sample
from neurontools.monitor.run import sessions

__all__ = ["Live", "Recorded", "source_of"]


class Live:
    """Reports of the sessions at a place, each of the time since the one before."""

    recorded = False
    number, count = 1, 1

    def __init__(self, place: Path | None, instance: str) -> None:
        from emulator.machine.instances import instance_of  # deferred: start-up

        self._place, self._instance_of = place, instance_of
        self._kind = instance_of(instance)
        self._before: Sample | None = None

    def report(self) -> dict[str, Any]:
        """Return the report of this moment."""
        states = sessions(self._place)
        now = sample(states, monotonic())
        kind = self._instance_of(states[0].instance) if states else self._kind
        lnc = states[0].ledger.lnc if states else kind.chip.lnc.whole
        found = make_report(now, self._before or now, DEFAULT, kind, lnc)
        self._before = now
        return found

    def step(self, by: int) -> None:
        """Stay: there is only now."""


class Recorded:
    """The reports of a stream, one at a time."""

    recorded = True

    def __init__(self, reports: list[Any]) -> None:
        self._reports = reports
        self.number, self.count = 1, len(reports)

    def report(self) -> dict[str, Any]:
        """Return the report that is shown."""
        found: dict[str, Any] = self._reports[self.number - 1]
        return found

    def step(self, by: int) -> None:
        """Go on or back, not past the ends."""
        self.number = min(self.count, max(1, self.number + by))


def source_of(place: Path | None, instance: str) -> Live | Recorded:
    """Return what shows a place: a file of reports is recorded, anything else is live.

    Raises FormatError for a file that is neither reports nor a session.
    """
    if place is None or not place.is_file():
        if place is not None and not place.exists():
            raise FileNotFoundError(2, "no such file or folder", str(place))
        return Live(place, instance)
    # By what it says: both kinds of file may have any name, and a session's may be of any age.
    head = read_text(place)[:4096]
    if '"neurontools.machine-state/' in head:
        return Live(place, instance)
    return Recorded(sound_reports_of(place))
