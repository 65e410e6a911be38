"""`neurontools neff info`: what a file is, from its header and tables alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Literal

from formats.engines import ENGINES
from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.neuron_core import WORD
from neurontools.command.files import open_neff_file
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, NeffFile
from neurontools.command.output import report
from neurontools.neff.rows import TensorRow, percent, shape_text, tensor_row
from neurontools.text.table import bytes_text, count, table

if TYPE_CHECKING:
    from formats.neff import Neff, Subgraph

# About so many words are encoded again: of an unknown compiler's file more, which takes a second.
_SAMPLED = {"unchecked": 5000, "checked": 1000, "own": 1000}
# Of what is not understood, the first tell the story.
_SHOWN = 10


class HeaderRow(NamedTuple):
    """The header as it stands in the file, and the names of its feature bits."""

    pkg_version: int
    header_size: int
    data_size: int
    neff_version_major: int
    neff_version_minor: int
    neff_build_version: str
    num_tpb: int
    hash: Annotated[bytes, "32 bytes, hexadecimal"]
    uuid: Annotated[bytes, "16 bytes, hexadecimal"]
    name: str
    requested_tpb_count: int
    tpb_per_node: tuple[int, ...]
    feature_bits: int
    lnc_size: int
    features: tuple[str, ...]


class CheckedRow(NamedTuple):
    """How well the decoder is known to understand the file."""

    how: Annotated[
        Literal["checked", "own", "unchecked"],
        "whether the decoder was checked against this compiler version and target",
    ]
    files: Annotated[int | None, "public files it was checked on"] = None
    cite: str | None = None
    words: Annotated[int | None, "instruction words of this file looked at"] = None
    reencoded: Annotated[int | None, "words that their fields explain byte for byte"] = None
    sampled: Annotated[bool, "whether there are more words than were looked at"] = False


class TargetRow(NamedTuple):
    """The chip that a file is for."""

    name: str
    generation: str
    arch: str


class EngineWords(NamedTuple):
    """Instruction slots of 64 bytes, by engine."""

    PE: int
    Activation: int
    Pool: int
    DVE: int
    SP: int


class SubgraphRow(NamedTuple):
    """One subgraph in numbers."""

    name: str
    dialect: Literal["neuron", "extended"]
    words: EngineWords
    variables: int
    queues: int


class NeffInfo(NamedTuple):
    """The result of `neff info`."""

    header: HeaderRow
    compiler: str | None
    checked: CheckedRow
    file_bytes: int
    target: TargetRow
    lnc: int
    members: int
    bytes: int
    inputs: list[TensorRow]
    outputs: list[TensorRow]
    subgraphs: list[SubgraphRow]
    not_understood: Annotated[
        list[str], "keys and values of tables that are not understood; words are looked at by neff verify"
    ]
    inferred: Annotated[list[str], "what is executed by inference, as no public file shows it"]


def describe(neff: Neff) -> NeffInfo:
    """Return what a file is; instructions stay packed unless its compiler is unknown."""
    from formats.neff.inferred import inferred_in_subgraph  # deferred: start-up
    from formats.neff.understood import unknown_in_file, unknown_in_subgraph  # deferred: start-up

    sizes = {member.name: member.size for member in neff.members}
    target = neff.target
    return NeffInfo(
        HeaderRow(*neff.header[:-1], neff.header.features),  # all but the padding
        neff.info.tool_version if neff.info is not None else None,
        _checked(neff),
        neff.size,
        TargetRow(target.name, target.generation, target.arch_code),
        neff.lnc,
        len(sizes),
        sum(sizes.values()),
        [tensor_row(one) for one in neff.inputs],
        [tensor_row(one) for one in neff.outputs],
        [
            SubgraphRow(
                graph.name,
                graph.dialect,
                EngineWords(*(sizes.get(_stream_member(graph, engine), 0) // WORD for engine in ENGINES)),
                len(graph.variables),
                len(graph.queues),
            )
            for graph in neff.subgraphs
        ],
        list(_parts(lambda: chain(unknown_in_file(neff), *map(unknown_in_subgraph, neff.subgraphs)))),
        list(_parts(lambda: chain.from_iterable(map(inferred_in_subgraph, neff.subgraphs)))),
    )


def _parts(found: Callable[[], Iterable[object]]) -> Iterator[str]:
    try:
        yield from map(str, found())
    except FormatError as damage:  # a table that cannot be read; what else the file says is still of use
        yield str(damage)


def _checked(neff: Neff) -> CheckedRow:
    """Return how much of this file the decoder explains, and whether it was checked on others of its compiler."""
    from formats.neff.compilers import checked_compiler, how_checked  # deferred: start-up
    from formats.neff.coverage import coverage  # deferred: start-up

    how = how_checked(neff)
    known = checked_compiler(neff)
    files, cite = (None, None) if known is None else (known.files, known.cite)
    try:
        found = coverage(neff, _SAMPLED[how])
        total = sum(len(stream) for graph in neff.subgraphs for stream in graph.streams.values())
    except FormatError:  # a stream that cannot be read; what else the file says is still of use
        return CheckedRow(how, files, cite)
    return CheckedRow(how, files, cite, found.words, found.reencoded, found.words < total)


def _stream_member(graph: Subgraph, engine: str) -> str:
    name = graph.definition.engines[engine].instructions
    return graph.member(name) if name else ""


def view(name: str, found: NeffInfo) -> list[str]:
    """Return a file's description for people."""
    header, target = found.header, found.target
    rows = {
        "name": header.name,
        "uuid": header.uuid.hex(),
        "hash": header.hash.rstrip(b"\0").hex(),
        "version": f"{header.neff_version_major}.{header.neff_version_minor}, package {header.pkg_version}",
        "compiler": found.compiler or header.neff_build_version,
        "explained": _checked_text(found.checked),
        "features": ", ".join(header.features),
        "size": f"{found.file_bytes:,} bytes",
        "members": f"{found.members}, {bytes_text(found.bytes)} unpacked",
    }
    lines = [f"{name}: NEFF for {target.name} ({target.arch}, {target.generation}), LNC {found.lnc}", ""]
    lines += [f"  {key.ljust(9)}  {value or '-'}" for key, value in rows.items()]
    for title, tensors in (("inputs", found.inputs), ("outputs", found.outputs)):
        cells = [[one.name, one.dtype, shape_text(one.shape), one.size] for one in tensors]
        lines += ["", *table([title, "type", "shape", "bytes"], cells)]
    graphs = [[one.name, *one.words, one.variables, one.queues, one.dialect] for one in found.subgraphs]
    lines += ["", *table(["subgraph", *ENGINES, "variables", "queues", "dialect"], graphs)]
    for title, texts in (("not understood, so not executed", found.not_understood), ("inferred", found.inferred)):
        more = [f"  and {len(texts) - _SHOWN} more"] if len(texts) > _SHOWN else []
        lines += ["", title, *(f"  {text}" for text in texts[:_SHOWN]), *more] if texts else []
    return lines


def _checked_text(checked: CheckedRow) -> str:
    """Return how much of a file is explained, and what is known of its compiler, as a phrase."""
    about = "not checked on files of this compiler version"
    if checked.files is not None:
        about = f"checked on {count(checked.files, 'public file')} of this compiler version and target"
    elif checked.how == "own":
        about = "written by neurontools"
    words, same = checked.words, checked.reencoded
    if words is None or same is None:
        return f"its words cannot be read; {about}"
    share = f"{same:,} of {count(words, 'word')} ({percent(same, words)})" if words else "no words"
    return f"{share}{' looked at' if checked.sampled else ''} byte for byte; {about}"


def info(file: NeffFile, json: Json = False) -> None:
    """Show what a NEFF is for: header, target, tensors, sizes.

    Reads the header, the member table and the small JSON members; instructions and constants stay packed.
    """
    with report("neff info", json, file=file) as out:
        found = describe(open_neff_file(file))
        out.result = found
        out.lines = lambda: view(file.name, found)


app = command_app(info, result=NeffInfo)
