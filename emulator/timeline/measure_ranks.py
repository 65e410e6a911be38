"""Run programs on the ranks of a machine and keep the timeline of each, as they are or under other costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from emulator.machine.ranks.overlap import Activity
from emulator.runtime.ranks import RankedResult, Ranks, execute_ranks
from emulator.settings import USUAL, Settings
from emulator.timeline.measure import Measured
from emulator.timeline.memory_use import MemoryUse
from emulator.timeline.recorder import Recorder
from formats.neff import Neff

if TYPE_CHECKING:
    from emulator.device import Device
    from emulator.machine.ranks.machine import RankedMachine
    from emulator.timeline.change import Change

__all__ = ["MeasuredRanks", "measure_ranks"]


@dataclass(frozen=True)
class MeasuredRanks:
    """One run: what came of it, and by rank that ran a program what its recorder saw and when it computed."""

    result: RankedResult
    ranks: Mapping[int, Measured]
    activity: Mapping[int, Activity]


class _Watch(Activity):
    """Watches one rank; the recorder comes with the device."""

    def __init__(self, change: Change | None, memory: bool) -> None:
        super().__init__()
        self._change, self._memory = change, memory
        self.recorder: Recorder | None = None
        self._use: MemoryUse | None = None

    def attach(self, device: Device) -> None:
        """Begin; the rank has its program and has not run."""
        if self._change is not None:
            self._change.apply(device)
        self.recorder = Recorder(device)
        self._use = MemoryUse(device) if self._memory else None
        device.observers += [one for one in (self.recorder, self._use) if one is not None]

    def measured(self) -> Measured | None:
        """Return what was seen, None of a rank that ran nothing."""
        if self.recorder is None:
            return None
        if self._use is not None:
            self._use.finish()
        return Measured(self.recorder, () if self._use is None else self._use.usage)


def measure_ranks(
    neffs: Sequence[Neff | None], inputs: Sequence[Mapping[str, Any]], where: Ranks, change: Change | None = None, *,
    memory: bool = False, settings: Settings = USUAL,
    guard: Callable[[RankedMachine], AbstractContextManager[object]] = nullcontext,
) -> MeasuredRanks:  # fmt: skip
    """Run a program on each rank to the end and return what was seen; faults and hangs are values of the result.

    `change` gives every rank other costs; `memory` follows the use of SBUF and PSUM. Errors as of `execute_ranks`.
    """
    watches = [_Watch(change, memory) for _ in neffs]
    found = execute_ranks(neffs, inputs, where, settings, record=True, guard=guard,
                          watch=lambda rank: [watches[rank]])  # fmt: skip
    ranks = {rank: seen for rank, each in enumerate(watches) if (seen := each.measured()) is not None}
    return MeasuredRanks(found, ranks, {rank: watches[rank] for rank in ranks})
