"""The algorithms by name: which groups each is legal for and why not, and the phases that it is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from emulator.machine.collectives.builder import Builder
from emulator.machine.collectives.group import Group
from emulator.machine.collectives.kangaring import kanga_gather, kanga_scatter
from emulator.machine.collectives.mesh import mesh_gather, mesh_scatter, single_step, staged_gather, staged_scatter
from emulator.machine.collectives.rdh import rdh_gather, rdh_scatter
from emulator.machine.collectives.ring import flat_orders, ring_gather, ring_scatter
from emulator.machine.collectives.steps import Piece, Spans, Wait, joined
from formats.named_tuple import NamedTuple

__all__ = ["ALGORITHMS", "SIMPLE", "Algorithm", "Phase", "gather", "illegal", "one_step", "scatter"]

Algorithm = Literal["ring", "mesh", "rdh", "kangaring", "single-step-mesh", "hier", "flat-ring"]
ALGORITHMS: tuple[Algorithm, ...] = ("ring", "mesh", "rdh", "kangaring", "single-step-mesh", "hier", "flat-ring")
SIMPLE: tuple[Algorithm, ...] = ("ring", "mesh", "rdh", "kangaring")  # what a hierarchical one is made of

MAX_KANGARING = 256  # ranks (collectives.md 7)


class Phase(NamedTuple):
    """One algorithm over one group: what it is called in reports, its first step, what each rank waits for."""

    name: str
    first: int
    ready: dict[int, tuple[Wait, ...]]


def illegal(algorithm: Algorithm, group: Group, op: str) -> str:
    """Return why an algorithm cannot serve a group, "" where it can."""
    n = group.size
    if algorithm == "rdh":
        if group.nodes > 1 and group.per_chip > 1:
            return "recursive doubling between nodes wants one rank a chip; several ranks a node go hierarchically"
        if _flat(group):
            return "" if n & (n - 1) == 0 else f"{n} ranks are no power of two"
        if group.axes is None:
            return f"{group.chips} chips are no power of two"
        return "" if group.per_chip and group.same_cores else "chips take part with different ranks"
    if algorithm == "kangaring":
        if group.nodes > 1:
            return "KangaRing stays inside an instance"
        if not group.whole_chips:
            return "KangaRing is for groups with all ranks of each chip"
        if n > MAX_KANGARING:
            return f"{n} ranks; KangaRing has at most {MAX_KANGARING}"
        return "" if group.per_chip % 2 == 0 else "chips of one rank have no pairs"
    if algorithm == "mesh":
        if _flat(group) or group.nodes > 1:
            return ""
        return "" if group.per_chip and group.same_cores else "chips take part with different ranks"
    if algorithm == "single-step-mesh":
        return "" if op == "allreduce" else "only AllReduce has a single step"
    if algorithm == "hier":
        if group.nodes == 1:
            return "one node only"
        return "" if group.symmetric else "nodes take part with different local ranks"
    if algorithm == "flat-ring":
        return "" if group.nodes > 1 else "one node only"
    return ""


def _flat(group: Group) -> bool:
    """Return whether every rank has a chip for itself."""
    return group.chips == group.size


def gather(b: Builder, algorithm: Algorithm, group: Group, chunks: Sequence[Spans], buffer: str, phase: Phase) -> int:
    """Write the moves by which every rank gets all chunks; return the number of steps."""
    name, first, ready = phase
    if group.size == 1:
        return 0
    if algorithm in ("ring", "flat-ring"):
        orders = flat_orders(group) if algorithm == "flat-ring" else group.orders
        return ring_gather(b, group, chunks, orders, buffer, name, first, ready)
    if algorithm == "kangaring":
        return kanga_gather(b, group, chunks, buffer, name, first, ready)
    if algorithm == "rdh":
        return rdh_gather(b, group, chunks, buffer, name, first, ready, flat=group.nodes > 1)
    if _flat(group) or group.nodes > 1:
        return mesh_gather(b, group, chunks, buffer, name, first, ready)
    return staged_gather(b, group, chunks, buffer, name, first, ready)


def scatter(
    b: Builder, algorithm: Algorithm, group: Group, chunks: Sequence[Spans], source: str,
    result: Callable[[int, Spans], Piece], phase: Phase,
) -> int:  # fmt: skip
    """Write the moves that leave every rank with its chunk reduced; return the number of steps."""
    name, first, ready = phase
    if group.size == 1:
        rank = group.ranks[0]
        b.move(rank, [b.at(rank, source, chunks[0])], [result(rank, chunks[0])], step=-1, phase=name, waits=ready[rank])
        return 0
    if algorithm in ("ring", "flat-ring"):
        orders = flat_orders(group) if algorithm == "flat-ring" else group.orders
        return ring_scatter(b, group, chunks, orders, source, result, name, first, ready)
    if algorithm == "kangaring":
        return kanga_scatter(b, group, chunks, source, result, name, first, ready)
    if algorithm == "rdh":
        return rdh_scatter(b, group, chunks, source, result, name, first, ready, flat=group.nodes > 1)
    if _flat(group) or group.nodes > 1:
        return mesh_scatter(b, group, chunks, source, result, name, first, ready)
    return staged_scatter(b, group, chunks, source, result, name, first, ready)


def one_step(b: Builder, group: Group, whole: Spans, phase: Phase) -> int:
    """Write the moves of the single-step Mesh AllReduce; return the number of steps."""
    return single_step(b, group, joined([whole]), "in", "out", phase.name, phase.first, phase.ready)
