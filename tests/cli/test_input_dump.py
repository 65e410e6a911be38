"""`neurontools run --inputs-from`: the inputs that the runtime wrote when an execution failed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neurontools.program.configuration import RunConfiguration
from neurontools.program.inputs import program_inputs
from tests.cli.conftest import Cli
from tests.emulator.dma_programs import gen3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the input dump of the small program that doubles its input."""
    folder = tmp_path / "input_dump_x_h_nn_1"
    folder.mkdir()
    np.arange(128 * 64, dtype=np.float32).tofile(folder / "input0.bin")
    (folder / "model_name.txt").write_text("double\n")
    return folder


def test_replay(cli: Cli, program_file: Path, folder: Path, tmp_path: Path) -> None:
    ended = cli("run", program_file, "--inputs-from", folder, "--outputs", tmp_path / "y.npz")
    assert ended.status == 0 and ended.err == ""
    assert np.array_equal(np.load(tmp_path / "y.npz")["y"].ravel(), 2 * np.arange(128 * 64, dtype=np.float32))
    (folder / "input0.bin").rename(folder / "input0")
    assert cli("run", program_file, "--inputs-from", folder, "-q").status == 0


def test_what_is_odd_is_told(cli: Cli, program_file: Path, folder: Path) -> None:
    (folder / "input1").write_bytes(b"x")
    (folder / "model_name.txt").write_text("other.neff")
    warnings = cli("run", program_file, "--inputs-from", folder, "--json").json["warnings"]
    assert any("the NEFF has no input 1" in line for line in warnings)
    assert any("inputs of other.neff, not of double" in line for line in warnings)
    (folder / "model_name.txt").unlink()
    warnings = cli("run", program_file, "--inputs-from", folder, "--json").json["warnings"]
    assert any("may be incomplete" in line for line in warnings)


def test_what_is_missing_or_wrong(cli: Cli, program_file: Path, folder: Path, tmp_path: Path) -> None:
    (folder / "input0.bin").write_bytes(b"short")
    ended = cli("run", program_file, "--inputs-from", folder)
    assert ended.status == 3 and "expected 32768 bytes, found 5 bytes" in ended.error_line
    (folder / "input0.bin").unlink()
    ended = cli("run", program_file, "--inputs-from", folder)
    assert ended.status == 4 and "no input0 for x float32[128, 64]" in ended.error_line
    assert cli("run", program_file, "--inputs-from", tmp_path / "none").status == 4
    assert cli("run", program_file, "--inputs-from", folder, "--inputs", folder).status == 2
    assert cli("run", tmp_path / "x.py", "--inputs-from", folder).status == 2


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16", "int8"])
def test_random_inputs_are_those_of_one_draw_however_they_are_drawn(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large tensors are drawn in parts, without as many numbers of fp32 beside them."""
    neff = gen3({"SP": []}, inputs={"a": (dtype, (37, 11)), "b": (dtype, (5,))})
    asked = RunConfiguration(inputs="random:7")
    whole = program_inputs(neff, asked)[0]
    monkeypatch.setattr("neurontools.program.inputs._DRAWN", 10)
    parts = program_inputs(neff, asked)[0]
    assert {name: array.tobytes() for name, array in whole.items()} == {
        name: array.tobytes() for name, array in parts.items()
    }
    first = np.random.default_rng(7).standard_normal((37, 11), np.float32)
    assert dtype == "int8" or np.array_equal(whole["a"], first.astype(whole["a"].dtype))
