"""Why nothing goes forward: who waits for what, what it is now, who could still signal it, and the cycles."""

from __future__ import annotations

import gc
from bisect import bisect_left
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from emulator.faults import source_line
from emulator.signals import Key, index_of
from formats.errors import NeuronError
from formats.isa import WaitMode
from formats.nrt.status import NrtStatus

if TYPE_CHECKING:
    from emulator.device import Device
    from emulator.loader import LoadedWord
    from emulator.sequencer import Sequencer

__all__ = ["Hang", "Signal", "Wait", "explain", "signals_of"]

_SHOWN = 8      # signals listed per wait in the text; the value has all of them
_NEAR = 8       # signals done last, and to come next, that have their text
_CYCLES = 100   # cycles named

Node = tuple[int, str]          # core, engine


class Signal(NamedTuple):
    """Something that signals what an engine waits for.

    `engine` is the engine whose word signals or, for a DMA transfer, the queue; `owner` the engine of the stream.
    `amount` is what it adds, None where it writes; `text` is left out where it is long done or far ahead. `state` is
    "done", "running", "blocked" (that word waits itself) or "queued" (behind the word at `behind`).
    """

    core: int
    engine: str
    owner: str
    pc: int
    text: str
    state: str
    amount: int | None
    behind: int | None = None


class Wait(NamedTuple):
    """One engine that waits for semaphore or event `number`: it is `present` and has to be `need`."""

    core: int
    engine: str
    pc: int
    text: str
    source: object | None
    kind: str
    number: int
    condition: str
    need: int
    present: int
    since_ps: int
    could_signal: tuple[Signal, ...]
    overshoot: bool

    @property
    def pending(self) -> tuple[Signal, ...]:
        """Return what has not signalled yet."""
        return tuple(signal for signal in self.could_signal if signal.state != "done")


@dataclass(frozen=True)
class Hang:
    """An execution that does not end; `reason` is "deadlock", "hang timeout", "time limit" or "step limit".

    `cycles` are chains of (core, engine) that wait for one another, `running` what engines were at that do not wait.
    """

    reason: str
    time_ps: int
    waits: tuple[Wait, ...]
    cycles: tuple[tuple[Node, ...], ...]
    running: tuple[str, ...] = ()

    @property
    def status(self) -> NrtStatus:
        """Return the status that the real runtime returns for it."""
        return NrtStatus.NRT_TIMEOUT

    def text(self) -> str:
        """Return the whole report."""
        many = "1 engine waits" if len(self.waits) == 1 else f"{len(self.waits)} engines wait"
        head = "nothing is in flight, " if self.reason == "deadlock" else ""
        lines = [f"{self.reason} at {self.time_ps} ps: {head}{many}"]
        for wait in self.waits:
            lines += _wait_lines(wait)
        lines += [f"  running: {text}" for text in self.running]
        for cycle in self.cycles:
            names = [f"nc{core} {engine}" for core, engine in (*cycle, cycle[0])]
            lines.append("  cycle: " + " waits for ".join(names))
        return "\n".join(lines)

    def graph(self) -> dict[str, Any]:
        """Return the wait-for graph as plain data: engines as nodes, who could signal whom as edges.

        Signals of one engine for one wait are one edge: `signals` counts those that are pending, `state` and `pc` are
        the next one's. A wait that nothing can end has no edge. `cycle` marks the edges of a cycle.
        """
        circular = {(first, second) for cycle in self.cycles
                    for first, second in zip(cycle, (*cycle[1:], cycle[0]), strict=True)}
        nodes = [{"id": f"nc{w.core} {w.engine}", "core": w.core, "engine": w.engine, "pc": w.pc, "text": w.text,
                  "source": source_line(w.source) or None, "condition": w.condition, "need": w.need,
                  "present": w.present, "overshoot": w.overshoot, "signalled": len(w.could_signal) - len(w.pending)}
                 for w in self.waits]
        edges: list[dict[str, Any]] = []
        for wait in self.waits:
            first: dict[Node, dict[str, Any]] = {}
            for signal in wait.pending:
                owner = (signal.core, signal.owner)
                if owner in first:
                    first[owner]["signals"] += 1
                    continue
                first[owner] = {"from": f"nc{wait.core} {wait.engine}", "to": f"nc{owner[0]} {owner[1]}",
                                "condition": wait.condition, "by": signal.engine, "pc": signal.pc,
                                "state": signal.state, "amount": signal.amount, "signals": 1,
                                "cycle": ((wait.core, wait.engine), owner) in circular}
            edges += first.values()
        return {"reason": self.reason, "time_ps": self.time_ps, "nodes": nodes, "edges": edges,
                "cycles": [[f"nc{core} {engine}" for core, engine in cycle] for cycle in self.cycles]}

    def dot(self) -> str:
        """Return the wait-for graph for Graphviz; cycles are red, engines that nobody can help are boxes."""
        data = self.graph()
        helped = {edge["from"] for edge in data["edges"]}
        lines = ["digraph hang {", f'  label="{self.reason} at {self.time_ps} ps";', "  node [shape=ellipse];"]
        for node in data["nodes"]:
            label = f"{node['id']} pc {node['pc']}\\n{node['condition']}, is {node['present']}"
            shape = "" if node["id"] in helped else ", shape=box"
            lines.append(f'  "{node["id"]}" [label="{label}"{shape}];')
        for edge in data["edges"]:
            label = f"{edge['by']} pc {edge['pc']}: {edge['state']}"
            colour = ", color=red" if edge["cycle"] else ""
            lines.append(f'  "{edge["from"]}" -> "{edge["to"]}" [label="{label}"{colour}];')
        return "\n".join([*lines, "}"])


