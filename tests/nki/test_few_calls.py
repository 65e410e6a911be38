"""What tracing leaves out: what is known is not worked out again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from formats.errors import NeuronError
from neurontools.nki import isa as nisa
from neurontools.nki import language as nl
from neurontools.nki.dtype import dtype_of
from neurontools.nki.launch import trace_kernel
from tests.counting import counted

X = np.zeros((128, 64), np.float32)


def nothing(x: Any) -> Any:
    """Hand the input back."""
    return x


def copies(x: Any, count: int) -> Any:
    """Load, double and store the same tile again and again."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for _ in range(count):
        tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[0:128])
        nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
        nisa.dma_copy(dst=out[0:128, 0:64], src=tile)
    return out


def test_launches_and_operations_take_few_calls() -> None:
    def trace(kernel: Any, *more: Any) -> int:
        trace_kernel(kernel, (X, *more), target="trn2")  # what is kept by process is there then
        return counted(lambda: trace_kernel(kernel, (X, *more), target="trn2"), builtins=True)[0]

    assert trace(nothing) < 150
    assert (trace(copies, 30) - trace(copies, 10)) / 20 < 132  # three operations, a tile and two views


def test_types_of_arrays_are_found_again_and_refused_again() -> None:
    assert dtype_of(np.dtype(np.float32)) is dtype_of(np.dtype("<f4")) is nl.float32
    assert dtype_of(np.dtype("bool")) is dtype_of("bool") is not dtype_of(np.dtype(np.uint8))
    for _ in range(2):
        with pytest.raises(NeuronError, match="float64"):
            dtype_of(np.dtype(np.float64))
