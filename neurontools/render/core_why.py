"""The cause that a core dump tells, for people."""

from __future__ import annotations

from typing import Any

from neurontools.render.core import place
from neurontools.render.table import bold, duration

__all__ = ["lines"]

_SIGNALS = 4


def lines(name: str, data: dict[str, Any]) -> list[str]:
    """Return `core why` for people."""
    status = data["status"]
    found = [bold(f"{name}: {data['headline']}")]
    found.append(f"  status   {status['name']} ({status['code']}), at {duration(data['time_ps'])} of device time")
    fault = data["fault"]
    if fault is not None:
        found += _fault(fault, data["lines"])
    if data["last"]:
        found.append("  before")
        found += [f"    {duration(e['time_ps'])}  nc{e['core']} {e['engine']} pc {e['pc']}  {e['text']}"
                  for e in data["last"]]  # fmt: skip
    for wait in data["waits"]:
        found += _wait(wait)
    found += [f"  still running: {text}" for text in data["running"]]
    for cycle in data["cycles"]:
        found.append("  circle: " + " waits for ".join((*cycle, cycle[0])))
    found += [f"  {f['tool']} {f['severity']}: {f['message']} (nc{f['core']} {f['engine']} pc {f['pc']})"
              for f in data["findings"]]  # fmt: skip
    if not data["waits"] and fault is None and not data["headline"].startswith("a real device"):
        found.append("  nothing faulted, and nobody waits")
    return found


def _fault(fault: dict[str, Any], around: list[dict[str, Any]]) -> list[str]:
    rows = {
        "at": f"nc{fault['core']} {fault['engine']} pc {fault['pc']}",
        "word": fault["text"],
        "line": fault["line"],
        "operand": fault["operand"],
        "tensor": fault["tensor"],
        "range": None if fault["address"] is None
        else f"{fault['space'] or ''} {fault['address'][0]:#x} to {fault['address'][1]:#x}".strip(),
        "limit": fault["expected"],
        "index": fault["got"],
    }  # fmt: skip
    found = []
    for key, value in rows.items():
        if value:
            found.append(f"  {key.ljust(7)}  {value}")
        if key == "line":
            found += [f"    {'>' if each['here'] else ' '} {each['line']:>5}  {each['text']}".rstrip()
                      for each in around]  # fmt: skip
    return found


def _wait(wait: dict[str, Any]) -> list[str]:
    line = place(wait["source"])
    symbol = f"{'E' if wait['kind'] == 'event' else 'S'}[{wait['number']}]"
    found = [
        f"  nc{wait['core']} {wait['engine']} pc {wait['pc']}{f' ({line})' if line else ''}: {wait['text']}",
        f"    waits for {wait['condition']} since {duration(wait['since_ps'])}; {symbol} is {wait['present']}",
        f"    {wait['cause']}: {wait['verdict']}",
    ]
    pending = [signal for signal in wait["signals"] if signal["state"] != "done"]
    for signal in pending[:_SIGNALS]:
        amount = "" if signal["amount"] is None else f"{signal['amount']:+d} from "
        state = f"queued behind pc {signal['behind']}" if signal["state"] == "queued" else signal["state"]
        source = place(signal["source"])
        where = f"nc{signal['core']} {signal['engine']} pc {signal['pc']}{f' ({source})' if source else ''}"
        found.append(f"    {amount}{where}, {state}: {signal['text']}")
    if wait["pending"] > _SIGNALS:
        found.append(f"    and {wait['pending'] - _SIGNALS} more that have not signalled")
    if wait["done"]:
        found.append(f"    {wait['done']} signalled already")
    return found
