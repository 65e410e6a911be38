"""A file made by the writer, loaded and executed: DMA in, PE, ACT and DVE, DMA out."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from emulator.device import Device
from emulator.runtime import run
from formats import isa
from formats.neff import Neff
from formats.neuron_core import PSUM_BASE
from tests.emulator.dma_programs import PARTITION, direct, gen3
from tests.emulator.streams import after, signal, tile

ROWS, COLUMNS = 128, 64
X, W, SUM, OUT = 0x4000, 0x8000, 0xC000, 0x10000
BF16, FP32 = 6, 10


def words(core: int = 0, extra: tuple[isa.Instruction, ...] = ()) -> dict[str, list[isa.Instruction]]:
    """Return y = relu(wᵀ x) + x for one core; core 1 writes to the second half of y."""
    load_x = direct(("table", 0, 0), ("variable", 0, X), COLUMNS * 2, ROWS, COLUMNS * 2, PARTITION, dtypes=(BF16, BF16))
    load_w = direct(
        ("table", 1, 0), ("variable", 0, W), ROWS * 2, ROWS, ROWS * 2, PARTITION, dtypes=(BF16, BF16), semaphore=9
    )
    store = direct(
        ("variable", 0, OUT),
        ("table", 2, core * ROWS * COLUMNS * 4),
        COLUMNS * 4,
        ROWS,
        PARTITION,
        COLUMNS * 4,
        semaphore=10,
        **after(6, 1),
    )
    weights = isa.LoadWeights(
        src=isa.AccessPattern(W + (ROWS - 1) * 2, (-1, 0, 0), (ROWS, 1, 1)), dtype=BF16, **after(9, 16)
    )
    multiply = isa.MatMul(
        src=tile(X, COLUMNS), dst=tile(PSUM_BASE, COLUMNS), dtype=BF16, acc_flags=3, **after(8, 16), **signal(5)
    )
    relu = isa.Activate(
        src=tile(PSUM_BASE, COLUMNS),
        dst=tile(SUM, COLUMNS),
        src_dtype=FP32,
        dst_dtype=FP32,
        no_bias=1,
        function=2,
        **after(5, 1),
        **signal(4),
    )
    total = isa.TensorTensor(
        src0=tile(SUM, COLUMNS),
        src1=tile(X, COLUMNS),
        dst=tile(OUT, COLUMNS),
        src0_dtype=FP32,
        src1_dtype=BF16,
        dst_dtype=FP32,
        op=isa.AluOp.ADD,
        **after(4, 1),
        **signal(6),
    )
    return {
        "SP": [load_x, load_w, *extra, store, isa.Nop(**after(10, 16))],
        "PE": [weights, multiply],
        "Activation": [relu],
        "DVE": [total],
    }


def with_relu(subgraph: Any) -> None:
    subgraph.activation_set("set0", ["relu"])


def program(cores: int) -> Neff:
    more = [words(1, (isa.CoreBarrier(semaphore=60),))] if cores == 2 else []
    first = words(0, (isa.CoreBarrier(semaphore=60),) if cores == 2 else ())
    return gen3(
        first,
        inputs={"x": ("bfloat16", (ROWS, COLUMNS)), "w": ("bfloat16", (ROWS, ROWS))},
        outputs={"y": ("float32", (cores * ROWS, COLUMNS))},
        lnc=cores,
        more=more,
        extra=with_relu,
        features=("neurontools_extended",),
    )


@pytest.fixture
def inputs() -> dict[str, Any]:
    source = np.random.default_rng(7)
    return {
        "x": source.integers(-4, 5, (ROWS, COLUMNS)).astype(ml_dtypes.bfloat16),
        "w": source.integers(-4, 5, (ROWS, ROWS)).astype(ml_dtypes.bfloat16),
    }


def reference(inputs: dict[str, Any]) -> Any:
    x, w = inputs["x"].astype(np.float32), inputs["w"].astype(np.float32)
    return np.maximum(w.T @ x, 0) + x


def test_one_core(inputs: dict[str, Any]) -> None:
    result = run(program(1), inputs)
    assert result.ok and not result.warnings
    assert (result.outputs["y"] == reference(inputs)).all()
    assert result.time_ps > 3_000_000, "two loads and a store take more than 3 us"


def test_two_cores_share_their_tensors(inputs: dict[str, Any]) -> None:
    result = run(program(2), inputs)
    assert result.ok
    assert (result.outputs["y"] == np.concatenate([reference(inputs)] * 2)).all()


@pytest.mark.parametrize("cores", [1, 2])
def test_every_schedule_gives_the_same_bits(cores: int, inputs: dict[str, Any]) -> None:
    results = [run(program(cores), inputs, seed=seed) for seed in (None, 1, 2, 3)]
    assert len({result.outputs["y"].tobytes() for result in results}) == 1
    assert len({result.time_ps for result in results}) > 1


def test_events_of_a_whole_run(inputs: dict[str, Any]) -> None:
    neff = program(1)
    device = Device(neff.target)
    device.load(neff)
    device.set_inputs(inputs)
    kinds = []
    while (event := device.step()) is not None:
        kinds.append((event.kind, event.engine))
    assert kinds.count(("dma", "qSPDynamicHW")) == 3
    engines = [engine for kind, engine in kinds if kind == "instruction" and engine in ("Activation", "DVE")]
    assert engines[-2:] == ["Activation", "DVE"]
    assert kinds[-2:] == [("dma", "qSPDynamicHW"), ("instruction", "SP")]
    assert device.outcome == "finished"
