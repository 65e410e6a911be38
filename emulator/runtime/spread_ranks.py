"""Run programs on ranks that several processes share out between them; what comes out is what one process gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from typing import Any

from emulator.errors import InputError
from emulator.machine.arbitration import MAX_STREAMS, packet_sizes
from emulator.runtime.execution import check_inputs
from emulator.runtime.ranks import RankedResult, Ranks, away_of, in_order, machine_of, met_of
from emulator.runtime.site import SiteOrder
from emulator.runtime.spread import Asker, SpreadMachine, bytes_time
from emulator.settings import Settings
from formats.neff import Neff

__all__ = ["Sites", "spread_ranks"]

Sites = Callable[[Sequence[SiteOrder]], AbstractContextManager[Sequence[Asker]]]
"""Make a site of every order, for a while; return what asks each."""


def spread_ranks(
    neffs: Sequence[Neff | None], inputs: Sequence[Mapping[str, Any]], where: Ranks, settings: Settings, count: int,
    sites: Sites, *, guard: Callable[[SpreadMachine], AbstractContextManager[object]] = nullcontext,
) -> RankedResult:  # fmt: skip
    """Return what `execute_ranks` does, of ranks spread over `count` sites in blocks; errors as there."""
    if len(neffs) != where.ranks or len(inputs) != where.ranks:
        raise InputError(f"{len(neffs)} programs and {len(inputs)} sets of inputs for {where.ranks} ranks")
    arrays = [{} if neff is None else check_inputs(neff, given) for neff, given in zip(neffs, inputs, strict=True)]
    machine = machine_of(neffs, where)
    if where.ranks > machine.ranks:
        raise InputError(f"{where.ranks} ranks; {machine.instance.name} has 1 to {machine.ranks}")
    orders = []
    count = max(1, min(count, where.ranks))
    for site in range(count):
        ranks = tuple(range(where.ranks * site // count, where.ranks * (site + 1) // count))
        programs: dict[int, bytes] = {}
        for neff in (neffs[rank] for rank in ranks):
            if neff is not None and id(neff) not in programs:
                programs[id(neff)] = neff.to_bytes()
        numbers = {each: at for at, each in enumerate(programs)}
        which = tuple(-1 if neff is None else numbers[id(neff)] for neff in (neffs[rank] for rank in ranks))
        orders.append(SiteOrder(
            ranks, tuple(programs.values()), which,
            tuple(arrays[rank] for rank in ranks), machine.instance.target, machine.lnc, settings,
            packet_sizes(None, (), MAX_STREAMS)[0], int(machine.figures["trigger"].value * 1000),
            bytes_time(machine, machine.lnc),
        ))  # fmt: skip
    spread = SpreadMachine(machine, orders, settings.seed)
    started = perf_counter()
    with sites(orders) as askers, guard(spread):
        spread.run(askers)
    seconds = perf_counter() - started
    met = in_order(met_of(spread, one) for one in spread.communicators.meetings.values())
    return RankedResult(
        machine.instance.name, where.nodes, tuple(machine.place(rank) for rank in range(where.ranks)),
        tuple(spread.results), met, spread.hang, seconds, spread.trigger_ps,
        away=away_of(neffs),
    )  # fmt: skip
