"""One diagnosis: live `why`, `core why`, synccheck and triage give one hang the same cause in the same words."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, get_args

import pytest

from emulator.checks import KINDS
from emulator.diagnosis.causes import BARRIER_WORD, Cause
from emulator.diagnosis.notes import graph_of
from emulator.diagnosis.states import EngineState, recorded_state, state_of
from emulator.runtime import run
from formats import isa
from formats.core import open_core
from formats.nrt.names import FileName
from formats.times import duration
from neurontools.core.why import CauseName, explained
from neurontools.debugger import Session
from neurontools.debugger.view import why_lines
from neurontools.triage import store
from neurontools.triage.reading import read_rank
from tests.checks.support import assembled
from tests.emulator.streams import device_with
from tests.faults.assembled import INPUTS, PLANTED, planted
from tests.faults.kernels import PLANTED as KERNELS
from tests.faults.model import Program


class Case(NamedTuple):
    """A hang: the cause of the wait of one engine, and where it stands."""

    cause: Cause
    core: int
    engine: str
    program: Program


def _program(*changes: tuple[str, str]) -> Program:
    return Program(assembled(planted(changes)), INPUTS)


def _planted(name: str) -> Program:
    (one,) = (each for each in (*PLANTED, *KERNELS) if each.name == name)
    return one.fault()[0]


CASES = {
    "cycle": lambda: Case(Cause.DEADLOCK, 0, "DVE", _planted("two engines wait for each other")),
    "behind a cycle": lambda: Case(Cause.BLOCKED, 0, "SP", _planted("two engines wait for each other")),
    "waits for itself": lambda: Case(Cause.DEADLOCK, 0, "PE", _planted("an engine that waits for itself")),
    "nothing signals": lambda: Case(Cause.NEVER_SIGNALLED, 0, "DVE", _planted("nothing signals")),
    "nobody sets an event": lambda: Case(Cause.NEVER_SIGNALLED, 0, "SP", _planted("an event that nobody sets")),
    "too few signals": lambda: Case(Cause.NEVER_MET, 0, "Activation", _planted("too few signals")),
    "jumped over": lambda: Case(Cause.OVERSHOOT, 0, "Activation", _planted("an equality that is jumped over")),
    "barrier": lambda: Case(Cause.BARRIER, 0, "Pool", _planted("one core skips a barrier")),
    "behind a fault": lambda: Case(Cause.FAULT, 0, "Activation", _program(("src1=fp32@0x6000", "src1=fp32@0x37ff0"))),
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_cause_in_the_same_words(name: str, tmp_path: Path) -> None:
    case = CASES[name]()
    program = case.program
    session = Session(program.neff, inputs=dict(program.inputs))
    session.continue_()
    live = session.why(case.engine, case.core)
    assert live.report is not None and live.state == "wait"
    (wait,) = live.report.waits
    assert wait.cause is case.cause and wait.verdict and wait.hint
    line = f"    {wait.cause}: {wait.verdict}"
    assert line in list(why_lines(live))

    file = tmp_path / str(FileName("core", "i-1", 1, 1, 0, 0, 0))
    session.save_core(file, "light")
    with_notes = open_core(file)
    found = explained(with_notes)
    (row,) = (each for each in found.waits if (each.core, each.engine) == (case.core, case.engine))
    assert (row.cause, row.verdict, row.hint) == (wait.cause, wait.verdict, wait.hint)
    report = graph_of(with_notes).text() if session.device.hang is not None else line
    assert line in report.splitlines()

    result = run(program.neff, program.inputs, checks=("sync",))
    finding = next(f for f in result.findings
                   if f.kind == case.cause and (f.site.core, f.site.engine) == (case.core, case.engine))  # fmt: skip
    assert finding.message.endswith(f": {wait.verdict}") and finding.hint == wait.hint

    rank = read_rank(str(tmp_path), store.files(str(tmp_path)))
    if case.cause is Cause.FAULT:
        assert rank.kind == "oob" and f"nc0 {rank.engine} pc {rank.pc}" in wait.verdict
    elif case.cause is Cause.BLOCKED:
        assert rank.cause == Cause.DEADLOCK, "what it is blocked by explains it"
    else:
        cause, verdict, hint = next((each.cause, each.verdict, each.hint) for each in found.waits
                                    if each.engine == rank.engine and each.pc == rank.pc)  # fmt: skip
        assert (rank.cause, rank.hint) == (cause, hint) and rank.message.endswith(f": {verdict}")
        assert rank.cause == case.cause or name == "barrier"


def test_the_lists_of_causes_agree() -> None:
    assert set(get_args(CauseName)) == {cause.value for cause in Cause}
    assert {cause.value for cause in Cause} - {"transfer", "running"} <= {
        kind.split(":")[1] for kind in KINDS if kind.startswith("synccheck:")}  # fmt: skip
    assert isa.CoreBarrier.NAME == BARRIER_WORD


def test_states_of_engines() -> None:
    streams: dict[str, list[isa.Instruction | str]] = {
        "PE": ["NOP S[9]>=1 cycle=0"], "SP": ["NOP cycle=0"], "DVE": ["NOP cycle=0"] * 3,
        "Pool": [isa.Nop(wait_mode=6)],
    }  # fmt: skip
    device = device_with(streams)
    engines = device.cores[0].engines
    assert {state_of(device, engine) for name, engine in engines.items() if name in streams} == {EngineState.RUN}
    assert state_of(device, engines["Activation"]) is EngineState.DONE
    device.step()
    assert device.outcome == "fault"
    states = {name: state_of(device, engine).value for name, engine in engines.items()}
    assert states == {"PE": "wait", "Activation": "done", "Pool": "fault", "DVE": "stopped", "SP": "stopped"}
    for kept, shown in (("idle", "stopped"), ("running", "stopped"), ("waiting", "wait"), ("done", "done"),
                        ("no such", "stopped")):  # fmt: skip
        assert recorded_state(device, 0, "SP", kept).value == shown


def test_a_fault_at_completion_signals_nothing() -> None:
    """The word has left the engine, and yet what it would have signalled is still to come, and never will."""
    read = "TENSOR_LOAD addr=uint32@0x7fff000000[1,1][1,1] data=$R[1]"
    device = device_with({"SP": [read.replace("addr", "S[5]++@complete addr")], "PE": ["NOP S[5]>=1 cycle=0"]})
    device.run()
    assert device.fault is not None and device.fault.engine == "SP"
    from emulator.diagnosis.explain import explain

    (wait,) = explain(device, "fault").waits
    assert wait.cause is Cause.FAULT and [signal.state for signal in wait.could_signal] == ["faulted"]


@pytest.mark.parametrize(("time_ps", "text"), [
    (0, "0 ps"), (999, "999 ps"), (64_000, "64.000 ns"), (1_763_979, "1.764 us"), (2_500_000_000, "2.500 ms"),
    (3 * 10**12, "3.000 s"),
])  # fmt: skip
def test_times(time_ps: int, text: str) -> None:
    assert duration(time_ps) == text


def test_times_in_reports_have_units() -> None:
    device = device_with({"PE": ["NOP S[9]>=1 cycle=0"], "SP": ["NOP cycle=100"]})
    device.run()
    assert device.hang is not None and device.now_ps > 1000
    assert device.hang.text().startswith(f"deadlock at {duration(device.now_ps)}: ") and " ns" in device.hang.text()
