"""Ports that engines share, the Tensor engine's clock, and going back in time over both."""

from __future__ import annotations

import numpy as np
import pytest

from emulator.arch import arch_of
from emulator.cost import Contention, Cost, figure
from emulator.device import Device
from formats.errors import UnsupportedError
from neurontools.api import build
from neurontools.debugger import Session
from neurontools.validation.kernels import matmul, small

WORK = Cost(1000, 1500, 800)
FAST = WORK._replace(fast=True)
WINDOW = round(4096 / 1.2 * 1000)
HALF = WINDOW // 2


def contention(target: str = "trn2", without: tuple[str, ...] = ()) -> Contention:
    return Contention(arch_of(target), without)


@pytest.mark.parametrize(
    ("target", "first", "second", "wait"),
    [
        # hardware.md 2.4: one port of SBUF for Vector and GpSimd on v2; on v3 only Vector's fast modes take from it.
        ("trn1", ("DVE", WORK, (), True), ("Pool", WORK, (), True), 800),
        ("trn2", ("DVE", WORK, (), True), ("Pool", WORK, (), True), 0),
        ("trn2", ("DVE", FAST, (), True), ("Pool", WORK, (), True), 800),
        ("trn2", ("DVE", FAST, (), True), ("Activation", WORK, (), True), 0),
        # PSUM: one port for Vector and Scalar on v2, one per bank on v3.
        ("trn1", ("DVE", WORK, (0,), False), ("Activation", WORK, (5,), False), 800),
        ("trn2", ("DVE", WORK, (0,), False), ("Activation", WORK, (5,), False), 0),
        ("trn2", ("DVE", WORK, (5,), False), ("Activation", WORK, (5,), False), 800),
    ],
)
def test_engines_take_turns_on_a_port(target: str, first: tuple, second: tuple, wait: int) -> None:
    held = contention(target)
    one, other = held.claim(*first), held.claim(*second)
    if one is not None:
        assert held.take(one, 0, 1000, 1500) == (1000, 1500)
    if other is not None:
        assert held.take(other, 0, 1000, 1500) == (1000 + wait, 1500 + wait)
        assert held.take(other, 5000, 1000, 1500) == (1000, 1500)
    else:
        assert wait == 0


def test_parts_can_be_left_out() -> None:
    assert contention(without=("ports",)).claim("DVE", FAST, (1,), True) is None
    for held in (contention(without=("throttle",)), contention("trn1")):  # documented for trn2 and trn3
        claim = held.claim("PE", WORK, (), False)
        assert claim is not None and held.take(claim, 0, 1000, 1500) == (1000, 1500)
    with pytest.raises(UnsupportedError, match="'noise'; there are ports, throttle"):
        Device("trn2", without=("noise",))


