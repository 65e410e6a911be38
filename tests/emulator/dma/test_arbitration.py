"""Rings of a DMA engine in turn: packet by packet, in jumps, and what that does to transfers of several queues."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.device import Device
from emulator.dma.arbitration import Run, serve
from emulator.dma.rings import DmaEngine
from emulator.session import Session
from emulator.timeline import Recorder
from formats import isa
from tests.emulator.dma_programs import PARTITION, POOL_QUEUE, POOL_SEMAPHORES, SP_QUEUE, direct, gen3, wait

PACKET = 155_300        # 4 KiB, in the public profiles (formats.md 1.1)


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


RUNS = st.lists(st.builds(
    lambda ring, ready, packets, packet, more, fill: (ring, ready, packets, packet, packet + more, fill),
    st.integers(0, 3), st.integers(0, 400), st.integers(1, 20), st.integers(1, 30), st.integers(0, 9),
    st.integers(0, 12)), min_size=1, max_size=7)


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


GIVEN = st.lists(st.builds(
    lambda ring, wait, start, packets, packet, more, fill: (ring, wait, start, packets, packet, packet + more, fill),
    st.integers(0, 3), st.integers(0, 60), st.integers(0, 90), st.integers(1, 20), st.integers(1, 30),
    st.integers(0, 9), st.integers(0, 12)), min_size=2, max_size=60)


@settings(max_examples=300, deadline=None)
@given(GIVEN)
def test_a_plan_goes_on_from_where_new_work_changes_it(parts: list[tuple[int, ...]]) -> None:
    engine, forgetful = DmaEngine(0, 0), DmaEngine(0, 0)
    spans: tuple[dict[int, tuple[int, int]], ...] = ({}, {})
    now, held = 0, engine.state()
    for number, (ring, wait_ps, start, *rest) in enumerate(parts):
        now += wait_ps
        run = Run(number, ring, now + start, *rest)
        forgetful._ends.clear()     # works the whole backlog out anew
        for one, found in zip((engine, forgetful), spans, strict=True):
            *others, mine = one.give(run, now)
            assert mine[0] == number
            found.update((transfer, (begun, end)) for transfer, begun, end in (*others, mine))
        assert spans[0] == spans[1]
        assert engine.state()[:2] == forgetful.state()[:2]
        if number == len(parts) // 2:
            held, kept, then = engine.state(), dict(spans[0]), now
    # Going back goes on alike.
    engine.restore(held)
    for number, (ring, wait_ps, start, *rest) in list(enumerate(parts))[len(parts) // 2 + 1 :]:
        then += wait_ps
        kept.update((transfer, (begun, end))
                    for transfer, begun, end in engine.give(Run(number, ring, then + start, *rest), then))  # fmt: skip
    assert kept == spans[0]


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
    state = [[engine.state() for engine in session.device.dma.engines[0]],
             [transfer.plan for queue in session.device.queues for transfer in queue.pending]]
    there = session.events
    while session.device.dma.triggered < 3:
        session.step()
    session.step()
    session.reverse_step(session.events - there)
    assert state == [[engine.state() for engine in session.device.dma.engines[0]],
                     [transfer.plan for queue in session.device.queues for transfer in queue.pending]]
    session.continue_()
    assert session.device.now_ps == device.now_ps
    assert straight[-1][1] <= device.now_ps
