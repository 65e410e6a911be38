"""What takes an engine longer the first times, against what captures have; loads that begin on idle engines."""

from __future__ import annotations

import numpy as np
import pytest

from emulator.arch import arch_of
from emulator.cost import Contention, cost_of, dma_costs
from emulator.cost.instructions import shown_ps
from emulator.device import Device
from emulator.timeline.recorder import Recorder
from emulator.timeline.track import EngineTrack
from formats import isa
from formats.isa import DmaPattern
from formats.neff import Descriptor
from tests.emulator.dma_programs import PARTITION, POOL_SEMAPHORES, direct, gen2, gen3, trigger, wait

ONE, TWO = isa.Write(size0=4), isa.Write(size0=4, size1=4)
ROWS128 = isa.DmaDirect2d(dst_pattern=DmaPattern((0, 0), (1, 128)))
ROWS256 = isa.DmaDirect2d(dst_pattern=DmaPattern((0, 0), (2, 128)))


def shown(engine: str, words: list[isa.Instruction], chip: str = "trn2", pause_ps: int = 0) -> list[int]:
    """Return what profiles show of words that an engine issues one after the other, in nanoseconds."""
    held, arch = Contention(arch_of(chip)), arch_of(chip)
    now, found = 0, []
    for word in words:
        cost = cost_of(word, engine, arch)
        claim = held.claim(engine, cost, (), False)
        assert claim is not None or chip == "trn1"
        interval, latency = cost.interval_ps, cost.latency_ps
        if claim is not None:
            interval, latency = held.take(claim, now, interval, latency)
        end = now + latency if held.own_end_ps is None else held.own_end_ps
        held.own_end_ps = None
        found.append(round((end - now) / 1000))
        now += interval + pause_ps
    return found


@pytest.mark.parametrize(
    ("engine", "words", "captured"),
    [
        # Captures of formats.md 1.2 that calibrate, of all three repositories with trn2.
        ("Pool", [TWO] * 5, [83, 58, 52, 46, 46]),
        ("Pool", [ONE, ONE, TWO, TWO], [58, 32, 58, 52]),
        ("Pool", [TWO, TWO, *[isa.Nop()] * 3], [83, 58, 26, 26, 19]),
        ("Pool", [isa.Nop()] * 2, [19, 19]),
        ("SP", [TWO, TWO, TWO], [90, 61, 58]),
        ("SP", [ONE, TWO, TWO], [67, 66, 61]),
        ("SP", [TWO, ONE, TWO], [90, 42, 61]),
        ("SP", [ROWS128, ROWS256], [542, 594 + 87]),
    ],
)
def test_the_first_words_take_what_captures_have(
    engine: str, words: list[isa.Instruction], captured: list[int]
) -> None:
    assert shown(engine, words) == pytest.approx(captured, rel=0.08)


def test_generators_take_longer_right_behind_each_other() -> None:
    assert shown("SP", [ROWS128] * 4)[1:] == pytest.approx([606, 606, 606], rel=0.02)
    assert shown("SP", [ROWS128] * 4, pause_ps=300_000)[1:] == pytest.approx([518, 518, 518], rel=0.02)
    assert shown("Activation", [ROWS256] * 3, pause_ps=300_000) == pytest.approx([612, 572, 572], rel=0.04)
    assert shown("Pool", [ROWS128] * 3) == pytest.approx([32, 50, 75], rel=0.1)
    assert shown("Pool", [ROWS128] * 3, pause_ps=10**6) == pytest.approx([32, 32, 32], rel=0.1)


def test_the_first_words_of_trn1_are_hardly_longer() -> None:
    assert shown("Pool", [TWO, TWO, isa.Nop()], "trn1") == [74, 60, 14]
    assert shown("SP", [TWO, TWO], "trn1") == [51, 51]


