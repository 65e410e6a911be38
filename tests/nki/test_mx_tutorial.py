"""The MX kernels of the AWS documentation, unmodified, on trn3, against the documentation's own golden functions."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import neurontools.nki as nki

MODULES = ("mx_cpu_utils", "mx_kernel_utils", "mx_kernels")


@pytest.fixture(scope="module")
def modules(corpus: Path) -> Iterator[tuple[Any, Any]]:
    folder = corpus / "aws-neuron-sdk" / "nki" / "deep-dives" / "src" / "mxfp-matmul"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    assert nki.install()
    sys.path.insert(0, str(folder))
    yield importlib.import_module("mx_kernels"), importlib.import_module("mx_cpu_utils")
    sys.path.remove(str(folder))
    for name in MODULES:
        sys.modules.pop(name, None)
    nki.uninstall()


def close(got: Any, golden: Any) -> bool:
    return np.allclose(np.asarray(got, np.float32), np.asarray(golden, np.float32), rtol=5e-2, atol=5e-2)


TYPES = {
    "float8_e5m2": nki.language.float8_e5m2_x4,
    "float8_e4m3fn": nki.language.float8_e4m3fn_x4,
    "float4_e2m1fn": nki.language.float4_e2m1fn_x4,
}


@pytest.mark.parametrize("name", TYPES)
def test_offline_quantized(modules: tuple[Any, Any], name: str) -> None:
    kernels, host = modules
    kind = getattr(ml_dtypes, name)
    np.random.seed(0)
    _, _, left, left_scale = host.generate_stabilized_mx_data(kind, (128, 512))
    _, _, right, right_scale = host.generate_stabilized_mx_data(kind, (128, 2048))
    golden = host.nc_matmul_mx_golden(left, right, left_scale, right_scale, kind, kind)
    if name.startswith("float4"):
        left, right = left.view(np.uint16), right.view(np.uint16)
    kernel = nki.jit(kernels.kernel_offline_quantized_mx_matmul, platform_target="trn3")
    assert close(kernel(left, left_scale, right, right_scale, TYPES[name]), golden)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("tensor_copy", [False, True])
@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3fn"])
def test_quantized_on_the_device(modules: tuple[Any, Any], name: str, tensor_copy: bool, packed: bool) -> None:
    kernels, _ = modules
    np.random.seed(1)
    left, right = (np.random.uniform(-0.5, 0.5, (512, width)).astype("bfloat16") for width in (128, 512))
    which = "kernel_copy_strided_quantize_matmul_mx" + ("_packed_scale" if packed else "")
    kernel = nki.jit(getattr(kernels, which), platform_target="trn3")
    got = np.asarray(kernel(left, right, TYPES[name], tensor_copy), np.float32)
    golden = left.astype(np.float32).T @ right.astype(np.float32)
    assert np.abs(got - golden).max() < (0.6 if name == "float8_e4m3fn" else 1.2)
    assert np.corrcoef(got.ravel(), golden.ravel())[0, 1] > 0.99


def test_one_side_quantized_on_the_device(modules: tuple[Any, Any]) -> None:
    kernels, host = modules
    np.random.seed(2)
    kind = ml_dtypes.float8_e4m3fn
    values, _, left, scale = host.generate_stabilized_mx_data(kind, (128, 512))
    right = np.random.uniform(-0.5, 0.5, (128, 2048)).astype("bfloat16")
    kernel = nki.jit(kernels.kernel_on_device_quantize_matmul_mx, platform_target="trn3")
    got = np.asarray(kernel(left, scale, right, TYPES["float8_e4m3fn"], TYPES["float8_e4m3fn"]), np.float32)
    golden = np.einsum("kiq,kjq->ij", values.reshape(128, 128, 4), right.astype(np.float64).reshape(128, 512, 4))
    assert np.corrcoef(got.ravel(), golden.ravel())[0, 1] > 0.998
