"""Rings of a DMA engine in turn: packet by packet, in jumps, and what that does to transfers of several queues."""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from emulator.device import Device
from emulator.dma import arbitration
from emulator.dma.rings import DmaEngine
from emulator.timeline import Recorder
from formats import isa
from neurontools.debugger import Session
from tests.emulator.dma.reference import Run, serve
from tests.emulator.dma_programs import PARTITION, POOL_QUEUE, POOL_SEMAPHORES, SP_QUEUE, direct, gen3, wait

PACKET = 155_300  # 4 KiB, in the public profiles (formats.md 1.1)


def slowly(time: int, last: int, runs: list[Run]) -> list[tuple[int, int, int]]:
    """Serve packet by packet; return (transfer, begun, end)."""
    rings: dict[int, list[list[Any]]] = defaultdict(list)
    for run in runs:
        rings[run.ring].append([run, run.packets, -1])
    found, before = [], defaultdict(int)
    while any(rings.values()):
        heads = {ring: mine[0] for ring, mine in rings.items() if mine}
        ready = [ring for ring, (run, _, _) in heads.items() if run.ready_ps <= time]
        idle = not ready
        if idle:
            time = min(run.ready_ps for run, _, _ in heads.values())
            ready = [ring for ring, (run, _, _) in heads.items() if run.ready_ps <= time]
        ring = min(ready, key=lambda one: (one - last - 1) % 16)
        head, last = heads[ring], ring
        run = head[0]
        begun = max(run.ready_ps, before[ring])
        head[1] -= 1
        time += (run.fill_ps if idle else 0) + (run.packet_ps if head[1] else run.last_ps)
        if not head[1]:
            found.append((run.transfer, begun, time))
            before[ring] = time
            rings[ring].pop(0)
    return found


RUNS = st.lists(
    st.builds(
        lambda ring, ready, packets, packet, more, fill: (ring, ready, packets, packet, packet + more, fill),
        st.integers(0, 3),
        st.integers(0, 400),
        st.integers(1, 20),
        st.integers(1, 30),
        st.integers(0, 9),
        st.integers(0, 12),
    ),
    min_size=1,
    max_size=7,
)


@settings(max_examples=300, deadline=None)
@given(RUNS, st.integers(0, 200), st.integers(0, 15), st.integers(0, 600))
def test_jumps_are_as_good_as_steps(parts: list[tuple[int, ...]], time: int, last: int, stop: int) -> None:
    runs = [Run(number, *part) for number, part in enumerate(parts)]
    want = slowly(time, last, runs)
    assert list(serve(time, last, runs).finished) == want
    # Stopping on the way and going on changes nothing.
    first = serve(time, last, runs, stop)
    rest = serve(first.time_ps, first.last_ring, first.left)
    assert [*first.finished, *rest.finished] == want
    assert rest.left == ()


GIVEN = st.lists(
    st.builds(
        lambda ring, wait, start, packets, packet, more, fill: (
            ring,
            wait,
            start,
            packets,
            packet,
            packet + more,
            fill,
        ),
        st.integers(0, 3),
        st.integers(0, 60),
        st.integers(0, 90),
        st.integers(1, 20),
        st.integers(1, 30),
        st.integers(0, 9),
        st.integers(0, 12),
    ),
    min_size=2,
    max_size=60,
)


@settings(max_examples=500, deadline=None)
@example([(0, 0, 0, 1, 1, 1, 0), (0, 0, 0, 1, 1, 1, 0), (1, 0, 0, 2, 2, 2, 0), (0, 5, 0, 1, 1, 1, 0)], 1)
# What joins before work that is ready only later, when that has been planned: the gap fills.
@example([(0, 0, 90, 3, 20, 20, 7), (1, 0, 10, 2, 30, 30, 5), (0, 5, 40, 1, 1, 1, 3), (2, 0, 0, 9, 3, 3, 1)], 1)
@given(GIVEN, st.integers(0, 3))
def test_a_plan_is_what_serving_all_from_the_beginning_gives(parts: list[tuple[int, ...]], asked: int) -> None:
    engine = DmaEngine(0, 0)
    runs: list[Run] = []
    now, busy, held = 0, 0, engine.snapshot()
    for number, (ring, wait_ps, start, *rest) in enumerate(parts):
        now += wait_ps
        before = serve(0, 15, runs)
        runs.append(Run(number, ring, now + start, *rest))
        run = runs[-1]
        busy += run.packet_ps * (run.packets - 1) + run.last_ps + (run.fill_ps if before.time_ps < run.ready_ps else 0)
        known = dict(engine.plan.spans)
        moved = engine.give(arbitration.Run(*run[:-1]), now)
        served = serve(0, 15, runs)
        want = {transfer: (begun, end) for transfer, begun, end in served.finished}
        # What is known stays right, and where it does not it is taken back, and said to be.
        assert all(want[transfer] == span for transfer, span in engine.plan.spans.items())
        assert moved or all(want[transfer] == span for transfer, span in known.items())
        for transfer in range(max(number - asked, 0), number + 1 if asked else 0):
            assert engine.plan.span(transfer) == want[transfer]
        assert engine.busy_ps == busy
        if number == len(parts) // 2:
            held, then = engine.snapshot(), (now, number + 1)
    engine.plan.work_out()
    final = {transfer: (begun, end) for transfer, begun, end in serve(0, 15, runs).finished}
    assert engine.plan.spans == final
    # Going back goes on alike; what no longer counts may be forgotten.
    engine.restore(held)
    assert engine.snapshot() == held
    at, first = then
    gone: set[int] = set()
    for run, (_, wait_ps, *_) in list(zip(runs, parts, strict=True))[first:]:
        at += wait_ps
        moved = engine.give(arbitration.Run(*run[:-1]), at)
        assert moved or run is not runs[first], "what was known before is to be looked at again"
        for transfer in [one for one, (_, end) in engine.plan.spans.items() if end < at]:
            engine.plan.forget(transfer)
            gone.add(transfer)
    engine.plan.work_out()
    assert engine.plan.spans == {transfer: span for transfer, span in final.items() if transfer not in gone}
    assert engine.busy_ps == busy


