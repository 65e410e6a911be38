"""Generators wait where stores leave much of their queue to move; loads alone hold none up."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from random import Random
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.cost import dma_costs
from emulator.device import Device
from emulator.dma.engines import DmaEngines, Stretch
from emulator.dma.holding import _begin_ps, _end_ps, held_up_until
from emulator.dma.queues import DmaQueue
from emulator.dma.served import Served
from emulator.dma.transfer import Request, Transfer
from emulator.dma.work import Piece, spans_by_engine
from emulator.timeline.measure import measure
from emulator.timeline.track import EngineTrack
from formats import isa
from neurontools.debugger import Session
from tests.emulator.dma_programs import PARTITION, direct, gen3, wait

ROWS, SIZE = 128, 4096
X, Y = {"x": ("float32", (ROWS, SIZE // 4))}, {"y": ("float32", (ROWS, SIZE // 4))}
SERVING = {"arbitration.py", "engines.py", "quiet.py"}
HELD = 620_000  # ps: longer than any word of a generator that nothing holds up, right behind another too


def store(run: int = SIZE, semaphore: int = 8) -> isa.Instruction:
    return direct(("variable", 0, 0), ("table", 1, 0), run, ROWS, PARTITION, run, semaphore=semaphore)


def load(run: int = SIZE, at: int = 0x8000) -> isa.Instruction:
    return direct(("table", 0, 0), ("variable", 0, at), run, ROWS, run, PARTITION, semaphore=9)


def program(words: list[isa.Instruction], pool: list[isa.Instruction] | None = None, target: str = "trn2"):
    streams = {"SP": words} if pool is None else {"SP": words, "Pool": pool}
    return gen3(streams, inputs=X, outputs=Y, target=target)


def took(words: list[isa.Instruction], pool: list[isa.Instruction] | None = None, target: str = "trn2") -> list[int]:
    """Return how long profiles would show each DMA word of Sync."""
    recorder = measure(program(words, pool, target), {}, data=False).recorder
    (track,) = (each for owner, each in recorder.tracks.items() if owner.name == "SP" and isinstance(each, EngineTrack))
    spans = [track.shown_end(row) - track.start[row] for row in range(len(track))]
    return spans[-len(words) :]


def test_stores_in_a_row_hold_each_other_up() -> None:
    """Captured are 524, 524, 622, 1,178, 1,291 and 1,434 ns for such stores on Scalar, begun 667 ns apart at first."""
    spans = took([store()] * 7)
    assert max(spans[:2]) < HELD
    assert all(1_000_000 < each < 1_700_000 for each in spans[3:])
    # In the long run a word takes as long as its transfer: 8 rows an engine at the pace of stores.
    pace = 8 * dma_costs("trn2").descriptor_ps(SIZE, True)
    assert spans[-1] == pytest.approx(pace, rel=0.2)


def test_loads_alone_and_small_stores_hold_nothing_up() -> None:
    assert max(took([load()] * 4)) < HELD
    assert max(took([store(2048)] * 2)) < HELD  # captured: two transfers in 2 KiB rows
    assert max(took([store(64)] * 6)) < HELD


def test_loads_wait_while_stores_of_another_queue_are_under_way() -> None:
    loads = [load() for _ in range(6)]
    alone, beside = took(loads), took(loads, [store(semaphore=24 + at) for at in range(6)])
    assert max(alone) < max(beside) and max(beside) > HELD
    assert all(less <= more for less, more in zip(alone, beside, strict=True))


def test_more_stores_never_end_sooner() -> None:
    ends = []
    for count in range(1, 8):
        device = Device("trn2")
        device.load(program([*[store()] * count, isa.Nop(**wait(8, 16 * count))]))
        assert device.run() == "finished"
        ends.append(device.now_ps)
    assert all(less < more for less, more in pairwise(ends))


def test_time_turned_off_and_chips_without_such_generators_hold_nothing_up() -> None:
    device = Device("trn2", timing=False)
    device.load(program([*[store()] * 5, isa.Nop(**wait(8, 80))]))
    assert device.run() == "finished"
    assert not dma_costs("trn1").generate_ahead and not device.costs.dma.generate_ahead


def test_a_session_that_goes_back_holds_up_as_long() -> None:
    neff = program([*[store()] * 6, isa.Nop(**wait(8, 96))])
    straight = Device("trn2")
    straight.load(neff)
    straight.run()
    session = Session(neff, {})
    session.step(6)
    session.reverse_step(3)
    session.continue_()
    assert session.device.now_ps == straight.now_ps


# --- what is kept of queues, against a walk over all that is pending -------------------------------------------------


class Course:
    """What holding asks of a course."""

    def __init__(self, engines: int, nbytes: int, writes_hbm: bool) -> None:
        self.engines, self.share, self.writes_hbm = engines, nbytes / engines, writes_hbm
        self.is_even = self.share.is_integer()
        self.completion_ps, self.held, self.shares = 0, 1, ()


class Engines:
    """Engines whose pieces are made up."""

    quiet: Any = None

    def __init__(self) -> None:
        self.made_up: dict[int, tuple[Piece, ...]] = {}

    def pieces(self, transfer: int, engines: int) -> tuple[Piece, ...]:
        return self.made_up[transfer]

    def summed_ends_ps(self, transfer: int, engines: int) -> int:
        return sum(end for _, end in spans_by_engine(self.made_up[transfer]))

    def is_behind(self, transfer: int, ring: int, engines: int) -> bool:
        return False  # all is planned


def held_by_a_walk(queue: DmaQueue, beside: list[DmaQueue], engines: Engines, room: float, now_ps: int) -> int:
    """Return the same as `held_up_until`, by looking at all that is pending."""

    def spans(transfer: Transfer) -> tuple[tuple[int, int], ...]:
        return spans_by_engine(engines.made_up[transfer.number])

    def end(transfer: Transfer) -> int:
        return sum(end for _, end in spans(transfer)) // len(spans(transfer))

    stores = [own for each in beside if (own := [one for one in each.pending if one.course.writes_hbm])]
    for transfer in reversed(queue.pending):
        share = transfer.course.share
        if share <= room:
            room -= share
            continue
        if not stores:
            return 0
        begin = sum(begin for begin, _ in spans(transfer)) // len(spans(transfer))
        moved = end(transfer) - int((end(transfer) - begin) * room / share) if room else end(transfer)
        if moved <= now_ps:
            return 0
        last = max(end(own[0]) for own in stores)
        held = min(moved, last if last >= moved else max(end(own[-1]) for own in stores))
        return held if held > now_ps else 0
    return 0


@pytest.mark.parametrize("even", [True, False])
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_what_is_kept_tells_what_a_walk_finds(even: bool, seed: int) -> None:
    """Transfers come and complete at random, a queue goes back to before, and the room changes."""
    draw = Random(seed)
    queues = [DmaQueue(0, f"q{ring}", "SP", ring, 16, (), "dynamic") for ring in range(2)]
    engines, number, room = Engines(), 0, draw.choice([100, 1000])
    for step in range(80):
        queue = draw.choice(queues)
        what = draw.random()
        if what < 0.6:
            transfer = Transfer(Request(queue=queue.name, core=0, engine="SP", pc=0, parts=()))
            transfer.number, number = number, number + 1
            count = draw.choice([1, 4, 16]) if even else draw.choice([3, 7, 13, 16])
            course = Course(
                count, count * draw.randint(1, 300) + (0 if even else draw.randint(0, 2)), draw.random() < 0.4
            )
            transfer.course = course
            queue.pending.append(transfer)
            queue.count(transfer, course)
            cuts = sorted({0, count, *draw.sample(range(count + 1), 1)})
            engines.made_up[transfer.number] = tuple(
                Piece(first, last - 1, (number * 90, draw.randint(0, 9)), (number * 90, draw.randint(0, 9)),
                      (number * 100 + draw.randint(0, 400), draw.randint(0, 50)))
                for first, last in pairwise(cuts)
            )  # fmt: skip
        elif what < 0.9 and queue.pending:
            if queue.pending.popleft().course.writes_hbm:
                queue.stores.popleft()
            queue.completed += 1
        elif what < 0.93:
            queue.restore(queue.snapshot())
        elif what < 0.96:
            room = draw.choice([50, 100, 1000, 2000])
        if draw.random() < 0.7:
            now = number * draw.choice([50, 100])
            want = held_by_a_walk(queue, queues, engines, room, now)
            assert held_up_until(queue, queues, engines, room, now) == want, step


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_transfers_without_plans_are_served_as_their_pieces_say(seed: int) -> None:
    draw = Random(seed)
    last, steps = draw.randint(0, 15), [draw.randint(0, 40) for _ in range(2)]
    made = [Served(at, 0, draw.randint(1, 900), steps[at], last, 3, 40, 50, draw.randint(0, 30)) for at in range(2)]
    one = made[1]
    if draw.random() < 0.6:
        one.follow(made[0])
    if draw.random() < 0.4:
        one.ends = [one.end_on(engine) + draw.randint(0, 200) for engine in range(last + 1)]
    engines = Engines()
    transfer = Transfer(Request(queue="q", core=0, engine="SP", pc=0, parts=()))
    transfer.number, transfer.course = 1, Course(last + 1, 100, False)
    engines.made_up[1] = tuple(one)
    spans = spans_by_engine(engines.made_up[1])
    want = tuple(sum(each) // (last + 1) for each in zip(*spans, strict=True))
    for quiet in (None, SimpleNamespace(served={1: one})):
        engines.quiet = quiet
        assert (_begin_ps(engines, transfer), _end_ps(engines, transfer)) == want  # type: ignore[arg-type]


def device_with(count: int) -> Device:
    """Return a device with so many transfers of short runs, which take longer to move than to trigger."""
    small = direct(("table", 0, 0), ("table", 1, 0), 4, 1024, 8, 8)
    device = Device("trn2")
    device.replays = False
    device.load(program([*[small] * count, isa.Nop(**wait(8, 16 * count))]))
    return device


def calls(count: int) -> int:
    """Return the Python calls of such a run, but for those to find out when engines serve transfers."""
    found = 0

    def hook(frame: FrameType, event: str, arg: object) -> None:
        nonlocal found
        found += event in ("call", "c_call") and Path(frame.f_code.co_filename).name not in SERVING

    device = device_with(count)
    sys.setprofile(hook)
    try:
        device.run()
    finally:
        sys.setprofile(None)
    return found


def test_a_transfer_costs_the_same_however_manyare_pending() -> None:
    pending: list[int] = []

    class Watch:
        def on_event(self, event: object) -> None:
            pending.append(max(each.outstanding for each in device.queues))

    most = []
    for count in (12, 230):
        device = device_with(count)
        device.observers.append(Watch())
        device.run()
        most.append(max(pending))
    assert most[0] <= 12 and most[1] >= 190
    few, some, many, more = (min(calls(count) for _ in range(2)) for count in (12, 32, 210, 230))
    assert more - many <= some - few


class Thorough(DmaEngines):
    """Engines that plan whatever is asked for."""

    def is_behind(self, transfer: int, ring: int, engines: int) -> bool:
        return False


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_what_is_not_planned_yet_holds_up_as_long(seed: int) -> None:
    """Loads of two queues run ahead, stores of a third, or of theirs, come now and then."""
    draw = Random(seed)
    sides = [
        ([DmaQueue(0, f"q{ring}", "SP", ring, 16, (), "dynamic") for ring in range(3)], engines)
        for engines in (DmaEngines(0, 16), Thorough(0, 16))
    ]
    forms = [(draw.randint(1, 20), draw.randint(1, 60), draw.choice([0, 0, 7]), draw.choice([0, 5, -3])) for _ in "abc"]
    mixed, shares = draw.random() < 0.3, [draw.choice([16, 16, 16, 9]) for _ in range(3)]
    now, room = 1000, draw.choice([50, 100, 400])
    for number in range(draw.randint(5, 70)):
        ring = draw.choices([0, 1, 2], [4, 4, 1])[0]
        writes = draw.random() < 0.1 if mixed else ring == 2
        packets, packet, fill, step = forms[ring]
        count, last = shares[ring], packet + draw.randint(0, 9)
        nbytes, ready = count * draw.randint(10, 90), now + draw.choice([45, 45, 90, 700])
        for queues, engines in sides:
            transfer = Transfer(Request(queue=queues[ring].name, core=0, engine="SP", pc=0, parts=()))
            transfer.number, course = number, Course(count, nbytes, writes)
            transfer.course = course  # type: ignore[assignment]
            queues[ring].pending.append(transfer)
            queues[ring].count(transfer, course)  # type: ignore[arg-type]
            engines.give(number, ring, ready, step, (Stretch(0, count - 1, packets, packet, last),), fill, now)
        asked = draw.randint(0, 1)
        for _ in range(draw.randint(0, 2)):
            found = [held_up_until(queues[asked], queues, engines, room, now) for queues, engines in sides]
            assert found[0] == found[1], number
            now += draw.choice([0, 10, 60, 300])
        for ring in range(3):  # what all engines are through with may complete
            while (own := sides[0][0][ring].pending) and sides[0][1].times(own[0].number, shares[ring])[0] < now:
                ends = []
                for queues, engines in sides:
                    over = queues[ring].pending.popleft()
                    if over.course is not None and over.course.writes_hbm:
                        queues[ring].stores.popleft()
                    queues[ring].completed += 1
                    ends.append(spans_by_engine(engines.pieces(over.number, shares[ring])))
                    engines.forget(over.number)
                assert ends[0] == ends[1]
                if draw.random() < 0.3:
                    break
    for ring in range(3):
        for one, other in zip(*[queues[ring].pending for queues, _ in sides], strict=True):
            spans = [spans_by_engine(side[1].pieces(each.number, shares[ring]))
                     for side, each in zip(sides, (one, other), strict=True)]  # fmt: skip
            assert spans[0] == spans[1]
