"""nrtpy's names: what the pages say of models, tensors, errors and configuration."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from formats.ntff import open_ntff
from neurontools import nrt
from neurontools.nrt import NrtError, NrtpyError, NrtpyModel, NrtpyTensor
from tests.runtime.support import X, copying, out_of_bounds


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith(("NEURON_", "NEURONTOOLS_I"))]:
        monkeypatch.delenv(name)
    nrt.reset()
    yield
    nrt.reset()


@pytest.fixture
def neff(tmp_path: Path) -> Path:
    (tmp_path / "copy.neff").write_bytes(copying())
    return tmp_path / "copy.neff"


def test_a_model_is_called_with_tensors_by_name(neff: Path) -> None:
    model = NrtpyModel.load_from_neff(neff)
    assert model.name == "copy" and list(model.input_tensors_info) == ["x"]
    info = model.output_tensors_info["y"]
    assert (info.size, info.dtype, info.shape) == (X.nbytes, "float32", [128, 64])
    x = NrtpyTensor.from_numpy(X, name="x")
    outputs = model(inputs={"x": x})
    assert outputs is not None and (outputs["y"].numpy() == X).all() and outputs["y"].shape == (128, 64)
    x.write_from_numpy(-X)
    assert model(inputs={"x": x}, outputs=outputs) is None
    assert (outputs["y"].numpy() == -X).all()


def test_tensors() -> None:
    tensor = NrtpyTensor.from_numpy(np.arange(6, dtype=np.float16).reshape(2, 3).T, name="t")
    assert tensor.shape == (3, 2) and tensor.dtype == np.float16 and tensor.name == "t"
    assert tensor.numpy().tolist() == [[0, 3], [1, 4], [2, 5]]
    with pytest.raises(ValueError, match="array has 8 bytes, tensor 't' has 12"):
        tensor.write_from_numpy(np.zeros(4, np.int16))
    nrt.get_nrtpy_singleton().free_tensor(tensor)
    with pytest.raises(NrtpyError, match="Tensor 't' is freed"):
        tensor.numpy()
    with pytest.raises(NrtpyError):
        nrt.get_nrtpy_singleton().free_tensor(tensor)
    assert NrtpyTensor.from_numpy(np.float32(7)).numpy() == 7


def test_memory_comes_back_with_the_objects(neff: Path) -> None:
    session = nrt.get_nrtpy_singleton().session
    before = session.memory_stats(0)
    model, tensor = NrtpyModel.load_from_neff(neff), NrtpyTensor.from_numpy(X)
    assert session.memory_stats(0) > before and len(session.models) == 1
    del model, tensor
    gc.collect()
    assert session.memory_stats(0) == before and not session.models


def test_errors_have_the_documented_texts(neff: Path, tmp_path: Path) -> None:
    with pytest.raises(NrtError) as caught:
        NrtpyModel.load_from_neff("nonexistent.neff")
    assert str(caught.value) == "NRT Error NRT_FAILURE(1): Failed to load model"
    (tmp_path / "oob.neff").write_bytes(out_of_bounds())
    model = NrtpyModel.load_from_neff(tmp_path / "oob.neff")
    with pytest.raises(RuntimeError) as failed:
        model(inputs={"x": NrtpyTensor.from_numpy(X)})
    assert str(failed.value) == "NRT Error NRT_EXEC_OOB(1006): Failed to execute model"
    with pytest.raises(NrtError, match=r"^NRT Error NRT_INVALID\(2\): Failed to execute model$") as named:
        NrtpyModel.load_from_neff(neff)(inputs={"nonsense": NrtpyTensor.from_numpy(X)})
    assert "'x'" in named.value.detail
    with pytest.raises(NrtError, match=r"NRT_RESOURCE\(4\): Failed to allocate tensor"):
        nrt.NrtTensor.allocate(40 << 30)
    assert issubclass(NrtpyError, RuntimeError) and not issubclass(NrtError, NrtpyError)


def test_a_trace_is_written_beside_the_file_or_where_it_is_wanted(neff: Path, tmp_path: Path) -> None:
    model, x = NrtpyModel.load_from_neff(neff), {"x": NrtpyTensor.from_numpy(X)}
    assert model(x, save_trace=True) is not None
    model(x, save_trace=True, ntff_name=str(tmp_path / "other.ntff"))
    for path in (neff.with_suffix(".ntff"), tmp_path / "other.ntff"):
        assert len(open_ntff(path).executed(0)) == 8
    with pytest.raises(NrtError, match=r"NRT_FAILURE\(1\): Failed to save trace"):
        model(x, save_trace=True, ntff_name=str(tmp_path / "no" / "folder.ntff"))
    with pytest.raises(NrtError, match=r"NRT_INVALID\(2\): Failed to execute model"):
        model({}, save_trace=True)
    assert model(x) is not None  # nothing stays profiled


def test_benchmarks(neff: Path) -> None:
    model = NrtpyModel.load_from_neff(neff)
    x = {"x": NrtpyTensor.from_numpy(X)}
    device = model.benchmark(x, warmup_iter=1, benchmark_iter=3)
    assert device.iterations == 3 and device.warmup_iterations == 1 and len(set(device.durations_ms)) == 1
    assert 0 < device.min_ms == device.max_ms == pytest.approx(device.mean_ms) and device.std_dev_ms < 1e-9
    host = model.benchmark(x, mode="host", warmup_iter=0, benchmark_iter=2)
    assert host.min_ms > device.max_ms
    for arguments in ({"mode": "both"}, {"benchmark_iter": 0}):
        with pytest.raises(ValueError, match=next(iter(arguments))):
            model.benchmark(x, **arguments)


def test_configuration_goes_before_the_first_operation() -> None:
    nrt.configure(visible_cores=range(2, 4))
    assert os.environ["NEURON_RT_VISIBLE_CORES"] == "2,3"
    assert [core.number for core in nrt.get_nrtpy_singleton().session.cores] == [2, 3]
    with pytest.raises(RuntimeError, match=r"Call nrtpy\.reset\(\) first"):
        nrt.configure(visible_cores=[0])
    tensor = NrtpyTensor.from_numpy(X, core_id=1)
    nrt.reset()
    assert "NEURON_RT_VISIBLE_CORES" not in os.environ
    with pytest.raises(NrtpyError):
        tensor.numpy()
    for wrong, error in ((3, TypeError), (["0"], TypeError), ([True], TypeError), ([-1], ValueError), ([], ValueError)):
        with pytest.raises(error):
            nrt.configure(visible_cores=wrong)
    nrt.configure()
    assert len(nrt.get_nrtpy_singleton().session.cores) == 64


def test_import_nrtpy_is_this_module(root: Path, neff: Path) -> None:
    place = subprocess.run(
        [sys.executable, "-m", "neurontools.nrt"], capture_output=True, text=True, cwd=root, check=True
    ).stdout.strip()
    code = "import nrtpy, neurontools.nrt; from nrtpy import NrtpyModel; print(nrtpy is neurontools.nrt)"
    environ = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{place}"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environ, check=False)
    assert done.stdout == "True\n", done.stderr


def test_documented_names_are_there() -> None:
    corpus = os.environ.get("NEURONTOOLS_CORPUS")
    pages = Path(corpus or "", "aws-neuron-sdk", "neuron-runtime", "nrtpy")
    if not corpus or not pages.is_dir():
        pytest.skip("NEURONTOOLS_CORPUS names no folder with aws-neuron-sdk")
    named: set[str] = set()
    for page in pages.glob("*.rst"):
        text = page.read_text()
        named.update(re.findall(r"py:(?:class|exception|function):: nrtpy\.(\w+)", text))
        for line in re.findall(r"from nrtpy import ([\w, ]+)", text):
            named.update(line.split(", "))
    assert named and named <= set(nrt.__all__)
    text = (pages / "model.rst").read_text() + (pages / "tensor.rst").read_text()
    for name in re.findall(r"py:(?:classmethod|method|attribute):: (\w+)", text):
        owners = [nrt.NrtpyModel, nrt.NrtpyTensor, nrt.BenchmarkResult]
        fields = {field for owner in owners for field in (*dir(owner), *getattr(owner, "__annotations__", ()))}
        assert name in fields | {"shape", "dtype", "name", "input_tensors_info", "output_tensors_info"}, name


_TUTORIAL = ("oob_kernel", "compile_oob", "debug_with_nrtpy", "fixed_kernel", "validate_fix", "confirm_with_nrtpy")


def test_the_tutorial_runs_unmodified(root: Path, tmp_path: Path) -> None:
    """Compile a kernel that reads out of bounds, run its file, mend it, run it again: AWS's own programs."""
    corpus = os.environ.get("NEURONTOOLS_CORPUS")
    page = Path(corpus or "", "aws-neuron-sdk", "neuron-runtime", "nrtpy", "tutorial-debug-neff-nrtpy.rst")
    if not corpus or not page.is_file():
        pytest.skip("NEURONTOOLS_CORPUS names no folder with aws-neuron-sdk")
    blocks = re.findall(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)", page.read_text())
    for name, block in zip(_TUTORIAL, blocks, strict=True):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(block))
    path = os.pathsep.join([str(root), str(root / "neurontools" / "nki_path")])
    environ = {**os.environ, "PYTHONPATH": path, "NEURON_PLATFORM_TARGET_OVERRIDE": "trn2"}
    said = {}
    for name in (_TUTORIAL[1], _TUTORIAL[2], *_TUTORIAL[4:]):
        done = subprocess.run(
            [sys.executable, f"{name}.py"], capture_output=True, text=True, env=environ, cwd=tmp_path, check=False
        )
        assert done.returncode == 0, done.stderr
        said[name] = done.stdout
    assert "NEFF saved: ./oob_neff/kernel.neff" in said["compile_oob"]
    assert "  src_tensor: shape=[128, 512], size=262144" in said["debug_with_nrtpy"]
    assert "  NRT Error NRT_EXEC_OOB(1006): Failed to execute model\n" in said["debug_with_nrtpy"]
    assert "Output shape: (128, 512)" in said["validate_fix"]
    assert "Execution succeeded. Output shape: (128, 512)" in said["confirm_with_nrtpy"]


