"""Why nothing goes forward: who waits for what, what it is now, who could still signal it, and the cycles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from emulator.faults import source_line
from emulator.semaphores import signed
from formats import isa
from formats.errors import NeuronError
from formats.isa import UpdateMode, WaitMode
from formats.nrt.status import NrtStatus

if TYPE_CHECKING:
    from emulator.device import Device
    from emulator.loader import LoadedWord
    from emulator.sequencer import Sequencer

__all__ = ["Hang", "Signal", "Wait", "explain"]

_SHOWN = 8      # signals listed per wait in the text; the value has all of them
_NEAR = 64      # words behind the present one whose signals have their text
_CYCLES = 100   # cycles named
_EVENT_SEMAPHORE = isa.EventSemaphore.OPCODE
# Opcodes of words that signal otherwise than by the update in their header; core barriers are extension words.
_SIGNALLING = frozenset((_EVENT_SEMAPHORE, isa.Write.OPCODE, isa.EXTENSION_OPCODE))

Key = tuple[int, str, int]      # core, "semaphore" or "event", number
Node = tuple[int, str]          # core, engine
Target = tuple[Key, str, int | None, Any]   # what is signalled, by whom, by how much, by which transfer


class Signal(NamedTuple):
    """Something that signals what an engine waits for.

    `engine` is the engine whose word signals or, for a DMA transfer, the queue; `owner` the engine of the stream.
    `amount` is what it adds, None where it writes; `text` is left out where it is long done. `state` is "done",
    "running", "blocked" (that word waits itself) or "queued" (behind the word at `behind`).
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
    """An execution that does not end; `reason` is "deadlock", "time limit" or "step limit".

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
    keys = {_key(engine) for engine in waiting}
    signals: dict[Key, list[Signal]] = {key: [] for key in keys}
    for core in device.cores:
        for engine in core.engines.values():
            for key, signal in _signals_of(device, engine, keys):
                signals[key].append(signal)
    waits = tuple(_wait(engine, tuple(signals[_key(engine)])) for engine in waiting)
    running = tuple(f"nc{core.index} {name} pc {engine.pc}: {engine.current.text}" for core in device.cores
                    for name, engine in core.engines.items()
                    if engine.state in ("running", "idle") and engine.current is not None)
    edges: dict[Node, set[Node]] = {}
    for wait in waits:
        edges[wait.core, wait.engine] = {(signal.core, signal.owner) for signal in wait.pending}
    return Hang(reason, device.now_ps, waits, _cycles(edges), running)


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


def _signals_of(device: Device, engine: Sequencer, keys: set[Key]) -> Iterator[tuple[Key, Signal]]:
    """Yield every signal of an engine's stream, DMA transfers it starts included, that concerns one of `keys`."""
    in_flight = len(engine.in_flight)
    position, state_now = engine.position, engine.state
    behind = engine.words[position].pc if position < engine.count else None
    for number, loaded in enumerate(engine.words):
        raw = loaded.word.raw
        if not raw[6] and raw[0] not in _SIGNALLING and loaded.transfer is None:
            continue
        for key, name, amount, transfer in _targets(device, engine, loaded):
            if key not in keys:
                continue
            if number < position - in_flight:
                state = "done"
                if transfer is not None and _on_the_way(device, engine, name, loaded):
                    state = "running"
            elif number < position:
                state = "running"
            else:
                state = "blocked" if number == position and state_now == "waiting" else "queued"
            # Text is slow: of thousands that are done, only those near the end of what was executed have it.
            near = state != "done" or number >= position - _NEAR
            text = _text(loaded, transfer) if near else ""
            yield key, Signal(engine.core.index, name, engine.name, loaded.pc, text, state, amount,
                              behind if state == "queued" else None)


def _text(loaded: LoadedWord, transfer: Any) -> str:
    return loaded.word.text if transfer is None else f"{loaded.word.text} ({transfer.text})"


def _on_the_way(device: Device, engine: Sequencer, queue: str, loaded: LoadedWord) -> bool:
    """Tell whether a triggered transfer has not completed."""
    return any(transfer.pc == loaded.pc for each in device.dma.queues
               if each.core == engine.core.index and each.name == queue for transfer in each.pending)


def _targets(device: Device, engine: Sequencer, loaded: LoadedWord) -> Iterator[Target]:
    """Yield (what, by whom, amount, the transfer if it is one) for every signal of one word."""
    word, core = loaded.word, engine.core.index
    raw = word.raw
    if raw[6]:
        yield _update(core, engine.name, raw[6], raw[7], 0)
    if raw[0] == _EVENT_SEMAPHORE and raw[34]:
        yield _update(core, engine.name, raw[34], raw[35], signed(int.from_bytes(raw[40:44], "little")))
    if isinstance(word, isa.CoreBarrier):
        yield (1 - core, "semaphore", word.semaphore), engine.name, 1, None
    if isinstance(word, isa.Write) and loaded.transfer is None:
        for address, size, data in ((word.address0, word.size0, word.data0), (word.address1, word.size1, word.data1)):
            place = device.addresses.locate(address) if size else None
            if place is not None and place.kind in ("semaphore", "event"):
                sign = {"increment": 1, "decrement": -1}.get(place.action)
                amount = None if sign is None else sign * signed(data & 0xFFFFFFFF)
                yield (place.core, place.kind, place.index), engine.name, amount, None
    if loaded.transfer is not None:
        try:
            transfer: Any = loaded.transfer()
        except NeuronError:
            return      # it could not even be made; the engine faults when it gets there
        if transfer.semaphore is not None:
            yield (core, "semaphore", transfer.semaphore), transfer.queue, transfer.increment, transfer
        if transfer.remote is not None:
            other, semaphore, increment = transfer.remote
            yield (other, "semaphore", semaphore), transfer.queue, increment, transfer


def _update(core: int, name: str, mode: int, index: int, value: int) -> Target:
    kind = "event" if mode == UpdateMode.EVENT_SET else "semaphore"
    amount = {int(UpdateMode.SEM_INC): 1, int(UpdateMode.SEM_DEC): -1, int(UpdateMode.SEM_ADD_IMM): value}.get(mode)
    return (core, kind, index), name, amount, None


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
