"""The thread that owns the session: runs commands, answers the panes' questions, and follows a run in frames.

The user interface never waits for it. While the device moves, frames are taken between two completions, at most thirty
a second and only so many that answering and painting take a small share of the processor: the emulator keeps its speed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from queue import Empty, SimpleQueue
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Any

from formats.errors import NeuronError
from formats.named_tuple import NamedTuple
from neurontools.debugger.scripting import MOST_LINES
from neurontools.tui.carry_out import Done, carry_out, only_looks, repeats
from neurontools.tui.pane import Answer, Question, Snapshot

if TYPE_CHECKING:
    from neurontools.debugger import Session

__all__ = ["STALE", "Answered", "Completed", "Crashed", "Finished", "Fresh", "Said", "Worker"]

_FRAME = 1 / 30  # seconds between frames at least
_SHARE = 0.08  # of the processor time of a run that frames may take
_MOST = 0.14  # where that gives fewer than one in `_LIVE` seconds
_LIVE = 0.2
_SLOWEST = 2.0  # seconds between frames at most
STALE = 0.4  # seconds that a key waits for its turn at most
_FIRST = 0.1  # seconds that a command may run before its first frame: shorter ones do not flicker


class Fresh(NamedTuple):
    """There is a new snapshot: `Worker.take` returns it."""


class Finished(NamedTuple):
    """A command has ended."""

    done: Done


class Completed(NamedTuple):
    """What the last word of a command line may become."""

    line: str
    words: tuple[str, ...]


class Answered(NamedTuple):
    """The answer to one question of `Worker.answer_once`, for whoever asked it."""

    receive: Callable[[Any], object]
    answer: object


class Crashed(NamedTuple):
    """The worker has met an error of its own and ended."""

    error: BaseException


Said = Fresh | Finished | Completed | Answered | Crashed


class _Line(NamedTuple):
    text: str
    quiet: bool
    number: int  # of what was asked for, to tell what a pause came after; that of the line that set this one off
    set_off: str = ""  # by a "stop" at a breakpoint with commands, or by a "script"
    given: float = 0.0  # when a key asked for it; what has waited long by then is not what the person means any more


class _Complete(NamedTuple):
    line: str


class _Ask(NamedTuple):
    pass


class _Once(NamedTuple):
    question: Question[object]
    receive: Callable[[Any], object]


class _End(NamedTuple):
    pass


_Asked = _Line | _Complete | _Ask | _Once | _End


class Worker:
    """Owns `session` on a thread of its own; `tell` takes what it has to say and may be called from any thread.

    `rate` bounds completions per second, 0 does not.
    """

    def __init__(self, session: Session, tell: Callable[[Said], object]) -> None:
        self.rate = 0.0
        self.frames = 0
        self.running = False
        self._first, self._tell = session, tell
        self._inbox: SimpleQueue[_Asked] = SimpleQueue()
        self._backlog: list[_Line] = []
        self._followed = 0  # lines of scripts and breakpoints since the last one that a person gave
        self._questions: tuple[Question[object], ...] = ()
        self._latest: Snapshot | None = None
        self._untaken = False
        self._pausing = threading.Event()
        self._paint_seconds = 0.0
        self._next_frame = self._due = 0.0
        self._framed = self._spent = 0.0  # when the last frame was taken, and its processor seconds
        self._ran = 0.0  # processor time of this thread after it
        self._standing = False  # no command has run since the last frame
        self._events = -1
        self._began = 0.0
        self._asked = False
        self._given = self._served = 0
        self._paused = 0  # what had been asked for when somebody paused last
        self._thread = threading.Thread(target=self._run, name="session", daemon=True)

    @property
    def _session(self) -> Session:
        """Return the session that commands go to: of several ranks that of the selected one."""
        among = self._first.among
        found: Session = self._first if among is None else among.sessions[among.selected]
        return found

    # --- called by the user interface --------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop what runs, and end the thread."""
        self.pause()
        self._inbox.put(_End())
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def carry_out(self, text: str, quiet: bool = False, *, key: bool = False) -> bool:
        """Run a command line after those before it; a `quiet` one leaves no line in the log.

        What a `key` asks for is not kept behind a command that is slow: return whether it was taken.
        """
        now = perf_counter()
        if key and self.running and now - self._began > STALE:
            return False
        self._put(_Line(text, quiet, self._given + 1, given=now if key else 0.0))
        return True

    def complete(self, line: str) -> None:
        """Say what the last word of a line may become."""
        self._put(_Complete(line))

    def ask(self, questions: tuple[Question[object], ...]) -> None:
        """Answer these questions from now on, and right now."""
        self._questions = questions
        if not self._asked:
            self._asked = True
            self._put(_Ask())

    def answer_once(self, question: Question[Answer], receive: Callable[[Answer | NeuronError], object]) -> None:
        """Answer one question; what it gives, or its NeuronError, comes back with `receive` in `Answered`."""
        self._put(_Once(question, receive))

    def pause(self) -> None:
        """Stop the command that moves the device, and forget those waiting after it, or about to begin."""
        self._paused = self._given
        self._pausing.set()

    def repeats(self, text: str) -> bool:
        """Return whether an empty line repeats a line."""
        return repeats(self._session, text)

    def _put(self, item: _Asked) -> None:
        self._given += 1
        self._inbox.put(item)

    @property
    def idle(self) -> bool:
        """Return whether everything asked for has been done, and the last snapshot taken."""
        return self._given == self._served and not (self._backlog or self.running or self._untaken)

    def take(self, paint_seconds: float = 0.0) -> Snapshot | None:
        """Return the newest snapshot; `paint_seconds` is what painting the one before took."""
        self._paint_seconds = paint_seconds
        self._untaken = False
        return self._latest

    # --- the thread --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        from neurontools.debugger.interrupt import looked_after  # deferred: start-up

        try:
            with looked_after(self._look):
                while not self._next():
                    pass
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            self._tell(Crashed(error))

    def _next(self) -> bool:
        """Do what waited for a run to end, else what comes next; return whether that was the last thing."""
        if self._backlog:
            return self._serve(self._backlog.pop(0))
        last = self._serve(self._inbox.get())
        self._served += 1
        return last

    def _serve(self, item: _Asked) -> bool:
        """Do one thing; return whether it was the last."""
        if isinstance(item, _End):
            return True
        if isinstance(item, _Ask):
            self._asked = False
            self._frame()
        elif isinstance(item, _Complete):
            self._tell(Completed(item.line, self._words(item.line)))
        elif isinstance(item, _Once):
            self._tell(Answered(item.receive, self._answer(item.question)))
        elif isinstance(item, _Line) and not (item.given and perf_counter() - item.given > STALE):
            self._move(item)
        return False

    def _move(self, item: _Line) -> None:
        self._pausing.clear()
        # Asked behind it: whoever pauses in between is heard there, or by the look up from the run.
        if item.number <= self._paused and not only_looks(self._session, item.text):
            return
        now = perf_counter()
        self._next_frame, self._due, self._framed = now + _FIRST, now, now
        self._began = now
        self._ran, self._spent = thread_time(), 0.0
        self._standing = False
        self._events = self._session.events
        self.running = True
        done = carry_out(self._session, item.text, item.quiet)
        self.running = False
        if self._pausing.is_set():
            self._backlog.clear()
        # As at the prompt: a mistake ends scripts, a stop what was left of the commands of the stop before.
        ended = ("script", "stop") if done.error else ("stop",) if done.stopped_at else ()
        self._backlog = [each for each in self._backlog if each.set_off not in ended]
        self._followed = self._followed + 1 if item.set_off else 0
        if self._followed <= MOST_LINES:  # a command of one's own may call itself
            self._backlog[:0] = [
                *(_Line(text, False, item.number, "stop") for text in self._session.commands_of(done.stopped_at)),
                *(_Line(text, False, item.number, "script") for text in done.follow),
            ]
        self._tell(Finished(done))
        self._frame()

    def _words(self, line: str) -> tuple[str, ...]:
        from neurontools.debugger.commands.table import completions  # deferred: start-up

        return tuple(completions(self._session, line))

    def _look(self) -> bool:
        """Look up from a run, between two completions; return whether to stop it."""
        if not self.running:
            return False  # an answer that executes something
        if self._pausing.is_set():
            return True
        # A command that goes back reports nothing until it is there: the session cannot be read meanwhile.
        if self._session.events == self._events:
            return False
        self._events = self._session.events
        if self.rate > 0:
            self._due = max(self._due + 1 / self.rate, perf_counter() - 1)
            while (left := self._due - perf_counter()) > 0:
                self._between()
                self._ran -= min(left, _FRAME)  # the processor is free meanwhile
                if self._pausing.wait(min(left, _FRAME)):
                    return True
        self._between()
        return False

    def _between(self) -> None:
        among = self._first.among
        with nullcontext() if among is None else among.still():
            self._between_completions()

    def _between_completions(self) -> None:
        now = perf_counter()
        if now < self._next_frame:
            return
        # On a machine that others use too, the run has had less of the processor than time has gone by.
        ran = thread_time() - self._ran
        left = min(self._spent / _SHARE - ran, max(self._spent / _MOST - ran, self._framed + _LIVE - now))
        if left > 0 and now < self._framed + _SLOWEST:
            self._next_frame = now + left
            return
        while not self._inbox.empty():
            try:
                item = self._inbox.get_nowait()
            except Empty:
                break
            if isinstance(item, _End):
                self._inbox.put(item)
                self._pausing.set()
                return
            self._served += 1
            if isinstance(item, _Line) and not only_looks(self._session, item.text):
                self._backlog.append(item)
            elif isinstance(item, _Line):
                self._tell(Finished(carry_out(self._session, item.text, item.quiet)))
            elif isinstance(item, _Ask):
                self._asked = False
            else:
                self._serve(item)
        self._next_frame = now + _FRAME
        if not self._untaken:
            began = thread_time()
            self._frame()
            self._framed, self._ran = now, thread_time()
            self._spent = self._ran - began + self._paint_seconds

    def _frame(self) -> None:
        session, before = self._session, self._latest.answers if self._latest is not None else {}
        state = session.state()  # first: words issue with it, which answers tell of
        answers = {
            question: before[question]
            if question in before and (self._standing or (self.running and getattr(question, "STANDING", False)))
            else self._answer(question)
            for question in dict.fromkeys(self._questions)
        }
        self._standing = not self.running
        self.frames += 1
        self._latest = Snapshot(state, answers, self.frames, self.running, session.post_mortem)
        if not self._untaken:
            self._untaken = True
            self._tell(Fresh())

    def _answer(self, question: Question[object]) -> object:
        try:
            return question.answer(self._session)
        except NeuronError as error:
            return error
