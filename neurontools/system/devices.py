"""Devices of an instance as neuron-ls lists them, and the programs that use them. Source: runtime.md 13.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from formats.named_tuple import NamedTuple
from neurontools.command.results import LEFT_OUT

if TYPE_CHECKING:
    from emulator.machine.instances import Instance
    from emulator.runtime.ledger_state import MachineState

__all__ = ["DeviceRow", "ProcessRow", "device_rows", "id_ranges", "ls_lines", "memory_text", "topology_lines"]

_COMMAND, _WIDE = 40, 80
_RUNTIME = "2.0.0"  # what neuron-ls shows of every runtime of this generation, in all its documented samples


class ProcessRow(NamedTuple):
    """One program that uses a device."""

    pid: int
    command: str
    neuron_runtime_version: str


class DeviceRow(NamedTuple):
    """One device, by the names that neuron-ls gives its fields."""

    neuron_device: int
    bdf: Annotated[str | None, LEFT_OUT]
    cpu_affinity: Annotated[str | None, LEFT_OUT]
    numa_node: Annotated[str | None, LEFT_OUT]
    connected_to: list[int] | None
    nc_count: int
    logical_neuroncore_config: Annotated[int | None, LEFT_OUT]
    memory_size: int
    neuroncore_ids: list[int]
    neuron_processes: list[ProcessRow]


def device_rows(instance: Instance, lnc: int, states: list[MachineState]) -> list[DeviceRow]:
    """Return the devices of one server; addresses and CPUs are left out where they have not been published."""
    from emulator.machine.hosts import host_devices  # deferred: start-up
    from emulator.machine.topology import topology_of  # deferred: start-up

    chip = instance.chip
    hosts = host_devices(instance)
    each = chip.cores.whole // lnc
    topology = None if instance.wiring == "unpublished" else topology_of(instance)
    rows = []
    for device in range(instance.chips_per_server):
        cores = [*range(device * each, (device + 1) * each)]
        processes = [ProcessRow(state.pid, state.command, _RUNTIME) for state in states
                     if device in {one.allocation.stack.device for one in state.ledger.entries.values()}]  # fmt: skip
        host = hosts[device] if device < len(hosts) else None
        linked = None if topology is None else [one for one in topology.neighbours(device)
                                                if one < instance.chips_per_server]  # fmt: skip
        rows.append(DeviceRow(
            device, host and host.bdf.removeprefix("0000:"), host and host.cpu_affinity, host and str(host.numa_node),
            linked, each, lnc if chip.lnc.whole > 1 else None,
            chip.hbm_stacks.whole * chip.hbm_bytes.whole, cores, processes,
        ))  # fmt: skip
    return rows


def id_ranges(numbers: list[int]) -> str:
    """Return core numbers as a column has them, "0-3"."""
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"


def memory_text(nbytes: int) -> str:
    """Return memory as a column has it, "96 GB"."""
    return f"{nbytes >> 30} GB"


def _boxed(heads: list[tuple[str, str]], groups: list[list[list[str]]], *, between: bool = False) -> list[str]:
    """Return a table in a box: headings of two lines centred, cells to the left, rules around and between groups."""
    rows = [row for group in groups for row in group]
    widths = [max([len(a), len(b), *(len(row[at]) for row in rows)]) for at, (a, b) in enumerate(heads)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"

    def centred(text: str, width: int) -> str:
        return (" " * ((width - len(text)) // 2) + text).ljust(width)

    lines = [rule]
    for half in (0, 1):
        lines.append("| " + " | ".join(centred(head[half], w) for head, w in zip(heads, widths, strict=True)) + " |")
    lines.append(rule)
    for group in groups:
        lines += ["| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + " |" for row in group]
        if between:
            lines.append(rule)
    return lines if between else [*lines, rule]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def ls_lines(rows: list[DeviceRow], how: str) -> list[str]:
    """Return the table: `how` is plain, wide, processes (each program of a device) or topology."""

    def linked(row: DeviceRow) -> str:
        return "" if row.connected_to is None else ", ".join(map(str, row.connected_to))

    heads = [("NEURON", "DEVICE"), ("NEURON", "CORES"), ("NEURON", "MEMORY"), ("CONNECTED", "DEVICES"), ("PCI", "BDF")]
    head_of = [[str(row.neuron_device), str(row.nc_count), memory_text(row.memory_size), linked(row), row.bdf or ""]
               for row in rows]  # fmt: skip
    if how == "plain":
        heads.insert(2, ("NEURON", "CORE IDS"))
        heads += [("CPU", "AFFINITY"), ("NUMA", "NODE")]
        heads[5] = ("PCI", "BDF")
        groups = [[[cells[0], cells[1], id_ranges(row.neuroncore_ids), *cells[2:4],
                    f"0000:{row.bdf}" if row.bdf else "", row.cpu_affinity or "", row.numa_node or ""]
                   for cells, row in zip(head_of, rows, strict=True)]]  # fmt: skip
        return _boxed(heads, groups)
    if how == "topology":
        return _boxed(heads, [head_of])
    heads += [("PID", ""), ("COMMAND", ""), ("RUNTIME", "VERSION")]
    width = _WIDE if how == "wide" else _COMMAND
    groups = []
    for cells, row in zip(head_of, rows, strict=True):
        found = [[str(one.pid), _cut(one.command, width), one.neuron_runtime_version] for one in row.neuron_processes]
        found = found or [["", "", ""]]
        groups.append([[*(cells if not number else [""] * len(cells)), *one] for number, one in enumerate(found)])
    return _boxed(heads, groups, between=how == "processes")


def topology_lines(columns: int, devices: int) -> list[str]:
    """Return the drawing of a torus of `columns` devices a row: its links, and stars where they wrap around."""
    width = 9 * columns + 4

    def down(mark: str) -> str:
        return ("      " + (mark + " " * 8) * columns)[:width].ljust(width)

    lines = ["Neuron Device Topology", down("*"), down("│"), down("▼")]
    for first in range(0, devices, columns):
        cells = (f"[{device:>2} ]" if device < 10 else f"[{device} ]" for device in range(first, first + columns))
        lines += ["*––►" + "◄––►".join(cells) + "◄––*", down("▲"), down("│")]
        lines.append(down("▼" if first + columns < devices else "*"))
    return [*lines, "", "Legend:", "", "        *––► = Wrap-around link"]
