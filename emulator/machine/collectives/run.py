"""Run collectives from a request to results: plan, execute with data or for time only, say why it did not end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import DTypeLike, NDArray

from emulator.machine.collectives.engine import Engine, Faults, Job, Transfer
from emulator.machine.collectives.explain import Hang, explain
from emulator.machine.collectives.memory import Buffers
from emulator.machine.collectives.plan import Plan, Request, build
from formats.named_tuple import NamedTuple

__all__ = ["Outcome", "execute", "make_inputs", "timed"]

Array = NDArray[np.generic]


class Outcome(NamedTuple):
    """What one collective over one group or several did."""

    jobs: tuple[Job, ...]
    time_ps: int
    hangs: tuple[Hang, ...]
    transfers: tuple[Transfer, ...]

    @property
    def outputs(self) -> dict[int, Array]:
        """Return the output of every rank; nothing where only the time was asked for."""
        return {rank: job.buffers.array(rank, "out") for job in self.jobs if job.buffers for rank in job.plan.ranks}


def execute(
    requests: Sequence[Request], dtype: DTypeLike, inputs: Mapping[int, Array] | None = None, *, seed: int = 0,
    faults: Faults | None = None, record: bool = False, starts: Mapping[int, int] | None = None,
    absent: frozenset[int] = frozenset(),
) -> Outcome:  # fmt: skip
    """Execute one request a group at the same time; without inputs for its time only.

    `starts` gives the time at which a rank triggers it, in ps; ranks of `absent` never do.
    """
    machine = requests[0].group.machine
    engine = Engine(machine, seed=seed, faults=faults, record=record)
    jobs = []
    for request in requests:
        plan = build(request)
        buffers = None if inputs is None else Buffers(plan, inputs, dtype)
        job = engine.add(plan, np.dtype(dtype).itemsize, buffers=buffers)
        jobs.append(job)
        for rank in plan.ranks:
            if rank not in absent:
                engine.trigger(job, rank, (starts or {}).get(rank, 0))
    engine.run()
    hangs = tuple(hang for job in jobs if (hang := explain(engine, job)) is not None)
    return Outcome(tuple(jobs), engine.now, hangs, tuple(engine.transfers))


def timed(requests: Sequence[Request], item: int, *, seed: int = 0) -> tuple[int, tuple[Job, ...]]:
    """Return the time of collectives in ps, and the jobs with their counters, without moving data."""
    engine = Engine(requests[0].group.machine, seed=seed)
    jobs = tuple(engine.add(build(request), item) for request in requests)
    for job in jobs:
        for rank in job.plan.ranks:
            engine.trigger(job, rank, 0)
    engine.run()
    return engine.now, jobs


def make_inputs(plans: Sequence[Plan], dtype: DTypeLike, kind: str, seed: int = 0) -> dict[int, Array]:
    """Return inputs for every rank: "random", "ones", or "ramp" (rank and index, small whole numbers)."""
    kind_of = np.dtype(dtype)
    found: dict[int, Array] = {}
    for plan in plans:
        for rank in plan.ranks:
            size = plan.inputs[rank]
            if kind == "ones":
                made: Array = np.ones(size, kind_of)
            elif kind == "ramp":
                made = ((np.arange(size) + 7 * rank) % 97).astype(kind_of)
            else:
                rng = np.random.default_rng([seed, rank])
                if kind_of.kind in "iu":
                    made = rng.integers(0, 64, size).astype(kind_of)
                else:
                    made = rng.standard_normal(size).astype(np.float32).astype(kind_of)
            found[rank] = made
    return found
