"""`neurontools profile validate`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def test_text_and_json_agree(cli: Cli) -> None:
    result = checked_json(cli("profile", "validate", "A-1", "A-9", "--json"), "profile validate")
    assert [(row["id"], row["held_out"], row["within"]) for row in result["rows"]] == [
        ("A-1", False, True),
        ("A-9", True, True),
    ]
    text = cli("profile", "validate", "A-1", "A-9").out
    assert f"{result['rows'][0]['ours']:,.1f}" in text
    for line, use, entry in zip(text.splitlines()[-2:], ("calibrate", "test"), result["summary"], strict=True):
        assert line.startswith(f"Single instructions, {use}: 1 of 1 rows within {entry['limit']:.0%}, median error ")
        assert line.endswith(f" largest {entry['largest_error']:.1%}")


def test_a_row_that_is_further_off_than_aimed_at_is_a_finding(cli: Cli) -> None:
    ended = cli("profile", "validate", "A-7")
    assert ended.status == 1 and "beyond" in ended.out


def test_the_report_is_written(cli: Cli, tmp_path: Path) -> None:
    page = tmp_path / "report.md"
    assert cli("profile", "validate", "A-1", "--write", page, "--quiet").status == 0
    text = page.read_text()
    assert text.startswith("# Timing") and "| A-1 | trn1 |" in text and "test_mlp_tkg.py" in text


def test_unknown_rows_are_not_found(cli: Cli) -> None:
    ended = cli("profile", "validate", "Q-9")
    assert ended.status == 4 and ended.error_line.startswith("no target 'Q-9'; there are A-1, ")
