"""`neurontools run`: scripts, NEFFs and .s programs; results, faults, hangs, bad inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from formats.neff import open_neff
from neurontools.program.arrays import load_arrays
from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli
from tests.corpus.files import MATMUL_SMALL, find

KERNEL = """
import sys
import numpy as np
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def twice(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=out, src=tile)
    return out

x = np.arange(128 * 8, dtype=np.float32).reshape(128, 8)
got = nki.simulate(twice)(x)
print("right" if (got == 2 * x).all() else "wrong", sys.argv[1:])
"""


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """Return an .npz for the doubling program."""
    np.savez(tmp_path / "in.npz", x=np.arange(128 * 64, dtype=np.float32).reshape(128, 64))
    return tmp_path / "in.npz"


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """Return a script with a kernel."""
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    return path


def test_a_neff_runs(cli: Cli, program_file: Path, inputs: Path, tmp_path: Path) -> None:
    ended = cli("run", program_file, "--inputs", inputs, "--outputs", tmp_path / "out.npz")
    assert ended.status == 0, ended
    assert ended.out.startswith("double.neff on trn2, LNC 1: done after ")
    assert (load_arrays(tmp_path / "out.npz")["y"] == 2 * np.load(inputs)["x"]).all()


def test_json_of_a_neff(cli: Cli, program_file: Path, inputs: Path) -> None:
    result = checked_json(cli("run", program_file, "--inputs", inputs, "--json"), "run")
    (output,) = result["outputs"]
    assert (output["name"], output["min"], output["max"], output["nonfinite"]) == ("y", 0.0, 16382.0, 0)
    assert result["time_ps"] > 0 and result["fault"] is None and result["hang"] is None
    assert result["stats"]["transfers"] == 2


def test_time_is_repeatable_and_seeds_change_it(cli: Cli, program_file: Path, inputs: Path) -> None:
    def time_of(*options: object) -> int:
        return int(checked_json(cli("run", program_file, "--inputs", inputs, "--json", *options), "run")["time_ps"])

    assert time_of() == time_of()
    assert time_of("--seed", 1) == time_of("--seed", 1)
    assert time_of("--seed", 1) != time_of()


def test_a_program_in_text_runs(cli: Cli, program_text: str, inputs: Path, tmp_path: Path) -> None:
    source = tmp_path / "double.s"
    source.write_text(program_text)
    assert cli("run", source, "--inputs", inputs, "--save-neff", tmp_path / "made.neff", "--quiet") == (0, "", "")
    assert open_neff(tmp_path / "made.neff").header.name == "double"


def test_a_deadlock_is_explained(cli: Cli, root: Path, tmp_path: Path) -> None:
    arguments = ["run", root / "examples" / "deadlock.s"]
    ended = cli(*arguments, "--outputs", tmp_path / "y.npz")
    assert ended.status == 5 and "hung" in ended.out
    assert "S[4]" in ended.out and "S[6]" in ended.out
    assert not (tmp_path / "y.npz").exists()
    result = checked_json(cli(*arguments, "--json"), "run")
    assert len(result["hang"]["waits"]) == 3 and result["hang"]["cycles"]


def test_a_fault_names_word_and_line(cli: Cli, root: Path) -> None:
    source = root / "examples" / "out_of_bounds.s"
    ended = cli("run", source)
    line = 1 + next(i for i, text in enumerate(source.read_text().splitlines()) if "TENSOR_TENSOR" in text)
    assert ended.status == 5
    assert "faulted" in ended.out and "src1" in ended.out and f"out_of_bounds.s:{line}" in ended.out
    assert cli("run", source, "--error-exitcode", 77).status == 77
    fault = checked_json(cli("run", source, "--json"), "run")["fault"]
    assert (fault["engine"], fault["pc"], fault["operand"], fault["status"]["code"]) == ("DVE", 2, "src1", 1006)


def test_a_script_runs_unmodified(cli: Cli, kernel: Path) -> None:
    ended = cli("run", kernel, "--", "--rows", 3)
    assert (ended.status, ended.out, ended.err) == (0, "right ['--rows', '3']\n", "")


def test_a_script_leaves_its_neff_and_outputs(cli: Cli, kernel: Path, tmp_path: Path) -> None:
    ended = cli("run", kernel, "--target", "trn1", "--save-neff", tmp_path / "k.neff", "--outputs", tmp_path / "y.npz")
    assert ended.status == 0, ended
    neff = open_neff(tmp_path / "k.neff")
    assert neff.target.generation == "gen2" and neff.verify() == []
    (array,) = load_arrays(tmp_path / "y.npz").values()
    assert array.shape == (128, 8) and array[1, 0] == 16.0


def test_json_of_a_script(cli: Cli, kernel: Path) -> None:
    ended = cli("run", kernel, "--json")
    result = checked_json(ended, "run")
    assert ended.err == "right []\n"
    assert result["status"] == 0
    (launch,) = result["launches"]
    assert launch["kernel"] == "twice" and launch["time_ps"] > 0


def test_a_script_without_kernels(cli: Cli, tmp_path: Path) -> None:
    script = tmp_path / "plain.py"
    script.write_text("import sys\nsys.exit(3)\n")
    ended = cli("run", script, "--save-neff", tmp_path / "k.neff")
    assert ended.status == 3 and "nothing was saved" in ended.err
    assert not (tmp_path / "k.neff").exists()


@pytest.mark.parametrize(
    ("line", "status", "says"),
    [
        ("nl.ndarray((256, 8), dtype=nl.float32, buffer=nl.sbuf)", 3, "256"),
        ("raise ValueError('mine')", 1, "ValueError: mine"),
    ],
)
def test_errors_in_kernels(cli: Cli, tmp_path: Path, line: str, status: int, says: str) -> None:
    script = tmp_path / "bad.py"
    script.write_text(KERNEL.replace("    nisa.dma_copy(dst=tile, src=x)\n", f"    {line}\n"))
    ended = cli_run(cli, script)
    assert ended[0] == status and says in ended[1]


def cli_run(cli: Cli, script: Path) -> tuple[int, str]:
    """Run a script that may print its own traceback, which the fixture forbids for errors of ours."""
    import contextlib
    import io

    from neurontools.cli import main

    text = io.StringIO()
    with contextlib.redirect_stderr(text):
        status = main(["run", str(script)])
    return status, text.getvalue()


def test_bad_inputs(cli: Cli, program_file: Path, inputs: Path, tmp_path: Path) -> None:
    ended = cli("run", program_file)
    assert ended.status == 0 and ended.err == "warning: input x float32[128, 64] was not given; it is all zeros\n"
    assert cli("run", program_file, "--inputs", tmp_path / "none.npz").status == 4
    (tmp_path / "bad.npz").write_bytes(b"no")
    assert cli("run", program_file, "--inputs", tmp_path / "bad.npz").status == 3
    for arrays in ({"z": np.ones(3)}, {"x": np.ones((3, 3), np.float32)}, {"x": np.ones((128, 64), np.int8)}):
        np.savez(tmp_path / "wrong.npz", **arrays)
        ended = cli("run", program_file, "--inputs", tmp_path / "wrong.npz")
        assert ended.status in (3, 4) and "x" in ended.error_line
    refuses_bad_files(cli, "run", tmp_path)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--target", "trn1"], "is for trn2"),
        (["--lnc", "2"], "LNC 1"),
        (["--nki", "theirs"], "theirs"),
        (["--", "more"], "only a script takes arguments"),
    ],
)
def test_bad_usage(cli: Cli, program_file: Path, inputs: Path, arguments: list[str], says: str) -> None:
    ended = cli("run", program_file, "--inputs", inputs, *arguments)
    assert ended.status == 2 and says in ended.error_line


def test_bad_usage_of_scripts(cli: Cli, kernel: Path, inputs: Path, tmp_path: Path) -> None:
    assert cli("run", kernel, "--inputs", inputs).status == 2
    assert cli("run", kernel, "--target", "trn9").status == 3
    assert cli("run", kernel, "--outputs", tmp_path / "no" / "y.npz").status == 4
    assert cli("run", tmp_path / "none.py").status == 4
    (tmp_path / "broken.py").write_text("def (:\n")
    ended = cli("run", tmp_path / "broken.py")
    assert ended.status == 3 and "broken.py:1: not Python" in ended.error_line


@pytest.mark.parametrize("name", ["vector_add", "tiled_matmul", "softmax", "rmsnorm", "attention"])
def test_examples(cli: Cli, root: Path, name: str) -> None:
    ended = cli("run", root / "examples" / f"{name}.py")
    assert ended.status == 0, ended
    assert ended.out.startswith(f"{name}: ok")


def test_a_real_neff_gives_numpy_s_answer(cli: Cli, corpus: Path, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    x, y = (random.standard_normal(shape).astype(np.float16) for shape in ((128, 256), (256, 128)))
    np.savez(tmp_path / "in.npz", x=x, y=y)
    real = find(corpus, MATMUL_SMALL)
    ended = cli("run", real, "--inputs", tmp_path / "in.npz", "--outputs", tmp_path / "out.npz")
    assert ended.status == 0, ended
    x, y = x.astype(np.float64), y.astype(np.float64)
    want, got = x @ y, load_arrays(tmp_path / "out.npz")["output0"]
    # Half a unit of the fp16 result, and what 256 additions in fp32 may lose where terms cancel.
    allowed = 0.5 * np.spacing(np.abs(got)).astype(np.float64) + np.abs(x) @ np.abs(y) * 256 * 2.0**-25
    assert (np.abs(got.astype(np.float64) - want) <= allowed).all()


UNWRITTEN = """
.output y float32 [128, 64]
.queue q act
.dma q 0 8 SB+0x5000[1,262144][256,128] -> y+0[1,256][256,128]
.engine dve
    COPY S[6]++@complete src=fp32@0x8000[1,1,1,1][64,1,1,1] dst=fp32@0x5000[1,1,1,1][64,1,1,1] channels=128
.engine act
    PSEUDO_DMA_TRIGGER S[6]>=1 q block_id=0
    NOP S[8]>=16 cycle=0
"""


def test_reads_of_bytes_never_written_are_warnings(cli: Cli, tmp_path: Path) -> None:
    source = tmp_path / "unwritten.s"
    source.write_text(UNWRITTEN)
    ended = cli("run", source)
    assert ended.status == 0
    assert ended.err == (f"warning: core 0 DVE pc 0 ({source}:6): src: 32768 of 32768 bytes read were never written\n")
    document = cli("run", source, "--json").json
    assert len(document["warnings"]) == 1 and document["result"]["outputs"][0]["nonfinite"] == 128 * 64


def test_a_word_that_is_not_modelled_is_6(cli: Cli, tmp_path: Path) -> None:
    source = tmp_path / "odd.s"
    source.write_text(".output y float32 [4]\n.engine pool\n    OPCODE_A1\n")
    ended = cli("run", source)
    assert ended.status == 6 and "OPCODE_A1" in ended.out + ended.err
