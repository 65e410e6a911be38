"""What debugger commands return, as lines for people and as plain data for JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from math import isfinite
from typing import TYPE_CHECKING, Any

from neurontools.render import maps
from neurontools.render.run import fault, fault_lines, hang, source
from neurontools.render.session_tables import TABLES
from neurontools.render.table import arrow, bold, bytes_text, count, duration

if TYPE_CHECKING:
    from emulator.session import (
        Ahead,
        Breakpoint,
        Checks,
        Disassembly,
        Examined,
        LastWrite,
        Listing,
        Mark,
        Moved,
        State,
        Step,
        Stop,
        TensorValue,
        When,
        Why,
    )

__all__ = ["plain", "text_of"]

_ELEMENTS = 1000  # of a tensor, printed in full; larger ones lose their middle
_ROW = 4  # values of `x` on a line that fit every format


# --- data -----------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Return a result as data that JSON can carry; arrays with their type and shape, infinities and NaN as text."""
    if value is None or isinstance(value, bool | int | str):
        return value.name if isinstance(value, Enum) else value
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    kind = type(value).__name__
    if kind == "Fault":
        return fault(value)
    if kind == "Hang":
        return hang(value)
    if kind == "SourceLocation":
        return source(value)
    if kind == "Finding":
        from neurontools.render.check import finding

        return plain(finding(value))
    if kind == "Condition":
        return value.text
    if kind == "TensorValue":
        return {**{name: plain(item) for name, item in value._asdict().items()},
                "statistics": plain(value.statistics)}  # fmt: skip
    if hasattr(value, "_asdict"):
        return {name: plain(item) for name, item in value._asdict().items()}
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "dtype"):
        return {"dtype": value.dtype.name, "shape": list(value.shape), "values": plain(_numbers(value).tolist())}
    if isinstance(value, frozenset):
        return plain(sorted(value))
    return [plain(item) for item in value]


def _numbers(array: Any) -> Any:
    """Return an array of a type that Python has numbers for: ml_dtypes' own go through fp32."""
    return array if array.dtype.isbuiltin == 1 else array.astype("float32")


# --- lines ----------------------------------------------------------------------------------------------------------


def text_of(value: Any) -> Iterator[str]:
    """Return the lines of one result."""
    kind = type(value).__name__
    if kind in _LINES:
        yield from _LINES[kind](value)
    elif isinstance(value, tuple) and value and type(value[0]).__name__ in TABLES:
        yield from TABLES[type(value[0]).__name__](value)
    elif isinstance(value, tuple) and value and type(value[0]).__name__ in maps.TABLES:
        yield from maps.TABLES[type(value[0]).__name__](value)
    elif isinstance(value, str):
        yield from value.splitlines()
    elif isinstance(value, Sequence):
        for item in value:
            yield from text_of(item)


def _stop(stop: Stop) -> Iterator[str]:
    shown = sum(step.kind not in ("fault", "hang") for step in stop.steps)
    ended = stop.completions - sum(step.kind in ("fault", "hang") for step in stop.steps)
    if ended > shown:
        yield f"{count(ended, 'completion')}; the last:" if shown else count(ended, "completion")
    for step in stop.steps:
        if step.kind not in ("fault", "hang"):
            yield from _step(step)
    if stop.reason == "fault" and stop.fault is not None:
        yield from fault_lines(stop.fault)
    elif stop.reason == "hang" and stop.hang is not None:
        yield from stop.hang.text().splitlines()
    elif stop.reason in ("breakpoint", "watchpoint"):
        many = stop.reason if len(stop.breakpoints) == 1 else f"{stop.reason}s"
        yield bold(f"{many} {', '.join(map(str, stop.breakpoints))}")
    elif stop.reason == "interrupted":
        yield bold("interrupted")
    elif stop.reason == "engine done":
        yield "that engine has completed its words"
    elif stop.reason == "finished":
        yield f"the program has ended, after {duration(stop.time_ps)} of device time"
    if stop.ahead is not None:
        yield _ahead(stop.ahead)
    elif stop.reason in ("step", "line", "until") and stop.completions:
        yield "=> nothing is left to complete"


