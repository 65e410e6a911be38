"""What would order the two sides of a race, in words."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import islice

from emulator.checks.clocks import Key
from emulator.checks.finding import Site, SuggestedWait
from emulator.checks.place import condition
from formats.named_tuple import NamedTuple

__all__ = ["Carried", "carried", "hint_of", "wait_of"]


class Carried(NamedTuple):
    """What an actor signals from a unit on: whose it is, its first signal, and its first one to semaphores of a core.

    The latter two are the semaphore or event and its value, None where there is none.
    """

    core: int
    engine: str
    first: tuple[Key, int] | None
    there: tuple[Key, int] | None


def carried(actor: tuple[int, str], signals: Sequence[tuple[int, Key, int]], number: int, core: int) -> Carried:
    """Return what an actor signals from its unit of a number on: to anybody, and to semaphores of a core.

    `signals` are those of the actor: number of the unit, what it raised, to what value.
    """
    first = there = None
    place = bisect_left(signals, (number,))
    for _, key, value in islice(signals, place, None):
        if first is None:
            first = key, value
        # An event is consumed by who waits for it: it is not there for others.
        if key[0] == core and key[1] == "semaphore":
            there = key, value
            break
    return Carried(*actor, first, there)


def hint_of(before: Carried, site: Site) -> str:
    """Name the wait that would put a site behind a unit: the first signal its actor gives from there on."""
    core, engine = before.core, before.engine
    if before.first is not None:
        key, value = before.first
        if key[0] == site.core:
            at = "" if site.engine != site.owner else f" at or before pc {site.pc}"
            return f"let {site.owner} wait for {condition(key, value)}{at}"
        return (
            f"nc{core} {engine} raises only S[{key[2]}] of nc{key[0]}: put a barrier of both cores between the two "
            "(nisa.core_barrier in a kernel)"
        )
    return f"nothing that nc{core} {engine} does from there on signals; raise a semaphore there and wait for it"


def wait_of(before: Carried, site: Site, behind: bool = False) -> SuggestedWait:
    """Return the wait that puts a site behind a unit; its semaphore is -1 where no signal would carry it."""
    if before.there is not None:
        key, value = before.there
        at = "" if site.engine != site.owner or behind else f" at or before pc {site.pc}"
        text = f"let {site.owner} wait for {condition(key, value)}{at}"
        return SuggestedWait(site.core, site.owner, site.pc, key[2], value, text, behind)
    text = f"raise a semaphore behind what nc{before.core} {before.engine} does, and let {site.owner} wait for it"
    return SuggestedWait(site.core, site.owner, site.pc, -1, 0, text, behind)
