"""Every public NEFF executes: the same bits under every schedule, race-free, and what its kernel means in NumPy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.checks.dependencies import Dependencies
from emulator.runtime import Result, run
from formats.neff import Neff, open_neff, pack, unpack
from tests.corpus import files

SEEDS = range(5)
SMALL = [files.MATMUL_SMALL, *files.ATTENTION]


def inputs_of(name: str) -> dict[str, Any]:
    return files.matmul_small_inputs() if name == files.MATMUL_SMALL else files.attention_inputs(name)


def waits_of(neff: Neff) -> int:
    """Return how many semaphore waits the words of a file hold."""
    return sum(
        (word.raw[4] == 5) + (word.raw[0] == 0xA0 and word.raw[32] == 5)
        for subgraph in neff.subgraphs for stream in subgraph.streams.values() for word in stream
    )  # fmt: skip


def name_of(path: str) -> str:
    return path.split("/")[-2] if "attention" in path or "_s" in path else Path(path).stem


@pytest.fixture(scope="module", params=SMALL, ids=name_of)
def executed(request: pytest.FixtureRequest, corpus: Path) -> tuple[str, Path, dict[str, Any], Result]:
    path = files.find(corpus, request.param)
    inputs = inputs_of(request.param)
    return request.param, path, inputs, run(path, inputs, checks=("memcheck", "initcheck", "racecheck"))


def test_it_is_what_the_kernel_means(executed: tuple[str, Path, dict[str, Any], Result]) -> None:
    name, _, inputs, result = executed
    assert result.ok and not result.warnings
    if name == files.MATMUL_SMALL:
        x, y = inputs["x"], inputs["y"]
        output = result.outputs["output0"]
        assert files.excess(output, x, y) < 4
        # The last bit differs from NumPy's only where the order of an fp32 sum decides.
        assert (output == (x.astype(np.float32) @ y.astype(np.float32)).astype(np.float16)).mean() >= 0.99
        return
    output = result.outputs["kernel_out"].astype(np.float64)
    assert np.abs(output - files.attention(*inputs.values())).max() <= (8e-3 if "bf16" in name else 1e-5)


def test_checks_find_nothing(executed: tuple[str, Path, dict[str, Any], Result]) -> None:
    assert [finding.message for finding in executed[3].findings] == []


def test_every_schedule_gives_the_same_bits(executed: tuple[str, Path, dict[str, Any], Result]) -> None:
    _, path, inputs, result = executed
    want = {name: array.tobytes() for name, array in result.outputs.items()}
    for seed in SEEDS:
        other = run(path, inputs, seed=seed)
        assert other.ok and {name: array.tobytes() for name, array in other.outputs.items()} == want
    other = run(path, inputs, timing=False)
    assert {name: array.tobytes() for name, array in other.outputs.items()} == want


def test_the_files_own_tables_give_nearly_the_same(executed: tuple[str, Path, dict[str, Any], Result]) -> None:
    name, path, inputs, result = executed
    other = run(path, inputs, act="table")
    if name == files.MATMUL_SMALL:  # copies are no function: bit for bit either way
        assert other.outputs["output0"].tobytes() == result.outputs["output0"].tobytes()
        return
    want = files.attention(*inputs.values())
    got = other.outputs["kernel_out"].astype(np.float64)
    assert np.abs(got - want).max() <= (8e-3 if "bf16" in name else 1e-5)
    if "bf16" not in name:
        assert (other.outputs["kernel_out"] != result.outputs["kernel_out"]).any()


def test_waits_are_met_by_predecessors_that_the_debug_info_names(
    executed: tuple[str, Path, dict[str, Any], Result]
) -> None:  # fmt: skip
    _, path, inputs, _ = executed
    neff = open_neff(path)
    for seed in (None, 1):
        check = Dependencies()
        assert run(neff, inputs, observers=[check], seed=seed).ok
        assert [one.text for one in check.disagreements] == []
        assert check.waits == waits_of(neff) > 0


def test_a_wait_for_another_value_disagrees(corpus: Path, tmp_path: Path) -> None:
    """The check has teeth: a wait that a word before the named one satisfies is seen."""
    folder = tmp_path / "unpacked"
    unpack(open_neff(files.find(corpus, files.ATTENTION[1])), folder)
    place = next(folder.rglob("sg00/DVE.bin"))
    stream = bytearray(place.read_bytes())
    at = next(i for i in range(0, len(stream), 64)
              if stream[i + 4] == 5 and int.from_bytes(stream[i + 8:i + 12], "little") > 5)  # fmt: skip
    value = int.from_bytes(stream[at + 8 : at + 12], "little") - 1
    stream[at + 8 : at + 12] = value.to_bytes(4, "little")
    place.write_bytes(stream)
    pack(folder, tmp_path / "changed.neff")
    check = Dependencies()
    run(tmp_path / "changed.neff", files.attention_inputs(files.ATTENTION[1]), observers=[check])
    assert [(one.engine, one.pc, one.value) for one in check.disagreements] == [("DVE", at // 64, value)]


@pytest.mark.skipif("NEURONTOOLS_LARGE" not in os.environ, reason="needs 10 GB and two minutes: set NEURONTOOLS_LARGE")
def test_matmul_large_is_the_rounded_product(corpus: Path) -> None:
    """One schedule, one block of columns at a time; five schedules are a matter of `benchmarks/real_files.py`."""
    path = files.find(corpus, files.MATMUL_LARGE)
    depth, width, block = 32768, 65536, 1024
    rng = np.random.default_rng(files.SEED)
    x = (rng.standard_normal((128, depth)) * 0.25).astype(np.float16)
    # No two rows or columns of the 4 GiB operand are alike: one random strip, shifted from block to block.
    strip = (rng.standard_normal((block, width + 4099)) * 0.25).astype(np.float16)
    y = np.empty((depth, width), np.float16)
    for start in range(0, depth, block):
        shift = start // block * 127
        y[start : start + block] = strip[:, shift : shift + width]
    check = Dependencies()
    result = run(path, {"x": x, "y": y}, observers=[check], seed=1)
    assert result.ok and not result.warnings and not check.disagreements and check.waits == waits_of(open_neff(path))
    output = result.outputs["output0"].astype(np.float32)
    expected = np.zeros((128, width), np.float32)
    for start in range(0, depth, block):
        expected += x[:, start : start + block].astype(np.float32) @ y[start : start + block].astype(np.float32)
    half_ulp = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(expected), 2.0**-14))) - 11)
    assert (output == expected.astype(np.float16)).mean() >= 0.99
    # An fp32 sum of 32,768 products of this size is off by less than 2**-14.
    assert (np.abs(output - expected) - half_ulp).max() < 2.0**-14
