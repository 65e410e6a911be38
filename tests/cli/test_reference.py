"""`neurontools reference`: cites as messages print them, whole pages, and what is neither."""

from __future__ import annotations

import pytest

from formats.cites import PAGES
from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def test_a_section(cli: Cli) -> None:
    ended = cli("reference", "hardware.md", "5.3")
    assert ended.status == 0 and ended.err == ""
    lines = ended.out.splitlines()
    assert lines[0].endswith("reference/hardware.md#5-3") and lines[2] == "### 5.3 Scalar engine"
    assert "5.4" not in ended.out and "sources:" not in ended.out


def test_a_cite_as_it_was_printed(cli: Cli) -> None:
    cite = "hardware.md 3.9, 8.1: A-1, A-2"
    result = checked_json(cli("reference", cite, "--json"), "reference")
    named = [(one["page"], one["number"]) for one in result["sections"]]
    assert named == [("hardware.md", "3.9"), ("hardware.md", "8.1")]
    assert result["pages"] == [] and result["sections"][0]["text"].startswith("### 3.9 Overheads")


def test_a_section_holds_those_below_it(cli: Cli) -> None:
    ended = cli("reference", "isa.md", "10")
    assert "### 10.3 Barriers" in ended.out and "## 11" not in ended.out


@pytest.mark.parametrize("words", [[], ["isa.md"]])
def test_pages_by_their_headings(cli: Cli, words: list[str]) -> None:
    ended = cli("reference", *words)
    assert ended.status == 0 and "  7     Layouts of compiler words" in ended.out.splitlines()
    result = checked_json(cli("reference", *words, "--json"), "reference")
    assert [one["name"] for one in result["pages"]] == list(words or PAGES) and result["sections"] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["foo.md", "3"], "'foo.md 3' names no reference page; there are isa.md"),
        (["isa.md", "99"], "isa.md has no section 99; it has 0, 1"),
    ],
)
def test_what_is_not_there(cli: Cli, words: list[str], message: str) -> None:
    ended = cli("reference", *words)
    assert ended.status == 4 and message in ended.error_line
    failed = cli("reference", *words, "--json")
    assert failed.status == 4 and failed.json["error"]["kind"] == "not-found"
    checked_json(failed, "reference")
