"""`neurontools core memory`: memories of a dump, bytes and tensors in them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formats.core import Core
from formats.core.records import Allocation, TensorState, Window
from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.core.arguments import CoreFile, open_core_file
from neurontools.text.table import bytes_text, table

if TYPE_CHECKING:
    from neurontools.debugger import Examined, TensorValue
    from neurontools.debugger.results import Array

_MOST = 100_000  # values that JSON gets


class Memories(NamedTuple):
    """Memories, allocations and tensors, with how much of each is written and in the dump."""

    memories: tuple[Window, ...]
    allocations: tuple[Allocation, ...]
    tensors: tuple[TensorState, ...]


class Flags(NamedTuple):
    """One truth value for each value."""

    dtype: str
    shape: tuple[int, ...]
    values: list[bool]


Values = Annotated[
    list[object] | int | float | str | bool | None,
    "Nested as the shape; infinities and NaN as text. Null where they went to a file, or are more than 100,000.",
]


class ExaminedMemory(NamedTuple):
    """Values from an address on."""

    place: Annotated[str, "The place that was asked for."]
    output: Annotated[Path | None, "Where the values were written."]
    space: Annotated[str, "SBUF, PSUM or HBM."]
    core: Annotated[int | None, "Physical core; null in HBM."]
    name: Annotated[str, "Of what the loader keeps there."]
    partition: Annotated[int | None, "Null in HBM."]
    address: Annotated[int, "Byte of the partition; a device address in HBM."]
    dtype: str
    base: Annotated[str, "x for hexadecimal, d or f."]
    written: Annotated[Flags, "Whether all bytes of a value were written."]
    shape: tuple[int, ...]
    values: Values


class TensorSummary(NamedTuple):
    """What the elements are like; minimum, maximum and mean of the finite ones, null without any."""

    elements: int
    minimum: float | None
    maximum: float | None
    mean: float | None
    nans: int
    infinities: int


class TensorElements(NamedTuple):
    """Elements of a tensor."""

    place: Annotated[str, "The place that was asked for."]
    output: Annotated[Path | None, "Where the elements were written."]
    name: str
    selection: str
    space: Annotated[str, "SBUF, PSUM or HBM."]
    unwritten: Annotated[int, "Elements that nothing wrote."]
    statistics: TensorSummary
    dtype: str
    shape: tuple[int, ...]
    values: Values


def memories(core: Core) -> Memories:
    """Return what the dump has."""
    return Memories(core.windows, core.allocations, core.tensors)


def read(core: Core, place: str, count: int, format: str) -> Examined | TensorValue:
    """Return what stands at an address, or the elements of a tensor.

    Raises NotFoundError for places that do not exist and bytes that the dump does not hold, UsageError for text that
    means nothing.
    """
    from neurontools.debugger import open_core_session  # deferred: start-up
    from neurontools.debugger.memory import parse_spot  # deferred: start-up
    from neurontools.debugger.names import parse_core  # deferred: start-up

    session = open_core_session(core)
    chosen, rest = parse_core(place.strip())
    if chosen is not None:
        session.focus(chosen)
    if "[" not in place:
        try:
            spot = parse_spot(session.device, place.strip(), session.state().focus[0])
        except NotFoundError as error:
            raise NotFoundError(str(error).replace("`info memory`", "`core memory`")) from None
        if spot is not None:
            return session.examine(place, count, format)
    return session.tensor(rest)


def array_of(found: Examined | TensorValue) -> Array:
    """Return the values themselves."""
    from neurontools.debugger import Examined  # deferred: start-up

    return found.values if isinstance(found, Examined) else found.array


def described(place: str, found: Examined | TensorValue, output: Path | None) -> ExaminedMemory | TensorElements:
    """Return values as JSON has them; those that go to a file are not repeated."""
    from neurontools.debugger import Examined  # deferred: start-up
    from neurontools.debugger.json_values import plain  # deferred: start-up

    array = array_of(found)
    values = None if output is not None or array.size > _MOST else plain(array)["values"]
    if isinstance(found, Examined):
        written = Flags(found.written.dtype.name, found.written.shape, found.written.tolist())
        return ExaminedMemory(place, output, found.space, found.core, found.name, found.partition, found.address,
                              found.dtype, found.base, written, array.shape, values)  # fmt: skip
    return TensorElements(place, output, found.name, found.selection, found.space, found.unwritten,
                          TensorSummary(**plain(found.statistics)), array.dtype.name, array.shape, values)  # fmt: skip


def view(found: Memories) -> list[str]:
    """Return the text of `core memory` without a place."""
    rows = [
        [m.space, m.core, m.engine or "-", hex(m.base), bytes_text(m.rows * m.row_bytes), m.written, m.stored]
        for m in found.memories
    ]
    lines = table(("memory", "core", "engine", "address", "size", "written", "in the dump"), rows)
    kept = [[a.name, hex(a.address), a.nbytes, a.written, a.stored] for a in found.allocations]
    if kept:
        lines += ["", *table(("in HBM", "address", "bytes", "written", "in the dump"), kept)]
    tensors = [
        [t.name, t.kind, t.space + ("" if t.core is None else f" nc{t.core}"),
         f"{t.dtype or 'bytes'}{list(t.shape)}",
         hex(t.address) if t.space == "HBM" else f"{t.partition}:{t.address:#x}"]
        for t in found.tensors
    ]  # fmt: skip
    return [*lines, *(["", *table(("tensor", "kind", "in", "type", "address"), tensors)] if tensors else [])]


def values_view(found: Examined | TensorValue, output: Path | None) -> list[str]:
    """Return the text of values, as the debugger prints them, or where they were written."""
    from neurontools.debugger import Examined  # deferred: start-up
    from neurontools.debugger.view_memory import examined_lines, tensor_lines  # deferred: start-up

    if output is None:
        return list(examined_lines(found) if isinstance(found, Examined) else tensor_lines(found))
    array = array_of(found)
    return [f"{output}: {array.dtype.name}{list(array.shape)}"]


def memory(
    file: CoreFile,
    place: Annotated[
        str | None,
        typer.Argument(
            metavar="[ADDRESS | TENSOR[SLICE]]",
            help="PARTITION:BYTE, psum:P:B, hbm:A, an engine or device address, or a tensor; ncN in front: core N.",
            show_default=False,
        ),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", metavar="N", min=1, help="Values, from an address on.")] = 16,
    format: Annotated[
        str, typer.Option("--format", "-f", metavar="FORMAT", help="x d u f with b h w g, or an element type.")
    ] = "xw",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.npy", help="Write the values there instead.")
    ] = None,
    json: Json = False,
) -> None:
    """List the memories of a core dump, or print what is in them.

    Without a place: memories, tensors, how much of each is written and how much is in the dump.
    """
    with report("core memory", json, file=file, place=place, output=output) as out:
        dump = open_core_file(file)
        if place is None:
            if output is not None:
                raise typer.BadParameter("there is nothing to write without a place", param_hint="--output")
            out.result = listed = memories(dump)
            out.lines = lambda: view(listed)
        else:
            from neurontools.debugger import UsageError  # deferred: start-up

            try:
                found = read(dump, place, count, format)
            except UsageError as error:
                raise typer.BadParameter(str(error), param_hint="place or --format") from None
            if output is not None:
                from neurontools.program.arrays import export_array  # deferred: start-up

                export_array(output, array_of(found))
            out.result = described(place, found, output)
            out.lines = lambda: values_view(found, output)
        out.warn(*dump.warnings)


app = command_app(memory, Memories | ExaminedMemory | TensorElements)
