"""Going back: what every completion overwrote, and checkpoints to run again from."""

from __future__ import annotations

from emulator.journal.journal import BUDGET, Entry, Journal

__all__ = ["BUDGET", "Entry", "Journal"]
