"""The collectives of AWS's nki-library, unmodified, on several ranks: kernels of the library, and of its tests."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neurontools
import neurontools.nki.collectives as ncc
from emulator.runtime.ranks import Ranks, execute_ranks

RANKS = 4
GROUP = ncc.ReplicaGroup([list(range(RANKS))])
Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def library() -> Iterator[Path]:
    """Return the fetched library, with its source where Python finds it."""
    corpus = os.environ.get("NEURONTOOLS_CORPUS")
    root = Path(corpus or "none") / "nki-library"
    if not (root / "src" / "nkilib_src").is_dir():
        pytest.skip("NEURONTOOLS_CORPUS names no folder with nki-library")
    before = set(sys.modules)
    neurontools.nki.install()  # type: ignore[attr-defined]
    source = str(root / "src" / "nkilib_src")
    sys.path.insert(0, source)
    yield root
    sys.path.remove(source)
    for name in set(sys.modules) - before:
        if name.split(".")[0] in ("nki", "nkilib", "nkilib_src"):
            del sys.modules[name]


def function(module: str, name: str) -> Any:
    kernel = getattr(importlib.import_module(f"nkilib.experimental.collectives.{module}"), name)
    return getattr(kernel, "func", kernel)


def ran(kernel: Callable[..., Any], inputs: list[tuple[Array, ...]], lnc: int) -> list[Array]:
    neff = neurontools.build(kernel, *inputs[0], target="trn2", lnc=lnc)
    names = [tensor.name for tensor in neff.inputs]
    found = execute_ranks(neff, [dict(zip(names, each, strict=True)) for each in inputs], Ranks(RANKS))
    assert found.ok, found.hang
    return [next(iter(result.outputs.values())) for result in found.results]


def arrays(*shape: int) -> list[tuple[Array, ...]]:
    rng = np.random.default_rng(7)
    return [(rng.standard_normal(shape).astype(np.float32),) for _ in range(RANKS)]


@pytest.mark.parametrize("name", ["allgather_sb2sb", "allgather_sb2sb_tiled"])
@pytest.mark.parametrize("lnc", [1, 2])
def test_tiles_are_gathered_on_chip(library: Path, name: str, lnc: int) -> None:
    kernel, inputs = function("sb2sb_allgather", name), arrays(128, 64)
    wanted = np.concatenate([one for (one,) in inputs], axis=1)
    assert all((found == wanted).all() for found in ran(lambda x: kernel(x, GROUP, RANKS), inputs, lnc))


@pytest.mark.parametrize("through_hbm", [False, True])
def test_a_ring_gathers_rows_by_rank(library: Path, through_hbm: bool) -> None:
    kernel, inputs = function("fg_allgather", "fine_grained_allgather"), arrays(512, 128)
    wanted = np.concatenate([one for (one,) in inputs])
    for found in ran(lambda x: kernel(x, RANKS, 1, through_hbm), inputs, 2):
        assert (found.reshape(wanted.shape) == wanted).all()


def test_a_ring_multiplies_what_it_gathers(library: Path) -> None:
    import ml_dtypes

    kernel = function("fgcc", "allgather_compute_matmul")
    rng = np.random.default_rng(8)
    inputs = [tuple(rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((512, 512), (512, 512)))
              for _ in range(RANKS)]  # fmt: skip
    whole = np.concatenate([left for left, _ in inputs]).astype(np.float32)
    for found, (_, right) in zip(ran(lambda x, y: kernel(x, y, RANKS, 1), inputs, 2), inputs, strict=True):
        wanted = whole @ right.astype(np.float32)
        difference = np.abs(found.astype(np.float32).reshape(wanted.shape) - wanted)
        assert difference.max() <= 2**-8 * np.abs(wanted).max()  # the result is bfloat16
