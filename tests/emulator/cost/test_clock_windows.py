"""The Tensor engine's clock against windows that are counted one by one at every word, for words at any times."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from emulator.arch import arch_of
from emulator.cost.tensor_array import TensorArray

PHASES = 16
SLOT = round(4096 / 1.2 * 1000 / PHASES)
PAUSES = (0, 0, 1_000, 100_000, SLOT - 1, SLOT, 9 * SLOT, 31 * SLOT, 32 * SLOT, 33 * SLOT, 50 * SLOT)


class Windows:
    """What a window has of use, and whether it is enough, slot by slot; `enters` is (from, to, at full clock)."""

    def __init__(self, needed: int) -> None:
        self.needed, self.end = needed, 0
        self.enters: list[tuple[int, int, int]] = []
        self.used, self.enough = [0] * PHASES, [False] * PHASES

    def go_to(self, now: int) -> bool:
        """Let windows end up to now; return whether the clock is slow."""
        while self.end <= now:
            if not self.enters and now >= self.end + 2 * PHASES * SLOT:
                self.used, self.enough, self.end = [0] * PHASES, [False] * PHASES, now + SLOT
                break
            here, later = 0, []
            for start, through, full in self.enters:
                part = full if through <= self.end else max(full * (self.end - start) // (through - start), 0)
                here += part
                if through > self.end:
                    later.append((max(start, self.end), through, full - part))
            self.enters = later
            self.used = [*self.used[1:], here]
            self.enough = [*self.enough[1:], sum(self.used) >= self.needed]
            self.end += SLOT
        return 2 * sum(self.enough) <= PHASES


@pytest.mark.parametrize("seed", range(60))
def test_windows_are_counted_as_if_each_word_looked(seed: int) -> None:
    source = random.Random(seed)
    array, now = TensorArray(arch_of("trn2"), True), 0
    windows = Windows(array._needed)
    work, looks = source.choice([20_000, 100_000, SLOT, 4 * SLOT]), source.random() < 0.5
    for _ in range(150):
        slow = windows.go_to(now)
        if source.random() < 0.4:
            interval, latency = array.load(source.randrange(work), 0, now)
        else:
            full = source.choice([source.randrange(1, work), work])
            interval, latency = array.multiply(full, now, source.random() < 0.5)
            entry, through = array._entry, array.free
            assert through - entry == (full * 2 if slow else full)  # `throttle_factor`
            windows.enters.append((entry, through, full))
        if looks and source.random() < 0.2:
            state = array.snapshot()
            assert (state.slow, state.slot_end, state.used) == (slow, windows.end, tuple(windows.used))
            assert (state.enough, state.enters) == (tuple(windows.enough), tuple(windows.enters))
            if source.random() < 0.5:
                array = TensorArray(arch_of("trn2"), True)
                array.restore(state)
        now += source.choice([interval, interval, latency, source.choice(PAUSES)])
    assert array.snapshot().used == tuple(windows.used)


def test_the_clock_of_these_words_changes() -> None:
    """Without a change the comparison above would show little."""
    array, now, slow = TensorArray(arch_of("trn2"), True), 0, []
    for pause in (0, 40 * SLOT, 0):
        now += pause
        for _ in range(40):
            now += array.multiply(SLOT // 2, now, True)[0]
            slow.append(array._slow)
    assert sum(one != other for one, other in pairwise(slow)) >= 3
