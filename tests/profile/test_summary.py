"""The figures of a profile add up, and say what NumPy would."""

from __future__ import annotations

from functools import cache

import pytest

from emulator.timeline.measure import measure
from neurontools.profile.compare import deltas
from neurontools.profile.results import Profile
from neurontools.profile.rows import Timeline
from neurontools.profile.summary import summarise, union_ps
from tests.timeline.support import CASES, case


@cache
def profiled(name: str) -> tuple[Timeline, Profile]:
    timeline = Timeline(measure(*case(name), memory=True))
    return timeline, summarise(timeline, name)


@pytest.mark.parametrize("name", CASES)
def test_the_time_of_every_engine_adds_up(name: str) -> None:
    _, found = profiled(name)
    for one in found.engines:
        assert one.busy_ns + one.wait_ns + one.idle_ns == pytest.approx(found.total_time_ns, abs=0.002)
        assert min(one.busy_ns, one.wait_ns, one.idle_ns) >= 0
        assert sum(wait.ns for wait in one.waits) == pytest.approx(one.wait_ns, abs=0.01)


@pytest.mark.parametrize("name", CASES)
def test_every_wait_has_a_reason(name: str) -> None:
    timeline, found = profiled(name)
    waited = sum(1 for track in timeline.engines for ps in track.waited if ps)
    assert len(timeline.waits) == waited > 0
    reasons = {wait.reason for one in found.engines for wait in one.waits}
    assert reasons <= {"semaphore", "barrier", "in flight"}


@pytest.mark.parametrize("name", CASES)
def test_the_critical_path_adds_up(name: str) -> None:
    _, found = profiled(name)
    path, total = found.critical_path, found.total_time_ns
    assert path.total_ns == total
    for part in ("kinds", "owners", "lines"):
        assert sum(one.ns for one in getattr(path, part)) == pytest.approx(total, abs=0.01)
    assert sum(one.critical_ns for one in found.lines) == pytest.approx(total, abs=0.01)


def test_work_of_a_matmul() -> None:
    _, found = profiled("tiles")
    roof, dma = found.roofline, found.dma
    assert roof.model_flops == 2 * 256 * 256 * 1024
    assert roof.hardware_flops == roof.model_flops  # bf16: one pass
    # Every tile is loaded anew: 2 x 2 x 2 of 128 x 128 and of 128 x 512, and stored in fp32.
    loads = 8 * (128 * 128 + 128 * 512) * 2
    assert dma.hbm_read_bytes == loads and dma.hbm_write_bytes == 256 * 1024 * 4
    assert roof.arithmetic_intensity == round(roof.model_flops / (loads + 256 * 1024 * 4), 3)
    assert roof.ridge == pytest.approx(109.84)  # 78.64 TFLOP/s over 716 GB/s, hardware.md 2.1
    seconds = found.total_time_ns / 1e9
    assert roof.mfu_percent == pytest.approx(100 * roof.model_flops / seconds / 78.6432e12, abs=0.01)
    assert found.is_simulation is True
    flat = found.summary
    assert flat.total_time == seconds and flat.model_flops == roof.model_flops
    assert flat.tensor_engine_instruction_count == found.engines[0].instruction_count


def test_fp32_counts_its_passes() -> None:
    _, found = profiled("matmul")
    roof = found.roofline
    assert roof.model_flops == 2 * 256 * 128 * 256 and roof.hardware_flops == 4 * roof.model_flops


def test_union() -> None:
    assert union_ps([(0, 10), (5, 15), (20, 30), (22, 25)]) == 25
    assert union_ps([]) == 0


def test_equal_runs_have_no_deltas() -> None:
    _, found = profiled("softmax")
    assert deltas(found.lines, found.lines) == ()
    changed = [found.lines[0]._replace(busy_ns=found.lines[0].busy_ns + 5.0), *found.lines[1:]]
    made = deltas(changed, found.lines)
    assert [(one.line, one.busy_delta_ns) for one in made] == [(changed[0].line, 5.0)]


def test_of_a_trigger_on_gpsimd_the_word_is_active_and_the_making_of_descriptors_is_not() -> None:
    timeline, found = profiled("softmax")
    track = next(track for track in timeline.engines if track.owner.name == "Pool")
    (pool,) = (one for one in found.engines if one.name == "Pool")
    triggers = [row for row in range(len(track)) if timeline.opcode(track.owner, row) == "DMA_DIRECT2D"]
    others = sum(track.completed[row] - track.start[row] for row in range(len(track)) if row not in triggers)
    # The first trigger, and any that is not right behind another, is shown for 34.7 ns, one right behind for 53.
    shown = sum((track.shown_end(row, 0) - track.start[row]) / 1000 for row in triggers)
    assert 34.7 * len(triggers) <= shown <= 34.7 + 53 * (len(triggers) - 1)
    assert triggers and pool.active_ns == pytest.approx(shown + others / 1000)
    assert pool.busy_ns > 500 * len(triggers)  # it holds the engine all the same
    (row,) = (one for one in found.opcodes if (one.engine, one.opcode) == ("gpsimd", "DMA_DIRECT2D"))
    assert row.active_time_ns == pytest.approx(shown)
