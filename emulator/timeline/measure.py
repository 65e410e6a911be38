"""Run a program and keep its timeline, as it is or under other costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from emulator.checks import make_checks
from emulator.checks.clocks import WaitPlace
from emulator.device import Device
from emulator.runtime import Guard, check_inputs, new_device
from emulator.settings import USUAL, Settings
from emulator.timeline.change import Change
from emulator.timeline.memory_use import MemoryUse, Usage
from emulator.timeline.recorder import Recorder
from formats import isa
from formats.neff import Neff

__all__ = ["Measured", "data_decides", "measure"]

# about four microseconds of the device's time between two calls of `progress`
_SLICE_PS = 1 << 22


@dataclass(frozen=True)
class Measured:
    """One run: what the recorder saw, the use of memory where it was asked for, what checks found."""

    recorder: Recorder
    usage: tuple[Usage, ...] = ()
    findings: tuple[Any, ...] = ()

    @property
    def device(self) -> Device:
        """Return the device as the run left it."""
        return self.recorder.device

    @property
    def end_ps(self) -> int:
        """Return when the run ended."""
        return self.device.now_ps


class _Schedule:
    """Take the effects off words and transfers: what is left is the schedule."""

    def on_issue(self, engine: Any, loaded: Any, now: int) -> None:
        _, bound, issued, consumed = engine.flights[-1]
        # a WRITE may raise a semaphore: it is part of the schedule itself
        if bound.action.writes and not isinstance(loaded.word, isa.Write):
            engine.flights[-1] = loaded, bound.with_action(bound.action.without_data()), issued, consumed

    def on_plan(self, transfer: Any, memory: object) -> None:
        transfer.move = None

    def on_event(self, event: object) -> None:
        """Nothing to do."""


def data_decides(neff: Neff) -> bool:
    """Return whether a program has words whose course depends on data: branches, registers, indirect transfers."""
    return any(word.DECIDES for graph in neff.subgraphs for stream in graph.streams.values() for word in stream)


def measure(
    neff: Neff,
    inputs: Mapping[str, Any] | None = None,
    change: Change | None = None,
    *,
    memory: bool = False,
    data: bool = True,
    checks: Sequence[str] = (),
    ignored: Sequence[WaitPlace] = (),
    progress: Callable[[Device], None] | None = None,
    settings: Settings = USUAL,
    guard: Guard = nullcontext,
) -> Measured:
    """Run a file to its end and return what was seen; a fault or a hang is on the device.

    `change` gives other costs. `memory` follows the use of SBUF and PSUM; `checks` are those of `emulator.checks`,
    `ignored` the waits that teach them nothing. Without `data` words and transfers move nothing, which gives the same
    times faster where `data_decides` is false. `guard(device)` is entered around the run itself.
    """
    device = new_device(neff, settings)
    device.load(neff)
    if data:
        device.set_inputs(check_inputs(neff, inputs or {}))
    if change is not None:
        change.apply(device)
    recorder = Recorder(device)
    watching: list[Any] = [recorder]
    use = MemoryUse(device) if memory else None
    found = make_checks(checks, ignored) if checks else []
    watching += [one for one in (use, *found, None if data else _Schedule()) if one is not None]
    device.observers.extend(watching)
    for one in found:
        if hasattr(one, "attach"):
            one.attach(device)
    with guard(device):
        if progress is None:
            device.run()
        else:
            while device.run(until=device.now_ps + _SLICE_PS) == "until":
                progress(device)
    for one in (use, *found):
        if hasattr(one, "finish"):
            one.finish()
    findings = tuple(finding for one in found for finding in getattr(one, "findings", ()))
    return Measured(recorder, use.usage if use is not None else (), findings)
