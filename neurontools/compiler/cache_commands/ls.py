"""`neurontools compile cache ls`: the modules that a compile cache keeps."""

from __future__ import annotations

from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.compiler.cache_commands.entries import cache_root, entries
from neurontools.compiler.cache_commands.rows import CacheFolder, EntryRow, entry_row
from neurontools.text.table import bytes_text, count, table


class CacheListing(NamedTuple):
    """The result of `compile cache ls`."""

    folder: str
    entries: tuple[EntryRow, ...]
    size: int


def view(found: CacheListing) -> list[str]:
    """Return a line for each entry, and their number and size."""
    rows = [(one.key, one.compiler, one.state, one.size, one.written) for one in found.entries]
    last = f"{found.folder}: {count(len(rows), 'module')}, {bytes_text(found.size)}"
    return [*table(("module", "compiler", "state", "bytes", "written"), rows), last] if rows else [last]


def cache_list(cache_dir: CacheFolder = None, json: Json = False) -> None:
    """List the modules that a compile cache keeps.

    A module counts when it is complete; locked ones are being compiled, or a compilation left its lock behind.
    """
    with report("compile cache ls", json, cache_dir=cache_dir) as out:
        root = cache_root(cache_dir)
        rows = tuple(map(entry_row, entries(root)))
        found = CacheListing(str(root), rows, sum(one.size for one in rows))
        out.result = found
        out.lines = lambda: view(found)


app = command_app(cache_list, result=CacheListing)
