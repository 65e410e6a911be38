"""The table of commands: found by name, short form or unambiguous beginning; its help, and what completes a line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from formats.errors import NeuronError, NotFoundError
from neurontools.debugger.commands.arguments import alone, needed
from neurontools.debugger.commands.command import AnyCommand, Command
from neurontools.debugger.commands.info import INFO
from neurontools.debugger.commands.inspecting import INSPECTING
from neurontools.debugger.commands.moving import MOVING
from neurontools.debugger.commands.ranks import RANK
from neurontools.debugger.commands.stopping import STOPPING
from neurontools.debugger.commands.writing import WRITING
from neurontools.debugger.errors import UsageError
from neurontools.debugger.results import Defined
from neurontools.debugger.view_memory import defined_lines

if TYPE_CHECKING:
    from neurontools.debugger.session import Session

__all__ = ["COMMANDS", "completions", "help_text", "look_up"]

_LINE = re.compile(r"([A-Za-z]*(?:-[A-Za-z]+)*)(.*)", re.DOTALL)


def _help_words(session: Session, words: list[str]) -> Iterable[str]:
    return (command.name for command in _offered(COMMANDS.values(), session.post_mortem))


def _define(session: Session, rest: str) -> Defined:
    name, *lines = rest.split("\n")
    if name in COMMANDS:
        raise UsageError(f"{name} is a command already; choose another name")
    return session.scripting.define(needed(name, "a name for the command"), lines)


def _alias(session: Session, rest: str) -> tuple[Defined, ...]:
    if not rest:
        return session.scripting.names
    name, equals, line = (part.strip() for part in rest.partition("="))
    if not equals or not line:
        raise UsageError("alias NAME = COMMAND")
    if name in COMMANDS:
        raise UsageError(f"{name} is a command already; choose another name")
    if not session.scripting.is_own(line):
        command, _ = look_up(session.scripting.expanded(line))
        if command.block:  # whoever reads lines asks the command's own name whether more of them belong to it
            raise UsageError(f"{command.name} takes lines up to `end`, which an alias of it would not")
    return (session.scripting.alias(name, line),)


_ALL: tuple[AnyCommand, ...] = (
    *MOVING,
    *STOPPING,
    INFO,
    *INSPECTING,
    *WRITING,
    RANK,
    Command("define", "NAME … end", "make a command of the lines up to `end`; $arg0 is the first word behind it",
            _define, Defined, defined_lines, block=True),
    Command("alias", "[NAME = COMMAND]", "make a short name for the beginning of a line; alone: list those",
            _alias, tuple[Defined, ...], lambda found: (line for one in found for line in defined_lines(one)),
            nothing="none"),
    Command("help", "[COMMAND]", "show this", lambda session, rest: help_text(rest, session.post_mortem), str,
            str.splitlines, aliases=("h",), words=_help_words, keeps_listing=True),
    Command("quit", "", "leave", alone("quit", lambda session: None), type(None), lambda value: (),
            aliases=("q", "exit"), moves=True),
)  # fmt: skip
COMMANDS: dict[str, AnyCommand] = {command.name: command for command in _ALL}


def _offered(commands: Iterable[AnyCommand], post_mortem: bool) -> list[AnyCommand]:
    return [command for command in commands if not (post_mortem and command.live)]


def look_up(line: str) -> tuple[AnyCommand, str]:
    """Return the command a line means, by name, short form or unambiguous beginning, and its argument.

    Raises UsageError that lists what it may be.
    """
    found = _LINE.fullmatch(line.strip())
    word, rest = (found[1], found[2]) if found is not None else ("", line)
    if not word or (rest and not (rest[0].isspace() or rest[0] == "/" or rest[0].isdigit())):
        raise UsageError(f"no command {line.strip().split()[0]!r}; `help` lists them")
    command = next((each for each in COMMANDS.values() if word in (each.name, *each.aliases)), None)
    if command is None:
        # Only names: short forms of short forms would make what a beginning means depend on the order of the table.
        near = [each for name, each in COMMANDS.items() if name.startswith(word)]
        if len(near) > 1:
            raise UsageError(f"{word!r} may be {' or '.join(each.name for each in near)}")
        if not near:
            raise UsageError(f"no command {word!r}; `help` lists them")
        command = near[0]
    rest = rest.strip()
    return _topic(command, rest) if command.topics and rest else (command, rest)


def _topic(command: AnyCommand, rest: str) -> tuple[AnyCommand, str]:
    """Return the topic of a command: the first that begins so, and what follows."""
    word, *more = rest.split(None, 1)
    for topic in command.topics:
        if topic.name.removeprefix(f"{command.name} ").startswith(word):
            return topic, "".join(more).strip()
    names = ", ".join(topic.name.removeprefix(f"{command.name} ") for topic in command.topics)
    raise UsageError(f"{command.name} on what? {names}")


def help_text(topic: str = "", post_mortem: bool = False) -> str:
    """Return the list of commands, without those that need a program that runs on a core dump; or help on one."""
    if not topic:
        offered = _offered(COMMANDS.values(), post_mortem)
        wide = max(len(command.name) for command in offered)
        lines = [f"{c.name.ljust(wide)}  {(', '.join(c.aliases) or '-').ljust(8)}  {c.summary}" for c in offered]
        return "\n".join([*lines, "An empty line repeats the last command; # begins a comment."])
    try:
        command, _ = look_up(topic)
    except UsageError:
        raise NotFoundError(f"no command {topic!r}; `help` lists them") from None
    aliases = f" ({', '.join(command.aliases)})" if command.aliases else ""
    head = f"{command.name}{aliases} {command.arguments}".rstrip()
    topics = [f"  {each.name} {each.arguments}".rstrip() + f"\n      {each.summary}" for each in command.topics]
    return "\n".join([head, *(f"  {line}" for line in (command.summary, *command.details.splitlines())), *topics])


def completions(session: Session, line: str) -> list[str]:
    """Return what the last word of a line may become."""
    head, _, word = line.rpartition(" ")
    words = head.split()
    if not words:
        return [f"{each.name} " for each in _offered(COMMANDS.values(), session.post_mortem)
                if each.name.startswith(word)]  # fmt: skip
    try:
        command, rest = look_up(head)
    except UsageError:
        return []
    if command.topics:
        names: Iterable[str] = (topic.name.removeprefix(f"{command.name} ") for topic in command.topics)
    elif command.live and session.post_mortem:
        names = ()
    else:
        try:
            names = command.words(session, rest.split())
        except NeuronError:  # such as the marks of a session without a journal
            names = ()
    return [name for name in names if name.startswith(word)]
