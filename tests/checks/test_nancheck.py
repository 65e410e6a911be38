"""NaN and infinities are followed back to the word that made them, through words, casts, products and transfers."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.checks import Finding
from emulator.runtime import run
from formats.neff import Neff
from neurontools.nki.launch import build_neff

P, W = 128, 32


def tile(*shape: int, dtype: Any = nl.float32, buffer: Any = nl.sbuf) -> Any:
    return nl.ndarray(shape, dtype=dtype, buffer=buffer)


def shared(dtype: Any = nl.float32) -> Any:
    return nl.ndarray((P, W), dtype=dtype, buffer=nl.shared_hbm)


def exponent(x: Any) -> Any:
    out, part, big, rest = shared(), tile(P, W), tile(P, W), tile(P, W)
    nisa.dma_copy(dst=part, src=x)
    nisa.activation(dst=big, op=nl.exp, data=part)  # origin
    nisa.tensor_tensor(dst=rest, data1=big, data2=big, op=nl.subtract)  # way
    nisa.dma_copy(dst=out, src=rest)  # way
    return out


def product(x: Any) -> Any:
    out, part, weights, big = shared(), tile(P, W), tile(P, P), tile(P, W)
    total, result = tile(P, W, buffer=nl.psum), tile(P, W)
    nisa.dma_copy(dst=part, src=x)
    nisa.memset(dst=weights, value=1.0)
    nisa.reciprocal(dst=big, data=part)  # origin
    nisa.nc_matmul(dst=total, stationary=weights, moving=big)  # way
    nisa.tensor_copy(dst=result, src=total)  # way
    nisa.dma_copy(dst=out, src=result)  # way
    return out


def narrow(x: Any) -> Any:
    out, part, half = shared(nl.float16), tile(P, W), tile(P, W, dtype=nl.float16)
    nisa.dma_copy(dst=part, src=x)
    nisa.dma_copy(dst=half, src=part)  # origin
    nisa.dma_copy(dst=out, src=half)  # way
    return out


def unwritten(x: Any) -> Any:
    out, part, result = shared(), tile(P, W), tile(P, W)
    nisa.dma_copy(dst=part[0:64], src=x[0:64])
    nisa.tensor_copy(dst=result, src=part)  # origin
    nisa.dma_copy(dst=out, src=result)  # way
    return out


def passed(x: Any) -> Any:
    out, part = shared(), tile(P, W)
    nisa.dma_copy(dst=part, src=x)  # way
    nisa.dma_copy(dst=out, src=part)  # way
    return out


def masked(x: Any) -> Any:
    """Infinity that no output sees: a mask of minus infinity, gone behind the exponent."""
    out, part, mask = shared(), tile(P, W), tile(P, W)
    nisa.dma_copy(dst=part, src=x)
    nisa.memset(dst=mask, value=float("-inf"))
    nisa.tensor_tensor(dst=mask, data1=mask, data2=part, op=nl.add)
    nisa.activation(dst=part, op=nl.exp, data=mask)
    nisa.dma_copy(dst=out, src=part)
    return out


def findings(kernel: Any, value: float) -> tuple[list[Finding], Neff]:
    x = np.ones((P, W), np.float32)
    x[3, 4] = value
    neff: Neff = build_neff(kernel, (x,), {}, target="trn2")
    return list(run(neff, {neff.inputs[0].name: x}, checks="nancheck").findings), neff


def lines(kernel: Any, mark: str) -> list[int]:
    source, first = inspect.getsourcelines(kernel)
    return [first + at for at, line in enumerate(source) if f"# {mark}" in line]


@pytest.mark.parametrize(
    ("kernel", "value", "kind", "said"),
    [(exponent, 1000.0, "nan", "makes infinite values of finite operands, and 1 elements"),
     (product, 0.0, "inf", f"{P} elements"), (narrow, 1e9, "inf", "1 elements"),
     (unwritten, 1.0, "nan", f"reads what nothing wrote, and {64 * W} elements")],
)  # fmt: skip
def test_the_origin_and_the_way(kernel: Any, value: float, kind: str, said: str) -> None:
    found, _ = findings(kernel, value)
    finding = next(one for one in found if one.kind == kind)
    assert said in finding.message
    assert getattr(finding.site.source, "line", 0) == lines(kernel, "origin")[0]
    assert [getattr(one.source, "line", 0) for one in finding.others] == lines(kernel, "way")


@pytest.mark.parametrize("kernel", [exponent, product, narrow, passed])
def test_finite_values_give_nothing(kernel: Any) -> None:
    assert findings(kernel, 0.5)[0] == []


def test_infinity_that_no_output_sees() -> None:
    assert findings(masked, 1.0)[0] == []


def test_inputs_that_are_not_finite() -> None:
    (finding,) = findings(passed, float("nan"))[0]
    assert finding.site.engine == "host" and "input x is not finite" in finding.message
    assert [getattr(one.source, "line", 0) for one in finding.others] == lines(passed, "way")
