"""The panes, their places on a large terminal, and their tabs on a small one."""

from __future__ import annotations

__all__ = ["LEFT", "NARROW", "RIGHT", "TABS"]

# Panes of the left and the right column from the top: id, module, class.
LEFT = (
    ("engines", "neurontools.tui.panes", "EnginesPane"),
    ("disassembly", "neurontools.tui.panes", "DisassemblyPane"),
    ("queues", "neurontools.tui.panes", "QueuesPane"),
    ("semaphores", "neurontools.tui.panes", "SemaphoresPane"),
    ("timeline", "neurontools.tui.timeline", "Timeline"),
    ("findings", "neurontools.tui.panes", "FindingsPane"),
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
    "Run": ("engines", "queues", "semaphores"),
    "Code": ("source", "disassembly"),
    "SBUF": ("sbuf", "psum"),
    "Tensors": ("hbm", "tile"),
    "Time": ("timeline",),
    "Log": ("findings", "log"),
}
NARROW = 140, 42  # columns and lines that all panes together need
