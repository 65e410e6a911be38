"""A run against its graph: mistakes of a compiler are found at the operation that they are in, and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from formats.errors import NotFoundError
from formats.hlo.text import parse_module
from formats.neff.operations import Held, Operation, Operations
from neurontools.cli import app
from neurontools.debugger import Session
from neurontools.divergence.graph_reference import Reference
from neurontools.divergence.graph_run import compare_graph, compare_operations
from neurontools.divergence.results import GraphRun
from tests.debugger.graph import INPUTS, LOOP, MODEL, mistaken, model, shared

X = {"input0": np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)}


def compared(neff: Any, inputs: dict[str, Any], chosen: tuple[float, float] | None = None) -> GraphRun:
    """Run and compare."""
    return compare_graph(Session(neff, inputs, timing=False), chosen)


@pytest.mark.parametrize("text", [MODEL, LOOP], ids=["model", "loop"])
def test_what_is_compiled_rightly_agrees(text: str) -> None:
    found = compared(model(1, text), INPUTS if text is MODEL else X)
    assert found.same, found.first
    assert found.compared >= 0.6 * found.operations
    assert found.first is None
    assert not found.others


def test_tiles_of_both_cores_are_compared() -> None:
    neff, inputs = shared()
    found = compared(neff, inputs)
    assert found.same, found.first
    assert found.compared >= 14
    assert not found.untried


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("tanh(add.1)", "logistic(add.1)", "tanh.1"),
        ("add(dot.1, bb.1)", "subtract(dot.1, bb.1)", "add.1"),
        ("multiply(tanh.1, tanh.1)", "add(tanh.1, tanh.1)", "square.1"),
        ("constant(0.5)", "constant(0.50002)", "call.1/c.1"),
        ("multiply(call.2, add.1)", "multiply(call.1, add.1)", "out.1"),
        ("add(p.1, cs.1)", "maximum(p.1, cs.1)", "call.1/shift.1"),
    ],
)
def test_a_mistake_is_found_where_it_is(old: str, new: str, name: str) -> None:
    found = compared(mistaken(old, new), INPUTS)
    assert not found.same
    assert found.first is not None
    assert found.first.name == name
    assert found.first.difference.differing
    # What follows is right for the operands that it had; a computation may be called again.
    assert {one.rpartition("/")[2] for one in found.others} <= {name.rpartition("/")[2]}


@pytest.mark.parametrize(
    ("old", "new", "name", "turn"),
    [
        ("add(part.2, v.2)", "subtract(part.2, v.2)", "while.3/grown.2", 0),
        ("cosine(v.2)", "sine(v.2)", "while.3/part.2", 0),
        ("add(n.2, one.2)", "shift-left(one.2, n.2)", "while.3/next.2", 2),  # 1, 2, 4
    ],
)
def test_a_mistake_in_a_loop_is_found_in_its_turn(old: str, new: str, name: str, turn: int) -> None:
    found = compared(mistaken(old, new, LOOP), X)
    assert found.first is not None
    assert (found.first.name, found.first.turn) == (name, turn)
    assert found.first.source.file == "loop.py"


def test_tolerances_may_be_chosen_and_are_said() -> None:
    neff = mistaken("constant(0.5)", "constant(0.50002)")
    assert compared(neff, INPUTS, (1e-3, 1e-3)).same
    found = compared(neff, INPUTS, (0.0, 0.0)).first
    assert found is not None
    assert "as asked for" in found.tolerance
    rules = compared(mistaken("add(dot.1, bb.1)", "subtract(dot.1, bb.1)"), INPUTS).first
    assert rules is not None
    assert rules.tolerance.startswith("1e-05 of the result and 1e-05")


def test_sums_are_measured_by_their_terms() -> None:
    """Terms that cancel leave less than their rounding errors: no difference. A wrong term is one."""
    text = """HloModule sums

