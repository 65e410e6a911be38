"""The result of an execution as lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from neurontools.running.results import ProgramRun
from neurontools.running.rows import FaultRow, HangRow, OutputRow, StatsRow, fault_row, place_text
from neurontools.text.table import bytes_text, count, duration, table

if TYPE_CHECKING:
    from emulator.debug_stream import Printed
    from emulator.faults import Fault

__all__ = ["fault_lines", "launch_line", "printed_lines", "result_lines", "trouble_lines", "verdict"]


class Ended(Protocol):
    """A row on an execution, as far as its end goes."""

    @property
    def time_ps(self) -> int: ...
    @property
    def fault(self) -> FaultRow | None: ...
    @property
    def hang(self) -> HangRow | None: ...


def result_lines(title: str, run: ProgramRun, prints: Iterable[Printed] = ()) -> Iterator[str]:
    """Return an execution for people; what it printed goes before the rest, whole."""
    for item in prints:
        yield from printed_lines(item)
    yield f"{title}: {verdict(run)}"
    if run.fault is not None or run.hang is not None:
        yield from trouble_lines(run)
    else:
        yield stats_line(run.stats)
        yield ""
        yield from _outputs(run.outputs)
    if run.dump is not None:
        yield f"dump: {run.dump}"


def _outputs(rows: tuple[OutputRow, ...]) -> Iterator[str]:
    heads = ["output", "type", "shape", "size", "min", "mean", "max", "not finite"]
    yield from table(heads, [
        [row.name, row.dtype, f"[{', '.join(map(str, row.shape))}]", bytes_text(row.bytes), _number(row.min),
         _number(row.mean), _number(row.max), row.nonfinite]
        for row in rows
    ])  # fmt: skip


def printed_lines(item: Printed) -> Iterator[str]:
    """Return one event of the debug stream for people: when, where, and the values behind their prefix."""
    yield f"{duration(item.time_ps)} nc{item.core}: {item.prefix} {item.values}"


def trouble_lines(run: Ended) -> Iterator[str]:
    """Return why an execution did not end, for people."""
    if run.fault is not None:
        yield from _fault_lines(run.fault)
    if run.hang is not None:
        yield from run.hang.text.splitlines()


def verdict(run: Ended) -> str:
    """Return how an execution ended, in a few words."""
    how = "faulted" if run.fault is not None else "done"
    if run.hang is not None:
        stopped = run.hang.reason == "interrupted" or run.hang.reason.endswith(" limit")
        how = "stopped" if stopped else "hung"
    return f"{how} after {duration(run.time_ps)} of device time"


def launch_line(kernel: str, run: Ended) -> str:
    """Return one line on a kernel launch."""
    return f"{kernel}: {verdict(run)}"


def fault_lines(fault: Fault) -> Iterator[str]:
    """Return a fault for people: what, where, by which instruction, and what would have been right."""
    yield from _fault_lines(fault_row(fault))


def _fault_lines(row: FaultRow) -> Iterator[str]:
    yield f"fault: {row.message}"
    rows = {
        "at": None if row.engine is None else f"core {row.core} {row.engine} pc {row.pc}",
        "word": row.instruction,
        "source": None if row.source is None else place_text(row.source),
        "operand": row.operand,
        "range": None if row.address is None
        else f"{row.space or ''} 0x{row.address[0]:x} to 0x{row.address[1]:x}".strip(),
        "allowed": row.expected,
        "found": row.got,
        "status": f"{row.status.name} ({row.status.code}), what the Neuron runtime returns",
    }  # fmt: skip
    yield from (f"  {key.ljust(7)}  {value}" for key, value in rows.items() if value is not None)


def stats_line(row: StatsRow) -> str:
    """Return the counts of a run in one line."""
    return (
        f"{count(row.instructions, 'instruction')}, {count(row.transfers, 'transfer')} of "
        f"{bytes_text(row.dma_bytes)} in all, emulated in {row.seconds:.3f} s"
    )


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.6g}"
