"""The debugger's commands by name: gdb's words, one line of help each, and the call of the session behind each."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from formats.errors import NotFoundError
from neurontools import debug_breaking as breaking
from neurontools import debug_maps as maps
from neurontools.debug_breaking import count_of, number_of, numbers_of, usage

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


def _nothing(rest: str, name: str) -> None:
    if rest:
        raise usage(f"{name} takes no argument")


def _needed(rest: str, what: str) -> str:
    if not rest:
        raise usage(f"what? {what}")
    return rest


def _stepi(session: Session, rest: str) -> Any:
    from emulator.session.names import parse_core

    core, words = parse_core(rest)[0], parse_core(rest)[1].split()
    engine = words.pop(0) if words and not words[0].isdigit() else None
    repeat = number_of(words.pop(0), "a count") if words else 1
    if words or repeat < 1:
        raise usage("stepi [ncN] [ENGINE] [COUNT]")
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
    return session.continue_(rest or None)


def _reverse_stepi(session: Session, rest: str) -> Any:
    from emulator.session.names import parse_core

    core, engine = parse_core(rest)
    return session.reverse_stepi(engine or None, core)


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
    return TOPICS[name](session, more.strip())


def _counters(session: Session, rest: str, name: str) -> Any:
    if rest not in ("", "all"):
        raise usage(f"info {name} [all]")
    look = session.info_semaphores if name == "semaphores" else session.info_events
    return look(everything=rest == "all")


def _registers(session: Session, rest: str) -> Any:
    from emulator.session.names import parse_core

    core, words = parse_core(rest)[0], parse_core(rest)[1].split()
    everything = "all" in words
    engines = [word for word in words if word != "all"]
    if len(engines) > 1:
        raise usage("info registers [ncN] [ENGINE] [all]")
    return session.info_registers(engines[0] if engines else None, core, everything)


def _plain(name: str, look: Callable[[Session], Any]) -> Callable[[Session, str], Any]:
    def view(session: Session, rest: str) -> Any:
        _nothing(rest, f"info {name}")
        return look(session)

    return view


def _checks(session: Session, rest: str) -> Any:
    words = rest.replace(",", " ").split()
    if words and words[0] not in ("on", "off"):
        raise usage("checks [on|off] [memcheck|initcheck|racecheck|synccheck|all]")
    if not words:
        from emulator.session import Checks

        return Checks(session.checks, len(session.findings()))
    return (session.enable_checks if words[0] == "on" else session.disable_checks)(*words[1:])


def _export(session: Session, rest: str) -> Any:
    from pathlib import Path

    from neurontools.arrays import export_array

    tensor, _, file = rest.rpartition(" ")
    if not tensor.strip() or not file.endswith(".npy"):
        raise usage("export TENSOR or TENSOR[slice] FILE.npy")
    found = session.tensor(tensor.strip())
    export_array(Path(file), found.array)
    return f"{file}: {found.array.dtype.name}{list(found.array.shape)}"


def _save_core(session: Session, rest: str) -> Any:
    words = _needed(rest, "save-core FILE [light|full]").split()
    level = words.pop() if len(words) > 1 and words[-1] in ("light", "full") else "full"
    path = " ".join(words)
    return f"{path}: {level} core dump, {session.save_core(path, level)} bytes"


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
    values = [number_of(word, "a pc or a count") for word in words]
    if len(values) > 2:
        raise usage("disassemble [ncN] [ENGINE] [PC [COUNT]]")
    around, size = [*values, None, None][:2]
    return session.disassemble(engine, around, 10 if size is None else size, core)


def _focus(session: Session, rest: str) -> Any:
    from emulator.session.names import parse_core

    core, words = parse_core(rest)
    session.focus(core, words or None)
    session.forget_listing()
    return session.state()


TOPICS: dict[str, Callable[[Session, str], Any]] = {
    "engines": _plain("engines", lambda session: session.info_engines()),
    "queues": _plain("queues", lambda session: session.info_queues()),
    "dma": _plain("dma", lambda session: session.info_dma()),
    "semaphores": lambda session, rest: _counters(session, rest, "semaphores"),
    "events": lambda session, rest: _counters(session, rest, "events"),
    "registers": _registers,
    "memory": _plain("memory", lambda session: session.info_memory()),
    "tensors": _plain("tensors", lambda session: session.info_tensors()),
    "breakpoints": _plain("breakpoints", lambda session: session.info_breakpoints()),
    "findings": _plain("findings", lambda session: session.findings()),
    "warnings": _plain("warnings", lambda session: session.warnings()),
    "prints": _plain("prints", lambda session: session.prints()),
    "map": maps.map_topic,
    "values": maps.values_topic,
    "variables": maps.variables_topic,
    "timeline": maps.timeline_topic,
}

_WHERE = "ENGINE:PC, FILE:LINE, PC, ENGINE, QUEUE or OPCODE, with ncN in front for one core"
_BREAK = f"{_WHERE}, or behind what makes S[5] >= 3 or E[2] == 1 true"
_EVENT = "dma [QUEUE], nan [PLACE], inf [PLACE], fault, hang or finding [CHECK]"
_PLACE = "ADDRESS[, BYTES], TENSOR, TENSOR[slice], S[8] or E[3]"
COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        Command("step", ("s",), "[COUNT]", "complete the next instruction or transfer, whatever engine it is on",
                lambda session, rest: session.step(count_of(rest))),
        Command("stepi", ("si",), "[ncN] [ENGINE] [COUNT]", "go on until an engine completes one instruction", _stepi),
        Command("next", ("n",), "[COUNT]", "go on until the focus engine leaves its source line",
                lambda session, rest: session.next(count_of(rest))),
        Command("continue", ("c", "fg"), "[TIME]", "go on until a breakpoint, a fault, a hang, the end or Ctrl-C, or "
                "for a time (5us)", _continue),
        Command("until", ("u",), "WHERE | TIME | #EVENT", "go on until a place, a time (2.5us) or an event",
                lambda session, rest: session.until(_needed(rest, f"{_WHERE}, a time such as 2.5us, or #EVENT"))),
        Command("reverse-step", ("rs",), "[COUNT]", "take back the last completion, or several",
                lambda session, rest: session.reverse_step(count_of(rest))),
        Command("reverse-stepi", ("rsi",), "[ncN] [ENGINE]", "take back the last instruction of an engine",
                _reverse_stepi),
        Command("reverse-next", ("rn",), "[COUNT]", "go back until the focus engine is at the source line before",
                lambda session, rest: session.reverse_next(count_of(rest))),
        Command("reverse-continue", ("rc",), "", "go back to the stop before: a breakpoint or the beginning",
                _reverse_continue),
        Command("goto", ("g",), "TIME | #EVENT | MARK | start | end", "go there, forwards or back",
                lambda session, rest: session.goto(_needed(rest, "a time such as 2.5us, #EVENT, a mark, start, end"))),
        Command("mark", (), "NAME", "name this place in time, for goto",
                lambda session, rest: session.mark(_needed(rest, "a name for this place"))),
        Command("when", (), "", "show the time, the marks, and how far back the journal reaches", _when),
        Command("last-write", ("lw",), "ADDRESS[, BYTES] | TENSOR[slice]", "show what wrote there last",
                lambda session, rest: session.last_write(_needed(rest, "an address, TENSOR or TENSOR[slice]"))),
        Command("break", ("b", "br"), "WHERE [if CONDITION]", f"stop before {_BREAK}",
                lambda session, rest: breaking.break_at(session, rest, _BREAK)),
        Command("tbreak", ("tb", "tbr"), "WHERE [if CONDITION]", "the same, once",
                lambda session, rest: breaking.break_at(session, rest, _BREAK, temporary=True)),
        Command("watch", ("wa",), "PLACE [if CONDITION]", f"stop behind what writes {_PLACE}",
                lambda session, rest: breaking.watch(session, rest, _PLACE)),
        Command("rwatch", (), "PLACE [if CONDITION]", "stop behind what reads there",
                lambda session, rest: breaking.watch(session, rest, _PLACE, "read")),
        Command("awatch", (), "PLACE [if CONDITION]", "stop behind what reads or writes there",
                lambda session, rest: breaking.watch(session, rest, _PLACE, "access")),
        Command("catch", (), "EVENT [if CONDITION]", f"stop behind {_EVENT}",
                lambda session, rest: breaking.catch(session, rest, _EVENT)),
        Command("condition", ("cond",), "NUMBER [CONDITION]", "stop there only where this holds: S[5] >= 3 and time > "
                "2us, PE.R[1] == 7, x[0, 3] < 0, any(isnan(x)); nothing takes it off", breaking.condition),
        Command("ignore", (), "NUMBER COUNT", "do not stop there the next COUNT times", breaking.ignore),
        Command("commands", ("comm",), "[NUMBER] … end", "carry out the lines up to `end` where that breakpoint stops",
                lambda session, rest: breaking.commands(session, rest, [])),
        Command("delete", ("d", "del"), "[NUMBER…]", "delete breakpoints, all without a number",
                lambda session, rest: session.delete(*numbers_of(rest))),
        Command("enable", ("en",), "[once|delete] [NUMBER…]", "enable breakpoints; once: disable, delete: delete when "
                "hit", breaking.enable),
        Command("disable", ("dis",), "[NUMBER…]", "disable breakpoints",
                lambda session, rest: session.disable(*numbers_of(rest))),
        Command("checks", (), "[on|off] [NAME…]", "let memcheck, initcheck, racecheck, synccheck or all of them run "
                "along; info findings shows what they found", _checks),
        Command("why", (), "[ncN] [ENGINE]", "show what an engine waits for, and who could signal it", _why),
        Command("info", ("i",), "|".join(TOPICS), "show what stands where", _info),
        Command("x", (), "/FORMAT ADDRESS", "show memory: a count, x d u f, b h w g or an element type; an engine or "
                "device address, PARTITION:BYTE, psum:P:B, hbm:A or TENSOR+BYTES", _examine),
        Command("print", ("p", "inspect"), "TENSOR[slice]", "show a tensor or a slice of it", _print),
        Command("export", (), "TENSOR[slice] FILE.npy", "write a tensor or a slice of it to a file", _export),
        Command("list", ("l",), "[LINE | FILE:LINE]", "show source lines", _list),
        Command("disassemble", ("disas",), "[ncN] [ENGINE] [PC [COUNT]]", "show words, and whether their waits hold",
                _disassemble),
        Command("focus", ("f",), "[ncN] [ENGINE]", "choose the core and engine that other commands mean", _focus),
        Command("save-core", (), "FILE [light|full]", "write the device as it is now as a core dump", _save_core),
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
        raise usage(f"no command {line.strip().split()[0]!r}; `help` lists them")
    for command in COMMANDS.values():
        if word == command.name or word in command.short:
            return command, rest.strip()
    return COMMANDS[_one_of(word, COMMANDS, f"no command {word!r};")], rest.strip()


def _one_of(word: str, table: dict[str, Any], question: str) -> str:
    found = [word] if word in table else [name for name in table if name.startswith(word)]
    # Of topics the first one is meant: others come to the end, and what people type stays what it was.
    if len(found) == 1 or (found and table is TOPICS):
        return found[0]
    if found:
        raise usage(f"{word!r} may be {' or '.join(found)}")
    raise usage(f"{question} {', '.join(table)}" if table is TOPICS else f"{question} `help` lists them")


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
