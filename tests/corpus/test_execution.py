"""Every public NEFF executes: the same bits under every schedule, race-free, and what its kernel means in NumPy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.runtime import Result, run
from formats.neff import Neff, open_neff, pack, unpack
from neurontools.program.configuration import RunConfiguration
from neurontools.program.inputs import program_inputs
from tests.corpus import files
from tests.corpus.dependencies import Dependencies

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


@pytest.mark.skipif("NEURONTOOLS_LARGE" not in os.environ, reason="needs two minutes: set NEURONTOOLS_LARGE")
def test_matmul_large_is_the_rounded_product(corpus: Path) -> None:
    """One schedule, one block of columns at a time; five schedules are a matter of `benchmarks/real_files.py`."""
    path = files.find(corpus, files.MATMUL_LARGE)
    given, _ = program_inputs(open_neff(path), RunConfiguration(inputs="random:3"))
    check = Dependencies()
    result = run(path, given, observers=[check], seed=1)
    assert result.ok and not result.warnings and not check.disagreements and check.waits == waits_of(open_neff(path))
    assert_is_product(result.outputs["output0"], given["x"], given["y"])


@pytest.mark.skipif("NEURONTOOLS_LARGE" not in os.environ, reason="needs two minutes: set NEURONTOOLS_LARGE")
@pytest.mark.parametrize("command", ["run", "check"])
def test_matmul_large_takes_less_memory_than_its_input(corpus: Path, tmp_path: Path, command: str) -> None:
    """4 GiB of input, of which no more than 3 GiB may be in memory at once; a `check` takes planes beside it."""
    path = files.find(corpus, files.MATMUL_LARGE)
    asked = ["--outputs", str(tmp_path / "out.npz")] if command == "run" else []
    program = (
        "import resource, sys; from neurontools.cli import main\n"
        "try: sys.exit(main())\n"
        "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, command, str(path), "--inputs", "random:3", *asked],
        capture_output=True, text=True, timeout=1500,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stderr.split()[-1]) < 3 << 20, "KiB"


def assert_is_product(found: Any, x: Any, y: Any) -> None:
    """Compare with the exact product, a thousand rows of y at a time."""
    depth, width = y.shape
    expected, sizes = np.zeros((128, width), np.float32), np.zeros((128, width), np.float32)
    for start in range(0, depth, 1024):
        left, right = x[:, start : start + 1024].astype(np.float32), y[start : start + 1024].astype(np.float32)
        expected += left @ right
        sizes += np.abs(left) @ np.abs(right)
    output = found.astype(np.float32)
    half_ulp = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(expected), 2.0**-14))) - 11)
    assert (output == expected.astype(np.float16)).mean() >= 0.99
    # In units of what one rounding of an fp32 sum can be off.
    assert ((np.abs(output - expected) - half_ulp) / (sizes * 2.0**-24)).max() < 4
