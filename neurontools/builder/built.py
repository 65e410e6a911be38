"""From traces to a NEFF: places, words, waits, variables, queues, debug info."""

from __future__ import annotations

import os
from collections.abc import Sequence

from formats.isa import ENGINES, EXTENSION_OPCODE, Unknown
from formats.isa.registry import lookup
from formats.neff.definition import EXTENDED_FEATURE
from formats.neff.writer import NeffWriter
from formats.neff.writer_subgraph import SubgraphWriter
from neurontools.builder.chip import Chip, chip_of
from neurontools.builder.errors import BuildError
from neurontools.builder.meetings import Peer
from neurontools.builder.program import Program
from neurontools.builder.report import CoreReport, Report
from neurontools.builder.tiles import place_tiles, tile_map
from neurontools.builder.trace_facts import hbm_used
from neurontools.builder.variables import Variables, shared_names
from neurontools.collection import without_collection
from neurontools.trace import SendRecvOp, Space, Trace, View

__all__ = ["BuiltNeff", "build"]


class BuiltNeff:
    """A finished file: its bytes, and a report on how it was made."""

    def __init__(self, data: bytes, report: Report) -> None:
        self._data, self.report = data, report

    def to_bytes(self) -> bytes:
        """Return the file; the same traces give the same bytes."""
        return self._data

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file; it appears whole or not at all."""
        from formats.whole_files import write_beside

        write_beside(path, self._data)


def build(traces: Sequence[Trace], name: str, *, compression: str = "none") -> BuiltNeff:
    """Build one NEFF from the traces of all program ids of a launch, one subgraph each (one or two).

    Raises AllocationError when the tiles do not fit, BuildError for an operation that no word can express, both with
    the kernel line.
    """
    if len(traces) not in (1, 2):
        raise BuildError(f"{len(traces)} programs, a logical core has one or two cores")
    with without_collection():
        return _build(traces, name, compression)


def _build(traces: Sequence[Trace], name: str, compression: str) -> BuiltNeff:
    target = traces[0].target
    chip = chip_of(target)
    writer = NeffWriter(target, f"{name}.neff", len(traces), compression=compression)
    names = shared_names(traces)
    placed = [place_tiles(trace, chip) for trace in traces]
    traces, tiles = [trace for trace, _ in placed], [one for _, one in placed]
    landings = [[op.dst for op in trace.ops if isinstance(op, SendRecvOp)] for trace in traces]
    _check_exchanges(traces, landings)
    cores = []
    extended = False
    for index, trace in enumerate(traces):
        part = writer.subgraph(index)
        variables = Variables(trace, names[index], part, table=bool(chip.direct), used=hbm_used(trace))
        other = len(traces) - 1 - index
        program = Program(trace, chip, part, variables, tiles[index],
                          Peer(tiles[other].engine_places(), landings[other]))  # fmt: skip
        cores.append(_core_report(program, variables))
        writer.member(f"{part.name}/tiles.json", tile_map(tiles[index], program.tile_words))
        extended = _write(program, part, chip) or extended
        del program  # writing needs the room
    first = traces[0]
    inputs = [one for one in first.allocations if one.kind == "input"]
    for one in inputs:
        writer.input(names[0][one.id], one.dtype, one.shape)
    for one in first.outputs:
        writer.output(names[0][one.id], one.dtype, one.shape)
    report = Report(name, target.name, extended, tuple(cores))
    return BuiltNeff(writer.to_bytes(), report)


def _check_exchanges(traces: Sequence[Trace], landings: Sequence[list[View]]) -> None:
    if len(traces) == 1 and landings[0]:
        raise BuildError("a tile is exchanged with another core, and there is one program")
    if len(traces) == 2 and len(landings[0]) != len(landings[1]):
        raise BuildError(f"program 0 exchanges {len(landings[0])} tiles, program 1 {len(landings[1])}")


def _write(program: Program, part: SubgraphWriter, chip: Chip) -> bool:
    """Hand streams, queues, sets and debug info to the subgraph; return whether anything of ours is in them."""
    streams = program.streams
    ours = False
    for engine in ENGINES:
        slots = streams.slots[engine]
        part.stream(engine, b"".join([slot.raw for slot in slots]))
        ours = ours or any(_ours(slot.raw) for slot in slots)
        part.debug(
            engine,
            (
                (slot.name, *slot.source) if slot.name else None
                for slot in slots
                for _ in range(len(slot.raw) // 64)
            ),
        )
        slots.clear()
    for name in program.activation.sets:
        part.activation_set(name, program.activation.sets[name])
    lowest = program.tiles.bottom(Space.SBUF)
    low = chip.sbuf_first if lowest is None else lowest
    for use in streams.queues.values():
        facts = use.facts
        # A kernel may choose addresses inside the scratch; the queue then goes without, as those of ACT and SP do.
        scratch = facts.scratch if facts.scratch is not None and low >= sum(facts.scratch) else (None, None)
        part.queue(
            facts.name,
            facts.kind,
            facts.owner,
            len(facts.semaphores),
            facts.semaphores,
            scratch_offset=scratch[0],
            scratch_size=scratch[1],
        )
    if ours:
        part.feature(EXTENDED_FEATURE)
    return ours


def _ours(raw: bytearray) -> bool:
    """Tell whether a word means something in the extended dialect only."""
    return raw[0] == EXTENSION_OPCODE or lookup(bytes(raw[:64]), extended=False) is Unknown


def _core_report(program: Program, variables: Variables) -> CoreReport:
    instructions = waits = wait_words = 0
    for slots in program.streams.slots.values():
        for slot in slots:
            if slot.name:
                instructions += 1
                waits += (slot.wait is not None) + (slot.second is not None)
                wait_words += "-wait-" in slot.name or slot.name == "end"
    return CoreReport(
        words={engine: len(program.streams.slots[engine]) for engine in ENGINES},
        instructions=instructions - wait_words,
        waits=waits,
        wait_words=wait_words,
        sbuf_bytes=program.tiles.top(Space.SBUF),
        psum_bytes=program.tiles.top(Space.PSUM),
        hbm_bytes=dict(variables.bytes),
        transfers=program.transfers,
        transfer_bytes=program.transfer_bytes,
    )
