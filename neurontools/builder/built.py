"""From traces to a NEFF: places, words, waits, variables, queues, debug info."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial
from types import MappingProxyType

from formats.engines import ENGINES
from formats.errors import UnsupportedError
from formats.isa import EXTENSION_OPCODE
from formats.isa.registry import BY_OPCODE
from formats.neff.definition import EXTENDED_FEATURE
from formats.neff.reader import Neff
from formats.neff.visits import write_visits
from formats.neff.writer import NeffWriter
from formats.neff.writer_subgraph import SubgraphWriter
from formats.neuron_core import WORD
from neurontools.builder.barriers import Peer
from neurontools.builder.chip import Chip, chip_of
from neurontools.builder.emitted import Emitted
from neurontools.builder.errors import BuildError
from neurontools.builder.fresh import fresh_map
from neurontools.builder.garbage_collection import without_collection
from neurontools.builder.program import Program
from neurontools.builder.report import CoreReport, Report
from neurontools.builder.scheduling import scheduled
from neurontools.builder.spilling import Spilled
from neurontools.builder.tiles import Tiles, place_tiles, tile_map
from neurontools.builder.trace import SendRecvOp, Space, Trace, View, Visited
from neurontools.builder.trace_facts import facts_of, with_shared
from neurontools.builder.variables import Variables, common_tensors, shared_names, tensors_of

__all__ = ["BuiltNeff", "build"]


class BuiltNeff:
    """A finished file, a report on how it was made, and what of its programs goes through device memory."""

    def __init__(self, neff: Neff, make_report: Callable[[], Report], spilled: Sequence[Spilled] = ()) -> None:
        self._neff, self._make_report = neff, make_report
        self.spilled = spilled

    @cached_property
    def report(self) -> Report:
        """Return the report; hardly anybody who launches a kernel asks for it."""
        return self._make_report()

    def open(self) -> Neff:
        """Return the file opened from memory."""
        return self._neff

    def to_bytes(self) -> bytes:
        """Return the file; the same traces give the same bytes."""
        return self._neff.to_bytes()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file; it appears whole or not at all."""
        self._neff.save(path)


def build(
    traces: Sequence[Trace],
    name: str,
    *,
    compression: str = "none",
    members: Mapping[str, bytes] = MappingProxyType({}),
    schedule: bool = False,
) -> BuiltNeff:
    """Build one NEFF from the traces of all program ids of a launch, one subgraph each (one or two).

    `members` are put into the file as they are. With `schedule` operations go ahead of others that wait.

    Raises AllocationError when the tiles do not fit, BuildError for an operation that no word can express, both with
    the kernel line.
    """
    # a subgraph is a physical core, of which a logical core has one or two
    if len(traces) not in (1, 2):
        raise BuildError(f"{len(traces)} programs, a logical core has one or two cores")
    with without_collection():
        return _build(traces, name, compression, members, schedule)


def _build(
    traces: Sequence[Trace], name: str, compression: str, members: Mapping[str, bytes], schedule: bool
) -> BuiltNeff:
    target = traces[0].target
    chip = chip_of(target)
    if schedule:
        traces = [scheduled(trace, chip) for trace in traces]
    given = traces
    writer = NeffWriter(target, f"{name}.neff", len(traces), compression=compression)
    tensors = [tensors_of(trace) for trace in traces]
    names = shared_names(traces, tensors)
    placed = [place_tiles(trace, chip) for trace in traces]
    # a program that was changed so that it fits has allocations of its own
    tensors = [one if now is trace else tensors_of(now)
               for trace, one, (now, _) in zip(traces, tensors, placed, strict=True)]  # fmt: skip
    now = [trace for trace, _ in placed]
    if any(len(one.allocations) != len(trace.allocations) for one, trace in zip(now, traces, strict=True)):
        names = shared_names(now, tensors)  # what is spilled lies in a tensor of its own
    traces, tiles = now, [one for _, one in placed]
    facts = with_shared([facts_of(trace) for trace in traces], common_tensors(tensors))
    landings = [one.landings for one in facts]
    for trace in (*given, *traces):
        trace.touched = None
    _check_exchanges(traces, landings)
    cores = []
    extended = False
    for index, trace in enumerate(traces):
        part = writer.subgraph(index)
        used = facts[index].used
        variables = Variables(trace, tensors[index], names[index], part, table=bool(chip.direct), used=used)
        other = len(traces) - 1 - index
        program = Program(trace, chip, part, variables, tiles[index],
                          facts[index], Peer(tiles[other], landings[other]))  # fmt: skip
        streams = program.streams
        cores.append(partial(
            _core_report, [stream.count for stream in streams.of.values()], streams.prelude, streams.waits,
            streams.wait_words, tiles[index], variables.bytes, program.transfers, program.transfer_bytes,
        ))  # fmt: skip
        # What only somebody who looks wants to know is written for him then.
        emitted, losses = program.emitted, program.accesses.sharing.losses
        writer.member(f"{part.name}/tiles.json", partial(tile_map, tiles[index], emitted, losses))
        fresh = fresh_map(trace, tiles[index], names[index], used)
        if fresh is not None:
            writer.member(f"{part.name}/fresh.json", fresh)
        if trace.visits is not None:
            writer.member(f"{part.name}/visits.json", partial(_visits, trace.visits, emitted))
        extended = _write(program, part, chip, tiles[index]) or extended
        del program  # writing needs the room
    for member, content in members.items():
        writer.member(member, content)
    first = traces[0]
    inputs = [one for one in first.allocations if one.kind == "input"]
    for one in inputs:
        writer.input(names[0][one.id], one.dtype, one.shape)
    for one in first.outputs:
        writer.output(names[0][one.id], one.dtype, one.shape)
    return BuiltNeff(
        writer.hand_over(understood=True),
        lambda: Report(name, target.name, extended, tuple([make() for make in cores])),
        [one.spilled for one in tiles if one.spilled is not None],
    )