def test_what_came_before_comes_back() -> None:
    held, arch = Contention(arch_of("trn2")), arch_of("trn2")
    doorbell, generator = (
        (held.claim("Pool", cost_of(word, "Pool", arch), (), False), cost_of(word, "Pool", arch))
        for word in (TWO, ROWS128)
    )
    state = held.snapshot()
    found = []
    for _ in range(2):
        took = []
        for claim, cost in (doorbell, doorbell, generator, generator):
            assert claim is not None
            took.append((held.take(claim, 5000, cost.interval_ps, cost.latency_ps), held.own_end_ps))
        found.append(took)
        assert held.snapshot() != state
        later = held.snapshot()
        held.restore(state)
    assert found[0] == found[1]
    # What is over comes with a state to whoever has not begun.
    other = Contention(arch_of("trn2"))
    left = set(other.cold.left)
    other.restore(later)
    assert other.snapshot() == later
    assert ("Pool", "doorbell") in left and other.cold.left == left - {("Pool", "register")}


def test_bursts_of_many_engines_ramp_up() -> None:
    costs = dma_costs("trn2")
    assert costs.filling_ps(16, 4096) == costs.filling_ps(1, 1 << 20) == costs.fill_ps
    assert costs.filling_ps(16, 16384) - costs.fill_ps == pytest.approx(100_000)
    assert costs.filling_ps(16, 65536) - costs.fill_ps == 200_000
    assert costs.filling_ps(16, 65536, cold=True) - costs.fill_ps == 600_000
    assert dma_costs("trn1").filling_ps(16, 65536, cold=True) == dma_costs("trn1").fill_ps


def test_recorded_runs_show_words_as_long_as_captures_do() -> None:
    """Two loads of Sync, the second one right behind; one of GpSimd."""
    words = {
        "SP": [*(direct(("table", 0, 0), ("variable", 0, at), 4096, 128, 4096, PARTITION, semaphore=8)
                 for at in (0x4000, 0x6000)), isa.Nop(**wait(8, 32))],
        "Pool": [direct(("table", 0, 0), ("variable", 0, 0x8000), 4096, 8, 4096, PARTITION,
                        semaphore=POOL_SEMAPHORES[0]), isa.Nop(**wait(POOL_SEMAPHORES[0]))],
    }  # fmt: skip
    device = Device("trn2")
    device.load(gen3(words, inputs={"x": ("float32", (128, 1024))}))
    device.set_inputs({"x": np.zeros((128, 1024), np.float32)})
    recorder = Recorder(device)
    device.observers.append(recorder)
    while device.step() is not None:
        pass
    found: dict[str, list[int]] = {}
    for owner, track in recorder.tracks.items():
        if isinstance(track, EngineTrack):
            engine = device.cores[0].engines[owner.name]
            for row, position in enumerate(track.position):
                end = track.shown_end(row, shown_ps(engine.words[position].word, owner.name, device.arch))
                found.setdefault(owner.name, []).append(round((end - track.start[row]) / 1000))
    # Pauses: what GpSimd was shown for before descriptors were prebuilt is not added where it makes them.
    assert found["SP"][1:] == [551, 608, 19] and found["Pool"][1:] == [35, 19]


def test_doorbells_of_a_run_take_longer_the_first_time() -> None:
    """As `shown` has them, which asks for each of them; an engine asks only while something takes longer."""
    block = Descriptor(
        source="x", source_offset=0, source_sizes=(4096, 128), source_steps=(1, 4096), target="SB", target_offset=0,
        target_sizes=(4096, 128), target_steps=(1, PARTITION), source_dtype="float32", target_dtype="float32",
    )  # fmt: skip
    words = [trigger(5), isa.Nop(**wait(9)), trigger(5), isa.Nop(**wait(9, 32)), trigger(5), isa.Nop(**wait(9, 48))]
    device = Device("trn2")
    neff = gen2({5: (9, [block])}, words, inputs={"x": ("float32", (128, 1024))}, outputs={}, target="trn2")
    device.load(neff)
    device.set_inputs({"x": np.zeros((128, 1024), np.float32)})
    took = []
    while (event := device.step()) is not None:
        if isinstance(event.instruction, isa.Write):
            took.append(round((event.time_ps - event.issued_ps) / 1000))
    assert took == shown("SP", [TWO] * 3)
