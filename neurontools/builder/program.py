"""One core's program: every operation of a trace becomes words with their waits, in program order."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any

from formats.engines import ENGINES
from formats.errors import FormatError
from formats.isa import ActTableLoad, DmaIndirect, IndirectWrite, Memset, PseudoDmaTrigger, RegisterLoad
from formats.neff.transfers import Descriptor
from formats.neff.writer_subgraph import SubgraphWriter
from formats.neuron_core import WORD
from neurontools.builder.accesses import Accesses
from neurontools.builder.activation_sets import ActivationPlan, plan_activation
from neurontools.builder.barriers import Barriers, Peer
from neurontools.builder.chip import COLLECTIVE, INDIRECT, Chip
from neurontools.builder.collectives import collective_word
from neurontools.builder.counterpart import Move
from neurontools.builder.emitted import Emitted
from neurontools.builder.encode import Encoder, Plan, refuse
from neurontools.builder.hazards import Needs
from neurontools.builder.indirect import combined, indirect_words, whole
from neurontools.builder.loops import REGISTER, Loop, close_loop, leave_unless, open_loop
from neurontools.builder.matmul import MatmulEncoder, PsumLife, moves_bits_of, unwritten
from neurontools.builder.streams import ENGINE, Origin, QueueUse, Stream, Streams
from neurontools.builder.tiles import Tiles, loops_of
from neurontools.builder.trace import (
    BarrierOp,
    CollectiveOp,
    ComputeOp,
    DmaComputeOp,
    DmaOp,
    IndirectDmaOp,
    LoopEndOp,
    LoopOp,
    MatmulOp,
    SendRecvOp,
    Source,
    Space,
    Trace,
    View,
)
from neurontools.builder.trace_facts import Facts
from neurontools.builder.transfers import TransferEncoder, descriptors, direct_word
from neurontools.builder.variables import Variables

__all__ = ["Program"]

_HBM, _PSUM = Space.HBM, Space.PSUM
_LAST = attrgetter("last")
_WORDS = 1 << 10  # of a kind without operands that a process keeps
_CLEARS = "DVE"  # the engine that zeroes PSUM
_INDIRECT_SEMAPHORE = DmaIndirect.FIELDS["semaphore"].offset


@lru_cache(maxsize=_WORDS)
def _table_load(table: int) -> bytes:
    return ActTableLoad(table_select=table).raw


@lru_cache(maxsize=_WORDS)
def _trigger(queue: str, block: int) -> bytes:
    return PseudoDmaTrigger(queue=queue, block_id=block).raw


class Program:
    """Emit a trace into the streams of one core."""

    def __init__(
        self,
        trace: Trace,
        chip: Chip,
        writer: SubgraphWriter,
        variables: Variables,
        tiles: Tiles,
        facts: Facts,
        peer: Peer,
    ) -> None:
        self.trace, self.chip, self.writer, self.variables, self.tiles = trace, chip, writer, variables, tiles
        self.places = tiles.places
        self.streams = Streams(chip)
        self.accesses = Accesses(tiles, facts.written, self.streams.clocks)
        self.emitted = Emitted(trace, len(tiles.lives), self.accesses.touched)
        self.activation: ActivationPlan = plan_activation(facts.functions, facts.loops)
        self.transfers = self.transfer_bytes = 0
        self.moves: list[Move] = []  # of copies
        self._transfers = TransferEncoder(bool(chip.direct))
        self._encoder = Encoder(self.activation.codes)
        self._matmuls = MatmulEncoder(chip)
        self._psum = PsumLife(self.streams.of["PE"].raw)
        self._uses: dict[tuple[str, bool], QueueUse] = {}  # by engine, and whether descriptors are listed
        self._loaded: tuple[Any, ...] | None = None
        self._needs: Needs = {}  # of the operation at hand
        self._weight_needs: Needs = {}
        self._activations = 0
        self._turn = False
        self._loops: list[Loop] = []
        self._number = 0  # the operation at hand
        self._touched = -1  # how many tiles were touched before it, where it does not touch all that came since itself
        self._through: dict[int, int] = {}  # actors of the streams of collectives
        self._scalar_idle = bool(chip.direct) and "Activation" not in facts.engines
        barriers = Barriers(trace, self.streams, peer, tiles, facts.written, self.accesses)
        # Those that append to one stream only return it; the others return None.
        self._emitters: dict[type[Any], Callable[[Any], Stream | None]] = {
            ComputeOp: self._compute,
            MatmulOp: self._matmul,
            DmaOp: self._dma,
            IndirectDmaOp: self._indirect,
            DmaComputeOp: self._combine,
            BarrierOp: barriers.barrier,
            SendRecvOp: lambda op: barriers.exchange(op, self._name),
            CollectiveOp: self._collective,
            LoopOp: self._loop,
            LoopEndOp: self._loop_end,
        }
        self._emit()
        self._emitters.clear()  # they hold this program: without the cycle it goes at its last use, and the trace too
        self.streams.finish()
        self.emitted.close(self.streams.of.values())
        self.streams.seal()
        self.words = {engine: bytes(stream.raw) for engine, stream in self.streams.of.items()}
        for stream in self.streams.of.values():
            stream.raw.clear()

    def _emit(self) -> None:
        """Append the words of every operation; let go of each tile behind the last that touches it."""
        after, emitters, streams = self.trace.after, self._emitters, self.streams
        producers = frozenset(number for numbers in after.values() for number in numbers)
        completed: dict[int, list[tuple[int, int]]] = {}
        ending = sorted(self.tiles.lives, key=_LAST, reverse=True)  # the next one at the end
        last = ending[-1].last if ending else -1
        accesses, notes = self.accesses, self.emitted.notes
        begin, tiles, rows = accesses.begin, accesses.tiles, accesses.touched
        sharing = accesses.sharing
        engines = tuple(streams.of.values())
        following = accesses.next
        for number, op in enumerate(self.trace.ops):
            self._number = number
            touched = len(rows)
            if following <= number:
                begin(number)
                following = accesses.next
            if after:
                if number in after:
                    streams.after = [unit for one in sorted(after[number]) for unit in completed[one]]
                counts = streams.counts() if number in producers else []
            try:
                only = emitters[type(op)](op)
            except FormatError as error:
                raise refuse(op, str(error)) from None
            if after and number in producers:
                # Whatever the operation appended to any actor is a part of it, and actors complete in order.
                completed[number] = [
                    (actor, count - 1)
                    for actor, count in enumerate(streams.counts())
                    if count > (counts[actor] if actor < len(counts) else 0)
                ]
            if only is not None:  # what the loop below does, for the one that has words of it
                end = len(only.raw)
                notes += (number, only.actor, only.seen, end, touched, len(rows))
                only.seen = end
                if sharing.tiles and sharing.pending:
                    sharing.settle(ENGINES[only.actor], only.count - 1)
            else:
                if self._touched >= 0:
                    touched, self._touched = self._touched, -1
                for stream in engines:
                    end = len(stream.raw)
                    if end != stream.seen:
                        notes += (number, stream.actor, stream.seen, end, touched, len(rows))
                        stream.seen = end
            while last == number:
                tile = ending.pop().allocation
                last = ending[-1].last if ending else -1
                del tiles[tile.id]  # its bytes know what touched them until another tile takes them over
                if tile.space is _PSUM:
                    self._psum.end(tile.id)

    @property
    def _name(self) -> str:
        """Return the name of the operation at hand."""
        return self.emitted.name(self._number)

    def _compute(self, op: ComputeOp) -> Stream | None:
        fields = op.fields
        if "function" in fields:  # of an activation, whose table may have to be loaded first
            table = self.activation.loads.get(self._activations)
            if table is not None:
                self.streams.plain(op.engine, _table_load(table), (f"{self._name}-table", *op.source))
            self._activations += 1
        if fields.get("accumulate", 1) is None:
            op = self._accumulating(op)
            self._run(op, op.engine, self._encoder.encode(op))
            return None
        return self._run(op, op.engine, self._encoder.encode(op))

    def _accumulating(self, op: ComputeOp) -> ComputeOp:
        """Return a product that adds or overwrites, as the life of its PSUM tile has it; columns always add."""
        view = op.operands["dst"]
        state = self._psum.state(view)
        columns = op.instruction is IndirectWrite
        if state == "mixed" or (columns and state == "fresh"):
            self._clear(view, op.source)
        fields = {**op.fields, "accumulate": int(columns or state != "fresh")}
        return ComputeOp(op.instruction, op.engine, op.operands, fields, op.source, op.name)

    def _run(self, op: ComputeOp, engine: str, plan: Plan, origin: Origin | None = None) -> Stream:
        """Append the words of one operation: the first waits, the last signals. Return their stream."""
        streams, needs = self.streams, self._needs
        stream = streams.of[engine]
        needs.clear()
        views = tuple(op.operands.values())
        addresses = [0] * len(views)
        templates, accesses, writes = plan
        self.accesses.operands(views, accesses, stream.actor, len(stream.ends), needs, addresses)
        for number in writes:
            view = views[number]
            if view.allocation.space is _PSUM:
                self._psum.wrote(view)
        place = -1
        for _, _, make in templates:
            word = make(addresses)
            # what the first word has waited for, the others need not
            place = streams.add(stream, word, needs, -1, origin) if place < 0 else stream.append(word, origin)
        # as `complete` does
        stream.ends.append(place)
        streams.clocks.unit(stream.actor, stream.actor)
        return stream

    def _matmul(self, op: MatmulOp) -> Stream | None:
        state = ""
        if op.accumulate is None and not moves_bits_of(op, self.chip):
            state = self._psum.state(op.dst)
            if state == "mixed":
                self._clear(op.dst, op.source)
            first = state == "fresh"
        else:
            first = not op.accumulate
        streams, operands = self.streams, self.accesses.operands
        passes = self._matmuls.encode(op, first)
        stream = streams.of["PE"]
        actor, unit = stream.actor, len(stream.ends)
        # apart, so that LDWEIGHTS can run while the product still waits for its moving operand or its place in PSUM
        weight_needs, needs = self._weight_needs, self._needs
        weight_needs.clear()
        needs.clear()
        views, addresses = (op.stationary, op.moving, op.dst), [0, 0, 0]
        # The array keeps its weights: the same tile, unchanged since, is not loaded again.
        single = passes.per_piece == 1
        loaded = self._loaded
        again = (
            single
            and loaded is not None
            and loaded[0] == op.stationary
            and loaded[1] == passes.pairs[0][0][:2]
            and not self.accesses.is_written_since(op.stationary, passes.weights[0], loaded[2])
        )
        if not single:
            self._loaded = None
        elif not again:
            self._loaded = op.stationary, passes.pairs[0][0][:2], self.accesses.written(op.stationary)
        operands(views, passes.weights, actor, unit, weight_needs, addresses)
        operands(views, passes.rest, actor, unit, needs, addresses)
        words: list[int] = []
        for weights, matmul in passes.pairs:
            if not again:
                word = weights[2](addresses)
                if words:
                    stream.append(word)
                else:
                    streams.add(stream, word, weight_needs)
                again = single
            word = matmul[2](addresses)
            words.append(stream.append(word) if words else streams.add(stream, word, needs))
        streams.complete(stream)
        self._psum.completed(op.dst, first, tuple(words[passes.per_piece - 1 :: passes.per_piece]))
        return None if state == "mixed" else stream

    def _clear(self, dst: View, source: Source) -> None:
        """Zero what nothing wrote of a PSUM tile that is written in parts, so that adding to all of it is right."""
        for view in unwritten(dst.allocation, dst, self._psum.mask(dst)):
            fill = ComputeOp(Memset, _CLEARS, {"dst": view}, {"value": 0.0}, source)
            self._run(fill, _CLEARS, self._encoder.encode(fill), (f"{self._name}-clear", *source))

    def _use_of(self, op: DmaOp, engine: str, listed: bool) -> QueueUse:
        """Return the queue of an engine for a transfer, opened by the first one that wants it."""
        owners = self.chip.listed if listed else self.chip.direct
        facts = owners.get(engine)
        if facts is None:
            raise refuse(op, f"has no queue on {engine}, only on {', '.join(owners)}")
        found = self._uses[engine, listed] = self.streams.queue(facts)
        return found

    def _choose(self, op: DmaOp | IndirectDmaOp) -> str:
        """Return the engine whose queue takes a transfer that the kernel leaves open.

        Stores wait for results, so they go where no load stands behind them. Loads go to Sync, and in turn to Scalar
        where that computes nothing: two descriptor engines start transfers twice as often.
        """
        if op.dst.allocation.space is _HBM:
            return "Pool"
        if self._scalar_idle:
            self._turn = not self._turn
            return "SP" if self._turn else "Activation"
        return "SP"

    def _dma(self, op: DmaOp) -> Stream:
        source, target = op.src, op.dst
        if source.allocation.space is _PSUM or target.allocation.space is _PSUM:
            view = source if source.allocation.space is _PSUM else target
            raise refuse(op, f"touches {view.allocation.name} in PSUM, which DMA does not reach")
        places, streams = self.places, self.streams
        how = self._transfers.encode(op)
        src, dst = self.variables.side(source, places), self.variables.side(target, places)
        engine, listed = op.engine or self._choose(op), how.direct is None
        use = self._uses.get((engine, listed)) or self._use_of(op, engine, listed)
        facts, actor = use.facts, use.actor
        stream = streams.of[facts.engine]
        # Units of a queue are its transfers; an operation's last stands for all, since they complete in order.
        count = 1 if how.direct is None else len(how.direct)
        unit = use.transfers + count - 1
        needs = self._needs
        needs.clear()
        touch = self.accesses.touch
        touch(source, how.src, stream.actor, actor, unit, needs, how.src_way)
        touch(target, how.dst, stream.actor, actor, unit, needs, how.dst_way)
        if how.direct is None:
            word = _trigger(facts.name, use.blocks)
            self.moves.append((self._number, stream.actor, 0, how, facts, use.blocks, use.ring(unit)))
            self._block(use, descriptors(op, how, src, dst))
            streams.add(stream, word, needs, actor)
            streams.clocks.unit(stream.actor, actor)
            use.transfers += 1
        place = -1
        for direct in how.direct or ():
            word = direct_word(direct, src, dst, use.ring(use.transfers))
            place = stream.append(word) if place >= 0 else streams.add(stream, word, needs, actor)
            streams.clocks.unit(stream.actor, actor)
            use.transfers += 1
        if place >= 0:
            self.moves.append((self._number, stream.actor, place + WORD, how, facts, 0, 0))
        self.transfers += count
        self.transfer_bytes += how.nbytes
        return stream

    def _block(self, use: QueueUse, block: list[Descriptor]) -> None:
        """Write the descriptors of the next listed transfer of a queue."""
        facts = use.facts
        semaphore = use.ring(use.transfers)
        self.writer.dma_block(facts.name, use.blocks, facts.engine, block, semaphore=semaphore, comment=self._name)
        use.blocks += 1

    def _indirect(self, op: IndirectDmaOp) -> None:
        """Emit a copy by index: the engine reads the indices, its queue moves the data."""
        src, dst = (self.variables.side(view, self.places) for view in (op.src, op.dst))
        words = indirect_words(op, src, dst, self.tiles.place(op.index.allocation))
        use = self.streams.queue(self.chip.direct.get(op.engine or self._choose(op), INDIRECT))
        stream = self.streams.of[use.facts.engine]
        actor = stream.actor
        unit, last = self.streams.clocks.count(actor), use.transfers + len(words) - 1
        needs: Needs = {}
        self.accesses.access(op.index, False, actor, actor, unit, needs)
        self.accesses.access(op.src if op.scatter else whole(op.src), False, actor, use.actor, last, needs)
        self.accesses.access(whole(op.dst) if op.scatter else op.dst, True, actor, use.actor, last, needs)
        for number, word in enumerate(words):
            word[_INDIRECT_SEMAPHORE] = use.ring(use.transfers)
            if number:
                stream.append(word)
            else:
                self.streams.add(stream, word, needs, use.actor)
            self.streams.clocks.unit(actor, use.actor)
            use.transfers += 1
        self.moves.append((self._number, actor, len(stream.raw), None, use.facts, 0, 0))
        self.streams.complete(stream)
        self.transfers += len(words)
        self.transfer_bytes += op.dst.elements * op.dst.dtype.size

    def _combine(self, op: DmaComputeOp) -> None:
        """Emit a transfer of several sources: descriptors in a list, which direct words cannot express."""
        places = self.places
        sources = [self.variables.side(view, places) for view in op.srcs]
        block = combined(op, sources, self.variables.side(op.dst, places))
        use = self.streams.queue(self.chip.listed["Pool"])
        facts = use.facts
        word = _trigger(facts.name, use.blocks)
        self._block(use, block)
        needs: Needs = {}
        stream = self.streams.of[facts.engine]
        for view in op.srcs:
            self.accesses.access(view, False, stream.actor, use.actor, use.transfers, needs)
        self.accesses.access(op.dst, True, stream.actor, use.actor, use.transfers, needs)
        self.streams.add(stream, word, needs, use.actor)
        self.streams.clocks.unit(stream.actor, use.actor)
        use.transfers += 1
        self.transfers += 1
        self.transfer_bytes += op.dst.elements * op.dst.dtype.size

    def _collective(self, op: CollectiveOp) -> None:
        """Emit a collective: the engine gives it to a stream of CC-cores and goes on."""
        semaphore = COLLECTIVE + op.stream
        actor = self._through.get(op.stream)
        if actor is None:
            actor = self._through[op.stream] = self.streams.counter(semaphore)
        sides = [self.variables.side(view, self.places) for view in (op.src, op.dst, op.groups)]
        counts = None if op.counts is None else self.variables.side(op.counts, self.places)
        word = collective_word(op, sides[0], sides[1], sides[2], counts, semaphore)
        needs: Needs = {}
        unit = self.streams.clocks.count(actor)
        stream = self.streams.of[op.engine]
        self.accesses.access(op.src, False, stream.actor, actor, unit, needs)
        self.accesses.access(op.dst, True, stream.actor, actor, unit, needs)
        if op.counts is not None:
            # the table is read, and received counts are written back into it
            self.accesses.access(op.counts, True, stream.actor, actor, unit, needs)
        self.streams.add(stream, word, needs, actor)
        self.streams.clocks.unit(stream.actor, actor)
        self.transfers += 1
        self.transfer_bytes += op.dst.elements * op.dst.dtype.size

    def _loop(self, op: LoopOp) -> None:
        """Begin a loop: a test on every engine, with the condition in a register."""
        clearing, name = self.streams.of[_CLEARS], self._name
        first, rows = len(clearing.raw), self.accesses.touched
        touched = len(rows)
        # a product that overwrites in the first turn and adds in the others is one word: it adds, to zeros
        self._zero_sums()
        end = len(clearing.raw)
        if end != first:
            self.emitted.notes += (self._number, clearing.actor, first, end, touched, len(rows))
        self._touched = len(rows)  # the loop does not touch those tiles itself
        table = self.activation.ahead.get(self._number)
        if table is not None:
            self.streams.plain("Activation", _table_load(table), (f"{name}-table", *op.source))
        loop = open_loop(self.streams, name, op.source)
        self._loops.append(loop)
        self._loaded = None  # the turn before left other weights
        for engine in ENGINE:
            load = ComputeOp(RegisterLoad, engine, {"src": op.condition}, {"register": REGISTER}, op.source)
            self._run(load, engine, self._encoder.encode(load), (f"{name}-load", *op.source))
        leave_unless(self.streams, loop, op.counting)

    def _zero_sums(self) -> None:
        """Zero what the loop that begins here adds to, turn by turn, and nothing before it has written."""
        begin = self._number
        end = next(last for first, last in loops_of(self.trace) if first == begin)
        for op in self.trace.ops[begin:end]:
            if isinstance(op, MatmulOp) and op.accumulate is None and not moves_bits_of(op, self.chip):
                view = op.dst
            elif isinstance(op, ComputeOp) and op.fields.get("accumulate", 1) is None:
                view = op.operands["dst"]
            else:
                continue
            if view.allocation.born <= begin and self._psum.state(view) != "written":
                self._clear(view, op.source)
                self._psum.wrote(view)

    def _loop_end(self, op: LoopEndOp) -> None:
        close_loop(self.streams, self._loops.pop())
        self._loaded = None
