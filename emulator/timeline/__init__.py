"""When everything happened and why then: a recorder of completions, and the critical path through them."""

from __future__ import annotations

from emulator.timeline.cause import Causes, Link
from emulator.timeline.path import CriticalPath, critical_path
from emulator.timeline.recorder import Hold, Owner, Recorder
from emulator.timeline.track import EngineTrack, QueueTrack, Rows, Track

__all__ = [
    "Causes",
    "CriticalPath",
    "EngineTrack",
    "Hold",
    "Link",
    "Owner",
    "QueueTrack",
    "Recorder",
    "Rows",
    "Track",
    "critical_path",
]
