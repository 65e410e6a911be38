"""The wait graph as a value: who waits for what, what it is now, who could still signal it, the cycles, the causes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from emulator.diagnosis.causes import Cause, FaultPlace, Node, Reason, counter_name, diagnose
from emulator.faults import source_line
from formats.named_tuple import NamedTuple
from formats.nrt.status import NrtStatus
from formats.times import duration

__all__ = ["Hang", "Looping", "Producer", "Wait", "cycles_of", "judged", "wait_lines"]

_WORDS = 12  # words shown per loop in the text; the value has all of them
_HEADS: dict[str, str] = {
    Reason.DEADLOCK: "nothing is in flight, ",
    Reason.LIVELOCK: "a state comes again and again, and nothing else is in flight, ",
}
_SHOWN = 8  # signals listed per wait in the text; the value has all of them
_CYCLES = 100  # cycles named


class Producer(NamedTuple):
    """Something that signals what an engine waits for.

    `engine` is the engine whose word signals or, for a DMA transfer, the queue; `owner` the engine of the stream.
    `amount` is what it adds, None where it writes; `text` is left out where it is long done or far ahead. `state` is
    "done", "running", "blocked" (that word waits itself), "queued" (behind the word at `behind`) or "faulted".
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
    """One engine that waits for semaphore or event `number`: it is `present` and has to be `need`.

    `cause` says why it does not go on, `verdict` that in a sentence, `hint` what to do about it.
    """

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
    could_signal: tuple[Producer, ...]
    overshoot: bool
    cause: Cause = Cause.RUNNING
    verdict: str = ""
    hint: str = ""

    @property
    def pending(self) -> tuple[Producer, ...]:
        """Return what has not signalled yet."""
        return tuple(signal for signal in self.could_signal if signal.state != "done")


class Looping(NamedTuple):
    """One word of a loop that nothing ends."""

    core: int
    engine: str
    pc: int
    text: str
    source: object | None

    @property
    def line(self) -> str:
        """Return the word as `Hang.running` has those of other engines."""
        return f"nc{self.core} {self.engine} pc {self.pc}: {self.text}"


