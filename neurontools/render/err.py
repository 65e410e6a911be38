"""Errors explained, as plain data and as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from formats.nrt.facts import Fact
from formats.nrt.infodump import Infodump
from formats.nrt.log import parse_line
from formats.nrt.lookup import Mention
from formats.nrt.story import Story
from neurontools.render.table import bold

__all__ = ["code", "fact", "infodump", "line", "lines", "log"]

_FAMILIES = {
    "status": "status of the Neuron runtime",
    "driver": "error family that the Neuron driver counts",
    "hardware": "hardware error in the kernel log",
    "message": "message of runtime, driver or collectives",
    "compiler": "error of the Neuron Graph Compiler",
}


def fact(item: Fact) -> dict[str, Any]:
    """Return what is known of an error as plain data."""
    return {
        **item._asdict(),
        "code": int(item.code) if item.code.isdecimal() else item.code or None,
        "causes": list(item.causes),
        "next_steps": list(item.next_steps),
        "counter": item.counter or None,
        "command": item.command or None,
    }


def infodump(item: Infodump) -> dict[str, Any]:
    """Return an information block as plain data."""
    return {
        "line": item.line,
        "time": None if item.time is None else item.time.isoformat(),
        "pid": item.pid,
        "status": item.status,
        "call": item.call,
        "fields": dict(item.fields),
        "other": dict(item.other),
        "environment": dict(item.environment),
        "whole": item.whole,
    }


def code(item: Fact) -> dict[str, Any]:
    """Return the answer to a code or a name."""
    return {"kind": "code", "errors": [{**fact(item), "values": {}}], "log": None, "infodumps": []}


def line(text: str, found: Iterable[Mention]) -> dict[str, Any]:
    """Return the answer to one line of a log."""
    parsed = parse_line(text)
    fields = None
    if parsed is not None:
        fields = {**parsed._asdict(), "time": parsed.time.isoformat()}
    errors = [{**fact(one.fact), "values": dict(one.values)} for one in found]
    return {"kind": "line", "errors": errors, "log": None, "line": fields, "infodumps": []}


def log(story: Story) -> dict[str, Any]:
    """Return the answer to a log; the error that came first is the first one."""
    first = story.first
    events = sorted(story.events, key=lambda event: (event is not first, event.line))
    return {
        "kind": "log",
        "errors": [
            {
                **fact(event.fact),
                "values": dict(event.values),
                "line": event.line,
                "time": None if event.time is None else event.time.isoformat(),
                "pid": event.pid,
                "count": event.count,
                "text": event.text,
            }
            for event in events
        ],
        "log": {
            "lines": story.lines,
            "recognised": story.recognised,
            "processes": sorted(story.processes),
            "first_error": None if story.first_error is None else story.first_error.isoformat(),
        },
        "infodumps": [infodump(block) for block in story.blocks],
    }


def lines(result: dict[str, Any]) -> Iterator[str]:
    """Return the text of an answer."""
    if result["kind"] == "log":
        yield from _log_lines(result)
        return
    for number, item in enumerate(result["errors"]):
        if number:
            yield ""
        yield from _fact_lines(item)


def _log_lines(result: dict[str, Any]) -> Iterator[str]:
    about = result["log"]
    who = ", ".join(map(str, about["processes"][:8])) or "none"
    yield f"{about['lines']:,} lines, {about['recognised']:,} of the runtime; processes: {who}"
    if not result["errors"]:
        yield "no error that is known"
    for number, item in enumerate(result["errors"]):
        times = f", {item['count']} times" if item["count"] > 1 else ""
        process = f", process {item['pid']}" if item["pid"] is not None else ""
        yield ""
        yield f"{'first: ' if not number and item['fatal'] else ''}line {item['line']}{process}{times}: {item['text']}"
        yield from ("  " + text for text in _fact_lines(item))
    for block in result["infodumps"]:
        yield ""
        yield from _block_lines(block)


def _fact_lines(item: dict[str, Any]) -> Iterator[str]:
    known = item["code"]
    yield bold(f"{item['name']} ({known})" if known is not None and str(known) not in item["name"] else item["name"])
    yield f"  is        {_FAMILIES[item['family']]}" + ("" if item["fatal"] else ", no failure")
    yield f"  means     {item['meaning']}"
    for name, value in item["values"].items():
        yield f"  {name[:9].ljust(9)} {value}"
    yield from _listed("cause", item["causes"])
    yield from _listed("next", item["next_steps"])
    if item["counter"]:
        yield f"  counter   {item['counter']} (sysfs)"
    if item["command"]:
        yield f"  dump      {item['command']}"
    yield f"  source    {item['cite']} ({item['provenance']})"


def _listed(head: str, texts: list[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        yield f"  {('' if number else head).ljust(9)} {text}"


def _block_lines(block: dict[str, Any]) -> Iterator[str]:
    yield bold(f"nrt_infodump at line {block['line']}" + ("" if block["whole"] else ", cut off"))
    rows = {**{key.replace("_", " "): value for key, value in block["fields"].items()}, **block["other"]}
    width = max((len(key) for key in rows), default=0)
    yield from (f"  {key.ljust(width)}  {value}" for key, value in rows.items())
    yield from (f"  {key}={value}" for key, value in block["environment"].items())
