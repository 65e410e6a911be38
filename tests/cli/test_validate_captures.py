"""The rule by which captures are held out was stated before anything was fitted: it never changes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from neurontools.validation.captures import RULE, captures, compare, held_out, summary
from tests.cli.captures import capture, neff
from tests.cli.check import checked_json
from tests.cli.conftest import Cli


@pytest.mark.parametrize(
    ("path", "held"),
    [
        ("asst4-trainium2/part1/stream_256k_fd1k.ntff", True),
        ("asst4-trainium2/part1/transpose_1024.ntff", False),
        ("cs149-pa4/part2/my_conv_kernel_float32_smaller.ntff", False),
    ],
)
def test_the_split_is_the_one_that_was_stated(path: str, held: bool) -> None:
    assert held_out(path) is held


def test_captures_are_compared_and_summed_up(cli: Cli, root: Path, tmp_path: Path) -> None:
    """The capture was made a quarter slower than the emulator was then."""
    folder = tmp_path / "repository"
    folder.mkdir()
    shutil.copy(capture(root), folder / "double.ntff")
    neff(root, folder)
    page = tmp_path / "page.md"
    done = cli("profile", "validate", "A-3", "--captures", tmp_path, "--write", page, "--json")
    result = checked_json(done, "profile validate")
    (row,), (total,) = result["captures"], result["capture_summary"]
    assert row["path"] == "repository/double.ntff" and row["held_out"] == held_out(row["path"]) == total["held_out"]
    assert row["words"] == 9 and row["transfers"] == 2
    assert row["error"] == pytest.approx(-0.2, abs=0.07) and abs(row["error"]) == total["median_error"]
    assert row["word_median"] <= row["word_most"] and total["captures"] == 1
    assert "| repository/double.ntff | trn2 |" in page.read_text() and RULE in page.read_text()
    assert result["left_out"] == []  # there is no other repository
    shutil.copytree(folder, tmp_path / "other")
    done = cli("profile", "validate", "A-3", "--captures", tmp_path, "--write", page)
    assert "captures, " in done.out and "other left out: median error " in done.out
    assert "## One repository left out" in page.read_text() and "| repository | trn2 | 1 |" in page.read_text()


def test_a_folder_without_captures_and_one_without_its_neff_are_refused(cli: Cli, root: Path, tmp_path: Path) -> None:
    refused = cli("profile", "validate", "A-3", "--captures", tmp_path)
    assert refused.status == 4 and "holds no capture" in refused.error_line
    shutil.copy(capture(root), tmp_path / "double.ntff")
    refused = cli("profile", "validate", "A-3", "--captures", tmp_path)
    assert refused.status == 4 and "0 NEFFs beside it, expected one or double.neff" in refused.error_line


def test_public_captures_are_as_near_as_the_report_says(corpus: Path) -> None:
    """Every capture at hand, also those that are held out: programs within 15 percent, words within 3 in the median."""
    rows = [compare(corpus, path, file) for path, file in captures(corpus)]
    assert all(abs(row.error) <= 0.15 for row in rows), max(rows, key=lambda row: abs(row.error))
    for each in summary(rows):
        assert each.word_median <= 0.03, each
