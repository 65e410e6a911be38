"""`info` and its topics: tables of what stands where, and the pictures of the screen as lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from emulator.checks.finding import Finding
from emulator.debug_stream import Printed
from emulator.events import Notice
from neurontools.debugger import view_tables as tables
from neurontools.debugger.breakpoint import Breakpoint
from neurontools.debugger.byte_facts import Variable
from neurontools.debugger.commands.arguments import alone, core_and_words
from neurontools.debugger.commands.command import AnyCommand, Command, Words, no_words
from neurontools.debugger.commands.completion import engines, one_of, operations, places, tensors
from neurontools.debugger.commands.pictures import MAP, TIMELINE, VALUES, map_cells, timeline, values
from neurontools.debugger.commands.ranks import rank_rows
from neurontools.debugger.errors import UsageError
from neurontools.debugger.maps import MapCells
from neurontools.debugger.rank_results import RankRow
from neurontools.debugger.results import (
    Display,
    DmaRow,
    EngineRow,
    LocalRow,
    MemoryRow,
    OperationRow,
    QueueRow,
    RegisterRow,
    SemaphoreRow,
    TensorRow,
)
from neurontools.debugger.spans import Spans
from neurontools.debugger.tile_view import TileView
from neurontools.debugger.view_maps import map_lines, spans_lines, tile_lines, variable_lines
from neurontools.debugger.view_memory import display_lines
from neurontools.debugger.view_ranks import rank_lines

if TYPE_CHECKING:
    from neurontools.debugger.session import Session

__all__ = ["INFO"]

Row = TypeVar("Row")
_PARTS = 12  # of a variable, whose written-ness is shown


def _rows(name: str, summary: str, rows: type[tuple[Row, ...]], view: Callable[[tuple[Row, ...]], Iterable[str]],
          look: Callable[[Session], tuple[Row, ...]]) -> Command[tuple[Row, ...]]:  # fmt: skip
    """Return a topic without an argument."""
    return _topic(name, "", summary, alone(f"info {name}", look), rows, view)


def _topic(name: str, arguments: str, summary: str, run: Callable[[Session, str], Row], result: type[Row],
           view: Callable[[Row], Iterable[str]], words: Words = no_words) -> Command[Row]:  # fmt: skip
    return Command(f"info {name}", arguments, summary, run, result, view, words=words, keeps_listing=True,
                   nothing="none")  # fmt: skip


def _everything(rest: str, name: str) -> bool:
    if rest not in ("", "all"):
        raise UsageError(f"info {name} [all]")
    return rest == "all"


def _registers(session: Session, rest: str) -> tuple[RegisterRow, ...]:
    core, words = core_and_words(rest)
    named = [word for word in words if word != "all"]
    if len(named) > 1:
        raise UsageError("info registers [ncN] [ENGINE] [all]")
    return session.info_registers(named[0] if named else None, core, "all" in words)


def _choose(session: Session, rest: str) -> str:
    raise UsageError(f"what? {', '.join(topic.name.removeprefix('info ') for topic in _TOPICS)}")


_TOPICS: tuple[AnyCommand, ...] = (
    _rows("engines", "each engine: state, pc, what it waits for", tuple[EngineRow, ...], tables.engines,
          lambda session: session.info_engines()),
    _rows("queues", "each DMA queue: transfers waiting, moving, completed", tuple[QueueRow, ...], tables.queues,
          lambda session: session.info_queues()),
    _rows("dma", "the transfers that are not complete", tuple[DmaRow, ...], tables.transfers,
          lambda session: session.info_dma()),
    _topic("semaphores", "[all]", "semaphores and events that are not zero or are waited for",
           lambda session, rest: session.info_semaphores(_everything(rest, "semaphores")), tuple[SemaphoreRow, ...],
           tables.semaphores, words=one_of("all")),
    _topic("events", "[all]", "events that are set or are waited for",
           lambda session, rest: session.info_events(_everything(rest, "events")), tuple[SemaphoreRow, ...],
           tables.semaphores, words=one_of("all")),
    _topic("registers", "[ncN] [ENGINE] [all]", "the registers of an engine that are not zero", _registers,
           tuple[RegisterRow, ...], tables.registers, words=engines),
    _rows("memory", "SBUF, PSUM and the allocations in HBM, and how much of each is written", tuple[MemoryRow, ...],
          tables.memory, lambda session: session.info_memory()),
    _rows("tensors", "the tensors and tiles by name", tuple[TensorRow, ...], tables.tensors,
          lambda session: session.info_tensors()),
    _rows("breakpoints", "breakpoints, watchpoints and catchpoints", tuple[Breakpoint, ...], tables.breakpoints,
          lambda session: session.info_breakpoints()),
    _rows("findings", "what the checks have found up to here", tuple[Finding, ...], tables.findings,
          lambda session: session.findings()),
    _rows("warnings", "what was suspicious but did not stop the run", tuple[Notice, ...], tables.notices,
          lambda session: session.warnings()),
    _rows("prints", "what the program has printed", tuple[Printed, ...], tables.prints,
          lambda session: session.prints()),
    _topic("map", MAP, "SBUF or PSUM as a picture: which tensor lies where, how old bytes are, what they hold",
           map_cells, MapCells, map_lines),
    _topic("values", VALUES, "a tensor in figures, as a histogram and as its first elements", values, TileView,
           tile_lines, words=tensors),
    _rows("variables", "what HBM holds, and which parts of it are written", tuple[Variable, ...], variable_lines,
          lambda session: session.inspector.variables(_PARTS)),
    _topic("timeline", TIMELINE, "how busy engines and queues were", timeline, Spans, spans_lines),
    # Behind the others: a short form goes on meaning what it meant.
    _rows("display", "the expressions that are shown at every stop", tuple[Display, ...], display_lines,
          lambda session: session.scripting.displays),
    _rows("locals", "the variables of the kernel where the focus engine stands", tuple[LocalRow, ...], tables.variables,
          lambda session: session.info_locals()),
    _topic("ops", "[NAME | FILE:LINE]", "the operations of the graph: how far each is, and where its result lies",
           lambda session, rest: session.info_ops(rest.strip()), tuple[OperationRow, ...], tables.operations,
           words=operations),
    _rows("ranks", "each rank: its engines, where it stands and what it waits for", tuple[RankRow, ...], rank_lines,
           rank_rows),
    _topic("scope", "[WHERE]", "the variables of the kernel at a line or word, else here",
           lambda session, rest: session.info_scope(rest), tuple[LocalRow, ...],
           tables.variables, words=places),
)  # fmt: skip

INFO = Command("info", "|".join(topic.name.removeprefix("info ") for topic in _TOPICS),
               "show engines, queues, semaphores, memory, tensors and more", _choose, str, str.splitlines,
               aliases=("i",), keeps_listing=True, topics=_TOPICS)  # fmt: skip
