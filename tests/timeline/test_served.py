"""Times of DMA engines, kept by the pieces of plans, against the same pieces asked engine by engine."""

from __future__ import annotations

from array import array
from random import Random

import pytest

from emulator.dma import quiet
from emulator.dma.transfer import TransferPlan
from emulator.dma.work import Piece
from emulator.timeline.served import Served

ENGINES = 16


def plan(random: Random, engines: int) -> tuple[Piece, ...]:
    """Return pieces that share out all engines among them."""
    cuts = sorted(random.sample(range(1, engines), random.randint(0, min(3, engines - 1))))

    def time() -> tuple[int, int]:
        return random.randint(0, 1 << 40), random.randint(-50, 50)

    return tuple(
        Piece(first, behind - 1, time(), time(), time())
        for first, behind in zip([0, *cuts], [*cuts, engines], strict=True)
    )


@pytest.mark.parametrize("seed", range(5))
def test_columns_are_the_spans_of_every_piece(seed: int) -> None:
    random, served = Random(seed), Served()
    expected: dict[int, tuple[int, list[tuple[int, int]]]] = {}
    waiting: list[int] = []

    def finish() -> None:
        number = waiting.pop(random.randrange(len(waiting)))  # queues do not wait for one another
        engines = expected[number][0]
        pieces = plan(random, engines)
        served.end(number, pieces)
        spans = [piece.span(engine) for piece in pieces for engine in range(piece.first, piece.last + 1)]
        expected[number] = engines, spans

    for number in range(60):
        engines = random.choice((1, 4, ENGINES))
        served.begin(number, engines)
        expected[number] = engines, [(-1, -1)] * engines
        waiting.append(number)
        if number == 40:  # the device goes back, and comes to transfer 30 again
            served.begin(30, ENGINES)
            expected = {key: value for key, value in expected.items() if key < 30} | {
                30: (ENGINES, [(-1, -1)] * ENGINES)
            }
            waiting = [each for each in waiting if each <= 30 and each in expected]
            if 30 not in waiting:
                waiting.append(30)
            break
        if len(waiting) > 3:
            finish()
    served.end(35, plan(random, ENGINES))  # forgotten: nobody has that number any more
    while len(waiting) > 1:
        finish()
    assert served.width == ENGINES
    for engine in range(ENGINES):
        rows = [(number, *spans[engine]) for number, (engines, spans) in sorted(expected.items()) if engine < engines]
        assert served.columns(engine) == tuple(array("q", column) for column in zip(*rows, strict=True))


def test_transfers_that_met_another_or_wait_on_some_engines_have_the_ends_of_all() -> None:
    kept, random = Served(), Random(0)
    expected = {}
    for number in range(20):
        one = quiet.Served(number, 0, random.randint(0, 1 << 40), random.randint(-50, 50), ENGINES - 1, 4, 100, 50, 7)
        if number % 3:
            one.ends = [random.randint(0, 1 << 41) for _ in range(ENGINES)]
        if number % 2:
            one.start_ps, one.turn_ps = random.randint(0, 1 << 40), random.randint(-50, 50)
        if number % 5 == 1:  # only some engines go on to it from the one before
            before = quiet.Served(-1, 0, one.ready_ps, random.randint(-50, 50), number % ENGINES, 4, 100, 50, 7)
            one.ends = None
            one.follow(before)
        kept.begin(number, ENGINES)
        expected[number] = [piece.span(engine) for piece in one for engine in range(piece.first, piece.last + 1)]
        assert kept.end(number, one) == one.started_ps
        assert TransferPlan(-1, -1, one).started_ps == TransferPlan(-1, -1, tuple(one)).started_ps
        assert one.started_ps == min(start for start, _ in expected[number])
    for engine in range(ENGINES):
        rows = [(number, *spans[engine]) for number, spans in expected.items()]
        assert kept.columns(engine) == tuple(array("q", column) for column in zip(*rows, strict=True))


def test_nothing_was_served() -> None:
    served = Served()
    assert served.width == 0
    served.begin(0, 2)
    assert served.columns(1) == (array("q", [0]), array("q", [-1]), array("q", [-1]))