def _wait_lines(wait: Wait) -> list[str]:
    line = source_line(wait.source)
    name = f"{'E' if wait.kind == 'event' else 'S'}[{wait.number}]"
    lines = [f"  nc{wait.core} {wait.engine} pc {wait.pc}{f' ({line})' if line else ''}: {wait.text}",
             f"    waits for {wait.condition} since {wait.since_ps} ps; {name} is {wait.present}"]
    if wait.overshoot:
        lines.append(f"    overshoot: {name} went past {wait.need}; only something that lowers or writes it can help")
    pending = wait.pending
    done = len(wait.could_signal) - len(pending)
    if not wait.could_signal:
        lines.append("    nothing in the program signals it")
    for signal in pending[:_SHOWN]:
        state = f"queued behind pc {signal.behind}" if signal.state == "queued" else signal.state
        amount = "" if signal.amount is None else f"{signal.amount:+d} from "
        lines.append(f"    {amount}nc{signal.core} {signal.engine} pc {signal.pc} ({state}): {signal.text}")
    if len(pending) > _SHOWN:
        lines.append(f"    and {len(pending) - _SHOWN} more that have not signalled")
    if done:
        lines.append(f"    {done} signalled already" + ("" if pending else "; nothing more will"))
    return lines


def explain(device: Device, reason: str) -> Hang:
    """Return why a device stands still, or what it was at when a limit ended it."""
    waiting = [engine for core in device.cores for engine in core.engines.values()
               if engine.state == "waiting" and engine.waiting_on is not None]
    collecting = gc.isenabled()
    gc.disable()    # thousands of new tuples would set it off, over all words of the program: more than all the rest
    try:
        signals = {key: signals_of(device, key) for key in {_key(engine) for engine in waiting}}
    finally:
        if collecting:
            gc.enable()
    waits = tuple(_wait(engine, signals[_key(engine)]) for engine in waiting)
    running = tuple(f"nc{core.index} {name} pc {engine.pc}: {engine.current.text}" for core in device.cores
                    for name, engine in core.engines.items()
                    if engine.state in ("running", "idle") and engine.current is not None)
    edges: dict[Node, set[Node]] = {}
    for wait in waits:
        edges[wait.core, wait.engine] = {(signal.core, signal.owner) for signal in wait.pending}
    return Hang(reason, device.now_ps, waits, _cycles(edges), running)


