"""`neurontools doctor numa`: which CPUs are near which cores, and which to keep for the runtime's own threads."""

from __future__ import annotations

from typing import Annotated

import typer

from formats.errors import NotFoundError, UnsupportedError
from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.text.table import ranges, table


class NumaRow(NamedTuple):
    """One device: its NUMA node, its CPUs, its logical cores."""

    device: int
    node: int
    cpus: str
    cores: list[int]


class NumaMap(NamedTuple):
    """The result of `doctor numa`."""

    instance: str
    lnc: int
    vcpus: int
    rows: list[NumaRow]
    low_latency: Annotated[str, "for NEURON_RT_LOW_LATENCY_TASKS_CPU_AFFINITY"]
    taskset: Annotated[str, "the other CPUs, for taskset --cpu-list"]
    provenance: Annotated[str, "of the two lists: documented for trn2.48xlarge, by its rule elsewhere"]


def numa_map(instance: str, lnc: int | None, core: int | None) -> NumaMap:
    """Return the devices of an instance by NUMA node, of one core if asked.

    Raises UnsupportedError where no table of CPUs has been published, NotFoundError for a core that is not there.
    """
    from emulator.machine.hosts import host_devices  # deferred: start-up
    from emulator.machine.instances import instance_of  # deferred: start-up
    from neurontools.doctor.host import cpu_text, numa_nodes, reserved  # deferred: start-up

    kind = instance_of(instance)
    hosts = host_devices(kind)
    if not hosts:
        raise UnsupportedError(f"the CPUs of {kind.name} have not been published")
    most = kind.chip.lnc.whole
    if lnc is not None and lnc > most:
        raise UnsupportedError(f"{kind.name} has no LNC {lnc}; its cores are used one by one")
    size = lnc or most
    each = kind.chip.cores.whole // size
    rows = [NumaRow(one.device, one.numa_node, one.cpu_affinity, [*range(one.device * each, (one.device + 1) * each)])
            for one in hosts]  # fmt: skip
    if core is not None:
        rows = [row for row in rows if core in row.cores]
        if not rows:
            raise NotFoundError(f"no core nc{core}: {kind.name} with LNC {size} has nc0 to nc{len(hosts) * each - 1}")
    nodes = numa_nodes(kind)
    kept = reserved(nodes)
    others = tuple(cpu for node in nodes for cpu in node.cpus if cpu not in kept)
    provenance = "documented" if kind.name == "trn2.48xlarge" else "inferred"
    return NumaMap(kind.name, size, kind.vcpus.whole, rows, cpu_text(kept), cpu_text(others), provenance)


def view(found: NumaMap) -> list[str]:
    """Return the devices, and the two lists of CPUs."""
    rows = [[row.device, row.node, row.cpus, ranges(row.cores)] for row in found.rows]
    return [
        f"{found.instance}, LNC {found.lnc}, {found.vcpus} CPUs",
        "",
        *table(["device", "NUMA node", "CPUs", "cores"], rows),
        "",
        f"NEURON_RT_LOW_LATENCY_TASKS_CPU_AFFINITY={found.low_latency}",
        f"taskset --cpu-list {found.taskset} PROGRAM",
        f"  {found.provenance}: the last sixth of each range of CPUs, on every node (runtime.md 5)",
    ]


def doctor_numa(
    instance: Annotated[str, typer.Option("--instance", metavar="TYPE", help="Instance type.")] = "trn2.48xlarge",
    lnc: Annotated[
        int | None, typer.Option("--lnc", metavar="N", min=1, max=2, help="Physical cores a core.", show_default=False)
    ] = None,
    core: Annotated[
        int | None, typer.Option("--nc", metavar="N", min=0, help="Only this logical core.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Show which CPUs are near which cores, and which to keep for the runtime."""
    with report("doctor numa", json, instance=instance, lnc=lnc, nc=core) as out:
        found = numa_map(instance, lnc, core)
        out.result = found
        out.lines = lambda: view(found)


app = command_app(doctor_numa, result=NumaMap)
