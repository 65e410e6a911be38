"""Consistency rules of one subgraph: streams, debug info, variables, constants, queues, tables, words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING

from formats.engines import ENGINES
from formats.errors import FormatError, UnsupportedError
from formats.neff.definition import QUEUE_KINDS, VARIABLE_KINDS, Variable
from formats.neff.inferred import inferred_in_subgraph
from formats.neff.problem import Problem, error, remark
from formats.neff.transfers import DESCRIPTOR_OPS, MAX_DIMENSIONS, DmaBlock, extent
from formats.neff.understood import unknown_in_subgraph, unknown_in_words
from formats.neuron_core import DMA_ENGINES, PARTITIONS, SBUF_PARTITION_STRIDE, SYNC_COUNT, WORD

if TYPE_CHECKING:
    from formats.isa import Instruction, PseudoDmaDirect2d, PseudoDmaTrigger
    from formats.neff.subgraph import Subgraph

__all__ = ["SUBGRAPH_CHECKS", "TABLE_CHECKS"]

# As numbers: formats.isa is imported only where a word is decoded, most of a start's time otherwise.
_TRIGGER, _DIRECT = 0xC1, 0xD4


def _streams(subgraph: Subgraph) -> Iterator[Problem]:
    for engine in ENGINES:
        size = len(subgraph.stream_bytes(engine))
        if size % WORD:
            message = f"stream of {size} bytes is not a whole number of {WORD}-byte words"
            yield error(f"{subgraph.name}/{engine}", message)
        elif not size:
            yield remark(f"{subgraph.name}/{engine}", "stream is empty; known files have a prelude in every stream")


def _debug(subgraph: Subgraph) -> Iterator[Problem]:
    for engine in ENGINES:
        asm = subgraph.debug(engine)
        words = len(subgraph.stream_bytes(engine)) // WORD
        if asm is None:
            continue
        if len(asm) != words:
            yield error(asm.where, f"{len(asm)} debug entries for {words} words")
        upper = subgraph.debug_parent(asm)
        if upper is None:
            continue
        for pc in range(len(asm)):
            if any(upper.find(parent) is None for parent in asm[pc].parents):
                yield error(asm.where, f"entry {pc} names a parent that {upper.where} does not have")


def _variables(subgraph: Subgraph) -> Iterator[Problem]:
    known = subgraph.variables_by_id
    for variable in subgraph.variables.values():
        where = f"{subgraph.name} var {variable.name}"
        if variable.kind not in VARIABLE_KINDS:
            yield remark(where, f"unknown type {variable.kind!r}")
        elif variable.size is None and variable.kind not in ("state-buffer", "dge-table"):
            yield error(where, "no size")
        if variable.size is not None and variable.size < 0:
            yield error(where, f"size {variable.size}")
        if variable.alignment is not None and (variable.alignment < 1 or variable.alignment & variable.alignment - 1):
            yield error(where, f"alignment {variable.alignment} is not a power of two")
        if variable.kind == "virtual" and (variable.backing_offset is None or variable.backing_offset < 0):
            yield error(where, "virtual variable has no place in the scratchpad")
        for entry in variable.entries:
            if entry not in known:
                yield error(where, f"table entry {entry} is not a variable")
        if variable.kind == "pointer" and variable.referenced_var_id not in known:
            yield error(where, f"points to no variable ({variable.referenced_var_id})")


def _constants(subgraph: Subgraph) -> Iterator[Problem]:
    for variable in subgraph.variables.values():
        if variable.kind == "file" and variable.file_name is None:
            yield error(f"{subgraph.name} var {variable.name}", "constant names no file")
        elif variable.file_name is not None:
            try:
                size = len(subgraph.constant(variable))
            except FormatError as damage:
                yield error(f"{subgraph.name} var {variable.name}", str(damage))
                continue
            except UnsupportedError as unknown:
                yield remark(f"{subgraph.name} var {variable.name}", f"{unknown}, so not executed")
                continue
            if size != variable.size:
                yield error(
                    f"{subgraph.name} var {variable.name}", f"constant holds {size} bytes, its variable {variable.size}"
                )


def _queues(subgraph: Subgraph) -> Iterator[Problem]:
    reserved = subgraph.definition.runtime_semaphore_count
    owners: dict[int, str] = {}
    queues = subgraph.queues.values()
    everything = list(chain.from_iterable([queue.all_semaphores for queue in queues]))
    # As nearly always: each is looked at only where something is wrong with one, twice in a queue or not.
    sound = not everything or (reserved <= min(everything) and max(everything) < SYNC_COUNT
                               and len(set(everything)) == len(everything))  # fmt: skip
    for queue in queues:
        where = f"{subgraph.name} queue {queue.name}"
        if queue.kind not in QUEUE_KINDS:
            yield remark(where, f"unknown type {queue.kind!r}")
        if queue.engine is None:
            yield remark(where, f"owner {queue.owner!r} is not an engine")
        if not 1 <= queue.num_queues <= DMA_ENGINES:
            yield error(where, f"{queue.num_queues} rings, 1 to {DMA_ENGINES} exist")
        if queue.semaphores and len(queue.semaphores) != queue.num_queues:
            yield remark(where, f"{len(queue.semaphores)} semaphores for {queue.num_queues} rings")
        for semaphore in () if sound else queue.all_semaphores:
            if not 0 <= semaphore < SYNC_COUNT:
                yield error(where, f"semaphore {semaphore} does not exist")
            elif semaphore < reserved:
                yield error(where, f"semaphore {semaphore} belongs to the runtime")
            elif owners.setdefault(semaphore, queue.name) != queue.name:
                yield error(where, f"semaphore {semaphore} belongs to queue {owners[semaphore]} too")


def _tables(subgraph: Subgraph) -> Iterator[Problem]:
    known = len(subgraph.activation_sets)
    names = Counter(function.name for function in subgraph.activation_functions)
    if not known and names:
        yield error(f"{subgraph.name}/Activation", "functions without a set")
    from formats.isa import ActTableLoad  # deferred: start-up

    data = subgraph.stream_bytes("Activation")
    for at in range(0, len(data) - WORD + 1, WORD):
        if data[at] == ActTableLoad.OPCODE:
            word = subgraph.decode(data[at : at + WORD])
            if isinstance(word, ActTableLoad) and word.table_select >= known:
                yield error(
                    f"{subgraph.name}/Activation pc {at // WORD}", f"table {word.table_select} of {known} is loaded"
                )


def _blocks(subgraph: Subgraph, bounds: bool = True) -> Iterator[Problem]:
    """Check the descriptors of DMA blocks: variables exist, patterns stay inside, both sides move equal amounts."""
    variables = subgraph.variables
    for block in subgraph.dma_blocks.values():
        queue = subgraph.queue_of(block.queue)
        if queue is None:
            yield error(_block(subgraph, block), f"queue {block.queue} does not exist")
        elif block.semaphore is not None and queue.all_semaphores and block.semaphore not in queue.all_semaphores:
            text = f"semaphore {block.semaphore} does not belong to queue {queue.name}"
            yield error(_block(subgraph, block), text)
        if not block.descriptors:
            yield error(_block(subgraph, block), "block has no descriptors")
        for number, item in enumerate(block.descriptors):
            if item.op not in DESCRIPTOR_OPS:
                yield remark(_block(subgraph, block, number), f"unknown operation {item.op!r}")
            sources = [(s.variable, s.offset, s.sizes, s.steps) for s in item.sources] if item.sources else ()
            for name, offset, sizes, steps in (*(sources or (item[:4],)), item[4:8]):
                if len(sizes) > MAX_DIMENSIONS:
                    text = f"{len(sizes)} dimensions, {MAX_DIMENSIONS} exist"
                    yield error(_block(subgraph, block, number), text)
                variable = variables.get(name)
                if bounds or variable is None:
                    where = _block(subgraph, block, number)
                    yield from _inside(where, variable, name, *extent(offset, sizes, steps))


def _block(subgraph: Subgraph, block: DmaBlock, descriptor: int | None = None) -> str:
    """Return the name of a block, or of a descriptor of it."""
    where = f"{subgraph.name}/{block.engine} dma {block.queue} {block.block_id}"
    return where if descriptor is None else f"{where} descriptor {descriptor}"


def _understood(subgraph: Subgraph) -> Iterator[Problem]:
    """Note what is not understood: no rule is broken, but the file is not executed either."""
    for part in chain(unknown_in_subgraph(subgraph), unknown_in_words(subgraph)):
        yield remark(part.where, f"{part.message}; not understood, so not executed")


def _inferred(subgraph: Subgraph) -> Iterator[Problem]:
    yield from (remark(*part) for part in inferred_in_subgraph(subgraph))


def _words(subgraph: Subgraph) -> Iterator[Problem]:
    """Check what words refer to: DMA blocks one to one, queues of their own engine, variables, semaphores."""
    from formats.isa import UpdateMode, WaitMode  # deferred: start-up
    from formats.isa.instruction import header_sync  # deferred: start-up

    # Modes that name a semaphore; the others name events or nothing.
    waits = frozenset(WaitMode) - {WaitMode.NONE, WaitMode.EVENT_SET}
    updates = frozenset(UpdateMode) - {UpdateMode.NONE, UpdateMode.EVENT_SET}
    owners = {s: queue.name for queue in subgraph.queues.values() for s in queue.all_semaphores}
    reserved = subgraph.definition.runtime_semaphore_count
    triggers: Counter[tuple[str, int]] = Counter()
    for engine in ENGINES:
        data = subgraph.stream_bytes(engine)
        offsets = range(0, len(data) - WORD + 1, WORD) if len(data) % WORD else subgraph.streams[engine].offsets
        for at in offsets:
            opcode = data[at]
            if opcode in (_TRIGGER, _DIRECT):
                yield from _transfer(subgraph, engine, at, subgraph.decode(data[at : at + WORD]), triggers)
            wait, awaited, update, updated, _ = header_sync(data, at)
            if update in updates and updated in owners:
                yield remark(
                    f"{subgraph.name}/{engine} pc {at // WORD}",
                    f"word updates semaphore {updated} of queue {owners[updated]}",
                )
            for mode, index, known in (
                (wait, awaited, waits),
                (update, updated, updates),
            ):
                if mode in known and index < reserved:
                    yield remark(
                        f"{subgraph.name}/{engine} pc {at // WORD}", f"word uses semaphore {index} of the runtime"
                    )
    for key, block in subgraph.dma_blocks.items():
        if triggers[key] != 1:
            yield error(
                f"{subgraph.name}/{block.engine} dma {key[0]} {key[1]}",
                f"block is triggered {triggers[key]} times" if triggers[key] else "block is never triggered",
            )


def _transfer(
    subgraph: Subgraph, engine: str, at: int, word: Instruction, triggers: Counter[tuple[str, int]]
) -> Iterator[Problem]:
    from formats.isa import PseudoDmaDirect2d, PseudoDmaTrigger  # deferred: start-up

    where = f"{subgraph.name}/{engine} pc {at // WORD}"
    if isinstance(word, PseudoDmaTrigger):
        yield from _trigger(subgraph, engine, where, word, triggers)
    elif isinstance(word, PseudoDmaDirect2d):
        yield from _direct(subgraph, engine, where, word)


def _trigger(
    subgraph: Subgraph, engine: str, where: str, word: PseudoDmaTrigger, triggers: Counter[tuple[str, int]]
) -> Iterator[Problem]:
    key = word.queue, word.block_id
    triggers[key] += 1
    queue, block = subgraph.queue_of(key[0]), subgraph.dma_blocks.get(key)
    if queue is None:
        yield error(where, f"queue {key[0]!r} does not exist")
    elif queue.engine not in (engine, None):
        yield error(where, f"queue {queue.name} belongs to {queue.engine}")
    if block is None:
        yield error(where, f"DMA block {key[0]} {key[1]} does not exist")
    elif block.engine != engine:
        yield error(where, f"DMA block {key[0]} {key[1]} belongs to {block.engine}")


def _direct(subgraph: Subgraph, engine: str, where: str, word: PseudoDmaDirect2d) -> Iterator[Problem]:
    from formats.isa import DmaAccess  # deferred: start-up

    queues = [queue for queue in subgraph.queues.values() if queue.kind == "dynamic" and queue.engine == engine]
    if not queues:
        yield error(where, f"{engine} owns no dynamic queue")
    elif word.semaphore_increment and not any(word.semaphore in queue.all_semaphores for queue in queues):
        yield error(where, f"semaphore {word.semaphore} belongs to no dynamic queue of {engine}")
    for access in (*word.reads, *word.writes):
        if not isinstance(access, DmaAccess):
            continue
        variable, problem = _target(subgraph, access.address.form, access.address.index)
        if problem is not None:
            yield error(where, problem)
        elif access.address.form != "absolute":
            pattern = access.pattern
            low, high = extent(access.address.offset, (access.element_size, *pattern.counts), (1, *pattern.steps))
            yield from _inside(f"{where} {access.operand}", variable, str(access.address.index), low, high)


def _target(subgraph: Subgraph, form: str, index: int) -> tuple[Variable | None, str | None]:
    """Return the variable that a DMA address names, or what is wrong with the address."""
    if form == "table":
        table = subgraph.dge_table
        if table is None or index >= len(table.entries):
            return None, f"table entry {index} does not exist"
        index = table.entries[index]
    elif form != "variable":
        return None, None if form == "absolute" else f"unknown address form {form}"
    variable = subgraph.variables_by_id.get(index)
    return variable, None if variable is not None else f"variable {index} does not exist"


def _inside(where: str, variable: Variable | None, name: str, low: int, high: int) -> Iterator[Problem]:
    if variable is None:
        yield error(where, f"variable {name} does not exist")
        return
    size = PARTITIONS * SBUF_PARTITION_STRIDE if variable.kind == "state-buffer" else variable.size
    if size is not None and (low < 0 or high > size):
        yield error(where, f"bytes {low}..{high} of {variable.name}, which has {size}")


Check = Callable[["Subgraph"], Iterator[Problem]]
SUBGRAPH_CHECKS: Mapping[str, Check] = {
    "streams": _streams,
    "debug info": _debug,
    "variables": _variables,
    "constants": _constants,
    "queues": _queues,
    "activation tables": _tables,
    "DMA blocks": _blocks,
    "words": _words,
    "what is understood": _understood,
    "what is inferred": _inferred,
}


def _block_tables(subgraph: Subgraph) -> Iterator[Problem]:
    return _blocks(subgraph, bounds=False)


# What a writer can check in the time of one pass over the tables, without looking at every word; that streams are whole
# words it has seen when it took them. A program may move bytes out of bounds: the device faults there, and memcheck
# names the line.
TABLE_CHECKS: tuple[Check, ...] = (_variables, _constants, _queues, _block_tables)
