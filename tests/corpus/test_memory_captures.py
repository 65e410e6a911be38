"""docs/memory-captures.md is what the public captures give."""

from __future__ import annotations

from pathlib import Path

from tools.memory_captures import PATH, compare, page


def test_the_page_is_that_of_the_captures(corpus: Path) -> None:
    found = compare(corpus)
    committed = PATH.read_text()
    here = [one for one in found if f"| {one.name} |" in committed]
    assert len(here) >= 33
    lines = set(committed.splitlines())
    assert not [line for line in page(here).splitlines() if ".ntff |" in line and line not in lines]