def _moved(moved: Moved) -> Iterator[str]:
    far = count(abs(moved.completions), "completion")
    way = f"{'back' if moved.completions < 0 else 'on'} {far}" if moved.completions else "nowhere else to go"
    yield f"{way}: {count(moved.events, 'event')} until {duration(moved.time_ps)}"
    if moved.reason in ("breakpoint", "watchpoint"):
        yield bold(f"{moved.reason} {', '.join(map(str, moved.breakpoints))}")
    elif moved.reason == "start":
        yield "this is the beginning"
    elif moved.reason == "fault" and moved.fault is not None:
        yield from fault_lines(moved.fault)
    elif moved.reason == "hang" and moved.hang is not None:
        yield from moved.hang.text().splitlines()
    elif moved.reason == "interrupted":
        yield bold("interrupted")
    elif moved.reason == "finished":
        yield "the program has ended"
    if moved.ahead is not None:
        yield _ahead(moved.ahead)


def _mark(mark: Mark) -> Iterator[str]:
    yield f"mark {mark.name}: {count(mark.events, 'event')}, {duration(mark.time_ps)}"


def _when(when: When) -> Iterator[str]:
    yield f"{count(when.events, 'event')}, {duration(when.time_ps)}"
    for mark in when.marks:
        yield "  " + next(_mark(mark))
    used = f"{bytes_text(when.recorded + when.checkpoint_bytes)} of {bytes_text(when.budget)}"
    yield f"  {count(when.undoable, 'completion')} at hand, {count(when.checkpoints, 'checkpoint')}, {used}"


def _why(item: Why) -> Iterator[str]:
    if item.report is None:
        word = f", pc {item.pc}: {item.text}" if item.text is not None and item.state != "done" else ""
        yield f"nc{item.core} {item.engine} is {item.state} and waits for nothing{word}"
    else:
        yield from item.report.text().splitlines()[1:]


def _last_write(item: LastWrite) -> Iterator[str]:
    if item.number is None:
        yield f"{item.where}: no instruction or transfer has written there"
        return
    where = _where(item.core, item.engine, item.pc or 0, item.kind)
    line = f"  ({_place(item.source)})" if item.source is not None else ""
    yield f"{item.where}: written last by #{item.number} at {duration(item.time_ps or 0)}"
    yield f"  {where}  {item.text}{line}"
    for write in item.writes:
        yield f"  wrote {_write(write, item.core)}"


def _step(step: Step) -> Iterator[str]:
    where = _where(step.core, step.engine, step.pc, step.kind)
    yield f"{f'#{step.number}':5} {duration(step.time_ps):>10}  {where}  {step.text}"
    pad = " " * 18
    if step.source is not None:
        yield f"{pad}{_place(step.source)}"
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


def _place(item: Any) -> str:
    return f"{item.file}:{item.line}" if item.line is not None else str(item.file)


def _write(write: Any, core: int) -> str:
    extra = ", strided" if write.strided else ""
    if write.space == "HBM":
        first = write.offset if write.name else write.byte
        return f"{write.name or 'HBM'} bytes {first:#x} to {first + write.nbytes - 1:#x}{extra}"
    other = f"nc{write.core} " if write.core != core else ""
    last = write.partition + write.partitions - 1
    rows = f"partition {last}" if write.partitions == 1 else f"partitions {write.partition} to {last}"
    return f"{other}{write.space} {rows}, bytes {write.byte:#x} to {write.byte + write.nbytes - 1:#x}{extra}"


def _ahead(ahead: Ahead) -> str:
    line = f"  ({_place(ahead.source)})" if ahead.source is not None else ""
    return f"{arrow()} {_where(ahead.core, ahead.engine, ahead.pc, ahead.kind)}  {ahead.text}{line}"


def _state(state: State) -> Iterator[str]:
    core, engine = state.focus
    yield f"{state.name} on {state.target}, {count(state.cores, 'core')}: {state.outcome}"
    yield f"  {count(state.events, 'event')}, {duration(state.time_ps)}; focus nc{core} {engine}"
    if state.warnings:
        yield f"  {count(state.warnings, 'warning')} (info warnings)"
    if state.ahead is not None:
        yield _ahead(state.ahead)


