"""The `info` views of the debugger as tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from neurontools.debugger.view import turns_of
from neurontools.running.view import printed_lines
from neurontools.text.table import bytes_text, count, duration, table

if TYPE_CHECKING:
    from emulator.checks.finding import Finding
    from emulator.debug_stream import Printed
    from emulator.events import Notice
    from neurontools.debugger.breakpoint import Breakpoint
    from neurontools.debugger.results import (
        DmaRow,
        EngineRow,
        FrameRow,
        LocalRow,
        MemoryRow,
        OperationRow,
        QueueRow,
        RegisterRow,
        SemaphoreRow,
        TensorRow,
    )

__all__ = ["breakpoints", "engines", "findings", "frames", "memory", "notices", "prints", "queues", "registers",
           "semaphores", "tensors", "transfers", "variables"]  # fmt: skip

_WIDTH = 60  # characters of an instruction in a table


def engines(rows: tuple[EngineRow, ...]) -> Iterator[str]:
    """Return engines as lines."""
    yield from table(
        ["", "core", "engine", "state", "pc", "done", "of", "waits for", "word"],
        [
            [
                "*" if r.focus else "",
                f"nc{r.core}",
                r.engine,
                r.state,
                r.pc,
                r.completed,
                r.words,
                r.waits_for,
                _short(r.text),
            ]
            for r in rows
        ],
    )


def variables(rows: tuple[LocalRow, ...]) -> Iterator[str]:
    """Return variables of the kernel as lines, function by function."""
    yield from table(
        ["function", "name", "value"],
        [[f"#{r.level} {r.function}", r.name, _variable(r)] for r in rows],
    )


def _variable(row: LocalRow) -> str:
    if row.tensor:
        shape = ", ".join(map(str, row.shape))
        return f"{row.value}: {row.dtype}[{shape}] in {row.space}" if row.space else str(row.value)
    return repr(row.value)


def frames(rows: tuple[FrameRow, ...]) -> Iterator[str]:
    """Return the calls that led somewhere as lines."""
    for row in rows:
        what = row.function or (f"%{row.operation}" if row.operation else "kernel")
        yield f"#{row.level}  {what} at {row.file}:{row.line}{turns_of(row.iteration)}"


def _short(text: str | None) -> str | None:
    return text if text is None or len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def operations(rows: tuple[OperationRow, ...]) -> Iterator[str]:
    """Return the operations of a graph as lines."""
    yield from table(
        ["", "operation", "opcode", "type", "source", "words", "result"],
        [
            [{"done": ".", "at": "=>"}.get(r.state, ""), f"%{f'{r.path}/' if r.path else ''}{r.name}", r.opcode, r.type,
             f"{r.file}:{r.line}", "  ".join(f"{engine} {n}" for engine, n in r.words.items()) or "-", r.held]
            for r in rows
        ],
    )  # fmt: skip


def queues(rows: tuple[QueueRow, ...]) -> Iterator[str]:
    """Return DMA queues as lines."""
    yield from table(
        ["core", "queue", "engine", "kind", "ring", "pending", "moving", "completed", "moved", "next"],
        [
            [f"nc{r.core}", r.name, r.engine, r.kind, r.ring, r.pending, r.moving, r.completed, bytes_text(r.nbytes),
             r.next]
            for r in rows
        ],
    )  # fmt: skip


def semaphores(rows: tuple[SemaphoreRow, ...]) -> Iterator[str]:
    """Return semaphores and events as lines."""
    yield from table(
        ["core", "name", "value", "waited for by"],
        [
            [f"nc{r.core}", f"{'E' if r.kind == 'event' else 'S'}[{r.number}]", r.value, "; ".join(r.waiters) or None]
            for r in rows
        ],
    )


def memory(rows: tuple[MemoryRow, ...]) -> Iterator[str]:
    """Return memories and allocations as lines."""
    yield from table(
        ["space", "core", "name", "address", "size", "written"],
        [
            [
                r.space,
                None if r.core is None else f"nc{r.core}",
                r.name or None,
                f"{r.address:#x}",
                bytes_text(r.nbytes),
                bytes_text(r.written),
            ]
            for r in rows
        ],
    )


def tensors(rows: tuple[TensorRow, ...]) -> Iterator[str]:
    """Return tensors and tiles as lines."""
    yield from table(
        ["name", "kind", "type", "shape", "space", "address", "size"],
        [
            [
                r.name,
                r.kind,
                r.dtype or None,
                f"[{', '.join(map(str, r.shape))}]" if r.dtype else None,
                r.space if r.core is None else f"nc{r.core} {r.space}",
                f"{r.address:#x}",
                bytes_text(r.nbytes),
            ]
            for r in rows
        ],
    )


def breakpoints(rows: tuple[Breakpoint, ...]) -> Iterator[str]:
    """Return breakpoints with what belongs to each as lines."""
    of_ranks = any(row.ranks for row in rows)
    heads = ["number", "what", "kind", "enabled", "temporary", "hits", "places", *(["ranks"] * of_ranks)]
    lines = table(
        heads,
        [
            [r.number, r.where, r.kind, r.enabled, r.temporary, r.hits, len(r.places) or None]
            + [", ".join(map(str, r.ranks))] * of_ranks
            for r in rows
        ],
    )
    yield lines[0]
    for row, line in zip(rows, lines[1:], strict=True):
        yield line
        if row.condition is not None:
            yield f"        only if {row.condition}" + (f" ({row.error})" if row.error else "")
        if row.ignore:
            yield f"        ignored the next {count(row.ignore, 'time')}"
        yield from (f"        {text}" for text in row.commands)


def registers(rows: tuple[RegisterRow, ...]) -> Iterator[str]:
    """Return registers as lines."""
    yield from table(
        ["core", "engine", "register", "value", "hex", "as fp32"],
        [[f"nc{r.core}", r.engine, f"R[{r.number}]", r.value, f"{r.value:#x}", f"{r.as_float:.6g}"] for r in rows],
    )


def transfers(rows: tuple[DmaRow, ...]) -> Iterator[str]:
    """Return DMA transfers as lines."""
    yield from table(
        ["core", "transfer", "by", "pc", "state", "size", "triggered", "due", "signals", "what"],
        [
            [f"nc{r.core}", f"{r.queue}#{r.number}", r.engine, r.pc, r.state, bytes_text(r.nbytes),
             duration(r.triggered_ps), duration(r.due_ps) if r.due_ps >= 0 else None,
             None if r.semaphore is None else f"S[{r.semaphore}]+{r.increment}", _short(r.text)]
            for r in rows
        ],
    )  # fmt: skip


def findings(rows: tuple[Finding, ...]) -> Iterator[str]:
    """Return findings as lines."""
    from neurontools.check.view import finding_lines  # deferred: start-up

    for row in rows:
        yield from finding_lines(row)


def prints(rows: tuple[Printed, ...]) -> Iterator[str]:
    """Return what the program has printed as lines."""
    for row in rows:
        yield from printed_lines(row)


def notices(rows: tuple[Notice, ...]) -> Iterator[str]:
    """Return what was suspicious, a line each."""
    return (f"{row.kind}: {row.text}" for row in rows)
