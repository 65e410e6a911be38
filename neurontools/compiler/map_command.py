"""`neurontools compile map`: HLO operations, the instructions they became, and their source lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from formats.engines import ENGINES
from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from formats.neuron_core import WORD
from neurontools.command.files import open_neff_file
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, NeffFile
from neurontools.command.output import report
from neurontools.neff.where import Wanted, parse_wanted
from neurontools.text.table import count, ranges, table

if TYPE_CHECKING:
    from formats.neff import Subgraph

# Words that the builder puts before those of an operation, to wait or to load activation tables, are named after it.
_ADDED = re.compile(r"-(wait-\d+|table)$")


class MappedOperation(NamedTuple):
    """One operation of a subgraph: its source line, and its instructions."""

    subgraph: str
    operation: str
    file: str | None
    line: int | None
    pcs: Annotated[dict[str, tuple[int, ...]], "instructions by engine"]


class Mapping(NamedTuple):
    """The result of `compile map`."""

    operations: tuple[MappedOperation, ...]
    unnamed: Annotated[int, "instructions that come from no operation: set-up, end"]


def operations_of(graph: Subgraph) -> tuple[list[MappedOperation], int]:
    """Return the operations of a subgraph in the order of their first instruction, and how many have none."""
    pcs: dict[tuple[str, str | None, int | None], dict[str, list[int]]] = {}
    unnamed = 0
    for engine in ENGINES:
        has_debug = graph.debug(engine) is not None
        for pc, offset in enumerate(graph.streams[engine].offsets):
            steps = list(graph.chain_of(engine, offset // WORD)) if has_debug else []
            name = next((one.name for level in ("HLO", "BIR") for one in steps if one.level == level and one.name), "")
            file, line = next(((one.file, one.line) for one in steps if one.file), (None, None))
            if not name or (file is None and name == "end"):
                unnamed += 1
                continue
            pcs.setdefault((_ADDED.sub("", name), file, line), {}).setdefault(engine, []).append(pc)
    rows = [MappedOperation(graph.name, *key, {engine: tuple(one) for engine, one in found.items()})
            for key, found in pcs.items()]  # fmt: skip
    return sorted(rows, key=lambda row: min(one[0] for one in row.pcs.values())), unnamed


def pick(rows: Iterable[MappedOperation], place: str) -> Iterator[MappedOperation]:
    """Yield the operations that a name, a source line or an instruction asks for."""
    name = place.removeprefix("%")
    wanted: Wanted = parse_wanted(place)
    for row in rows:
        if row.operation == name:
            yield row
        elif wanted.engine is not None:
            if wanted.pc in row.pcs.get(wanted.engine, ()):
                yield row
        elif row.file is not None and wanted.is_in(row.file) and wanted.line in (None, row.line):
            yield row


def view(found: Mapping) -> list[str]:
    """Return a line for each operation."""
    rows = [
        (one.subgraph, f"%{one.operation}", f"{one.file}:{one.line}" if one.file else "-",
         "  ".join(f"{engine} {ranges(pcs)}" for engine, pcs in one.pcs.items()))
        for one in found.operations
    ]  # fmt: skip
    told = f"{count(len(rows), 'operation')}, {count(found.unnamed, 'instruction')} of none"
    return [*table(("subgraph", "operation", "source", "instructions"), rows), told]


def map_operations(
    file: NeffFile,
    place: Annotated[
        str | None,
        typer.Argument(
            metavar="[PLACE]",
            help="An operation (%dot.5), a source line (model.py:42) or an instruction (PE:12); without one, all.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show which operation became which instructions, and which source line it comes from.

    All is read from the file's debug information. The exit status is 4 where nothing comes from the place.
    """
    with report("compile map", json, file=file, place=place) as out:
        neff = open_neff_file(file)
        rows: list[MappedOperation] = []
        unnamed = 0
        for graph in neff.subgraphs:
            more, none = operations_of(graph)
            rows += more
            unnamed += none
        chosen = rows if place is None else list(pick(rows, place))
        if place is not None and not chosen:
            raise NotFoundError(f"no operation is, or comes from, {place}; there are {_some(rows)}")
        found = Mapping(tuple(chosen), unnamed)
        out.result = found
        out.lines = lambda: view(found)


def _some(rows: list[MappedOperation]) -> str:
    names = sorted({f"%{one.operation}" for one in rows})
    return (", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")) or "none"


app = command_app(map_operations, result=Mapping)
