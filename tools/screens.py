"""Screens in the documentation are real: every ```console block is run, and `python -m tools screens` renews them all.

The blocks of one page run in order in one folder that holds nothing but `examples` and `fixtures`.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import tempfile
from pathlib import Path

from neurontools.cli import main
from tools.generate import ROOT

__all__ = ["PAGES", "files", "renewed"]

PAGES = ("README.md", "docs/commands.md", "docs/postmortem.md", "docs/tutorial.md")
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def files() -> dict[str, str]:
    """Return every page, its screens renewed."""
    return {page: renewed(page) for page in PAGES}


def renewed(page: str) -> str:
    """Return a page with the output of each of its commands as it is today."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("examples", "fixtures"):
            (Path(folder) / name).symlink_to(ROOT / name)
        os.chdir(folder)
        try:
            return _BLOCK.sub(lambda match: _block(match[1]), (ROOT / page).read_text())
        finally:
            os.chdir(before)


def _block(text: str) -> str:
    commands = [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]
    return "```console\n" + "".join(f"$ {command}\n{_output(command)}" for command in commands) + "```"


def _output(command: str) -> str:
    program, *arguments = shlex.split(command)
    if program != "neurontools":
        raise ValueError(f"a screen runs neurontools only: {command}")
    screen = io.StringIO()
    with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
        main(arguments)
    if "no such file" in screen.getvalue():  # the page would show an error in the place of an example
        raise FileNotFoundError(f"{command}: {screen.getvalue().strip()}")
    return screen.getvalue()
