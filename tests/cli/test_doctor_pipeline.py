"""`neurontools doctor pipeline`."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from neurontools.doctor.pipeline import simulate
from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def test_the_documented_example(cli: Cli) -> None:
    words = ("doctor", "pipeline", "--before-us", "1000", "--device-us", "20000", "--after-us", "2000", "--json")
    result = checked_json(cli(*words), "doctor pipeline")
    rates = [round(row["per_second"], 6) for row in result["rows"]]
    assert int(rates[0]) == 43 and rates[1:] == [50.0, 50.0, 50.0] and result["advised"] == 2
    assert result["rows"][0]["median_ms"] == 23


@pytest.mark.parametrize("seed", range(8))
def test_without_jitter_the_rate_is_the_formula(seed: int) -> None:
    """In flight at most `depth`: a period is the slowest stage, or the whole way over the depth where that is more."""
    rng = random.Random(seed)
    stages = (rng.uniform(1, 50), rng.uniform(1, 50), rng.uniform(1, 50))
    for depth in range(1, 7):
        row = simulate(stages, depth, 0, 0)
        period = max(*stages, sum(stages) / depth)
        assert row.per_second == pytest.approx(1e6 / period, rel=0.01)
        assert row.device_busy == pytest.approx(stages[1] / period, rel=0.01)


def test_deeper_is_never_slower_and_waits_longer() -> None:
    rows = [simulate((200, 500, 100), depth, 0.5, 3) for depth in range(1, 9)]
    assert all(a.per_second <= b.per_second * 1.001 for a, b in pairwise(rows))
    assert rows[-1].p99_ms > rows[1].p99_ms and all(row.queue_full <= 400 for row in rows)


@pytest.mark.parametrize("depth", ["0", "3..2", "1..100", "x"])
def test_bad_depths(cli: Cli, depth: str) -> None:
    assert cli("doctor", "pipeline", "--before-us", "1", "--device-us", "1", "--depth", depth).status == 2


@pytest.mark.parametrize("time", ["inf", "nan", "1e300"])
def test_times_that_are_none(cli: Cli, time: str) -> None:
    """No depth was the best of none: a StopIteration."""
    for option in ("--before-us", "--device-us", "--after-us"):
        given = {"--before-us": "1", "--device-us": "1", option: time}
        ended = cli("doctor", "pipeline", *(word for pair in given.items() for word in pair))
        assert ended.status == 2 and option in ended.err
