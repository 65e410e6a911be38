"""`neurontools diff-run` and `neurontools run --against`: planted differences, equal runs, what is refused."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli

X = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)


@pytest.fixture
def folder(program_text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the doubling program, one that squares instead, and their input; it is the current one."""
    monkeypatch.chdir(tmp_path)
    Path("double.s").write_text(program_text)
    Path("square.s").write_text(program_text.replace("op=ADD", "op=MULTIPLY"))
    np.savez("in.npz", x=X)
    return tmp_path


def test_one_program_under_two_schedules(cli: Cli, folder: Path) -> None:
    ended = cli("diff-run", "double.s", "--inputs", "in.npz", "--seed-a", "1", "--seed-b", "2")
    assert ended.status == 0 and "no result differs" in ended.out and ended.err == ""
    result = checked_json(cli("diff-run", "double.s", "--inputs", "in.npz", "--seed-b", "2", "--json"), "diff-run")
    assert result["same"] and result["divergence"] is None and result["outcomes"] == ["finished", "finished"]


def test_the_first_difference_and_the_command_that_stops_there(cli: Cli, folder: Path) -> None:
    arguments = ("diff-run", "double.s", "square.s", "--inputs", "in.npz", "--seed-a", "3")
    ended = cli(*arguments)
    assert ended.status == 1 and "(square.s:17)" in ended.out and "the inputs are equal" in ended.out
    result = checked_json(cli(*arguments, "--json"), "diff-run")
    item = result["divergence"]
    assert (item["one"]["engine"], item["one"]["pc"], item["one"]["source"]["line"]) == ("DVE", 2, 17)
    assert item["difference"]["max_abs"] == float(((X * X).astype(np.float64) - 2 * X).max())
    assert [pair["difference"] for pair in item["inputs"]] == [None, None]
    for command, side in zip(result["commands"], (item["one"], item["other"]), strict=True):
        words = shlex.split(command)
        assert words[:2] == ["neurontools", "debug"] and command in ended.out
        words.remove("--cli")
        shown = cli(*words[1:])
        assert shown.status == 0 and f"=> nc0 DVE pc 2  {side['text']}" in shown.out


def test_tolerances(cli: Cli, folder: Path) -> None:
    text = Path("double.s").read_text()
    near = text.replace("op=ADD", "op=MAX")  # of equal inputs: half of the sum
    Path("half.s").write_text(near)
    assert cli("diff-run", "double.s", "half.s", "--inputs", "in.npz").status == 1
    assert cli("diff-run", "double.s", "half.s", "--inputs", "in.npz", "--rtol", "0.9").status == 1
    assert cli("diff-run", "double.s", "half.s", "--inputs", "in.npz", "--rtol", "1").status == 0
    assert cli("diff-run", "double.s", "half.s", "--inputs", "in.npz", "--atol", "8191").status == 0
    assert cli("diff-run", "double.s", "square.s", "--inputs", "in.npz", "--error-exitcode", "9").status == 9
    assert cli("diff-run", "double.s", "double.s", "--inputs", "in.npz", "--quiet").out == ""


def test_two_precisions_of_a_script(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "narrow.py"
    path.write_text(
        """
import numpy as np
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def third(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    part = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=part, data=tile, op0=nl.multiply, operand0=1 / 3)
    nisa.tensor_scalar(dst=tile, data=part, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=out, src=tile)
    return out

nki.simulate(third)(np.arange(128 * 8, dtype=np.float32).reshape(128, 8))
"""
    )
    arguments = ("diff-run", path, "--precise-fp-a", "1", "--precise-fp-b", "0")
    item = checked_json(cli(*arguments, "--json"), "diff-run")["divergence"]
    assert item["tensor"] == "part" and item["one"]["source"]["line"] == 11
    assert [pair["dtype"] for pair in item["outputs"]] == ["bfloat16"]
    ended = cli(*arguments)
    assert ended.status == 1 and "NKI_PRECISE_FP=1 neurontools debug" in ended.out
    assert cli(*arguments, "--rtol", "0.01").status == 0


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (("double.s", "gone.s"), 4, "gone.s: no such file"),
        (("double.s", "--precise-fp-a", "0"), 2, "only a script"),
        (("double.s", "--precise-fp-a", "2"), 2, "0<=x<=1"),
        (("double.s", "--rtol", "-1"), 2, "x>=0"),
        (("double.s", "--target-b", "trn3"), 3, "another target"),
        (("double.s", "--lnc-b", "2"), 2, "LNC 1"),
        (("double.s", "--inputs", "gone.npz"), 4, "gone.npz"),
    ],
)
def test_what_is_refused(cli: Cli, folder: Path, arguments: tuple[str, ...], status: int, text: str) -> None:
    ended = cli("diff-run", *arguments)
    assert ended.status == status and text in ended.err


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_files(cli, "diff-run", tmp_path)


# --- run --against ---------------------------------------------------------------------------------------------------


