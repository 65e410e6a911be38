"""The tutorial kernels of the AWS documentation, unmodified: each runs on every generation and matches NumPy."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neurontools.nki as nki
from neurontools.builder.trace import ComputeOp, DmaOp, MatmulOp
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


def _sum(a: Any, b: Any) -> Any:
    return a + b


def _product(left: Any, right: Any) -> Any:
    return left.T.astype(np.float64) @ right


def _pooled(fold: Any) -> Callable[[Any, int], Any]:
    def pool(x: Any, k: int) -> Any:
        channels, height, width = x.shape
        return fold(x.reshape(channels, height // k, k, width // k, k), axis=(2, 4))

    return pool


def _turned(x: Any, shape: list[int]) -> Any:
    return x.reshape(-1, *shape).transpose(0, 2, 1).reshape(x.shape)


def _recurrence(delta: Any, u: Any, a: Any, b: Any, c: Any) -> Any:
    out, state = np.zeros(delta.shape), np.zeros((delta.shape[0], *a.shape))
    for i in range(delta.shape[2]):
        step = delta[:, :, i, None].astype(np.float64)
        state = np.exp(step * a) * state + step * u[:, :, i, None] * b[:, None, :, i]
        out[:, :, i] = (state * c[:, None, :, i]).sum(axis=2)
    return out


ADD = "nki_tensor_add_kernel"
# name: what NumPy says of the arguments, and the largest relative and absolute error.
EXPECTED: dict[str, tuple[Callable[..., Any], float]] = {
    "tensor_addition": (_sum, 0),
    "simulate_example": (_sum, 1e-5),
    "tensor_split": (lambda x: (x[:, ::2], x[:, 1::2]), 0),
    "maxpool": (_pooled(np.max), 0),
    "transpose2d": (_turned, 0),
    "average_pool2d": (_pooled(np.mean), 1e-5),
    **{name: (_product, 1e-3) for name in KERNELS if name.startswith("matmul")},
    **{name: (_recurrence, 1e-3) for name in KERNELS if name.startswith("mamba")},
}
# Kernels of the introduction, which are not in KERNELS: file, function, arguments, what NumPy says of them.
STARTS: dict[str, tuple[str, str, list[Any], Callable[..., Any]]] = {
    **{f"getting_started_{kind}": (f"getting_started_{kind}.py", ADD, [(4, 3)] * 2, _sum)
       for kind in ("torch", "jax", "baremetal")},
    "layout_pass": ("layout-pass.py", "tensor_exp_kernel_", [(128, 512)], np.exp),
}  # fmt: skip
# Kernels that are wrong on purpose or by oversight, and what is wrong with them.
BROKEN = {
    "layout-violation.py": "asks for 256 rows of a tensor of 128",
    "layout-loop.py": "imports torch_neuronx and uses an undefined name",
    "layout-dynamic-loop.py": "does not parse",
}


def arguments(given: list[Any], name: str) -> list[Any]:
    rng = np.random.default_rng(3)
    made = [rng.random(one).astype(np.float32) if isinstance(one, tuple) else one for one in given]
    if name.startswith("mamba"):
        made[2] = -made[2]
    return made


def compare(got: Any, expected: Any, tolerance: float) -> None:
    for one, wanted in zip(*(x if isinstance(x, list | tuple) else [x] for x in (got, expected)), strict=True):
        np.testing.assert_allclose(np.asarray(one).reshape(wanted.shape), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize("name", EXPECTED)
def test_tutorial_kernel_matches_numpy(examples: Path, name: str, target: str) -> None:
    file, function, given, _ = KERNELS[name]
    made = arguments(given, name)
    kernel = load(examples / file, function)
    got = nki.jit(kernel.function, platform_target=target)(*made)
    compare(got, EXPECTED[name][0](*made), EXPECTED[name][1])


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize("name", STARTS)
def test_first_kernel_matches_numpy(examples: Path, name: str, target: str) -> None:
    file, function, given, expected = STARTS[name]
    made = arguments(given, name)
    got = nki.jit(load(examples / file, function).function, platform_target=target)(*made)
    compare(got, expected(*made), 1e-5)


def test_the_kernel_that_violates_its_layout_is_told_so(examples: Path) -> None:
    kernel = load(examples / "layout-violation.py", "tensor_exp_kernel_")
    with pytest.raises(nki.NkiValidationError, match=r"256 partitions, at most 128.* at .*layout-violation.py:"):
        kernel(np.ones((256, 512), np.float32))


def test_every_kernel_of_the_examples_is_here(examples: Path) -> None:
    here = {(entry[0], entry[1]) for entry in (*KERNELS.values(), *STARTS.values())}
    for path in sorted(examples.rglob("*.py")):
        file = str(path.relative_to(examples))
        if file in BROKEN:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and any("nki" in ast.unparse(one) for one in node.decorator_list):
                assert (file, node.name) in here, f"{file}: {node.name} is not run"
