"""`neurontools neff diff`: what differs between two NEFFs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from formats.engines import ENGINES
from formats.named_tuple import NamedTuple
from neurontools.command.exits import ExitStatus
from neurontools.command.files import open_neff_file
from neurontools.command.lazy import command_app
from neurontools.command.options import ErrorExitCode, Json, Quiet
from neurontools.command.output import report
from neurontools.command.results import field_names
from neurontools.neff.rows import QueueRow, VariableRow, shape_text
from neurontools.text.table import count

if TYPE_CHECKING:
    from formats.isa import Instruction
    from formats.neff import Descriptor, DmaBlock, Neff, Subgraph, TensorInfo

# The header fields that say which build made the file, not what the file does.
_IDENTITY = ("hash", "uuid", "data_size", "pad")
# Comparing thousands of words with thousands takes minutes and tells nobody anything.
_COMPARED = 4_000_000

T = TypeVar("T")


class MemberChanges(NamedTuple):
    """The archive's members, by name."""

    only_in_first: list[str]
    only_in_second: list[str]
    changed: list[str]


class Run(NamedTuple):
    """One run of differing instructions: where it begins in both streams, the text of the shown ones, both lengths."""

    kind: str
    pc: tuple[int, int]
    first: list[str]
    second: list[str]
    lengths: tuple[int, int]


class StreamChanges(NamedTuple):
    """The instructions of one engine."""

    words: tuple[int, int]
    differing_runs: int
    runs: list[Run]


class TransferChange(NamedTuple):
    """What differs in a DMA block that both files have, or in which of them alone it stands."""

    queue: str
    block_id: int
    only_in: Annotated[Literal["", "first", "second"], "the one file that has the block"]
    descriptors: Annotated[tuple[int, int], "how many each file's block has"]
    changes: Annotated[list[str], "what differs, as KEY BEFORE -> AFTER; descriptors by number"]


class SubgraphChanges(NamedTuple):
    """What differs in one subgraph: the first file's row and the second's, null where there is none."""

    name: str
    variables: dict[str, tuple[VariableRow | None, VariableRow | None]]
    queues: dict[str, tuple[QueueRow | None, QueueRow | None]]
    engines: dict[str, StreamChanges]
    transfers: Annotated[list[TransferChange], "DMA blocks that differ; as many as places are shown per engine"]
    differing_transfers: int


class NeffDiff(NamedTuple):
    """The result of `neff diff`."""

    same: bool
    header: Annotated[dict[str, tuple[object, object]], "the first file's value and the second's"]
    identity: Annotated[list[str], "fields that differ between any two builds"]
    tensors: dict[str, tuple[list[str], list[str]]]
    members: MemberChanges
    subgraphs: list[SubgraphChanges]
    extra_subgraphs: Annotated[int, "how many more the first file has; negative where the second has more"]


def compare(one: Neff, other: Neff, shown: int) -> NeffDiff:
    """Return what differs; at most `shown` runs of differing instructions of each engine are listed."""
    header = _changed(one.header._asdict(), other.header._asdict())
    members = _members(one, other)
    before, after = ({"inputs": _texts(neff.inputs), "outputs": _texts(neff.outputs)} for neff in (one, other))
    extra = len(one.subgraphs) - len(other.subgraphs)
    return NeffDiff(
        not (any(members) or header or extra),
        {key: (_plain(first), _plain(second)) for key, (first, second) in header.items() if key not in _IDENTITY},
        [key for key in header if key in _IDENTITY],
        {key: (first or [], second or []) for key, (first, second) in _changed(before, after).items()},
        members,
        [_subgraphs(*pair, shown) for pair in zip(one.subgraphs, other.subgraphs, strict=False)],
        extra,
    )


def _changed(first: Mapping[str, T], second: Mapping[str, T]) -> dict[str, tuple[T | None, T | None]]:
    pairs = {key: (first.get(key), second.get(key)) for key in {**first, **second}}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _texts(tensors: Iterable[TensorInfo]) -> list[str]:
    return [f"{one.name} {one.dtype} {shape_text(one.shape)}" for one in tensors]


