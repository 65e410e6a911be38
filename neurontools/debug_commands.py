"""The debugger's commands by name: gdb's words, one line of help each, and the call of the session behind each."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from formats.errors import NotFoundError

if TYPE_CHECKING:
    from emulator.session import Session

__all__ = ["COMMANDS", "TOPICS", "Command", "help_text", "look_up"]


class Command(NamedTuple):
    """One command: `short` are other spellings, `run` takes the session and the rest of the line."""

    name: str
    short: tuple[str, ...]
    usage: str
    summary: str
    run: Callable[[Session, str], Any]


def _usage(message: str) -> Exception:
    from emulator.session import UsageError

    return UsageError(message)


def _number(text: str, what: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise _usage(f"{text!r} is not {what}") from None


def _count(rest: str) -> int:
    return _number(rest, "a count") if rest else 1


def _numbers(rest: str) -> list[int]:
    return [_number(word, "the number of a breakpoint") for word in rest.replace(",", " ").split()]


def _nothing(rest: str, name: str) -> None:
    if rest:
        raise _usage(f"{name} takes no argument")


def _needed(rest: str, what: str) -> str:
    if not rest:
        raise _usage(f"what? {what}")
    return rest


def _stepi(session: Session, rest: str) -> Any:
    from emulator.session.names import parse_core

    core, words = parse_core(rest)[0], parse_core(rest)[1].split()
    engine = words.pop(0) if words and not words[0].isdigit() else None
    repeat = _number(words.pop(0), "a count") if words else 1
    if words or repeat < 1:
        raise _usage("stepi [ncN] [ENGINE] [COUNT]")
    stops = []
    for _ in range(repeat):
        stops.append(session.stepi(engine, core))
        if stops[-1].reason != "step":
            break
    # Of several only the last says what comes next.
    return stops[-1]._replace(
        steps=tuple(step for stop in stops for step in stop.steps), completions=sum(stop.completions for stop in stops)
    )


def _continue(session: Session, rest: str) -> Any:
    _nothing(rest, "continue")
    return session.continue_()


def _reverse_continue(session: Session, rest: str) -> Any:
    _nothing(rest, "reverse-continue")
    return session.reverse_continue()


def _when(session: Session, rest: str) -> Any:
    _nothing(rest, "when")
    return session.when()


def _why(session: Session, rest: str) -> Any:
    from emulator.session.names import parse_core

    core, engine = parse_core(rest)
    return session.why(engine or None, core)


def _restart(session: Session, rest: str) -> Any:
    _nothing(rest, "run")
    return session.restart()


def _state(session: Session, rest: str) -> Any:
    _nothing(rest, "state")
    return session.state()


def _info(session: Session, rest: str) -> Any:
    topic, _, more = rest.partition(" ")
    name = _one_of(topic, TOPICS, "info on what?") if topic else _needed("", ", ".join(TOPICS))
    if name == "semaphores" and more.strip():
        if more.strip() != "all":
            raise _usage("info semaphores [all]")
        return session.info_semaphores(everything=True)
    _nothing(more.strip(), f"info {name}")
    return TOPICS[name](session)


def _examine(session: Session, rest: str) -> Any:
    found = re.fullmatch(r"(?:/(\S+))?\s*(.*)", rest)
    text, address = (found[1], found[2]) if found else (None, rest)
    return session.examine(address or None, format=text or "x")


def _print(session: Session, rest: str) -> Any:
    return session.tensor(_needed(rest, "print TENSOR or TENSOR[slice]"))


def _list(session: Session, rest: str) -> Any:
    return session.list_source(rest or None)


def _disassemble(session: Session, rest: str) -> Any:
    from emulator.session.names import parse_core

    core, words = parse_core(rest)[0], parse_core(rest)[1].split()
    engine = words.pop(0) if words and not words[0][0].isdigit() else None
    if engine is not None and ":" in engine:
        engine, _, pc = engine.partition(":")
        words.insert(0, pc)
    values = [_number(word, "a pc or a count") for word in words]
    if len(values) > 2:
        raise _usage("disassemble [ncN] [ENGINE] [PC [COUNT]]")
    around, size = [*values, None, None][:2]
    return session.disassemble(engine, around, 10 if size is None else size, core)


def _focus(session: Session, rest: str) -> Any:
    from emulator.session.names import parse_core

    core, words = parse_core(rest)
    session.focus(core, words or None)
    session.forget_listing()
    return session.state()


TOPICS: dict[str, Callable[[Session], Any]] = {
    "engines": lambda session: session.info_engines(),
    "queues": lambda session: session.info_queues(),
    "semaphores": lambda session: session.info_semaphores(),
    "memory": lambda session: session.info_memory(),
    "tensors": lambda session: session.info_tensors(),
    "breakpoints": lambda session: session.info_breakpoints(),
    "warnings": lambda session: session.warnings(),
}

_WHERE = "ENGINE:PC, FILE:LINE, PC, ENGINE, QUEUE or OPCODE, with ncN in front for one core"
_PLACE = "ADDRESS[, BYTES], TENSOR, TENSOR[slice], S[8] or E[3]"
COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        Command("step", ("s",), "[COUNT]", "complete the next instruction or transfer, whatever engine it is on",
                lambda session, rest: session.step(_count(rest))),
        Command("stepi", ("si",), "[ncN] [ENGINE] [COUNT]", "go on until an engine completes one instruction", _stepi),
        Command("next", ("n",), "[COUNT]", "go on until the focus engine leaves its source line",
                lambda session, rest: session.next(_count(rest))),
        Command("continue", ("c",), "", "go on until a breakpoint, a fault, a hang, the end or Ctrl-C", _continue),
        Command("until", ("u",), "WHERE | TIME | #EVENT", "go on until a place, a time (2.5us) or an event",
                lambda session, rest: session.until(_needed(rest, f"{_WHERE}, a time such as 2.5us, or #EVENT"))),
        Command("reverse-step", ("rs",), "[COUNT]", "take back the last completion, or several",
                lambda session, rest: session.reverse_step(_count(rest))),
        Command("reverse-next", ("rn",), "[COUNT]", "go back until the focus engine is at the source line before",
                lambda session, rest: session.reverse_next(_count(rest))),
        Command("reverse-continue", ("rc",), "", "go back to the stop before: a breakpoint or the beginning",
                _reverse_continue),
        Command("goto", ("g",), "TIME | #EVENT | MARK | start | end", "go there, forwards or back",
                lambda session, rest: session.goto(_needed(rest, "a time such as 2.5us, #EVENT, a mark, start, end"))),
        Command("mark", (), "NAME", "name this place in time, for goto",
                lambda session, rest: session.mark(_needed(rest, "a name for this place"))),
        Command("when", (), "", "show the time, the marks, and how far back the journal reaches", _when),
        Command("last-write", ("lw",), "ADDRESS[, BYTES] | TENSOR[slice]", "show what wrote there last",
                lambda session, rest: session.last_write(_needed(rest, "an address, TENSOR or TENSOR[slice]"))),
        Command("break", ("b",), "WHERE", f"stop before {_WHERE}",
                lambda session, rest: session.break_at(_needed(rest, _WHERE))),
        Command("tbreak", ("tb",), "WHERE", "the same, once",
                lambda session, rest: session.tbreak(_needed(rest, _WHERE))),
        Command("watch", ("wa",), "PLACE", f"stop behind what writes {_PLACE}",
                lambda session, rest: session.watch(_needed(rest, _PLACE))),
        Command("rwatch", (), "PLACE", "stop behind what reads there",
                lambda session, rest: session.watch(_needed(rest, _PLACE), "read")),
        Command("awatch", (), "PLACE", "stop behind what reads or writes there",
                lambda session, rest: session.watch(_needed(rest, _PLACE), "access")),
        Command("delete", ("d",), "[NUMBER…]", "delete breakpoints, all without a number",
                lambda session, rest: session.delete(*_numbers(rest))),
        Command("enable", ("en",), "[NUMBER…]", "enable breakpoints",
                lambda session, rest: session.enable(*_numbers(rest))),
        Command("disable", ("dis",), "[NUMBER…]", "disable breakpoints",
                lambda session, rest: session.disable(*_numbers(rest))),
        Command("why", (), "[ncN] [ENGINE]", "show what an engine waits for, and who could signal it", _why),
        Command("info", ("i",), "|".join(TOPICS), "show what stands where", _info),
        Command("x", (), "/FORMAT ADDRESS", "show memory: a count, x d u f, b h w g or an element type; an engine or "
                "device address, PARTITION:BYTE, psum:P:B, hbm:A or TENSOR+BYTES", _examine),
        Command("print", ("p",), "TENSOR[slice]", "show a tensor or a slice of it", _print),
        Command("list", ("l",), "[LINE | FILE:LINE]", "show source lines", _list),
        Command("disassemble", ("disas",), "[ncN] [ENGINE] [PC [COUNT]]", "show words, and whether their waits hold",
                _disassemble),
        Command("focus", ("f",), "[ncN] [ENGINE]", "choose the core and engine that other commands mean", _focus),
        Command("state", (), "", "show where the session stands", _state),
        Command("run", ("r",), "", "begin again; breakpoints stay", _restart),
        Command("help", ("h",), "[COMMAND]", "show this", lambda session, rest: help_text(rest)),
        Command("quit", ("q", "exit"), "", "leave", lambda session, rest: _nothing(rest, "quit")),
    )
}  # fmt: skip


def look_up(line: str) -> tuple[Command, str]:
    """Return the command a line means, by name, short form or unambiguous beginning, and its argument.

    Raises UsageError that lists what it may be.
    """
    word, rest = re.fullmatch(r"([A-Za-z]*(?:-[A-Za-z]+)*)(.*)", line.strip(), re.DOTALL).groups()  # type: ignore[union-attr]
    if not word or (rest and not (rest[0].isspace() or rest[0] == "/" or rest[0].isdigit())):
        raise _usage(f"no command {line.strip().split()[0]!r}; `help` lists them")
    for command in COMMANDS.values():
        if word == command.name or word in command.short:
            return command, rest.strip()
    return COMMANDS[_one_of(word, COMMANDS, f"no command {word!r};")], rest.strip()


def _one_of(word: str, table: dict[str, Any], question: str) -> str:
    found = [word] if word in table else [name for name in table if name.startswith(word)]
    if len(found) == 1:
        return found[0]
    if found:
        raise _usage(f"{word!r} may be {' or '.join(found)}")
    raise _usage(f"{question} {', '.join(table)}" if table is TOPICS else f"{question} `help` lists them")


def help_text(topic: str = "") -> str:
    """Return the list of commands, or one line on one of them."""
    if not topic:
        wide = max(len(name) for name in COMMANDS)
        lines = [
            f"{c.name.ljust(wide)}  {(', '.join(c.short) or '-').ljust(8)}  {c.summary}" for c in COMMANDS.values()
        ]
        return "\n".join([*lines, "An empty line repeats the last command; # begins a comment."])
    try:
        command, _ = look_up(topic)
    except ValueError:
        raise NotFoundError(f"no command {topic!r}; `help` lists them") from None
    short = f" ({', '.join(command.short)})" if command.short else ""
    return f"{command.name}{short} {command.usage}".rstrip() + f"\n  {command.summary}"
