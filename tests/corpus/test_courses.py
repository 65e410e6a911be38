"""Every course NEFF that was fetched means what its kernel does in NumPy, DMA transposes under three seeds."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.runtime import execute, run
from emulator.settings import Settings
from formats.neff import Neff, open_neff
from neurontools.check.unused import drop_unused

COURSES = ("asst4-trainium2", "cs149-pa4", "CS149-asst4")
SEEDS = (1, 2, 3)
TRANSPOSED = (
    [f"asst4-trainium2/part2/conv2d_{number}_{kind}_smaller.neff"
     for number in (1, 2) for kind in ("float16", "float32")]
    + ["asst4-trainium2/part2/conv2d_1_float16.neff", "asst4-trainium2/part2/conv2d_1_float32.neff",
       "asst4-trainium2/part2/conv2d_2_float16.neff",
       "asst4-trainium2/part2/conv2d_2_float32.neff"]
)  # fmt: skip


def meaning(arrays: dict[str, Any], output: Any) -> Any:
    """Return what the kernels compute: the sum of two vectors, a transpose, or a convolution with its largest values.

    The output's shape says whether two by two values were pooled.
    """
    wide = {name: array.astype(np.float64) for name, array in arrays.items()}
    if "a_vec" in wide:
        return (wide["a_vec"] + wide["b_vec"]).reshape(output.shape)
    if "a_tensor" in wide:
        return wide["a_tensor"].T
    image, weights, bias = (wide[name] for name in ("X", "W", "bias"))
    rows, columns = image.shape[2] - weights.shape[2] + 1, image.shape[3] - weights.shape[3] + 1
    total = np.zeros((1, weights.shape[0], rows, columns)) + bias[:, None, None]
    for i in range(weights.shape[2]):
        for j in range(weights.shape[3]):
            window = image[0, :, i : i + rows, j : j + columns].reshape(image.shape[1], -1)
            total[0] += (weights[:, :, i, j] @ window).reshape(-1, rows, columns)
    if output.shape[2] == rows:
        return total
    pooled = total[:, :, : rows // 2 * 2, : columns // 2 * 2]
    return pooled.reshape(1, -1, rows // 2, 2, columns // 2, 2).max((3, 5))


def inputs_of(neff: Neff, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {one.name: (rng.random(one.shape, np.float32) * 2 - 1).astype(one.dtype) for one in neff.inputs}


def check(path: Path, seeds: tuple[int, ...]) -> None:
    neff = open_neff(path)
    for seed in seeds:
        arrays = inputs_of(neff, seed)
        result = run(neff, arrays, seed=seed, checks=("racecheck",) if seed == seeds[0] else ())
        # The compiler spills all of the output tile of conv2d_2 when its first rows are there: the rest is old bytes,
        # into which weights are still being moved. What is spilled there is written again before anything reads it.
        again = partial(execute, neff, arrays, Settings(seed=seed))
        drop_unused([result], lambda seen, again=again: [again(observers=seen[0])])
        races = [one.message for one in result.findings if one.serious]
        assert result.ok and not races, races
        (name,) = (one.name for one in neff.outputs)
        output = result.outputs[name]
        want = meaning(arrays, output)
        # 2304 products each: fp16 sums round once or twice to eleven bits, fp32 ones in some order.
        close = (2.0**-10, 2.0**-6) if output.dtype == np.float16 else (2.0**-20, 2.0**-11)
        assert np.allclose(output.astype(np.float64), want, rtol=close[0], atol=close[1]), np.abs(output - want).max()


def transposes(neff: Neff) -> int:
    return sum(
        one.transpose_op is not None
        for graph in neff.subgraphs for block in graph.dma_blocks.values() for one in block.descriptors
    )  # fmt: skip


@pytest.mark.parametrize("name", TRANSPOSED, ids=lambda name: Path(name).stem)
def test_dma_transposes_move_what_the_kernel_transposes(corpus: Path, name: str) -> None:
    path = corpus / name
    if not path.is_file():
        pytest.skip(f"corpus has no {name}")
    assert transposes(open_neff(path)) == 36
    check(path, SEEDS)


def test_every_small_course_file_means_what_its_kernel_does(corpus: Path) -> None:
    paths = [path for course in COURSES for path in sorted((corpus / course).rglob("*.neff"))]
    small = [path for path in paths if "smaller" in path.name or path.parent.name == "part1"]
    if not small:
        pytest.skip("corpus has no course files")
    for path in small:
        check(path, SEEDS[:1])
