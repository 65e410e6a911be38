"""`neurontools neff ls`: the member table."""

from __future__ import annotations

from neurontools.commands.lazy import command_app
from neurontools.commands.options import Json, NeffFile
from neurontools.files import open_neff_file
from neurontools.output import report


def ls(file: NeffFile, json: Json = False) -> None:
    """List the members of a NEFF's archive.

    The order is the archive's own.  Sizes are bytes.
    """
    from neurontools.render.table import table

    with report("neff ls", json, file=file) as out:
        members = open_neff_file(file).members
        out.result = {
            "members": [{"name": m.name, "size": m.size} for m in members],
            "bytes": sum(m.size for m in members),
        }
        out.lines = lambda: [
            *table(["size", "name"], [[m.size, m.name] for m in members]),
            f"{len(members)} members, {sum(m.size for m in members):,} bytes",
        ]


app = command_app(ls)
