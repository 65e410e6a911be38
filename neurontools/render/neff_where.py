"""From a kernel line to the instructions it became, and from an instruction up to the framework's operation."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

from formats.errors import NotFoundError
from neurontools.render.neff import ENGINES
from neurontools.render.table import bold, count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from formats.neff import Neff, Subgraph
    from formats.neff.debuginfo import DebugStep

__all__ = ["Place", "chain_lines", "parse_place", "steps_data", "where", "where_lines"]


class Place(NamedTuple):
    """What is asked for: a line (of a file, where one is named), a whole file, or one instruction of an engine."""

    file: str | None = None
    line: int | None = None
    engine: str | None = None
    pc: int | None = None


def parse_place(text: str) -> Place:
    """Return what `58`, `kernel.py:58`, `kernel.py` or `PE:12` asks for."""
    from neurontools.assembler import engine_name

    head, colon, tail = text.rpartition(":")
    if not colon:
        return Place(line=int(text)) if _number(text) else Place(file=text)
    if not _number(tail):
        return Place(file=text)
    if "." not in head and "/" not in head:
        with suppress(NotFoundError):
            return Place(engine=engine_name(head), pc=int(tail))
    return Place(file=head or None, line=int(tail))


def _number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def where(neff: Neff, place: Place, subgraphs: list[int], texts: int | None = None) -> dict[str, Any]:
    """Return the instructions of a place with their chains, in the order of the streams.

    Only the first `texts` of an engine get their operands' text, all where it is None: text takes as long as the rest.
    Raises NotFoundError that says which files and lines there are.
    """
    if place.engine is not None:
        graphs = [neff.subgraphs[number] for number in subgraphs]
        # The cores of a pair need not have streams of one length.
        having = [graph for graph in graphs if (place.pc or 0) < len(graph.streams[place.engine])]
        return {"instructions": [_instruction(graph, place) for graph in having or graphs]}
    rows: list[dict[str, Any]] = []
    lines: dict[tuple[str, int], int] = {}
    for number in subgraphs:
        graph = neff.subgraphs[number]
        for engine in ENGINES:
            rows += _engine_rows(graph, engine, place, lines, texts)
    if not rows:
        raise NotFoundError(_nothing(neff, place, lines))
    return {"instructions": rows}


def _engine_rows(
    graph: Subgraph, engine: str, place: Place, lines: dict[tuple[str, int], int], texts: int | None
) -> list[dict[str, Any]]:
    asm = graph.debug(engine)
    if asm is None:
        return []
    stream = graph.streams[engine]
    rows: list[dict[str, Any]] = []
    chains: dict[Any, tuple[tuple[str, int] | None, list[dict[str, Any]]]] = {}
    for pc, offset in enumerate(stream.offsets):
        slot = offset // 64
        if slot >= len(asm):
            break
        entry = asm[slot]
        # Words of one compiler instruction come from the same entries: a product is many words.
        key = entry.id, entry.name, entry.parents, tuple(entry.attributes.items())
        known = chains.get(key)
        if known is None:
            steps = graph.chain_of(engine, slot)
            source = next(((step.file, step.line) for step in steps if step.file and step.line is not None), None)
            known = chains[key] = source, steps_data(steps)
        source, chain = known
        if source is None:
            continue
        file, line = source
        lines[file, line] = lines.get((file, line), 0) + 1
        if (place.line is None or place.line == line) and (place.file is None or _same(place.file, file)):
            rows.append(_row(graph, engine, pc, stream[pc], chain, texts is None or len(rows) < texts))
    return rows


def _instruction(graph: Subgraph, place: Place) -> dict[str, Any]:
    engine, pc = str(place.engine), int(place.pc or 0)
    stream = graph.streams[engine]
    if pc >= len(stream):
        raise NotFoundError(f"{graph.name}/{engine} has {count(len(stream), 'instruction')}, numbered from 0; no {pc}")
    return _row(graph, engine, pc, stream[pc], steps_data(graph.chain_of(engine, stream.offsets[pc] // 64)))


def _row(
    graph: Subgraph, engine: str, pc: int, word: Any, chain: list[dict[str, Any]], text: bool = True
) -> dict[str, Any]:
    return {
        "subgraph": graph.name,
        "engine": engine,
        "pc": pc,
        "name": word.name,
        "operands": word.operands if text else "",
        "chain": chain,
    }


def steps_data(chain: tuple[DebugStep, ...]) -> list[dict[str, Any]]:
    """Return a chain as plain data, entries that say nothing left out."""
    return [step._asdict() for step in chain if step.name or step.file or step.kernel]


def _same(wanted: str, file: str) -> bool:
    """Tell whether a path ends as asked: `kernel.py` and `src/kernel.py` both are `/home/x/src/kernel.py`."""
    return file == wanted or file.endswith(f"/{wanted}")


def _nothing(neff: Neff, place: Place, lines: dict[tuple[str, int], int]) -> str:
    name = ":".join(str(part) for part in (place.file, place.line) if part is not None)
    asked = f"line {name}" if place.file is None else name
    if not lines:
        return f"no instruction comes from {asked}: {neff.path or 'the file'} names no source lines"
    files = sorted({file for file, _ in lines})
    if place.file is not None and not any(_same(place.file, file) for file in files):
        near = get_close_matches(place.file, [file.rpartition("/")[2] for file in files], n=1)
        known = f"did you mean {near[0]}?" if near else f"files: {_some(files)}"
        return f"no instruction comes from {asked}; {known}"
    here = sorted({line for file, line in lines if place.file is None or _same(place.file, file)})
    return f"no instruction comes from {asked}; lines with instructions: {_some(list(map(str, here)))}"


def _some(items: list[str]) -> str:
    return ", ".join(items[:12]) + (f" and {len(items) - 12} more" if len(items) > 12 else "")


def where_lines(found: dict[str, Any], most: int) -> Iterator[str]:
    """Return `neff where` for people: per engine the instructions, under the chain that they share."""
    rows = found["instructions"]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["subgraph"], row["engine"]), []).append(row)
    for (graph, engine), items in groups.items():
        names = Counter(row["name"] for row in items)
        said = ", ".join(f"{name} {number:,}" for name, number in names.most_common())
        yield bold(f"{graph}/{engine}: {count(len(items), 'instruction')} ({said})")
        last: list[str] = []
        for row in items[:most]:
            chain = chain_lines(row["chain"])
            # Only what differs from the instruction before: the line and the operation above are mostly the same.
            yield from (f"          # {text}" for text in chain if text not in last)
            last = chain
            yield f"{row['pc']:6}  {row['name']:20} {row['operands']}".rstrip()
        if len(items) > most:
            yield f"        and {len(items) - most:,} more; --lines 0 shows all, --json too"
        yield ""
    yield count(len(rows), "instruction")


def chain_lines(chain: list[dict[str, Any]], place: str | None = None) -> list[str]:
    """Return one line per entry, the framework's first: how people read, from the model down to the word.

    A source line that stands above already, or as `place`, is not said again.
    """
    texts = []
    for step in reversed(chain):
        here = f"{step['file']}:{step['line']}" if step["file"] else None
        kernel = f"kernel {step['kernel']}" if step["kernel"] else None
        parts = [part for part in (step["name"] or None, kernel, here if here != place else None) if part]
        place = here or place
        if parts:
            texts.append(f"{step['level']}: {'  '.join(parts)}")
    return texts
