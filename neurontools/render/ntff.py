"""Profile captures as lines."""

from __future__ import annotations

from typing import Any

from neurontools.render.table import bold, bytes_text, duration, table

__all__ = ["disasm_lines", "info_lines", "layout_lines", "timeline_lines"]


def info_lines(name: str, data: dict[str, Any]) -> list[str]:
    """Return `ntff info` for people."""
    found = [
        bold(f"{name}: profile capture, version {data['version']}"),
        f"of        {data['name']} (uuid {data['uuid']})",
        f"on        {data['instance_type'] or 'unknown instance'} ({data['target']})",
        f"runtime   {data['runtime'] or 'unknown'}",
        *(f"{name:<10}{data[key]}" for name, key in (("driver", "driver"), ("coll.", "collectives")) if data[key]),
    ]
    for core in data["cores"]:
        found += ["", bold(f"core {core['core']}, {core['name']}")]
        found += table(
            ("engine", "loaded at", "words", "compiler's", "inserted", "left out"),
            [(one["engine"], f"{one['address']:#x}", one["words"], one["compiler_words"], one["inserted"],
              one["deleted"]) for one in core["engines"]],
        )  # fmt: skip
        memory = sorted((one for one in core["memory"] if one["bytes"]), key=lambda one: -one["bytes"])
        if memory:
            found += ["", *table(("memory", "bytes"), [(one["category"], one["bytes"]) for one in memory])]
    if data["rings"]:
        found += ["", *table(("core", "queue", "ring", "DMA engines"),
                             [(one["core"], one["queue"], one["ring"], _ranges(one["dma_engines"]))
                              for one in data["rings"]])]  # fmt: skip
    if data["sections"]:
        found += ["", *table(("core", "records of", "number"),
                             [(one["core"], one["kind"], one["records"]) for one in data["sections"]])]  # fmt: skip
    return found


def _ranges(numbers: list[int]) -> str:
    """Return numbers as "64-79, 90"."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)


def layout_lines(data: dict[str, Any]) -> list[str]:
    """Return what is known of trace records."""
    rows = [(one["section"], one["place"], one["meaning"], one["provenance"]) for one in data["established"]]
    return [*table(("records", "bytes", "meaning", "known"), rows), "", f"from {data['established'][0]['cite']}"]


def disasm_lines(data: dict[str, Any]) -> list[str]:
    """Return `ntff disasm` for people."""
    found: list[str] = []
    for each in data["engines"]:
        found += ["", bold(f"core {each['core']} {each['engine']} ({each['name']})")]
        before = None
        for row in each["rows"]:
            if row["source"] is not None and row["source"] != before:
                found.append(f"{'':26}# {row['source']}")
            before = row["source"]
            compiler = "" if row["compiler_pc"] is None else str(row["compiler_pc"])
            took = "" if row["duration_ps"] is None else duration(row["duration_ps"])
            found.append(f"{row['pc']:>6} {compiler:>6} {took:>11}  {row['text']}".rstrip())
    return found[1:]


def timeline_lines(data: dict[str, Any]) -> list[str]:
    """Return `ntff timeline` for people."""
    found = [bold(f"{data['name']} on {data['target']}: {_time(data['program_ns'])} (captured)")]
    for core in data["cores"]:
        found += ["", bold(f"core {core['core']}, {core['name']}: {_time(core['program_ns'])}")]
        found += table(("engine", "words", "active", "active %"),
                       [(one["engine"], one["words"], _time(one["active_ns"]), f"{one['active_percent']:.1f}")
                        for one in core["engines"]])  # fmt: skip
        if core["queues"]:
            found += ["", *table(("queue", "packets", "moved", "active"),
                                 [(one["queue"], one["packets"], bytes_text(one["bytes"]), _time(one["active_ns"]))
                                  for one in core["queues"]])]  # fmt: skip
    if data["emulated"] is not None:
        found += ["", *_side_by_side(data["emulated"])]
    return found


def _side_by_side(data: dict[str, Any]) -> list[str]:
    rows = [("program", "", _time(data["captured_ns"]), _time(data["emulated_ns"]), _ratio(data["ratio"]))]
    rows += [(one["core"], one["engine"], _time(one["captured_ns"]), _time(one["emulated_ns"]), _ratio(one["ratio"]))
             for one in data["engines"] if one["captured_ns"] or one["emulated_ns"]]  # fmt: skip
    title = bold("beside the emulator") + ("" if data["outcome"] == "finished" else f", which ended: {data['outcome']}")
    return [title, *table(("core", "engine", "captured", "emulated", "ratio"), rows)]


def _time(nanoseconds: float) -> str:
    return duration(round(nanoseconds * 1000))


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
