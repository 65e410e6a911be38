"""CPUs and NUMA nodes of an instance, and which of them the documentation would keep for latency-sensitive threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.named_tuple import NamedTuple
from formats.nrt.environment import parse_cpus
from neurontools.text.table import ranges

if TYPE_CHECKING:
    from emulator.machine.instances import Instance

__all__ = ["NumaNode", "cpu_text", "numa_nodes", "reserved"]

_SHARE = 6  # of each range one sixth at its end: the documented 8 of 48 of trn2.48xlarge (runtime.md 5)


class NumaNode(NamedTuple):
    """One NUMA node: its CPUs and its devices."""

    node: int
    cpus: tuple[int, ...]
    devices: tuple[int, ...]


def numa_nodes(instance: Instance) -> tuple[NumaNode, ...]:
    """Return the NUMA nodes of an instance with devices on them; nothing where no table has been published."""
    from emulator.machine.hosts import host_devices  # deferred: start-up

    nodes: dict[int, tuple[str, list[int]]] = {}
    for one in host_devices(instance):
        nodes.setdefault(one.numa_node, (one.cpu_affinity, []))[1].append(one.device)
    return tuple(
        NumaNode(node, parse_cpus(cpus) or (), tuple(devices)) for node, (cpus, devices) in sorted(nodes.items())
    )


def cpu_text(cpus: tuple[int, ...]) -> str:
    """Return CPUs as lists of them are written, "0-3,8"."""
    return ranges(sorted(cpus)).replace(", ", ",") if cpus else ""


def reserved(nodes: tuple[NumaNode, ...]) -> tuple[int, ...]:
    """Return CPUs for latency-sensitive threads: the last sixth of each range, as in the documented example."""
    kept: list[int] = []
    for node in nodes:
        runs: list[list[int]] = []
        for cpu in node.cpus:
            if runs and cpu == runs[-1][-1] + 1:
                runs[-1].append(cpu)
            else:
                runs.append([cpu])
        for run in runs:
            kept += run[len(run) - len(run) // _SHARE :]
    return tuple(sorted(kept))
