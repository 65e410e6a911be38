"""Which waits of a program are needed: each is taken away in the analysis alone; the races that appear need it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from emulator.checks.clocks import WaitPlace
from emulator.checks.finding import Finding
from emulator.checks.registry import make_checks
from emulator.device import Device
from emulator.runtime import run
from formats.isa.signals import BARRIER, SECOND_SLOT
from formats.named_tuple import NamedTuple
from formats.neff import Neff

__all__ = ["WaitVerdict", "judge_waits", "waits_of"]


class WaitVerdict(NamedTuple):
    """What one wait is good for: `races` that it alone prevents, none where it is redundant for memory."""

    place: WaitPlace
    condition: str
    races: tuple[Finding, ...]

    @property
    def needed(self) -> bool:
        """Return whether something would be unordered without it."""
        return bool(self.races)


def waits_of(device: Device) -> Iterator[tuple[WaitPlace, str]]:
    """Yield every wait of a loaded program and its condition."""
    for core in device.cores:
        for name, engine in core.engines.items():
            for loaded in engine.words:
                for awaited in loaded.word.waits:
                    if awaited.by != BARRIER:
                        yield WaitPlace(core.index, name, loaded.pc, int(awaited.by == SECOND_SLOT)), awaited.text


def judge_waits(neff: Neff, inputs: Mapping[str, Any]) -> list[WaitVerdict]:
    """Return what each wait of a program is good for; runs the program once per wait.

    The run keeps every wait, so that data and schedule stay as they are; the analysis of one run goes without one.
    A wait that prevents no race is redundant as far as memory goes: without it no schedule gives other results.
    """
    device = Device(neff.target, len(neff.subgraphs), False)
    device.load(neff)
    verdicts = []
    for place, condition in waits_of(device):
        checks = _racecheck(place)
        run(neff, inputs, timing=False, observers=checks)
        verdicts.append(WaitVerdict(place, condition, tuple(checks[-1].findings)))
    return verdicts


def _racecheck(place: WaitPlace) -> list[Any]:
    return make_checks(("racecheck",), (place,))
