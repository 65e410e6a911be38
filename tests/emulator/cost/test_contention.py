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
        chip = "trn1" if held.generation == "gen2" else "trn2"
        assert multiply(held, 1_000_000, 0)[1] == 1_000_000 + ps("matmul_latency", chip)
    with pytest.raises(UnsupportedError, match="'noise'; there are ports, throttle"):
        Device("trn2", without=("noise",))


def ps(name: str, chip: str = "trn2") -> int:
    return round(figure(name, chip) * 1000)


def multiply(held: Contention, work: int, now: int, queues_next: bool = True) -> tuple[int, int]:
    claim = held.claim("PE", Cost(0, 0, work), (), False)
    assert claim is not None
    return held.take(claim, now, 0, 0, queues_next)


def load(held: Contention, work: int, now: int, read: int = 0) -> tuple[int, int]:
    claim = held.claim("PE", Cost(0, 0, work, weights=True, read_ps=read), (), False)
    assert claim is not None
    return held.take(claim, now, 0, 0)


def is_slow(held: Contention, now: int, work: int = 1000) -> bool:
    """Multiply for so long at full rate, and return whether it took longer."""
    multiply(held, work, now)
    array = held.snapshot().array
    return array.free - array.entry > work


def test_the_tensor_engine_speeds_up_after_a_window_of_use() -> None:
    """Windows of all phases count: where work begins, whenever that is, half of them speed up within 1.25 windows."""
    for begin in (0, WINDOW // 3, 7 * WINDOW):
        held = contention()
        slow = [is_slow(held, begin + at, WINDOW // 16) for at in range(0, 3 * WINDOW, WINDOW // 8)]
        # Used half of the time, of which three eighths are enough: three quarters of a window for the first phases.
        assert slow == [at <= 10 * WINDOW // 8 for at in range(0, 3 * WINDOW, WINDOW // 8)]


def test_use_between_two_clocks_has_that_of_most_phases() -> None:
    """Half a window of full use and half of none: every window has half, more than enough, whatever its phase."""
    held = contention()
    step = WINDOW // 32
    slow = [is_slow(held, at, step) for at in range(0, 8 * WINDOW, step) if at % WINDOW < WINDOW // 2]
    assert slow[-1] is False and slow.index(False) == len(slow) - slow[::-1].index(True)  # it rises once, and stays
    few = contention()
    assert all(is_slow(few, at, step) for at in range(0, 8 * WINDOW, step) if at % WINDOW < WINDOW // 3)


def test_work_counts_where_it_enters_the_array() -> None:
    held = contention()
    # Half a window of work at half the rate takes one, half of which is enough for no window before its end.
    multiply(held, WINDOW // 2, 0)
    ((begin, through, full),) = held.snapshot().array.enters
    assert (begin, through - begin, full) == (ps("matmul_head"), WINDOW // 2 * 2, WINDOW // 2)
    multiply(held, 16, WINDOW // 2)
    array = held.snapshot().array
    assert sum(array.used) == pytest.approx((array.slot_end - WINDOW / 16 - begin) / 2, rel=1e-3)
    assert sum(array.used) + sum(full for _, _, full in array.enters) == WINDOW // 2 + 16


def test_the_tensor_engine_slows_down_after_an_idle_window() -> None:
    held = contention()
    times = range(0, 2 * WINDOW, WINDOW // 4)
    assert [is_slow(held, at, WINDOW // 8) for at in times] == [at < 5 * WINDOW // 4 for at in times]
    assert is_slow(held, HALF + 4 * WINDOW)
    assert load(held, 100_000, HALF + 4 * WINDOW + 200_000)[1] == ps("load_weights_throttled") + 200_000


def test_weights_enter_behind_the_data_of_the_matmul_before() -> None:
    held = contention(without=("throttle",))
    head, lead = ps("matmul_head"), ps("load_weights_latency")
    tail = ps("matmul_latency") - head
    assert load(held, 13_000, 0) == (ps("load_weights_exposed"), lead + 13_000)
    # Its matmul waits for them: 83 ns from the end of the load to that of the matmul, and the work.
    entry = lead + 13_000
    # The next load is taken when the data of this matmul are about to enter.
    assert multiply(held, 53_000, 3_000, False) == (entry - head - 3_000, entry + 53_000 + tail - 3_000)
    # The next load is there right behind the data that entered, and the matmul behind it when those are through and
    # the array has changed its weights.
    interval, latency = load(held, 13_000, 6_000)
    through = entry + 53_000 + ps("weights_switch")
    assert latency == entry + 13_000 - 6_000 and interval == through - head - 6_000
    assert multiply(held, 53_000, 6_000 + interval, False)[1] == head + 53_000 + tail


def test_strided_weights_come_at_the_pace_of_the_memory() -> None:
    held = contention(without=("throttle",))
    read, latency = 230_000, ps("load_strided_latency")
    assert load(held, 53_000, 0, read)[1] == read + latency
    interval, _ = multiply(held, 6_000, 3_000, False)
    # The next load starts a little before the memory has given the last weight of this one.
    assert interval == read - ps("load_read_ahead") - 3_000
    begun = 3_000 + interval
    behind, took = load(held, 53_000, begun, read)
    assert took == ps("load_read_ahead") + read + latency and behind == ps("load_behind")


def test_pairs_of_loads_and_matmuls_take_what_captures_have() -> None:
    """Captures: 420 columns of fp16 every 177 to 178 ns at full clock; 14 every 62 where weights are 18 apart."""
    held = contention(without=("throttle",))

    def pairs(columns: int, work: int, read: int = 0) -> float:
        begun, now = [], 0
        for _ in range(20):
            begun.append(now)
            now += load(held, work, now, read)[0]
            now += multiply(held, round(columns / 2.4 * 1000), now, False)[0]
        return (begun[19] - begun[9]) / 10_000

    assert pairs(420, 13_333) == pytest.approx(177.5, abs=0.5)
    assert pairs(14, 21_333, round(256 / 4.13 * 1000)) == pytest.approx(62, abs=0.3)


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


def test_state_comes_back() -> None:
    held = contention("trn2")
    vector, tensor = held.claim("DVE", FAST, (3,), True), held.claim("PE", WORK, (), False)
    weights = held.claim("PE", Cost(3, 200_000, 50_000, weights=True, read_ps=90_000), (), False)
    assert vector is not None and tensor is not None and weights is not None
    words = ((vector, 10), (weights, 3000), (tensor, 4000), (weights, 4500), (tensor, 5000), (vector, 5010))
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
    # Four products of 512 columns at 2.4 GHz.
    assert ends[0] - ends[1] == pytest.approx(4 * 512 / 2.4 * 1000, rel=0.01)
