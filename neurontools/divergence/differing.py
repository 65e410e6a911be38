"""What `neurontools diff-run` and `neurontools run --against` do, once their arguments are known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from formats.errors import FormatError
from neurontools.command.exits import ExitStatus
from neurontools.command.files import need_file
from neurontools.command.output import Report
from neurontools.divergence.results import GoldenRun, GraphRun, Outcome, RunDifference
from neurontools.program.arrays import load_arrays
from neurontools.program.configuration import RunConfiguration
from neurontools.program.opening import open_program

if TYPE_CHECKING:
    from neurontools.debugger import Session

__all__ = ["Side", "against", "against_graph", "compare"]

_REGISTERED = 2  # what NumPy says of types that ml_dtypes has registered with it

Side = tuple[Path, RunConfiguration]


def _opener(side: Side, out: Report) -> Callable[[], Session]:
    """Return a function that opens fresh sessions; the file is read, and a script run, once."""
    from neurontools.debugger.opening import session_of  # deferred: start-up

    program = open_program(*side, aside=out.as_json)
    out.warn(*(note for note in program.notes if note not in out.warnings))
    return lambda: session_of(program)


def _stop_there(side: Side, number: int) -> str:
    """Return the command that stops in the debugger right before an event."""
    file, configuration = side
    return configuration.command_line("debug", file, "--cli", "-c", f"goto #{number - 1}" if number else "state")


def compare(one: Side, other: Side, rtol: float, atol: float, out: Report) -> None:
    """Run both sides and report the first result that differs."""
    from neurontools.divergence import view as render  # deferred: start-up
    from neurontools.divergence.lockstep import compare_runs  # deferred: start-up

    found = compare_runs(_opener(one, out), _opener(other, out), rtol, atol)
    first, commands = found.divergence, None
    if first is not None and first.other is not None:
        commands = _stop_there(one, first.one.number), _stop_there(other, first.other.number)
    result = out.result = RunDifference(
        found.same, found.compared, found.unmatched, cast(tuple[Outcome, ...], found.outcomes), found.stops,
        found.alignments.streams, found.alignments.moved, first, found.outputs, found.missing, commands,
    )  # fmt: skip
    if any(each.how == "line" for each in found.alignments.streams):
        from neurontools.divergence.graph_run import compare_operations  # deferred: start-up

        operations = compare_operations(_opener(one, out)(), _opener(other, out)(), rtol, atol)
        result = out.result = result._replace(operations=operations)
    out.lines = lambda: render.comparison_lines(result, (str(one[0]), str(other[0])))
    out.status = ExitStatus.OK if found.same else ExitStatus.FINDING


def against(file: Path, configuration: RunConfiguration, golden: Path, rtol: float, atol: float,
            out: Report) -> None:  # fmt: skip
    """Run a file and report the first result that is not what an .npz says."""
    from neurontools.divergence import view as render  # deferred: start-up
    from neurontools.divergence.golden import compare_golden  # deferred: start-up

    arrays = load_arrays(need_file(golden))
    if not arrays:
        raise FormatError("holds no arrays", path=str(golden), expected="arrays by tensor or tile name")
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf" and array.dtype.isbuiltin != _REGISTERED:
            raise FormatError("array is not of real numbers", path=str(golden), field=name, got=str(array.dtype))
    found = compare_golden(_opener((file, configuration), out), arrays, rtol, atol)
    for name in found.unknown:
        out.warn(f"{golden}: {name!r} is no tensor or tile of the program; it was not compared")
    command = None if found.divergence is None else _stop_there((file, configuration), found.divergence.one.number)
    result = out.result = GoldenRun(found.same, cast(Outcome, found.outcome), found.rows, found.unknown,
                                    found.divergence, command)  # fmt: skip
    out.lines = lambda: render.golden_lines(result, str(golden))
    if not found.same:
        out.status = ExitStatus.FAULT if found.outcome in ("fault", "hang") else ExitStatus.FINDING


def against_graph(file: Path, configuration: RunConfiguration, chosen: tuple[float, float] | None,
                  out: Report) -> None:  # fmt: skip
    """Run a compiled graph and report the first operation that the reference interpreter computes otherwise."""
    from neurontools.divergence import view as render  # deferred: start-up
    from neurontools.divergence.graph_run import compare_graph  # deferred: start-up

    found: GraphRun = compare_graph(_opener((file, configuration), out)(), chosen)
    if found.first is not None and found.first.words:
        name = found.first.name.rpartition("/")[2]
        stop = configuration.command_line("debug", file, "--cli", "-c", f"break %{name}; continue")
        found = found._replace(command=stop)
    out.result = found
    out.lines = lambda: render.graph_lines(found)
    if not found.same:
        out.status = ExitStatus.FAULT if found.outcome in ("fault", "hang") else ExitStatus.FINDING
