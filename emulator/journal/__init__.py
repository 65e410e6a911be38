"""Going back: what every completion overwrote, and checkpoints to run again from."""

from __future__ import annotations

from emulator.journal.journal import BUDGET, Edit, Entry, Journal

__all__ = ["BUDGET", "Edit", "Entry", "Journal"]