def _members(one: Neff, other: Neff) -> MemberChanges:
    first, second = ({member.name: member.kind for member in neff.members} for neff in (one, other))
    both = sorted(first.keys() & second.keys())
    changed = [name for name in both if first[name] != second[name]
               or (first[name] == "file" and one.read(name) != other.read(name))]  # fmt: skip
    return MemberChanges(sorted(first.keys() - second), sorted(second.keys() - first), changed)


def _subgraphs(first: Subgraph, second: Subgraph, shown: int) -> SubgraphChanges:
    variables = ({name: VariableRow(*one) for name, one in graph.variables.items()} for graph in (first, second))
    queues = ({name: QueueRow(*one) for name, one in graph.queues.items()} for graph in (first, second))
    engines = {engine: _engine(first, second, engine, shown) for engine in ENGINES}
    one, other = first.dma_blocks, second.dma_blocks
    blocks = [key for key in {**one, **other} if one.get(key) != other.get(key)]
    return SubgraphChanges(
        first.name,
        _changed(*variables),
        _changed(*queues),
        {engine: found for engine, found in engines.items() if found is not None},
        [_transfer(one.get(key), other.get(key)) for key in blocks[:shown]],
        len(blocks),
    )


def _transfer(before: DmaBlock | None, after: DmaBlock | None) -> TransferChange:
    """Return what differs in a DMA block, descriptor by descriptor."""
    known = before or after
    assert known is not None
    lengths = (len(before.descriptors) if before else 0, len(after.descriptors) if after else 0)
    if before is None or after is None:
        return TransferChange(known.queue, known.block_id, "second" if before is None else "first", lengths, [])
    changes = _fields(before, after, "descriptors")
    for number, pair in enumerate(zip(before.descriptors, after.descriptors, strict=False)):
        changes += [f"descriptor {number} {text}" for text in _fields(*pair, "")]
    return TransferChange(known.queue, known.block_id, "", lengths, changes)


def _fields(before: DmaBlock | Descriptor, after: DmaBlock | Descriptor, apart: str) -> list[str]:
    pairs = {name: (old, new) for name, old, new in zip(before._fields, before, after, strict=True) if name != apart}
    return [f"{name} {_value(old)} -> {_value(new)}" for name, (old, new) in pairs.items() if old != new]


def _value(value: object) -> str:
    return str(list(value)) if isinstance(value, tuple) else str(value)


def _engine(first: Subgraph, second: Subgraph, engine: str, shown: int) -> StreamChanges | None:
    """Return where two streams differ, None where they are equal; text is made for the lines that are shown."""
    if first.stream_bytes(engine) == second.stream_bytes(engine):
        return None
    from difflib import SequenceMatcher  # deferred: start-up

    one, other = first.streams[engine], second.streams[engine]
    left, right = ([word.raw for word in stream] for stream in (one, other))
    # What is equal at both ends is most of two builds of a program, and need not be compared with everything else.
    head = next((i for i, (a, b) in enumerate(zip_longest(left, right)) if a != b), 0)
    tail = 0
    while tail < min(len(left), len(right)) - head and left[-1 - tail] == right[-1 - tail]:
        tail += 1
    cut_left, cut_right = left[head : len(left) - tail], right[head : len(right) - tail]
    if len(cut_left) * len(cut_right) > _COMPARED:
        runs: list[tuple[str, int, int, int, int]] = [("replace", 0, len(cut_left), 0, len(cut_right))]
    else:
        # Its `autojunk` would leave out words that are frequent, as waits and jumps are.
        matcher = SequenceMatcher(None, cut_left, cut_right, autojunk=False)
        runs = [op for op in matcher.get_opcodes() if op[0] != "equal"]
    listed = [
        Run(
            kind,
            (head + a, head + c),
            *_texts_of(one[head + a : head + min(b, a + shown)], other[head + c : head + min(d, c + shown)]),
            (b - a, d - c),
        )
        for kind, a, b, c, d in runs[:shown]
    ]
    return StreamChanges((len(left), len(right)), len(runs), listed)


def _texts_of(first: list[Instruction], second: list[Instruction]) -> tuple[list[str], list[str]]:
    """Return the text of both sides, with braces where words that differ would read the same."""
    before, after = [word.text for word in first], [word.text for word in second]
    hidden = set(before) & set(after)
    return (
        [word.asm if text in hidden else text for word, text in zip(first, before, strict=True)],
        [word.asm if text in hidden else text for word, text in zip(second, after, strict=True)],
    )


