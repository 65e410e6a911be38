"""LOW products that nothing completes: what others find in PSUM does not depend on how far the engine has come."""

from __future__ import annotations

import numpy as np
import pytest

from emulator.device import Device
from emulator.journal import Journal
from emulator.runtime import new_device
from emulator.settings import USUAL
from formats import isa
from formats.dtypes import Dtype
from formats.isa import AccessPattern, Fp32Pass
from formats.neuron_core import PSUM_BASE, SBUF_PARTITION_STRIDE
from tests.emulator.dma_programs import PARTITION, direct, gen3
from tests.emulator.streams import COUNT, WAIT, device_with, row

F32, LOW, HIGH, BOTH = int(Dtype.FLOAT32), Fp32Pass.LOW, Fp32Pass.HIGH, Fp32Pass.LOW_HIGH
WEIGHTS, OTHER, MOVING, COPIED = 0x0, 0x400, 0x1000, 0x4000
N = 64
RNG = np.random.default_rng(11)
W, V, X = (RNG.normal(size=(128, n)).astype(np.float32) for n in (128, 128, N))


def load(address: int, fp32_pass: int, **header: int) -> isa.LoadWeights:
    src = AccessPattern(address + 127 * 4, (-1, 0, 0), (128, 1, 1))
    return isa.LoadWeights(src=src, dtype=F32, fp32_mode=fp32_pass, rows=128, cols=128, **header)


def multiply(flags: int, dst: int = PSUM_BASE, **header: int) -> isa.MatMul:
    src, into = (AccessPattern(address, (1, 0, 0), (N, 1, 1)) for address in (MOVING, dst))
    return isa.MatMul(
        src=src, dst=into, dtype=F32, acc_flags=flags, fp32_mode=BOTH, rows=128, cols=128, update_mode=COUNT.SEM_INC,
        update_index=5, **header,
    )  # fmt: skip


def copy(src: int, dst: int, at_least: int, **header: int) -> isa.Instruction:
    return isa.Copy(
        src=row(src, N), dst=row(dst, N), src_dtype=F32, dst_dtype=F32, channels=128, wait_mode=WAIT.SEM_GE,
        wait_index=5, wait_value=at_least, update_mode=COUNT.SEM_INC, update_index=6, **header,
    )  # fmt: skip


def after(value: int) -> dict[str, int]:
    return {"wait_mode": WAIT.SEM_GE, "wait_index": 6, "wait_value": value}


def put(device: Device) -> Device:
    memory = device.cores[0].memory
    for address, data in ((WEIGHTS, W), (OTHER, V), (MOVING, X)):
        memory.sbuf[:, address : address + data.shape[1] * 4] = data.view(np.uint8)
        memory.mark_written("SBUF", 0, 128, address, address + data.shape[1] * 4)
    return device


def at(device: Device, address: int) -> np.ndarray:
    memory = device.cores[0].memory
    space = memory.psum if address >= PSUM_BASE else memory.sbuf
    address -= PSUM_BASE if address >= PSUM_BASE else 0
    return space[:, address : address + 4 * N].copy().view(np.float32)


def low_of(w: np.ndarray) -> np.ndarray:
    return w - (w.view(np.uint32) & np.uint32(0xFFFFF000)).view(np.float32)


ALONE = [load(WEIGHTS, LOW), multiply(1)]


@pytest.mark.parametrize("goes_on", ["at once", "later", "never"])
@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_a_reader_finds_the_low_product(goes_on: str, seed: int | None) -> None:
    """It waits for the product; whether the engine has loaded other weights by then, which adds it, is chance."""
    further = {"at once": [load(OTHER, LOW)], "later": [load(OTHER, LOW, **after(1))], "never": []}[goes_on]
    device = put(device_with({"PE": [*ALONE, *further], "DVE": [copy(PSUM_BASE, COPIED, 1)]}, seed=seed))
    assert device.run() == "finished", device.fault
    assert np.array_equal(at(device, COPIED), low_of(W).T @ X)
    assert not device.cores[0].pe.pending


def test_what_overwrites_the_moving_operand_comes_behind_the_product() -> None:
    device = put(device_with({"PE": [*ALONE, load(OTHER, LOW, **after(1))], "DVE": [copy(WEIGHTS, MOVING, 1)]}))
    assert device.run() == "finished", device.fault
    assert np.array_equal(at(device, PSUM_BASE), low_of(W).T @ X)


def test_a_store_over_the_place_comes_behind_the_product() -> None:
    device = put(device_with({"PE": [*ALONE, load(OTHER, LOW, **after(1))], "DVE": [copy(MOVING, PSUM_BASE, 1)]}))
    assert device.run() == "finished", device.fault
    assert np.array_equal(at(device, PSUM_BASE), X)


