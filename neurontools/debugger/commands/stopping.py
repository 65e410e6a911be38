"""The commands that say where to stop: break, watch, catch, condition, ignore, commands, checks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from neurontools.debugger.breakpoint import Breakpoint
from neurontools.debugger.commands.arguments import numbers_of, place_and_condition
from neurontools.debugger.commands.command import AnyCommand, Command
from neurontools.debugger.commands.completion import breakpoint_numbers, events, one_of, places, tensors
from neurontools.debugger.commands.moving import WHERE
from neurontools.debugger.commands.ranks import everywhere, on_every_rank
from neurontools.debugger.errors import UsageError
from neurontools.debugger.names import parse_number
from neurontools.debugger.results import Checks
from neurontools.debugger.view import breakpoint_lines, checks_lines
from neurontools.debugger.view_tables import breakpoints

if TYPE_CHECKING:
    from neurontools.debugger.session import Session

__all__ = ["STOPPING"]

_BREAK = f"{WHERE}, or after S[5] >= 3 or E[2] == 1 becomes true"
_EVENT = "dma [QUEUE], nan [PLACE], inf [PLACE], fault, hang or finding [CHECK]"
_PLACE = "ADDRESS[, BYTES], TENSOR, TENSOR[slice], S[8] or E[3]"
_NUMBER = "the number of a breakpoint"
_CHECKS = ("memcheck", "initcheck", "racecheck", "synccheck", "all")


def _break(session: Session, rest: str, temporary: bool = False) -> Breakpoint:
    place, test = place_and_condition(rest, _BREAK)
    return session.break_at(place, temporary, test)


def _watch(session: Session, rest: str, kind: str) -> Breakpoint:
    place, test = place_and_condition(rest, _PLACE)
    return session.watch(session.bound(place), kind, test)


def _catch(session: Session, rest: str) -> Breakpoint:
    event, test = place_and_condition(rest, _EVENT)
    return session.catch(event, test)


def _condition(session: Session, rest: str) -> Breakpoint:
    number, _, text = rest.partition(" ")
    if not number:
        raise UsageError("condition NUMBER [CONDITION]")
    return session.condition(parse_number(number, _NUMBER), text.strip() or None)


def _ignore(session: Session, rest: str) -> Breakpoint:
    words = rest.split()
    if len(words) != 2:
        raise UsageError("ignore NUMBER COUNT")
    return session.ignore(parse_number(words[0], _NUMBER), parse_number(words[1], "a count"))


def _commands(session: Session, rest: str) -> Breakpoint:
    """Note the lines of a block: of a number, else of the breakpoint set last."""
    number, *lines = rest.split("\n")
    if not number and not session.breakpoints:
        raise UsageError("commands of what? there is no breakpoint")
    chosen = parse_number(number, _NUMBER) if number else session.breakpoints[-1].number
    return session.set_commands(chosen, lines)


def _enable(session: Session, rest: str) -> tuple[Breakpoint, ...]:
    word, _, more = rest.partition(" ")
    if word in ("once", "delete"):
        return session.enable(*numbers_of(more), once=word == "once", delete=word == "delete")
    return session.enable(*numbers_of(rest))


def _checks(session: Session, rest: str) -> Checks:
    words = rest.replace(",", " ").split()
    if not words:
        return Checks(session.checks, len(session.findings()))
    if words[0] not in ("on", "off"):  # a name alone can only be meant to start it
        words.insert(0, "on")
    ranks = [session] if session.among is None else list(session.among.sessions.values())
    try:
        answers = [(one.enable_checks if words[0] == "on" else one.disable_checks)(*words[1:]) for one in ranks]
    except ValueError as error:
        raise UsageError(f"checks [on|off] [NAME…]: {error}") from None
    return answers[ranks.index(session)]


_one = partial(Command[Breakpoint], result=Breakpoint, view=breakpoint_lines, live=True)
_several = partial(Command[tuple[Breakpoint, ...]], result=tuple[Breakpoint, ...], view=breakpoints, live=True,
                   nothing="none", words=breakpoint_numbers)  # fmt: skip

STOPPING: tuple[AnyCommand, ...] = (
    _one("break", "WHERE [if CONDITION]", f"stop before {_BREAK}", everywhere(_break), aliases=("b", "br"),
         words=places,
         details="break PE:12, break kernel.py:88, break 12 (a pc of the focus engine), break dve (all its words),\n"
         "break MATMUL (each word of an opcode), break QUEUE (each transfer), break S[5] >= 3,\n"
         "break %dot.5 (the first word that each engine has of an operation of the compiled graph).\n"
         "A stop is before the effect of a word or transfer, and after the change that makes a comparison true.\n"
         "Of several ranks (--ranks) it is on all, with rank N behind WHERE on one."),
    _one("tbreak", "WHERE [if CONDITION]", "the same, but only once",
         everywhere(lambda session, rest: _break(session, rest, True)), aliases=("tb", "tbr"), words=places),
    _one("watch", "PLACE [if CONDITION]", f"stop after a write to {_PLACE}",
         everywhere(lambda session, rest: _watch(session, rest, "write")), aliases=("wa",), words=tensors,
         details="watch y[0:4], watch 0:0x4000, 16 (bytes of a partition of SBUF), watch psum:3:0, watch hbm:ADDRESS,\n"
         "watch S[8] and watch E[3] (any change of a semaphore or event). ncN in front chooses the core."),
    _one("rwatch", "PLACE [if CONDITION]", "stop after a read of such a place",
         everywhere(lambda session, rest: _watch(session, rest, "read")), words=tensors),
    _one("awatch", "PLACE [if CONDITION]", "stop after a read or write of such a place",
         everywhere(lambda session, rest: _watch(session, rest, "access")), words=tensors),
    _one("catch", "EVENT [if CONDITION]", f"stop after {_EVENT}", everywhere(_catch), words=events,
         details="nan and inf stop where one is written: anywhere, into a tensor or slice, or into ADDRESS, BYTES.\n"
         "finding needs checks that are running; `checks on` starts them."),
    _one("condition", "NUMBER [CONDITION]", "stop there only if this holds: S[5] >= 3 and time > 2us, PE.R[1] == 7, "
         "x[0, 3] < 0, any(isnan(x)); without a condition, always", on_every_rank(_condition), aliases=("cond",),
         words=breakpoint_numbers,
         details="Names: S[N], E[N], R[N]; time, events, pc and core of the stop; tensors, slices; nc1.S[N], PE.R[N].\n"
         "Functions of one value: abs, min, max, mean, any, all, isnan, isinf, isfinite. Times: 20ps, 300ns, 2.5us."),
    _one("ignore", "NUMBER COUNT", "do not stop there the next COUNT times", on_every_rank(_ignore),
         words=breakpoint_numbers),
    _one("commands", "[NUMBER] … end", "run the lines up to `end` whenever that breakpoint stops",
         on_every_rank(_commands), aliases=("comm",), words=breakpoint_numbers, block=True),
    _several("delete", "[NUMBER…]", "delete breakpoints, all without a number",
             on_every_rank(lambda session, rest: session.delete(*numbers_of(rest))), aliases=("d", "del")),
    _several("enable", "[once|delete] [NUMBER…]", "enable breakpoints; once: disable, delete: delete when hit",
             on_every_rank(_enable), aliases=("en",)),
    _several("disable", "[NUMBER…]", "disable breakpoints",
             on_every_rank(lambda session, rest: session.disable(*numbers_of(rest))), aliases=("dis",)),
    Command("checks", "[on|off] [NAME…]", "run memcheck, initcheck, racecheck, synccheck or all of them alongside; "
            "info findings shows what they found", _checks, Checks, checks_lines, words=one_of("on", "off", *_CHECKS),
            live=True, moves=True),
)  # fmt: skip
