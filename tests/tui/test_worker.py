"""The worker thread: commands, questions, frames, pauses."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from formats.errors import NotFoundError
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from neurontools.debugger import Session
from neurontools.tui import worker as worker_module
from neurontools.tui.questions import Engines, Semaphores
from neurontools.tui.worker import Answered, Completed, Crashed, Finished, Fresh, Worker
from tests.tui.driving import open_program

LONG = """
.target trn2
.name long
.engine dve
""" + "    NOP cycle=0\n" * 6000  # fmt: skip


class Ear:
    """Hears what a worker says, and takes every snapshot at once."""

    def __init__(self, session: Session, keep: bool = False) -> None:
        self.heard: queue.Queue[Any] = queue.Queue()
        self.snapshots: list[Any] = []
        self.worker = Worker(session, self._hear)
        self._keep = keep

    def _hear(self, item: Any) -> None:
        if isinstance(item, Fresh) and not self._keep:
            self.snapshots.append(self.worker.take())
        self.heard.put(item)

    def wait(self, kind: type, seconds: float = 20) -> Any:
        """Return the next thing of a kind."""
        end = time.monotonic() + seconds
        while True:
            item = self.heard.get(timeout=max(0.01, end - time.monotonic()))
            assert not isinstance(item, Crashed) or kind is Crashed, item
            if isinstance(item, kind):
                return item

    def carry_out(self, text: str) -> Any:
        """Carry out one line and return what became of it."""
        self.worker.carry_out(text)
        return self.wait(Finished).done


@pytest.fixture(scope="module")
def long_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("long") / "long.neff"
    path.write_bytes(to_neff(parse_program(LONG, "long.s")))
    return path


@pytest.fixture
def ear(double: Session) -> Iterator[Ear]:
    made = Ear(double)
    made.worker.start()
    yield made
    made.worker.stop()


@pytest.fixture
def long_ear(long_program: Path) -> Iterator[Ear]:
    made = Ear(Session(str(long_program)))
    made.worker.start()
    yield made
    made.worker.stop()


def test_a_command_gives_the_lines_that_the_prompt_prints(ear: Ear) -> None:
    done = ear.carry_out("step")
    assert done.name == "step" and done.reason == "step" and not done.error
    assert done.lines[0].startswith("#0 ") and done.lines[-1].startswith("=> ")


def test_a_wrong_command_is_one_line(ear: Ear) -> None:
    assert "no command 'fly'" in ear.carry_out("fly").error
    assert "no engine" in ear.carry_out("stepi tpu").error
    assert ear.carry_out("step").error == ""


def test_questions_are_answered_at_one_moment(ear: Ear) -> None:
    ear.worker.ask((Engines(2), Semaphores()))
    ear.wait(Fresh)
    ear.carry_out("continue")
    ear.wait(Fresh)
    last = ear.snapshots[-1]
    assert last.state.outcome == "finished" and not last.running
    assert all(row.state == "done" for row in last.answers[Engines(2)].rows)
    assert {row.number: row.value for row in last.answers[Semaphores()]}[8] == 16


def test_an_answer_that_cannot_be_given_is_its_error(ear: Ear) -> None:
    @dataclass(frozen=True)
    class Impossible:
        def answer(self, session: Session) -> Any:
            raise NotFoundError("there is none")

    ear.worker.ask((Impossible(),))
    ear.wait(Fresh)
    snapshot = ear.snapshots[-1]
    assert snapshot.get(Impossible(), "default") == "default" and snapshot.error(Impossible()) == "there is none"


def test_one_question_comes_back_to_its_asker(ear: Ear) -> None:
    ear.worker.answer_once(Engines(1), print)
    found = ear.wait(Answered)
    assert found.receive is print and len(found.answer.rows) == 5


def test_completion_knows_commands_and_tensors(ear: Ear) -> None:
    ear.worker.complete("rev")
    assert set(map(str.strip, ear.wait(Completed).words)) >= {"reverse-step", "reverse-stepi", "reverse-continue"}
    ear.worker.complete("print x")
    assert "x" in ear.wait(Completed).words


def test_a_run_ends_where_it_ends_without_a_screen(long_ear: Ear, long_program: Path) -> None:
    alone = Session(str(long_program))
    alone.continue_()
    long_ear.worker.ask((Engines(2),))
    assert long_ear.carry_out("continue").reason == "finished"
    long_ear.wait(Fresh)
    state = long_ear.snapshots[-1].state
    assert (state.events, state.time_ps, state.outcome) == (alone.events, alone.time_ps, "finished")


def test_a_run_is_followed_and_paused(long_ear: Ear) -> None:
    long_ear.worker.rate = 200.0
    long_ear.worker.ask((Engines(2),))
    long_ear.worker.carry_out("continue")
    while not (long_ear.snapshots and long_ear.snapshots[-1].running and long_ear.snapshots[-1].state.events > 10):
        long_ear.wait(Fresh)
    long_ear.worker.pause()
    done = long_ear.wait(Finished).done
    assert done.reason == "interrupted"
    long_ear.wait(Fresh)
    last = long_ear.snapshots[-1]
    assert not last.running and 10 < last.state.events < 6000
    numbers = [each.state.events for each in long_ear.snapshots]
    assert numbers == sorted(numbers) and len(set(numbers)) > 2
    long_ear.worker.rate = 0.0
    assert long_ear.carry_out("continue").reason == "finished"


def test_looking_commands_do_not_wait_for_the_run_and_moving_ones_do(long_ear: Ear) -> None:
    long_ear.worker.rate = 400.0
    long_ear.worker.carry_out("continue")
    while not (long_ear.snapshots and long_ear.snapshots[-1].running):
        long_ear.wait(Fresh)
    long_ear.worker.carry_out("goto start")
    long_ear.worker.carry_out("break dve:5999")
    first = long_ear.wait(Finished).done
    assert first.name == "break" and long_ear.worker.running
    long_ear.worker.rate = 0.0
    names = [long_ear.wait(Finished).done for _ in range(2)]
    assert [(each.name, each.reason) for each in names] == [("continue", "breakpoint"), ("goto", "goto")]


def test_going_back_shows_where_it_begins_and_ends_only(long_ear: Ear) -> None:
    long_ear.worker.ask((Engines(2),))
    assert long_ear.carry_out("continue").reason == "finished"
    long_ear.wait(Fresh)
    seen, end = len(long_ear.snapshots), long_ear.snapshots[-1].state.events
    done = long_ear.carry_out("reverse-continue")
    assert (done.reason, done.value.completions) == ("start", -end)
    long_ear.wait(Fresh)
    assert {each.state.events for each in long_ear.snapshots[seen:]} <= {0, end}
    assert long_ear.snapshots[-1].state.events == 0


@dataclass(frozen=True)
class Counted:
    """A question that counts how often it is answered."""

    answered: list[int] = field(compare=False)

    def answer(self, session: Session) -> int:
        self.answered.append(session.events)
        return session.events


def test_where_nothing_has_moved_only_new_questions_are_answered(ear: Ear) -> None:
    first: list[int] = []
    ear.worker.ask((Counted(first),))
    ear.wait(Fresh)
    ear.worker.ask((Counted(first), Semaphores()))
    ear.wait(Fresh)
    assert len(first) == 1 and Semaphores() in ear.snapshots[-1].answers
    ear.carry_out("step")
    ear.wait(Fresh)
    ear.carry_out("break dve:1")
    ear.wait(Fresh)
    assert first == [0, 1, 1] and ear.snapshots[-1].answers[Counted(first)] == 1


class Clock:
    """A processor and a clock on the wall, of a machine that is `busy` with others that many times as long."""

    def __init__(self, busy: float) -> None:
        self.cpu = self.wall = 0.0
        self._busy = busy

    def work(self, seconds: float) -> None:
        self.cpu += seconds
        self.wall += seconds * self._busy


@pytest.mark.parametrize(
    ("frame", "busy", "share", "each_second"),
    [(0.0002, 1, 0.01, 33), (0.008, 1, 0.08, 9), (0.02, 1, 0.14, 5), (0.008, 3, 0.14, 4), (0.2, 1, 0.14, 0.5)],
)
def test_frames_take_a_small_share_of_a_run(
    monkeypatch: pytest.MonkeyPatch, frame: float, busy: float, share: float, each_second: float
) -> None:
    clock = Clock(busy)
    monkeypatch.setattr(worker_module, "perf_counter", lambda: clock.wall)
    monkeypatch.setattr(worker_module, "thread_time", lambda: clock.cpu)
    session: Any = SimpleNamespace(events=0, post_mortem=False, among=None, state=lambda: clock.work(frame / 2))
    taken: list[float] = []

    def tell(item: Any) -> None:
        taken.append(clock.wall)
        clock.wall += frame / 2 * busy
        worker.take(frame / 2)  # what painting took, on another thread

    worker = Worker(session, tell)
    worker.running = True
    while clock.wall < 20:
        clock.work(0.0001)
        session.events += 1
        assert not worker._look()
    assert len(taken) * frame <= 1.05 * share * clock.cpu
    assert each_second * 0.9 <= len(taken) / clock.wall <= 30 * 1.1


def test_frames_that_nobody_takes_are_not_made(long_program: Path) -> None:
    made = Ear(Session(str(long_program)), keep=True)
    made.worker.start()
    try:
        made.worker.ask((Engines(2),))
        made.wait(Fresh)
        assert made.carry_out("continue").reason == "finished"
        assert made.worker.frames <= 3
    finally:
        made.worker.stop()


def test_commands_of_a_breakpoint_are_carried_out_at_its_stop(ear: Ear) -> None:
    number = ear.carry_out("break dve:1").value.number
    assert not ear.carry_out(f"commands {number}\ninfo queues\nmark here\nend").error
    assert ear.carry_out("continue").reason == "breakpoint"
    assert ear.wait(Finished).done.name == "info"
    assert ear.wait(Finished).done.name == "mark"
    assert "here" in str(ear.carry_out("when").value)


def test_an_error_of_the_program_itself_is_told(double: Session) -> None:
    @dataclass(frozen=True)
    class Wrong:
        def answer(self, session: Session) -> Any:
            raise ZeroDivisionError

    made = Ear(double)
    made.worker.start()
    made.worker.ask((Wrong(),))
    assert isinstance(made.wait(Crashed).error, ZeroDivisionError)
    made.worker.stop()


def test_keys_do_not_queue_behind_a_slow_command(long_program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "STALE", 0.2)
    session = open_program(long_program)
    ear = Ear(session)
    ear.worker.rate = 50.0
    ear.worker.start()
    try:
        assert ear.worker.carry_out("continue", key=True)
        assert ear.worker.carry_out("step", key=True), "who types fast means it"
        end = time.monotonic() + 20
        while ear.worker.carry_out("step", key=True):
            assert time.monotonic() < end
            time.sleep(0.02)
        assert ear.worker.running, "refused while the first one runs"
        assert ear.carry_out("info engines").name == "info", "what is typed is answered while it runs"
        ear.worker.pause()
        done = ear.wait(Finished).done
        while done.name != "continue":
            done = ear.wait(Finished).done
        stood = session.events
        ear.worker.rate = 0.0
        assert ear.carry_out("info engines").name == "info"
        assert session.events == stood, "no step of those before is carried out afterwards"
        assert ear.carry_out("step").name == "step" and session.events == stood + 1
    finally:
        ear.worker.stop()


def test_a_pause_is_heard_before_a_run_begins(long_program: Path) -> None:
    made = Ear(Session(str(long_program)))
    made.worker.carry_out("continue")
    made.worker.carry_out("info engines")
    made.worker.pause()
    made.worker.start()
    try:
        assert made.wait(Finished).done.text == "info engines"
        assert made.carry_out("step").value.completions == 1
    finally:
        made.worker.stop()


def test_names_that_a_person_made_wait_for_the_run(long_ear: Ear) -> None:
    long_ear.carry_out("alias forward = step 3")
    long_ear.carry_out("define twice\nstep\nstep\nend")
    worker = long_ear.worker
    assert worker.repeats("forward") and not worker.repeats("twice")
    worker.rate = 5.0
    worker.carry_out("continue")
    while not worker.running:
        time.sleep(0.01)
    worker.carry_out("forward")
    worker.carry_out("twice")
    worker.carry_out("info queues")
    assert long_ear.wait(Finished).done.text == "info queues", "what only looks does not wait"
    worker.pause()
    assert long_ear.wait(Finished).done.reason == "interrupted"
    assert long_ear.carry_out("state").error == ""


def test_a_mistake_ends_a_script_and_a_stop_the_commands_before(long_ear: Ear, tmp_path: Path) -> None:
    script = tmp_path / "lines.txt"
    script.write_text("step\nfly\nstep\n")
    said = [long_ear.carry_out(f"source {script}").text, *(long_ear.wait(Finished).done.text for _ in range(2))]
    assert [said[1:], long_ear.carry_out("state").text] == [["step", "fly"], "state"]
    long_ear.carry_out("break dve if pc < 6")
    long_ear.carry_out("commands\ncontinue\nstate\nend")
    seen = [long_ear.carry_out("continue")]
    while seen[-1].name != "state":
        seen.append(long_ear.wait(Finished).done)
    assert [each.text for each in seen if each.stopped_at] == ["continue"] * (len(seen) - 2), "one state, at the end"
    assert len(seen) > 3


def test_what_cannot_be_completed_is_not(double: Session) -> None:
    made = Ear(Session(double.neff, journal_bytes=0))
    made.worker.start()
    made.worker.complete("goto ")
    assert made.wait(Completed).words == ()
    made.worker.stop()
