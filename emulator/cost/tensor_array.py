"""The Tensor engine's array: when weights are in it, when a matmul's data enter it, and how fast its clock runs.

Weights stream into the array behind the data of the matmul before them, and a matmul's data follow where both its
weights and the matmul in front are through. Matmuls wait in the engine for their turn, a little longer at the slow
clock. Weights whose elements lie far apart are read at the pace of the memory, one load at a time.

The clock follows the use of windows that run on by themselves, so no program decides where in one of them it begins to
multiply. The model keeps the windows of all phases, evenly spread, and has the clock that most of them give.

Source: hardware.md 3.3, and the profiles and captures named in `figures`.
"""

from __future__ import annotations

from typing import ClassVar

from emulator.cost.figures import figure, picoseconds
from emulator.cost.model import Chip
from formats.named_tuple import NamedTuple

__all__ = ["TensorArray", "TensorArrayState"]

_LIMITED_GHZ = 1.2  # the unit of `throttle_window`
_PHASES = 16  # windows that end one after the other; with 8 or 32 captures come out alike
# fmt: off
_FIGURES = ("matmul_head", "matmul_latency", "load_weights_latency", "load_strided_latency", "load_weights_exposed",
            "load_behind", "load_read_ahead", "weights_switch")
_THROTTLED = ("throttle_latency", "load_weights_throttled")
# fmt: on


class TensorArrayState(NamedTuple):
    """The state of an array; fields as in `TensorArray`."""

    weights: int
    entry: int
    free: int
    read: int
    slot_end: int
    slow: bool
    enters: tuple[tuple[int, int, int], ...] = ()
    used: tuple[int, ...] = ()
    enough: tuple[bool, ...] = ()


