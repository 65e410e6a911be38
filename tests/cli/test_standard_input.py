"""Standard input of commands that read it: bytes that are no text, and more of them than a command takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from formats.errors import FormatError
from neurontools.command.files import read_text_or_input

NO_TEXT = b"break 2\n\xff\xfe\n"


def ended(root: Path, *words: object, given: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a process of its own, whose streams refuse what is no UTF-8, as most terminals' do."""
    environment = {"PYTHONPATH": str(root), "PYTHONIOENCODING": "utf-8:strict", "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-m", "neurontools", *map(str, words)]
    return subprocess.run(command, input=given, env=environment, capture_output=True, timeout=120, check=False)


@pytest.mark.parametrize("words", [("mem", "explain"), ("monitor", "validate"), ("monitor", "summarize")])
def test_what_is_no_text_is_refused_with_its_offset(root: Path, words: tuple[str, ...]) -> None:
    found = ended(root, *words, "-", given=NO_TEXT)
    assert found.returncode == 3, found.stderr
    assert found.stderr.decode() == "neurontools: -: 0x000008: not text in UTF-8\n"


def test_a_debugger_refuses_the_line(root: Path) -> None:
    found = ended(root, "debug", root / "examples/race.s", "--cli", given=NO_TEXT)
    assert found.returncode == 2 and b"breakpoint 1" in found.stdout and b"bug" not in found.stderr, found.stderr


def test_more_than_a_command_takes_is_refused_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["head", "-c", "20", "/dev/zero"], stdout=subprocess.PIPE, text=True) as process:
        monkeypatch.setattr(sys, "stdin", process.stdout)
        with pytest.raises(FormatError, match="too much on standard input, expected at most 10 bytes"):
            read_text_or_input(Path("-"), 10)
