"""DMA on a device: what moves, when semaphores rise, what is refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from emulator.device import Device
from formats import isa
from formats.neff import Descriptor, Neff
from formats.nrt.status import NrtStatus
from tests.emulator.dma_programs import PARTITION, direct, gen2, gen3, load_and_store, trigger, wait

X = {"x": ("float32", (128, 64))}
Y = {"y": ("float32", (128, 64))}
RUN = 256


def _run(neff: Neff, inputs: dict[str, np.ndarray], **options) -> Device:
    device = Device(neff.target, cores=len(neff.subgraphs), **options)
    device.load(neff)
    device.set_inputs(inputs)
    device.run()
    return device


def _floats(shape=(128, 64), seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("options", [{}, {"timing": False}, {"seed": 3}])
def test_load_and_store(dtype: str, options: dict) -> None:
    x = _floats().astype(np.dtype(getattr(ml_dtypes, dtype, None) or dtype))
    device = _run(load_and_store(dtype=dtype), {"x": x}, **options)
    assert device.fault is None and device.hang is None
    assert device.outputs()["y"].tobytes() == x.tobytes()
    assert not device.warnings


def test_time_of_one_round_trip_is_near_the_published_one() -> None:
    # hardware.md 8.2, B-2: [128, 128] bfloat16, trigger to consumer 1,500 ns for a load, 1,228 for a store; here Sync
    # makes the descriptors, which holds it 545 ns for each (profiles of formats.md 1.1).
    device = _run(load_and_store(columns=128, dtype="bfloat16"), {"x": _floats((128, 128)).astype(ml_dtypes.bfloat16)})
    assert device.now_ps / 1000 == pytest.approx(1500 + 1228 + 2 * 545, rel=0.10)


def test_semaphore_rises_by_16_at_completion_and_not_before() -> None:
    device = Device("trn2")
    device.load(load_and_store())
    device.set_inputs({"x": _floats()})
    seen = []
    while (event := device.step()) is not None:
        if event.kind == "dma":
            seen.append((event.semaphores[0][:3], event.engine))
        elif event.pc == 2:
            assert device.cores[0].semaphores[8] == 0
    assert seen == [((8, 0, 16), "qSPDynamicHW"), ((9, 0, 16), "qSPDynamicHW")]


def test_cast_rounds_to_nearest_even() -> None:
    words = [
        direct(("table", 0, 0), ("table", 1, 0), RUN, 128, RUN, 128, dtypes=(10, 6), dst_run=128),
        isa.Nop(**wait(8)),
    ]
    x = _floats()
    x[0, :4] = [1.00390625, 1.01171875, np.inf, np.nan]
    device = _run(gen3({"SP": words}, inputs=X, outputs={"y": ("bfloat16", (128, 64))}), {"x": x})
    assert device.outputs()["y"].tobytes() == x.astype(ml_dtypes.bfloat16).tobytes()
    assert device.outputs()["y"][0, :2].tolist() == [1.0, 1.015625]


def test_two_outer_dimensions_walk_in_parallel() -> None:
    words = [direct(("table", 0, 0), ("table", 1, 0), 16, 4, 16, 16 * 32, outer=(64, 16, 32)), isa.Nop(**wait(8))]
    x = np.arange(512, dtype=np.float32).reshape(128, 4)
    device = _run(
        gen3({"SP": words}, inputs={"x": ("float32", (128, 4))}, outputs={"y": ("float32", (128, 4))}), {"x": x}
    )
    expected = x.reshape(32, 4, 4).transpose(1, 0, 2).reshape(128, 4)
    assert device.outputs()["y"].tolist() == expected.tolist()


def test_negative_steps_reverse() -> None:
    words = [direct(("table", 0, 127 * RUN), ("table", 1, 0), RUN, 128, -RUN, RUN), isa.Nop(**wait(8))]
    x = _floats()
    device = _run(gen3({"SP": words}, inputs=X, outputs=Y), {"x": x})
    assert (device.outputs()["y"] == x[::-1]).all()


def test_queue_completes_in_order_under_any_seed() -> None:
    # The second transfer is far smaller; whoever waits for it alone may rely on the first (isa.md 11).
    rows = 1024
    big = direct(("table", 0, 0), ("variable", 0, 0x4000), 4096, 128, 4096, PARTITION, semaphore=8)
    small = direct(("table", 0, 0), ("variable", 0, 0x8000), 16, 1, 16, PARTITION, semaphore=9)
    for seed in (None, 1, 2, 3):
        neff = gen3({"SP": [big, small, isa.Nop(**wait(9))]}, inputs={"x": ("float32", (128, rows))})
        device = Device("trn2", seed=seed)
        device.load(neff)
        device.set_inputs({"x": _floats((128, rows))})
        order = []
        while (event := device.step()) is not None:
            if event.kind == "dma":
                order.append(event.semaphores[0][0])
        assert order == [8, 9]


@pytest.mark.parametrize(
    ("word", "name", "message"),
    [
        (
            direct(("table", 0, RUN), ("variable", 0, 0x4000), RUN, 128, RUN, PARTITION),
            "x",
            "reads 'x' out of bounds: bytes 0x100 to 0x80ff",
        ),
        (
            direct(("table", 0, 0), ("table", 1, 0), RUN, 128, RUN, 2 * RUN),
            "y",
            "writes 'y' out of bounds: bytes 0x0 to 0xfeff",
        ),
        (
            direct(("table", 0, 0), ("variable", 0, 0x37F80), RUN, 128, RUN, PARTITION),
            "SBUF",
            "writes 'SBUF of core 0' out of bounds",
        ),
        (
            direct(("table", 0, 0), ("variable", 0, PARTITION), RUN, 128, RUN, PARTITION),
            "SBUF",
            "writes 'SBUF of core 0' out of bounds",
        ),
    ],
)
def test_out_of_bounds_is_a_fault_that_names_the_variable(word: isa.Instruction, name: str, message: str) -> None:
    device = _run(gen3({"SP": [word, isa.Nop(**wait(8))]}, inputs=X, outputs=Y), {"x": _floats()})
    fault = device.fault
    assert fault is not None and fault.kind == "oob" and fault.status is NrtStatus.NRT_EXEC_OOB
    assert message in fault.message
    assert (fault.core, fault.engine, fault.pc) == (0, "SP", 2)
    assert fault.instruction_text.startswith("DMA_DIRECT2D")


def test_unwritten_source_is_a_warning() -> None:
    words = [direct(("variable", 0, 0x4000), ("table", 0, 0), RUN, 128, PARTITION, RUN), isa.Nop(**wait(8))]
    device = _run(gen3({"SP": words}, outputs=Y), {})
    assert device.fault is None
    assert len(device.warnings) == 1 and "32768 of 32768 bytes" in device.warnings[0].message
    assert np.isnan(device.outputs()["y"]).all()


def _block(**changes: object) -> Descriptor:
    fields = {
        "source": "x",
        "source_offset": 0,
        "source_sizes": (RUN, 128),
        "source_steps": (1, RUN),
        "target": "y",
        "target_offset": 0,
        "target_sizes": (RUN, 128),
        "target_steps": (1, RUN),
        "source_dtype": "float32",
        "target_dtype": "float32",
    }
    return Descriptor(**{**fields, **changes})


def test_prebuilt_block_through_sbuf() -> None:
    load = _block(target="SB", target_offset=0x4000, target_steps=(1, PARTITION))
    store = _block(source="SB", source_offset=0x4000, source_steps=(1, PARTITION))
    neff = gen2(
        {0: (8, [load]), 1: (9, [store])}, [trigger(0), trigger(1, **wait(8)), isa.Nop(**wait(9))], inputs=X, outputs=Y
    )
    x = _floats()
    device = _run(neff, {"x": x})
    assert device.fault is None and device.hang is None
    assert (device.outputs()["y"] == x).all()


def test_block_of_several_descriptors_signals_once() -> None:
    halves = [
        _block(source_sizes=(RUN, 64), target_sizes=(RUN, 64)),
        _block(source_offset=64 * RUN, target_offset=64 * RUN, source_sizes=(RUN, 64), target_sizes=(RUN, 64)),
    ]
    x = _floats()
    device = _run(gen2({0: (8, halves)}, [trigger(0), isa.Nop(**wait(8))], inputs=X, outputs=Y), {"x": x})
    assert device.cores[0].semaphores[8] == 16
    assert (device.outputs()["y"] == x).all()


def test_element_transpose_by_patterns() -> None:
    move = _block(
        op="transpose",
        source_sizes=(4, 64, 128),
        source_steps=(1, 4, RUN),
        target_sizes=(4, 64, 128),
        target_steps=(1, 512, 4),
    )
    x = _floats()
    device = _run(
        gen2({0: (8, [move])}, [trigger(0), isa.Nop(**wait(8))], inputs=X, outputs={"y": ("float32", (64, 128))}),
        {"x": x},
    )
    assert (device.outputs()["y"] == x.T).all()


@pytest.mark.parametrize(("op", "function"), [("add", np.add), ("min", np.minimum), ("max", np.maximum)])
def test_two_sources_are_combined_in_fp32(op: str, function: np.ufunc) -> None:
    from formats.neff.transfers import Source

    sides = tuple(Source(name, "float32", 0, (RUN, 128), (1, RUN)) for name in ("x", "z"))
    move = _block(op=op, sources=sides, target_dtype="bfloat16", target_sizes=(128, 128), target_steps=(1, 128))
    neff = gen2(
        {0: (8, [move])},
        [trigger(0), isa.Nop(**wait(8))],
        inputs={**X, "z": X["x"]},
        outputs={"y": ("bfloat16", (128, 64))},
    )
    x, z = _floats(seed=1), _floats(seed=2)
    device = _run(neff, {"x": x, "z": z})
    assert device.outputs()["y"].tobytes() == function(x, z).astype(ml_dtypes.bfloat16).tobytes()


def test_rings_show_outstanding_descriptors() -> None:
    device = Device("trn2")
    device.load(load_and_store())
    device.set_inputs({"x": _floats()})
    while device.cores[0].engines["SP"].completed < 2:
        device.step()
    queue = next(queue for queue in device.queues if queue.name == "qSPDynamicHW")
    assert len(queue.pending) == 1 and queue.transfers[0].state == "queued"
    ring = device.dma.rings(0)[15][queue.ring]
    assert (ring.head, ring.tail, ring.outstanding) == (0, 9, 9)
    assert [d.kind for d in ring.descriptors] == ["data"] * 8 + ["semaphore"]
    device.run()
    assert (ring.head, ring.tail, queue.completed) == (18, 18, 2)


def test_send_receive_between_cores() -> None:
    pattern = isa.AccessPattern(0x4000, (1, 0, 0, 0, 0), (64, 1, 1, 1, 1))
    send = isa.SendReceive(
        dtype=10, semaphore=60, peer_semaphore=61, src=pattern, peer_pattern=pattern._replace(address=0x5000)
    )
    first = {
        "SP": [
            direct(("table", 0, 0), ("variable", 0, 0x4000), RUN, 128, RUN, PARTITION),
            isa.EventSemaphore(**wait(8)),
            send,
            isa.Nop(**wait(60)),
        ]
    }
    second = {
        "SP": [
            direct(("variable", 0, 0x5000), ("table", 1, 0), RUN, 128, PARTITION, RUN, **wait(61)),
            isa.Nop(**wait(8)),
        ]
    }
    neff = gen3(first, more=[second], lnc=2, inputs=X, outputs=Y, features=["neurontools_extended"])
    x = _floats()
    device = _run(neff, {"x": x})
    assert device.fault is None and device.hang is None
    assert (device.outputs()["y"] == x).all()


def test_two_cores_share_the_bandwidth_of_their_stack() -> None:
    # 20 loads of 512 KiB on each core: alone a core reaches 368 GB/s, both together no more than 716 GB/s.
    rows, count = 1024, 20
    loads = [
        direct(("table", 0, 0), ("variable", 0, 0x4000 + 4096 * number), 4096, 128, 4096, PARTITION)
        for number in range(count)
    ]
    words = {"SP": [*loads, isa.Nop(**wait(8, 16 * count))]}
    inputs = {"x": ("float32", (128, rows))}
    x = _floats((128, rows))
    alone = _run(gen3(words, inputs=inputs), {"x": x}).now_ps
    both = _run(gen3(words, inputs=inputs, lnc=2, more=[words]), {"x": x}).now_ps
    assert both > alone
    assert 2 * count * x.nbytes / (both / 1000) < 716
    assert count * x.nbytes / (alone / 1000) == pytest.approx(368, rel=0.10)
