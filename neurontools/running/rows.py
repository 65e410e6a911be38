"""What came of one execution, as typed rows: outputs, prints, counts, a fault, a hang."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

from formats.debug_stream import is_printed
from formats.named_tuple import NamedTuple
from formats.neuron_core import WORD
from neurontools.command.results import LEFT_OUT

if TYPE_CHECKING:
    import numpy.typing as npt

    from emulator.debug_stream import Printed
    from emulator.diagnosis.graph import Hang
    from emulator.events import Notice
    from emulator.faults import Fault
    from emulator.runtime import Result, Stats
    from formats.neff import Neff

__all__ = ["FaultRow", "HangRow", "OutputRow", "PrintedRow", "SourceRow", "StatsRow", "fault_row", "hang_row",
           "notices", "output_rows", "place_text", "printed_row", "source_row", "stats_row",
           "unwritten_notes"]  # fmt: skip

_ELEMENTS = 64  # of a printed tensor


class SourceRow(NamedTuple):
    """A place in a source file, and the operation of a graph that it stands for."""

    file: str
    line: int | None
    operation: Annotated[str | None, LEFT_OUT] = None


class StatusRow(NamedTuple):
    """The status that the Neuron runtime returns."""

    name: str
    code: int


class FaultRow(NamedTuple):
    """What stopped an execution; what does not apply is None."""

    kind: str
    message: str
    core: int | None
    engine: str | None
    pc: int | None
    instruction: str | None
    source: SourceRow | None
    operand: str | None
    space: str | None
    address: Annotated[tuple[int, ...] | None, "first byte, and the one behind the last"]
    expected: str | None
    got: str | None
    time_ps: int | None
    status: StatusRow


class WordSourceRow(NamedTuple):
    """Where a word comes from; names are the debug information's."""

    file: str | None
    line: int | None
    name: str | None
    tensor: str | None
    kernel: str | None


class SignalRow(NamedTuple):
    """Something that signals what an engine waits for."""

    core: int
    engine: Annotated[str, "engine, or DMA queue of a transfer"]
    owner: Annotated[str, "engine whose stream holds pc"]
    pc: int
    text: str
    state: str
    amount: Annotated[int | None, "what it adds; null where it writes"]
    behind: Annotated[int | None, "pc of the word that it is queued behind"]


class WaitRow(NamedTuple):
    """One engine that waits, and everything that could signal it."""

    core: int
    engine: str
    pc: int
    text: str
    source: WordSourceRow | None
    kind: Annotated[str, "semaphore or event"]
    number: int
    condition: str
    need: int
    present: int
    since_ps: int
    could_signal: tuple[SignalRow, ...]
    overshoot: bool
    cause: Annotated[str | None, LEFT_OUT] = None
    verdict: Annotated[str | None, LEFT_OUT] = None
    hint: Annotated[str | None, LEFT_OUT] = None


class LoopWordRow(NamedTuple):
    """One word of a loop that nothing ends."""

    core: int
    engine: str
    pc: int
    text: str
    source: WordSourceRow | None


class HangRow(NamedTuple):
    """An execution that does not end."""

    text: str
    waits: tuple[WaitRow, ...]
    cycles: Annotated[tuple[tuple[tuple[int | str, ...], ...], ...], "chains of [core, engine], each for the next"]
    reason: Annotated[
        str, "deadlock, livelock, hang timeout, instruction limit, time limit, host time limit or interrupted"
    ]
    running: Annotated[tuple[str, ...], "what engines were at that do not wait"]
    loops: Annotated[tuple[LoopWordRow, ...], "the words of loops that nothing ends, engine by engine"]


