"""What tracing leaves out: what is known is not worked out again."""

from __future__ import annotations

import ast
import enum
import inspect
import sys
from functools import cache
from types import FrameType, ModuleType
from typing import Any

import numpy as np
import pytest

from formats.errors import NeuronError
from neurontools.nki import isa as nisa
from neurontools.nki import language as nl
from neurontools.nki.dtype import dtype_of
from neurontools.nki.launch import build_neff, trace_kernel
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

    assert trace(nothing) < 145
    assert (trace(copies, 30) - trace(copies, 10)) / 20 < 66  # three operations, a tile and two views


def test_types_of_arrays_are_found_again_and_refused_again() -> None:
    assert dtype_of(np.dtype(np.float32)) is dtype_of(np.dtype("<f4")) is nl.float32
    assert dtype_of(np.dtype("bool")) is dtype_of("bool") is not dtype_of(np.dtype(np.uint8))
    for _ in range(2):
        with pytest.raises(NeuronError, match="float64"):
            dtype_of(np.dtype(np.float64))


@cache
def _looks_up(module: ModuleType) -> frozenset[int]:
    """Return the lines of functions that look for a member of an enumeration in its class."""
    found = set()
    tree = ast.parse(inspect.getsource(module))
    for function in (one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)):
        for one in (one for part in function.body for one in ast.walk(part)):
            if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name):
                known = getattr(module, one.value.id, None)
                if isinstance(known, enum.EnumType) and one.attr in known.__members__:
                    found.add(one.lineno)
    return frozenset(found)


def many(x: Any, count: int) -> Any:
    """Have operations of the usual kinds again and again."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for _ in range(count):
        tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        product = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=product, stationary=tile, moving=tile)
        sums = nl.ndarray((64, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=sums, op=nl.add, data=product, axis=1)
        nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.tensor_copy(dst=tile, src=tile)
        nisa.activation(dst=tile, op=nl.exp, data=tile, scale=0.5)
        nisa.dma_copy(dst=out, src=tile)
    return out


def test_no_operation_looks_for_members_of_enumerations(monkeypatch: pytest.MonkeyPatch) -> None:
    """No count of calls shows it, and Python 3.11 takes as long for it as for a dozen."""
    monkeypatch.setenv("NEURONTOOLS_LAUNCH_CACHE", "off")

    def lines(count: int) -> dict[tuple[str, int], int]:
        seen: dict[tuple[str, int], int] = {}

        def look(frame: FrameType, event: str, argument: object) -> Any:
            name = frame.f_globals.get("__name__", "")
            if not name.startswith(("neurontools.nki", "neurontools.builder")):
                return None
            here = name, frame.f_lineno
            if event == "line" and frame.f_lineno in _looks_up(sys.modules[name]):
                seen[here] = seen.get(here, 0) + 1
            return look

        before = sys.gettrace()
        sys.settrace(look)
        try:
            build_neff(many, (X, count), {}, target="trn2")
        finally:
            sys.settrace(before)
        return seen

    few, more = lines(2), lines(6)
    assert few, "lines of a launch are seen"
    assert {line for line in more if more[line] > few.get(line, 0) + 1} == set()
