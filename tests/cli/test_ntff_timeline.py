"""`neurontools ntff timeline`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from formats.neff import open_neff
from tests.cli.captures import capture, neff, refuses_bad_captures
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.formats.ntff.made import of_a_run


def test_time_by_engine_and_queue(cli: Cli, root: Path) -> None:
    result = checked_json(cli("ntff", "timeline", capture(root), "--json"), "ntff timeline")
    (core,) = result["cores"]
    assert [(one["engine"], one["words"]) for one in core["engines"]] == [
        ("PE", 1), ("Activation", 3), ("Pool", 1), ("DVE", 3), ("SP", 2)]  # fmt: skip
    assert [(one["queue"], one["packets"], one["bytes"]) for one in core["queues"]] == [
        ("qIn", 16, 32768), ("qOut", 16, 32768)]  # fmt: skip
    assert result["emulated"] is None and result["program_ns"] == core["program_ns"] > 0
    assert "beside the emulator" not in cli("ntff", "timeline", capture(root)).out


def test_beside_the_emulator(cli: Cli, root: Path, tmp_path: Path) -> None:
    """The capture was made a quarter slower than the emulator is, so every ratio is four fifths."""
    file, made = neff(root, tmp_path), tmp_path / "made.ntff"
    made.write_bytes(of_a_run(open_neff(file), {"x": np.ones((128, 64), np.float32)}))
    ended = cli("ntff", "timeline", made, "--neff", file, "--json")
    emulated = checked_json(ended, "ntff timeline")["emulated"]
    assert emulated["outcome"] == "finished" and emulated["ratio"] == pytest.approx(0.8, abs=0.002)
    ratios = [one["ratio"] for one in emulated["engines"]]
    assert len(ratios) == 5 and all(ratio == pytest.approx(0.8, abs=0.01) for ratio in ratios)
    np.savez(tmp_path / "in.npz", x=np.ones((128, 64), np.float32))
    with_data = cli("ntff", "timeline", made, "--neff", file, "--inputs", tmp_path / "in.npz", "--json")
    assert with_data.json["result"]["emulated"] == emulated
    text = cli("ntff", "timeline", made, "--neff", file).out
    assert "beside the emulator" in text and "0.80" in text


def test_inputs_need_a_neff(cli: Cli, root: Path, tmp_path: Path) -> None:
    ended = cli("ntff", "timeline", capture(root), "--inputs", tmp_path / "in.npz")
    assert ended.status == 2 and "give it with --neff" in ended.err


def test_a_neff_of_another_program_is_not_compared(cli: Cli, root: Path) -> None:
    ended = cli("ntff", "timeline", capture(root), "--neff", root / "fixtures" / "ntff" / "double.s")
    assert ended.status == 3 and "double.s" in ended.error_line


def test_bad_files(cli: Cli, root: Path, tmp_path: Path) -> None:
    refuses_bad_captures(cli, "ntff timeline", root, tmp_path)
