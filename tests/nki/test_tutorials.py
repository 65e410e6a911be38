"""The tutorial kernels of the AWS documentation, unmodified: each traces on every generation."""

from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neurontools.nki as nki
from neurontools.trace import ComputeOp, DmaOp, MatmulOp
from tests.nki.support import trace

MATMUL = "matrix_multiplication/matrix_multiplication_nki_kernels.py"
MAMBA = "fused_mamba/mamba_nki_kernels.py"
STATES = [(1, 128, 512), (1, 128, 512), (128, 4), (1, 4, 512), (1, 4, 512)]

# name: file, function, shapes (or other arguments), (DMA, matrix multiplications, other instructions) on trn2
KERNELS: dict[str, tuple[str, str, list[Any], tuple[int, int, int]]] = {
    "tensor_addition": (
        "tensor_addition/tensor_addition_nki_kernels.py",
        "nki_tensor_add",
        [(256, 1024)] * 2,
        (12, 0, 4),
    ),
    "simulate_example": ("simulate/nki_simulate_example.py", "add_kernel", [(128, 512)] * 2, (3, 0, 1)),
    "tensor_split": ("index-case-1.py", "tensor_split_kernel_", [(64, 501)], (3, 0, 0)),
    "maxpool": ("index-case-3.py", "tensor_maxpool_kernel_", [(64, 16, 32), 2], (2, 0, 1)),
    "transpose2d": (
        "transpose2d/transpose2d_nki_kernels.py",
        "tensor_transpose2D_kernel_",
        [(2, 12), [3, 4]],
        (2, 0, 12),
    ),
    "average_pool2d": (
        "average_pool2d/average_pool2d_nki_kernels.py",
        "tensor_avgpool_kernel",
        [(32, 36, 36), 2],
        (2, 0, 2),
    ),
    "matmul_basic": (MATMUL, "nki_matmul_basic_", [(128, 64), (128, 512)], (3, 1, 1)),
    "matmul_tiled": (MATMUL, "nki_matmul_tiled_", [(512, 256), (512, 1024)], (36, 16, 4)),
    "matmul_hoist_load": (MATMUL, "nki_matmul_hoist_load_", [(512, 256), (512, 1024)], (28, 16, 4)),
    "matmul_block_free": (MATMUL, "nki_matmul_block_free_dimension_", [(512, 512), (512, 1024)], (40, 32, 8)),
    "matmul_fully_optimized": (MATMUL, "nki_matmul_fully_optimized_", [(1024, 2048), (1024, 1024)], (32, 256, 48)),
    "mamba_v1": (MAMBA, "mamba_v1", STATES, (21, 8, 34)),
    "mamba_v2": (MAMBA, "mamba_v2", STATES, (15, 8, 34)),
    "mamba_v3": (MAMBA, "mamba_v3", STATES, (15, 8, 42)),
}


@pytest.fixture(scope="module")
def examples(corpus: Path) -> Iterator[Path]:
    folder = corpus / "aws-neuron-sdk" / "nki" / "examples"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    assert nki.install()
    yield folder
    nki.uninstall()


def load(path: Path, function: str) -> Any:
    """Return a kernel of a file, run up to the marker where the simulate example starts to launch."""
    source = path.read_text().split("# NKI_EXAMPLE_SIMULATE_RUN_BEGIN")[0]
    module = types.ModuleType("tutorial_" + path.stem.replace("-", "_"))
    module.__file__ = str(path)
    exec(compile(source, str(path), "exec"), module.__dict__)
    return getattr(module, function)


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize("name", KERNELS)
def test_tutorial_kernel_traces(examples: Path, name: str, target: str) -> None:
    file, function, given, counts = KERNELS[name]
    arguments = [np.ones(one, np.float32) if isinstance(one, tuple) else one for one in given]
    (one,) = trace(load(examples / file, function), *arguments, target=target)
    ops = one.trace.ops
    found = tuple(sum(isinstance(op, kind) for op in ops) for kind in (DmaOp, MatmulOp, ComputeOp))
    assert found == counts
    assert sum(found) == len(ops)
    assert {op.source[0] for op in ops} == {str(examples / file)}
