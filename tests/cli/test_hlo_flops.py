"""`neurontools hlo flops`."""

from __future__ import annotations

from pathlib import Path

from formats.hlo.text import parse_module
from neurontools.hlo.cost import Costs, trip_count
from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli
from tests.cli.hlo_modules import model
from tests.hlo_interpreter.cases import CASES


def test_flops(cli: Cli, tmp_path: Path) -> None:
    file = model(tmp_path)
    result = checked_json(cli("hlo", "flops", file, "--json"), "hlo flops")
    # 2*3*5*4 for the dot, 6 additions of windows of two, 3*(2-1) of the sum
    assert result["flops"] == 120 + 6 + 3 and result["instructions"][0]["name"] == "dot.1"
    assert "129 operations" in cli("hlo", "flops", file).out


def test_a_loop_counts_its_turns() -> None:
    text = next(each.text for each in CASES if each.name == "while")
    module = parse_module(text)
    loop = next(each for each in module.entry.instructions if each.opcode == "while")
    assert trip_count(loop) == 5
    costs = Costs(module)
    turn = sum(costs.of(each).flops for part in (loop.body, loop.condition) for each in part.instructions)
    assert costs.total.flops == 5 * turn
    endless = parse_module(text.replace("direction=LT", "direction=NE"))
    assert trip_count(next(each for each in endless.entry.instructions if each.opcode == "while")) is None


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_files(cli, "hlo flops", tmp_path)
