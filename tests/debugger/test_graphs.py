"""Compiled graphs in the debugger: breakpoints, places and values by operations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from formats.errors import FormatError, NotFoundError
from formats.neff.operations import parse_operations, write_operations
from neurontools.debugger import Session, UsageError
from neurontools.debugger.commands.carry_out import carry_out
from neurontools.debugger.json_values import plain
from tests.debugger.graph import INPUTS, model, shared

SUM = INPUTS["input0"].astype(np.float64) @ INPUTS["input1"] + INPUTS["input2"]


@pytest.fixture
def session() -> Session:
    """Return a session at the beginning of the model."""
    return Session(model(), INPUTS, timing=False)


def stopped_at(session: Session) -> list[str]:
    """Return the operations before whose words `continue` stops."""
    found = []
    while (stop := session.continue_()).reason == "breakpoint":
        assert stop.ahead is not None
        assert stop.ahead.source is not None
        found.append(stop.ahead.source.operation)
    return found


def test_a_breakpoint_on_an_operation_stops_before_the_first_word_of_each_engine(session: Session) -> None:
    point = session.break_at("%dot.1")
    assert (point.kind, point.where) == ("operation", "%dot.1")
    assert len({engine for _, engine, _ in point.places}) == len(point.places) > 1
    assert stopped_at(session) == ["dot.1"] * len(point.places)


def test_stops_steps_and_where_name_operation_and_line(session: Session) -> None:
    session.break_at("%tanh.1")
    lines = list(carry_out(session, "continue").lines)
    assert any("model.py:6 %tanh.1" in line for line in lines)
    (frame,) = session.backtrace()
    assert (frame.operation, frame.file, frame.line) == ("tanh.1", "model.py", 6)
    assert list(carry_out(session, "where").lines) == ["#0  %tanh.1 at model.py:6"]
    assert plain(session.state())["ahead"]["source"] == {"file": "model.py", "line": 6, "operation": "tanh.1"}


def test_an_operation_without_instructions_says_what_became_of_it(session: Session) -> None:
    with pytest.raises(NotFoundError, match=r"%bb.1 has no instructions of its own: .*%b.1"):
        session.break_at("%bb.1")
    with pytest.raises(NotFoundError, match=r"%cs.1 may be %call.1/cs.1 or %call.2/cs.1"):
        session.break_at("%cs.1")
    with pytest.raises(NotFoundError, match=r"%c\.1 .*|%call.1/c.1 .*0.5 throughout"):
        session.break_at("%call.1/c.1")


@pytest.mark.parametrize("name", ["%nothing.7", "%", "%a b", "%dot.1{0}{1}"])
def test_a_name_that_is_no_operation_is_refused(session: Session, name: str) -> None:
    with pytest.raises((NotFoundError, UsageError)):
        session.break_at(name)
    with pytest.raises((NotFoundError, UsageError)):
        session.tensor(name)


def test_results_are_printed_whole_wherever_they_lie(session: Session) -> None:
    held = {row.name: row.results[0] for row in model().subgraphs[0].operations.rows if row.results}
    assert held["dot.1"].tensor
    assert len(held["add.1"].pieces) > 1  # 211 rows do not fit on 128 partitions
    before = session.tensor("%add.1")
    assert before.unwritten == SUM.size
    assert "not computed yet" in before.note
    session.break_at("%call.1/shift.1")
    while session.continue_().reason == "breakpoint":
        found = session.tensor("%add.1")
        there = ~np.isnan(found.array)
        assert there.sum() == SUM.size - found.unwritten
        np.testing.assert_allclose(found.array[there], SUM[there], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(session.tensor("%dot.1").array, SUM - INPUTS["input2"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(session.tensor("%bb.1[3]").array, INPUTS["input2"])
    assert session.tensor("%call.2/c.1").array == 0.5
    assert "has ended" in session.tensor("%tanh.1").note or "gone" in session.tensor("%tanh.1").note


def test_what_others_have_overwritten_is_gone_and_said_to_be() -> None:
    """A chain of operations over more rows than SBUF holds at once: their tiles are used again."""
    rows, many = 1024, 9
    lines = [f"  v.0 = f32[{rows},2048]{{1,0}} parameter(0)"]
    lines += [f"  v.{n} = f32[{rows},2048]{{1,0}} negate(v.{n - 1})" for n in range(1, many)]
    lines[-1] = lines[-1].replace("  v.", "  ROOT v.", 1)
    text = "HloModule chain\n\nENTRY main {\n" + "\n".join(lines) + "\n}\n"
    session = Session(model(1, text), {"input0": np.ones((rows, 2048), np.float32)}, timing=False)
    session.navigator.continue_()
    found = session.tensor("%v.1")
    assert "gone" in found.note
    assert np.isnan(found.array).sum() == found.unwritten > 0
    kept = found.array[~np.isnan(found.array)]
    np.testing.assert_allclose(kept, -1.0, rtol=1e-5)


def test_info_ops_lists_every_operation_in_the_order_of_the_graph(session: Session) -> None:
    rows = session.info_ops()
    names = [row.name for row in rows]
    assert names.index("dot.1") < names.index("add.1") < names.index("out.1")
    assert {row.name: row.state for row in rows}["dot.1"] == ""
    session.break_at("%out.1")
    session.continue_()
    by_name = {row.name: row for row in session.info_ops()}
    assert by_name["dot.1"].state in ("at", "done")
    assert by_name["bb.1"].state == "-"
    session.delete()
    session.continue_()
    assert {row.state for row in session.info_ops()} == {"done", "-"}
    assert [row.name for row in session.info_ops("model.py:5")] == ["bb.1", "add.1"]
    assert [row.name for row in session.info_ops("%tanh.1")] == ["tanh.1"]
    with pytest.raises(NotFoundError):
        session.info_ops("model.py:999")


def test_a_core_without_a_part_in_an_operation_is_no_obstacle() -> None:
    session = Session(model(2), INPUTS, timing=False)
    for name in ("dot.1", "tanh.1"):
        at_work = {core for core in (0, 1) if name in session.program.graphs.all_words(core)}
        assert {core for core, _, _ in session.break_at(f"%{name}").places} == at_work
        for core in {0, 1} - at_work:
            with pytest.raises(NotFoundError, match="no instructions of its own"):
                session.break_at(f"nc{core} %{name}")
    with pytest.raises(NotFoundError):
        session.break_at("nc7 %dot.1")


def test_values_are_gathered_from_both_cores() -> None:
    neff, inputs = shared()
    session = Session(neff, inputs, timing=False)
    operations = session.program.graphs.of(0)
    assert operations is not None
    held = {row.name: row.results[0] for row in operations.rows if row.results}
    assert {piece.core for piece in held["add.1"].pieces} == {0, 1}
    want = inputs["input0"] @ inputs["input1"] + inputs["input2"]
    session.break_at("%out.1")
    session.continue_()
    found = session.tensor("%add.1")
    assert found.space.startswith("SBUF of nc0 and nc1, ")
    there = ~np.isnan(found.array)
    assert there[:4000].any()
    assert found.unwritten == (~there).sum() > 0
    np.testing.assert_allclose(found.array[there], want[there], rtol=1e-4, atol=1e-5)
    session.delete()
    seen = np.zeros(want.shape, bool)
    while session.outcome == "running":  # what comes and goes: every element is there at some time, and is right then
        session.step(150)
        array = session.tensor("%add.1").array
        there = ~np.isnan(array)
        np.testing.assert_allclose(array[there], want[there], rtol=1e-4, atol=1e-5)
        seen |= there
    assert seen[:4000].any()
    assert seen[4000:].any()


def test_a_program_without_a_graph_says_so(program_file: Path) -> None:
    session = Session(program_file, {}, timing=False)
    for ask in (lambda: session.break_at("%dot.1"), lambda: session.tensor("%dot.1"),
                lambda: session.info_ops("%dot.1")):  # fmt: skip
        with pytest.raises(NotFoundError, match="no graph"):
            ask()
    assert session.info_ops() == ()


def test_the_listing_follows_the_model(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("".join(f"line {n}\n" for n in range(1, 15)))
    file = tmp_path / "model.neff"
    model().save(file)
    session = Session(file, INPUTS, timing=False)
    session.break_at("%tanh.1")
    session.continue_()
    shown = session.list_source()
    assert [row.number for row in shown.rows if "act" in row.engines] == [6]
    assert session.break_at("model.py:7").places


def test_operations_come_back_as_they_were_written() -> None:
    rows = model().subgraphs[0].operations.rows
    assert parse_operations(write_operations(rows), "operations.json").rows == rows


@pytest.mark.parametrize(
    "change",
    [
        (b'"shape":[211,24]', b'"shape":[-1,24]'), (b'"as":"float32"', b'"as":"quux"'), (b'"file":0', b'"file":99'),
        (b'"strides":[24,1]', b'"strides":[24]'), (b'"tiles":[[', b'"tiles":[[7,'), (b'"forms":[[', b'"forms":[[['),
        (b'"shape":[211,24]', b'"shape":[2,2]'), (b'"line":4', b'"line":"4"'), (b'{"files"', b'["files"'),
        (b',0,0,0,0]', b',0,0,0,0,9]'),
    ],
)  # fmt: skip
def test_malformed_operations_are_refused(change: tuple[bytes, bytes]) -> None:
    data = write_operations(model().subgraphs[0].operations.rows)
    assert change[0] in data
    with pytest.raises(FormatError):
        parse_operations(data.replace(*change), "operations.json")
