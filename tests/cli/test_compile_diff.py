"""`neurontools compile diff`: two compilations of a graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.debugger.graph import MODEL, mistaken, model


@pytest.fixture
def module(tmp_path: Path) -> Path:
    (tmp_path / "model.txt").write_text(MODEL)
    return tmp_path / "model.txt"


def test_two_sets_of_options_are_compared_pass_by_pass(cli: Cli, module: Path) -> None:
    ended = cli("compile", "diff", module, "--a", "lnc=1", "--b", "lnc=1,auto_cast=matmult", "--json")
    assert ended.status == 1
    result = checked_json(ended, "compile diff")
    assert not result["same"]
    assert [side["options"] for side in result["sides"]] == [{"lnc": 1}, {"lnc": 1, "auto_cast": "matmult"}]
    by_pass = {one["name"]: one for one in result["passes"]}
    assert by_pass["expand"]["same"]
    assert not by_pass["precision"]["same"]
    assert by_pass["precision"]["opcodes"] == {"convert": [0, 2]}
    assert "dot.1" in {one["name"] for one in result["operations"]}
    shown = cli("compile", "diff", module, "--a", "lnc=1", "--b", "lnc=1,auto_cast=matmult")
    assert "convert 0 -> 2" in shown.out
    assert "%dot.1" in shown.out


def test_two_files_are_compared_by_operation(cli: Cli, tmp_path: Path) -> None:
    model().save(tmp_path / "a.neff")
    mistaken("multiply(tanh.1, tanh.1)", "tanh(tanh.1)").save(tmp_path / "b.neff")
    result = checked_json(cli("compile", "diff", tmp_path / "a.neff", tmp_path / "b.neff", "--json"), "compile diff")
    assert result["passes"] == []
    assert "square.1" in {one["name"] for one in result["operations"]}
    same = cli("compile", "diff", tmp_path / "a.neff", tmp_path / "a.neff")
    assert same.status == 0
    assert "no operation differs" in same.out


@pytest.mark.parametrize(
    ("options", "status"),
    [(["--b", "lnc"], 3), (["--b", "nothing=1"], 3), (["--b", "lnc=x"], 3), (["--b", "fast_loading=2"], 3),
     (["--b", "auto_cast_type=f64,auto_cast=all"], 3), ([], 2), (["--a", "lnc=1", "--b", "lnc=1"], 2)],
)  # fmt: skip
def test_options_that_are_none_are_refused(cli: Cli, module: Path, options: list[str], status: int) -> None:
    assert cli("compile", "diff", module, *options).status == status


def test_a_compiled_file_takes_no_options(cli: Cli, tmp_path: Path) -> None:
    model().save(tmp_path / "a.neff")
    assert cli("compile", "diff", tmp_path / "a.neff", tmp_path / "a.neff", "--a", "lnc=1").status == 2
    assert cli("compile", "diff", tmp_path / "a.neff", tmp_path / "missing.neff").status == 4
