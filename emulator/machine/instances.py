"""Every documented instance type: chips, wiring, host, network, each number with its source."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Literal

from emulator.arch import Fact
from emulator.machine.chips import CHIPS, Chip
from emulator.machine.facts import GB, GIB, documented, inferred
from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple

__all__ = ["ALIASES", "INSTANCES", "Instance", "Wiring", "instance_of"]

Wiring = Literal["single", "ring", "torus", "switched", "unpublished"]


class Instance(NamedTuple):
    """One shape as EC2 offers it; an UltraServer counts as one, of several servers.

    `shape` is the extent of the wiring: (12,) a ring, (4, 4) a torus of rows and columns, (4, 4, 4) with the ring
    between servers first; of a switched fabric the sleds and the chips of one.  `family` and `size` are the numbers by
    which the runtime's public header knows them, None where it has none.
    """

    name: str
    target: str
    family: int | None
    size: int | None
    chips: int
    servers: int
    wiring: Wiring
    shape: tuple[int, ...]
    vcpus: Fact
    host_bytes: Fact
    device_bytes: Fact
    device_bandwidth: Fact
    neuronlink: Fact | None
    neuronlink_between: Fact | None
    efa: Fact | None

    @property
    def chip(self) -> Chip:
        """Return what its chips are."""
        return CHIPS[self.target]

    @property
    def wiring_known(self) -> str:
        """Return how its wiring is known: the table of connected devices of the half Inf2 has not been published."""
        return "inferred" if self.name == "inf2.24xlarge" else "documented"

    @property
    def chips_per_server(self) -> int:
        """Return the chips of one server."""
        return self.chips // self.servers

    @property
    def facts(self) -> dict[str, Fact]:
        """Return every fact that is known, by name."""
        return {name: value for name, value in self._asdict().items() if isinstance(value, Fact)}


def _d(value: float, unit: str) -> Fact:
    return documented(value, unit, "machine.md 1")


_B, _D = GIB, GB  # bytes/s in binary and in decimal units, as the pages give them

# name, target, family and size of the header; chips, servers; wiring, shape; vCPUs, host GiB, device GiB; bytes/s of
# device memory; bytes/s of NeuronLink per chip inside a server, between servers; Gbit/s of network.
# fmt: off
_ROWS: tuple[tuple[str, str, int | None, int | None, int, int, Wiring, tuple[int, ...], int, int, int, float,
                   float | None, float | None, float | None], ...] = (
    ("inf1.xlarge", "inf1", 1, 0, 1, 1, "single", (1,), 4, 8, 8, 50 * _B, None, None, 25),
    ("inf1.2xlarge", "inf1", 1, 1, 1, 1, "single", (1,), 8, 16, 8, 50 * _B, None, None, 25),
    ("inf1.6xlarge", "inf1", 1, 3, 4, 1, "unpublished", (4,), 24, 48, 32, 200 * _B, 32 * _B, None, 25),
    ("inf1.24xlarge", "inf1", 1, 5, 16, 1, "unpublished", (16,), 96, 192, 128, 800 * _B, 32 * _B, None, 100),
    ("inf2.xlarge", "inf2", 4, 0, 1, 1, "single", (1,), 4, 16, 32, 820 * _B, None, None, None),
    ("inf2.8xlarge", "inf2", 4, 4, 1, 1, "single", (1,), 32, 128, 32, 820 * _B, None, None, None),
    ("inf2.24xlarge", "inf2", 4, 5, 6, 1, "ring", (6,), 96, 384, 192, 4920 * _B, 192 * _B, None, None),
    ("inf2.48xlarge", "inf2", 4, 7, 12, 1, "ring", (12,), 192, 768, 384, 9840 * _B, 192 * _B, None, None),
    ("trn1.2xlarge", "trn1", 2, 1, 1, 1, "single", (1,), 8, 32, 32, 820 * _B, None, None, 25),
    ("trn1.32xlarge", "trn1", 2, 6, 16, 1, "torus", (4, 4), 128, 512, 512, 13120 * _B, 384 * _B, None, 800),
    ("trn1n.32xlarge", "trn1", 3, 6, 16, 1, "torus", (4, 4), 128, 512, 512, 13120 * _B, 768 * _B, None, 1600),
    ("trn2.48xlarge", "trn2", 5, 7, 16, 1, "torus", (4, 4), 192, 2048, 1536, 46400 * _D, 1024 * _D, None, 3200),
    ("trn2u.48xlarge", "trn2", 9, 7, 16, 1, "torus", (4, 4), 192, 2048, 1536, 46400 * _D, 1024 * _D, 256 * _D, 3200),
    ("trn2-ultraserver", "trn2", 9, 7, 64, 4, "torus", (4, 4, 4),
     768, 8192, 6144, 185600 * _D, 1024 * _D, 256 * _D, 12800),
    ("trn3-ultraserver-gen1", "trn3", 14, None, 64, 4, "switched", (16, 4),
     768, 8192, 9216, 313600 * _D, 2048 * _B, None, 12800),
    ("trn3-ultraserver-gen2", "trn3", 14, None, 144, 36, "switched", (36, 4),
     2304, 27648, 20736, 705600 * _D, 2048 * _B, None, 28800),
)
# fmt: on


def _instance(row: tuple[str, str, int | None, int | None, int, int, Wiring, tuple[int, ...], int, int, int, float,
                         float | None, float | None, float | None]) -> Instance:  # fmt: skip
    name, target, family, size, chips, servers, wiring, shape, vcpus, host, device, bandwidth, link, between, efa = row
    gbps = None if efa is None else _d(efa * GB / 8, "bytes/s per instance")
    if name == "trn2-ultraserver" and efa is not None:
        # The table repeats the 3,200 Gbit/s of one instance; four instances bring four times that.
        gbps = inferred(efa * GB / 8, "bytes/s per instance", "machine.md 1")
    return Instance(
        name, target, family, size, chips, servers, wiring, shape, _d(vcpus, "per instance"),
        _d(host * GIB, "bytes per instance"), _d(device * GIB, "bytes per instance"),
        _d(bandwidth, "bytes/s per instance"), None if link is None else _d(link, "bytes/s per chip"),
        None if between is None else _d(between, "bytes/s per chip"), gbps,
    )  # fmt: skip


INSTANCES: dict[str, Instance] = {row[0]: _instance(row) for row in _ROWS}

# The guide of neuron-ls shows its tables of Trn2 under this name; no page describes another shape of it.
ALIASES = {"trn2n.48xlarge": "trn2.48xlarge"}


def instance_of(name: str) -> Instance:
    """Return an instance type by its name, in any case; NotFoundError with the nearest names for an unknown one."""
    wanted = name.strip().lower()
    found = INSTANCES.get(ALIASES.get(wanted, wanted))
    if found is None:
        near = get_close_matches(wanted, INSTANCES, n=3, cutoff=0.5)
        tail = f"; did you mean {' or '.join(near)}?" if near else f"; known are {', '.join(INSTANCES)}"
        raise NotFoundError(f"no instance type {name.strip()[:60]!r}{tail}")
    return found
