"""`neurontools neff where`: the instructions of a kernel line, and where an instruction comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated

import typer

from formats.engines import ENGINES, engine_name
from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from formats.neuron_core import WORD
from formats.numerals import parse_decimal
from neurontools.command.files import open_neff_file
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, NeffFile
from neurontools.command.output import report
from neurontools.neff.chains import StepRow, chain_lines, chain_rows
from neurontools.neff.rows import pick_subgraph
from neurontools.text.table import bold, count

if TYPE_CHECKING:
    from formats.neff import Neff, Subgraph

    Lines = Counter[tuple[str, int]]  # instructions of every line that the file names


class InstructionRow(NamedTuple):
    """One instruction, and what it comes from: its own entry first."""

    subgraph: str
    engine: str
    pc: int
    name: str
    operands: str
    chain: list[StepRow]


class Found(NamedTuple):
    """The result of `neff where`."""

    instructions: list[InstructionRow]


class Wanted(NamedTuple):
    """What is asked for: a line (of a file, where one is named), a whole file, or one instruction of an engine."""

    file: str | None = None
    line: int | None = None
    engine: str | None = None
    pc: int = 0

    def __str__(self) -> str:
        name = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        return f"line {name}" if self.file is None else name

    def is_in(self, file: str) -> bool:
        """Return whether a path ends as asked: `kernel.py` and `src/kernel.py` both mean `/home/x/src/kernel.py`."""
        return self.file is None or file == self.file or file.endswith(f"/{self.file}")


def parse_wanted(text: str) -> Wanted:
    """Return what `58`, `kernel.py:58`, `kernel.py` or `PE:12` asks for."""
    head, _, tail = text.rpartition(":")
    number = parse_decimal(tail)
    if number is None:
        return Wanted(file=text)
    # What has a dot or a slash is a file, even where an engine is called the same.
    if head and "." not in head and "/" not in head:
        with suppress(NotFoundError):
            return Wanted(engine=engine_name(head), pc=number)
    return Wanted(file=head or None, line=number)


def instructions_of(neff: Neff, wanted: Wanted, graphs: list[Subgraph], texts: int | None = None) -> Found:
    """Return the instructions that are asked for, with their chains, in the order of the streams.

    Only the first `texts` of an engine get their operands' text, all where it is None: text takes as long as the rest.
    Raises NotFoundError that says which files and lines there are.
    """
    if wanted.engine is not None:
        # The cores of a pair need not have streams of one length.
        having = [graph for graph in graphs if wanted.pc < len(graph.streams[wanted.engine])]
        return Found([_instruction(graph, wanted.engine, wanted.pc) for graph in having or graphs])
    lines: Lines = Counter()
    rows: list[InstructionRow] = []
    for graph in graphs:
        for engine in ENGINES:
            rows += _of_lines(graph, engine, wanted, lines, texts)
    if not rows:
        raise NotFoundError(_nothing(neff, wanted, lines))
    return Found(rows)


def _instruction(graph: Subgraph, engine: str, pc: int) -> InstructionRow:
    stream = graph.streams[engine]
    if pc >= len(stream):
        raise NotFoundError(f"{graph.name}/{engine} has {count(len(stream), 'instruction')}, numbered from 0; no {pc}")
    chain = chain_rows(graph.chain_of(engine, stream.offsets[pc] // WORD))
    return InstructionRow(graph.name, engine, pc, stream[pc].name, stream[pc].operands, chain)


def _of_lines(graph: Subgraph, engine: str, wanted: Wanted, lines: Lines, texts: int | None) -> list[InstructionRow]:
    """Return the instructions of one engine that come from what is asked for, and count every line's in `lines`."""
    asm = graph.debug(engine)
    if asm is None:
        return []
    stream = graph.streams[engine]
    rows: list[InstructionRow] = []
    chains: dict[object, tuple[tuple[str, int] | None, list[StepRow]]] = {}
    for pc, offset in enumerate(stream.offsets):
        slot = offset // WORD
        if slot >= len(asm):
            break
        entry = asm[slot]
        # Words of one compiler instruction come from the same entries: a product is many words.
        key = entry.id, entry.name, entry.parents, tuple(entry.attributes.items())
        known = chains.get(key)
        if known is None:
            steps = graph.chain_of(engine, slot)
            source = next(((step.file, step.line) for step in steps if step.file and step.line is not None), None)
            known = chains[key] = source, chain_rows(steps)
        source, chain = known
        if source is None:
            continue
        lines[source] += 1
        if wanted.line in (None, source[1]) and wanted.is_in(source[0]):
            operands = stream[pc].operands if texts is None or len(rows) < texts else ""
            rows.append(InstructionRow(graph.name, engine, pc, stream[pc].name, operands, chain))
    return rows


