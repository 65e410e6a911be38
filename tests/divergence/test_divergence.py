"""The first result that differs: planted differences are found where they are made, equal runs are equal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from emulator.errors import InputError
from formats.errors import NotFoundError
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from neurontools.debugger import Session
from neurontools.debugger.opening import open_session
from neurontools.divergence.array_difference import difference
from neurontools.divergence.golden import compare_golden
from neurontools.divergence.lockstep import compare_runs
from neurontools.divergence.results import GoldenRow, GoldenRun
from neurontools.divergence.view import golden_lines
from neurontools.program.configuration import RunConfiguration

X = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)


def opener(source: str, name: str = "double.s", **options: Any) -> Callable[[], Session]:
    """Return a function that opens a program at its beginning."""
    neff = to_neff(parse_program(source, name))
    inputs = options.pop("inputs", {"x": X})
    return lambda: Session(neff, inputs, journal_bytes=0, **options)


@pytest.fixture(scope="module")
def softmax(root: Path) -> Session:
    """Return the example at its beginning; tests open it anew."""
    return open_session(root / "examples" / "softmax.py")


def again(session: Session, **inputs: np.ndarray) -> Callable[[], Session]:
    """Return a function that opens the same program, with some inputs replaced."""
    return lambda: Session(session.neff, {**session.inputs, **inputs}, journal_bytes=0)


# --- arrays ----------------------------------------------------------------------------------------------------------


def test_equal_arrays_and_tolerances() -> None:
    one = np.array([[1.0, np.nan, np.inf], [2.0, -0.0, 5.0]], np.float32)
    assert difference(one, one.copy()) is None
    other = one.copy()
    other[1] = 2.002, 0.0, 5.0
    assert difference(one, other, rtol=1e-2) is None and difference(one, other, atol=1e-2) is None
    found = difference(one, other)
    assert found is not None and (found.differing, found.first, found.worst) == (1, (1, 0), (1, 0))
    assert found.max_abs == pytest.approx(0.002, rel=1e-3) and found.max_rel == pytest.approx(0.001, rel=2e-3)
    assert found.nans == (1, 1)


def test_nan_against_a_number_is_the_worst() -> None:
    one, other = np.array([1.0, 9.0, 3.0]), np.array([1.5, 1.0, np.nan])
    found = difference(one, other, atol=1.0)
    assert found is not None and (found.differing, found.first, found.worst) == (2, (1,), (2,))
    assert (found.one, np.isnan(found.other), found.max_abs, found.nans) == (3.0, True, 8.0, (0, 1))


def test_integers_and_narrow_types() -> None:
    import ml_dtypes

    assert difference(np.array([1 << 60]), np.array([(1 << 60) + 1])) is not None
    narrow = np.array([1.0, 2.0], ml_dtypes.bfloat16)
    assert difference(narrow, np.array([1.0, 2.0], np.float32)) is None
    assert difference(np.array([3], np.uint8), np.array([250], np.uint8)).max_abs == 247
    # 2**64 - 1 apart: the difference of two signed integers needs more than a signed one.
    ends = np.iinfo(np.int64)
    assert difference(np.array([ends.min]), np.array([ends.max]), atol=5) is not None
    # A tolerance goes by the magnitude, which the smallest integer's own type does not hold.
    assert difference(np.array([ends.min + 5]), np.array([ends.min]), rtol=1e-3) is None


@pytest.mark.parametrize("other", [np.array([0], np.uint64), np.array([-1], np.int32), np.array([-1])])
def test_unsigned_integers_of_64_bits(other: npt.NDArray[Any]) -> None:
    largest = np.array([(1 << 64) - 1], np.uint64)
    for one, two in ((largest, other), (other, largest)):
        found = difference(one, two, atol=5)
        assert found is not None and found.max_abs == 2.0**64
    nearly = np.array([(1 << 63)], np.uint64), np.array([(1 << 63) - 1], np.int64)
    assert difference(*nearly) is not None and difference(*nearly, atol=1) is None


def test_infinities_are_told_as_what_they_are() -> None:
    found = difference(np.array([np.inf, 1.0, 2.0]), np.array([-np.inf, 1.0, np.inf]))
    assert found is not None and not found.max_abs and found.nans == (0, 0)
    rows = (GoldenRow("y", "HBM", 7, found),)
    text = "\n".join(golden_lines(GoldenRun(False, "finished", rows, (), None, None), "golden.npz"))
    assert "2 of 3 elements differ, between infinities and other values" in text and "NaN" not in text


# --- two runs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 7])
def test_schedules_of_one_program_agree(softmax: Session, seed: int) -> None:
    shaken = Session(softmax.neff, softmax.inputs, seed=seed, journal_bytes=0)
    found = compare_runs(again(softmax), lambda: shaken)
    assert found.same and found.compared == 14 and found.unmatched == (0, 0)
    assert all(stream.how == "position" for stream in found.alignments.streams)


def test_a_changed_operator_is_found_where_it_stands(program_text: str) -> None:
    changed = program_text.replace("op=ADD", "op=MULTIPLY")
    found = compare_runs(opener(program_text), opener(changed))
    item = found.divergence
    assert item is not None and item.other is not None and not found.same
    for side, operator in ((item.one, "ADD"), (item.other, "MULTIPLY")):
        assert (side.engine, side.pc, side.source.line) == ("DVE", 2, 17) and f"op={operator}" in side.text
    want = difference(2 * X, X * X)
    assert want is not None and item.operand == "dst"
    assert (item.difference.differing, item.difference.max_abs) == (want.differing, want.max_abs)
    assert [pair.difference for pair in item.inputs] == [None, None] and item.inputs[0].one.maximum == 8191
    assert item.outputs[0].difference is not None and item.outputs[0].region.startswith("nc0 SBUF[0:128, 0x5000")


def test_a_changed_input_is_found_at_the_transfer_that_brings_it(program_text: str) -> None:
    x = X.copy()
    x[3, 4] += 1
    item = compare_runs(opener(program_text), opener(program_text, inputs={"x": x})).divergence
    assert item is not None and (item.one.kind, item.one.engine, item.one.pc) == ("dma", "qIn", 1)
    assert item.difference.differing == 1 and item.inputs[0].tensor == "x" and item.inputs[0].difference is not None
    assert compare_runs(opener(program_text), opener(program_text, inputs={"x": x}), atol=2.5).same


def test_streams_that_differ_are_matched_by_line(program_text: str) -> None:
    longer = program_text.replace(".engine dve\n", ".engine dve\n    NOP cycle=0\n    NOP cycle=0\n")
    found = compare_runs(opener(program_text), opener(longer))
    how = {stream.engine: stream.how for stream in found.alignments.streams}
    assert found.same and how["DVE"] == "line" and how["SP"] == "position"


def test_a_fault_on_one_side_is_a_difference(program_text: str) -> None:
    broken = program_text.replace("src1=fp32@0x4000", "src1=fp32@0x37ff0")
    found = compare_runs(opener(program_text), opener(broken))
    assert found.outcomes == ("finished", "fault") and not found.same and found.divergence is None


def test_targets_trigger_transfers_with_different_words(root: Path) -> None:
    script = root / "examples" / "attention.py"
    sides = [open_session(script, RunConfiguration(target=name)) for name in ("trn2", "trn1")]
    found = compare_runs(again(sides[0]), again(sides[1]), rtol=1e-3, atol=1e-5)
    assert found.same and found.unmatched[0] == 0 and found.compared == 39
    assert {stream.how for stream in found.alignments.streams} == {"position", "line"}


# --- known arrays ----------------------------------------------------------------------------------------------------


def values(session: Session) -> dict[str, np.ndarray]:
    """Return what NumPy makes of the example."""
    x = session.inputs["x"].astype(np.float64)
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    total = powers.sum(axis=1, keepdims=True)
    return {"powers": powers[:128], "total": total[:128], "total_1": total[128:], "result": powers[:128] / total[:128],
            "out": powers / total}  # fmt: skip


def test_tiles_and_outputs_by_name(softmax: Session) -> None:
    found = compare_golden(again(softmax), values(softmax), rtol=1e-4, atol=1e-6)
    assert found.same and found.divergence is None and found.unknown == ()
    assert {row.name: row.space for row in found.rows} == {
        "powers": "SBUF", "total": "SBUF", "total_1": "SBUF", "result": "SBUF", "out": "HBM"
    }  # fmt: skip


def test_the_first_wrong_tile_names_its_writer(softmax: Session) -> None:
    golden = values(softmax)
    golden["total"] = golden["total"] * 1.01
    golden["out"] = golden["out"] * 1.01
    found = compare_golden(again(softmax), golden, rtol=1e-4, atol=1e-6)
    item = found.divergence
    assert item is not None and item.tensor == "total" and item.other is None and not found.same
    assert item.difference.differing == 128 and item.one.source.file.endswith("softmax.py")
    assert "total" in [pair.tensor for pair in item.outputs] and item.inputs[0].one.elements == 128 * 320
    assert [row.name for row in found.rows if row.difference is not None] == ["total", "out"]


def test_of_an_output_written_in_parts_the_wrong_part_is_named(softmax: Session) -> None:
    golden = {"out": values(softmax)["out"]}
    golden["out"][200, 5] += 1
    item = compare_golden(again(softmax), golden, rtol=1e-4, atol=1e-6).divergence
    assert item is not None and item.one.kind == "dma" and item.difference.first == (200, 5)
    assert item.outputs[0].region.endswith(f"{softmax.tensors.find('out', 0).address + 256 * 320 * 4:#x}]")


def test_golden_arrays_that_do_not_fit(softmax: Session) -> None:
    golden = values(softmax)
    with pytest.raises(NotFoundError, match="none of gone"):
        compare_golden(again(softmax), {"gone": golden["out"]})
    with pytest.raises(InputError, match=r"shape \[3\], the program's \[256, 320\]"):
        compare_golden(again(softmax), {"out": np.zeros(3)})
    assert compare_golden(again(softmax), {**golden, "gone": golden["out"]}, 1e-4, 1e-6).unknown == ("gone",)


UNWRITTEN = """
import numpy as np
import nki, nki.language as nl


@nki.jit
def kernel(a):
    return nl.ndarray((2, 64), dtype=nl.float32, buffer=nl.shared_hbm)


kernel(np.ones((2, 64), np.float32))
"""


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_an_output_that_nothing_wrote_differs_from_known_values_of_any_type(tmp_path: Path, dtype: type) -> None:
    script = tmp_path / "kernel.py"
    script.write_text(UNWRITTEN)
    session = open_session(script)
    (name,) = (tensor.name for tensor in session.neff.outputs)
    (row,) = compare_golden(again(session), {name: np.ones((2, 64), dtype)}).rows
    assert row.difference is not None and row.difference.differing == 128 and row.number is None
