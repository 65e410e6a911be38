"""Moving: completions one by one, by engine, by line, to places and times; breakpoints, ends, Ctrl-C."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.runtime import run
from formats.errors import NotFoundError
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from neurontools.debugger import Session, UsageError

X = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)
WORDS = 10  # of the doubling program, the prelude of the two idle engines included
TRANSFERS = 2


@pytest.fixture
def session(program_file: Path) -> Session:
    """Return a session at the beginning of the doubling program."""
    return Session(program_file, {"x": X}, timing=False)


def example(root: Path, name: str) -> Session:
    """Return a session on an example in assembler text, its inputs zero."""
    path = root / "examples" / name
    return Session(to_neff(parse_program(path.read_text(), name)), timing=False)


def test_every_completion_one_by_one(session: Session) -> None:
    seen = []
    while (stop := session.step()).completions:
        (step,) = stop.steps
        seen.append(step)
    assert [step.number for step in seen] == list(range(WORDS + TRANSFERS))
    assert stop.reason == "finished" and stop.steps == () and session.outcome == "finished"
    assert {step.engine for step in seen} == {"PE", "Activation", "Pool", "DVE", "SP", "qIn", "qOut"}
    add = next(step for step in seen if step.text.startswith("TENSOR_TENSOR"))
    assert (add.core, add.engine, add.pc, add.kind) == (0, "DVE", 2, "instruction")
    assert add.source is not None and (add.source.file, add.source.line) == ("double.s", 17)
    assert [(c.number, c.old, c.new) for c in add.semaphores] == [(6, 0, 1)]
    (write,) = add.writes
    assert (write.space, write.partition, write.partitions, write.byte, write.nbytes) == ("SBUF", 0, 128, 0x5000, 256)
    out = next(step for step in seen if step.engine == "qOut")
    assert (
        out.kind == "dma" and out.writes[0].name == "y" and (out.writes[0].offset, out.writes[0].nbytes) == (0, 32768)
    )
    assert out.source is not None and out.source.line == 20
    trigger = next(step for step in seen if step.engine == "SP" and step.pc == 1)
    assert trigger.text == "PSEUDO_DMA_TRIGGER qIn block_id=0" and "copy 32768 bytes" in (trigger.starts or "")
    assert (session.print_tensor("y") == 2 * X).all()


def test_stepping_changes_nothing(program_file: Path) -> None:
    stepped = Session(program_file, {"x": X})
    while stepped.step(3).completions:
        stepped.info_engines()
        stepped.disassemble("dve")
    whole = run(program_file, {"x": X})
    assert stepped.device.now_ps == whole.time_ps
    assert (stepped.print_tensor("y") == whole.outputs["y"]).all()
    looked = Session(program_file, {"x": X})
    assert looked.continue_().reason == "finished"
    assert looked.device.state_hash() == stepped.device.state_hash()


def test_looking_does_not_change_the_state(session: Session) -> None:
    session.step(4)
    before = session.device.state_hash()
    session.examine("y", 4)
    session.print_tensor("y[0]")
    for look in (session.info_engines, session.info_queues, session.info_semaphores, session.info_memory):
        look()
    session.info_tensors()
    session.state()
    assert session.device.state_hash() == before


def test_stepi_runs_the_others_until_the_engine_has_completed_one(session: Session) -> None:
    assert session.stepi("dve").steps[0].pc == 0
    stop = session.stepi("vector")
    assert stop.reason == "step" and stop.steps[-1].pc == 1 and stop.completions > 1
    assert session.state().focus == (0, "DVE")
    session.stepi()
    assert session.device.cores[0].engines["DVE"].done
    stop = session.stepi()
    assert (stop.reason, stop.completions) == ("engine done", 0)


def test_next_leaves_the_source_line(session: Session) -> None:
    session.focus(0, "dve")
    lines = []
    while session.next().reason == "line":
        source = session.program.source(0, "DVE", session.device.cores[0].engines["DVE"].pc)
        lines.append(source.line if source else None)
        if session.device.cores[0].engines["DVE"].done:
            break
    assert lines == [16, 17, None]
    session.next()  # that engine is done: the focus moves on
    assert session.state().focus[1] != "DVE"


def test_step_count_and_until(session: Session) -> None:
    stop = session.step(4)
    assert [step.number for step in stop.steps] == [0, 1, 2, 3]
    assert session.until("#6").steps[-1].number == 6
    with pytest.raises(UsageError, match="happened already"):
        session.until("#6")
    stop = session.until("act:1")
    assert stop.reason == "until" and stop.ahead is not None and (stop.ahead.engine, stop.ahead.pc) == ("Activation", 1)
    assert not session.breakpoints
    with pytest.raises(UsageError):
        session.step(0)


def test_until_a_time(program_file: Path) -> None:
    session = Session(program_file, {"x": X})
    stop = session.until("1us")
    assert stop.reason == "until" and stop.time_ps <= 10**6 and stop.ahead is not None and stop.ahead.time_ps > 10**6
    assert session.until("1us").completions == 0


@pytest.mark.parametrize(
    ("where", "kind", "engine", "pc"),
    [
        ("dve:2", "pc", "DVE", 2),
        ("DVE:0x2", "pc", "DVE", 2),
        ("nc0 pe:0", "pc", "PE", 0),
        ("double.s:17", "line", "DVE", 2),
        ("double.s:18", "line", "Activation", 0),  # 18 has no word; the next line with one stands for it
        ("sp", "engine", "SP", 0),
        ("tensor_tensor", "opcode", "DVE", 2),
        ("PSEUDO_DMA_TRIGGER", "opcode", "SP", 1),
        ("qOut", "queue", "qOut", 1),
    ],
)
def test_breakpoints_stop_before_the_effect(session: Session, where: str, kind: str, engine: str, pc: int) -> None:
    made = session.break_at(where)
    assert made.kind == kind and made.number == 1
    stop = session.continue_()
    assert (stop.reason, stop.breakpoints) == ("breakpoint", (1,)) and stop.ahead is not None
    assert (stop.ahead.engine, stop.ahead.pc) == (engine, pc)
    assert session.breakpoints[0].hits == 1
    if engine == "DVE" and pc == 2:
        assert not session.device.cores[0].sbuf_written[0, 0x5000]
    if engine == "qOut":
        assert session.tensor("y").unwritten == 128 * 64
    else:
        assert session.state().focus == (0, engine)
    completed = session.step().steps[0]
    assert (completed.engine, completed.pc) == (engine, pc)


def test_a_bare_number_is_a_pc_of_the_focus_engine(session: Session) -> None:
    session.focus(0, "dve")
    assert session.break_at("1").where == "DVE pc 1"


def test_continue_goes_on_from_a_breakpoint_and_tbreak_goes_away(session: Session) -> None:
    session.tbreak("dve:2")
    session.break_at("dve")
    reasons = []
    while (stop := session.continue_()).reason == "breakpoint":
        reasons.append(stop.breakpoints)
    assert reasons == [(2,), (2,), (1, 2)]
    assert [each.number for each in session.breakpoints] == [2] and session.breakpoints[0].hits == 3


def test_disabled_and_deleted_breakpoints_do_not_stop(session: Session) -> None:
    session.break_at("dve:1")
    session.break_at("dve:2")
    session.disable(1)
    assert session.continue_().breakpoints == (2,)
    session.restart()
    session.enable()
    assert session.continue_().breakpoints == (1,)
    assert [each.number for each in session.delete(2)] == [2]
    assert session.continue_().reason == "finished"
    session.delete()
    assert session.info_breakpoints() == ()
    assert session.break_at("pe:0").number == 3
    with pytest.raises(NotFoundError, match="no breakpoint 2"):
        session.delete(2)


def test_breakpoints_stop_the_other_ways_of_moving(session: Session) -> None:
    session.break_at("sp:1")
    assert session.step(20).reason == "breakpoint"
    session.restart()
    assert session.stepi("dve").reason == "step"
    assert session.stepi("dve").reason == "breakpoint"


@pytest.mark.parametrize(
    ("where", "error", "text"),
    [
        ("", UsageError, "break where"),
        ("!", UsageError, "is not an ENGINE:PC"),
        ("pe:x", UsageError, "not a pc"),
        ("pe:7", NotFoundError, "no PE pc 7; it has 0 to 0"),
        ("nc3 pe:0", NotFoundError, "no core 3"),
        ("other.s:3", NotFoundError, "double.s"),
        ("double.s:400", NotFoundError, "last line with any is 21"),
        ("matmul", NotFoundError, "TENSOR_TENSOR"),
    ],
)
def test_breakpoints_that_lead_nowhere(session: Session, where: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        session.break_at(where)
    assert not session.breakpoints


def test_a_fault_is_a_stop_and_the_focus(root: Path) -> None:
    session = example(root, "out_of_bounds.s")
    stop = session.continue_()
    assert stop.reason == "fault" and stop.fault is not None and stop.fault.engine == "DVE"
    assert stop.steps[-1].kind == "fault" and stop.ahead is None
    assert session.outcome == "fault" and session.state().focus == (0, "DVE")
    assert session.step().reason == "fault"


def test_a_breakpoint_on_the_faulting_word_comes_first(root: Path) -> None:
    session = example(root, "out_of_bounds.s")
    session.break_at("dve:2")
    stop = session.continue_()
    assert (stop.reason, stop.breakpoints, session.outcome) == ("breakpoint", (1,), "running")
    assert stop.fault is None and stop.ahead is not None and (stop.ahead.engine, stop.ahead.pc) == ("DVE", 2)
    assert session.continue_().reason == "fault"


def test_a_hang_is_reported_by_the_command_that_meets_it(root: Path) -> None:
    session = example(root, "deadlock.s")
    stop = session.step(8)
    assert stop.reason == "step" and session.outcome == "running"
    stop = session.step()
    assert stop.reason == "hang" and stop.hang is not None and len(stop.hang.waits) == 3
    assert session.outcome == "hang"


class _Interrupting:
    def __init__(self, action: Any, number: int) -> None:
        self.action, self.number = action, number

    def on_event(self, event: Any) -> None:
        if event.number == self.number:
            self.action()


def _raise() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("action", [_raise, lambda: os.kill(os.getpid(), signal.SIGINT)])
def test_ctrl_c_stops_between_two_completions(session: Session, program_file: Path, action: Any) -> None:
    session.device.observers.append(_Interrupting(action, 5))
    before = signal.getsignal(signal.SIGINT)
    stop = session.continue_()
    assert signal.getsignal(signal.SIGINT) is before
    assert (stop.reason, stop.completions) == ("interrupted", 6) and stop.steps[-1].number == 5
    assert session.step().steps[0].number == 6
    assert session.continue_().reason == "finished"
    undisturbed = Session(program_file, {"x": X}, timing=False)
    undisturbed.continue_()
    assert session.device.state_hash() == undisturbed.device.state_hash()


def test_inputs_that_are_missing_are_zeros_and_wrong_ones_are_refused(program_file: Path) -> None:
    session = Session(program_file)
    assert session.notes == ["input x float32[128, 64] was not given; it is all zeros"]
    assert not session.print_tensor("x").any()
    for inputs in ({"z": X}, {"x": X[:4]}, {"x": X.astype(np.float16)}):
        with pytest.raises(ValueError, match=r"no input 'z'|input 'x'"):
            Session(program_file, inputs)
    with pytest.raises(ValueError, match="for trn2"):
        Session(program_file, target="trn1")


def test_seeds_change_the_order_and_repeat(program_file: Path) -> None:
    def order(seed: int | None) -> list[tuple[str, int]]:
        session = Session(program_file, {"x": X}, seed=seed)
        return [(step.engine, step.time_ps) for step in session.step(99).steps]

    assert order(1) == order(1) != order(None)
