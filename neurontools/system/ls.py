"""`neurontools ls`: the Neuron devices of an instance, as neuron-ls lists them."""

from __future__ import annotations

import json as json_module
import os
from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.command.results import plain
from neurontools.system.devices import DeviceRow, device_rows, ls_lines, topology_lines


class DeviceList(NamedTuple):
    """The result of `ls`; `devices` is what `neuron-ls --json-output` prints."""

    instance_type: str
    instance_id: str
    logical_neuroncore_config: int
    devices: list[DeviceRow]


def view(found: DeviceList, how: str, columns: int | None) -> list[str]:
    """Return the header lines and the table, with a drawing where devices are wired as a torus."""
    lines = [f"instance-type: {found.instance_type}", f"instance-id: {found.instance_id}"]
    if found.devices and found.devices[0].logical_neuroncore_config is not None:
        lines.append(f"logical-neuroncore-config: {found.logical_neuroncore_config}")
    lines += ls_lines(found.devices, how)
    if how == "topology" and columns is not None:
        lines += ["", "", *topology_lines(columns, len(found.devices))]
    return lines


def ls(
    instance: Annotated[str, typer.Option("--instance", metavar="TYPE", help="Instance type.")] = "trn2.48xlarge",
    lnc: Annotated[
        int | None, typer.Option("--lnc", metavar="N", min=1, max=2, help="Physical cores a core.", show_default=False)
    ] = None,
    wide: Annotated[bool, typer.Option("--wide", "-w", help="Programs with longer command lines.")] = False,
    every: Annotated[bool, typer.Option("--show-all-procs", "-a", help="Every program of a device.")] = False,
    topology: Annotated[bool, typer.Option("--topology", "-t", help="How the devices are wired.")] = False,
    theirs: Annotated[bool, typer.Option("--json-output", "-j", help="Print the JSON that neuron-ls prints.")] = False,
    json: Json = False,
) -> None:
    """List the Neuron devices of an instance, as neuron-ls does.

    Any documented instance type; where nobody has published addresses, CPUs or wiring the columns are empty.  Programs
    are sessions that NEURONTOOLS_MACHINE shows.
    """
    from emulator.machine.instances import instance_of  # deferred: start-up
    from emulator.runtime.ledger_state import FOLDER_VARIABLE  # deferred: start-up
    from formats.errors import NotFoundError, UnsupportedError  # deferred: start-up
    from neurontools.memory.states import find_states  # deferred: start-up

    with report("ls", json, instance=instance, lnc=lnc) as out:
        kind = instance_of(instance)
        most = kind.chip.lnc.whole
        if lnc is not None and lnc > most:
            raise UnsupportedError(f"{kind.name} has no LNC {lnc}; its cores are used one by one")
        try:
            states = (
                [one for one in find_states(None) if one.instance == kind.name] if FOLDER_VARIABLE in os.environ else []
            )
        except NotFoundError:
            states = []
        rows = device_rows(kind, lnc or most, states)
        found = DeviceList(kind.name, "i-00000000000000000", lnc or most, rows)
        how = "topology" if topology else "processes" if every else "wide" if wide else "plain"
        torus = kind.shape[-1] if kind.wiring == "torus" else None
        out.result = found
        if theirs and not json:
            out.lines = lambda: json_module.dumps(plain(rows), indent=4).splitlines()
        else:
            out.lines = lambda: view(found, how, torus)


app = command_app(ls, result=DeviceList)
