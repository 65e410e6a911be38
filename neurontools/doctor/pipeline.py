"""`neurontools doctor pipeline`: how deep a queue must be, so that the host's time is hidden behind the device's."""

from __future__ import annotations

import random
import re
from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.text.table import table

_REQUESTS, _WARM = 400, 50
_DEEPEST = 64
_LONGEST = 1e9  # microseconds of one stage
_RANGE = re.compile(r"([0-9]{1,3})(?:\.\.([0-9]{1,3}))?")


class DepthRow(NamedTuple):
    """One depth: requests a second, share of the time that the device is busy, QUEUE_FULL answers, latency."""

    depth: int
    per_second: float
    device_busy: float
    queue_full: int
    median_ms: float
    p99_ms: float


class Pipeline(NamedTuple):
    """The result of `doctor pipeline`."""

    before_us: float
    device_us: float
    after_us: float
    jitter: float
    rows: list[DepthRow]
    advised: Annotated[int, "the smallest depth within one percent of the best"]


def simulate(stages: tuple[float, float, float], depth: int, jitter: float, seed: int) -> DepthRow:
    """Return what a queue of one depth gives: each stage serves one request at a time, in order.

    A request enters when fewer than `depth` are in flight; times are microseconds, each longer by up to `jitter` of it.
    """
    rng = random.Random(seed)
    free = [0.0, 0.0, 0.0]
    done: list[float] = []
    latencies: list[float] = []
    busy, full, ready = 0.0, 0, 0.0
    for number in range(_REQUESTS):
        start = ready
        if number >= depth and done[number - depth] > start:
            full += 1
            start = done[number - depth]
        at = start
        for stage, base in enumerate(stages):
            time = base * (1 + jitter * rng.random())
            at = max(at, free[stage]) + time
            free[stage] = at
            if stage == 1 and number >= _WARM:
                busy += time
        ready = free[0]
        done.append(at)
        if number >= _WARM:
            latencies.append(at - start)
    span = done[-1] - done[_WARM - 1]
    latencies.sort()
    return DepthRow(
        depth, (_REQUESTS - _WARM) * 1e6 / span if span else 0.0, min(1.0, busy / span) if span else 0.0, full,
        latencies[len(latencies) // 2] / 1000, latencies[len(latencies) * 99 // 100] / 1000,
    )  # fmt: skip


def view(found: Pipeline) -> list[str]:
    """Return a row and a bar for each depth."""
    best = max(row.per_second for row in found.rows) or 1
    rows = [
        [row.depth, f"{row.per_second:.1f}", f"{row.device_busy:.0%}", row.queue_full, f"{row.median_ms:.2f}",
         f"{row.p99_ms:.2f}", "#" * round(30 * row.per_second / best)]
        for row in found.rows
    ]  # fmt: skip
    times = " + ".join(f"{one / 1000:g}" for one in (found.before_us, found.device_us, found.after_us))
    return [
        f"{times} ms: host, device, host",
        "",
        *table(["depth", "a second", "device busy", "QUEUE_FULL", "median ms", "p99 ms", ""], rows),
        f"a depth of {found.advised} is enough here; two or three requests queued are advised (runtime.md 5, 5.1)",
    ]


def doctor_pipeline(
    before: Annotated[
        float, typer.Option("--before-us", metavar="US", min=0, max=_LONGEST, help="Host time before the device.")
    ],
    device: Annotated[
        float, typer.Option("--device-us", metavar="US", min=0.001, max=_LONGEST, help="Time on the device.")
    ],
    after: Annotated[
        float, typer.Option("--after-us", metavar="US", min=0, max=_LONGEST, help="Host time after the device.")
    ] = 0,
    depth: Annotated[str, typer.Option("--depth", metavar="A..B", help="Depths of the queue.")] = "1..4",
    jitter: Annotated[
        float, typer.Option("--jitter", min=0, max=10, help="Each time is longer by up to this share.")
    ] = 0,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Of the jitter.")] = 0,
    json: Json = False,
) -> None:
    """Show how throughput depends on the depth of the queue.

    A request is in flight from when it enters until its result is through; its stages overlap those of others.
    """
    with report("doctor pipeline", json, before_us=before, device_us=device, after_us=after, depth=depth) as out:
        match = _RANGE.fullmatch(depth.strip())
        low = int(match[1]) if match else 0
        high = int(match[2] or match[1]) if match else 0
        if not 1 <= low <= high <= _DEEPEST:
            raise typer.BadParameter(f"{depth!r} is not like 1..8, up to {_DEEPEST}", param_hint="--depth")
        rows = [simulate((before, device, after), each, jitter, seed) for each in range(low, high + 1)]
        best = max(row.per_second for row in rows)
        advised = next(row.depth for row in rows if row.per_second >= 0.99 * best)
        found = Pipeline(before, device, after, jitter, rows, advised)
        out.result = found
        out.lines = lambda: view(found)


app = command_app(doctor_pipeline, result=Pipeline)
