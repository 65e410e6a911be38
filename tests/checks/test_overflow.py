"""Numbers that an integer type does not hold are told where they are stored; meant ones are not.

So are integers that fp32 does not hold, where a word computes other integers of them.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from neurontools.nki.launch import build_neff
from tests.checks.support import checked

P, W = 128, 32
X = np.random.default_rng(0).standard_normal((P, W)).astype(np.float32)
COUNTS = np.arange(P * W, dtype=np.int32).reshape(P, W)


def tile(dtype: Any = nl.float32) -> Any:
    return nl.ndarray((P, W), dtype=dtype, buffer=nl.sbuf)


def shared(dtype: Any) -> Any:
    return nl.ndarray((P, W), dtype=dtype, buffer=nl.shared_hbm)


def bytes_of_large_numbers(x: Any, bad: bool) -> Any:
    out, a, h = shared(nl.int8), tile(), tile(nl.int8)
    nisa.dma_copy(dst=a, src=x)
    nisa.tensor_scalar(h, a, nl.multiply, 1000.0 if bad else 10.0)  # fault
    nisa.dma_copy(dst=out, src=h)
    return out


def negative_as_unsigned(x: Any, bad: bool) -> Any:
    out, a, h = shared(nl.uint8), tile(), tile(nl.uint8)
    nisa.dma_copy(dst=a, src=x)
    if not bad:
        nisa.activation(dst=a, op=nl.relu, data=a)
    nisa.tensor_scalar(h, a, nl.multiply, 10.0)  # fault
    nisa.dma_copy(dst=out, src=h)
    return out


def nan_as_integer(x: Any, bad: bool) -> Any:
    out, a, h = shared(nl.int32), tile(), tile(nl.int32)
    nisa.dma_copy(dst=a, src=x)
    nisa.activation(dst=a, op=nl.log if bad else nl.tanh, data=a)
    nisa.tensor_copy(dst=h, src=a)  # fault
    nisa.dma_copy(dst=out, src=h)
    return out


def a_cast_on_the_way(x: Any, bad: bool) -> Any:
    out, a = shared(nl.int16), tile()
    nisa.dma_copy(dst=a, src=x)
    nisa.tensor_scalar(a, a, nl.multiply, 1e6 if bad else 1e3)
    nisa.dma_copy(dst=out, src=a)  # fault
    return out


def a_product_of_integers(x: Any, bad: bool) -> Any:
    out, a = shared(nl.int32), tile(nl.int32)
    nisa.dma_copy(dst=a, src=x)
    nisa.tensor_scalar(a, a, nl.multiply, 1000000 if bad else 1000)  # fault
    nisa.dma_copy(dst=out, src=a)
    return out


def findings(kernel: Callable[..., Any], x: Any, bad: bool, tools: tuple[str, ...] = ("nancheck",)) -> Any:
    neff: Any = build_neff(kernel, (x, bad), {}, target="trn2")
    return [one for one in checked(neff, {neff.inputs[0].name: x}, tools)[0] if one.kind in ("overflow", "rounded")]


@pytest.mark.parametrize(
    ("kernel", "x"),
    [
        (bytes_of_large_numbers, X),
        (negative_as_unsigned, X),
        (nan_as_integer, X),
        (a_cast_on_the_way, X),
        (a_product_of_integers, COUNTS),
    ],
)
def test_what_does_not_fit_is_told_where_it_is_stored(kernel: Callable[..., Any], x: Any) -> None:
    lines, first = inspect.getsourcelines(kernel)
    (fault,) = [first + at for at, line in enumerate(lines) if "# fault" in line]
    (found,) = findings(kernel, x, True)
    assert found.severity == "warning" and found.site.source.line == fault
    assert 0 < found.details["elements"] <= P * W
    assert findings(kernel, x, False) == [] and findings(kernel, x, True, ("all",)) == []


def test_unsigned_numbers_go_round_and_signed_ones_do_not() -> None:
    """As in C: hashes rely on the one, and the other is a mistake; Pool computes either exactly."""

    def doubled(x: Any, dtype: Any) -> Any:
        out, a = shared(dtype), tile(dtype)
        nisa.dma_copy(dst=a, src=x)
        nisa.tensor_tensor(a, a, a, nl.add, engine=nisa.gpsimd_engine)
        nisa.dma_copy(dst=out, src=a)
        return out

    large = np.full((P, W), 3 << 29, np.uint32)
    assert findings(doubled, large, nl.uint32) == []
    (found,) = findings(doubled, large.view(np.int32), nl.int32)
    assert found.details["elements"] == P * W


def counted_up(dtype: Any, engine: Any = nisa.vector_engine) -> Any:
    def kernel(x: Any, bad: bool) -> Any:
        out, a, b = shared(dtype), tile(nl.int32), tile(dtype)
        nisa.dma_copy(dst=a, src=x)
        nisa.tensor_tensor(b, a, a, nl.subtract, engine=engine)
        nisa.dma_copy(dst=out, src=b)
        return out

    return kernel


@pytest.mark.parametrize("sign", [1, -1])
def test_integers_that_fp32_does_not_hold_are_told_where_integers_are_made_of_them(sign: int) -> None:
    large = sign * (COUNTS + (1 << 24))
    (found,) = findings(counted_up(nl.int32), large, False)
    assert (found.kind, found.severity, found.site.engine, found.site.pc) == ("rounded", "warning", "DVE", 2)
    assert found.details["elements"] == P * W  # the odd ones of both operands
    assert findings(counted_up(nl.int32), large & ~1, False) == []  # even ones are exact
    assert findings(counted_up(nl.int32), COUNTS, False) == []
    assert findings(counted_up(nl.float32), large, False) == []  # a float is what is meant
    assert findings(counted_up(nl.int32, nisa.gpsimd_engine), large, False) == []  # as they are


def test_numbers_of_bytes_that_nothing_wrote_mean_nothing() -> None:
    def half(x: Any, _: bool) -> Any:
        out, a, h = nl.ndarray((64, W), dtype=nl.int8, buffer=nl.shared_hbm), tile(), tile(nl.int8)
        nisa.dma_copy(dst=a[0:64], src=x[0:64])
        nisa.tensor_scalar(h, a, nl.multiply, 10.0)
        nisa.dma_copy(dst=out, src=h[0:64])
        return out

    assert findings(half, X, False) == []


def test_runs_in_two_threads_count_for_themselves() -> None:
    neffs: list[Any] = [build_neff(bytes_of_large_numbers, (X, bad), {}, target="trn2") for bad in (True, False)]
    found: dict[int, list[Any]] = {}

    def run(which: int) -> None:
        found[which] = [
            one for _ in range(3) for one in checked(neffs[which], {neffs[which].inputs[0].name: X}, ("nancheck",))[0]
        ]

    threads = [threading.Thread(target=run, args=(which,)) for which in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.kind for one in found[0]] == ["overflow"] * 3 and found[1] == []
    assert len({one.message for one in found[0]}) == 1
