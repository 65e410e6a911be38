"""The tutorial kernels of the AWS documentation, unmodified: their files verify, and their accesses are ordered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import neurontools.nki as nki
from formats.neff import open_neff
from neurontools.builder import build
from tests.builder.order import unordered
from tests.nki.support import trace
from tests.nki.test_tutorials import KERNELS, load

# Kernels whose pairs of accesses are few enough to be compared one by one, byte by byte, within seconds.
ORDERED = ("tensor_split", "maxpool", "transpose2d", "average_pool2d", "matmul_basic", "simulate_example")


@pytest.fixture(scope="module")
def examples(corpus: Path) -> Iterator[Path]:
    folder = corpus / "aws-neuron-sdk" / "nki" / "examples"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    assert nki.install()
    yield folder
    nki.uninstall()


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize("name", KERNELS)
def test_tutorial_kernel_builds(examples: Path, name: str, target: str) -> None:
    file, function, given, _ = KERNELS[name]
    arguments = [np.ones(one, np.float32) if isinstance(one, tuple) else one for one in given]
    (one,) = trace(load(examples / file, function), *arguments, target=target)
    built = build([one.trace], name)
    neff = open_neff(built.to_bytes())
    assert neff.verify() == []
    assert built.report.cores[0].waits < 1.3 * built.report.cores[0].instructions
    if name in ORDERED and target != "trn3":
        assert unordered(neff) == []