class OutputRow(NamedTuple):
    """What an array holds: its range over finite values, and how many are not finite."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    min: float | None
    mean: float | None
    max: float | None
    nonfinite: int


class PrintedRow(NamedTuple):
    """One event of the debug stream."""

    number: Annotated[int, "of the event, as `goto #N` takes it"]
    time_ps: int
    core: int
    prefix: str
    values: Annotated[tuple[float | str, ...], "the first 64; infinities and NaN as text"]
    dtype: str
    shape: tuple[int, ...]
    min: float | None
    mean: float | None
    max: float | None
    nonfinite: int


class StatsRow(NamedTuple):
    """The counts of an execution."""

    instructions: int
    transfers: int
    dma_bytes: int
    seconds: Annotated[float, "of this machine's time"]
    words: Annotated[dict[str, int], "completed words by core and engine, such as 0.PE"]


def source_row(source: object | None) -> SourceRow | None:
    """Return a source location, None where the file is not known."""
    file = getattr(source, "file", None)
    return SourceRow(str(file), getattr(source, "line", None), getattr(source, "operation", None)) if file else None


def place_text(row: SourceRow) -> str:
    """Return "FILE:LINE", and the operation where there is one."""
    return f"{row.file}:{row.line}" + (f" %{row.operation}" if row.operation else "")


def fault_row(fault: Fault) -> FaultRow:
    """Return a fault as a row."""
    return FaultRow(
        fault.kind, fault.message, None if fault.core < 0 else fault.core, fault.engine or None,
        None if fault.pc < 0 else fault.pc, fault.instruction_text or None, source_row(fault.source), fault.operand,
        fault.space, fault.address, fault.expected, fault.got, None if fault.time_ps < 0 else fault.time_ps,
        StatusRow(fault.status.name, int(fault.status)),
    )  # fmt: skip


def hang_row(hang: Hang) -> HangRow:
    """Return a hang as a row: every engine that waits, and who could have signalled it."""
    waits = []
    for wait in hang.waits:
        known = {name: getattr(wait, name) for name in WaitRow._fields if hasattr(wait, name)}
        known["source"] = None if wait.source is None else _copied(WordSourceRow, wait.source)
        known["could_signal"] = tuple(_copied(SignalRow, signal) for signal in wait.could_signal)
        waits.append(WaitRow(**known))
    loops = tuple(
        LoopWordRow(word.core, word.engine, word.pc, word.text,
                    None if word.source is None else _copied(WordSourceRow, word.source))
        for word in hang.loops
    )  # fmt: skip
    return HangRow(hang.text(), tuple(waits), hang.cycles, str(hang.reason), hang.running, loops)


def _copied(kind: Any, value: object) -> Any:
    """Return a row of the fields of the same names."""
    return kind(*(getattr(value, name, None) for name in kind._fields))


def output_rows(result: Result) -> tuple[OutputRow, ...]:
    """Return the outputs of an execution, without those that only carry what the program prints."""
    # The debug stream is an output of the file too, whose bytes are no tensor.
    return tuple(_output(name, array) for name, array in result.outputs.items() if not is_printed(name))


def _output(name: str, array: npt.NDArray[Any]) -> OutputRow:
    import numpy as np

    values = np.asarray(array)
    wide = values.astype(np.float64)  # a mean in float16 or bfloat16 would overflow or stand still
    finite = wide[np.isfinite(wide)]
    low, mean, high = (float(finite.min()), float(finite.mean()), float(finite.max())) if finite.size else (None,) * 3
    odd = int(wide.size - finite.size)
    return OutputRow(name, values.dtype.name, values.shape, values.nbytes, low, mean, high, odd)


def printed_row(item: Printed) -> PrintedRow:
    """Return one event of the debug stream, with at most the first elements of its values."""
    import numpy as np

    held = _output(item.prefix, item.values)
    first: Iterable[Any] = np.asarray(item.values).reshape(-1)[:_ELEMENTS].astype(np.float64)
    # JSON has no number for them.
    values = tuple(float(value) if np.isfinite(value) else str(value) for value in first)
    return PrintedRow(item.number, item.time_ps, item.core, item.prefix, values, held.dtype, held.shape, held.min,
                      held.mean, held.max, held.nonfinite)  # fmt: skip


def stats_row(stats: Stats) -> StatsRow:
    """Return the counts of an execution."""
    words = {f"{core}.{engine}": number for (core, engine), number in stats.words.items()}
    return StatsRow(stats.instructions, stats.transfers, stats.dma_bytes, round(stats.seconds, 6), words)


def notices(items: Iterable[Notice], neff: Neff | None = None) -> list[str]:
    """Return what the device remarked on, a line each, with the source line where the file has one."""
    return [_notice(item, neff) for item in items]


def _notice(item: Notice, neff: Neff | None) -> str:
    where = f"core {item.core} {item.engine} pc {item.pc}"
    if neff is not None:
        graph = neff.subgraphs[item.core] if item.core < len(neff.subgraphs) else None
        found = None
        if graph is not None and item.engine in graph.streams and item.pc < len(graph.streams[item.engine]):
            found = neff.source_of(item.engine, graph.streams[item.engine].offsets[item.pc] // WORD, item.core)
        place = source_row(found)
        if place is not None:
            where += f" ({place_text(place)})"
    return f"{where}: {item.message}"


def unwritten_notes(result: Result) -> list[str]:
    """Return which outputs a program that ended left unwritten, in part or as a whole, a line each."""
    found = []
    for name, missing in result.unwritten.items():
        total = result.outputs[name].nbytes
        part = "never written" if missing >= total else f"not written whole: {missing} of {total} bytes are missing"
        found.append(f"output {name} was {part}")
    return found