def _visits(visits: Visited, emitted: Emitted) -> bytes:
    return write_visits(visits.sites, visits.rows, emitted.visits())


def _check_exchanges(traces: Sequence[Trace], landings: Sequence[list[View]]) -> None:
    if len(traces) == 1 and landings[0]:
        raise BuildError("a tile is exchanged with another core, and there is one program")
    if len(traces) == 2:
        _check_pipes(*([op for op in trace.ops if isinstance(op, SendRecvOp)] for trace in traces))


def _check_pipes(mine: list[SendRecvOp], theirs: list[SendRecvOp]) -> None:
    """Refuse exchanges that never meet: those of one pipe wait for one another, whatever other pipes do.

    Source: hardware.md 2.5 (sendrecv).
    """
    for pipe in dict.fromkeys(op.pipe for op in (*mine, *theirs)):
        counts = [sum(op.pipe == pipe for op in ops) for ops in (mine, theirs)]
        if counts[0] == counts[1]:
            continue
        more = 0 if counts[0] > counts[1] else 1
        lone = [op for op in (mine, theirs)[more] if op.pipe == pipe][min(counts)]
        file, line = lone.source
        raise BuildError(
            f"{file}:{line}: sendrecv on pipe {pipe} of program {more} never meets: on that pipe program 0 exchanges "
            f"{counts[0]} tiles, program 1 {counts[1]}"
        ).found("synccheck:pipe", lone.source)
    for number, (one, other) in enumerate(zip(mine, theirs, strict=True)):
        if one.pipe != other.pipe:
            raise UnsupportedError(
                f"{one.source[0]}:{one.source[1]}: exchange {number} is on pipe {one.pipe} of program 0 and on pipe "
                f"{other.pipe} of program 1: exchanges in another order of pipes are not modelled"
            )


def _write(program: Program, part: SubgraphWriter, chip: Chip, tiles: Tiles) -> bool:
    """Hand streams, queues, sets and debug info to the subgraph; return whether anything of ours is in them."""
    streams = program.streams
    ours = False
    begun = streams.prelude // len(streams.of) * WORD  # bytes that every engine begins with
    for engine, stream in streams.of.items():
        ours = ours or (len(stream.raw) > begun and _ours(stream.raw))
        part.stream(engine, stream.raw)
        part.debug(engine, partial(program.emitted.origins, stream.actor))
        stream.raw.clear()
    for name in program.activation.sets:
        part.activation_set(name, program.activation.sets[name])
    for use in streams.queues.values():
        facts = use.facts
        # A kernel may choose addresses inside the scratch; the queue then goes without, as those of ACT and SP do.
        scratch: tuple[int, int] | tuple[None, None] = None, None
        if facts.scratch is not None:
            sbuf = tiles.bounds(Space.SBUF)
            if (chip.sbuf_first if sbuf is None else sbuf[0]) >= sum(facts.scratch):
                scratch = facts.scratch
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


def _ours(stream: bytearray) -> bool:
    """Return whether any word means something in the extended dialect only; those longer than 64 bytes all do."""
    opcodes = stream[::WORD]
    if EXTENSION_OPCODE in opcodes:
        return True
    for opcode in set(opcodes):
        if BY_OPCODE[opcode] is None:
            return True
        for offset, codes in _codes_of_ours(opcode):
            column = stream[offset::WORD]
            # first of all words together: nearly always there is no such code in any
            if len(column.translate(None, codes)) < len(column) and any(
                code in codes for one, code in zip(opcodes, column, strict=True) if one == opcode
            ):
                return True
    return False


@cache
def _codes_of_ours(opcode: int) -> tuple[tuple[int, bytes], ...]:
    """Return the places of a word whose bytes tell that it is ours, each with those that do."""
    cls = BY_OPCODE[opcode]
    if cls is None:
        return ()
    masks = enumerate(cls.OURS_MASK.to_bytes(WORD, "little"))
    return (
        *((offset, bytes([code for code in range(256) if code & mask])) for offset, mask in masks if mask),
        *((offset, bytes(range(limit, 256))) for offset, limit in cls.OURS_CODES),
    )


def _core_report(
    counts: list[int], prelude: int, waits: int, wait_words: int, tiles: Tiles, hbm_bytes: dict[str, int],
    transfers: int, transfer_bytes: int,
) -> CoreReport:  # fmt: skip
    sbuf, psum = tiles.bounds(Space.SBUF), tiles.bounds(Space.PSUM)
    return CoreReport(
        words=dict(zip(ENGINES, counts, strict=True)),
        instructions=sum(counts) - prelude - wait_words,
        waits=waits,
        wait_words=wait_words,
        sbuf_bytes=0 if sbuf is None else sbuf[1],
        psum_bytes=0 if psum is None else psum[1],
        hbm_bytes=dict(hbm_bytes),
        transfers=transfers,
        transfer_bytes=transfer_bytes,
    )
