"""Where the host sees each chip: PCI address, CPUs that are near it, NUMA node, as neuron-ls prints them."""

from __future__ import annotations

from emulator.machine.instances import Instance
from formats.named_tuple import NamedTuple

__all__ = ["HOSTS", "HostDevice", "host_devices"]


class HostDevice(NamedTuple):
    """One chip as its host sees it."""

    device: int
    bdf: str
    cpu_affinity: str
    numa_node: int


# Rows: PCI address, CPUs, NUMA node; devices in their order. Source: machine.md 5.
# fmt: off
_ROWS: dict[str, tuple[tuple[str, str, int], ...]] = {
    "trn1.32xlarge": (
        ("0000:10:1c.0", "0-31,64-95", 0),
        ("0000:10:1d.0", "0-31,64-95", 0),
        ("0000:a0:1c.0", "32-63,96-127", 1),
        ("0000:a0:1d.0", "32-63,96-127", 1),
        ("0000:20:1b.0", "0-31,64-95", 0),
        ("0000:20:1c.0", "0-31,64-95", 0),
        ("0000:90:1b.0", "32-63,96-127", 1),
        ("0000:90:1c.0", "32-63,96-127", 1),
        ("0000:20:1d.0", "0-31,64-95", 0),
        ("0000:20:1e.0", "0-31,64-95", 0),
        ("0000:90:1d.0", "32-63,96-127", 1),
        ("0000:90:1e.0", "32-63,96-127", 1),
        ("0000:10:1e.0", "0-31,64-95", 0),
        ("0000:10:1b.0", "0-31,64-95", 0),
        ("0000:a0:1e.0", "32-63,96-127", 1),
        ("0000:a0:1b.0", "32-63,96-127", 1),
    ),
    "inf2.48xlarge": (
        ("0000:80:1e.0", "48-71,144-167", 2),
        ("0000:90:1e.0", "72-95,168-191", 3),
        ("0000:80:1d.0", "48-71,144-167", 2),
        ("0000:90:1f.0", "72-95,168-191", 3),
        ("0000:80:1f.0", "48-71,144-167", 2),
        ("0000:90:1d.0", "72-95,168-191", 3),
        ("0000:20:1e.0", "24-47,120-143", 1),
        ("0000:20:1f.0", "24-47,120-143", 1),
        ("0000:10:1e.0", "0-23,96-119", 0),
        ("0000:10:1f.0", "0-23,96-119", 0),
        ("0000:10:1d.0", "0-23,96-119", 0),
        ("0000:20:1d.0", "24-47,120-143", 1),
    ),
    "trn2.48xlarge": (
        ("0000:cc:00.0", "48-95,144-191", 1),
        ("0000:b5:00.0", "48-95,144-191", 1),
        ("0000:b6:00.0", "48-95,144-191", 1),
        ("0000:cb:00.0", "48-95,144-191", 1),
        ("0000:6f:00.0", "0-47,96-143", 0),
        ("0000:58:00.0", "0-47,96-143", 0),
        ("0000:59:00.0", "0-47,96-143", 0),
        ("0000:6e:00.0", "0-47,96-143", 0),
        ("0000:9b:00.0", "0-47,96-143", 0),
        ("0000:84:00.0", "0-47,96-143", 0),
        ("0000:85:00.0", "0-47,96-143", 0),
        ("0000:9a:00.0", "0-47,96-143", 0),
        ("0000:f8:00.0", "48-95,144-191", 1),
        ("0000:e1:00.0", "48-95,144-191", 1),
        ("0000:e2:00.0", "48-95,144-191", 1),
        ("0000:f7:00.0", "48-95,144-191", 1),
    ),
}
# fmt: on

HOSTS: dict[str, tuple[HostDevice, ...]] = {
    name: tuple(HostDevice(device, *row) for device, row in enumerate(rows)) for name, rows in _ROWS.items()
}
# Trn1n and Trn2u are the same boards with another network.
HOSTS["trn1n.32xlarge"] = HOSTS["trn1.32xlarge"]
HOSTS["trn2u.48xlarge"] = HOSTS["trn2.48xlarge"]


def host_devices(instance: Instance) -> tuple[HostDevice, ...]:
    """Return the chips of one server as its host sees them; nothing where no such table has been published."""
    return HOSTS.get(instance.name, ())
