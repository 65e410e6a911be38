"""What `neurontools profile` does, once its arguments are known."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from neurontools.exits import ExitStatus
from neurontools.output import Report, write_whole
from neurontools.profile.program import Program, Request, open_program

if TYPE_CHECKING:
    from neurontools.profile.rows import Timeline

__all__ = ["FORMATS", "Wanted", "profile"]

FORMATS = ("text", "json", "perfetto", "chrome", "csv", "parquet")


class Wanted(NamedTuple):
    """The arguments of one `neurontools profile`."""

    program: Request
    form: str = "text"
    output: Path | None = None
    against: Path | None = None
    what_if: str | None = None
    advice: bool = True
    top: int = 10


def profile(wanted: Wanted, out: Report) -> None:
    """Run a program, and put its profile into the report or into a file."""
    from emulator.timeline.measure import measure
    from neurontools.profile.export.tables import metadata, summary
    from neurontools.profile.rows import Timeline
    from neurontools.profile.summary import summarise
    from neurontools.render import profile as render
    from neurontools.render.progress import progress

    program = open_program(wanted.program)
    if program.made_up:
        out.warn("no --inputs: the program runs on zeros, which changes its time only where data decides its course")
    with progress(program.name) as tick:
        measured = measure(program.neff, program.inputs, memory=True, progress=tick)
    _judge(measured.device, out)
    timeline = Timeline(measured)
    result = summarise(timeline, program.name)
    result["metadata"], result["summary"] = metadata(timeline), summary(timeline, result)
    result["advice"] = _advice(wanted, program, timeline)
    result["what_if"] = _what_if(wanted, program, result)
    result["against"] = _against(wanted, result)
    out.result = result
    if wanted.form in ("text", "json"):
        if wanted.output is not None:
            whole = [json.dumps(result, indent=1)] if wanted.form == "json" else render.lines(result, wanted.top)
            with write_whole(wanted.output) as beside:
                beside.write_text("\n".join(whole) + "\n", encoding="utf-8")
            out.lines = lambda: [f"wrote {wanted.output}"]
        else:
            out.lines = lambda: render.lines(result, wanted.top)
        return
    _export(wanted, timeline, result, out)


def _judge(device: Any, out: Report) -> None:
    """Say what stopped a run that did not finish; the profile ends there."""
    if device.fault is not None:
        out.warn(f"the run faulted: {' '.join(str(device.fault).split())}")
        out.status = ExitStatus.UNSUPPORTED if device.fault.kind == "unsupported" else ExitStatus.FAULT
    elif device.hang is not None:
        out.warn(f"the run hung: {device.hang.text().splitlines()[0]}")
        out.status = ExitStatus.FAULT


def _advice(wanted: Wanted, program: Program, timeline: Timeline) -> list[dict[str, Any]] | None:
    if not wanted.advice or timeline.device.outcome != "finished":
        return None
    from neurontools.profile.advice import advise

    return advise(program, timeline)


def _what_if(wanted: Wanted, program: Program, result: dict[str, Any]) -> dict[str, Any] | None:
    if wanted.what_if is None:
        return None
    from emulator.arch import arch_of
    from emulator.timeline.measure import data_decides, measure
    from neurontools.profile.compare import deltas
    from neurontools.profile.rows import Timeline
    from neurontools.profile.summary import lines, ns
    from neurontools.profile.what_if import parse_change

    change = parse_change(wanted.what_if, arch_of(program.neff.target))
    changed = measure(program.neff, program.inputs, change, data=data_decides(program.neff))
    return {"change": wanted.what_if, "total_time_ns": ns(changed.end_ps), "before_ns": result["total_time_ns"],
            "lines": deltas(lines(Timeline(changed)), result["lines"])}


def _against(wanted: Wanted, result: dict[str, Any]) -> dict[str, Any] | None:
    if wanted.against is None:
        return None
    from neurontools.profile.compare import deltas

    name, total, lines = _other(wanted, wanted.against)
    return {"name": name, "total_time_ns": result["total_time_ns"], "before_ns": total,
            "lines": deltas(result["lines"], lines)}


def _other(wanted: Wanted, path: Path) -> tuple[str, float, list[dict[str, Any]]]:
    """Return name, time and lines of the other run: a profile saved as JSON, or a program to run."""
    if path.suffix == ".json":
        return _saved(path)
    from emulator.timeline.measure import measure
    from neurontools.profile.rows import Timeline
    from neurontools.profile.summary import lines, ns

    other = open_program(wanted.program._replace(file=path, launch=1))
    measured = measure(other.neff, other.inputs)
    return other.name, ns(measured.end_ps), lines(Timeline(measured))


def _saved(path: Path) -> tuple[str, float, list[dict[str, Any]]]:
    from formats.errors import FormatError
    from neurontools.files import need_file, read_text

    try:
        found = json.loads(read_text(need_file(path)))
        found = found.get("result", found)
        return str(found["name"]), float(found["total_time_ns"]), [dict(one) for one in found["lines"]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"is no profile that `neurontools profile --json` wrote ({error})", path=str(path)) from None


def _export(wanted: Wanted, timeline: Timeline, result: dict[str, Any], out: Report) -> None:
    from neurontools.output import folder_whole
    from neurontools.profile import export
    from neurontools.profile.export.tables import write_folder

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