def test_a_long_backlog_is_planned_once() -> None:
    """Work for one transfer does not grow with the backlog, whichever queue it comes from."""
    counts = []
    for length in (100, 1000):
        engine = DmaEngine(0, 0)
        for number in range(length):
            engine.give(arbitration.Run(number, 0, 1000, 8, 100, 106, 50), 0)
        steps = 0

        def counted(frame: Any, event: str, _: object) -> None:
            nonlocal steps
            steps += event in ("call", "c_call")

        sys.setprofile(counted)
        try:
            for number in range(length, length + 50):
                now = (number - length) * 1000
                engine.give(arbitration.Run(number, 1, now + 600, 8, 100, 106, 50), now)
                engine.plan.span(number)
        finally:
            sys.setprofile(None)
        counts.append(steps)
    assert counts[1] < counts[0] * 1.2


def test_queues_alternate_at_packets() -> None:
    # As Sync's loads and Scalar's stores do in the profile of baseline_fp32_s1024 from 44,527 ns on: while both rings
    # have work, each packet of one is followed by one of the other.
    one, other = (Run(number, ring, 0, 8, PACKET, PACKET) for number, ring in enumerate((2, 0)))
    served = serve(0, 0, (one, other))
    assert [end for _, _, end in served.finished] == [15 * PACKET, 16 * PACKET]
    assert serve(0, 0, (one, other), 4 * PACKET).left[0].packets == 6


def rows(rows_: int, at: int, semaphore: int) -> isa.Instruction:
    return direct(("table", 0, 0), ("variable", 0, at), 4096, rows_, 4096, PARTITION, semaphore=semaphore)


def two_queues() -> tuple[Any, dict[str, np.ndarray]]:
    """Return a program whose Sync queue gets two long loads; GpSimd's gets a short one while the first moves."""
    words = {
        "SP": [rows(128, 0x4000, 8), rows(128, 0x6000, 8), isa.Nop(**wait(8, 32))],
        "Pool": [rows(8, 0x8000, POOL_SEMAPHORES[0]), isa.Nop(**wait(POOL_SEMAPHORES[0]))],
    }
    x = np.random.default_rng(0).standard_normal((128, 1024)).astype(np.float32)
    return gen3(words, inputs={"x": ("float32", (128, 1024))}), {"x": x}


def times(device: Device) -> list[tuple[str, int]]:
    """Run to the end; return queues and times of transfers as they complete."""
    found = []
    while (event := device.step()) is not None:
        if event.kind == "dma":
            found.append((event.engine, event.time_ps))
    assert device.outcome == "finished", device.fault or device.hang
    return found


def test_a_short_transfer_overtakes_the_long_ones_of_another_queue() -> None:
    neff, inputs = two_queues()
    device = Device("trn2")
    device.load(neff)
    device.set_inputs(inputs)
    recorder = Recorder(device)
    device.observers.append(recorder)
    found = times(device)
    assert [queue for queue, _ in found] == [SP_QUEUE, POOL_QUEUE, SP_QUEUE]
    # Turns move work about and make none: engines are busy with as much, and the last hold ends as if served in order.
    engine = device.dma.engines[0][0]
    costs = device.costs.dma
    work = 3 * (8 * costs.descriptor_ps(4096) + costs.signal_ps)
    assert engine.busy_ps == pytest.approx(work + costs.fill_ps, abs=100)
    taken = recorder.holds["dma", 0, 0]
    assert max(taken.end) - min(taken.start) == engine.busy_ps
    assert {hold.end_ps for hold in map(taken.__getitem__, range(3))} == {t.spans[0][1] for t in transfers()}


def transfers() -> list[Any]:
    """Return the transfers of a second run, which nobody recorded."""
    neff, inputs = two_queues()
    device = Device("trn2")
    device.load(neff)
    device.set_inputs(inputs)
    found = []
    while (event := device.step()) is not None:
        if event.kind == "dma":
            found.append(event.instruction)
    return found


def test_going_back_brings_old_plans_back() -> None:
    neff, inputs = two_queues()
    device = Device("trn2")
    device.load(neff)
    device.set_inputs(inputs)
    straight = times(device)
    session = Session(neff, inputs)
    while session.device.dma.triggered < 2:
        session.step()
    state = [
        [engine.snapshot() for engine in session.device.dma.engines[0]],
        [transfer.snapshot() for queue in session.device.queues for transfer in queue.pending],
    ]
    there = session.events
    while session.device.dma.triggered < 3:
        session.step()
    session.step()
    session.reverse_step(session.events - there)
    assert state == [
        [engine.snapshot() for engine in session.device.dma.engines[0]],
        [transfer.snapshot() for queue in session.device.queues for transfer in queue.pending],
    ]
    session.continue_()
    assert session.device.now_ps == device.now_ps
    assert straight[-1][1] <= device.now_ps
