"""A machine: one instance or several joined by EFA, its ranks, its links, and the way of bytes from rank to rank."""

from __future__ import annotations

from itertools import pairwise

from emulator.arch import Fact
from emulator.machine.chips import executable
from emulator.machine.instances import Instance, instance_of
from emulator.machine.links import figures_of
from emulator.machine.topology import Topology, topology_of
from formats.errors import FormatError, NotFoundError, UnsupportedError
from formats.limits import MAX_RANKS
from formats.named_tuple import NamedTuple

__all__ = ["Hop", "Machine", "Place"]


class Place(NamedTuple):
    """Where a rank runs: the instance, the chip in it, the logical core of the chip."""

    node: int
    chip: int
    core: int


class Hop(NamedTuple):
    """One stretch of the way of bytes: a resource that they share with others, its rate, its latency.

    `name` is the same for all traffic that shares it in one direction.
    """

    name: str
    kind: str
    rate: float
    latency_ns: float


class Machine:
    """The ranks of one or several instances of a type, numbered chip by chip, instance by instance.

    Raises UnsupportedError for chips that are described only, for a wiring that has not been published, for more than
    one node of an instance without EFA, and for a logical core size that the chip does not have.
    """

    def __init__(self, instance: Instance | str, *, nodes: int = 1, lnc: int | None = None) -> None:
        self.instance = instance_of(instance) if isinstance(instance, str) else instance
        self.chip = executable(self.instance.target)
        self.topology: Topology = topology_of(self.instance)
        if not 1 <= nodes <= 4096:
            raise FormatError("number of nodes", expected="1 to 4096", got=nodes)
        if nodes > 1 and self.instance.efa is None:
            raise UnsupportedError(f"{self.instance.name} has no EFA: collectives stay inside one instance")
        self.nodes = nodes
        largest = self.chip.lnc.whole
        self.lnc = largest if lnc is None else lnc
        if not 1 <= self.lnc <= largest:
            raise UnsupportedError(
                f"NCC_EARG001: {self.instance.name} has no LNC {self.lnc}; its cores are used "
                + ("one by one" if largest == 1 else "one by one or in pairs")
            )
        self.ranks_per_chip = self.chip.cores.whole // self.lnc
        self.ranks_per_node = self.ranks_per_chip * self.instance.chips
        self.ranks = self.ranks_per_node * nodes
        if self.ranks > MAX_RANKS:
            raise UnsupportedError(f"{self.ranks:,} ranks; at most {MAX_RANKS:,} are emulated")
        self.figures: dict[str, Fact] = figures_of(self.instance, self.lnc)
        self._places: dict[int, Place] = {}

    def place(self, rank: int) -> Place:
        """Return where a rank runs; NotFoundError for one that the machine does not have."""
        known = self._places.get(rank)
        if known is not None:
            return known
        if not 0 <= rank < self.ranks:
            raise NotFoundError(f"no rank {rank}: {self.nodes} x {self.instance.name} have 0 to {self.ranks - 1}")
        node, inside = divmod(rank, self.ranks_per_node)
        found = self._places[rank] = Place(node, *divmod(inside, self.ranks_per_chip))
        return found

    def way(self, source: int, target: int) -> tuple[Hop, ...]:
        """Return the stretches that bytes pass from one rank's HBM to another's; nothing for a rank to itself."""
        a, b = self.place(source), self.place(target)
        if a == b:
            return ()
        if a.node != b.node:
            rate, latency = self.figures["efa_rate"].value, self.figures["efa_latency"].value
            # Two stretches, since traffic meets at either end; the latency counts once.
            return (
                Hop(f"efa out n{a.node} r{source % self.ranks_per_node}", "efa", rate, latency),
                Hop(f"efa in n{b.node} r{target % self.ranks_per_node}", "efa", rate, 0.0),
            )
        if a.chip == b.chip:
            local = self.figures["chip_rate"].value
            return (Hop(f"chip n{a.node} c{a.chip}", "chip", local, self.figures["chip_latency"].value),)
        return self._between_chips(a, b)

    def _between_chips(self, a: Place, b: Place) -> tuple[Hop, ...]:
        rate, hop = self.figures, self.figures["link_latency"].value
        if self.topology.switched:
            kind = self.topology.link(a.chip, b.chip).kind
            speed = rate["sled_rate" if kind == "sled-switch" else "rack_rate"].value
            return (
                Hop(f"{kind} out n{a.node} c{a.chip}", kind, speed, hop),
                Hop(f"{kind} in n{b.node} c{b.chip}", kind, speed, 0.0),
            )
        way = self.topology.route(a.chip, b.chip)
        found = []
        for one, two in pairwise(way):
            kind = self.topology.link(one, two).kind
            speed = rate["between_rate" if kind == "between-servers" else "link_rate"].value
            found.append(Hop(f"{kind} n{a.node} c{one}>c{two}", kind, speed, hop))
            hop = self.figures["route_latency"].value  # what passes through a chip is routed, not stored
        return tuple(found)
