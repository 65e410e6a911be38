"""The commands that move the program: step, continue, until, reverse-step, goto."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from neurontools.debugger.commands.arguments import alone, core_and_words, count_of, engine_of, needed
from neurontools.debugger.commands.command import AnyCommand, Command
from neurontools.debugger.commands.completion import engines, marks, places
from neurontools.debugger.errors import UsageError
from neurontools.debugger.names import parse_number, positive
from neurontools.debugger.results import Mark, Moved, State, Stop, When
from neurontools.debugger.view import mark_lines, moved_lines, state_lines, stop_lines, when_lines

if TYPE_CHECKING:
    from neurontools.debugger.session import Session

__all__ = ["MOVING", "WHERE"]

WHERE = "ENGINE:PC, FILE:LINE, PC, %OPERATION, ENGINE, QUEUE, OPCODE or FUNCTION, with ncN in front for one core"

_COUNT = re.compile(r"-?\d")  # how what is meant as a count begins, also one that is none

_forward = partial(Command[Stop], result=Stop, view=stop_lines, live=True, moves=True, repeats="line")
_back = partial(Command[Moved], result=Moved, view=moved_lines, live=True, moves=True, repeats="line")


def _stepi(session: Session, rest: str) -> Stop:
    core, words = core_and_words(rest)
    engine = words.pop(0) if words and not _COUNT.match(words[0]) else None
    repeat = parse_number(words.pop(0), "a count") if words else 1
    if words:
        raise UsageError("stepi [ncN] [ENGINE] [COUNT]")
    stops = []
    for _ in range(positive(repeat)):
        stops.append(session.stepi(engine, core))
        if stops[-1].reason != "step":
            break
    # Of several only the last says what comes next.
    return stops[-1]._replace(
        steps=tuple(step for stop in stops for step in stop.steps), completions=sum(stop.completions for stop in stops)
    )


MOVING: tuple[AnyCommand, ...] = (
    _forward("step", "[COUNT]", "complete the next instruction or transfer, whatever engine it is on",
             lambda session, rest: session.step(count_of(rest)), aliases=("s",),
             details="Breakpoints on the way stop it, except one on the first completion."),
    _forward("stepi", "[ncN] [ENGINE] [COUNT]", "run until an engine completes one instruction", _stepi,
             aliases=("si",), words=engines,
             details="The focus moves to that engine. DMA transfers and other engines go on as they would."),
    _forward("next", "[COUNT]", "run until the focus engine leaves its source line, or this turn of it",
             lambda session, rest: session.next(count_of(rest)), aliases=("n",),
             details="Each turn of an unrolled loop counts; functions that the line calls are stepped over.\n"
             "Without line information it is like stepi. If the engine is done, the focus moves to another."),
    _forward("continue", "[TIME]", "run until a breakpoint, a fault, a hang, the end or Ctrl-C, or for a time (5us)",
             lambda session, rest: session.continue_(rest or None), aliases=("c", "fg")),
    _forward("until", "[WHERE | TIME | #EVENT]", "run until a place, a time (2.5us) or an event; alone: a later line",
             lambda session, rest: session.until(rest) if rest else session.until_later(),
             aliases=("u",), words=places, repeats="",
             details="Without an argument the turns of loops that are left are run through."),
    _forward("advance", "WHERE | TIME | #EVENT", "run until a place, a time or an event",
             lambda session, rest: session.until(needed(rest, f"{WHERE}, a time such as 2.5us, or #EVENT")),
             words=places, repeats=""),
    _forward("finish", "", "run until the focus engine leaves the function that the kernel called",
             alone("finish", lambda session: session.finish()), aliases=("fin",)),
    _back("reverse-step", "[COUNT]", "take back the last completion, or several",
          lambda session, rest: session.reverse_step(count_of(rest)), aliases=("rs",)),
    _back("reverse-stepi", "[ncN] [ENGINE]", "take back the last instruction of an engine",
          lambda session, rest: session.reverse_stepi(*engine_of(rest)), aliases=("rsi",), words=engines),
    _back("reverse-next", "[COUNT]", "go back until the focus engine is at its previous source line",
          lambda session, rest: session.reverse_next(count_of(rest)), aliases=("rn",)),
    _back("reverse-finish", "", "go back to before the call of the function that the focus engine is in",
          alone("reverse-finish", lambda session: session.reverse_finish())),
    _back("reverse-continue", "", "go back to the previous stop: a breakpoint or the beginning",
          alone("reverse-continue", lambda session: session.reverse_continue()), aliases=("rc",)),
    _back("goto", "TIME | #EVENT | MARK | start | end", "go to a time, an event or a mark, forwards or back",
          lambda session, rest: session.goto(needed(rest, "a time such as 2.5us, #EVENT, a mark, start, end")),
          aliases=("g",), words=marks, repeats="",
          details="At a TIME, everything that completes until then has happened; at an #EVENT, that one has, too.\n"
          "Breakpoints do not stop it. `mark` makes marks, `when` lists them."),
    Command("mark", "NAME", "name the present place in time, for goto",
            lambda session, rest: session.mark(needed(rest, "a name for this place")), Mark, mark_lines, live=True),
    Command("when", "", "show the time, the marks, and how far back the journal reaches",
            alone("when", lambda session: session.when()), When, when_lines, live=True),
    Command("run", "", "begin again; breakpoints stay", alone("run", lambda session: session.restart()), State,
            state_lines, aliases=("r",), live=True, moves=True),
)  # fmt: skip
