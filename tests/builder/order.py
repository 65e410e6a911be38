"""Proof that a NEFF orders every conflicting pair of accesses: vector clocks over its semaphores.

It rests on decoded words alone, nothing of the builder. Every semaphore has one producer (an engine's words, or a
queue's transfers) and only grows, so `S >= v` means: the producer's first k signals, which add up to v, have happened.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from formats import isa
from formats.dtypes import Dtype
from formats.engines import ENGINES
from formats.neff import Neff, Subgraph
from formats.neuron_core import PSUM_BASE, PSUM_PARTITION_STRIDE, SBUF_PARTITION_STRIDE

__all__ = ["Access", "accesses", "unordered"]


class Access(NamedTuple):
    """Bytes touched by one word or transfer; `cells` are byte numbers of one memory."""

    actor: str
    index: int
    write: bool
    memory: str
    cells: frozenset[int] | np.ndarray[Any, Any]
    what: str


class _Event(NamedTuple):
    actor: str
    index: int
    start: dict[str, int]  # per actor: units complete before this one starts


def _chip_cells(pattern: isa.AccessPattern, dtype: int, partitions: int) -> tuple[str, np.ndarray[Any, Any]]:
    size = Dtype(dtype).size
    if pattern.address >= PSUM_BASE:
        memory, stride = "PSUM", PSUM_PARTITION_STRIDE
        partition, byte = divmod(pattern.address - PSUM_BASE, stride)
    else:
        memory, stride = "SBUF", SBUF_PARTITION_STRIDE
        partition, byte = divmod(pattern.address, stride)
    cells = np.array([byte])
    for step, count in zip(pattern.steps, pattern.counts, strict=True):
        cells = (cells[:, None] + np.arange(count) * step * size).ravel()
    cells = (cells[:, None] + np.arange(size)).ravel()
    rows = (np.arange(partitions) + partition) * stride
    return memory, np.unique((rows[:, None] + cells).ravel())


def _dma_cells(start: int, run: int, steps: tuple[int, ...], counts: tuple[int, ...]) -> np.ndarray[Any, Any]:
    cells = np.array([start])
    for step, count in zip(steps, counts, strict=True):
        cells = (cells[:, None] + np.arange(count) * step).ravel()
    return np.unique((cells[:, None] + np.arange(run)).ravel())


def _variable(subgraph: Subgraph, address: isa.DmaAddress) -> str:
    number = address.index
    if address.form == "table":
        assert subgraph.dge_table is not None
        number = subgraph.dge_table.entries[number]
    name = subgraph.variables_by_id[number].name
    return "SBUF" if subgraph.variables[name].kind == "state-buffer" else name


def accesses(subgraph: Subgraph) -> tuple[list[Access], list[_Event]]:
    """Return every access, and for every unit (word or transfer) what is complete before it starts."""
    streams = {engine: list(subgraph.streams[engine]) for engine in ENGINES}
    found: list[Access] = []
    signals: dict[int, list[tuple[str, int, int]]] = defaultdict(list)  # semaphore -> (actor, unit, amount)
    triggers: dict[tuple[str, int], tuple[str, int]] = {}
    queue_count: dict[str, int] = defaultdict(int)
    for engine, words in streams.items():
        for index, word in enumerate(words):
            if word.update_mode == isa.UpdateMode.SEM_INC:
                signals[word.update_index].append((engine, index, 1))
            if isinstance(word, isa.PseudoDmaDirect2d):
                queue = next(q for q in subgraph.queues.values() if word.semaphore in q.semaphores)
                assert queue.engine == engine
                unit = queue_count[queue.name]
                queue_count[queue.name] += 1
                triggers[engine, index] = queue.name, unit
                signals[word.semaphore].append((queue.name, unit, word.semaphore_increment))
                for side, write in (("src", False), ("dst", True)):
                    address, pattern = getattr(word, side), getattr(word, f"{side}_pattern")
                    cells = _dma_cells(
                        address.offset, getattr(word, f"{side}_element_size"), pattern.steps, pattern.counts
                    )
                    found.append(
                        Access(
                            queue.name, unit, write, _variable(subgraph, address), cells, f"{engine} {index} {word.asm}"
                        )
                    )
            elif isinstance(word, isa.PseudoDmaTrigger):
                block = subgraph.dma_blocks[word.queue, word.block_id]
                unit = queue_count[word.queue]
                queue_count[word.queue] += 1
                triggers[engine, index] = word.queue, unit
                assert block.semaphore is not None
                signals[block.semaphore].append((word.queue, unit, subgraph.queues[word.queue].num_queues))
                for d in block.descriptors:
                    for name, offset, sizes, steps, write in (
                        (d.source, d.source_offset, d.source_sizes, d.source_steps, False),
                        (d.target, d.target_offset, d.target_sizes, d.target_steps, True),
                    ):
                        memory = "SBUF" if subgraph.variables[name].kind == "state-buffer" else name
                        found.append(
                            Access(
                                word.queue,
                                unit,
                                write,
                                memory,
                                _dma_cells(offset, sizes[0], steps[1:], sizes[1:]),
                                f"{engine} {index} {word.asm}",
                            )
                        )
            else:
                for access, write in [(a, False) for a in word.reads] + [(a, True) for a in word.writes]:
                    dtype = int(access.dtype) or (int(Dtype.FLOAT32))
                    if isinstance(word, isa.MatMul) and write and not word.dst_dtype and word.transpose_mode:
                        dtype = int(word.dtype)
                    memory, cells = _chip_cells(access.pattern, dtype, access.partitions)
                    found.append(Access(engine, index, write, memory, cells, f"{engine} {index} {word.asm}"))
    return found, _run(streams, signals, triggers)


def _run(
    streams: dict[str, list[Any]],
    signals: dict[int, list[tuple[str, int, int]]],
    triggers: dict[tuple[str, int], tuple[str, int]],
) -> list[_Event]:
    """Walk the streams; each word starts after its waits and after the start of the word before it."""
    for semaphore, producers in signals.items():
        assert len({actor for actor, _, _ in producers}) == 1, f"S[{semaphore}] has several producers: {producers}"
    starts: dict[tuple[str, int], dict[str, int]] = {}
    position = dict.fromkeys(streams, 0)
    progress = True
    while progress:
        progress = False
        for engine, words in streams.items():
            while position[engine] < len(words):
                index = position[engine]
                clock = dict(starts.get((engine, index - 1), {}))
                reached = [_producer(wait, signals) for wait in _waits(words[index])]
                if any(pair not in starts for pair in reached):
                    break
                for actor, unit in reached:
                    for other, count in starts[actor, unit].items():
                        clock[other] = max(clock.get(other, 0), count)
                    clock[actor] = max(clock.get(actor, 0), unit + 1)
                starts[engine, index] = clock
                if (engine, index) in triggers:
                    starts[triggers[engine, index]] = dict(clock)
                position[engine] += 1
                progress = True
    for engine, words in streams.items():
        assert position[engine] == len(words), (
            f"{engine} waits for ever at {position[engine]}: {words[position[engine]].asm}"
        )
    return [_Event(actor, index, clock) for (actor, index), clock in starts.items()]


def _waits(word: Any) -> list[isa.Wait]:
    waits = [word.wait] + ([word.wait2] if isinstance(word, isa.EventSemaphore) else [])
    for wait in waits:
        assert wait.mode in (isa.WaitMode.NONE, isa.WaitMode.SEM_GE), word.asm
    return [wait for wait in waits if wait]


def _producer(wait: isa.Wait, signals: dict[int, list[tuple[str, int, int]]]) -> tuple[str, int]:
    total = 0
    for actor, unit, amount in signals.get(wait.index, ()):
        total += amount
        if total >= wait.value:
            assert total == wait.value, f"S[{wait.index}]>={wait.value} is never met exactly"
            return actor, unit
    raise AssertionError(f"S[{wait.index}]>={wait.value}: only {total} are ever signalled")


def unordered(neff: Neff, subgraph: int = 0) -> list[str]:
    """Return every pair of conflicting accesses that nothing orders; engines and queues complete in order."""
    found, events = accesses(neff.subgraphs[subgraph])
    clocks = {(event.actor, event.index): event.start for event in events}
    queues = set(neff.subgraphs[subgraph].queues)
    problems = []
    for number, a in enumerate(found):
        for b in found[:number]:
            if a.memory != b.memory or not (a.write or b.write) or (a.actor, a.index) == (b.actor, b.index):
                continue
            if a.actor == b.actor and not (a.actor in queues and _reads_result(a, b)):
                continue
            if clocks[a.actor, a.index].get(b.actor, 0) > b.index or clocks[b.actor, b.index].get(a.actor, 0) > a.index:
                continue
            if np.intersect1d(a.cells, b.cells, assume_unique=True).size:
                problems.append(f"{a.memory}: {a.what} | {b.what}")
    return problems


def _reads_result(a: Access, b: Access) -> bool:
    """Tell whether the later of two transfers reads what the earlier writes: completing in order is not enough."""
    first, second = (a, b) if a.index < b.index else (b, a)
    return first.write and not second.write
