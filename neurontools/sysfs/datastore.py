"""`neurontools sysfs datastore`: the counters in a data store of the Neuron driver."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.files import need_file
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.text.table import table


class StoredCounters(NamedTuple):
    """The result of `sysfs datastore`: counters that are not zero; bytes of objects, which are not decoded."""

    version: int
    device: dict[str, int]
    cores: dict[int, dict[str, int]]
    object_bytes: int


def view(found: StoredCounters) -> list[str]:
    """Return a row for each counter that is not zero."""
    rows = [["device", name, value] for name, value in found.device.items()]
    rows += [
        [f"core {core}", name, value] for core, counters in found.cores.items() for name, value in counters.items()
    ]
    lines = table(["of", "counter", "value"], rows) if rows else ["every counter is zero"]
    return lines + ([f"{found.object_bytes:,} bytes of objects, not decoded"] if found.object_bytes else [])


def sysfs_datastore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Bytes of a data store.", show_default=False)],
    json: Json = False,
) -> None:
    """Show the counters in a data store of the Neuron driver.

    Of a program on one device: the bytes that a real driver maps into it, or a file that `sysfs mount` keeps.
    """
    from formats.nrt.datastore import decode  # deferred: start-up

    with report("sysfs datastore", json, file=file) as out:
        store = decode(need_file(file).read_bytes(), str(file))
        found = StoredCounters(store.version, store.device, store.cores, len(store.objects))
        out.result = found
        out.lines = lambda: view(found)


app = command_app(sysfs_datastore, result=StoredCounters)