def signals_of(device: Device, key: Key) -> tuple[Signal, ...]:
    """Return everything in the program that signals one semaphore or event: (core, "semaphore" or "event", number).

    The first call indexes every stream, 0.05 s for 100,000 words; later ones only look where the engines stand.
    """
    return tuple(chain.from_iterable(
        _signals_of(device, engine, key) for core in device.cores for engine in core.engines.values()))


def _key(engine: Sequencer) -> Key:
    assert engine.waiting_on is not None
    return engine.waiting_on.core, engine.waiting_on.kind, engine.waiting_on.number


def _wait(engine: Sequencer, signals: tuple[Signal, ...]) -> Wait:
    waiting, loaded = engine.waiting_on, engine.words[engine.position]
    assert waiting is not None
    where = engine.core.events if waiting.kind == "event" else engine.core.semaphores
    present = where[waiting.number]
    source = engine.core.source_of(engine.name, loaded.pc)
    return Wait(engine.core.index, engine.name, loaded.pc, loaded.word.text, source, waiting.kind, waiting.number,
                waiting.text, waiting.value, present, waiting.since_ps, signals,
                waiting.mode == WaitMode.SEM_EQ and present > waiting.value)


def _signals_of(device: Device, engine: Sequencer, key: Key) -> list[Signal]:
    """Return every signal of an engine's stream, DMA transfers it starts included, and where each stands."""
    sources = index_of(engine).sources(key)
    if not sources:
        return []
    core, position = engine.core.index, engine.position
    issued = position - len(engine.in_flight)
    on_the_way = {(queue.name, transfer.pc) for queue in device.dma.queues if queue.core == core
                  for transfer in queue.pending}
    found: list[tuple[int, Signal]] = []
    for by, amount, moves, numbers in sources:
        done, begun = bisect_left(numbers, issued), bisect_left(numbers, position)
        # Text is slow: of thousands that are done or to come, only those near where the engine stands have it.
        near = max(done - _NEAR, 0)
        words = engine.words
        found += [(n, Signal(core, by, engine.name, words[n].pc, "", "done", amount)) for n in numbers[:near]]
        for at, number in enumerate(numbers[near:], near):
            loaded = words[number]
            if at < done:
                state = "running" if moves and (by, loaded.pc) in on_the_way else "done"
            elif at < begun:
                state = "running"
            else:
                state = "blocked" if number == position and engine.state == "waiting" else "queued"
            text = _text(loaded) if at < begun + _NEAR else ""
            behind = words[position].pc if state == "queued" and position < engine.count else None
            found.append((number, Signal(core, by, engine.name, loaded.pc, text, state, amount, behind)))
    if len(sources) > 1:
        found.sort(key=_number)
    return [signal for _, signal in found]


def _number(item: tuple[int, Signal]) -> int:
    return item[0]


def _text(loaded: LoadedWord) -> str:
    text = loaded.word.text
    if loaded.transfer is None:
        return text
    try:
        return f"{text} ({loaded.transfer().text})"
    except NeuronError:
        return text     # it could not even be made; the engine faults when it gets there


def _cycles(edges: dict[Node, set[Node]]) -> tuple[tuple[Node, ...], ...]:
    """Return simple cycles, each once, starting at its smallest node; the first hundred."""
    found: set[tuple[Node, ...]] = set()

    def walk(path: tuple[Node, ...]) -> None:
        for after in sorted(edges.get(path[-1], ())):
            if len(found) >= _CYCLES:
                return
            if after == path[0]:
                found.add(path)
            elif after > path[0] and after not in path and after in edges:
                walk((*path, after))
    for start in edges:
        walk((start,))
    return tuple(sorted(found))
