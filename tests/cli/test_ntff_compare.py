"""`neurontools ntff compare`."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from neurontools.ntff.residual_plot import COLUMNS, column, plot
from tests.cli.captures import capture, neff, refuses_bad_captures
from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def test_every_word_and_transfer_has_its_counterpart(cli: Cli, root: Path, tmp_path: Path) -> None:
    """The capture was made a quarter slower than the emulator was then."""
    file, table = neff(root, tmp_path), tmp_path / "residuals.csv"
    result = checked_json(cli("ntff", "compare", capture(root), file, "--csv", table, "--json"), "ntff compare")
    assert (result["words"], result["waits"], result["transfers"]) == (9, 1, 2)
    assert (result["captured_only"], result["emulated_only"], result["outcome"]) == (0, 0, "finished")
    assert sum(result["spread"]) == 9 and sum(result["moves_spread"]) == 2
    assert sum(one["number"] for one in result["opcodes"]) == sum(one["number"] for one in result["classes"]) == 9
    (tensor,) = [one for one in result["classes"] if one["name"] == "TENSOR_TENSOR"]
    assert tensor["owner"] == "DVE" and tensor["ratio"] == pytest.approx(0.8, abs=0.05)
    assert tensor["shape"] == "src0 fp32 SBUF 64, src1 fp32 SBUF 64, dst fp32 SBUF 64"
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert len(rows) == 11 and {one["kind"] for one in rows} == {"word", "transfer"}
    for one in rows:
        if one["ratio"]:
            assert float(one["ratio"]) == pytest.approx(float(one["emulated_ns"]) / float(one["captured_ns"]), abs=1e-3)


def test_what_is_off_by_most_comes_first(cli: Cli, root: Path, tmp_path: Path) -> None:
    result = cli("ntff", "compare", capture(root), neff(root, tmp_path), "--json").json["result"]
    for name in ("opcodes", "classes", "moves"):
        off = [one["off_ns"] for one in result[name]]
        assert off == sorted(off, reverse=True)
        for one in result[name]:
            if one["number"] == 1:
                assert one["off_ns"] == pytest.approx(abs(one["emulated_ns"] - one["captured_ns"]), abs=0.01)


def test_tables_and_plots(cli: Cli, root: Path, tmp_path: Path) -> None:
    file = neff(root, tmp_path)
    text = cli("ntff", "compare", capture(root), file, "--count", 1).out
    assert "9 words and 2 transfers on both sides; 1 wait beside" in text
    assert "more, off by less" in text and "words by emulated over captured time" in text and "█" in text
    assert "█" not in cli("ntff", "compare", capture(root), file, "--no-plot").out
    np.savez(tmp_path / "in.npz", x=np.ones((128, 64), np.float32))
    with_data = cli("ntff", "compare", capture(root), file, "--inputs", tmp_path / "in.npz", "--count", 1)
    assert with_data.out == text


def test_columns_of_the_plot() -> None:
    middle = COLUMNS // 2
    assert [column(ratio) for ratio in (1, 2, 0.5, 8, 1e9, 1e-9)] == [
        middle, middle + 4, middle - 4, COLUMNS - 1, COLUMNS - 1, 0]  # fmt: skip
    lines = plot("words", [0] * middle + [9] + [0] * (middle - 1) + [1])
    assert lines[-1].split() == ["1/8", "1/4", "1/2", "1", "2", "4", "8"]
    assert lines[-3].index("█") == 2 + 2 * middle == lines[-1].index("1 ", 20)


def test_another_program_is_refused(cli: Cli, root: Path) -> None:
    ended = cli("ntff", "compare", capture(root), root / "fixtures" / "neff" / "add_exp.neff")
    assert ended.status == 3 and "the capture is of another program" in ended.err and ended.out == ""


def test_bad_files(cli: Cli, root: Path, tmp_path: Path) -> None:
    refuses_bad_captures(cli, "ntff compare", root, tmp_path, neff(root, tmp_path))
    ended = cli("ntff", "compare", capture(root), tmp_path / "none.neff")
    assert ended.status != 0 and "none.neff" in ended.error_line
    ended = cli("ntff", "compare", capture(root), neff(root, tmp_path), "--csv", tmp_path / "no" / "x.csv")
    assert ended.status != 0 and ended.out == ""
