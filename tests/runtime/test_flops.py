"""Operations of executions are counted: as many as the kernel multiplies and adds, in every place that shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.machine.instances import instance_of
from emulator.runtime.ledger_state import read_state, state_of
from emulator.runtime.session import Runtime
from emulator.runtime.tensor import Placement, TensorSet
from formats.neff import Neff
from neurontools import nki
from neurontools.monitor.config import DEFAULT
from neurontools.monitor.report import make_report, sample
from neurontools.nki import isa as nisa
from neurontools.nki import language as nl
from neurontools.nki.launch import build_neff
from neurontools.sysfs.stores import stores_of
from neurontools.sysfs.tree import tree_of
from tests.timeline.support import case

SQUARE = np.eye(128, dtype=np.float32)


@nki.jit
def in_turns(data: Any, turns: Any) -> Any:
    """Multiply twice in each of as many turns as the device finds."""
    count = nl.ndarray((1, 1), nl.int32, nl.sbuf)
    nisa.dma_copy(count, turns)
    stop = nisa.register_alloc()
    nisa.register_load(stop, count)
    tile, result = (nl.ndarray((128, 128), nl.float32, nl.sbuf) for _ in range(2))
    nisa.dma_copy(tile, data)
    nisa.memset(result, 0.0)
    for _ in nl.dynamic_range(stop):
        sums = nl.ndarray((128, 128), nl.float32, nl.psum)
        nisa.nc_matmul(sums, tile, tile)
        nisa.nc_matmul(sums, tile, tile)
        nisa.tensor_copy(result, sums)
    output = nl.ndarray((128, 128), nl.float32, nl.shared_hbm)
    nisa.dma_copy(output, result)
    return output


def execute(runtime: Runtime, neff: Neff, inputs: dict[str, Any], times: int = 1) -> None:
    model = runtime.load(neff.to_bytes(), 0)
    given, wanted = TensorSet(), TensorSet()
    for each in model.tensors:
        tensor = runtime.allocate(Placement.DEVICE, 0, each.nbytes)
        if not each.output:
            tensor.write(np.ascontiguousarray(inputs[each.name]))
        (wanted if each.output else given).add(each.name, tensor)
    runtime.execute(model, given, wanted, times)


@pytest.mark.parametrize(
    ("name", "flops"), [("tiles", 2 * 256 * 256 * 1024), ("matmul", 2 * 256 * 128 * 256), ("pair", 0)]
)
def test_kernels(name: str, flops: int) -> None:
    runtime = Runtime({})
    execute(runtime, *case(name), times=2)
    assert runtime.counters[0, "other_info/flop_count"] == 2 * flops
    runtime.close()


@pytest.mark.parametrize("turns", [0, 3])
def test_turns_of_loops_that_the_device_counts(turns: int) -> None:
    runtime = Runtime({})
    inputs = {"data": SQUARE, "turns": np.array([[turns]], np.int32)}
    neff = build_neff(in_turns, (SQUARE, inputs["turns"]), {}, lnc=1, target="trn2")
    execute(runtime, neff, inputs)
    assert runtime.counters[0, "other_info/flop_count"] == turns * 2 * 2 * 128**3
    runtime.close()


def test_every_view_has_them(tmp_path: Path) -> None:
    runtime = Runtime({"NEURONTOOLS_MACHINE": str(tmp_path)})
    before = state_of(runtime)
    execute(runtime, *case("tiles"))
    state = state_of(runtime)
    flops, instance = 2 * 256 * 256 * 1024, instance_of("trn2.48xlarge")
    report = make_report(sample([state], 12.0), sample([before], 10.0), DEFAULT, instance, 2)
    cores = report["neuron_runtime_data"][0]["report"]["neuroncore_counters"]["neuroncores_in_use"]
    assert cores["0"]["flops"] == flops // 2  # a second
    assert tree_of(instance, [state]).texts["neuron0/neuron_core0/stats/other_info/flop_count"] == str(flops)
    assert stores_of(instance, state)[0].cores[0]["MAC_COUNT"] == flops // 2
    runtime.close()
    (path,) = tmp_path.glob("*.json")
    assert read_state(path).counters[0, "other_info/flop_count"] == flops
