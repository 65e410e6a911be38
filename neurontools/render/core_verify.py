"""The result of verifying a core dump."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neurontools.render.core import plain
from neurontools.render.table import count

if TYPE_CHECKING:
    from neurontools.core_verify import Verified

__all__ = ["data", "lines"]


def data(found: Verified) -> dict[str, Any]:
    """Return the result for JSON."""
    return {
        "ok": not found.problems,
        "problems": list(found.problems),
        "engines": plain(found.engines),
        "notes": found.notes,
        "segments": found.segments,
    }


def lines(name: str, found: Verified) -> list[str]:
    """Return the result for people."""
    head = f"{name}: {count(found.notes, 'note')}, {count(found.segments, 'segment')}"
    compared = sum(each.compared for each in found.engines)
    if found.engines:
        head += f", {count(compared, 'word')} compared with the NEFF"
    result = [f"{head}: {'whole' if not found.problems else count(len(found.problems), 'problem')}"]
    for problem in found.problems:
        result.append(f"  {problem}")
    for each in found.engines:
        if each.different and each.first_pc is not None:
            result += [f"  nc{each.core} {each.engine} pc {each.first_pc}", f"    in the dump  {each.in_dump}",
                       f"    in the file  {each.in_file}"]  # fmt: skip
    return result
