"""The funnel: every error has its status, one line or one JSON document, and no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

import neurontools.cli
from formats.errors import FormatError, NotFoundError, UnsupportedError
from neurontools.command.errors_to_exit import classify
from neurontools.command.exits import EXIT_MEANINGS, ExitStatus
from neurontools.command.lazy import rows_of
from tests.cli.conftest import Cli


class LimitError(FormatError):
    """Any error that is a FormatError by inheritance."""


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (FormatError("cut short", path="x.neff", offset=12), 3),
        (LimitError("too large"), 3),
        (NotFoundError("no engine 'vpu'"), 4),
        (FileNotFoundError(2, "No such file or directory", "x.neff"), 4),
        (PermissionError(13, "Permission denied", "x.neff"), 3),
        (IsADirectoryError(21, "Is a directory", "x"), 3),
        (UnsupportedError("gather DMA is not modelled"), 6),
        (MemoryError(), 3),
        (typer.BadParameter("no"), 2),
        (KeyError("x"), 70),
        (AssertionError(), 70),
    ],
)
def test_each_error_has_its_status(error: Exception, status: int) -> None:
    failure = classify(error)
    assert failure.status == status
    assert "\n" not in failure.message


def test_every_status_has_a_meaning() -> None:
    assert set(EXIT_MEANINGS) == set(ExitStatus)


def test_help_and_version(cli: Cli) -> None:
    assert cli("--version").out.startswith("neurontools 0.")
    text = cli("--help").out
    assert all(name in text for name in rows_of(""))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nef"], "did you mean neff?"),
        (["neff", "inf"], "did you mean info?"),
        (["--colour"], "--colour"),
        (["neff", "info"], "FILE"),
        (["neff", "vars", "x.neff", "--subgraph", "-1"], "--subgraph"),
        (["disasm", "x.bin", "--range", "a:b"], "--range"),
    ],
)
def test_usage_errors_are_one_line_and_2(cli: Cli, tmp_path: Path, arguments: list[str], says: str) -> None:
    (tmp_path / "x.bin").write_bytes(bytes(64))
    ended = cli(*(str(tmp_path / a) if a.startswith("x.") else a for a in arguments))
    assert ended.status == 2
    assert says in ended.error_line
    assert ended.out == ""


def test_a_group_alone_prints_its_help(cli: Cli) -> None:
    ended = cli("neff")
    assert ended.status == 2
    assert ended.err.startswith("Usage: neurontools neff")


def test_errors_keep_the_envelope(cli: Cli) -> None:
    ended = cli("neff", "info", "missing.neff", "--json")
    assert ended.status == 4 and ended.err == ""
    document = ended.json
    assert document["schema"] == "neurontools.neff.info/1"
    assert document["exit"] == 4
    assert document["inputs"] == {"file": "missing.neff"}
    assert document["error"] == {"kind": "not-found", "message": "missing.neff: no such file"}
    assert "result" not in document


def test_usage_errors_keep_the_envelope(cli: Cli) -> None:
    document = cli("neff", "info", "--json").json
    assert (document["schema"], document["exit"], document["error"]["kind"]) == ("neurontools.neff.info/1", 2, "usage")


@pytest.mark.parametrize(
    "command",
    ["profile run", "dbgstream record --output x.events", "diff-run", "memh map", "memh budget", "memh lint", "debug"],
)
@pytest.mark.parametrize("status", [1, 3])
def test_a_script_that_fails_early_keeps_the_envelope(cli: Cli, tmp_path: Path, command: str, status: int) -> None:
    """Nothing was printed with --json, and without it the traceback of the script only."""
    script = tmp_path / "early.py"
    script.write_text(f"raise SystemExit({status})\n")
    words = [str(tmp_path / word) if word == "x.events" else word for word in command.split()]
    says = f"{script}: the script ended with status {status}, before the launch that was asked for"
    ended = cli(*words, script, "--json")
    document = ended.json
    assert ended.status == document["exit"] == status and "result" not in document
    assert document["error"] == {"kind": "script", "message": says, "path": str(script)}
    ended = cli(*words, script, *(("--cli",) if command == "debug" else ()))
    assert (ended.status, ended.error_line) == (status, says)


def test_a_folder_that_is_not_there_is_called_one(cli: Cli, root: Path, tmp_path: Path) -> None:
    there = tmp_path / "no" / "x"
    for words in (("asm", root / "examples/race.s"), ("hlo", "tokens", "add", root / "examples/models/mlp.hlo")):
        ended = cli(*words, "--output", there)
        assert (ended.status, ended.error_line) == (4, f"{there.parent}: no such folder")


def test_a_bug_is_70_and_says_so(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(neurontools.cli.typer.main, "get_command", broken)
    ended = cli("--version")
    assert ended.status == 70
    assert ended.error_line == (
        "bug in neurontools: ZeroDivisionError: division by zero (NEURONTOOLS_DEBUG=1 shows the traceback)"
    )
    monkeypatch.setenv("NEURONTOOLS_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        neurontools.cli.main(["--version"])


def test_interrupts_end_with_130(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(neurontools.cli.typer.main, "get_command", interrupted)
    assert cli("--version").status == 130


def test_a_closed_pipe_is_quiet(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "nops.bin"
    file.write_bytes((b"\xa4\x10" + bytes(62)) * 20_000)
    reader = f"import sys; from neurontools.cli import main; sys.exit(main(['disasm', {str(file)!r}]))"
    process = subprocess.Popen([sys.executable, "-c", reader], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    noise = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == ExitStatus.BROKEN_PIPE
    assert noise == b""
