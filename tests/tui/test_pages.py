"""The screens and keys in the documentation are the program's own; NEURONTOOLS_GOLDENS=1 renews them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from neurontools.tui.actions import ACTIONS
from neurontools.tui.help import key_text
from tests.tui.driving import GOLDENS

_SCREEN = re.compile(r"(<!-- screen: ([\w-]+) -->\n```text\n)(.*?)(```\n)", re.DOTALL)
_CAPTURE = re.compile(r"(<!-- capture: ([\w-]+) -->\n```text\n)(.*?)(```\n)", re.DOTALL)
_KEYS = re.compile(r"(## Keys\n\n).*?(\n\n`:` types)", re.DOTALL)


def _table() -> str:
    rows = [f"| `{key_text(a.keys)}` | {a.name} | {a.summary} |" for a in ACTIONS]
    return "\n".join(["| key | name | what it does |", "|---|---|---|", *rows])


def _renewed(text: str, pictures: Path) -> str:
    text = _CAPTURE.sub(lambda found: found[1] + (pictures / f"{found[2]}.txt").read_text() + found[4], text)
    text = _SCREEN.sub(lambda found: found[1] + (GOLDENS / f"{found[2]}.txt").read_text() + found[4], text)
    return _KEYS.sub(lambda found: found[1] + _table() + found[2], text)


@pytest.mark.parametrize("page", ["docs/tui.md", "README.md"])
def test_screens_and_keys_are_real(page: str, root: Path) -> None:
    path = root / page
    text = path.read_text(encoding="utf-8")
    assert _SCREEN.search(text), f"{page} shows no screen"
    if os.environ.get("NEURONTOOLS_GOLDENS"):
        path.write_text(_renewed(text, root / "docs/pictures"), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == _renewed(text, root / "docs/pictures"), (
        "renew it with NEURONTOOLS_GOLDENS=1"
    )
