"""What the commands that move, stop and explain return, as lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from neurontools.running.view import fault_lines
from neurontools.text.table import arrow, bold, bytes_text, count, duration

if TYPE_CHECKING:
    from formats.neff import SourceLocation
    from formats.neff.visits import Variable
    from neurontools.debugger.breakpoint import Breakpoint
    from neurontools.debugger.results import (
        Ahead,
        Checks,
        LastWrite,
        Mark,
        Met,
        Moved,
        State,
        Step,
        Stop,
        When,
        Why,
        Write,
    )

__all__ = ["POINTS", "breakpoint_lines", "checks_lines", "last_write_lines", "mark_lines", "moved_lines", "place_of",
           "state_lines", "stop_lines", "turns_of", "when_lines", "why_lines"]  # fmt: skip

POINTS = ("breakpoint", "watchpoint", "catchpoint")  # reasons to stop that have numbers


def stop_lines(stop: Stop) -> Iterator[str]:
    """Return how a command that moves the program ended."""
    if stop.rank is not None:
        yield bold(f"rank {stop.rank}")
    shown = sum(step.kind not in ("fault", "hang") for step in stop.steps)
    ended = stop.completions - sum(step.kind in ("fault", "hang") for step in stop.steps)
    if ended > shown:
        yield f"{count(ended, 'completion')}; the last:" if shown else count(ended, "completion")
    for step in stop.steps:
        if step.kind not in ("fault", "hang"):
            yield from _step(step)
    yield from _ended(stop)
    if stop.reason == "call done":
        yield "the function has returned"
    elif stop.reason == "engine done":
        yield "that engine has completed all its instructions"
    elif stop.reason == "finished":
        yield f"the program has ended, after {duration(stop.time_ps)} of device time"
    if stop.ahead is not None:
        yield _ahead(stop.ahead)
    elif stop.reason in ("step", "line", "until") and stop.completions:
        yield "=> nothing is left to complete" + ("" if stop.rank is None else " on this rank before others go on")


def _ended(item: Stop | Moved) -> Iterator[str]:
    """Yield what stopped the program, in either direction."""
    if item.reason in POINTS:
        many = item.reason if len(item.breakpoints) == 1 else f"{item.reason}s"
        yield bold(f"{many} {', '.join(map(str, item.breakpoints))}")
        yield from item.errors
    elif item.reason == "fault" and item.fault is not None:
        yield from fault_lines(item.fault)
    elif item.reason == "hang" and item.hang is not None:
        yield from (item.hang if item.ranks is None else item.ranks).text().splitlines()
    elif item.reason == "interrupted":
        yield bold("interrupted")


def moved_lines(moved: Moved) -> Iterator[str]:
    """Return where a command that goes back, or to a place in time, ended."""
    if moved.rank is not None:
        yield bold(f"rank {moved.rank}")
    far = count(abs(moved.completions), "completion")
    still = "nowhere else to go" if moved.rank is None else "this rank stays"
    way = f"{'back' if moved.completions < 0 else 'on'} {far}" if moved.completions else still
    yield f"{way}: {count(moved.events, 'event')} until {duration(moved.time_ps)}"
    yield from _ended(moved)
    if moved.reason == "start":
        yield "this is the beginning"
    elif moved.reason == "finished":
        yield "the program has ended"
    if moved.ahead is not None:
        yield _ahead(moved.ahead)


def mark_lines(mark: Mark) -> Iterator[str]:
    """Return a mark."""
    yield f"mark {mark.name}: {count(mark.events, 'event')}, {duration(mark.time_ps)}"


def when_lines(when: When) -> Iterator[str]:
    """Return where the session stands in time."""
    yield f"{count(when.events, 'event')}, {duration(when.time_ps)}"
    for mark in when.marks:
        yield "  " + next(mark_lines(mark))
    used = f"{bytes_text(when.recorded + when.checkpoint_bytes)} of {bytes_text(when.budget)}"
    yield f"  {count(when.undoable, 'completion')} at hand, {count(when.checkpoints, 'checkpoint')}, {used}"


_STANDS = {
    "run": "runs and waits for nothing",
    "fault": "has faulted",
    "done": "is done and waits for nothing",
    "stopped": "was stopped and waits for nothing",
    "wait": "waits, and the dump does not tell for what",
}


def why_lines(item: Why) -> Iterator[str]:
    """Return what an engine waits for."""
    if item.report is None:
        word = f", pc {item.pc}: {item.text}" if item.text is not None and item.state != "done" else ""
        yield f"nc{item.core} {item.engine} {_STANDS[item.state]}{word}"
        for met in item.met:
            yield from _met(met)
    else:
        yield from item.report.text().splitlines()[1:]
    if item.ranks is not None and item.ranks.hang is not None:
        yield from item.ranks.hang.text().splitlines()
    elif item.ranks is not None:
        yield from (wait.text for wait in item.ranks.waits)


def _met(met: Met) -> Iterator[str]:
    line = f" ({place_of(met.source)})" if met.source is not None else ""
    by = f"{met.engine} pc {met.by_pc}{line}"
    if met.kind == "dma":
        block = "" if met.block is None else f", block {met.block}"
        by = f"a transfer of queue {met.engine}{block}, triggered by {met.trigger} pc {met.by_pc}{line}"
    when = f"at {duration(met.time_ps)} by #{met.number}"
    yield f"  pc {met.pc} waited for {met.condition}: met {when}, nc{met.core} {by}"
    yield f"    {met.text}"


def last_write_lines(item: LastWrite) -> Iterator[str]:
    """Return what wrote last."""
    if item.number is None:
        yield f"{item.where}: no instruction or transfer has written there"
        return
    where = _where(item.core, item.engine, item.pc or 0, item.kind)
    line = f"  ({place_of(item.source)})" if item.source is not None else ""
    yield f"{item.where}: written last by #{item.number} at {duration(item.time_ps or 0)}"
    yield "  set by hand" if item.kind == "edit" else f"  {where}  {item.text}{line}"
    for write in item.writes:
        yield f"  wrote {_write(write, item.core)}"


def _step(step: Step) -> Iterator[str]:
    where = _where(step.core, step.engine, step.pc, step.kind)
    yield f"{f'#{step.number}':5} {duration(step.time_ps):>10}  {where}  {step.text}"
    pad = " " * 18
    if step.source is not None:
        yield f"{pad}{place_of(step.source)}{turns_of(step.iteration)}"
    if step.semaphores:
        changes = [
            f"{'E' if change.kind == 'event' else 'S'}[{change.number}] {change.old} -> {change.new}"
            + (f" on nc{change.core}" if change.core != step.core else "")
            for change in step.semaphores
        ]
        yield f"{pad}{', '.join(changes)}"
    if step.starts is not None:
        yield f"{pad}starts {step.starts}"
    for write in step.writes:
        yield f"{pad}wrote {_write(write, step.core)}"


def _where(core: int, engine: str, pc: int, kind: str) -> str:
    return f"nc{core} {engine} " + (f"(pc {pc})" if kind == "dma" else f"pc {pc}")


def place_of(item: SourceLocation) -> str:
    """Return "FILE:LINE", and the operation of the graph where there is one."""
    operation = f" %{item.operation}" if item.operation is not None else ""
    return (f"{item.file}:{item.line}" if item.line is not None else str(item.file)) + operation


def turns_of(iteration: Iterable[Variable]) -> str:
    """Return the turns of loops to stand behind a place: ", m=0 k=3"."""
    text = " ".join(f"turn {one.value}" if one.name == "#" else f"{one.name}={one.value}" for one in iteration)
    return f", {text}" if text else ""


def _write(write: Write, core: int) -> str:
    extra = ", strided" if write.strided else ""
    if write.space == "HBM":
        first = write.offset if write.name else write.byte
        return f"{write.name or 'HBM'} bytes {first:#x} to {first + write.nbytes - 1:#x}{extra}"
    other = f"nc{write.core} " if write.core != core else ""
    assert write.partition is not None  # of SBUF and PSUM
    last = write.partition + write.partitions - 1
    rows = f"partition {last}" if write.partitions == 1 else f"partitions {write.partition} to {last}"
    return f"{other}{write.space} {rows}, bytes {write.byte:#x} to {write.byte + write.nbytes - 1:#x}{extra}"


def _ahead(ahead: Ahead) -> str:
    line = f"  ({place_of(ahead.source)}{turns_of(ahead.iteration)})" if ahead.source is not None else ""
    return f"{arrow()} {_where(ahead.core, ahead.engine, ahead.pc, ahead.kind)}  {ahead.text}{line}"


def state_lines(state: State) -> Iterator[str]:
    """Return where the session stands."""
    core, engine = state.focus
    head = "" if state.rank is None else f"rank {state.rank}: "
    yield f"{head}{state.name} on {state.target}, {count(state.cores, 'core')}: {state.outcome}"
    yield f"  {count(state.events, 'event')}, {duration(state.time_ps)}; focus nc{core} {engine}"
    if state.warnings:
        yield f"  {count(state.warnings, 'warning')} (info warnings)"
    if state.ahead is not None:
        yield _ahead(state.ahead)


def breakpoint_lines(item: Breakpoint) -> Iterator[str]:
    """Return a breakpoint that was set or changed."""
    many = f", {len(item.places)} places" if len(item.places) > 1 else ""
    test = "" if item.condition is None else f" if {item.condition}"
    ranks = "" if not item.ranks else f" on {count(len(item.ranks), 'rank')}"
    if len(item.ranks) == 1:
        ranks = f" on rank {item.ranks[0]}"
    yield (f"{'temporary ' if item.temporary else ''}{item.noun} {item.number}: {item.where}{many}{ranks}{test}"
           + ("" if item.enabled else " (disabled)"))  # fmt: skip
    if item.ignore:
        yield f"  ignored the next {count(item.ignore, 'time')}"
    if item.error:
        yield f"  its condition could not be computed: {item.error}"
    yield from (f"  {line}" for line in item.commands)


def checks_lines(item: Checks) -> Iterator[str]:
    """Return which checks are running."""
    names = ", ".join(item.tools)
    yield f"{names} running: {count(item.findings, 'finding')}" if names else "no checks are running"
