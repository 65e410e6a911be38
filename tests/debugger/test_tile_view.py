"""A tensor in figures, a byte and what is known of it, HBM by variables, and the timeline in columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.dtypes import Dtype
from formats.errors import NotFoundError
from formats.regions import Region
from neurontools.debugger import Session, UsageError
from neurontools.debugger.opening import open_session
from neurontools.debugger.spans import _Strips, shares
from neurontools.debugger.tile_view import BINS, statistics_of
from neurontools.program.configuration import RunConfiguration


@pytest.fixture
def attention(root: Path) -> Session:
    """Return a session at the beginning of the attention example, recording."""
    return open_session(root / "examples" / "attention.py")


# --- tensors --------------------------------------------------------------------------------------------------------


def test_figures_leave_out_what_is_not_there() -> None:
    array = np.array([1, -3, np.nan, np.inf, 0, 7], np.float32)
    written = np.array([True] * 5 + [False])
    found = statistics_of(array, written)
    assert (found.elements, found.unwritten, found.nan, found.infinite, found.zeros) == (6, 1, 1, 1, 1)
    assert (found.least, found.largest) == (-3, 1)
    assert found.mean == pytest.approx(-2 / 3) and found.deviation == pytest.approx(np.std([1, -3, 0]))
    assert sum(found.bins) == 3 and found.bins[0] == found.bins[-1] == 1
    nothing = statistics_of(array, np.zeros(6, np.bool_))
    assert nothing.least is None and nothing.unwritten == 6 and sum(nothing.bins) == 0
    alone = statistics_of(np.full(5, 2.5), np.ones(5, np.bool_))
    assert alone.bins[BINS // 2] == 5 and alone.deviation == 0


def test_a_tile_is_what_print_says(attention: Session) -> None:
    attention.goto("#40")
    queries = attention.print_tensor("queries")
    found = attention.inspector.view_tensor("queries", None, (3, 5, 4, 6), (8, 16))
    assert (found.dtype, found.shape, found.rows, found.columns) == ("float32", (64, 256), 64, 256)
    np.testing.assert_array_equal(found.part, queries[3:7, 5:11])
    assert found.written.all()
    assert found.statistics.least == queries.min() and found.statistics.largest == queries.max()
    np.testing.assert_allclose(found.heat, np.abs(queries).reshape(8, 8, 16, 16).max(axis=(1, 3)))
    assert not found.holes.any()
    part = attention.inspector.view_tensor("queries[2:4]", Dtype.BFLOAT16)
    np.testing.assert_array_equal(part.part, queries[2:4].view(ml_dtypes.bfloat16)[:, :8])
    assert part.shape == (2, 512) and part.selection == "[2:4]"
    with pytest.raises(UsageError):
        attention.inspector.view_tensor("queries[0, 0:1]", Dtype.INT64)
    with pytest.raises(NotFoundError):
        attention.inspector.view_tensor("nothing")


def test_what_is_not_written_is_marked(attention: Session) -> None:
    found = attention.inspector.view_tensor("queries", None, (0, 0, 2, 2), (2, 2))
    assert not found.written.any() and found.statistics.unwritten == found.statistics.elements
    assert np.isnan(found.heat).all() and not found.holes.any(), "what fresh memory holds is no NaN of the program"


def test_without_a_name_it_is_the_tile_written_last(attention: Session) -> None:
    with pytest.raises(NotFoundError):
        attention.inspector.view_tensor("")
    attention.goto("#9")
    assert attention.inspector.view_tensor("").name == "queries"
    attention.goto("#18")
    assert attention.inspector.view_tensor("").name == "largest"


# --- bytes ----------------------------------------------------------------------------------------------------------


def test_facts_of_a_byte(attention: Session) -> None:
    attention.goto("#40")
    found = attention.inspector.facts(Region("SBUF", 0, 3, 1, 0x4000 + 8, 4))
    assert (found.tile, found.dtype, found.element) == ("queries", "float32", (3, 2))
    assert found.value == attention.print_tensor("queries")[3, 2] and found.written == 4
    last = attention.last_write("sbuf:3:0x4008, 4")
    assert (found.number, found.time_ps, found.owner) == (last.number, last.time_ps, (0, "qSPDynamicHW", 2, "dma"))
    assert found.text == last.text and found.source == last.source


def test_facts_name_the_last_writer_of_many_bytes(attention: Session) -> None:
    for event in (12, 40, 22, 60, 30):
        attention.goto(f"#{event}")
        for byte, partitions, nbytes in ((0x4000, 128, 8192), (0x4A00, 1, 4), (0x4A40, 64, 256), (0x9000, 2, 64)):
            found = attention.inspector.facts(Region("SBUF", 0, 0, partitions, byte, nbytes))
            writers = [e.number for e in attention.journal.log for r in e.regions
                       if r.space == "SBUF" and r.byte < byte + nbytes and r.byte + r.nbytes > byte]  # fmt: skip
            assert found.number == (max(writers) if writers else None), (event, hex(byte))


def test_facts_outside_of_a_memory(attention: Session) -> None:
    for region in (Region("SBUF", 0, 127, 2, 0, 1), Region("HBM", 0, 0, 1, 0, 1), Region("PSUM", 0, 0, 1, 16384, 1)):
        with pytest.raises(NotFoundError):
            attention.inspector.facts(region)


def test_variables_know_their_parts(attention: Session) -> None:
    attention.goto("end")
    found = {item.name: item for item in attention.inspector.variables(4)}
    assert found["q_t"].strip == (1, 1, 1, 1) and found["q_t"].kind == "input"
    assert found["out"].written == found["out"].nbytes == 256 * 64 * 4
    attention.goto("#55")
    half = {item.name: item for item in attention.inspector.variables(4)}["out"]
    assert half.strip == (1, 1, 0, 0) and half.written == half.nbytes // 2
    assert list(found) == [row.name.removeprefix("sg00/") for row in attention.info_memory() if row.space == "HBM"]


# --- time -----------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 90), st.integers(0, 25)), max_size=12),
    st.integers(0, 40), st.integers(1, 9), st.integers(1, 12),
)  # fmt: skip
def test_shares_are_those_of_brute_force(spans: list[tuple[int, int]], first: int, step: int, columns: int) -> None:
    busy = np.zeros(400)
    for start, length in spans:
        busy[start : start + length] = 1
    wanted = busy[first : first + step * columns].reshape(columns, step).mean(axis=1)
    start = np.array([s for s, _ in spans], np.int64)
    end = np.array([s + n for s, n in spans], np.int64)
    np.testing.assert_allclose(shares(start, end, first, step, columns), wanted, atol=1e-6)


def busy_total(session: Session, end_ps: int) -> dict[str, float]:
    """Return how long each engine and queue was busy, from columns."""
    found = session.inspector.timeline.spans(0, -(-end_ps // 100), 100)
    return dict(zip((o.name for o in found.owners), (found.busy.sum(axis=1) * found.step_ps).tolist(), strict=True))


def test_the_timeline_knows_what_was_taken_back(attention: Session) -> None:
    attention.goto("end")
    end = attention.time_ps
    whole = attention.inspector.timeline.spans(0, -(-end // 100), 100)
    assert whole.known_ps == whole.now_ps == end
    assert int(whole.completed.sum()) == sum(e.kind in ("instruction", "dma") for e in attention.journal.log)
    for event in (20, 60, 3):
        attention.goto(f"#{event}")
        attention.step(2)
        found = attention.inspector.timeline.spans(0, -(-end // 100), 100)
        assert found.known_ps == end and found.now_ps == attention.time_ps
        np.testing.assert_allclose(found.busy, whole.busy)
        np.testing.assert_array_equal(found.completed, whole.completed)
    assert attention.inspector.timeline.known_ps == end


@pytest.mark.parametrize("timing", [True, False])
def test_columns_kept_from_look_to_look_are_those_of_a_first_look(root: Path, timing: bool) -> None:
    session = open_session(root / "examples" / "attention.py", RunConfiguration(timing=timing))
    session.goto("end")
    end = session.time_ps
    session.restart()
    views = [(0, -(-end // 90), 90), (end // 3, max(end // 200, 1), 50), (0, max(end // 7, 1), 3)]
    for view in views:
        session.restart()
        session.record()
        looks = []
        for event in (1, 2, 9, 10, 31, 30, 5, 44, 45, 66, 67):
            session.goto(f"#{event}")
            kept = session.inspector.timeline.spans(*view)
            first = _Strips(kept.owners, *view)
            first.take(session.inspector.timeline._rows)
            np.testing.assert_array_equal(kept.busy, first.busy)
            np.testing.assert_array_equal(kept.waiting, first.waiting)
            np.testing.assert_array_equal(kept.completed, first.completed)
            looks.append(int(kept.completed.sum()))
        assert looks == sorted(looks) and looks[0] < looks[-1], "what is taken back is still shown"


def test_busy_time_is_that_of_the_recorded_rows(attention: Session) -> None:
    attention.goto("end")
    recorder: Any = next(o for o in attention.device.observers if type(o).__name__ == "Recorder")
    total = busy_total(attention, attention.time_ps)
    for owner, track in recorder.tracks.items():
        covered = np.zeros(attention.time_ps + 1, np.int8)
        for start, end in zip(track.start, track.completed, strict=False):
            covered[start:end] = 1
        assert total[owner.name] == pytest.approx(int(covered.sum()), rel=1e-4)


def test_moments_name_what_an_engine_was_at(attention: Session) -> None:
    attention.goto("#40")
    for step in [entry for entry in attention.journal.log if entry.kind == "instruction"][5::7]:
        owner = next(o for o in attention.inspector.timeline.spans(0, 1, 1).owners if o.name == step.engine)
        found = attention.inspector.timeline.activity(owner, step.time_ps - 1)
        assert found is not None
        assert found.start_ps <= step.time_ps - 1
        assert found.text == attention.program.text(0, step.engine, found.pc)
    nobody = next(o for o in attention.inspector.timeline.spans(0, 1, 1).owners if o.name == "qPoolDynamic")
    assert attention.inspector.timeline.activity(nobody, attention.time_ps) is None


def test_recording_begins_once(attention: Session) -> None:
    before = len(attention.device.observers)
    attention.record()
    attention.inspector.timeline.spans(0, 1000, 10)
    assert len(attention.device.observers) == before
