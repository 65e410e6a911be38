"""Accumulator registers that nothing set are told at the word that folds into them, as soon as something reads them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from neurontools.nki.launch import build_neff
from tests.checks.support import checked, serious

P, W = 128, 32
X = np.random.default_rng(0).standard_normal((P, W)).astype(np.float32)
REDUCE, RESET = nisa.reduce_cmd.reduce, nisa.reduce_cmd.reset_reduce


def tile(columns: int = W, dtype: Any = nl.float32) -> Any:
    return nl.ndarray((P, columns), dtype=dtype, buffer=nl.sbuf)


def scalar_engine(x: Any, bad: bool) -> Any:
    out, a, s = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.shared_hbm), tile(), tile(1)
    nisa.dma_copy(dst=a, src=x)
    for turn in range(3):
        command = REDUCE if bad or turn else RESET
        nisa.activation(dst=a, op=nl.tanh, data=a, reduce_op=nl.add, reduce_res=s, reduce_cmd=command)  # fault
    nisa.dma_copy(dst=out, src=s)
    return out


def vector_engine(x: Any, bad: bool) -> Any:
    out, a, s = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.shared_hbm), tile(), tile(1)
    nisa.dma_copy(dst=a, src=x)
    for turn in range(2):
        command = REDUCE if bad or turn else RESET
        nisa.tensor_scalar_reduce(a, a, nl.multiply, 2.0, nl.add, s, reduce_cmd=command)  # fault
    nisa.dma_copy(dst=out, src=s)
    return out


def half_the_lanes(x: Any, bad: bool) -> Any:
    out, a, b, s = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.shared_hbm), tile(), tile(), tile(1)
    rows = 64 if bad else P
    nisa.dma_copy(dst=a, src=x)
    nisa.tensor_scalar_reduce(b[0:rows], a[0:rows], nl.multiply, 2.0, nl.add, s[0:rows])
    nisa.tensor_scalar_reduce(b, a, nl.multiply, 3.0, nl.add, s, reduce_cmd=REDUCE)  # fault
    nisa.dma_copy(dst=out, src=s)
    return out


def an_idle_word_between(x: Any, bad: bool) -> Any:
    out, a, b, s = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.shared_hbm), tile(), tile(), tile(1)
    some = tile(dtype=nl.uint8)
    nisa.dma_copy(dst=a, src=x)
    nisa.memset(dst=some, value=1)
    nisa.tensor_scalar_reduce(b, a, nl.multiply, 2.0, nl.add, s)
    if bad:
        nisa.select_reduce(dst=b, predicate=some, on_true=a, on_false=0.0)
    nisa.tensor_scalar_reduce(b, a, nl.multiply, 3.0, nl.add, s, reduce_cmd=REDUCE)  # fault
    nisa.dma_copy(dst=out, src=s)
    return out


def folded_and_never_read(x: Any, _: bool) -> Any:
    out, a = nl.ndarray((P, W), dtype=nl.float32, buffer=nl.shared_hbm), tile()
    nisa.dma_copy(dst=a, src=x)
    nisa.activation(dst=a, op=nl.tanh, data=a, reduce_op=nl.add, reduce_cmd=REDUCE)
    nisa.dma_copy(dst=out, src=a)
    return out


def found(kernel: Callable[..., Any], bad: bool) -> Any:
    neff: Any = build_neff(kernel, (X, bad), {}, target="trn2")
    return serious(checked(neff, {neff.inputs[0].name: X})[0])


@pytest.mark.parametrize("kernel", [scalar_engine, vector_engine, half_the_lanes, an_idle_word_between])
def test_registers_that_nothing_reset(kernel: Callable[..., Any]) -> None:
    lines, first = inspect.getsourcelines(kernel)
    (fault,) = [first + at for at, line in enumerate(lines) if "# fault" in line]
    (told,) = found(kernel, True)
    assert (told.kind, told.site.source.line) == ("undefined-register", fault) and told.other is not None
    assert found(kernel, False) == []


def test_what_nobody_reads_does_no_harm() -> None:
    assert found(folded_and_never_read, False) == []
