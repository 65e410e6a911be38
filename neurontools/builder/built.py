"""From traces to a NEFF: places, words, waits, variables, queues, debug info."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial
from itertools import compress
from types import MappingProxyType

from formats.engines import ENGINES
from formats.errors import UnsupportedError
from formats.isa import EXTENSION_OPCODE
from formats.isa.registry import BY_OPCODE
from formats.named_tuple import NamedTuple
from formats.neff.definition import EXTENDED_FEATURE
from formats.neff.reader import Neff
from formats.neff.visits import write_visits
from formats.neff.writer import NeffWriter
from formats.neff.writer_subgraph import SubgraphWriter
from formats.neuron_core import WORD
from neurontools.builder.barriers import Peer
from neurontools.builder.chip import Chip, chip_of
from neurontools.builder.counterpart import are_counterparts, moved_words, tiles_of
from neurontools.builder.emitted import Emitted
from neurontools.builder.errors import BuildError
from neurontools.builder.fresh import fresh_map
from neurontools.builder.garbage_collection import without_collection
from neurontools.builder.program import Program
from neurontools.builder.report import CoreReport, Report
from neurontools.builder.scheduling import scheduled
from neurontools.builder.spilling import Spilled
from neurontools.builder.streams import ENGINE
from neurontools.builder.tiles import Tiles, place_tiles, tile_map
from neurontools.builder.trace import SendRecvOp, Space, Trace, View, Visited
from neurontools.builder.trace_facts import Facts, facts_of, with_shared
from neurontools.builder.variables import Tensors, Variables, common_tensors, shared_names, tensors_of

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
    traces, parts, are_alike = _placed(traces, chip)
    for trace in (*given, *traces):
        trace.touched = None
    landings = [one.facts.landings for one in parts]
    _check_exchanges(traces, landings)
    cores = []
    extended = False
    program: Program | None = None
    for index, (trace, (tensors, names, tiles, facts)) in enumerate(zip(traces, parts, strict=True)):
        part = writer.subgraph(index)
        used = facts.used
        variables = Variables(trace, tensors, names, part, table=bool(chip.direct), used=used)
        if program is not None and are_alike:
            emitted = program.emitted.counterpart(trace)
            words = moved_words(program.words, program.moves, trace, variables, tiles, part, emitted.name)
        else:
            program = None  # the one before goes before the next is made
            other = len(traces) - 1 - index
            program = Program(trace, chip, part, variables, tiles, facts, Peer(parts[other].tiles, landings[other]))
            emitted, words = program.emitted, program.words
            is_ours = _is_ours(words, program.streams.prelude)
        streams = program.streams
        cores.append(partial(
            _core_report, emitted.counts(), streams.prelude, streams.waits, streams.wait_words,
            tiles, variables.bytes, program.transfers, program.transfer_bytes,
        ))  # fmt: skip
        # What only somebody who looks wants to know is written for him then.
        losses = program.accesses.sharing.losses
        writer.member(f"{part.name}/tiles.json", partial(tile_map, tiles, emitted, losses))
        fresh = fresh_map(trace, tiles, names, used)
        if fresh is not None:
            writer.member(f"{part.name}/fresh.json", fresh)
        if trace.visits is not None:
            writer.member(f"{part.name}/visits.json", partial(_visits, trace.visits, emitted))
        _write(program, words, emitted, part, chip, tiles)
        if is_ours:
            part.feature(EXTENDED_FEATURE)
            extended = True
    del program, streams, words  # writing needs the room
    for member, content in members.items():
        writer.member(member, content)
    first, names = traces[0], parts[0].names
    inputs = [one for one in first.allocations if one.kind == "input"]
    for one in inputs:
        writer.input(names[one.id], one.dtype, one.shape)
    for one in first.outputs:
        writer.output(names[one.id], one.dtype, one.shape)
    return BuiltNeff(
        writer.hand_over(understood=True),
        lambda: Report(name, target.name, extended, tuple([make() for make in cores])),
        [one.tiles.spilled for one in parts if one.tiles.spilled is not None],
    )


class _Part(NamedTuple):
    """What is known of a program before its words: tensors, their names by allocation id, tiles, and facts."""

    tensors: Tensors
    names: dict[int, str]
    tiles: Tiles
    facts: Facts


def _placed(given: Sequence[Trace], chip: Chip) -> tuple[list[Trace], list[_Part], bool]:
    """Return the programs, which may be others to fit, with their tiles placed.

    Then whether the second one is a counterpart of the first (`neurontools.builder.counterpart`).
    """
    tensors = [tensors_of(trace) for trace in given]
    names = shared_names(given, tensors)
    traces: list[Trace] = []
    tiles: list[Tiles] = []
    facts: list[Facts] = []
    both: list[Facts] = []
    are_alike = False
    for trace in given:
        if traces and traces[0] is given[0]:
            both = with_shared([*facts, *facts], common_tensors(tensors))
            are_alike = both[0].written == both[1].written and are_counterparts(traces[0], trace, both[0].written)
        if are_alike:
            now, its = trace, tiles_of(traces[0], tiles[0], trace)
        else:
            now, its = place_tiles(trace, chip)
            facts.append(facts_of(now))
        traces.append(now)
        tiles.append(its)
    # a program that was changed so that it fits has allocations of its own
    tensors = [one if now is trace else tensors_of(now)
               for trace, one, now in zip(given, tensors, traces, strict=True)]  # fmt: skip
    if any(one.spilled is not None for one in tiles):
        names = shared_names(traces, tensors)  # what is spilled lies in a tensor of its own
    facts = both if are_alike else with_shared(facts, common_tensors(tensors))
    return traces, [_Part(*each) for each in zip(tensors, names, tiles, facts, strict=True)], are_alike


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


def _write(
    program: Program, words: Mapping[str, bytes], emitted: Emitted, part: SubgraphWriter, chip: Chip, tiles: Tiles
) -> None:
    """Hand words, queues, sets and debug info to the subgraph."""
    part.streams(words, {engine: partial(emitted.origins, number) for engine, number in ENGINE.items()})
    for name in program.activation.sets:
        part.activation_set(name, program.activation.sets[name])
    lowest = -1  # byte of a tile
    for use in program.streams.queues.values():
        facts = use.facts
        # A kernel may choose addresses inside the scratch; the queue then goes without, as those of ACT and SP do.
        scratch: tuple[int, int] | tuple[None, None] = None, None
        if facts.scratch is not None:
            if lowest < 0:
                lowest = (tiles.bounds(Space.SBUF) or (chip.sbuf_first, 0))[0]
            if lowest >= sum(facts.scratch):
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


def _is_ours(words: Mapping[str, bytes], prelude: int) -> bool:
    """Return whether anything of ours is in the words of a program; `prelude` is how many all engines begin with."""
    begun = prelude // len(words) * WORD
    return _ours(b"".join([stream for stream in words.values() if len(stream) > begun]))


def _ours(stream: bytes) -> bool:
    """Return whether any word means something in the extended dialect only; those longer than 64 bytes all do."""
    opcodes = stream[::WORD]
    if EXTENSION_OPCODE in opcodes:
        return True
    for opcode in set(opcodes):
        if BY_OPCODE[opcode] is None:
            return True
        for offset, codes in _codes_of_ours(opcode):
            column = stream[offset::WORD]
            # first of all words together: mostly there is no such code in any
            if len(column.translate(None, codes)) < len(column):
                mine = compress(column, map(opcode.__eq__, opcodes))
                if any(map(codes.__contains__, mine)):
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
