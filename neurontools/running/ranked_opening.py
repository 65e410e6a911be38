"""What the ranks of a machine run together: one program on all, one for each, or a launch that all scripts come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.runtime.ranks import Ranks, machine_of
from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from formats.neff import Neff, open_neff
from neurontools.program.configuration import RunConfiguration
from neurontools.program.execution import Execution
from neurontools.program.kinds import Kind
from neurontools.program.opening import open_program
from neurontools.program.rank_arrays import inputs_of_ranks
from neurontools.program.ranked_script import Asked
from neurontools.running.ranked import files_of, kind_of, launch_ranks, script_of_ranks

if TYPE_CHECKING:
    from emulator.runtime.ranks import RankedResult
    from emulator.settings import Settings

__all__ = ["RankedPrograms", "open_ranked"]


class RankedPrograms(NamedTuple):
    """A program and its inputs for every rank, None where a rank runs none; `folders` are where sources may lie."""

    name: str
    neffs: Sequence[Neff | None]
    inputs: Sequence[dict[str, Any]]
    folders: tuple[Path, ...]
    notes: tuple[str, ...]
    settings: Settings


class _Come(BaseException):
    """Ends the scripts: all ranks have come to the launch that is wanted."""

    def __init__(self, asked: list[Asked | None]) -> None:
        super().__init__()
        self.asked = asked


def open_ranked(file: Path, configuration: RunConfiguration, where: Ranks, *, aside: bool = False) -> RankedPrograms:
    """Return what all ranks run; errors as of `open_program`."""
    settings = replace(configuration, target=None, lnc=None).bounded().settings()
    if kind_of(file, configuration, where) is Kind.SCRIPT:
        asked = _asked(file, configuration, where, aside)
        neffs = [None if one is None else open_neff(one.neff) for one in asked]
        notes = tuple(f"the script of rank {rank} launches no kernel here: the rank runs nothing"
                      for rank, one in enumerate(asked) if one is None)  # fmt: skip
        name = next(one.name for one in asked if one is not None)
        return RankedPrograms(name, neffs, [{} if one is None else one.inputs for one in asked], (file.parent,), notes,
                              settings)  # fmt: skip
    alone = replace(configuration, inputs="zeros", inputs_from=None, given={})
    files = files_of(file, where)
    programs = [open_program(each, alone) for each in files]
    every = [programs[rank % len(programs)].neff for rank in range(where.ranks)]
    machine_of(every, where)  # before anything is said of inputs that no machine takes
    inputs, remarks = inputs_of_ranks(every, configuration)
    return RankedPrograms(programs[0].name, every, inputs, tuple(each.parent for each in files), tuple(remarks),
                          settings)  # fmt: skip


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
        script_of_ranks(file, configuration, where, together).run(aside=aside)
    except _Come as come:
        return come.asked
    times = f"{count} time{'' if count == 1 else 's'}"
    raise NotFoundError(f"{file}: no launch {configuration.launch}; the ranks launch kernels together {times}")
