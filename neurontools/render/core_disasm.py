"""Instructions of a core dump around where engines stood."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formats.errors import NotFoundError
from neurontools.render.core import chosen_engines, place

if TYPE_CHECKING:
    from formats.core import Core

__all__ = ["lines", "words"]

_WORD = 64
_MARKS = {"done": " . ", "flying": " ~ ", "next": "=> ", "fault": "!! ", "": "   "}


def words(core: Core, number: int | None, engine: str | None, around: int | None, count: int) -> dict[str, Any]:
    """Return words of the engines that options choose; else of the one that faulted, or of those that wait."""
    states = chosen_engines(core, number, engine)
    fault = core.fault
    if engine is None:
        named = (
            {(fault.core, fault.engine)}
            if fault is not None and around is None
            else {(wait.core, wait.engine) for wait in core.waits.waits}
        )
        states = [state for state in states if (state.core, state.engine) in named] or states
    return {"engines": [_engine(core, state, around, count) for state in states]}


def _engine(core: Core, state: Any, around: int | None, count: int) -> dict[str, Any]:
    """Return the stored words of one engine around a pc, by default where it stood or faulted."""
    from formats.errors import FormatError
    from formats.isa import decode

    fault = core.fault
    failed = fault is not None and (fault.core, fault.engine) == (state.core, state.engine)
    middle = around if around is not None else fault.pc if failed and fault is not None else state.pc
    stream = next((s for s in core.program.streams if (s.core, s.engine) == (state.core, state.engine)), None)
    result = {"core": state.core, "engine": state.engine, "words": state.words, "pc": state.pc}
    if stream is None:
        return {**result, "rows": []}
    flying = {flight.word for flight in state.in_flight}
    replaced = dict(stream.replaced)
    stored = sorted(
        ((first + i, pc + i, slot + i * (size // _WORD), size) for first, pc, slot, size, n in stream.runs
         for i in range(max(0, min(n, middle + count - pc))) if abs(pc + i - middle) <= count),
        key=lambda each: each[1],
    )  # fmt: skip
    if around is not None and not any(pc == around for _, pc, _, _ in stored):
        raise NotFoundError(f"nc{state.core} {state.engine} pc {around} is not in this {core.level} dump")
    at = next((i for i, each in enumerate(stored) if each[1] >= middle), len(stored))
    first = max(0, min(at - count // 2, len(stored) - count))
    rows = []
    for index, pc, slot, size in stored[first : first + count]:
        found = core.read("instructions", state.core, slot * _WORD, size, engine=state.engine)
        text = loaded = None
        if not found.missing:
            dialect = "extended" if stream.extended else "neuron"
            generation = core.dump.generation
            try:
                text = loaded = decode(found.data, generation, dialect).text
                if pc in replaced:
                    text = decode(bytes.fromhex(replaced[pc]), generation, dialect).text
            except (FormatError, ValueError):
                text = found.data.hex()
        mark = "fault" if failed and fault is not None and pc == fault.pc else (
            "flying" if index in flying else "done" if index < state.position
            else "next" if index == state.position else ""
        )  # fmt: skip
        source = next((stream.locations[n] for start, length, n in stream.sources
                       if start <= pc < start + length and 0 <= n < len(stream.locations)), None)  # fmt: skip
        rows.append({"pc": pc, "state": mark, "text": text, "loaded": loaded if loaded != text else None,
                     "source": place(source) or None})  # fmt: skip
    return {**result, "rows": rows}


def lines(data: dict[str, Any]) -> list[str]:
    """Return `core disasm` for people."""
    found: list[str] = []
    for each in data["engines"]:
        found += ["", f"nc{each['core']} {each['engine']}, {each['words']} words, stood at pc {each['pc']}:"]
        before = None
        for row in each["rows"]:
            if row["source"] != before and row["source"] is not None:
                found.append(f"           # {row['source']}")
            before = row["source"]
            found.append(f"{_MARKS[row['state']]}{row['pc']:>6}  {row['text'] or '(not in this dump)'}")
            if row["loaded"] is not None:
                found.append(f"           loaded as {row['loaded']}")
        if not each["rows"]:
            found.append("           no words in this dump")
    return found[1:]