def _breakpoint(item: Breakpoint) -> Iterator[str]:
    kind = "watchpoint" if item.watches else "breakpoint" if not item.behind or item.compare else "catchpoint"
    many = f", {len(item.places)} places" if len(item.places) > 1 else ""
    test = "" if item.condition is None else f" if {item.condition}"
    yield (f"{'temporary ' if item.temporary else ''}{kind} {item.number}: {item.where}{many}{test}"
           + ("" if item.enabled else " (disabled)"))  # fmt: skip
    if item.ignore:
        yield f"  does not stop the next {count(item.ignore, 'time')}"
    if item.error:
        yield f"  its condition could not be computed: {item.error}"
    yield from (f"  {line}" for line in item.commands)


def _checks(item: Checks) -> Iterator[str]:
    names = ", ".join(item.tools)
    yield f"{names} run along: {count(item.findings, 'finding')}" if names else "no checks run along"


def _listing(item: Listing) -> Iterator[str]:
    yield bold(f"{item.file}:")
    for row in item.rows:
        mark = ("=>" if row.engines else "  ") + ("*" if row.breakpoints else " ")
        who = f"    <- {', '.join(row.engines)}" if row.engines else ""
        yield f"{mark}{row.number:5}  {row.text}{who}".rstrip()


def _disassembly(item: Disassembly) -> Iterator[str]:
    yield bold(f"nc{item.core} {item.engine}, {count(item.words, 'word')}:")
    last = None
    for row in item.rows:
        place = _place(row.source) if row.source is not None else None
        if place is not None and place != last:
            yield f"           # {place}"
        last = place
        mark = {"next": arrow(), "flying": "->", "done": " ."}.get(row.state, "  ") + ("*" if row.breakpoints else " ")
        wait = "" if row.satisfied is None else "   [wait holds]" if row.satisfied else "   [wait does not hold]"
        yield f"{mark}{row.pc:6}  {row.text}{wait if row.state in ('next', '') else ''}"


def _examined(item: Examined) -> Iterator[str]:
    size = item.values.dtype.itemsize
    values = _numbers(item.values).tolist()
    each = max(_ROW, 16 // size)
    if item.space == "HBM":
        head = f"hbm {item.name} "
    else:
        head = f"nc{item.core} {item.space.lower()} partition {item.partition} "
    for start in range(0, len(values), each):
        cells = [
            (f"0x{value:0{2 * size}x}" if item.base == "x" else f"{value:.7g}" if item.base == "f" else str(value))
            if written
            else "never-written"
            for value, written in zip(values[start : start + each], item.written[start : start + each], strict=True)
        ]
        yield f"{head}{item.address + start * size:#x}:  " + "  ".join(cells)


def _tensor(item: TensorValue) -> Iterator[str]:
    import numpy as np

    values = _numbers(item.array)
    shape = ", ".join(map(str, item.array.shape))
    line = f"{item.name}{item.selection}: {item.array.dtype.name}[{shape}] in {item.space}"
    found = item.statistics
    if found.minimum is not None:
        line += f", min {found.minimum:.6g}, mean {found.mean:.6g}, max {found.maximum:.6g}"
    line += f", {found.nans} NaN" if found.nans else ""
    line += f", {found.infinities} infinite" if found.infinities else ""
    if item.unwritten:
        line += f", {count(item.unwritten, 'element')} never written"
    yield bold(line)
    yield from np.array2string(values, threshold=_ELEMENTS, max_line_width=110, separator=", ").splitlines()


def _notice(item: Any) -> Iterator[str]:
    yield f"{item.kind}: {item.text}"


_LINES: dict[str, Callable[[Any], Iterator[str]]] = {
    "Stop": _stop,
    "State": _state,
    "Breakpoint": _breakpoint,
    "Listing": _listing,
    "Disassembly": _disassembly,
    "Examined": _examined,
    "TensorValue": _tensor,
    "Notice": _notice,
    "Moved": _moved,
    "Mark": _mark,
    "When": _when,
    "Why": _why,
    "LastWrite": _last_write,
    "Checks": _checks,
    **maps.LINES,
}
