"""Bars for the terminal: how a stack is filled, category by category."""

from __future__ import annotations

from collections.abc import Mapping

from formats.nrt.memory import BY_KEY
from neurontools.text.table import bytes_text

__all__ = ["LETTERS", "bar", "legend"]

# One letter a category, so that bars can be read without colours.
LETTERS = {
    "code": "C", "constants": "W", "tensors": "T", "shared_scratchpad": "S", "scratchpad": "P", "runtime": "R",
    "rings_io": "i", "rings_spill": "s", "rings_collectives": "c", "rings_runtime": "r", "collectives": "X",
    "xt_cc": "x", "profiler": "F",
}  # fmt: skip


def bar(values: Mapping[str, int], limit: int, width: int = 60) -> str:
    """Return "[CCWWTTTT....]": a stack of `limit` bytes, every category that is there with one letter at least."""
    there = [(LETTERS[key], nbytes) for key, nbytes in values.items() if nbytes > 0]
    if limit <= 0:
        return "[" + " " * width + "]"
    each = [max(1, round(nbytes * width / limit)) for _, nbytes in there]
    while sum(each) > width and max(each) > 1:  # what was rounded up comes off the longest
        each[each.index(max(each))] -= 1
    text = "".join(letter * number for (letter, _), number in zip(there, each, strict=True))[:width]
    return f"[{text.ljust(width, '.')}]"


def legend(values: Mapping[str, int]) -> str:
    """Return which letter is which category, with its bytes, largest first."""
    there = sorted(((nbytes, key) for key, nbytes in values.items() if nbytes > 0), reverse=True)
    return ", ".join(f"{LETTERS[key]} {BY_KEY[key].label} {bytes_text(nbytes)}" for nbytes, key in there)
