"""The table of commands: each is what it says it is, and what messages recommend is in it."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import numpy as np
import pytest

from neurontools.command.table import TABLE
from neurontools.debugger import Session, open_core_session
from neurontools.debugger.command import DebugResult
from neurontools.debugger.commands.carry_out import Answer, carry_out, takes_block
from neurontools.debugger.commands.table import COMMANDS, help_text, look_up
from neurontools.debugger.json_values import plain
from neurontools.debugger.session import NOT_LIVE
from neurontools.tui.actions import ACTIONS

ROOT = Path(__file__).resolve().parents[2]
X = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)
# Every command that does something: topics in the place of the command that chooses one.
EVERY = tuple(each for command in COMMANDS.values() for each in command.topics or (command,))
# A line that works in a session behind three steps, for every command.
LINES = {
    "step": "step", "stepi": "stepi dve", "next": "next", "continue": "continue 1us", "until": "until #5",
    "reverse-step": "reverse-step", "reverse-stepi": "reverse-stepi", "reverse-next": "reverse-next",
    "reverse-continue": "reverse-continue", "goto": "goto start", "mark": "mark here", "when": "when",
    "last-write": "last-write y", "break": "break dve:2 if S[5] >= 3", "tbreak": "tbreak qOut", "watch": "watch y[0]",
    "rwatch": "rwatch 0:0x5000, 4", "awatch": "awatch x", "catch": "catch nan", "condition": "condition 1 time > 2us",
    "ignore": "ignore 1 2", "commands": "commands 1\nstep\nend", "delete": "delete 1", "enable": "enable once 1",
    "disable": "disable 1", "checks": "checks on race", "why": "why dve", "x": "x/4xb x", "print": "print x[0, 0:4]",
    "export": "export x x.npy", "list": "list 6", "disassemble": "disassemble dve 1 3", "focus": "focus dve",
    "save-core": "save-core x.core light", "state": "state", "run": "run", "help": "help step", "quit": "quit",
    "info engines": "info engines", "info queues": "info queues", "info dma": "info dma",
    "info semaphores": "info semaphores all", "info events": "info events all", "info registers": "info registers all",
    "info memory": "info memory", "info tensors": "info tensors", "info breakpoints": "info breakpoints",
    "info findings": "info findings", "info warnings": "info warnings", "info prints": "info prints",
    "info map": "info map psum value 0:4", "info values": "info values x as float16",
    "advance": "advance #5", "finish": "finish", "reverse-finish": "reverse-finish", "backtrace": "backtrace",
    "info locals": "info locals", "info scope": "info scope dve:2", "info display": "info display",
    "set": "set S[100] = 7", "find": "find x, 5", "display": "display S[6]", "undisplay": "undisplay",
    "define": "define two\nstep\nend", "alias": "alias sp = step", "source": "source lines.txt",
    "info variables": "info variables", "info timeline": "info timeline 0us 1us",
    "info ops": "info ops", "info ranks": "info ranks", "rank": "rank",
}  # fmt: skip


@pytest.fixture
def session(program_text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """Return a session behind three steps with a breakpoint, its source beside it."""
    from neurontools.assembly.assemble_neff import to_neff
    from neurontools.assembly.assembler import parse_program

    monkeypatch.chdir(tmp_path)
    Path("double.s").write_text(program_text)
    Path("lines.txt").write_text("state\n")
    made = Session(to_neff(parse_program(program_text, "double.s")), {"x": X})
    made.folders.append(tmp_path)
    made.break_at("dve:2")
    made.step(3)
    return made


def fits(value: Any, kind: Any) -> bool:
    """Return whether a value is of a type as commands declare it."""
    if get_origin(kind) is tuple:
        return isinstance(value, tuple) and all(isinstance(item, get_args(kind)[0]) for item in value)
    return isinstance(value, kind)


def test_every_command_has_a_line_here() -> None:
    assert {command.name for command in EVERY} == set(LINES)


@pytest.mark.parametrize("command", EVERY, ids=lambda command: command.name)
def test_a_command_returns_and_shows_what_it_declares(session: Session, command: Any) -> None:
    answer = carry_out(session, LINES[command.name])
    if command.name in ("finish", "reverse-finish"):  # an assembler program calls no functions; see test_iterations
        assert "no function" in str(answer.error)
        return
    assert answer.error is None and answer.command is command
    assert fits(answer.value, command.result), type(answer.value)
    assert all(isinstance(line, str) and "\n" not in line for line in answer.lines)
    assert answer.lines or command.name == "quit"
    document = DebugResult(answer.name, plain(answer.value))
    assert json.loads(json.dumps(document._asdict(), allow_nan=False))["command"] == command.name.split()[0]


@pytest.mark.parametrize("command", EVERY, ids=lambda command: command.name)
def test_on_a_core_dump_one_sentence_says_why_a_command_is_not_there(session: Session, command: Any) -> None:
    session.save_core("dead.core")
    dead = open_core_session("dead.core")
    answer = carry_out(dead, LINES[command.name])
    assert (str(answer.error) == NOT_LIVE) == command.live
    assert command.live or answer.error is None
    listed = command.word in [line.split()[0] for line in help_text("", True).splitlines()]
    assert listed != command.live


def test_names_and_aliases_mean_one_command_each() -> None:
    words = [word for command in COMMANDS.values() for word in (command.name, *command.aliases)]
    assert len(set(words)) == len(words)
    for command in EVERY:
        assert look_up(command.name) == (command, "")
        assert command.name in help_text(command.name) and command.summary in help_text(command.name)
        assert command.arguments in help_text(command.name)
    assert "info registers [ncN] [ENGINE] [all]" in help_text("info")


def test_keys_of_the_screen_need_what_their_commands_need() -> None:
    for action in ACTIONS:
        if action.call.startswith(("line(", "prompt(")) and (line := action.call.split("'")[1]) not in ("", "/"):
            assert action.live == look_up(line)[0].live, action.name


def test_blocks(session: Session) -> None:
    assert takes_block("comm 1") and not takes_block("step") and not takes_block("") and not takes_block("fly")
    answer = carry_out(session, "commands 1\nstep 2  # twice\n\nstate\nend\nnever")
    assert answer.value.commands == ("step 2", "state")  # type: ignore[attr-defined]
    assert carry_out(session, "commands 1\nfly\nend").error is not None
    assert carry_out(session, "  # nothing") == Answer("")


# --- what messages recommend ------------------------------------------------------------------------------------------


def texts(path: Path) -> Iterator[str]:
    """Yield the texts of a module that a person may see: every string but docstrings."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "1" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def recommended() -> set[str]:
    """Return the command lines in messages, help and keys of debugger and screen."""
    found = {action.call.split("'")[1] for action in ACTIONS if action.call.startswith(("line(", "prompt("))}
    found -= {"", "/"}  # an empty command line, a search
    for path in (*(ROOT / "neurontools/debugger").rglob("*.py"), *(ROOT / "neurontools/tui").rglob("*.py")):
        for text in texts(path):
            found |= set(re.findall(r"`([^`]+)`", text))
            found |= {line for line in re.findall(r"\binfo [a-z]+", text) if "{" not in line}
            if re.match(r"(focus|watch|break|delete|goto) \S", text) and "?" not in text:
                found.add(text)
        found |= set(re.findall(r'TWIN = "([^"]+)"', path.read_text()))
    return found


def test_recommended_commands_exist() -> None:
    lines = recommended()
    assert {"checks on", "info warnings", "core memory", "goto start", "info memory"} <= lines
    for line in lines:
        words = line.removeprefix("neurontools ").split()
        if line == "end" or (words[0] in TABLE and words[0] != "x"):
            continue
        command, rest = look_up(line)
        assert not command.topics or not rest, line