_ADDED = """
import numpy as np
from neurontools import nki
from neurontools.nki import isa as nisa, language as nl
from neurontools.nki.launch import build_neff

def add(a_input, b_input):
    first, second = (nl.ndarray(a_input.shape, a_input.dtype, nl.sbuf) for _ in range(2))
    nisa.dma_copy(first, a_input)
    nisa.dma_copy(second, b_input)
    nisa.tensor_tensor(first, first, second, nl.add)
    output = nl.ndarray(a_input.shape, a_input.dtype, nl.shared_hbm)
    nisa.dma_copy(output, first)
    return output

zeros, others = np.zeros((4, 3), np.float16), np.ones((4, 3), np.float16)
open("add_neff/kernel.neff", "wb").write(build_neff(nki.jit(add), (zeros, others), {}, target="trn2").to_bytes())
"""


def test_the_second_tutorial_runs_unmodified(root: Path, tmp_path: Path) -> None:
    """Validate, benchmark, compare with a baseline, save a trace: AWS's own blocks as one program."""
    corpus = os.environ.get("NEURONTOOLS_CORPUS")
    page = Path(corpus or "", "aws-neuron-sdk", "neuron-runtime", "nrtpy", "tutorial-validate-benchmark.rst")
    if not corpus or not page.is_file():
        pytest.skip("NEURONTOOLS_CORPUS names no folder with aws-neuron-sdk")
    blocks = re.findall(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)", page.read_text())
    (tmp_path / "add_neff").mkdir()
    (tmp_path / "make.py").write_text(_ADDED)
    (tmp_path / "tutorial.py").write_text("".join(map(textwrap.dedent, blocks)))
    path = os.pathsep.join([str(root), str(root / "neurontools" / "nki_path")])
    for program in ("make.py", "tutorial.py"):
        done = subprocess.run([sys.executable, program], capture_output=True, text=True, cwd=tmp_path, check=False,
                              env={**os.environ, "PYTHONPATH": path})  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert "Results: 5 passed, 0 failed" in done.stdout and "OK: 1.00x of baseline" in done.stdout
    assert open_ntff(tmp_path / "kernel_trace.ntff").executed(0)