def test_a_pair_stays_one_product_while_others_work_elsewhere() -> None:
    """The twin: copies between LOW and HIGH that meet neither the product nor its operand change no bit."""
    pair = [*ALONE, load(WEIGHTS, HIGH, **after(2)), multiply(2)]
    beside = [copy(MOVING, COPIED, 1), copy(WEIGHTS, PSUM_BASE + 0x800, 1)]
    device = put(device_with({"PE": pair, "DVE": beside}))
    plain = put(device_with({"PE": [*ALONE, load(WEIGHTS, HIGH), multiply(2)]}))
    assert device.run() == plain.run() == "finished", device.fault
    assert at(device, PSUM_BASE).tobytes() == at(plain, PSUM_BASE).tobytes()
    assert np.array_equal(at(device, PSUM_BASE), W.T @ X)


def test_going_back_takes_the_product_back() -> None:
    device = put(device_with({"PE": [*ALONE, load(WEIGHTS, HIGH, **after(1)), multiply(2)],
                              "DVE": [copy(PSUM_BASE, COPIED, 1)]}, timing=False))  # fmt: skip
    journal = Journal(device)
    device.observers.append(journal)
    states = []
    while device.step() is not None:
        memory = device.cores[0].memory
        states.append((memory.psum.tobytes(), memory.sbuf.tobytes(), device.cores[0].pe.fingerprint()))
    assert len(states) == 5
    for count in (4, 3, 2, 1):
        journal.back_to(count)
        memory = device.cores[0].memory
        found = memory.psum.tobytes(), memory.sbuf.tobytes(), device.cores[0].pe.fingerprint()
        assert found == states[count - 1], count
    assert device.run() == "finished"
    assert device.cores[0].memory.psum.tobytes() == states[-1][0]


def test_a_transfer_over_the_moving_operand_comes_behind_the_product() -> None:
    ready = {"wait_mode": WAIT.SEM_GE, "wait_index": 5, "wait_value": 1}
    transfer = direct(("table", 0, 0), ("variable", 0, MOVING), 4 * N, 128, 4 * N, PARTITION, **ready)
    behind = {"wait_mode": WAIT.SEM_GE, "wait_index": 8, "wait_value": 16}
    neff = gen3({"SP": [transfer], "PE": [*ALONE, load(OTHER, LOW, **behind)]}, inputs={"x": ("float32", (128, N))})
    device = new_device(neff, USUAL)
    device.load(neff)
    put(device)
    device.set_inputs({"x": 2 * X})
    assert device.run() == "finished", device.fault
    assert np.array_equal(at(device, MOVING), 2 * X) and np.array_equal(at(device, PSUM_BASE), low_of(W).T @ X)


def test_what_meets_a_product_is_exact() -> None:
    device = put(device_with({"PE": ALONE}))
    assert device.run() == "finished" and device.cores[0].pe.pending
    pe = device.cores[0].pe
    assert pe.met((), [("SBUF", 0, 127, 1, MOVING + 4 * N - 1, 1, None)]) == list(pe.pending)
    assert pe.met([("SBUF", 0, 0, 128, MOVING, 4 * N, None)], [("SBUF", 0, 0, 128, MOVING + 4 * N, 4, None)]) == []
    device.write_device(device.addresses.core_base(0) + SBUF_PARTITION_STRIDE * 3 + MOVING, 4, 0)
    assert not pe.pending and np.array_equal(at(device, PSUM_BASE), low_of(W).T @ X)


@pytest.mark.parametrize(
    "words",
    [
        {"PE": ALONE},
        {"PE": [*ALONE, load(OTHER, LOW)]},
        {"PE": [*ALONE, load(OTHER, LOW), multiply(2), load(OTHER, HIGH), multiply(2)]},
        {"PE": [*ALONE, load(WEIGHTS, HIGH), multiply(2), load(OTHER, LOW), multiply(2)]},
        {"PE": [*ALONE, load(OTHER, LOW, **after(1))], "DVE": [copy(PSUM_BASE, COPIED, 1)]},
        {"PE": [*ALONE, load(OTHER, LOW, **after(1))], "DVE": [copy(WEIGHTS, MOVING, 1)]},
    ],
)
def test_zeros_that_are_deferred_are_there_for_who_finds_them(words: dict[str, list[isa.Instruction]]) -> None:
    found = []
    for defers in (False, True):
        device = put(device_with(words))
        memory, pe = device.cores[0].memory, device.cores[0].pe
        pe.defer(defers)
        assert device.run() == "finished", device.fault
        pe.defer(False)
        found.append((memory.psum.tobytes(), memory.sbuf.tobytes(), pe.fingerprint()))
    assert found[0] == found[1]
