"""The prediction of a load for people: the verdict, the checks, the memory."""

from __future__ import annotations

from typing import Any

from neurontools.render.table import bytes_text, table

__all__ = ["load_check_lines"]


def load_check_lines(name: str, found: dict[str, Any]) -> list[str]:
    """Return `neff load-check` for people."""
    machine = found["machine"]
    runtime = machine["runtime"] or "newest"
    lines = [
        f"{name} on {machine['target']}, LNC {machine['lnc']}, runtime {runtime}: {found['status']} ({found['code']})"
    ]
    if found["reason"]:
        lines.append(f"  {found['reason']}")
    rows = [[one["name"], one["outcome"], one["message"], one["provenance"]] for one in found["checks"]]
    lines += ["", *table(["check", "outcome", "what", "known by"], rows)]
    sources = dict.fromkeys(one["cite"] for one in found["checks"] if one["outcome"] != "pass")
    lines += [f"  source: {cite}" for cite in sources]
    if found["memory"]:
        rows = [[one["name"], one["bytes"], one["provenance"]] for one in found["memory"] if one["bytes"]]
        limit = found["memory_limit"]
        lines += ["", *table(["device memory", "bytes", "known by"], rows)]
        of = f" of {bytes_text(limit)}" if limit else ""
        lines.append(f"{bytes_text(found['memory_total'])}{of}, and what the runtime takes for itself")
    return lines
