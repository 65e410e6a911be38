"""`neurontools arch cycles`: edge-disjoint Hamiltonian cycles and the hypercube of a topology, with their proof."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from formats.named_tuple import NamedTuple
from neurontools.arch.rows import InstanceName
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report


class Cycles(NamedTuple):
    """The result of `arch cycles`."""

    name: str
    cycles: tuple[tuple[int, ...], ...]
    hamiltonian: Annotated[bool, "each visits every chip once"]
    disjoint: Annotated[bool, "no link is in two of them"]
    on_links: Annotated[bool, "every step is a link"]
    links_used: int
    links: int
    labels: Annotated[tuple[int, ...] | None, "hypercube label of each chip; None where it is no hypercube"]
    pairs_checked: Annotated[int, "pairs of chips whose labels were compared with the links"]
    pairs_wrong: tuple[str, ...]


def proved(name: str) -> Cycles:
    """Return the cycles of an instance and what checkers that know only its links find."""
    from emulator.machine import cycles as finders  # deferred: start-up
    from emulator.machine.instances import instance_of  # deferred: start-up
    from emulator.machine.topology import topology_of  # deferred: start-up
    from formats.errors import UnsupportedError  # deferred: start-up

    instance = instance_of(name)
    topology = topology_of(instance)
    cycles = finders.hamiltonian_cycles(topology)
    proof = finders.check_cycles(topology, cycles)
    labels: tuple[int, ...] | None = None
    wrong: tuple[str, ...] = ()
    pairs = 0
    try:
        labels = finders.hypercube_labels(topology)
        wrong, pairs = tuple(finders.check_hypercube(topology, labels)), topology.chips * (topology.chips - 1) // 2
    except UnsupportedError:
        pass  # a ring of twelve is no hypercube; its cycle is still to be shown
    return Cycles(instance.name, cycles, proof.hamiltonian, proof.disjoint, proof.on_links, proof.links_used,
                  proof.links, labels, pairs, wrong)  # fmt: skip


def view(found: Cycles) -> Iterator[str]:
    """Yield the text for people."""
    for number, cycle in enumerate(found.cycles):
        yield f"cycle {number}: " + " ".join(map(str, cycle))
    yield f"every chip once in each: {_yes(found.hamiltonian)}"
    yield f"every step a link: {_yes(found.on_links)}"
    yield f"no link twice: {_yes(found.disjoint)}; {found.links_used} of {found.links} links used"
    if found.labels is None:
        yield "no hypercube: its rings are not of four chips"
        return
    yield "hypercube labels: " + " ".join(map(str, found.labels))
    yield f"linked exactly where labels differ in one bit: {_yes(not found.pairs_wrong)}, {found.pairs_checked} pairs"


def _yes(holds: bool) -> str:
    return "proved" if holds else "NOT so"


def cycles(instance: InstanceName, json: Json = False) -> None:
    """Find edge-disjoint Hamiltonian cycles of an instance and prove them.

    Ring and KangaRing run over such cycles in parallel, recursive doubling along the axes of the hypercube.  What is
    printed was checked against the list of links.
    """
    with report("arch cycles", json, instance=instance) as out:
        out.result = found = proved(instance)
        out.lines = lambda: view(found)


app = command_app(cycles, result=Cycles)
