"""One core's program: every operation of a trace becomes words with their waits, in program order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from formats.errors import FormatError
from formats.isa import (
    ActTableLoad,
    DmaIndirect,
    IndirectWrite,
    Memset,
    PseudoDmaTrigger,
    RegisterLoad,
)
from formats.neff.transfers import Descriptor
from formats.neff.writer_subgraph import SubgraphWriter
from neurontools.builder.activation_sets import ActivationPlan, plan_activation
from neurontools.builder.areas import Area, Shape, shape_of
from neurontools.builder.chip import INDIRECT, Chip, QueueFacts
from neurontools.builder.encode import Encoder, refuse
from neurontools.builder.hazards import Memory, Needs, Region
from neurontools.builder.indirect import combined, indirect_words, whole
from neurontools.builder.loops import REGISTER, Loop, close_loop, leave_unless, open_loop
from neurontools.builder.matmul import MatmulEncoder, PsumLife, moves_bits_of, unwritten
from neurontools.builder.meetings import Meetings, Peer
from neurontools.builder.streams import ENGINE, Streams
from neurontools.builder.tiles import Tiles, loops_of
from neurontools.builder.trace_facts import functions_of, hbm_written, loop_edges
from neurontools.builder.transfers import TransferEncoder
from neurontools.builder.variables import Variables
from neurontools.trace import (
    BarrierOp,
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
    views_of,
)

__all__ = ["Program"]

class Program:
    """Emit a trace into the streams of one core."""

    def __init__(
        self,
        trace: Trace,
        chip: Chip,
        writer: SubgraphWriter,
        variables: Variables,
        tiles: Tiles,
        peer: Peer,
    ) -> None:
        self.trace, self.chip, self.writer, self.variables, self.tiles = trace, chip, writer, variables, tiles
        self.places = tiles.places
        self.streams = Streams(chip)
        self.activation: ActivationPlan = plan_activation(functions_of(trace), loop_edges(trace))
        self.transfers = self.transfer_bytes = 0
        self._memory = {Space.SBUF: Memory(), Space.PSUM: Memory()}
        self._engine_places = tiles.engine_places()
        self._transfers = TransferEncoder(bool(chip.direct))
        self._encoder = Encoder(self._engine_places, self.activation.codes)
        self._matmuls = MatmulEncoder(chip, self._engine_places)
        self._shapes: dict[tuple[Any, int], Shape] = {}
        self._regions: dict[int, Region] = {}
        self._group_regions: dict[int, Region] = {}
        self._psum = PsumLife()
        self._loaded: tuple[Any, ...] | None = None
        self._activations = 0
        self._written = hbm_written(trace)
        self._turn = False
        self._loops: list[Loop] = []
        self._number = 0
        self._scalar_idle = bool(chip.direct) and not any(
            isinstance(op, ComputeOp) and op.engine == "Activation" for op in trace.ops
        )
        meetings = Meetings(trace, self.streams, peer, self._engine_places, self._written, self._access)
        emitters: dict[type[Any], Callable[[Any, str], None]] = {
            ComputeOp: self._compute,
            MatmulOp: self._matmul,
            DmaOp: self._dma,
            IndirectDmaOp: self._indirect,
            DmaComputeOp: self._combine,
            BarrierOp: meetings.barrier,
            SendRecvOp: meetings.exchange,
            LoopOp: self._loop,
            LoopEndOp: self._loop_end,
        }
        producers = frozenset(number for numbers in trace.after.values() for number in numbers)
        completed: dict[int, list[tuple[int, int]]] = {}
        self.tile_words: dict[int, list[int]] = {}  # first and last word of each engine, -1 where none touches the tile
        lists = [self.streams.slots[engine] for engine in ENGINE]
        for number, op in enumerate(trace.ops):
            name = getattr(op, "name", None) or f"I-{number}"
            before = [len(slots) for slots in lists]
            self._number = number
            if number in trace.after:
                self.streams.after = [unit for one in sorted(trace.after[number]) for unit in completed[one]]
            counts = self.streams.counts() if number in producers else []
            try:
                emitters[type(op)](op, name)
            except FormatError as error:
                raise refuse(op, str(error)) from None
            if number in producers:
                # Whatever the operation appended to any actor is a part of it, and actors complete in order.
                completed[number] = [(actor, count - 1) for actor, count in enumerate(self.streams.counts())
                                     if count > (counts[actor] if actor < len(counts) else 0)]
            spans = [(2 * engine, before[engine], len(slots) - 1) for engine, slots in enumerate(lists)
                     if len(slots) > before[engine]]
            for view in views_of(op):
                allocation = view.allocation
                if allocation.space is not Space.HBM:
                    touched = self.tile_words.get(allocation.id)
                    if touched is None:
                        touched = self.tile_words[allocation.id] = [-1] * (2 * len(lists))
                    for place, first, last in spans:
                        if touched[place] < 0:
                            touched[place] = first
                        touched[place + 1] = last
        self._psum.finish()
        self.streams.finish()
        self.streams.seal()

    def _access(self, view: View, write: bool, actor: int, unit: int, needs: Needs) -> None:
        """Order an access with those before it."""
        allocation = view.allocation
        number = allocation.id
        key = (view.dims, view.dtype.size)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = shape_of(*key)
        if allocation.space is Space.HBM:
            if number not in self._written:
                return  # only ever read: nothing to order
            region = self._regions.get(number)
            if region is None:
                region = self._regions[number] = Region()
            area = Area(0, 1, view.offset, shape)
        else:
            partition, byte = self.places[number]
            region = self._regions.get(number)
            if region is None:
                region = self._claim(view, byte)
            first = partition + view.partition
            area = Area(first, first + view.partitions, byte + view.offset, shape)
        region.access(area, write, actor, unit, needs)

    def _claim(self, view: View, byte: int) -> Region:
        allocation = view.allocation
        group = self.tiles.groups.get(allocation.id)
        region = None if group is None else self._group_regions.get(group)
        if region is None:
            region = Region()
            if group is not None:
                self._group_regions[group] = region
        self._regions[allocation.id] = region
        self._memory[allocation.space].claim(byte, byte + max(allocation.partition_bytes, 1), region)
        return region

    def _compute(self, op: ComputeOp, name: str) -> None:
        engine = ENGINE.get(op.engine)
        if engine is None or op.engine not in op.instruction.ENGINES:
            raise refuse(op, f"does not run on {op.engine}")
        if "function" in op.fields:
            table = self.activation.loads.get(self._activations)
            if table is not None:
                self.streams.plain(
                    op.engine, bytearray(ActTableLoad(table_select=table).raw), f"{name}-table", op.source
                )
            self._activations += 1
        if op.fields.get("accumulate", 1) is None:
            op = self._accumulating(op, name)
        words = self._encoder.encode(op)
        self._run(op, op.engine, words, name)

    def _accumulating(self, op: ComputeOp, name: str) -> ComputeOp:
        """Return a product that adds or overwrites, as the life of its PSUM tile has it; columns always add."""
        view = op.operands["dst"]
        state = self._psum.state(view)
        columns = op.instruction is IndirectWrite
        if state == "mixed" or (columns and state == "fresh"):
            self._clear(view, op.source, name)
        fields = {**op.fields, "accumulate": int(columns or state != "fresh")}
        return ComputeOp(op.instruction, op.engine, op.operands, fields, op.source, op.name)

    def _run(self, op: ComputeOp, engine: str, words: list[bytearray], name: str) -> None:
        """Append the words of one operation: the first waits, the last signals."""
        actor = ENGINE[engine]
        unit = self.streams.knowledge.count(actor)
        needs = Needs()
        written = []
        for operand, view in op.operands.items():
            role = op.instruction.OPERANDS[operand].role
            if role != "write":
                self._access(view, False, actor, unit, needs)
            if role != "read":
                written.append(view)
        for view in written:
            self._access(view, True, actor, unit, needs)
            if view.allocation.space is Space.PSUM:
                self._psum.wrote(view)
        slot = self.streams.add(engine, words[0], name, op.source, needs)
        for word in words[1:]:
            slot = self.streams.plain(engine, word, name, op.source)
        self.streams.knowledge.unit(actor)
        slot.unit = unit

    def _matmul(self, op: MatmulOp, name: str) -> None:
        if op.accumulate is None and not moves_bits_of(op, self.chip):
            state = self._psum.state(op.dst)
            if state == "mixed":
                self._clear(op.dst, op.source, name)
            first = state == "fresh"
        else:
            first = not op.accumulate
        passes = self._matmuls.encode(op, first)
        actor = ENGINE["PE"]
        streams = self.streams
        unit = streams.knowledge.count(actor)
        weight_needs, needs = Needs(), Needs()
        self._access(op.stationary, False, actor, unit, weight_needs)
        self._access(op.moving, False, actor, unit, needs)
        self._access(op.dst, True, actor, unit, needs)
        # The array keeps its weights: the same tile, unchanged since, is not loaded again.
        single = passes.per_piece == 1
        loaded = (op.stationary, bytes(passes.pairs[0][0]), tuple(sorted(weight_needs.data.items())))
        again = single and self._loaded == loaded
        self._loaded = loaded if single else None
        wanted: Needs | None = needs
        for weights, matmul in passes.pairs:
            if not again:
                streams.add("PE", weights, name, op.source, weight_needs if wanted else None)
                again = single
            slot = streams.add("PE", matmul, name, op.source, wanted)
            wanted = None
        streams.knowledge.unit(actor)
        slot.unit = unit
        self._psum.wrote(op.dst)
        self._psum.group(op.dst, first, passes.last)

    def _clear(self, dst: View, source: Source, name: str) -> None:
        """Zero what nothing wrote of a PSUM tile that is written in parts, so that adding to all of it is right."""
        for view in unwritten(dst.allocation, dst, self._psum.mask(dst)):
            fill = ComputeOp(Memset, "DVE", {"dst": view}, {"value": 0.0}, source, name)
            self._run(fill, "DVE", self._encoder.encode(fill), f"{name}-clear")

    def _queue_facts(self, op: DmaOp, listed: bool) -> QueueFacts:
        owners = self.chip.listed if listed else self.chip.direct
        engine = op.engine or self._choose(op)
        facts = owners.get(engine)
        if facts is None:
            raise refuse(op, f"has no queue on {engine}, only on {', '.join(owners)}")
        return facts

    def _choose(self, op: DmaOp | IndirectDmaOp) -> str:
        """Return the engine whose queue takes a transfer that the kernel leaves open.

        Stores wait for results, so they go where no load stands behind them. Loads go to Sync, and in turn to Scalar
        where that computes nothing: two descriptor engines start transfers twice as often.
        """
        if op.dst.allocation.space is Space.HBM:
            return "Pool"
        if self._scalar_idle:
            self._turn = not self._turn
            return "SP" if self._turn else "Activation"
        return "SP"

    def _dma(self, op: DmaOp, name: str) -> None:
        for view in (op.src, op.dst):
            if view.allocation.space is Space.PSUM:
                raise refuse(op, f"touches {view.allocation.name} in PSUM, which DMA does not reach")
        places = self.places
        made = self._transfers.encode(op, self.variables.side(op.src, places), self.variables.side(op.dst, places))
        listed = not isinstance(made[0], bytearray)
        use = self.streams.queue(self._queue_facts(op, listed))
        facts = use.facts
        if listed:
            words = [bytearray(PseudoDmaTrigger(queue=facts.name, block_id=use.blocks).raw)]
            semaphore = use.semaphore(use.transfers)[0]
            block = cast(list[Descriptor], made)
            self.writer.dma_block(facts.name, use.blocks, facts.engine, block, semaphore=semaphore, comment=name)
            use.blocks += 1
        else:
            words = cast(list[bytearray], made)
        # Units of a queue are its transfers; an operation's last stands for all, since they complete in order.
        unit = use.transfers + len(words) - 1
        needs = Needs()
        self._access(op.src, False, use.actor, unit, needs)
        self._access(op.dst, True, use.actor, unit, needs)
        for number, word in enumerate(words):
            if not listed:
                word[_SEMAPHORE] = use.semaphore(use.transfers)[0]
            self.streams.add(facts.engine, word, name, op.source, needs if number == 0 else None, use.actor)
            self.streams.knowledge.unit(ENGINE[facts.engine], use.actor)
            use.transfers += 1
        self.transfers += len(words)
        self.transfer_bytes += op.dst.elements * op.dst.dtype.size

    def _indirect(self, op: IndirectDmaOp, name: str) -> None:
        """Emit a copy by index: the engine reads the indices, its queue moves the data."""
        src, dst = (self.variables.side(view, self.places) for view in (op.src, op.dst))
        words = indirect_words(op, src, dst, self._engine_places[op.index.allocation.id])
        use = self.streams.queue(self.chip.direct.get(op.engine or self._choose(op), INDIRECT))
        actor = ENGINE[use.facts.engine]
        unit, last = self.streams.knowledge.count(actor), use.transfers + len(words) - 1
        needs = Needs()
        self._access(op.index, False, actor, unit, needs)
        self._access(op.src if op.scatter else whole(op.src), False, use.actor, last, needs)
        self._access(whole(op.dst) if op.scatter else op.dst, True, use.actor, last, needs)
        for number, word in enumerate(words):
            word[_INDIRECT_SEMAPHORE] = use.semaphore(use.transfers)[0]
            wanted = needs if number == 0 else None
            slot = self.streams.add(use.facts.engine, word, name, op.source, wanted, use.actor)
            self.streams.knowledge.unit(actor, use.actor)
            use.transfers += 1
        slot.unit = unit
        self.streams.knowledge.unit(actor)
        self.transfers += len(words)
        self.transfer_bytes += op.dst.elements * op.dst.dtype.size

    def _combine(self, op: DmaComputeOp, name: str) -> None:
        """Emit a transfer of several sources: descriptors in a list, which direct words cannot express."""
        places = self.places
        sources = [self.variables.side(view, places) for view in op.srcs]
        block = combined(op, sources, self.variables.side(op.dst, places))
        use = self.streams.queue(self.chip.listed["Pool"])
        facts = use.facts
        semaphore = use.semaphore(use.transfers)[0]
        self.writer.dma_block(facts.name, use.blocks, facts.engine, block, semaphore=semaphore, comment=name)
        word = bytearray(PseudoDmaTrigger(queue=facts.name, block_id=use.blocks).raw)
        use.blocks += 1
        needs = Needs()
        for view in op.srcs:
            self._access(view, False, use.actor, use.transfers, needs)
        self._access(op.dst, True, use.actor, use.transfers, needs)
        self.streams.add(facts.engine, word, name, op.source, needs, use.actor)
        self.streams.knowledge.unit(ENGINE[facts.engine], use.actor)
        use.transfers += 1
        self.transfers += 1
        self.transfer_bytes += op.dst.elements * op.dst.dtype.size

    def _loop(self, op: LoopOp, name: str) -> None:
        """Begin a loop: a test on every engine, with the condition in a register."""
        self._zero_sums(name)
        loop = open_loop(self.streams, name, op.source)
        self._loops.append(loop)
        self._loaded = None  # the turn before left other weights
        for engine in ENGINE:
            load = ComputeOp(RegisterLoad, engine, {"src": op.condition}, {"register": REGISTER}, op.source, name)
            self._run(load, engine, self._encoder.encode(load), f"{name}-load")
        leave_unless(self.streams, loop, op.counting)

    def _zero_sums(self, name: str) -> None:
        """Zero what the loop that begins here adds to, turn by turn, and nothing before it has written."""
        begin = self._number
        end = next(last for first, last in loops_of(self.trace) if first == begin)
        for op in self.trace.ops[begin:end]:
            multiplies = isinstance(op, MatmulOp) and op.accumulate is None and not moves_bits_of(op, self.chip)
            if not multiplies and not (isinstance(op, ComputeOp) and op.fields.get("accumulate", 1) is None):
                continue
            view = op.dst if isinstance(op, MatmulOp) else op.operands["dst"]
            if view.allocation.born <= begin and self._psum.state(view) != "written":
                self._clear(view, op.source, name)
                self._psum.wrote(view)

    def _loop_end(self, op: LoopEndOp, name: str) -> None:
        close_loop(self.streams, self._loops.pop())
        self._loaded = None


_SEMAPHORE = 13
_INDIRECT_SEMAPHORE = DmaIndirect.FIELDS["semaphore"].offset
