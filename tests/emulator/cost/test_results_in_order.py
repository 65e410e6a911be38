"""Results of an engine leave in the order of its words: rows of copies, against what captures have."""

from __future__ import annotations

import pytest

from emulator.device import Device
from emulator.timeline.recorder import Recorder
from emulator.timeline.track import EngineTrack
from formats import isa
from formats.dtypes import Dtype
from formats.isa import AccessPattern
from formats.neuron_core import PSUM_BASE
from tests.emulator.dma_programs import gen3

F32, F16 = Dtype.FLOAT32, Dtype.FLOAT16
SBUF_FROM, SBUF_TO = 0x4000, 0x8000


def copy(count: int, dtype: Dtype, *, psum: bool = False, source_step: int = 1, step: int = 1) -> isa.Copy:
    return isa.Copy(
        src=AccessPattern(PSUM_BASE if psum else SBUF_FROM, (source_step, 1, 1, 1), (count, 1, 1, 1)),
        dst=AccessPattern(SBUF_TO, (step, 1, 1, 1), (count, 1, 1, 1)),
        src_dtype=dtype,
        dst_dtype=dtype,
        channels=1,
    )


def ran(engine: str, words: list[isa.Instruction], chip: str = "trn2") -> tuple[list[float], list[float]]:
    """Return how long words take that an engine issues one after the other, and how far they begin apart; ns."""
    device = Device(chip)
    device.load(gen3({engine: words}))
    recorder = Recorder(device)
    device.observers.append(recorder)
    while device.step() is not None:
        pass
    track = next(one for owner, one in recorder.tracks.items() if owner.name == engine and isinstance(one, EngineTrack))
    start, end = track.start[-len(words) :], track.completed[-len(words) :]
    took = [(end[at] - start[at]) / 1000 for at in range(len(words))]
    return took, [(start[at + 1] - start[at]) / 1000 for at in range(len(words) - 1)]


def test_rows_of_copies_from_psum_on_scalar_take_longer_and_longer() -> None:
    """Captured: 265, 270, 284, 299, 311, 324, 338, 351 (fused_bf16_s1024) every 157 ns; of 512, 585 and 590."""
    took, apart = ran("Activation", [copy(128, F32, psum=True)] * 8)
    assert took == pytest.approx([265, 270, 284, 299, 311, 324, 338, 351], rel=0.06)
    assert apart == pytest.approx([157] * 7, rel=0.02)
    took, apart = ran("Activation", [copy(512, F32, psum=True)] * 3)
    assert took == pytest.approx([585, 592, 600], rel=0.02)


def test_results_that_wait_for_a_word_s_time_hold_the_engine_up() -> None:
    took, apart = ran("Activation", [copy(128, F32, psum=True)] * 40)
    through = [sum(apart[:at]) + took[at] for at in range(40)]
    assert through[39] - through[38] == pytest.approx(apart[38], abs=0.1)  # no result waits longer than the one before
    assert took[39] - took[0] == pytest.approx(168, abs=12)  # a word's own time


def test_slow_writes_hold_up_the_word_but_one() -> None:
    """Captured: fp16 to steps of 18 on Vector 716, then 902 to 912 every 546; fp32 to steps of 9 on Scalar 390, 444."""
    took, apart = ran("DVE", [copy(128, F16, psum=True, step=18)] * 4)
    assert took == pytest.approx([716, 908, 908, 908], rel=0.02)
    assert apart == pytest.approx([350, 546, 546], rel=0.03)
    took, apart = ran("Activation", [copy(128, F32, psum=True, step=9)] * 4)
    assert took == pytest.approx([390, 444, 444, 444], rel=0.03)
    assert apart == pytest.approx([178, 232, 232], rel=0.03)


@pytest.mark.parametrize(("engine", "behind", "takes"), [("DVE", 50, 67), ("Activation", 104, 107)])
def test_a_plain_word_completes_behind_the_slow_writes_before_it(engine: str, behind: float, takes: float) -> None:
    """Captured: 128 of fp16 from steps of 9 come 50 ns (Vector) and 104 (Scalar) behind the end of strided writes."""
    took, apart = ran(engine, [*[copy(128, F16, psum=True, step=9)] * 2, copy(128, F16, source_step=9)])
    assert apart[1] + took[2] - took[1] == pytest.approx(takes, abs=1)
    assert took[2] == pytest.approx({"DVE": 449, "Activation": 625}[engine], rel=0.1)
    assert abs(takes - behind) / took[2] < 0.05


def test_words_behind_long_ones_of_their_own_pace_do_not_wait() -> None:
    """From SBUF words are as far apart as their results; the first generation shows none of it."""
    for engine in ("DVE", "Activation"):
        assert len({round(each) for each in ran(engine, [copy(128, F32)] * 6)[0]}) == 1