def _nothing(neff: Neff, wanted: Wanted, lines: Lines) -> str:
    """Return why no instruction was found, and what could have been asked for."""
    if not lines:
        return f"no instruction comes from {wanted}: {neff.path or 'the file'} names no source lines"
    files = sorted({file for file, _ in lines})
    if wanted.file is not None and not any(map(wanted.is_in, files)):
        near = get_close_matches(wanted.file, [file.rpartition("/")[2] for file in files], n=1)
        known = f"did you mean {near[0]}?" if near else f"files: {_some(files)}"
        return f"no instruction comes from {wanted}; {known}"
    here = sorted({line for file, line in lines if wanted.is_in(file)})
    return f"no instruction comes from {wanted}; lines with instructions: {_some(list(map(str, here)))}"


def _some(items: list[str]) -> str:
    return ", ".join(items[:12]) + (f" and {len(items) - 12} more" if len(items) > 12 else "")


def view(found: Found, most: int) -> Iterator[str]:
    """Yield lines for people: per engine the instructions, under the chain that they share."""
    groups: dict[tuple[str, str], list[InstructionRow]] = {}
    for row in found.instructions:
        groups.setdefault((row.subgraph, row.engine), []).append(row)
    for (graph, engine), rows in groups.items():
        names = Counter(row.name for row in rows)
        said = ", ".join(f"{name} {number:,}" for name, number in names.most_common())
        yield bold(f"{graph}/{engine}: {count(len(rows), 'instruction')} ({said})")
        last: list[str] = []
        for row in rows[:most]:
            chain = chain_lines(row.chain)
            # Only what differs from the instruction before: the line and the operation above are mostly the same.
            yield from (f"          # {text}" for text in chain if text not in last)
            last = chain
            yield f"{row.pc:6}  {row.name:20} {row.operands}".rstrip()
        if len(rows) > most:
            yield f"        and {len(rows) - most:,} more; --lines 0 shows all, --json too"
        yield ""
    yield count(len(found.instructions), "instruction")


def where(
    file: NeffFile,
    place: Annotated[
        str,
        typer.Argument(
            metavar="PLACE",
            help="A line (58), a line of a file (kernel.py:58), a file, or an instruction (PE:12).",
            show_default=False,
        ),
    ],
    subgraph: Annotated[
        int | None,
        typer.Option("--subgraph", "-g", metavar="N", min=0, help="Of one subgraph only.", show_default=False),
    ] = None,
    shown: Annotated[
        int, typer.Option("--lines", "-n", metavar="N", min=0, help="Instructions to show per engine, 0 for all.")
    ] = 20,
    json: Json = False,
) -> None:
    """Find the instructions of a source line, and where they come from.

    The chain of the file's debug info is shown level by level: framework operation, HLO, Penguin, BIR.  The exit status
    is 4 where no instruction comes from the place; the message says which places there are.
    """
    with report("neff where", json, file=file, place=place, subgraph=subgraph) as out:
        neff = open_neff_file(file)
        graphs = list(neff.subgraphs) if subgraph is None else [pick_subgraph(neff, subgraph)]
        found = instructions_of(neff, parse_wanted(place), graphs, None if json or not shown else shown)
        out.result = found
        out.lines = lambda: view(found, shown or len(found.instructions))


app = command_app(where, result=Found)
