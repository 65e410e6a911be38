"""Kernels judged in processes of their own: right, wrong, endless, hungry, dying; many leave nothing behind."""

from __future__ import annotations

import gc
import os
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neurontools
from neurontools import nki
from neurontools.nki import isa as nisa
from neurontools.nki import language as nl

X = np.linspace(-1, 1, 128 * 64, dtype=np.float32).reshape(128, 64)
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="kernels share this process without fork")


@nki.jit
def exponential(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation(dst=tile, op=nl.exp, data=tile)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def endless(x: Any) -> Any:
    while True:
        pass


@nki.jit
def hungry(x: Any) -> Any:
    return np.ones(1 << 32)


@nki.jit
def dying(x: Any) -> Any:
    os._exit(3)


@nki.jit
def mistaken(x: Any) -> Any:
    return x + undefined  # type: ignore[name-defined] # noqa: F821


class AuthorsError(Exception):
    """An error that nobody here knows."""


@nki.jit
def raising(x: Any) -> Any:
    raise AuthorsError("the tile\nis gone")


@nki.jit
def reading(x: Any) -> Any:
    return Path("/nowhere/weights.npy").read_bytes()


@nki.jit
def too_tall(x: Any) -> Any:
    return nl.ndarray((4096, 4), dtype=x.dtype, buffer=nl.sbuf)


def test_a_right_kernel_has_time_and_bottleneck() -> None:
    found = neurontools.evaluate(exponential, [X], np.exp(X), target="trn2")
    assert found.correct and not found.error and not found.findings
    assert found.time_ps == neurontools.run(neurontools.build(exponential, X, target="trn2"), {"x": X}).time_ps
    assert found.difference < 1e-5 and "critical path" in found.bottleneck


def test_a_reference_may_be_a_function_of_the_same_inputs() -> None:
    found = neurontools.evaluate(exponential, {"x": X}, lambda x: np.exp(x), target="trn2", explain=False)
    assert found.correct and found.bottleneck == ""


@pytest.mark.parametrize(
    ("reference", "what"),
    [
        (np.exp(X) + (np.arange(64) == 7), "differs by"),
        (np.exp(X)[:, :63], "has shape"),
        ((np.exp(X), X), "1 results, the reference has 2"),
        (np.where(np.arange(64) == 3, np.nan, np.exp(X)), "differs by inf"),
    ],
)
def test_a_wrong_result_says_where(reference: Any, what: str) -> None:
    found = neurontools.evaluate(exponential, [X], reference, target="trn2", explain=False)
    assert not found.correct and what in found.error and found.time_ps > 0


@needs_fork
@pytest.mark.parametrize(
    ("kernel", "what", "options"),
    [
        (endless, "over 0.5 s", {"max_seconds": 0.5}),
        (hungry, "MB", {"max_megabytes": 512}),
        (dying, "ended with status 3", {}),
        (mistaken, "undefined", {}),
        (too_tall, "at most 128", {}),
    ],
)
def test_whatever_a_kernel_does_is_a_value(kernel: Any, what: str, options: dict[str, Any]) -> None:
    found = neurontools.evaluate(kernel, [X], X, target="trn2", **options)
    assert not found.correct and what in found.error
    assert found.time_ps == -1


@pytest.mark.parametrize("isolated", [True, False])
@pytest.mark.parametrize(("kernel", "what"), [(raising, "AuthorsError: the tile is gone"), (reading, "FileNotFound")])
def test_errors_of_any_kind_are_values(kernel: Any, what: str, isolated: bool) -> None:
    found = neurontools.evaluate(kernel, [X], np.exp(X), target="trn2", isolated=isolated)
    assert not found.correct and what in found.error, found


def test_an_evaluation_in_this_process_is_the_same() -> None:
    alone = neurontools.evaluate(exponential, [X], np.exp(X), target="trn2", isolated=False)
    assert alone._replace(seconds=0) == neurontools.evaluate(exponential, [X], np.exp(X), target="trn2")._replace(
        seconds=0
    )


@pytest.fixture
def descriptors() -> Any:
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        pytest.skip("no /proc to count open files in")
    return lambda: len(list(folder.iterdir()))


@needs_fork
def test_many_evaluations_leave_nothing_behind(descriptors: Any) -> None:
    def some(count: int) -> None:
        for _ in range(count):
            assert neurontools.evaluate(exponential, [X], np.exp(X), target="trn2", checks=(), explain=False).correct
        gc.collect()

    some(3)
    files, memory = descriptors(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    some(12)
    assert descriptors() == files
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 20_000
