"""Screens of a fixed size with fixed state: a person's own settings stay out of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.driving import open_program


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture
def deadlock(root: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a session on the example whose engines wait for each other, named as from the top of the source tree."""
    monkeypatch.chdir(root)
    return open_program(Path("examples/deadlock.s"))


@pytest.fixture
def double(program_file: Path):
    """Return a session on the program that doubles its input."""
    return open_program(program_file)