class TensorArray:
    """What the array is busy with and until when; integers in picoseconds throughout.

    `loaded_ps` is when the weights of the latest load are there: the profiler ends the load then, even where a matmul
    in front of it goes on longer.
    """

    NOT_STATE: ClassVar = {
        **dict.fromkeys(
            ("_factor", "_head", "_late", "_lead", "_lead_slow", "_needed", "_slot", "_strided", "_behind", "_ahead",
             "_least", "_exposed", "_tail", "_switch"), "a figure of the chip"),
        "throttle": "which parts of the model are on",
        "loaded_ps": "told to the observers of the load",
    }  # fmt: skip

    def __init__(self, chip: Chip, throttle: bool) -> None:
        (self._head, latency, self._lead, self._strided, self._exposed, self._behind, self._ahead,
         self._switch) = picoseconds(_FIGURES, chip.target)  # fmt: skip
        self._tail = latency - self._head
        self._lead_slow, self._late, self._factor = self._lead, 0, 1.0
        self._least = round(figure("minimum_interval", chip.target) / chip.clock_ghz("PE") * 1000)
        # When the weights loaded last are there, the last matmul's data began to enter, the next one's can, and the
        # weights read last had left the memory.
        self._weights = self._entry = self._free = self._read = 0
        self.loaded_ps: int | None = None
        self.throttle = throttle
        # What enters from when to when, and how long it would at full clock; the same of the last slots of a window,
        # and whether the windows that ended with them had enough of it.
        self._enters: list[tuple[int, int, int]] = []
        self._used, self._enough = [0] * _PHASES, [False] * _PHASES
        self._slot = self._slot_end = self._needed = 0
        self._slow = throttle
        if throttle:
            window = figure("throttle_window", chip.target) / _LIMITED_GHZ * 1000
            self._slot = round(window / _PHASES)
            self._needed = round(window * figure("throttle_share", chip.target))
            self._factor = figure("throttle_factor", chip.target)
            self._late, self._lead_slow = picoseconds(_THROTTLED, chip.target)

    def load(self, work: int, read: int, now: int) -> tuple[int, int]:
        """Return interval and latency of a load that issues: `work` at full clock, `read` from memory where strided."""
        if now >= self._slot_end and self.throttle:
            self._pass_windows(now)
        ready = now + self._lead
        if self._slow:
            work, ready = round(work * self._factor), now + self._lead_slow
        if ready < self._entry:
            ready = self._entry
        ready += work
        if read:
            self._read = max(now, self._read) + read
            ready = max(ready, self._read + self._strided)
        self._weights = self.loaded_ps = ready
        if not self._slow and self._free > now:
            self._free += self._switch
        # What comes next is a matmul as a rule: it is taken when its turn is near, not before.
        interval = self._turn(now)
        if interval < self._exposed:
            interval = self._exposed
        if read and now < self._entry and interval < self._behind:
            interval = self._behind
        return interval, ready - now

    def multiply(self, work: int, now: int, queues_next: bool) -> tuple[int, int]:
        """Return interval and latency of a matmul that issues: `work` at full clock; `queues_next`: another follows."""
        if now >= self._slot_end and self.throttle:
            self._pass_windows(now)
        full = work
        if self._slow:
            work = round(work * self._factor)
        entry = now + self._head
        if entry < self._weights:
            entry = self._weights
        if entry < self._free:
            entry = self._free
        self._entry = entry
        self._free = free = entry + work
        if work and self.throttle:
            self._enters.append((entry, free, full))
        if queues_next:
            interval, least = self._turn(now), self._least
        else:
            # The load behind is taken when it can do something: when the memory is about to be free for its weights, or
            # the data of this matmul about to enter.
            late = self._late if self._slow else 0
            turn = self._read - self._ahead if self._read > now else entry - self._head - late
            interval, least = turn - now, self._exposed
        return max(least, interval), free + self._tail - now

    def is_busy_until(self, time_ps: int) -> bool:
        """Return whether matmuls that were issued still enter at a time."""
        return self._free >= time_ps

    def _turn(self, now: int) -> int:
        """Return how long from now on a matmul is not taken because others are in front of it."""
        return self._free - self._head - (self._late if self._slow else 0) - now

    def _pass_windows(self, now: int) -> None:
        """Let the windows that have ended decide the clock: it is fast where more than half of them had enough use."""
        enters, used, enough = self._enters, self._used, self._enough
        end, slot, needed, total = self._slot_end, self._slot, self._needed, sum(used)
        while end <= now:
            if not enters:
                if now >= end + 2 * _PHASES * slot:
                    # Two windows without use leave nothing of what was before.
                    used[:], enough[:] = [0] * _PHASES, [False] * _PHASES
                    end = now + slot
                    break
                slots = 1 + (now - end) // slot
                if total or True in enough:
                    slots = min(slots, _PHASES)
                    for gone in used[:slots]:
                        total -= gone
                        enough.append(total >= needed)
                    used += [0] * slots
                    del used[:slots], enough[:slots]
                end += slots * slot
                continue
            entered = 0
            while enters and (first := enters[0])[0] < end:
                start, through, full = first
                here = full if through <= end else full * (end - start) // (through - start)
                entered += here
                if through > end:
                    enters[0] = end, through, full - here
                    break
                del enters[0]
            total += entered - used[0]
            del used[0], enough[0]
            used.append(entered)
            enough.append(total >= needed)
            end += slot
        self._slot_end = end
        self._slow = 2 * enough.count(True) <= _PHASES

    def snapshot(self) -> TensorArrayState:
        """Return the state as a value, for `restore`."""
        return TensorArrayState(
            self._weights,
            self._entry,
            self._free,
            self._read,
            self._slot_end,
            self._slow,
            tuple(self._enters),
            tuple(self._used),
            tuple(self._enough),
        )

    def restore(self, state: TensorArrayState) -> None:
        """Return to a state that `snapshot` gave."""
        self._weights, self._entry, self._free, self._read, self._slot_end, self._slow, enters, used, enough = state
        self._enters, self._used, self._enough = list(enters), list(used), list(enough)