@dataclass(frozen=True)
class Hang:
    """An execution that does not end; `reason` is a `Reason`, or what a debugger or a dump says.

    `cycles` are chains of (core, engine) that wait for one another, `running` what engines were at that do not wait,
    `loops` the words of loops that nothing ends, engine by engine.
    """

    reason: str
    time_ps: int
    waits: tuple[Wait, ...]
    cycles: tuple[tuple[Node, ...], ...]
    running: tuple[str, ...] = ()
    loops: tuple[Looping, ...] = ()

    @property
    def status(self) -> NrtStatus:
        """Return the status that the real runtime returns for it: another one where a rank waits for others."""
        if any(wait.cause is Cause.RANKS for wait in self.waits):
            return NrtStatus.NRT_EXEC_HW_ERR_COLLECTIVES
        return NrtStatus.NRT_TIMEOUT

    @property
    def brief(self) -> str:
        """Return what happened and where, on one line: the waits that explain it, or who moves in vain."""
        loops = {(word.core, word.engine): word for word in reversed(self.loops)}
        found = [f"nc{word.core} {word.engine} loops for ever{_behind(word.source)}" for word in loops.values()]
        found += [f"nc{wait.core} {wait.engine} pc {wait.pc}{_behind(wait.source)} waits for {wait.condition}: "
                  f"{wait.verdict}" for wait in self.waits if wait.cause.root]  # fmt: skip
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        return f"{self.reason} at {duration(self.time_ps)}" + (f": {found[0]}{more}" if found else "")

    def text(self) -> str:
        """Return the whole report."""
        many = "1 engine waits" if len(self.waits) == 1 else f"{len(self.waits)} engines wait"
        many = many if self.waits else "no engine waits"
        head = _HEADS.get(self.reason, "")
        lines = [f"{self.reason} at {duration(self.time_ps)}: {head}{many}", *_loop_lines(self.loops)]
        for wait in self.waits:
            lines += wait_lines(wait)
        lines += [f"  running: {text}" for text in self.running]
        for cycle in self.cycles:
            names = [f"nc{core} {engine}" for core, engine in (*cycle, cycle[0])]
            lines.append("  cycle: " + " waits for ".join(names))
        lines += [f"  hint: {hint}" for hint in self.hints]
        return "\n".join(lines)

    @property
    def hints(self) -> tuple[str, ...]:
        """Return what to do about the causes that explain it, each once."""
        found = [wait.hint for wait in self.waits if wait.cause.root]
        if self.loops:
            found.append("let something end the loop: a register that changes in it, memory that another engine writes")
        return tuple(dict.fromkeys(found))

    def graph(self) -> dict[str, Any]:
        """Return the wait-for graph as plain data: engines as nodes, who could signal whom as edges.

        Signals of one engine for one wait are one edge: `signals` counts those that are pending, `state` and `pc` are
        the next one's. A wait that nothing can end has no edge. `cycle` marks the edges of a cycle.
        """
        circular = {
            (first, second)
            for cycle in self.cycles
            for first, second in zip(cycle, (*cycle[1:], cycle[0]), strict=True)
        }
        nodes = [
            {
                "id": f"nc{w.core} {w.engine}",
                "core": w.core,
                "engine": w.engine,
                "pc": w.pc,
                "text": w.text,
                "source": source_line(w.source) or None,
                "condition": w.condition,
                "need": w.need,
                "present": w.present,
                "overshoot": w.overshoot,
                "signalled": len(w.could_signal) - len(w.pending),
                "cause": w.cause.value,
            }
            for w in self.waits
        ]
        edges: list[dict[str, Any]] = []
        for wait in self.waits:
            first: dict[Node, dict[str, Any]] = {}
            for signal in wait.pending:
                owner = (signal.core, signal.owner)
                if owner in first:
                    first[owner]["signals"] += 1
                    continue
                first[owner] = {
                    "from": f"nc{wait.core} {wait.engine}",
                    "to": f"nc{owner[0]} {owner[1]}",
                    "condition": wait.condition,
                    "by": signal.engine,
                    "pc": signal.pc,
                    "state": signal.state,
                    "amount": signal.amount,
                    "signals": 1,
                    "cycle": ((wait.core, wait.engine), owner) in circular,
                }
            edges += first.values()
        return {
            "reason": self.reason,
            "time_ps": self.time_ps,
            "nodes": nodes,
            "edges": edges,
            "cycles": [[f"nc{core} {engine}" for core, engine in cycle] for cycle in self.cycles],
        }

    def dot(self) -> str:
        """Return the wait-for graph for Graphviz; cycles are red, engines that nobody can help are boxes."""
        data = self.graph()
        helped = {edge["from"] for edge in data["edges"]}
        label = _quoted(f"{self.reason} at {duration(self.time_ps)}")
        lines = ["digraph hang {", f"  label={label};", "  node [shape=ellipse];"]
        for node in data["nodes"]:
            label = _quoted(f"{node['id']} pc {node['pc']}", f"{node['condition']}, is {node['present']}")
            shape = "" if node["id"] in helped else ", shape=box"
            lines.append(f"  {_quoted(node['id'])} [label={label}{shape}];")
        for edge in data["edges"]:
            label = _quoted(f"{edge['by']} pc {edge['pc']}: {edge['state']}")
            colour = ", color=red" if edge["cycle"] else ""
            lines.append(f"  {_quoted(edge['from'])} -> {_quoted(edge['to'])} [label={label}{colour}];")
        return "\n".join([*lines, "}"])


def _quoted(*lines: str) -> str:
    """Return text for Graphviz; a damaged dump may have any character in the names of engines."""
    return '"' + "\\n".join(line.replace("\\", r"\\").replace('"', r"\"") for line in lines) + '"'


