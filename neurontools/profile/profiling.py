"""What `neurontools profile` does, once its arguments are known."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.diagnosis.causes import Reason
from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.neff.fields import Fields, load
from neurontools.command.exits import ExitStatus
from neurontools.command.files import need_file, read_text
from neurontools.command.output import Report, folder_whole, write_whole
from neurontools.command.results import plain
from neurontools.profile.compare import deltas
from neurontools.profile.results import Advice, Comparison, LineRow, Profile, WhatIf
from neurontools.program.configuration import USUAL, RunConfiguration
from neurontools.program.interruption import interruptible
from neurontools.program.kinds import fitting

if TYPE_CHECKING:
    from emulator.device import Device
    from neurontools.profile.rows import Timeline
    from neurontools.program.opening import Program

__all__ = ["FORMATS", "RECORDED", "Wanted", "judge", "line_row", "profile", "warn_unfinished"]

RECORDED = 5_000_000  # completions that a profile records where nobody chose a budget: about half a gigabyte
_HOW: dict[str, str] = {
    Reason.INTERRUPTED: "was interrupted",
    **dict.fromkeys((Reason.INSTRUCTION_LIMIT, Reason.TIME_LIMIT, Reason.HOST_TIME_LIMIT), "was stopped"),
}
FORMATS = ("text", "json", "perfetto", "chrome", "csv", "parquet")


class Wanted(NamedTuple):
    """The arguments of one `neurontools profile`."""

    file: Path
    configuration: RunConfiguration = USUAL
    form: str = "text"
    output: Path | None = None
    against: Path | None = None
    what_if: str | None = None
    advice: bool = True
    top: int = 10


def profile(wanted: Wanted, out: Report) -> None:
    """Run a program, and put its profile into the report or into a file."""
    from emulator.timeline.measure import measure  # deferred: start-up
    from neurontools.profile import view as render  # deferred: start-up
    from neurontools.profile.rows import Timeline  # deferred: start-up
    from neurontools.profile.summary import summarise  # deferred: start-up
    from neurontools.text.progress import progress  # deferred: start-up

    program = _opened(wanted.file, wanted.configuration, out, keeps_orders=wanted.advice)
    with progress(program.name) as tick:
        measured = measure(
            program.neff,
            program.inputs,
            memory=True,
            progress=tick,
            settings=program.configuration.settings(),
            guard=interruptible,
        )
    out.status = judge(measured.device, out)
    timeline = Timeline(measured)
    found = summarise(timeline, program.name)
    result = out.result = found._replace(
        advice=_advice(wanted, program, timeline),
        what_if=_what_if(wanted, program, found),
        against=_against(wanted, found, out),
    )
    if wanted.form in ("text", "json"):
        if wanted.output is not None:
            whole = [json.dumps(plain(result), indent=1)] if wanted.form == "json" else render.lines(result, wanted.top)
            with write_whole(wanted.output) as beside:
                beside.write_text("\n".join(whole) + "\n", encoding="utf-8")
            out.lines = lambda: [f"wrote {wanted.output}"]
        else:
            out.lines = lambda: render.lines(result, wanted.top)
        return
    _export(wanted, timeline, result, out)


def _opened(file: Path, configuration: RunConfiguration, out: Report, *, keeps_orders: bool = False) -> Program:
    """Return the program to measure, in the schedule of the time model however a recorded run went."""
    from neurontools.program.opening import open_program  # deferred: start-up

    program = open_program(file, configuration, aside=out.as_json, keeps_orders=keeps_orders)
    out.warn(*program.notes)
    recorded = program.configuration.bounded(always=True, steps=RECORDED)
    program = program._replace(configuration=recorded)
    if recorded.timing and recorded.seed is None:
        return program
    how = "a shaken schedule" if recorded.timing else "--no-timing"
    out.warn(f"{file} was recorded with {how}; it is profiled in the schedule of the time model")
    return program._replace(configuration=replace(recorded, timing=True, seed=None))


def judge(device: Device, out: Report, who: str = "", *, quiet: bool = False) -> ExitStatus:
    """Say what stopped a run that did not finish, unless that was said; return its exit status."""
    if device.fault is not None:
        out.warn(f"{who}the run faulted: {' '.join(str(device.fault).split())}")
        return ExitStatus.UNSUPPORTED if device.fault.kind == "unsupported" else ExitStatus.FAULT
    if device.hang is None:
        return ExitStatus.OK
    if not quiet:
        out.warn(f"{who}the run {_HOW.get(device.hang.reason, 'hung')}: {device.hang.text()}")
    if device.hang.reason == Reason.INSTRUCTION_LIMIT and device.max_steps == RECORDED:
        out.warn(f"a profile records {RECORDED:,} completions; --max-instructions N takes more, 0 all")
    return ExitStatus.INTERRUPTED if device.hang.reason == Reason.INTERRUPTED else ExitStatus.FAULT


def _advice(wanted: Wanted, program: Program, timeline: Timeline) -> tuple[Advice, ...] | None:
    if not wanted.advice or timeline.device.outcome != "finished":
        return None
    from neurontools.profile.advice import advise  # deferred: start-up

    return advise(program, timeline)


def _what_if(wanted: Wanted, program: Program, result: Profile) -> WhatIf | None:
    if wanted.what_if is None:
        return None
    from emulator.arch import arch_of  # deferred: start-up
    from emulator.timeline.measure import data_decides, measure  # deferred: start-up
    from neurontools.profile.rows import Timeline  # deferred: start-up
    from neurontools.profile.summary import lines, ns  # deferred: start-up
    from neurontools.profile.what_if import parse_change  # deferred: start-up

    change = parse_change(wanted.what_if, arch_of(program.neff.target))
    changed = measure(
        program.neff, program.inputs, change, data=data_decides(program.neff), settings=program.configuration.settings()
    )
    return WhatIf(
        wanted.what_if, ns(changed.end_ps), result.total_time_ns, deltas(lines(Timeline(changed)), result.lines)
    )


def _against(wanted: Wanted, result: Profile, out: Report) -> Comparison | None:
    if wanted.against is None:
        return None

    name, total, lines = _other(wanted, wanted.against, out)
    return Comparison(name, result.total_time_ns, total, deltas(result.lines, lines))


def _other(wanted: Wanted, path: Path, out: Report) -> tuple[str, float, Sequence[LineRow]]:
    """Return name, time and lines of the other run: a profile saved as JSON, or a program to run."""
    if path.suffix == ".json":
        return _saved(path, out)
    from emulator.timeline.measure import measure  # deferred: start-up
    from neurontools.profile.rows import Timeline  # deferred: start-up
    from neurontools.profile.summary import lines, ns  # deferred: start-up

    shared = fitting(path, replace(wanted.configuration, launch=1))
    other = _opened(path, shared, out)
    measured = measure(other.neff, other.inputs, settings=other.configuration.settings())
    # Half a run is shorter than a whole one: a comparison with it must not look like a gain.
    stopped = judge(measured.device, out, f"{other.name}: ")
    out.status = out.status or stopped
    return other.name, ns(measured.end_ps), lines(Timeline(measured))


def _saved(path: Path, out: Report) -> tuple[str, float, Sequence[LineRow]]:
    try:
        found = load(read_text(need_file(path)).encode(), "profile")
        found = found.object("result") if "result" in found else found
        if "ranks" in found:
            raise found.fail("ranks", "none: one of several ranks is compared with --ranks")
        warn_unfinished(found, path, out)
        return found.text("name"), found.finite("total_time_ns"), [line_row(one) for one in found.objects("lines")]
    except FormatError as error:
        wrote = "`neurontools profile FILE --json` wrote"
        raise FormatError(f"is no profile that {wrote} ({error})", path=str(path)) from None


def warn_unfinished(saved: Fields, path: Path, out: Report) -> None:
    """Say that a saved profile is of a run that stopped early; FormatError where it says nothing of that."""
    if (outcome := saved.text("outcome")) != "finished":
        out.warn(f"{path} is of a run that did not finish ({outcome}): its times end there")


def line_row(row: Fields) -> LineRow:
    """Return a row of lines of a saved profile; FormatError where it is none."""
    return LineRow(
        row.text("line"), row.optional_text("file"), row.finite("critical_ns"), row.finite("critical_percent"),
        row.finite("busy_ns"), row.finite("wait_ns"), row.finite("dma_ns"), row.counted("dma_bytes"),
        row.counted("instruction_count"), row.counted("transfer_count"), row.text("what"),
    )  # fmt: skip


def _export(wanted: Wanted, timeline: Timeline, result: Profile, out: Report) -> None:
    from neurontools.profile import export  # deferred: start-up
    from neurontools.profile.export.tables import write_folder  # deferred: start-up

    place = wanted.output
    if place is None:
        text: Iterable[str] = export.chrome_lines(timeline) if wanted.form == "chrome" else export.csv_lines(timeline)
        out.lines = lambda: text
        return
    if wanted.form == "parquet" or (wanted.form == "csv" and not place.suffix):
        with folder_whole(place) as folder:
            made = write_folder(wanted.form, timeline, result, folder)
        out.lines = lambda: [f"wrote {', '.join(made)} to {place}"]
        return
    with write_whole(place) as beside:
        export.write(wanted.form, timeline, beside)
    out.lines = lambda: [f"wrote {place}"]