def view(first: str, second: str, found: NeffDiff) -> list[str]:
    """Return the differences for people: - is the first file, + the second."""
    if found.same:
        return [f"{first} and {second}: the same content"]
    lines = [f"- {first}", f"+ {second}"]
    for title, changes in (("header", found.header), ("tensors", found.tensors)):
        for key, (before, after) in changes.items():
            lines += [f"{title} {key}:", f"  - {_text(before)}", f"  + {_text(after)}"]
    if found.identity:
        lines.append("header " + ", ".join(found.identity) + ": differ, as between any two builds")
    for mark, names in zip("-+!", found.members, strict=True):
        lines += [f"{mark} member {name}" for name in names]
    if found.extra_subgraphs:
        more = "first" if found.extra_subgraphs > 0 else "second"
        lines.append(f"the {more} file has {count(abs(found.extra_subgraphs), 'subgraph')} more")
    for part in found.subgraphs:
        lines += [f"{part.name} variable {name}: {_row(*pair)}" for name, pair in part.variables.items()]
        lines += [f"{part.name} queue {name}: {_row(*pair)}" for name, pair in part.queues.items()]
        for engine, stream in part.engines.items():
            lines.append(
                f"{part.name} {engine}: {stream.words[0]} and {stream.words[1]} words, "
                f"{count(stream.differing_runs, 'place')} differ"
            )
            for run in stream.runs:
                why = ": too much differs to tell places apart" if prod(run.lengths) > _COMPARED else ""
                lines.append(f"  pc {run.pc[0]} / {run.pc[1]}{why}")
                for mark, texts, length in zip("-+", (run.first, run.second), run.lengths, strict=True):
                    lines += [f"  {mark} {text}" for text in texts]
                    if length > len(texts):
                        lines.append(f"  {mark} and {length - len(texts)} more")
        for one in part.transfers:
            lines += _transfer_lines(part.name, one)
        if part.differing_transfers > len(part.transfers):
            lines.append(f"{part.name}: {part.differing_transfers - len(part.transfers)} more DMA blocks differ")
    return lines


def _transfer_lines(subgraph: str, one: TransferChange) -> list[str]:
    name = f"{subgraph} DMA block {one.block_id} of {one.queue}"
    if one.only_in:
        return [f"{name}: only in the {one.only_in}"]
    before, after = one.descriptors
    numbers = [f"  {before} and {count(after, 'descriptor')}"] if before != after else []
    return [f"{name}:", *numbers, *(f"  {text}" for text in one.changes)]


def _text(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


def _row(before: VariableRow | QueueRow | None, after: VariableRow | QueueRow | None) -> str:
    """Return what changed in a row as "size 64 -> 128, …"."""
    if before is None or after is None:
        return "only in the " + ("second" if before is None else "first")
    pairs = {name: (getattr(before, name), getattr(after, name)) for name in field_names(type(before)) or ()}
    return ", ".join(f"{name} {old} -> {new}" for name, (old, new) in pairs.items() if old != new)


def diff(
    first: Annotated[Path, typer.Argument(metavar="FIRST", help="A NEFF.", show_default=False)],
    second: Annotated[Path, typer.Argument(metavar="SECOND", help="Another NEFF.", show_default=False)],
    shown: Annotated[
        int, typer.Option("--lines", "-n", metavar="N", min=0, help="Places, and words at each, to show per engine.")
    ] = 5,
    json: Json = False,
    quiet: Quiet = False,
    error_exitcode: ErrorExitCode = None,
) -> None:
    """Compare two NEFFs.

    Header, tensors, members, variables, queues, DMA transfers, and the instructions of every engine.  The exit status
    is 1 when anything differs, 0 when all content is the same. Names and hashes that differ between any two builds are
    kept apart from what the program does.
    """
    with report("neff diff", json, quiet=quiet, first=first, second=second) as out:
        found = compare(open_neff_file(first), open_neff_file(second), shown)
        out.result = found
        out.lines = lambda: view(str(first), str(second), found)
        if not found.same:
            out.status = ExitStatus.FINDING
            out.exit_code = error_exitcode


app = command_app(diff, result=NeffDiff)