def test_against_known_outputs(cli: Cli, folder: Path) -> None:
    np.savez("golden.npz", y=2 * X)
    ended = cli("run", "double.s", "--inputs", "in.npz", "--against", "golden.npz")
    assert ended.status == 0 and "as it should be" in ended.out
    wrong = 2 * X
    wrong[5, 6] += 9
    np.savez("golden.npz", y=wrong, z=X)
    ended = cli("run", "double.s", "--inputs", "in.npz", "--against", "golden.npz")
    assert ended.status == 1 and "1 of 8,192 elements differ, at most by 9" in ended.out
    assert "'z' is no tensor or tile" in ended.err and "worst at [5, 6]" in ended.out
    result = checked_json(cli("run", "double.s", "--inputs", "in.npz", "--against", "golden.npz", "--json"), "run")
    assert result["divergence"]["one"]["engine"] == "qOut" and result["unknown"] == ["z"]
    assert re.search(r"-c 'goto #\d+'$", result["command"])
    assert cli("run", "double.s", "--inputs", "in.npz", "--against", "golden.npz", "--atol", "10").status == 0


def test_against_tiles_of_a_kernel(cli: Cli, root: Path, tmp_path: Path) -> None:
    from neurontools.debugger.opening import open_session

    script = root / "examples" / "softmax.py"
    x = open_session(script).inputs["x"].astype(np.float64)
    powers = np.exp(x - x.max(axis=1, keepdims=True))[:128]
    np.savez(tmp_path / "golden.npz", powers=powers, total=powers.sum(axis=1, keepdims=True))
    assert cli("run", script, "--against", tmp_path / "golden.npz").status == 0
    np.savez(tmp_path / "golden.npz", powers=powers * 1.1, total=powers.sum(axis=1, keepdims=True))
    ended = cli("run", script, "--against", tmp_path / "golden.npz", "--error-exitcode", "8")
    assert ended.status == 8 and "of powers:" in ended.out and "softmax.py:" in ended.out


def test_against_what_does_not_fit(cli: Cli, folder: Path) -> None:
    np.savez("golden.npz", q=X)
    ended = cli("run", "double.s", "--inputs", "in.npz", "--against", "golden.npz")
    assert ended.status == 4 and "none of q is a tensor" in ended.error_line, ended
    np.savez("golden.npz", y=X[:3])
    assert "has shape [3, 64]" in cli("run", "double.s", "--inputs", "in.npz", "--against", "golden.npz").err
    np.savez("golden.npz")
    assert cli("run", "double.s", "--inputs", "in.npz", "--against", "golden.npz").status == 3
    assert cli("run", "double.s", "--inputs", "in.npz", "--against", "gone.npz").status == 4
    ended = cli("run", "double.s", "--inputs", "in.npz", "--against", "golden.npz", "--outputs", "out.npz")
    assert ended.status == 2 and not Path("out.npz").exists()


@pytest.mark.parametrize("kind", ["V4", "U2", "S2", "c8", "m8[s]", "M8[s]"])
def test_known_arrays_of_no_real_numbers_are_refused(cli: Cli, folder: Path, kind: str) -> None:
    """Text and bytes were a traceback, complex numbers lost half of theirs."""
    np.savez("odd.npz", y=np.zeros(X.shape, kind))
    ended = cli("run", "double.s", "--inputs", "in.npz", "--against", "odd.npz")
    assert ended.status == 3 and "array is not of real numbers" in ended.error_line


@pytest.mark.parametrize(("one", "other", "says"), [
    (".engine pe\n    EVENT_SEMAPHORE S[77]>=1 setter=0", ".engine pool\n    EVENT_SEMAPHORE S[77]>=1 setter=0",
     "B stopped: deadlock: nc0 Pool pc 0"),
    (".engine pool\n    MEMSET {bad}\n    MEMSET {good}", ".engine pool\n    MEMSET {good}\n    MEMSET {bad}",
     "B stopped: nc0 Pool pc 1: "),
], ids=["hang", "fault"])  # fmt: skip
def test_two_runs_that_stop_elsewhere_differ(cli: Cli, folder: Path, one: str, other: str, says: str) -> None:
    """Neither finishes, and what both completed is the same: that was told as no difference."""
    words = {name: f"dst=fp32@{at}[1,1,1,1][64,1,1,1] count=64 channels=128" for name, at in
             (("good", "0x6000"), ("bad", "0x37ff0"))}  # fmt: skip
    for file, added in (("one.s", one), ("other.s", other)):
        Path(file).write_text(Path("double.s").read_text() + added.format(**words) + "\n")
    assert cli("diff-run", "one.s", "one.s", "--inputs", "in.npz").status == 0
    ended = cli("diff-run", "one.s", "other.s", "--inputs", "in.npz")
    assert ended.status == 1 and "no result differs" not in ended.out and says in ended.out
    result = checked_json(cli("diff-run", "one.s", "other.s", "--inputs", "in.npz", "--json"), "diff-run")
    assert not result["same"] and all(result["stops"])
