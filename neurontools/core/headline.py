"""What happened to an execution, in one line, and where a word comes from."""

from __future__ import annotations

from formats.core import Core
from formats.core.records import Source

__all__ = ["headline", "place"]

_NAMED = 4  # waiting engines that the line names


def headline(core: Core) -> str:
    """Return in one line what happened."""
    fault, waits = core.fault, core.waits
    if fault is not None:
        where = f" ({line})" if (line := place(fault.source)) else ""
        return f"{fault.message}, nc{fault.core} {fault.engine} pc {fault.pc}{where}"
    if core.outcome == "hang" and waits.waits:
        names = ", ".join(f"nc{wait.core} {wait.engine} {wait.condition}" for wait in waits.waits[:_NAMED])
        more = f" and {len(waits.waits) - _NAMED} more" if len(waits.waits) > _NAMED else ""
        return f"{waits.reason}: {names}{more}"
    if core.dump.device == "neuron":
        return (
            f"a stub of a real device, with what the driver shows; the runtime reported {core.status.name or 'nothing'}"
        )
    return waits.reason if core.outcome == "hang" else core.outcome or "the dump does not tell how the run stood"


def place(source: Source | None) -> str:
    """Return "file:line" of a source location, "" where it names no file."""
    if source is None or not source.file:
        return ""
    return source.file if source.line is None else f"{source.file}:{source.line}"