def _behind(source: object | None) -> str:
    line = source_line(source)
    return f" ({line})" if line else ""


def _loop_lines(words: Sequence[Looping]) -> list[str]:
    """Return the loops that nothing ends, a line each word."""
    lines = []
    engines = dict.fromkeys((word.core, word.engine) for word in words)
    for core, engine in engines:
        own = [word for word in words if (word.core, word.engine) == (core, engine)]
        lines.append(f"  nc{core} {engine} loops for ever through {len(own)} word{'' if len(own) == 1 else 's'}")
        for word in own[:_WORDS]:
            line = source_line(word.source)
            lines.append(f"    pc {word.pc}{f' ({line})' if line else ''}: {word.text}")
        if len(own) > _WORDS:
            lines.append(f"    and {len(own) - _WORDS} more")
    return lines


def wait_lines(wait: Wait) -> list[str]:
    """Return the report on one wait."""
    line, name = source_line(wait.source), counter_name(wait.kind, wait.number)
    lines = [
        f"  nc{wait.core} {wait.engine} pc {wait.pc}{f' ({line})' if line else ''}: {wait.text}",
        f"    waits for {wait.condition} since {duration(wait.since_ps)}; {name} is {wait.present}",
        f"    {wait.cause}: {wait.verdict}",
    ]
    pending = wait.pending
    for signal in pending[:_SHOWN]:
        state = f"queued behind pc {signal.behind}" if signal.state == "queued" else signal.state
        amount = "" if signal.amount is None else f"{signal.amount:+d} from "
        lines.append(f"    {amount}nc{signal.core} {signal.engine} pc {signal.pc} ({state}): {signal.text}")
    if len(pending) > _SHOWN:
        lines.append(f"    and {len(pending) - _SHOWN} more that have not signalled")
    done = len(wait.could_signal) - len(pending)
    if done:
        lines.append(f"    {done} signalled already")
    return lines


def judged(waits: Sequence[Wait], cycles: Iterable[Sequence[Node]], fault: FaultPlace | None) -> tuple[Wait, ...]:
    """Return waits with their causes, which follow from all of them together."""
    waiting = {(wait.core, wait.engine) for wait in waits}
    circular = {tuple(node) for cycle in cycles for node in cycle}
    found = []
    for wait in waits:
        pending = wait.pending
        cause, verdict, hint = diagnose(
            wait,
            pending,
            len(wait.could_signal) - len(pending),
            len(pending),
            (wait.core, wait.engine) in circular,
            waiting,
            fault,
        )
        found.append(wait._replace(cause=cause, verdict=verdict, hint=hint))
    return tuple(found)


def cycles_of(waits: Iterable[Wait]) -> tuple[tuple[Node, ...], ...]:
    """Return the simple cycles of engines that wait for one another, each once from its smallest node; 100 at most."""
    edges: dict[Node, set[Node]] = {}
    for wait in waits:
        here = (wait.core, wait.engine)
        # A transfer under way needs its engine no more.
        moving = [signal.state == "running" and signal.engine != signal.owner for signal in wait.pending]
        owners = {(one.core, one.owner) for one, moves in zip(wait.pending, moving, strict=True) if not moves}
        # What the engine signals itself, once it goes on, holds it up only where nothing else can end the wait.
        edges[here] = owners - {here} if any(moving) or len(owners) > 1 else owners
    found: set[tuple[Node, ...]] = set()
    for start in edges:
        # Ways on from a path, the next one last.
        ahead: list[tuple[tuple[Node, ...], Node]] = [((start,), one) for one in sorted(edges[start], reverse=True)]
        while ahead and len(found) < _CYCLES:
            path, after = ahead.pop()
            if after == path[0]:
                found.add(path)
            elif after > path[0] and after not in path and after in edges:
                path = (*path, after)
                ahead += [(path, one) for one in sorted(edges[after], reverse=True)]
    return tuple(sorted(found))
