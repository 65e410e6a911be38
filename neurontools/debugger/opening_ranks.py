"""What `neurontools debug --ranks` opens: one program on all ranks, one for each, or a launch of all their scripts."""

from __future__ import annotations

from pathlib import Path

from emulator.runtime.ranks import Ranks
from neurontools.debugger.ranks import RankSessions
from neurontools.program.configuration import RunConfiguration
from neurontools.running.ranked_opening import open_ranked

__all__ = ["open_ranks"]


def open_ranks(
    file: Path, configuration: RunConfiguration, where: Ranks, *, journal_bytes: int, aside: bool = False
) -> RankSessions:
    """Return the sessions of all ranks at the beginning of what a file holds; errors as of `open_program`."""
    found = open_ranked(file, configuration, where, aside=aside)
    ranks = RankSessions(found.neffs, found.inputs, where, found.settings, journal_bytes)
    for session in ranks.sessions.values():
        session.folders += [folder for folder in found.folders if folder not in session.folders]
        if configuration.checks:
            session.enable_checks(*configuration.checks)
    ranks.session.notes += found.notes
    return ranks
