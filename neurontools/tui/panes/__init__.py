"""The panes of the debugger's screen; the maps of memory and the timeline have packages of their own."""

from __future__ import annotations

from neurontools.tui.panes.code import DisassemblyPane, SourcePane
from neurontools.tui.panes.engines import EnginesPane
from neurontools.tui.panes.queues import QueuesPane
from neurontools.tui.panes.ranks import RanksPane
from neurontools.tui.panes.reports import FindingsPane, LogPane
from neurontools.tui.panes.semaphores import SemaphoresPane

__all__ = ["DisassemblyPane", "EnginesPane", "FindingsPane", "LogPane", "QueuesPane", "RanksPane", "SemaphoresPane",
           "SourcePane"]  # fmt: skip
