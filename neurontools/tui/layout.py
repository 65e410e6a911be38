"""The panes, their places on a large terminal, and their tabs on a small one."""

from __future__ import annotations

from collections.abc import Sequence

from formats.named_tuple import NamedTuple

__all__ = ["LEFT", "NARROW", "RIGHT", "TABS", "WITH_RANKS", "Wish", "heights", "panes_of"]

# Panes of the left and the right column from the top: id, module, class.
LEFT = (
    ("findings", "neurontools.tui.panes", "FindingsPane"),
    ("engines", "neurontools.tui.panes", "EnginesPane"),
    ("disassembly", "neurontools.tui.panes", "DisassemblyPane"),
    ("queues", "neurontools.tui.panes", "QueuesPane"),
    ("semaphores", "neurontools.tui.panes", "SemaphoresPane"),
    ("timeline", "neurontools.tui.timeline", "Timeline"),
    ("log", "neurontools.tui.panes", "LogPane"),
)
RIGHT = (
    ("source", "neurontools.tui.panes", "SourcePane"),
    ("sbuf", "neurontools.tui.maps", "SbufMap"),
    ("psum", "neurontools.tui.maps", "PsumMap"),
    ("hbm", "neurontools.tui.maps", "HbmVariables"),
    ("tile", "neurontools.tui.maps", "TileInspector"),
)
TABS: dict[str, tuple[str, ...]] = {
    "Run": ("findings", "engines", "queues", "semaphores"),
    "Code": ("source", "disassembly"),
    "SBUF": ("sbuf", "psum"),
    "Tensors": ("hbm", "tile"),
    "Time": ("timeline",),
    "Log": ("log",),
}
# The left column where several ranks are on the screen.
WITH_RANKS = (LEFT[0], ("ranks", "neurontools.tui.panes", "RanksPane"), *LEFT[1:])
NARROW = 140, 42  # columns and lines that all panes together need


def panes_of(tab: str) -> tuple[str, ...]:
    """Return the panes of a tab, that of the ranks among those of the first."""
    return (*TABS[tab], "ranks") if tab == next(iter(TABS)) else TABS[tab]


class Wish(NamedTuple):
    """How high a pane would be: `lines` below its title, None for as many as there are; or what a person gave it.

    `weight` is its share of what is left, `most` bounds its lines, `given` is its whole height.
    """

    lines: int | None
    weight: float = 1.0
    most: int = 1000
    given: int = 0


_LEAST = 3  # lines of a pane that takes what is left, with its title


def heights(wishes: Sequence[Wish], room: int) -> list[int]:
    """Return the heights of panes one above the other, titles included: they fill the room.

    A pane with nothing to show keeps its title. What a person has given comes first, then what panes ask for, then the
    others share what is left; where there is too little, the highest ones give.
    """
    found = [min(wish.given, room) or (0 if wish.lines is None else min(wish.lines, wish.most) + 1) for wish in wishes]
    flexible = [index for index, wish in enumerate(wishes) if wish.lines is None and not wish.given]
    if not flexible:  # somebody has to take the rest: who has something to show, and most of it
        ends = [index for index, wish in enumerate(wishes) if wish.lines != 0] or [len(wishes) - 1]
        flexible = [max(ends, key=lambda index: (not wishes[index].given, found[index]))] if wishes else []
    for index in flexible:
        found[index] = 0
    # Line by line from the highest: low panes, which say least, keep what they say.
    while sum(found) > room - _LEAST * len(flexible) and max(found, default=0) > 2:
        found[found.index(max(found))] -= 1
    left, weight = max(room - sum(found), 0), sum(wishes[index].weight for index in flexible)
    least = min(_LEAST, left // max(len(flexible), 1))
    left -= least * len(flexible)
    for number, index in enumerate(flexible):
        share = left if number == len(flexible) - 1 else round(left * wishes[index].weight / weight)
        found[index] = least + share
        left, weight = left - share, weight - wishes[index].weight
    return found
