"""Find out how long ranks take, without their data: those that go the same way are emulated once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from time import perf_counter
from typing import Any

from emulator.errors import InputError
from emulator.machine.ranks.alike import decided_by_data, differing
from emulator.machine.ranks.machine import RankedMachine
from emulator.machine.ranks.moments import Faulted
from emulator.machine.ranks.timed import TimedMachine
from emulator.runtime.execution import Result, stats_of
from emulator.runtime.ranks import RankedResult, Ranks, execute_ranks, in_order, machine_of, met_of
from emulator.settings import Settings
from formats.errors import UnsupportedError
from formats.neff import Neff

__all__ = ["MOST_APART", "time_ranks"]

MOST_APART = 128
"""Ranks that are emulated one by one for their time, at most: each takes tens of megabytes."""


def time_ranks(
    neffs: Neff | Sequence[Neff | None], inputs: Callable[[], Sequence[Mapping[str, Any]]], where: Ranks,
    settings: Settings | None = None, *,
    guard: Callable[[RankedMachine | TimedMachine], AbstractContextManager[object]] = nullcontext,
) -> RankedResult:  # fmt: skip
    """Return what `execute_ranks` does but for outputs, findings and warnings; `inputs` are asked for where they count.

    Where it is provable that data decide nothing of the time, ranks of one history share a device, whose data are
    nobody's: a fault that only some values cause is not seen.  Elsewhere each rank is emulated with its inputs, and
    `apart` of the result says why; UnsupportedError then for more than `MOST_APART`.
    """
    settings = settings or Settings()
    each = [neffs] * where.ranks if isinstance(neffs, Neff) else list(neffs)
    if len(each) != where.ranks:
        raise InputError(f"{len(each)} programs for {where.ranks} ranks")
    why, first = differing(each, settings), each[0]
    if not why and first is not None:
        machine = TimedMachine(
            machine_of([first], where), where.ranks, first, cores=len(first.subgraphs), timing=settings.timing,
            max_steps=settings.max_steps, limit_ps=settings.limit_ps, hang_timeout_ps=settings.hang_timeout_ps,
            max_seconds=settings.max_seconds,
        )  # fmt: skip
        try:
            why = decided_by_data(machine.seat.device)
            if not why:
                started = perf_counter()
                with guard(machine):
                    machine.run()
                return _result(machine, where, perf_counter() - started)
        except Faulted as fault:
            why = f"the program faults: {fault}"
        finally:
            machine.seat.device.release()
    if where.ranks > MOST_APART:
        raise UnsupportedError(f"the times of {where.ranks} ranks without their data: {why}; "
                               f"one by one at most {MOST_APART} are emulated")  # fmt: skip
    found = execute_ranks(each, inputs(), where, settings, guard=guard)
    return replace(
        found, results=tuple(replace(one, outputs={}, outputs_by_core=()) for one in found.results), apart=why
    )


def _result(machine: TimedMachine, where: Ranks, seconds: float) -> RankedResult:
    found: dict[int, Result] = {}
    for moment, ranks in machine.ends.items():
        device = machine.seat.stand_at_end(moment)
        one = Result({}, (), hang=device.hang, time_ps=device.now_ps, stats=stats_of(device, seconds))
        found.update(dict.fromkeys(ranks, one))
    place = machine.machine.place
    return RankedResult(
        machine.machine.instance.name, where.nodes, tuple(place(rank) for rank in range(where.ranks)),
        tuple(found[rank] for rank in range(where.ranks)),
        in_order(met_of(machine, one) for one in machine.communicators.meetings.values()), machine.hang, seconds,
        machine.trigger_ps, histories=len(machine.ends),
    )  # fmt: skip
