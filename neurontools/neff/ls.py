"""`neurontools neff ls`: the member table."""

from __future__ import annotations

from formats.named_tuple import NamedTuple
from neurontools.command.files import open_neff_file
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, NeffFile
from neurontools.command.output import report
from neurontools.text.table import table


class MemberRow(NamedTuple):
    """One member of the archive."""

    name: str
    size: int


class MemberTable(NamedTuple):
    """The result of `neff ls`."""

    members: list[MemberRow]
    bytes: int


def view(found: MemberTable) -> list[str]:
    """Return the member table for people."""
    rows = [[one.size, one.name] for one in found.members]
    return [*table(["size", "name"], rows), f"{len(found.members)} members, {found.bytes:,} bytes"]


def ls(file: NeffFile, json: Json = False) -> None:
    """List the members of a NEFF's archive.

    The order is the archive's own.  Sizes are bytes.
    """
    with report("neff ls", json, file=file) as out:
        members = [MemberRow(one.name, one.size) for one in open_neff_file(file).members]
        found = MemberTable(members, sum(one.size for one in members))
        out.result = found
        out.lines = lambda: view(found)


app = command_app(ls, result=MemberTable)
