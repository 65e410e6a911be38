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
_MOST = _PHASES // 2  # windows that have enough use, and the clock is slow
_ALL = (1 << _PHASES) - 1
_NEVER = 1 << 62
_NOTHING = _NEVER, 0, 0  # enters behind all matmuls
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
        "_seen_ps": "windows that ended by then are counted before the state is given",
        **dict.fromkeys(("_due_ps", "_total"), "derived from what was used and enough"),
    }  # fmt: skip

    def __init__(self, chip: Chip, throttle: bool) -> None:
        (self._head, latency, self._lead, self._strided, self._exposed, self._behind, self._ahead,
         self._switch) = picoseconds(_FIGURES, chip.target)  # fmt: skip
        self._tail = latency - self._head
        self._lead_slow, self._late, self._factor = self._lead, 0, 1.0
        self._least = round(figure("minimum_interval", chip.target) / chip.clock_ghz("PE") * 1000)
        # When the weights loaded last are there, the last matmul's data began to enter, the next one's can, and the
        # weights read last had left the memory.
        self._weights = self._entry = self.free = self._read = 0
        self.loaded_ps: int | None = None
        self.throttle = throttle
        # What enters from when to when, and how long it would at full clock; the same of the last slots of a window,
        # and whether the windows that ended with them had enough of it: a bit each, the latest one the lowest.
        self._enters: list[tuple[int, int, int]] = []
        self._used, self._enough = [0] * _PHASES, 0
        self._slot = self._slot_end = self._needed = 0
        # What was used in the latest window, when something issued last, and when the clock may change next.
        self._total, self._seen_ps, self._due_ps = 0, -1, _NEVER
        self._slow = throttle
        if throttle:
            window = figure("throttle_window", chip.target) / _LIMITED_GHZ * 1000
            self._slot = round(window / _PHASES)
            self._needed = round(window * figure("throttle_share", chip.target))
            self._factor = figure("throttle_factor", chip.target)
            self._late, self._lead_slow = picoseconds(_THROTTLED, chip.target)
            self._set_clock()

    def load(self, work: int, read: int, now: int) -> tuple[int, int]:
        """Return interval and latency of a load that issues: `work` at full clock, `read` from memory where strided."""
        if now >= self._due_ps:
            self._pass_windows(now)
        self._seen_ps = now
        entry, free = self._entry, self.free
        if self._slow:
            work, late, ready = round(work * self._factor), self._late, now + self._lead_slow
        else:
            late, ready = 0, now + self._lead
        if ready < entry:
            ready = entry
        ready += work
        if read:
            self._read = through = max(now, self._read) + read
            ready = max(ready, through + self._strided)
        self._weights = self.loaded_ps = ready
        if free > now and not self._slow:
            self.free = free = free + self._switch
        # What comes next is a matmul as a rule: it is taken when its turn is near, not before.
        interval = free - self._head - late - now
        if interval < self._exposed:
            interval = self._exposed
        if read and now < entry and interval < self._behind:
            interval = self._behind
        return interval, ready - now

    def multiply(self, work: int, now: int, queues_next: bool) -> tuple[int, int]:
        """Return interval and latency of a matmul that issues: `work` at full clock; `queues_next`: another follows."""
        if now >= self._due_ps:
            self._pass_windows(now)
        self._seen_ps = now
        full, late, head, free = work, 0, self._head, self.free
        if self._slow:
            work, late = round(work * self._factor), self._late
        entry = now + head
        if entry < self._weights:
            entry = self._weights
        if entry < free:
            entry = free
        self._entry = entry
        self.free = free = entry + work
        if work and self.throttle:
            self._enters.append((entry, free, full))
        if queues_next:
            interval, least = free - head - late - now, self._least
        else:
            # The load behind is taken when it can do something: when the memory is about to be free for its weights, or
            # the data of this matmul about to enter.
            interval, least = self._read - self._ahead if self._read > now else entry - head - late, self._exposed
            interval -= now
        if interval < least:
            interval = least
        return interval, free + self._tail - now

    def _pass_windows(self, now: int) -> None:
        """Let the windows that have ended decide the clock: it is fast where more than half of them had enough use.

        Nobody asks before so many have ended that it may change.
        """
        if self._seen_ps >= self._slot_end and now >= self._slot_end + 2 * _PHASES * self._slot:
            self._count_windows(self._seen_ps)  # from then on the array was idle
        self._count_windows(now)
        self._set_clock()

    def _set_clock(self) -> None:
        """Set the clock, and when the next windows may change it: each of them has enough use where others had not."""
        enough = self._enough.bit_count()
        self._slow = enough <= _MOST
        self._due_ps = self._slot_end + self._slot * (_MOST - enough if self._slow else enough - _MOST - 1)

    def _count_windows(self, now: int) -> None:
        """Count what was used in the windows that have ended."""
        enters, used, enough, total = self._enters, self._used, self._enough, self._total
        end, slot, needed = self._slot_end, self._slot, self._needed
        gone = entered = 0
        enters.append(_NOTHING)
        start, through, full = enters[0]
        while end <= now:
            if start == _NEVER:
                if now >= end + 2 * _PHASES * slot:
                    # Two windows without use leave nothing of what was before.
                    used, gone, enough, total = [0] * _PHASES, 0, 0, 0
                    end = now + slot
                    break
                if not total and not enough:
                    end += (1 + (now - end) // slot) * slot
                    break
            here = 0
            while start < end:
                if through > end:
                    part = full * (end - start) // (through - start)
                    here += part
                    start, full = end, full - part
                    break
                here += full
                entered += 1
                start, through, full = enters[entered]
            total += here - used[gone]
            used.append(here)
            gone += 1
            enough = enough << 1 & _ALL | (total >= needed)
            end += slot
        enters[entered] = start, through, full
        enters.pop()
        del enters[:entered], used[:gone]
        self._used, self._enough, self._total, self._slot_end = used, enough, total, end

    def snapshot(self) -> TensorArrayState:
        """Return the state as a value, for `restore`."""
        if self.throttle and self._seen_ps >= self._slot_end:
            self._count_windows(self._seen_ps)
            self._set_clock()
        return TensorArrayState(
            self._weights,
            self._entry,
            self.free,
            self._read,
            self._slot_end,
            self._slow,
            tuple(self._enters),
            tuple(self._used),
            tuple([bool(self._enough >> number & 1) for number in reversed(range(_PHASES))]),
        )

    def restore(self, state: TensorArrayState) -> None:
        """Return to a state that `snapshot` gave."""
        self._weights, self._entry, self.free, self._read, self._slot_end, self._slow, enters, used, enough = state
        self._enters, self._used = list(enters), list(used)
        self._enough = sum([each << number for number, each in enumerate(reversed(enough))])
        self._total, self._seen_ps = sum(used), -1
        if self.throttle:
            self._set_clock()
