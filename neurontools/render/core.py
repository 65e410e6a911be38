"""What a core dump says of a device, as data for JSON and as lines for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from formats.core.records import DeviceNote
from formats.errors import NotFoundError
from neurontools.render.table import bytes_text, count, duration, table

if TYPE_CHECKING:
    from formats.core import Core

__all__ = [
    "chosen_engines",
    "counter_lines",
    "counters",
    "engine_lines",
    "engine_name",
    "engines",
    "info",
    "info_lines",
    "one_line",
    "parts",
    "parts_lines",
    "place",
    "plain",
    "queue_lines",
    "queues",
    "ring_lines",
    "rings",
]

_ENGINES = {
    "pe": "PE", "tensor": "PE", "act": "Activation", "activation": "Activation", "scalar": "Activation",
    "pool": "Pool", "gpsimd": "Pool", "dve": "DVE", "vector": "DVE", "sp": "SP", "sync": "SP",
}  # fmt: skip
_WORD = 64  # characters of an instruction in a table


def plain(value: Any) -> Any:
    """Return records as objects, tuples as lists."""
    if hasattr(value, "_asdict"):
        return {name: plain(item) for name, item in value._asdict().items()}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple | list) else value


def engine_name(text: str) -> str:
    """Return the engine that a name means; NotFoundError."""
    found = _ENGINES.get(text.lower())
    if found is None:
        raise NotFoundError(f"no engine {text!r}; there are pe, act, pool, dve and sp")
    return found


def place(source: Any) -> str:
    """Return "file:line" of a source location, as record or as data, "" where it has none."""
    known = source if isinstance(source, dict) else plain(source) or {}
    if not known.get("file"):
        return ""
    return f"{known['file']}:{known['line']}" if known.get("line") is not None else str(known["file"])


def info(core: Core) -> dict[str, Any]:
    """Return what `core info` tells; no memory is looked at."""
    fault, waits = core.fault, core.waits.waits
    return {
        "dump": plain(core.dump),
        "status": plain(core.status),
        "headline": headline(core),
        "fault": plain(fault),
        "waiting": len(waits),
        "neff": plain(core.neff),
        "engines": [
            {"core": e.core, "engine": e.engine, "state": e.state, "pc": e.pc, "words": e.words} for e in core.engines
        ],
        "environment": {"hostname": core.environment.hostname, "system": core.environment.system,
                        "packages": len(core.environment.packages), "variables": core.environment.variables},
        "memories": [plain(window) for window in core.windows if window.space != "instructions"],
        "findings": len(core.findings),
        "events": core.journal_tail.total,
        "log_lines": len(core.log_tail),
        "file_bytes": core.size,
        "device": plain(core.note(DeviceNote)),
    }  # fmt: skip


def headline(core: Core) -> str:
    """Return in one line what happened."""
    fault = core.fault
    if fault is not None:
        where = f" ({line})" if (line := place(fault.source)) else ""
        return f"{fault.message}, nc{fault.core} {fault.engine} pc {fault.pc}{where}"
    waits = core.waits
    if core.outcome == "hang" and waits.waits:
        names = ", ".join(f"nc{wait.core} {wait.engine} {wait.condition}" for wait in waits.waits[:4])
        more = f" and {len(waits.waits) - 4} more" if len(waits.waits) > 4 else ""
        return f"{waits.reason}: {names}{more}"
    if core.dump.device == "neuron":
        return f"a real device, as the driver shows it; the runtime reported {core.status.name or 'nothing'}"
    return waits.reason if core.outcome == "hang" else core.outcome or "the dump does not tell how the run stood"


def one_line(core: Core) -> dict[str, Any]:
    """Return what a list of dumps shows of one."""
    return {
        "outcome": core.outcome,
        "status": core.status.name,
        "code": core.status.code,
        "level": core.level,
        "neff": core.neff.name,
        "created": core.dump.created,
        "headline": headline(core),
        "bytes": core.size,
        "warnings": len(core.warnings),
    }


def info_lines(name: str, data: dict[str, Any]) -> list[str]:
    """Return `core info` for people."""
    dump, status, neff = data["dump"], data["status"], data["neff"]
    stored = sum(memory["stored"] for memory in data["memories"])
    written = sum(memory["written"] for memory in data["memories"])
    rows = {
        "what": data["headline"],
        "status": f"{status['name']} ({status['code']})" + (f" in {status['location']}" if status["location"] else ""),
        "time": f"{duration(dump['time_ps'])} of device time, {count(dump['completions'], 'instruction')}",
        "NEFF": f"{neff['name'] or '-'}, uuid {neff['uuid'] or '-'}",
        "from": neff["path"] or "-",
        "taken": f"{dump['created'] or '-'} by {dump['tool']} {dump['tool_version']}, process {dump['pid']}",
        "host": f"{data['environment']['hostname'] or '-'}, {data['environment']['system'] or '-'}",
        "memory": f"{bytes_text(stored)} here of {bytes_text(written)} written",
        "events": f"{count(data['events'], 'event')}, {count(data['log_lines'], 'line')} of log, "
        f"{count(data['findings'], 'finding')}",
        "size": f"{data['file_bytes']:,} bytes",
    }
    chip = f"{dump['target']} ({dump['generation']})"
    head = f"{name}: {dump['level']} core dump, {chip}, {count(dump['cores'], 'core')}: {dump['outcome'] or 'unknown'}"
    lines = [head, "", *(f"  {key.ljust(6)}  {value}" for key, value in rows.items()), ""]
    heads = ("core", "engine", "state", "pc", "of")
    states = [[f"nc{e['core']}", e["engine"], e["state"], e["pc"], e["words"]] for e in data["engines"]]
    return [*lines, *(f"  {line}" for line in table(heads, states))] if data["device"] is None else [
        *lines,
        f"  nd{data['device']['device']} nc{data['device']['core']}",
        *(f"  {name} {value}" for part in ("attributes", "core_attributes")
          for name, value in data["device"][part].items()),
    ]  # fmt: skip


def parts(core: Core) -> dict[str, Any]:
    """Return the notes, and the memories with their segments."""
    found: dict[tuple[str, int, str], list[int]] = {}
    for segment in core.segments:
        kept = found.setdefault((segment.space or "unknown", segment.core, segment.engine), [0, 0, segment.address])
        kept[0] += 1
        kept[1] += segment.size
    return {
        "notes": [{"name": name, "bytes": size} for name, size in core.notes.items()],
        "memories": [
            {"space": space, "core": number, "engine": engine, "segments": kept[0], "bytes": kept[1],
             "address": kept[2]}
            for (space, number, engine), kept in sorted(found.items())
        ],
        "missing": list(core.missing),
        "bytes": core.size,
    }  # fmt: skip


def parts_lines(name: str, data: dict[str, Any]) -> list[str]:
    """Return `core ls` for people."""
    lines = table(("note", "bytes"), [[note["name"], note["bytes"]] for note in data["notes"]])
    rows = [
        [m["space"], f"{'' if m['space'] == 'HBM' else 'nc'}{m['core']}", m["engine"] or "-", m["segments"], m["bytes"],
         hex(m["address"])]
        for m in data["memories"]
    ]  # fmt: skip
    lines += ["", *table(("memory", "core", "engine", "segments", "bytes", "first address"), rows)]
    total = f"{count(len(data['notes']), 'note')}, {count(sum(m['segments'] for m in data['memories']), 'segment')}"
    return [*lines, "", f"{name}: {total}, {data['bytes']:,} bytes"]


def chosen_engines(core: Core, number: int | None, engine: str | None) -> list[Any]:
    """Return the states of the engines that options choose; NotFoundError where the dump has none such."""
    wanted = None if engine is None else engine_name(engine)
    found = [e for e in core.engines if number in (None, e.core) and wanted in (None, e.engine)]
    if not found:
        which = f"nc{number} " if number is not None else ""
        raise NotFoundError(f"the dump has no {which}{wanted or 'engines'}".replace("  ", " "))
    return found


def engines(core: Core, number: int | None, engine: str | None) -> dict[str, Any]:
    """Return the engines."""
    return {"engines": [plain(state) for state in chosen_engines(core, number, engine)]}


def engine_lines(data: dict[str, Any], registers: bool) -> list[str]:
    """Return `core engines` for people."""
    rows, more = [], []
    for e in data["engines"]:
        waiting = e["waiting"]
        waits = "-" if waiting is None else f"{waiting['condition']}, is {waiting['present']}"
        rows.append([f"nc{e['core']}", e["engine"], e["state"], e["pc"], e["completed"], e["words"], waits,
                     place(e["source"]) or "-", _cut(e["text"] or "-")])  # fmt: skip
        if registers:
            set_ones = [(n, value) for n, value in enumerate(e["registers"]) if value]
            more += [f"nc{e['core']} {e['engine']}: " + ("no register is set" if not set_ones else "")]
            more += [f"  r{n:<3} {value:#010x}  {value}" for n, value in set_ones]
    heads = ("core", "engine", "state", "pc", "done", "of", "waits for", "line", "word")
    return [*table(heads, rows), *(["", *more] if more else [])]


def _cut(text: str) -> str:
    return text if len(text) <= _WORD else text[: _WORD - 1] + "…"


def counters(core: Core, everything: bool) -> dict[str, Any]:
    """Return semaphores and events that are not zero or that somebody waits for, or all."""
    waiters: dict[tuple[int, str, int], list[str]] = {}
    for state in core.engines:
        if state.waiting is not None:
            key = state.waiting.core, state.waiting.kind, state.waiting.number
            waiters.setdefault(key, []).append(f"nc{state.core} {state.engine} pc {state.pc} {state.waiting.condition}")
    rows = []
    for bank in core.counters:
        for kind, values in (("semaphore", bank.semaphores), ("event", bank.events)):
            for number, value in enumerate(values):
                who = waiters.get((bank.core, kind, number), [])
                if everything or value or who:
                    rows.append({"core": bank.core, "kind": kind, "number": number, "value": value, "waiters": who})
    return {"counters": rows}


def counter_lines(data: dict[str, Any]) -> list[str]:
    """Return `core semaphores` for people."""
    rows = [
        [f"nc{c['core']}", f"{'S' if c['kind'] == 'semaphore' else 'E'}[{c['number']}]", c["value"],
         "; ".join(c["waiters"]) or "-"]
        for c in data["counters"]
    ]  # fmt: skip
    return table(("core", "which", "value", "who waits"), rows) if rows else ["all are zero, and nobody waits"]


def queues(core: Core) -> dict[str, Any]:
    """Return the DMA queues."""
    return {"queues": [plain(queue) for queue in core.queues]}


def queue_lines(data: dict[str, Any]) -> list[str]:
    """Return `core queues` for people."""
    rows = [
        [f"nc{q['core']}", q["name"], q["engine"], q["kind"], q["ring"], q["rings"], _numbers(q["semaphores"]),
         q["completed"], q["pending"], bytes_text(q["nbytes"])]
        for q in data["queues"]
    ]  # fmt: skip
    heads = ("core", "queue", "engine", "kind", "ring", "engines", "semaphores", "done", "pending", "moved")
    lines = table(heads, rows) if rows else ["no DMA queues"]
    for q in data["queues"]:
        for t in q["transfers"]:
            state = "moving" if t["moving"] else "queued"
            signal = "" if t["semaphore"] is None else f", then S[{t['semaphore']}] += {t['increment']}"
            lines.append(f"nc{q['core']} {q['name']}#{t['number']} {state}: {t['text']}{signal}; "
                         f"triggered by {t['engine']} pc {t['pc']} at {duration(t['triggered_ps'])}")  # fmt: skip
        if q["pending"] > len(q["transfers"]):
            lines.append(f"nc{q['core']} {q['name']}: and {q['pending'] - len(q['transfers'])} more")
    return lines


def _numbers(values: Sequence[int]) -> str:
    """Return numbers with runs drawn together: 8-23."""
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][1] + 1:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs) or "-"


def rings(core: Core) -> dict[str, Any]:
    """Return the rings."""
    return {"rings": [plain(ring) for ring in core.dma]}


def ring_lines(data: dict[str, Any]) -> list[str]:
    """Return `core dma` for people; neighbouring engines with the same to tell share a line."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for r in data["rings"]:
        first = r["descriptors"][0] if r["descriptors"] else None
        following = "-" if first is None else _descriptor(first)
        key = (f"nc{r['core']}", r["ring"], r["queue"], r["head"], r["tail"], r["outstanding"], following)
        groups.setdefault(key, []).append(r["engine"])
    rows = [[key[0], _numbers(engines), *key[1:]] for key, engines in groups.items()]
    heads = ("core", "DMA engines", "ring", "queue", "head", "tail", "outstanding", "next descriptor")
    return table(heads, rows) if rows else ["no ring was used"]


def _descriptor(d: dict[str, Any]) -> str:
    if d["kind"] == "semaphore":
        return f"#{d['transfer']} raises S[{d['destination']}]"
    return f"#{d['transfer']} {d['nbytes']} bytes {d['source']:#x} -> {d['destination']:#x}"
