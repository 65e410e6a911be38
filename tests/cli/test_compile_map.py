"""`neurontools compile map`: from operations to instructions and source lines, and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.neff import open_neff
from neurontools.compiler.graph import Origin, Value
from neurontools.compiler.rewriting import Builder
from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli
from tests.compiler.support import compiled, floats


@pytest.fixture
def program(tmp_path: Path) -> Path:
    def make(b: Builder, x: Value, y: Value) -> list[Value]:
        b.graph.origin = Origin("add.5", "model.py", 42)
        total = b.op("add", x, y)
        b.graph.origin = Origin("reduce.9", "model.py", 43)
        return [total, b.reduce(total, (1,), "maximum", 0.0)]

    (tmp_path / "p.neff").write_bytes(compiled(make, floats(300, 40), floats(300, 40)).neff)
    return tmp_path / "p.neff"


def test_every_instruction_is_of_one_operation_or_none(cli: Cli, program: Path) -> None:
    result = checked_json(cli("compile", "map", program, "--json"), "compile map")
    assert {(one["operation"], one["file"], one["line"]) for one in result["operations"]} == {
        ("add.5", "model.py", 42), ("reduce.9", "model.py", 43),
    }  # fmt: skip
    seen = [(engine, pc) for one in result["operations"] for engine, pcs in one["pcs"].items() for pc in pcs]
    assert len(seen) == len(set(seen))
    (graph,) = open_neff(program).subgraphs
    assert len(seen) + result["unnamed"] == sum(len(one.offsets) for one in graph.streams.values())
    names = {one["operation"]: {graph.streams["DVE"][pc].name for pc in one["pcs"]["DVE"]}
             for one in result["operations"]}  # fmt: skip
    assert "TENSOR_TENSOR" in names["add.5"]
    assert "TENSOR_REDUCE" in names["reduce.9"]
    assert "TENSOR_REDUCE" not in names["add.5"]


def test_both_ways(cli: Cli, program: Path) -> None:
    def asked(place: str) -> list[str]:
        result = checked_json(cli("compile", "map", program, place, "--json"), "compile map")
        return [one["operation"] for one in result["operations"]]

    assert asked("%add.5") == asked("add.5") == asked("model.py:42") == asked("42") == ["add.5"]
    (row,) = checked_json(cli("compile", "map", program, "reduce.9", "--json"), "compile map")["operations"]
    for engine, pcs in row["pcs"].items():
        assert asked(f"{engine}:{pcs[-1]}") == ["reduce.9"]
    assert "%reduce.9" in cli("compile", "map", program, "model.py").out


@pytest.mark.parametrize("place", ["%dot.1", "model.py:99", "other.py", "PE:0", "DVE:9999"])
def test_nothing_is_not_found(cli: Cli, program: Path, place: str) -> None:
    ended = cli("compile", "map", program, place)
    assert ended.status == 4
    assert "%add.5, %reduce.9" in ended.error_line


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_files(cli, "compile map", tmp_path)
