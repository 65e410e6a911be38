"""Rings of a DMA engine in turn: packet by packet, in jumps, and what that does to transfers of several queues."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from emulator.device import Device
from emulator.dma import work
from emulator.dma.abreast import Abreast
from emulator.dma.arbitration import Plan
from emulator.dma.engines import DmaEngines, Stretch
from emulator.dma.transfer import TransferPlan
from emulator.timeline import Recorder
from formats import isa
from neurontools.debugger import Session
from tests.counting import counted
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
# A ring that was served before two others took whole rounds, and has work again when these are over: it comes next.
@example([(3, 10, 1, 3, 3, 0), (1, 10, 4, 10, 10, 0), (2, 10, 4, 10, 10, 0), (3, 53, 2, 10, 10, 0)], 0, 15, 0)
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
# A ring that two others took whole rounds since, and that has work again when these are over.
@example([(3, 0, 10, 1, 3, 0, 0), (1, 0, 10, 4, 10, 0, 0), (2, 0, 10, 4, 10, 0, 0), (3, 0, 53, 2, 10, 0, 0)], 1)
# What joins before work that is ready only later, when that has been planned: the gap fills.
@example([(0, 0, 90, 3, 20, 20, 7), (1, 0, 10, 2, 30, 30, 5), (0, 5, 40, 1, 1, 1, 3), (2, 0, 0, 9, 3, 3, 1)], 1)
# One that was to find engines busy, and has to fill their pipes where another comes before all: it ends much later.
@example([(0, 0, 100, 1, 10, 10, 10), (1, 0, 119, 1, 5, 5, 100), (2, 0, 126, 1, 5, 5, 1), (3, 0, 99, 1, 1, 1, 0)], 0)
@given(GIVEN, st.integers(0, 3))
def test_a_plan_is_what_serving_all_from_the_beginning_gives(parts: list[tuple[int, ...]], asked: int) -> None:
    plan = Plan()
    runs: list[Run] = []
    now, busy, held = 0, 0, plan.snapshot()
    for number, (ring, wait_ps, start, *rest) in enumerate(parts):
        now += wait_ps
        before = serve(0, 15, runs)
        runs.append(Run(number, ring, now + start, *rest))
        run = runs[-1]
        busy += run.packet_ps * (run.packets - 1) + run.last_ps + (run.fill_ps if before.time_ps < run.ready_ps else 0)
        known = spans(plan)
        moved = plan.give(work.Run(*run[:-1]), now)
        served = serve(0, 15, runs)
        want = {transfer: (begun, end) for transfer, begun, end in served.finished}
        # What is known stays right, and where it does not it is taken back, and said to be.
        assert all(want[transfer] == span for transfer, span in spans(plan).items())
        assert moved or all(want[transfer] == span for transfer, span in known.items())
        for transfer in range(max(number - asked, 0), number + 1 if asked else 0):
            assert plan.pieces(transfer)[0].span(0) == want[transfer]
        assert plan.busy_ps == busy
        assert not plan.is_over_before(served.time_ps), "what engines are given is not over before it is"
        if number == len(parts) // 2:
            held, then = plan.snapshot(), (now, number + 1)
    plan.work_out()
    final = {transfer: (begun, end) for transfer, begun, end in serve(0, 15, runs).finished}
    assert spans(plan) == final
    # Going back goes on alike; what no longer counts may be forgotten.
    plan.restore(held)
    assert plan.snapshot() == held
    at, first = then
    gone: set[int] = set()
    for run, (_, wait_ps, *_) in list(zip(runs, parts, strict=True))[first:]:
        at += wait_ps
        moved = plan.give(work.Run(*run[:-1]), at)
        assert moved or run is not runs[first], "what was known before is to be looked at again"
        for transfer in [one for one, (_, end) in spans(plan).items() if end < at]:
            plan.forget(transfer)
            gone.add(transfer)
    plan.work_out()
    assert spans(plan) == {transfer: span for transfer, span in final.items() if transfer not in gone}
    assert plan.busy_ps == busy


def spans(plan: Plan) -> dict[int, tuple[int, int]]:
    """Return what the plan of a single engine knows."""
    return {transfer: pieces[0].span(plan.first) for transfer, pieces in plan.spans.items()}


@given(
    st.integers(0, 15), st.integers(0, 15), st.integers(1, 30), st.integers(-50, 400), st.integers(-40, 40),
    st.integers(1, 40),
)  # fmt: skip
def test_engines_are_told_apart_at_once(one: int, other: int, most: int, gap: int, slope: int, each: int) -> None:
    """What is asked has one answer in front of each engine that is named, and another one from there on."""
    first, last = sorted((one, other))
    together = Abreast(first, last)

    def cuts_of(asked: Callable[[], object], of_each: list[object]) -> None:
        changes = [first + at for at in range(1, len(of_each)) if of_each[at] != of_each[at - 1]]
        try:
            assert [asked()] * len(of_each) == of_each
        except work.Apart as apart:
            assert changes
            assert list(apart.engines) == changes

    engines = range(first, last + 1)
    cuts_of(lambda: together.parts(most, gap, slope, each), [min(most, (gap + slope * at) // each) for at in engines])
    cuts_of(lambda: together.is_over(gap, slope, 0, 0), [gap + slope * at >= 0 for at in engines])
    cuts_of(lambda: together.is_same(gap, slope, 0, 0), [gap + slope * at == 0 for at in engines])


ENGINES = 6
TOGETHER = st.lists(
    st.tuples(
        st.integers(0, 2),  # ring
        st.one_of(st.integers(0, 60), st.integers(0, 900)),  # until it is triggered
        st.integers(0, 90),  # from the trigger until engine 0 has it
        st.sampled_from((0, 10, 15)),  # later on each further engine
        st.integers(1, ENGINES),  # engines that take part
        st.integers(1, 9),  # packets
        st.integers(1, 30),
        st.sampled_from((0, 0, 0, 1, 5)),  # fewer packets of the last engine
        st.sampled_from((0, 12)),
    ),
    min_size=2,
    max_size=40,
)


# One on each of two rings, in either order, a while after the two before them; sometimes one too many.
PAIR = st.tuples(
    st.integers(1, 400),  # until the first is triggered
    st.integers(0, 250),  # and the second behind it
    st.sampled_from((0, 0, 0, 0, 0, 0, 0, 1)),  # more of them
    st.permutations((0, 1)),
    st.lists(st.tuples(st.integers(1, 90), st.sampled_from((0, 10, 15, 30, -5)), st.sampled_from((2, ENGINES, ENGINES)),
                       st.integers(1, 9), st.integers(1, 30), st.sampled_from((0, 12))), min_size=3, max_size=3),
)  # fmt: skip
# Several on one ring, one soon after the other, with one on another ring before, among or behind them now and then.
ROW = st.tuples(
    st.integers(1, 900),  # until the first is triggered
    st.sampled_from((0, 0, 15, 30, -5)),  # more for its first one from engine to engine
    st.sampled_from((0, 0, 0, 1, -ENGINES)),  # fewer engines of its later ones, or all
    st.sampled_from((0, 10, 15)),
    st.sampled_from((1, 2, ENGINES, ENGINES)),
    st.lists(st.tuples(st.integers(0, 120), st.integers(0, 90), st.integers(1, 9), st.integers(1, 30),
                       st.sampled_from((0, 12)), st.sampled_from((0, 0, 0, 0, 0, 0, 0, 1))), min_size=2, max_size=7),
    st.integers(0, 500),  # until one more on another ring is
)  # fmt: skip
# A loop's transfers: few kinds, on rings of their own or not, triggered at once or one after the other.
LOOP = st.tuples(
    st.lists(st.tuples(st.sampled_from((0, 10, 15, 30, -5)), st.sampled_from((2, ENGINES, ENGINES)), st.integers(1, 9),
                       st.integers(1, 30), st.sampled_from((0, 0, 0, 1, 3)), st.sampled_from((0, 12, 60))),
             min_size=3, max_size=3),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.one_of(st.just(0), st.integers(0, 300), st.just(1200)),
                       st.sampled_from((40, 40, 45, 440, 840))), min_size=2, max_size=14),
)  # fmt: skip
# Two that meet on two rings, and some behind one of them in its ring; now and then one that comes in between.
FOLLOWED = st.tuples(
    st.permutations((0, 1, 2)),
    st.sampled_from((0, 0, 10, 15, 30)),
    st.integers(1, 9),
    st.integers(1, 30),
    st.sampled_from((0, 12, 60)),
    st.one_of(st.just(0), st.integers(0, 200)),  # until the second is triggered
    st.lists(st.tuples(st.integers(0, 120), st.sampled_from((1, 1, 1, 1, 1, 1, 0, 2)), st.sampled_from((0, 0, 0, 1)),
                       st.sampled_from((40, 40, 40, 1))), min_size=1, max_size=5),
)  # fmt: skip
# A backlog in one ring behind a few on several, and one on another ring in the end, which may come into it.
BACKLOG = st.tuples(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60)), min_size=2, max_size=4),  # ring, until it is triggered
    st.lists(st.tuples(st.sampled_from((0, 10, 15, 30, -5)), st.integers(1, 9), st.integers(1, 30),
                       st.sampled_from((0, 12))), min_size=2, max_size=2),
    st.integers(0, 2),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 1)), min_size=12, max_size=26),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 300)), min_size=1, max_size=4),
)  # fmt: skip
# Streams of transfers, each on a ring of its own, that keep engines busy: loads and stores differ in step and packets.
STREAMS = st.tuples(
    st.lists(st.tuples(st.sampled_from((0, 10, 15, 15, 30, -5)), st.sampled_from((2, ENGINES, ENGINES, ENGINES)),
                       st.integers(1, 16), st.integers(0, 30), st.sampled_from((0, 0, 12))), min_size=3, max_size=6),
    st.permutations(tuple(range(16))),
    st.lists(st.tuples(st.integers(0, 5), st.one_of(st.just(0), st.integers(0, 40), st.integers(0, 500)),
                       st.sampled_from((40, 40, 45, 200))), min_size=6, max_size=30),
)  # fmt: skip
# One of many packets, or more of them in a row, beside many short ones.
LONG = st.tuples(
    st.lists(st.tuples(st.sampled_from((0, 10, 15, 30, -5)), st.integers(33, 90), st.integers(1, 30),
                       st.sampled_from((0, 0, 12))), min_size=1, max_size=3),
    st.lists(st.tuples(st.sampled_from((0, 1, 2, 2, 2, 2, 3)), st.integers(0, 3),
                       st.one_of(st.just(0), st.integers(0, 60), st.integers(0, 700)),
                       st.sampled_from((0, 10, 15)), st.integers(1, 9), st.integers(1, 30), st.sampled_from((0, 12))),
             min_size=3, max_size=25),
)  # fmt: skip
# A row in one ring, and what comes beside it in another, now and then in a third.
BESIDE = st.tuples(
    *[
        st.lists(st.tuples(st.sampled_from(steps), st.one_of(st.integers(1, 2), st.integers(3, 12), st.integers(5, 60)),
                           st.integers(1, 30), st.sampled_from((0, 0, 12))), min_size=2, max_size=2)
        for steps in ((0, 10, 15, 30, -5), (0, 10, 15, -5))
    ],
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from((0, 0, 1))), min_size=2, max_size=7),  # the row
    st.lists(st.tuples(st.sampled_from((0, 1, 1, 1, 1, 1, 1, 1, 2)), st.sampled_from((0, 0, 1)),
                       st.one_of(st.just(0), st.integers(0, 40), st.integers(0, 900)),
                       st.sampled_from((60, 60, 60, 30, 99))), min_size=1, max_size=12),
)  # fmt: skip
SEEN: Counter[str] = Counter()  # how engines did what they were given in the tests below


def test_engines_do_with_plans_and_without_what_each_would_alone() -> None:
    SEEN.clear()
    check_heaps()
    check_pairs()
    check_rows()
    check_loops()
    check_backlogs()
    check_followed()
    check_streams()
    check_long()
    check_beside()
    # What Hypothesis comes up with must have gone all ways: two that meet, one that waits in its ring, plans made
    # in the middle and left again, also while some still wait; one behind one that met another, and one behind which
    # only some engines had work; and some whose times changed while those of others did not; one
    # beside a row, and one that outlasts it.
    ways = ("alone", "met", "waits", "plans", "made", "left", "waiting", "asked", "behind two", "partly", "some",
            "beside", "outlasting")  # fmt: skip
    assert min(SEEN[way] for way in ways) > 50, SEEN


@settings(max_examples=150, deadline=None)
@given(TOGETHER, st.integers(0, 3), st.integers(1, 5), st.sampled_from((1, 10)), st.booleans())
def check_heaps(parts: list[tuple[int, ...]], asked: int, behind: int, apart: int, is_asked: bool) -> None:
    """Many at once."""
    check(parts, asked, behind, apart, is_asked)


@settings(max_examples=150, deadline=None)
@given(st.lists(PAIR, min_size=1, max_size=8), st.integers(0, 3), st.integers(1, 5))
def check_pairs(pairs: list[Any], asked: int, behind: int) -> None:
    """One or two at a time."""
    parts = []
    for first, second, more, rings, facts in pairs:
        for number, (start, step, count, packets, packet, fill) in enumerate(facts[: 2 + more]):
            wait_ps = second if number else 400 + first
            parts.append((rings[number % 2], wait_ps, start, step, count, packets, packet, 0, fill))
    check(parts, asked, behind, 1, False)


@settings(max_examples=200, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=4), st.integers(0, 3), st.integers(1, 5))
def check_rows(rows: list[Any], asked: int, behind: int) -> None:
    """One behind the other in one ring."""
    parts = []
    for first, cold, fewer, step, count, given_, then in rows:
        for number, (gap, start, packets, packet, fill, ring) in enumerate(given_):
            wait_ps = gap if number else 400 + first
            takes = min(max(count - (fewer if number else 0), 1), ENGINES)
            parts.append((ring, wait_ps, start, step + (0 if number else cold), takes, packets, packet, 0, fill))
        parts.append((1, then, 20, step, count, 3, 20, 0, 12))
    check(parts, asked, behind, 1, False)


@settings(max_examples=200, deadline=None)
# A store that keeps engines busy when a load gets ready, which fills no pipe then: the load behind it begins earlier.
@example(
    ([(10, 6, 9, 25, 0, 12), (0, 6, 5, 3, 1, 0), (0, 6, 5, 3, 1, 0)], [(0, 2, 0, 40), (0, 2, 0, 45), (1, 1, 0, 56)]),
    2,
    1,
    False,
)
# Engines that stand alike again after they were through at different times, some of them after work that is to come.
@example(
    (
        [(10, 2, 7, 25, 3, 12), (-5, 6, 9, 10, 0, 60), (15, 6, 7, 23, 0, 60)],
        [(0, 1, 266, 83), (1, 1, 252, 30), (2, 0, 118, 31)],
    ),
    1,
    1,
    False,
)
@example(
    (
        [(10, 6, 8, 7, 0, 0), (30, 6, 7, 12, 0, 12), (0, 6, 4, 9, 0, 12)],
        [(0, 1, 0, 45), (1, 3, 0, 53), (2, 2, 0, 52), (1, 0, 0, 40), (0, 3, 0, 36), (0, 3, 447, 42), (2, 2, 0, 41)],
    ),
    2,
    1,
    False,
)
@given(LOOP, st.integers(0, 3), st.integers(1, 5), st.booleans())
def check_loops(loop: Any, asked: int, behind: int, is_asked: bool) -> None:
    """The same again and again, on up to four rings."""
    kinds, given_ = loop
    parts = []
    for number, (kind, ring, wait_ps, start) in enumerate(given_):
        step, count, packets, packet, fewer, fill = kinds[kind]
        parts.append((ring, wait_ps + (0 if number else 100), start, step, count, packets, packet, fewer, fill))
    check(parts, asked, behind, 1, is_asked)


@settings(max_examples=250, deadline=None)
@given(BACKLOG, st.integers(0, 3), st.integers(1, 5))
def check_backlogs(backlog: Any, asked: int, behind: int) -> None:
    """Many in one ring."""
    before, kinds, ring, given_, then = backlog
    parts = []
    for others, wait_ps, kind in [
        *((other, until, 1) for other, until in before), *((ring, *each) for each in given_),
        *((other, until, 1) for other, until in then),
    ]:  # fmt: skip
        step, packets, packet, fill = kinds[kind]
        parts.append((others, wait_ps, 60, step, ENGINES, packets, packet, 0, fill))
    check(parts, asked, behind, 1, False)


@settings(max_examples=200, deadline=None)
@given(st.lists(FOLLOWED, min_size=1, max_size=3), st.integers(0, 3), st.integers(1, 5))
def check_followed(groups: list[Any], asked: int, behind: int) -> None:
    """Some in a row behind one that meets another."""
    parts = []
    for rings, step, packets, packet, fill, then, given_ in groups:
        parts.append((rings[0], 900, 40, step, ENGINES, packets, packet, 0, fill))
        for number, (wait_ps, ring, longer, start) in enumerate([(then, 1, 0, 40), *given_]):
            slope = step if not number else 15
            parts.append((rings[ring], wait_ps, start, slope, ENGINES, packets + 3 * longer, packet, 0, fill))
    check(parts, asked, behind, 1, False)


@settings(max_examples=250, deadline=None)
@given(STREAMS, st.integers(0, 3), st.integers(1, 5), st.booleans())
def check_streams(streams: Any, asked: int, behind: int, is_asked: bool) -> None:
    """Several rings that take turns for long."""
    kinds, rings, given_ = streams
    parts = []
    for one, wait_ps, start in given_:
        step, count, packets, packet, fill = kinds[one % len(kinds)]
        ring = rings[one % len(kinds)]
        parts.append((ring, wait_ps + (0 if parts else 100), start, step, count, packets, packet, 0, fill))
    check(parts, asked, behind, 1, is_asked)


@settings(max_examples=250, deadline=None)
@given(LONG, st.integers(1, 3), st.integers(1, 5), st.booleans())
def check_long(long: Any, asked: int, behind: int, is_asked: bool) -> None:
    """Short ones beside long ones."""
    kinds, given_ = long
    parts = [(0, 100, 60, *kinds[0][:1], ENGINES, *kinds[0][1:3], 0, kinds[0][3])]
    for ring, kind, wait_ps, step, packets, packet, fill in given_:
        if ring < 2:
            step, packets, packet, fill = kinds[kind % len(kinds)]
        parts.append((ring, wait_ps, 60, step, ENGINES, packets, packet, 0, fill))
    check(parts, asked, behind, 1, is_asked)


@settings(max_examples=300, deadline=None)
@given(BESIDE, st.integers(0, 3), st.integers(1, 5))
def check_beside(beside: Any, asked: int, behind: int) -> None:
    """What comes and goes beside a row."""
    mine, theirs, row, given_ = beside
    parts = []
    for eighths, kind in row:
        step, packets, packet, fill = mine[kind]
        wait_ps = packets * packet * eighths // 8 if parts else 100
        parts.append((0, wait_ps, 60, step, ENGINES, packets, packet, 0, fill))
    for ring, kind, wait_ps, start in given_:
        step, packets, packet, fill = (theirs if ring else mine)[kind]
        parts.append((ring, wait_ps, start, step, ENGINES, packets, packet, 0, fill))
    check(parts, asked, behind, 1, False)


def check(parts: list[tuple[int, ...]], asked: int, behind: int, apart: int, is_asked: bool) -> None:
    """Compare every span, and how long engines are busy, with a reference that serves each from the beginning."""
    engines = DmaEngines(0, ENGINES)
    told: dict[int, list[tuple[int, int]]] = {}
    alone: list[list[Run]] = [[] for _ in range(ENGINES)]
    busy, now = [0] * ENGINES, 0
    pending: list[tuple[int, int]] = []
    for number, (ring, wait_ps, start, step, count, packets, packet, fewer, fill) in enumerate(parts):
        now += wait_ps * apart
        was_quiet = engines.quiet is not None
        last_packets = max(packets - fewer, 1)
        stretches = [Stretch(0, count - 2, packets, packet, packet + 6)] if count > 1 else []
        stretches.append(Stretch(count - 1, count - 1, last_packets, packet, packet + 6))
        if len(stretches) > 1 and stretches[0][2:] == stretches[1][2:]:
            stretches = [stretches[0]._replace(last=count - 1)]
        for engine in range(count):
            mine = packets if engine < count - 1 else last_packets
            run = Run(number, ring, now + start + step * engine, mine, packet, packet + 6, fill)
            idle = serve(0, 15, alone[engine]).time_ps < run.ready_ps
            busy[engine] += packet * mine + 6 + (fill if idle else 0)
            alone[engine].append(run)
        moved = engines.give(number, ring, now + start, step, tuple(stretches), fill, now)
        assert engines.busy_ps == busy
        way = "plans" if engines.quiet is None else "met" if moved else "alone"
        if engines.quiet is not None and (before := engines.quiet.served[number].behind) is not None:
            way = "waits"
            SEEN["behind two"] += before.met is not None
            SEEN["partly"] += engines.quiet.served[number].starts is not None
        guests = [] if engines.quiet is None else [guest for one in engines.quiet._line for guest in one.guests or ()]
        SEEN["beside"] += number in [guest.number for guest in guests]
        row = None if engines.quiet is None else engines.quiet._row
        SEEN["outlasting"] += row is not None and row.is_over
        SEEN.update([way, "asked" if is_asked else "free"])
        SEEN["made"] += was_quiet and engines.quiet is None
        SEEN["left"] += engines.quiet is not None and not was_quiet
        SEEN["waiting"] += engines.quiet is not None and not was_quiet and len(engines.quiet.served) > 1
        assert [plan.first for plan in engines.plans] == [0, *(plan.last + 1 for plan in engines.plans[:-1])]
        pending.append((number, count))
        want = [{one: (begun, end) for one, begun, end in serve(0, 15, mine).finished} for mine in alone]
        changed = engines.changed
        for transfer in told.copy() if moved else ():
            if changed is None or transfer in changed:
                del told[transfer]
        SEEN["some"] += moved and bool(changed) and bool(told)
        for transfer, took_part in pending:
            spans_ = [want[engine][transfer] for engine in range(took_part)]
            assert told.get(transfer, spans_) == spans_, "who knows a span is told that it changes"
        for transfer, took_part in pending[-asked:] if asked else ():
            found = engines.pieces(transfer, took_part)
            assert [piece.span(engine) for piece in found for engine in range(piece.first, piece.last + 1)] == [
                want[engine][transfer] for engine in range(took_part)
            ]
            end, pieces = engines.times(transfer, took_part)
            begun = min(want[engine][transfer][0] for engine in range(took_part))
            assert TransferPlan(-1, end, pieces).started_ps == begun
            assert end == max(want[engine][transfer][1] for engine in range(took_part))
            if engines.quiet is None:
                total = sum(want[engine][transfer][1] for engine in range(took_part))
                assert engines.summed_ends_ps(transfer, took_part) == total
            told[transfer] = [want[engine][transfer] for engine in range(took_part)]
        while len(pending) > behind and all(want[e][pending[0][0]][1] < now for e in range(pending[0][1])):
            done, took_part = pending.pop(0)
            engines.pieces(done, took_part)
            engines.forget(done)
        if is_asked and number == len(parts) // 2:
            engines.restore(held := engines.snapshot())
            assert engines.snapshot() == held


def test_engines_share_a_plan_again_once_they_go_the_same_way() -> None:
    engines = DmaEngines(0, 16)
    # A store gets ready in the middle of a load's packets, on some engines behind more of them than on others.
    engines.give(0, 0, 1000, 15, (Stretch(0, 15, 8, 20, 26),), 0, 0)
    engines.give(1, 1, 1070, 10, (Stretch(0, 15, 8, 20, 26),), 0, 0)
    engines.pieces(1, 16)
    assert len(engines.plans) > 1
    engines.pieces(0, 16)
    for number, now in ((2, 8000), (3, 18000)):
        engines.give(number, 0, now + 1000, 15, (Stretch(0, 15, 8, 20, 26),), 0, now)
        engines.pieces(number, 16)
    assert len(engines.plans) == 1
    assert {piece.span(0) for piece in engines.pieces(2, 16)} == {(9000, 9166)}


def test_whether_all_is_over_is_told_without_planning_it() -> None:
    plan = Plan(0, 15)
    plan.give(work.Run(0, 0, 1000, 8, 20, 26, 50, 15), 0)
    # A store that some engines have ready behind more packets than others: to plan it is to cut the plan.
    plan.give(work.Run(1, 1, 1170, 8, 20, 26, 0, 10), 0)
    took = 2 * (7 * 20 + 26)
    assert plan.busy_ps == 50 + took
    # From when all is ready on the last engine, 1320, and a filling of pipes on, it takes what it takes.
    plan.give(work.Run(2, 0, 1320 + 50 + took + 76, 8, 20, 26, 50, 15), 0)
    assert plan.busy_ps == 100 + took + took // 2
    assert not plan.spans
    # What is ready while these move finds no engine idle.
    plan.give(work.Run(3, 2, 1100, 8, 20, 26, 50, 15), 0)
    assert plan.busy_ps == 100 + 2 * took


def test_only_what_was_met_is_asked_again() -> None:
    engines = DmaEngines(0, 16)
    shares = (Stretch(0, 15, 8, 20, 26),)
    assert not engines.give(0, 0, 1000, 15, shares, 0, 0)
    assert not engines.changed
    assert engines.give(1, 1, 1073, 10, shares, 0, 0)
    assert engines.changed == (0,)
    assert not engines.give(2, 1, 9000, 10, shares, 0, 0)
    assert not engines.changed
    engines.give(3, 0, 1100, 10, shares, 0, 0)  # a third of those that meet: plans are made, and all may change
    assert engines.quiet is None
    assert engines.changed is None


def test_a_long_backlog_is_planned_once() -> None:
    """Work for one transfer does not grow with the backlog, whichever queue it comes from."""
    counts = []
    for length in (100, 1000):
        engine = Plan()
        for number in range(length):
            engine.give(work.Run(number, 0, 1000, 8, 100, 106, 50), 0)

        def more(engine: Plan = engine, length: int = length) -> None:
            for number in range(length, length + 50):
                now = (number - length) * 1000
                engine.give(work.Run(number, 1, now + 600, 8, 100, 106, 50), now)
                engine.pieces(number)

        counts.append(counted(more, builtins=True)[0])
    assert counts[1] < counts[0] * 1.2


def test_what_a_collective_carries_does_not_end_the_planning_of_everything() -> None:
    """Its numbers are below 0, as one that stood for everything was."""
    plan = Plan(0, 15)
    plan.give(work.Run(-1, 0, 1000, 4, 100, 120), 500)
    plan.work_out(-1)
    plan.give(work.Run(7, 1, 5000, 4, 100, 120), 4000)
    plan.work_out()
    assert plan.spans.keys() == {-1, 7}


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
    busy_ps = device.dma.engines[0].busy_ps[0]
    costs = device.costs.dma
    work = 3 * (8 * costs.descriptor_ps(4096) + costs.signal_ps)
    assert busy_ps == pytest.approx(work + costs.filling_ps(16, 8 * 4096), abs=100)
    taken = recorder.holds["dma", 0, 0]
    assert max(taken.end) - min(taken.start) == busy_ps
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
        session.device.dma.engines[0].snapshot(),
        [transfer.snapshot() for queue in session.device.queues for transfer in queue.pending],
    ]
    there = session.events
    while session.device.dma.triggered < 3:
        session.step()
    session.step()
    session.reverse_step(session.events - there)
    assert state == [
        session.device.dma.engines[0].snapshot(),
        [transfer.snapshot() for queue in session.device.queues for transfer in queue.pending],
    ]
    session.continue_()
    assert session.device.now_ps == device.now_ps
    assert straight[-1][1] <= device.now_ps


@given(st.integers(0, 15), st.integers(0, 15), *[st.integers(-40, 400) for _ in range(4)])
def test_the_first_of_the_engines_begins_when_each_says(
    one: int, other: int, ready: int, later: int, before: int, behind: int
) -> None:
    first, last = sorted((one, other))
    piece = work.Piece(first, last, (ready, later), (before, behind), (10_000, 0))
    assert piece.begun_ps == min(piece.span(engine)[0] for engine in range(first, last + 1))
