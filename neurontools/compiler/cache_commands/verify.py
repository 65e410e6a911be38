"""`neurontools compile cache verify`: whether every entry of a compile cache is whole."""

from __future__ import annotations

from formats.named_tuple import NamedTuple
from neurontools.command.exits import ExitStatus
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.compiler.cache_commands.entries import cache_root, entries, problems
from neurontools.compiler.cache_commands.rows import CacheFolder
from neurontools.text.progress import progress
from neurontools.text.table import count


class CacheProblem(NamedTuple):
    """Something that is wrong with an entry."""

    key: str
    compiler: str
    problem: str


class CacheVerification(NamedTuple):
    """The result of `compile cache verify`."""

    folder: str
    checked: int
    problems: tuple[CacheProblem, ...]


def view(found: CacheVerification) -> list[str]:
    """Return what is wrong, and how many entries were looked at."""
    lines = [f"{one.compiler}/{one.key}: {one.problem}" for one in found.problems]
    told = count(len(lines), "problem") if lines else "ok"
    return [*lines, f"{found.folder}: {count(found.checked, 'module')}, {told}"]


def cache_verify(cache_dir: CacheFolder = None, json: Json = False) -> None:
    """Check that every entry of a compile cache is whole.

    Module and NEFF are read and verified; of entries that this compiler wrote, the NEFF's hash and the key as well.
    The exit status is 1 when something is wrong, a lock that lies there included.
    """
    with report("compile cache verify", json, cache_dir=cache_dir) as out:
        root = cache_root(cache_dir)
        wrong: list[CacheProblem] = []
        checked = 0
        with progress("modules") as tell:
            for checked, entry in enumerate(entries(root), 1):
                wrong += [CacheProblem(entry.key, entry.compiler, one) for one in problems(entry)]
                if tell is not None:
                    tell(checked)
        found = CacheVerification(str(root), checked, tuple(wrong))
        out.result = found
        out.lines = lambda: view(found)
        if wrong:
            out.status = ExitStatus.FINDING


app = command_app(cache_verify, result=CacheVerification)
