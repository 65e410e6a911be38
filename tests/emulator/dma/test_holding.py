"""Generators wait where stores leave much of their queue to move; loads alone hold none up."""

from __future__ import annotations

from itertools import pairwise

import pytest

from emulator.cost import dma_costs
from emulator.device import Device
from emulator.timeline.measure import measure
from emulator.timeline.track import EngineTrack
from formats import isa
from neurontools.debugger import Session
from tests.emulator.dma_programs import PARTITION, direct, gen3, wait

ROWS, SIZE = 128, 4096
X, Y = {"x": ("float32", (ROWS, SIZE // 4))}, {"y": ("float32", (ROWS, SIZE // 4))}
HELD = 620_000  # ps: longer than any word of a generator that nothing holds up, right behind another too


def store(run: int = SIZE, semaphore: int = 8) -> isa.Instruction:
    return direct(("variable", 0, 0), ("table", 1, 0), run, ROWS, PARTITION, run, semaphore=semaphore)


def load(run: int = SIZE, at: int = 0x8000) -> isa.Instruction:
    return direct(("table", 0, 0), ("variable", 0, at), run, ROWS, run, PARTITION, semaphore=9)


def program(words: list[isa.Instruction], pool: list[isa.Instruction] | None = None, target: str = "trn2"):
    streams = {"SP": words} if pool is None else {"SP": words, "Pool": pool}
    return gen3(streams, inputs=X, outputs=Y, target=target)


def took(words: list[isa.Instruction], pool: list[isa.Instruction] | None = None, target: str = "trn2") -> list[int]:
    """Return how long profiles would show each DMA word of Sync."""
    recorder = measure(program(words, pool, target), {}, data=False).recorder
    (track,) = (each for owner, each in recorder.tracks.items() if owner.name == "SP" and isinstance(each, EngineTrack))
    spans = [track.shown_end(row) - track.start[row] for row in range(len(track))]
    return spans[-len(words) :]


def test_stores_in_a_row_hold_each_other_up() -> None:
    """Captured are 524, 524, 622, 1,178, 1,291 and 1,434 ns for such stores on Scalar, begun 667 ns apart at first."""
    spans = took([store()] * 7)
    assert max(spans[:2]) < HELD
    assert all(1_000_000 < each < 1_700_000 for each in spans[3:])
    # In the long run a word takes as long as its transfer: 8 rows an engine at the pace of stores.
    pace = 8 * dma_costs("trn2").descriptor_ps(SIZE, True)
    assert spans[-1] == pytest.approx(pace, rel=0.2)


def test_loads_alone_and_small_stores_hold_nothing_up() -> None:
    assert max(took([load()] * 4)) < HELD
    assert max(took([store(2048)] * 2)) < HELD  # captured: two transfers in 2 KiB rows
    assert max(took([store(64)] * 6)) < HELD


def test_loads_wait_while_stores_of_another_queue_are_under_way() -> None:
    loads = [load() for _ in range(6)]
    alone, beside = took(loads), took(loads, [store(semaphore=24 + at) for at in range(6)])
    assert max(alone) < max(beside) and max(beside) > HELD
    assert all(less <= more for less, more in zip(alone, beside, strict=True))


def test_more_stores_never_end_sooner() -> None:
    ends = []
    for count in range(1, 8):
        device = Device("trn2")
        device.load(program([*[store()] * count, isa.Nop(**wait(8, 16 * count))]))
        assert device.run() == "finished"
        ends.append(device.now_ps)
    assert all(less < more for less, more in pairwise(ends))


def test_time_turned_off_and_chips_without_such_generators_hold_nothing_up() -> None:
    device = Device("trn2", timing=False)
    device.load(program([*[store()] * 5, isa.Nop(**wait(8, 80))]))
    assert device.run() == "finished"
    assert not dma_costs("trn1").generate_ahead and not device.costs.dma.generate_ahead


def test_a_session_that_goes_back_holds_up_as_long() -> None:
    neff = program([*[store()] * 6, isa.Nop(**wait(8, 96))])
    straight = Device("trn2")
    straight.load(neff)
    straight.run()
    session = Session(neff, {})
    session.step(6)
    session.reverse_step(3)
    session.continue_()
    assert session.device.now_ps == straight.now_ps
