"""What `neurontools diff-run` and `neurontools run --against` do, once their arguments are known."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from formats.errors import FormatError
from neurontools.exits import ExitStatus
from neurontools.files import need_file
from neurontools.output import Report

if TYPE_CHECKING:
    from emulator.session import Session

__all__ = ["Choice", "against", "compare"]


class Choice(NamedTuple):
    """One side of a comparison: a file and how it is run; `precise` is NKI_PRECISE_FP, None as it is set already."""

    file: Path
    arguments: tuple[str, ...] = ()
    target: str | None = None
    seed: int | None = None
    lnc: int | None = None
    inputs: Path | None = None
    timing: bool = True
    nki: str = "auto"
    precise: str | None = None

    def command(self, number: int) -> str:
        """Return the command that stops in the debugger right before an event."""
        words = ["neurontools", "debug", str(self.file)]
        for option, value in (
            ("--target", self.target), ("--seed", self.seed), ("--lnc", self.lnc), ("--inputs", self.inputs),
        ):  # fmt: skip
            if value is not None:
                words += [option, str(value)]
        words += [] if self.timing else ["--no-timing"]
        words += ["--nki", self.nki] if self.nki != "auto" else []
        words += ["--cli", "-c", f"goto #{number - 1}" if number else "state"]
        words += ["--", *self.arguments] if self.arguments else []
        return (f"NKI_PRECISE_FP={self.precise} " if self.precise is not None else "") + shlex.join(words)


def _opener(choice: Choice, out: Report) -> Callable[[], Session]:
    """Return a function that opens fresh sessions; the file is read, and a script run, once."""
    from emulator.session import Session
    from neurontools import debugging
    from neurontools.running import environment

    request = debugging.Request(
        choice.file, list(choice.arguments), choice.inputs, choice.target, choice.lnc, choice.seed, choice.timing,
        choice.nki, out.as_json, 0,
    )  # fmt: skip
    with environment({} if choice.precise is None else {"NKI_PRECISE_FP": choice.precise}):
        first = debugging.open_session(request)
    out.warn(*(note for note in first.notes if note not in out.warnings))
    inputs = first.inputs

    def open_one() -> Session:
        made = Session(
            first.neff, inputs, target=first.target, seed=choice.seed, timing=choice.timing, journal_bytes=0
        )
        made.folders += first.folders
        return made

    return open_one


def compare(one: Choice, other: Choice, rtol: float, atol: float, out: Report) -> None:
    """Run both sides and report the first result that differs."""
    from emulator.divergence import compare_runs
    from neurontools.render import divergence as render

    found = compare_runs(_opener(one, out), _opener(other, out), rtol, atol)
    commands = None
    if found.divergence is not None and found.divergence.other is not None:
        commands = one.command(found.divergence.one.number), other.command(found.divergence.other.number)
    names = str(one.file), str(other.file)
    out.result = render.comparison(found, commands)
    out.lines = lambda: render.comparison_lines(found, names, commands)
    out.status = ExitStatus.OK if found.same else ExitStatus.FINDING


def against(choice: Choice, golden: Path, rtol: float, atol: float, out: Report) -> None:
    """Run a file and report the first result that is not what an .npz says."""
    from emulator.divergence import compare_golden
    from neurontools.arrays import load_arrays
    from neurontools.render import divergence as render

    arrays = load_arrays(need_file(golden))
    if not arrays:
        raise FormatError("holds no arrays", path=str(golden), expected="arrays by tensor or tile name")
    found = compare_golden(_opener(choice, out), arrays, rtol, atol)
    for name in found.unknown:
        out.warn(f"{golden}: {name!r} is no tensor or tile of the program; it was not compared")
    command = None if found.divergence is None else choice.command(found.divergence.one.number)
    out.result = render.golden(found, command)
    out.lines = lambda: render.golden_lines(found, str(golden), command)
    if not found.same:
        out.status = ExitStatus.FAULT if found.outcome in ("fault", "hang") else ExitStatus.FINDING

