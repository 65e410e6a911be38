"""`neurontools arch show`: what an instance or a chip is made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.arch.rows import FactRow, fact_rows, fact_text
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.text.table import table


class DeviceRow(NamedTuple):
    """One chip of an instance."""

    device: int
    core_ids: Annotated[str, "logical cores, as the runtime numbers them"]
    connected: Annotated[tuple[int, ...] | None, "chips it is wired to; None where that has not been published"]
    bdf: Annotated[str | None, "PCI address, where a table has been published"]
    cpu_affinity: str | None
    numa_node: int | None


class CoreRow(NamedTuple):
    """One logical core of a chip."""

    core: int
    physical: tuple[int, ...]
    hbm: Annotated[int, "stack that the core uses"]


class Shown(NamedTuple):
    """The result of `arch show`."""

    name: str
    chip: Annotated[str, "title of the chip"]
    target: str
    core: Annotated[str, "generation of its cores"]
    emulated: Annotated[bool, "False for a chip that is only described"]
    wiring: Annotated[str | None, "ring, torus, switched, single or unpublished; None of a chip alone"]
    shape: tuple[int, ...]
    lnc: int
    chips: int
    cores: Annotated[int, "logical cores of the whole instance"]
    instance_facts: tuple[FactRow, ...]
    chip_facts: tuple[FactRow, ...]
    link_facts: tuple[FactRow, ...]
    core_table: tuple[CoreRow, ...]
    devices: tuple[DeviceRow, ...]


class InstanceRow(NamedTuple):
    """One instance type in the list."""

    name: str
    chip: str
    chips: int
    servers: int
    wiring: str
    device_bytes: int
    efa_gbps: Annotated[float | None, "Gbit/s of the whole instance"]
    emulated: bool


class Listing(NamedTuple):
    """The result of `arch show` without a name."""

    instances: tuple[InstanceRow, ...]


def listing() -> Listing:
    """Return every instance type."""
    from emulator.machine.instances import INSTANCES  # deferred: start-up

    return Listing(
        tuple(
            InstanceRow(one.name, one.chip.title, one.chips, one.servers, one.wiring, one.device_bytes.whole,
                        None if one.efa is None else one.efa.value * 8 / 1e9, one.chip.emulated)
            for one in INSTANCES.values()
        )
    )  # fmt: skip


def shown(name: str, lnc: int | None = None) -> Shown:
    """Return what an instance type, or a chip alone, is made of; NotFoundError for neither."""
    from emulator.machine.chips import CHIPS  # deferred: start-up
    from emulator.machine.hosts import host_devices  # deferred: start-up
    from emulator.machine.instances import instance_of  # deferred: start-up
    from emulator.machine.links import figures_of  # deferred: start-up
    from emulator.machine.topology import topology_of  # deferred: start-up
    from formats.errors import UnsupportedError  # deferred: start-up

    alone = CHIPS.get(name.strip().lower())
    instance = None if alone else instance_of(name)
    chip = alone or CHIPS[instance.target if instance else ""]
    size = chip.lnc.whole if lnc is None else lnc
    if not 1 <= size <= chip.lnc.whole:
        raise UnsupportedError(f"NCC_EARG001: {chip.title} has no LNC {size}; its cores are used one by one"
                               + (" or in pairs" if chip.lnc.whole == 2 else ""))  # fmt: skip
    per_chip = chip.cores.whole // size
    per_stack = chip.cores.whole // chip.hbm_stacks.whole
    cores = tuple(
        CoreRow(core, tuple(range(core * size, (core + 1) * size)), core * size // per_stack)
        for core in range(per_chip)
    )
    devices: tuple[DeviceRow, ...] = ()
    if instance is not None:
        hosts = {one.device: one for one in host_devices(instance)}
        topology = None if instance.wiring == "unpublished" else topology_of(instance)
        devices = tuple(
            DeviceRow(
                device,
                f"{device * per_chip}-{(device + 1) * per_chip - 1}" if per_chip > 1 else str(device),
                None if topology is None else topology.neighbours(device),
                hosts[device].bdf if device in hosts else None,
                hosts[device].cpu_affinity if device in hosts else None,
                hosts[device].numa_node if device in hosts else None,
            )
            for device in range(instance.chips)
        )
    chips = instance.chips if instance else 1
    return Shown(
        chip.target if instance is None else instance.name, chip.title, chip.target, chip.core, chip.emulated,
        instance.wiring if instance else None, instance.shape if instance else (), size, chips, chips * per_chip,
        fact_rows(instance.facts) if instance else (), fact_rows(chip.facts),
        fact_rows(figures_of(instance, size)) if instance else (), cores, devices,
    )  # fmt: skip


def view(found: Shown) -> Iterator[str]:
    """Yield the text for people."""
    where = f", {found.chips} chips" if found.chips > 1 else ""
    yield f"{found.name}: {found.chip} ({found.core}{where}), LNC {found.lnc}, {found.cores} logical cores"
    if not found.emulated:
        yield "described only: programs for it are refused"
    if found.wiring:
        extent = " x ".join(map(str, found.shape))
        yield f"wiring: {found.wiring}" + (f" of {extent}" if found.chips > 1 else "")
    for title, rows in (("instance", found.instance_facts), ("chip", found.chip_facts), ("links", found.link_facts)):
        if rows:
            yield ""
            yield from table([title, "value", "known", "source"],
                             [[row.name, fact_text(row), row.provenance, row.cite] for row in rows])  # fmt: skip
    yield ""
    cores = [[str(row.core), ", ".join(map(str, row.physical)), str(row.hbm)] for row in found.core_table]
    yield from table(["logical core", "physical cores", "HBM stack"], cores)
    if found.devices:
        yield ""
        yield from table(
            ["device", "core ids", "connected to", "PCI", "CPUs", "NUMA"],
            [[str(row.device), row.core_ids, _connected(row), row.bdf, row.cpu_affinity, row.numa_node]
             for row in found.devices],
        )  # fmt: skip


def _connected(row: DeviceRow) -> str:
    if row.connected is None:
        return "not published"
    if len(row.connected) > 8:
        return f"all {len(row.connected)} others, by switches"
    return ", ".join(map(str, row.connected)) or "-"


def list_view(found: Listing) -> list[str]:
    """Return the list of instance types for people."""
    rows = [
        [row.name, row.chip, row.chips, row.servers, row.wiring, f"{row.device_bytes >> 30} GiB",
         None if row.efa_gbps is None else f"{row.efa_gbps:,.0f} Gbit/s", "yes" if row.emulated else "described only"]
        for row in found.instances
    ]  # fmt: skip
    return table(["instance", "chip", "chips", "servers", "wiring", "device memory", "network", "emulated"], rows)


def show(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="An instance type (trn2.48xlarge) or a chip (trn2).", show_default=False),
    ] = None,
    lnc: Annotated[
        int | None, typer.Option("--lnc", metavar="N", min=1, max=2, help="Physical cores a logical core has.")
    ] = None,
    json: Json = False,
) -> None:
    """Show what an instance or a chip is made of; without a name, list the instance types.

    Every number says how it is known (documented, observed, inferred, ours) and where it is written.
    """
    with report("arch show", json, name=name, lnc=lnc) as out:
        if name is None:
            out.result = every = listing()
            out.lines = lambda: list_view(every)
        else:
            out.result = one = shown(name, lnc)
            out.lines = lambda: view(one)


app = command_app(show, result=Shown | Listing)
