"""What `neurontools debug --ranks` opens: one program on all ranks, one for each, or a launch of all their scripts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.runtime.ranks import Ranks
from formats.errors import NotFoundError
from formats.neff import open_neff
from neurontools.debugger.ranks import RankSessions
from neurontools.program.configuration import RunConfiguration
from neurontools.program.execution import Execution
from neurontools.program.kinds import Kind
from neurontools.program.opening import open_program
from neurontools.program.rank_arrays import inputs_of_ranks
from neurontools.program.ranked_script import Asked, RankedScript
from neurontools.running.ranked import files_of, kind_of, launch_ranks

if TYPE_CHECKING:
    from emulator.runtime.ranks import RankedResult

__all__ = ["open_ranks"]


class _Come(BaseException):
    """Ends the scripts: all ranks have come to the launch that is wanted."""

    def __init__(self, asked: list[Asked | None]) -> None:
        super().__init__()
        self.asked = asked


def open_ranks(
    file: Path, configuration: RunConfiguration, where: Ranks, *, journal_bytes: int, aside: bool = False
) -> RankSessions:
    """Return the sessions of all ranks at the beginning of what a file holds; errors as of `open_program`."""
    settings = replace(configuration, target=None, lnc=None).bounded().settings()
    if kind_of(file, configuration, where) is Kind.SCRIPT:
        asked = _asked(file, configuration, where, aside)
        neffs = [None if one is None else open_neff(one.neff) for one in asked]
        ranks = RankSessions(neffs, [{} if one is None else one.inputs for one in asked], where, settings,
                             journal_bytes)  # fmt: skip
        folders, notes = [file.parent], [
            f"the script of rank {rank} launches no kernel here: the rank runs nothing"
            for rank, one in enumerate(asked) if one is None
        ]  # fmt: skip
    else:
        alone = replace(configuration, inputs="zeros", inputs_from=None, given={})
        files = files_of(file, where)
        programs = [open_program(each, alone) for each in files]
        every = [programs[rank % len(programs)].neff for rank in range(where.ranks)]
        inputs, remarks = inputs_of_ranks(every, configuration)
        ranks = RankSessions(every, inputs, where, settings, journal_bytes)
        folders, notes = [each.parent for each in files], list(remarks)
    for session in ranks.sessions.values():
        session.folders += [folder for folder in folders if folder not in session.folders]
    ranks.session.notes += notes
    return ranks


def _asked(file: Path, configuration: RunConfiguration, where: Ranks, aside: bool) -> list[Asked | None]:
    """Return what the ranks launch together as number `--launch`; those in front of it run."""
    count = 0

    def together(asked: list[Asked | None]) -> tuple[RankedResult, list[Execution]]:
        nonlocal count
        count += 1
        if count == configuration.launch:
            raise _Come(asked)
        return launch_ranks(asked, configuration, where)

    try:
        RankedScript(file, configuration, where.ranks, together).run(aside=aside)
    except _Come as come:
        return come.asked
    times = f"{count} time{'' if count == 1 else 's'}"
    raise NotFoundError(f"{file}: no launch {configuration.launch}; the ranks launch kernels together {times}")