ENTRY main {
  x = f32[4,64] parameter(0)
  y = f32[64,8] parameter(1)
  ROOT dot = f32[4,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
    rng = np.random.default_rng(3)
    half = rng.standard_normal((4, 32)).astype(np.float32) * 1e3
    y = np.repeat(rng.standard_normal((32, 8)).astype(np.float32), 2, axis=0)
    x = np.stack([half, -half], axis=-1).reshape(4, 64) + np.float32(1e-4)
    given = {"input0": x, "input1": y}
    assert compared(model(1, text), given).same
    assert not compared(mistaken("dot(x, y)", "dot(y2, y)".replace("y2", "x"), text), given).others


def test_the_command_names_operation_line_and_instructions(tmp_path: Path) -> None:
    file, inputs = tmp_path / "model.neff", tmp_path / "in.npz"
    mistaken("tanh(add.1)", "logistic(add.1)").save(file)
    np.savez(inputs, **INPUTS)
    line = ["run", str(file), "--inputs", str(inputs), "--against", "hlo", "--no-timing"]
    shown = CliRunner().invoke(app, line)
    assert shown.exit_code == 1, shown.output
    assert "the first that differs: %tanh.1 = f32[211,24] tanh, model.py:6" in shown.output
    assert "break %tanh.1" in shown.output
    done = CliRunner().invoke(app, [*line, "--json"])
    document = json.loads(done.output)
    first = document["result"]["first"]
    assert first["source"] == {"file": "model.py", "line": 6, "operation": "tanh.1"}
    assert list(first["words"]) == ["Activation"]
    assert first["operands"][0]["name"] == "add.1"
    model().save(file)
    assert CliRunner().invoke(app, line).exit_code == 0


def test_a_file_without_its_graph_is_refused(program_file: Path) -> None:
    with pytest.raises(NotFoundError, match="does not hold the graph"):
        compared(program_file, {})


def test_two_compilations_are_compared_by_operation(tmp_path: Path) -> None:
    one, other, inputs = tmp_path / "one.neff", tmp_path / "other.neff", tmp_path / "in.npz"
    model().save(one)
    mistaken("multiply(tanh.1, tanh.1)", "cosine(tanh.1)").save(other)
    np.savez(inputs, **INPUTS)
    done = CliRunner().invoke(app, ["diff-run", str(one), str(other), "--inputs", str(inputs), "--json"])
    assert done.exit_code == 1, done.output
    found = json.loads(done.output)["result"]["operations"]
    assert (found["name"], found["source"]["line"]) == ("square.1", 7)
    shown = CliRunner().invoke(app, ["diff-run", str(one), str(other), "--inputs", str(inputs)])
    assert "first operation that differs: %square.1 = f32[211,24], model.py:7" in shown.output


def test_loops_of_two_compilations_are_compared_turn_by_turn() -> None:
    sessions = [Session(neff, X, timing=False) for neff in (
        model(1, LOOP), mistaken("add(n.2, one.2)", "shift-left(one.2, n.2)", LOOP))]  # fmt: skip
    found = compare_operations(*sessions, 0.0, 0.0)
    assert found is not None
    assert (found.name, found.turn) == ("while.3", None)  # a later operation of main: what the loop ends with
    same = compare_operations(*(Session(model(1, LOOP), X, timing=False) for _ in range(2)), 0.0, 0.0)
    assert same is not None
    assert same.name is None
    assert same.compared


HIDDEN = """HloModule hidden
body { ROOT p = (f32[2]) parameter(0) }
condition { q = (f32[2]) parameter(0)
  ROOT c = pred[] custom-call(q), custom_call_target="nobody_knows" }
ENTRY main { x = f32[2] parameter(0)
  t = (f32[2]) tuple(x)
  w = (f32[2]) while(t), condition=condition, body=body
  v = f32[2] get-tuple-element(w), index=0
  ROOT n = f32[2] negate(v) }
"""


class _Held:
    """A recorder of a device that held the results of two operations, the second one wrong."""

    def __init__(self) -> None:
        held = Held("f32", (2,), "float32")
        self.operations = Operations([Operation(name, "", "", "", 0, (held,)) for name in "wn"])
        self.values = {"w": np.array([1.0, 2.0], np.float32), "n": np.array([-1.0, 2.0], np.float32)}

    def loop_of(self, row: Operation) -> str:
        return ""

    def value(self, row: Operation, number: int, turn: int = 0) -> Any:
        return self.values[row.name]


def test_behind_a_loop_that_the_interpreter_cannot_compute_it_goes_on_comparing() -> None:
    reference = Reference(_Held())  # type: ignore[arg-type]
    reference.run(parse_module(HIDDEN), [np.array([1.0, 2.0], np.float32)])
    assert [gap.row.name for gap in reference.gaps] == ["n"] and "%c" in reference.untried["w"]
