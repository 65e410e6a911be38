"""`neurontools sysfs mount`: a tree of files as the Neuron driver has it, kept up to date from emulated sessions."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Annotated

import typer

from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from formats.whole_files import naming
from neurontools.command.files import need_folder
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import note, report
from neurontools.dump.sysfs import PLACE
from neurontools.memory.states import find_states
from neurontools.sysfs.stores import FOLDER, stores_of
from neurontools.sysfs.tree import Attributes, Tree, tree_of
from neurontools.text.table import count

if TYPE_CHECKING:
    from emulator.machine.instances import Instance
    from emulator.runtime.ledger_state import MachineState


class Mounted(NamedTuple):
    """The result of `sysfs mount`: where the tree is, and how many attributes it has."""

    folder: str
    instance: str
    sessions: int
    attributes: int


class Files:
    """The files of a tree; what somebody else wrote to one clears its counter, as it does on a real machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written: dict[str, str] = {}
        self._attributes = Attributes()

    def update(self, tree: Tree) -> int:
        """Write what changed; return how many attributes there are."""
        for path, before in self._written.items():
            with suppress(OSError):
                now = (self._folder / path).read_text(errors="replace").strip()
                if now != before:
                    self._attributes.clear(path, tree)
                    self._written[path] = now
        texts = self._attributes.texts(tree)
        for path, text in texts.items():
            if self._written.get(path) != text:
                place = self._folder / path
                if path not in self._written:
                    place.parent.mkdir(parents=True, exist_ok=True)
                try:
                    place.write_text(text + "\n" if text else "")
                except OSError as error:  # of a full disk it names no file
                    raise naming(error, place.parent, str(place)) from None
                self._written[path] = text
        return len(texts)


def keep_stores(top: Path, kind: Instance, states: list[MachineState], written: dict[Path, bytes]) -> None:
    """Write the data store of each session on each device where that is another than was written before."""
    from formats.nrt.datastore import encode  # deferred: start-up
    from formats.whole_files import write_whole  # deferred: start-up

    for state in states:
        for device, store in stores_of(kind, state).items():
            place = top / FOLDER / str(state.pid) / f"neuron{device}"
            data = encode(store)
            if written.get(place) != data:
                place.parent.mkdir(parents=True, exist_ok=True)
                with write_whole(place) as beside:
                    beside.write_bytes(data)
                written[place] = data


def running(place: Path | None, instance: Instance) -> list[MachineState]:
    """Return the sessions of an instance that run, ended ones too: the driver's counters outlive their programs."""
    try:
        return [one for one in find_states(place, ended=True) if one.instance == instance.name]
    except NotFoundError:
        return []


def sysfs_mount(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the tree is to be.", show_default=False)],
    place: Annotated[
        Path | None,
        typer.Option(
            "--sessions",
            metavar="PLACE",
            help="Folder of sessions; $NEURONTOOLS_MACHINE unless given.",
            show_default=False,
        ),
    ] = None,
    instance: Annotated[str, typer.Option("--instance", metavar="TYPE", help="Instance type.")] = "trn2.48xlarge",
    once: Annotated[bool, typer.Option("--once", help="Write the tree, and end.")] = False,
    period: Annotated[float, typer.Option("--period", metavar="S", min=0.05, help="Seconds between two looks.")] = 0.5,
    json: Json = False,
) -> None:
    """Make the driver's tree of files from emulated sessions, and keep it up to date.

    DIR stands for /sys: the devices are below devices/virtual/neuron_device in it.  A write to a counter's file
    clears it.  Runs until it is interrupted, unless --once or --json is given.
    """
    from emulator.machine.instances import instance_of  # deferred: start-up

    with report("sysfs mount", json, dir=folder, sessions=place, instance=instance) as out:
        kind = instance_of(instance)
        need_folder(folder.resolve().parent)
        top = folder / PLACE
        if top.exists() and not (top / ".neurontools").exists() and any(top.iterdir()):
            raise typer.BadParameter(f"{top} holds something else", param_hint="DIR")
        top.mkdir(parents=True, exist_ok=True)
        (top / ".neurontools").touch()
        files = Files(top)
        states = running(place, kind)
        number = files.update(tree_of(kind, states))
        stores: dict[Path, bytes] = {}
        keep_stores(top, kind, states, stores)
        out.result = Mounted(str(top), kind.name, len(states), number)
        out.lines = lambda: [f"{os.fspath(top)}: {count(number, 'attribute')} of {kind.name}, "
                             f"{count(len(states), 'session')}"]  # fmt: skip
        if once or json:
            return
        out.streamed = True
        note(f"{top}: {count(number, 'attribute')}; until interrupted")
        with suppress(KeyboardInterrupt):
            while True:
                sleep(period)
                states = running(place, kind)
                files.update(tree_of(kind, states))
                keep_stores(top, kind, states, stores)


app = command_app(sysfs_mount, result=Mounted)
