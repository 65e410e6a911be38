"""What `neurontools profile run --ranks` does, once its arguments are known."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from neurontools.command.exits import ExitStatus
from neurontools.command.output import Report, folder_whole, write_whole
from neurontools.command.results import plain
from neurontools.profile.compare import deltas
from neurontools.profile.profiling import RECORDED, Wanted, judge
from neurontools.profile.ranked.compare import Other, compared, saved_ranks
from neurontools.profile.ranked.results import RanksComparison, RanksProfile
from neurontools.profile.results import WhatIf
from neurontools.program.configuration import RunConfiguration
from neurontools.program.interruption import interruptible
from neurontools.program.kinds import fitting

if TYPE_CHECKING:
    from pathlib import Path

    from emulator.runtime.ranks import Ranks
    from neurontools.profile.ranked.summary import RankTimelines
    from neurontools.running.ranked_opening import RankedPrograms

__all__ = ["profile_ranks"]

_WORST = (ExitStatus.INTERRUPTED, ExitStatus.UNSUPPORTED, ExitStatus.FAULT, ExitStatus.OK)


def profile_ranks(wanted: Wanted, where: Ranks, rank: int | None, out: Report) -> None:
    """Run a program on several ranks, and put its profile into the report or into a file.

    `rank` is whose engines are shown, None the slowest's; NotFoundError where it runs no program.
    """
    from emulator.timeline.measure_ranks import measure_ranks  # deferred: start-up
    from formats.errors import NotFoundError  # deferred: start-up
    from neurontools.profile.ranked import view as render  # deferred: start-up
    from neurontools.profile.ranked.summary import RankTimelines, summarise_ranks  # deferred: start-up
    from neurontools.text.progress import doing  # deferred: start-up

    programs = _opened(wanted.file, wanted.configuration, where, out)
    if rank is not None and not (rank < where.ranks and programs.neffs[rank] is not None):
        raise NotFoundError(f"no rank {rank} that runs a program; there are {where.ranks} ranks from 0")
    with doing(f"{programs.name} on {where.ranks} ranks"):
        measured = measure_ranks(programs.neffs, programs.inputs, where, memory=True, settings=programs.settings,
                                 guard=interruptible)  # fmt: skip
        timelines = RankTimelines.of(measured)
        found = summarise_ranks(timelines, programs.name, rank)
    out.status = _judge(timelines, out)
    with doing("other runs"):
        result = out.result = found._replace(
            what_if=_what_if(wanted, where, programs, found), against=_against(wanted, where, found, out)
        )
    if wanted.form not in ("text", "json"):
        _export(wanted, timelines, result, out)
    elif wanted.output is None:
        out.lines = lambda: render.lines(result, wanted.top)
    else:
        whole = [json.dumps(plain(result), indent=1)] if wanted.form == "json" else render.lines(result, wanted.top)
        with write_whole(wanted.output) as beside:
            beside.write_text("\n".join(whole) + "\n", encoding="utf-8")
        out.lines = lambda: [f"wrote {wanted.output}"]


def _opened(file: Path, configuration: RunConfiguration, where: Ranks, out: Report) -> RankedPrograms:
    from neurontools.running.ranked_opening import open_ranked  # deferred: start-up

    found = open_ranked(file, configuration.bounded(always=True, steps=RECORDED), where, aside=out.as_json)
    out.warn(*found.notes)
    return found


def _judge(timelines: RankTimelines, out: Report, who: str = "") -> ExitStatus:
    """Say what stopped ranks that did not finish, once of all who waited for others; the profile ends there."""
    hang = timelines.result.hang
    statuses = {ExitStatus.OK}
    for rank, timeline in timelines.ranks.items():
        device = timeline.device
        said = hang is not None and device.fault is None
        statuses.add(judge(device, out, f"{who}rank {rank}: ", quiet=said))
    if hang is not None:
        out.warn(*(f"{who}{line}" for line in hang.text().splitlines()))
    return next(status for status in _WORST if status in statuses)


def _what_if(wanted: Wanted, where: Ranks, programs: RankedPrograms, result: RanksProfile) -> WhatIf | None:
    if wanted.what_if is None:
        return None
    from emulator.arch import arch_of  # deferred: start-up
    from emulator.timeline.measure_ranks import measure_ranks  # deferred: start-up
    from neurontools.profile.ranked.summary import RankTimelines, rank_lines  # deferred: start-up
    from neurontools.profile.summary import ns  # deferred: start-up
    from neurontools.profile.what_if import parse_change  # deferred: start-up

    change = parse_change(wanted.what_if, arch_of(result.target))
    changed = RankTimelines.of(measure_ranks(programs.neffs, programs.inputs, where, change,
                                             settings=programs.settings))  # fmt: skip
    return WhatIf(wanted.what_if, ns(changed.end_ps), result.total_time_ns, deltas(rank_lines(changed), result.lines))


def _against(wanted: Wanted, where: Ranks, result: RanksProfile, out: Report) -> RanksComparison | None:
    path = wanted.against
    if path is None:
        return None
    if path.suffix == ".json":
        return compared(Other.of(result), saved_ranks(path, out))
    from emulator.timeline.measure_ranks import measure_ranks  # deferred: start-up
    from neurontools.profile.ranked.summary import RankTimelines, summarise_ranks  # deferred: start-up

    other = _opened(path, fitting(path, replace(wanted.configuration, launch=1)), where, out)
    measured = measure_ranks(other.neffs, other.inputs, where, settings=other.settings)
    timelines = RankTimelines.of(measured)
    stopped = _judge(timelines, out, f"{other.name}: ")
    out.status = out.status or stopped
    return compared(Other.of(result), Other.of(summarise_ranks(timelines, other.name)))


def _export(wanted: Wanted, timelines: RankTimelines, result: RanksProfile, out: Report) -> None:
    from neurontools.profile.ranked import export  # deferred: start-up

    place, form = wanted.output, wanted.form
    if place is None:
        text: Iterable[str] = (
            export.chrome_lines(timelines, result.name) if form == "chrome" else export.csv_lines(timelines)
        )
        out.lines = lambda: text
        return
    if form == "parquet" or (form == "csv" and not place.suffix):
        with folder_whole(place) as folder:
            made = export.write_folder(form, timelines, result, folder)
        out.lines = lambda: [f"wrote {', '.join(made)} to {place}"]
        return
    with write_whole(place) as beside:
        export.write(form, timelines, result.name, beside)
    out.lines = lambda: [f"wrote {place}"]
