"""Why an execution did not end well, worked out from the notes of a core dump alone.

Each engine that waits gets one cause of a closed list:

    cycle        it waits for engines that wait for it
    unsignalled  nothing in the program signals what it waits for
    exhausted    everything that signals it has done so, and it was not enough
    overshoot    the value went past the one that is waited for exactly
    transfer     a DMA transfer under way will signal it
    fault        the engine that would signal it has faulted
    behind       it waits for an engine that waits itself: the cause is there
    running      the engine that would signal it was still running
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neurontools.render.core import headline, place, plain

if TYPE_CHECKING:
    from formats.core import Core
    from formats.core.records import SignalState, WaitState

__all__ = ["CAUSES", "cause_of", "root_causes", "why"]

CAUSES = ("cycle", "unsignalled", "exhausted", "overshoot", "transfer", "fault", "behind", "running")
_LAST = 5  # completions shown of the engine that faulted
_AROUND = 1  # source lines before and behind


def why(core: Core) -> dict[str, Any]:
    """Return what went wrong: status, fault, waits with their causes, roots, what happened last."""
    fault = core.fault
    waits = [{**plain(w), "cause": cause_of(core, w), "verdict": _verdict(core, w)} for w in _waits(core)]
    return {
        "outcome": core.outcome,
        "headline": headline(core),
        "status": plain(core.status),
        "reason": core.waits.reason,
        "time_ps": core.dump.time_ps,
        "fault": None if fault is None else {**plain(fault), "line": place(fault.source) or None},
        "lines": _lines(core, None if fault is None else fault.source),
        "waits": waits,
        "cycles": [[f"nc{number} {engine}" for number, engine in cycle] for cycle in core.waits.cycles],
        "roots": [f"nc{wait.core} {wait.engine}" for wait in root_causes(core)],
        "running": list(core.waits.running),
        "last": _last(core),
        "findings": [plain(finding) for finding in core.findings[:20]],
    }


def _waits(core: Core) -> list[WaitState]:
    """Return the engines that wait; one whose word faulted as its wait was met waits no more."""
    fault = core.fault
    at = None if fault is None else (fault.core, fault.engine, fault.pc)
    return [wait for wait in core.waits.waits if (wait.core, wait.engine, wait.pc) != at]


def cause_of(core: Core, wait: WaitState) -> str:
    """Return why an engine waits: one of CAUSES."""
    if any((wait.core, wait.engine) in cycle for cycle in core.waits.cycles):
        return "cycle"
    if wait.overshoot:
        return "overshoot"
    if not wait.signals and not wait.done:
        return "unsignalled"
    if _blamed(core, wait):
        return "fault"
    pending = [signal for signal in wait.signals if signal.state != "done"]
    if not pending:
        return "exhausted"
    states = {signal.state for signal in pending}
    if "running" in states:
        return "transfer" if any(s.state == "running" and s.engine != s.owner for s in pending) else "running"
    waiting = {(each.core, each.engine) for each in core.waits.waits}
    return "behind" if any((each.core, each.owner) in waiting for each in pending) else "running"


def _blamed(core: Core, wait: WaitState) -> list[SignalState]:
    """Return the signals that are not given because of the fault: of its word, or of words behind it."""
    fault = core.fault
    if fault is None:
        return []
    own = [each for each in wait.signals if (each.core, each.owner) == (fault.core, fault.engine)]
    # A word whose transfer could not be made has issued, and yet signals nothing.
    return [each for each in own if each.state != "done" or each.pc == fault.pc]


def root_causes(core: Core) -> list[WaitState]:
    """Return the waits that are not only behind others."""
    return [wait for wait in _waits(core) if cause_of(core, wait) not in ("behind", "running", "transfer")]


def _verdict(core: Core, wait: WaitState) -> str:
    """Return one sentence about a wait."""
    name = f"{'E' if wait.kind == 'event' else 'S'}[{wait.number}]"
    cause = cause_of(core, wait)
    pending = [signal for signal in wait.signals if signal.state != "done"]
    named = _blamed(core, wait) or pending
    others = list(dict.fromkeys(f"nc{signal.core} {signal.owner} pc {signal.pc}" for signal in named))
    who = " and ".join(others[:3]) + (" and others" if len(others) > 3 else "")
    given = f"{wait.done} signal{'' if wait.done == 1 else 's'}, {name} is {wait.present} and has to be {wait.need}"
    return {
        "cycle": f"waits in a circle: only {who} would signal {name}, and waits for this engine in turn",
        "unsignalled": f"nothing in the program signals {name}",
        "exhausted": f"all that signals {name} has done so: {given}",
        "overshoot": f"{name} went past {wait.need}: it is {wait.present}, and nothing lowers it any more",
        "transfer": f"a DMA transfer under way signals {name}: {who}",
        "fault": f"{who} would signal {name}, and its engine has faulted",
        "behind": f"{who} would signal {name}, and waits itself",
        "running": f"{who} would signal {name}, and had not come to it",
    }[cause]


def _lines(core: Core, source: Any) -> list[dict[str, Any]]:
    """Return the source lines around a location, as far as the dump keeps them."""
    if source is None or source.file is None or source.line is None:
        return []
    near = range(source.line - _AROUND, source.line + _AROUND + 1)
    return [
        {"line": each.line, "text": each.text, "here": each.line == source.line}
        for each in core.program.lines
        if each.file == source.file and each.line in near
    ]


def _last(core: Core) -> list[dict[str, Any]]:
    """Return what completed last, on the engine that faulted or, of a hang, anywhere."""
    fault = core.fault
    entries = [each for each in core.journal_tail.entries if each.kind not in ("fault", "hang")]
    if fault is not None:
        entries = [each for each in entries if (each.core, each.engine) == (fault.core, fault.engine)] or entries
    return [
        {"number": e.number, "time_ps": e.time_ps, "core": e.core, "engine": e.engine, "pc": e.pc, "text": e.text}
        for e in entries[-_LAST:]
    ]