def test_the_tensor_engine_speeds_up_after_a_window_of_use() -> None:
    held = contention()
    claim = held.claim("PE", Cost(0, 0, WINDOW // 8), (), False)
    assert claim is not None
    now, slow = 0, []
    while now < 3 * WINDOW:
        interval, _ = held.take(claim, now, WINDOW // 8, WINDOW // 8)
        slow.append((now, interval > WINDOW // 8))
        now += interval
    # The half window a run begins with has too little use at half rate, 0.25 of full rate; the first whole one has 0.5.
    assert all(is_slow == (at < HALF + WINDOW) for at, is_slow in slow)


def test_the_tensor_engine_slows_down_after_an_idle_window() -> None:
    held = contention()
    claim = held.claim("PE", Cost(0, 0, WINDOW), (), False)
    assert claim is not None
    held.take(claim, 0, 1, 1)
    assert held.take(claim, HALF, 1, 1) == (1, 1)  # the window before was used
    assert held.take(claim, HALF + 3 * WINDOW, 1, 1) == (1 + WINDOW, 1 + WINDOW + 40_000)


@pytest.mark.parametrize(
    ("dtype", "width", "after_pause", "behind"),
    [
        # Profiles of formats.md 1.1, full clock: MATMUL with a load behind a pause, or behind another.
        ("float32", 128, 376, 275),
        ("bfloat16", 512, 389, 379),
    ],
)
def test_a_matmul_waits_for_weights_that_were_not_loaded_behind_another(
    dtype: str, width: int, after_pause: int, behind: int
) -> None:
    import neurontools.nki.language as nl

    neff = build(small.product, np.zeros((1, 1), np.float32), width, 128, getattr(nl, dtype), 3, target="trn2")
    device = Device("trn2", without=("throttle",))
    device.load(neff)
    took = []
    while (event := device.step()) is not None:
        if event.instruction.name == "MATMUL":
            took.append((event.time_ps - event.issued_ps) / 1000)
    assert took[0] == pytest.approx(after_pause, rel=0.02)
    assert took[-1] == pytest.approx(behind, rel=0.02)


def test_a_load_that_waited_is_not_behind_the_matmul_before() -> None:
    held = contention("trn1")
    load, multiply = held.claim("PE", Cost(3, 100, weights=True), (), False), held.claim("PE", WORK, (), False)
    assert load is not None and multiply is not None
    head = round(figure("matmul_head", "trn1") * 1000)
    assert held.take(load, 0, 3, head + 100) == (3, head + 100)
    assert held.take(multiply, 3, 1000, 1500) == (1097, 1597)  # begins at 100
    assert held.take(load, 1100, 3, head + 100) == (3, head + 100)  # could issue at 100, is there at head + 200
    assert held.take(multiply, 1103, 1000, 1500) == (1000, 1500)
    assert held.take(load, 5000, 3, head + 100) == (3, head + 100)  # the engine stood still: nothing to hide behind
    assert held.take(multiply, 5003, 1000, 1500) == (1097, 1597)


def test_state_comes_back() -> None:
    held = contention("trn2")
    vector, tensor = held.claim("DVE", FAST, (3,), True), held.claim("PE", WORK, (), False)
    load = held.claim("PE", Cost(3, 200_000, weights=True), (), False)
    assert vector is not None and tensor is not None and load is not None
    words = ((vector, 10), (load, 3000), (tensor, 4000), (tensor, 5000))
    state = held.snapshot()
    first = [held.take(claim, now, 1000, 200_000) for claim, now in words]
    assert held.snapshot() != state
    held.restore(state)
    assert [held.take(claim, now, 1000, 200_000) for claim, now in words] == first


def test_a_session_that_goes_back_ends_at_the_same_time() -> None:
    a_t, b = np.ones((256, 256), np.float32), np.ones((256, 512), np.float32)
    neff = build(matmul.resident, a_t, b, target="trn2")
    inputs = dict(zip((tensor.name for tensor in neff.inputs), (a_t, b), strict=True))
    straight = Device("trn2")
    straight.load(neff)
    straight.set_inputs(inputs)
    straight.run()
    session = Session(neff, inputs)
    session.step(30)
    held = session.device.cores[0].contention.snapshot()
    session.step(2)
    session.reverse_step(2)
    assert session.device.cores[0].contention.snapshot() == held
    session.continue_()
    assert session.device.now_ps == straight.now_ps


def test_a_cold_tensor_engine_takes_twice_as_long() -> None:
    x = np.zeros((1, 1), np.float32)
    import neurontools.nki.language as nl

    neff = build(small.product, x, 512, 128, nl.bfloat16, 4, target="trn2")
    ends = []
    for without in ((), ("throttle",)):
        device = Device("trn2", without=without)
        device.load(neff)
        device.set_inputs({neff.inputs[0].name: x})
        assert device.run() == "finished"
        ends.append(device.now_ps)
    # Four products of 512 columns at 2.4 GHz, and what the last takes longer to come out.
    assert ends[0] - ends[1] == pytest.approx(4 * 512 / 2.4 * 1000 + 40_000, rel=0.01)
