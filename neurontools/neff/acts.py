"""`neurontools neff acts`: activation functions, their tables, and the errors of these."""

from __future__ import annotations

from collections import Counter
from math import floor, log10
from typing import TYPE_CHECKING, Annotated

import typer

from formats.errors import FormatError, NotFoundError, UnsupportedError
from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json, NeffFile, SubgraphNumber
from neurontools.command.output import report
from neurontools.neff.rows import open_subgraph
from neurontools.text.table import bold, count, table

if TYPE_CHECKING:
    from formats.neff import Subgraph
    from formats.neff.activation import ActivationFunction, ActivationSet

_WIDTH, _HEIGHT = 72, 10
_BARS = " ▁▂▃▄▅▆▇█"

Ends = tuple[float, float]


class FunctionRow(NamedTuple):
    """One function of a set, and the largest errors of its table."""

    func_id: int
    name: str
    pieces: int
    first_bucket: int | None
    words: Annotated[int, "instructions that use the function"]
    range: Annotated[Ends | None, "where the table was compared with the exact function"] = None
    max_absolute: float | None = None
    max_relative: float | None = None
    max_ulp: Annotated[float | None, "in fp32 steps of the exact value"] = None
    worst_at: float | None = None
    reason: Annotated[str | None, "why the table was not compared"] = None


class SetRow(NamedTuple):
    """One activation function set that the subgraph uses."""

    name: str
    table_select: int
    buckets: int
    controls: int
    functions: list[FunctionRow]


class KnownSet(NamedTuple):
    """One set that the compiler knew; `packed` where the file holds its tables."""

    name: str
    functions: dict[str, int]
    packed: bool


class Curve(NamedTuple):
    """The relative error of one function in every column of its plot."""

    name: str
    range: Ends
    relative: list[float | None]


class Activations(NamedTuple):
    """The result of `neff acts`."""

    subgraph: str
    sets: list[SetRow]
    known_sets: list[KnownSet]
    curve: Curve | None


def activations(graph: Subgraph, plotted: str | None, span: Ends | None) -> Activations:
    """Return the sets of a subgraph with every function, and the error curve of one function if asked for.

    Errors are of the fp32 table against the exact function in fp64.
    """
    words = Counter(
        int(code) for word in graph.streams["Activation"] if (code := getattr(word, "function", None)) is not None
    )
    curve: Curve | None = None
    sets = []
    for one in graph.activation_sets:
        rows = []
        for function in one.functions:
            wanted = plotted is not None and curve is None and function.name.lower() == plotted.lower()
            row, found = _function(one, function, words[function.func_id], span, wanted)
            rows.append(row)
            curve = curve or found
        sets.append(SetRow(one.name, one.table_select, len(one.buckets), len(one.controls), rows))
    if plotted is not None and curve is None:
        names = ", ".join(row.name for one in sets for row in one.functions) or "none"
        raise NotFoundError(f"{graph.name} has no activation function {plotted!r}; functions: {names}")
    info = graph.activation_info
    packed = {one.name for one in sets}
    known = [] if info is None else [KnownSet(one.name, dict(one.functions), one.name in packed) for one in info.sets]
    return Activations(graph.name, sets, known, curve)


def _function(
    one: ActivationSet, function: ActivationFunction, words: int, span: Ends | None, plotted: bool
) -> tuple[FunctionRow, Curve | None]:
    from neurontools.neff.table_errors import column_errors, largest_errors, sample  # deferred: start-up

    row = FunctionRow(function.func_id, function.name, function.pieces, one.bucket_starts.get(function.name), words)
    try:
        found = sample(function, one, span)
    except (UnsupportedError, FormatError) as problem:
        if plotted:
            raise UnsupportedError(f"{function.name}: {problem}") from None
        return row._replace(reason=str(problem)), None
    row = row._replace(range=(found.low, found.high))
    largest = largest_errors(found)
    if largest is not None:
        row = row._replace(
            max_absolute=largest.absolute, max_relative=largest.relative, max_ulp=largest.ulp, worst_at=largest.at
        )
    if not plotted:
        return row, None
    return row, Curve(function.name, (float(found.x[0]), float(found.x[-1])), column_errors(found, _WIDTH))


def view(found: Activations) -> list[str]:
    """Return the sets and functions for people."""
    lines: list[str] = []
    for one in found.sets:
        size = f"{count(one.buckets, 'bucket')}, {count(one.controls, 'control')}"
        lines.append(bold(f"{found.subgraph} set {one.table_select}: {one.name}, {size}"))
        rows = [
            [f.func_id, f.name, f.pieces, f.first_bucket, f.words, _span(f.range), _short(f.max_absolute),
             _short(f.max_relative), _short(f.max_ulp), _short(f.worst_at)]
            for f in one.functions
        ]  # fmt: skip
        heads = ["code", "function", "pieces", "bucket", "words", "range", "absolute", "relative", "ulp", "worst at"]
        lines += ["", *table(heads, rows), ""]
        lines += [f"{f.name}: {f.reason}" for f in one.functions if f.reason]
    if not found.sets:
        lines.append(f"{found.subgraph} uses no activation table")
    if found.known_sets:
        packed = sum(one.packed for one in found.known_sets)
        lines.append(f"{count(len(found.known_sets), 'set')} known to the compiler, {packed} packed")
    return lines


def plot_view(curve: Curve) -> list[str]:
    """Return the errors of one function as a plot: columns over its range, height the logarithm of the error."""
    values = [value for value in curve.relative if value]
    low, high = curve.range
    title = f"{curve.name}: relative error of the table, {low:g} to {high:g}"
    if not values:
        return [title, "exact everywhere"]
    top = log10(max(values))
    # At least one power of ten high, so that one value alone is a bar.
    bottom = floor(min(log10(min(values)), top - 1))
    eighths = [
        0 if not value else max(1, round((log10(value) - bottom) / (top - bottom) * _HEIGHT * 8))
        for value in curve.relative
    ]
    lines = [title]
    for row in range(_HEIGHT - 1, -1, -1):
        label = f"{10**top:.1e}" if row == _HEIGHT - 1 else f"{10.0**bottom:.0e}" if row == 0 else ""
        bar = "".join(_BARS[min(8, max(0, height - 8 * row))] for height in eighths)
        lines.append(f"{label:>8} ┤{bar}".rstrip())
    left, right = f"{low:g}", f"{high:g}"
    lines.append(f"{'':>8} └{'─' * _WIDTH}")
    lines.append(f"{'':>10}{left}{right.rjust(_WIDTH - len(left))}")
    return lines


def _span(ends: Ends | None) -> str | None:
    return None if ends is None else f"{ends[0]:.4g} to {ends[1]:.4g}"


def _short(value: float | None) -> str | None:
    return None if value is None else f"{value:.3g}"


def acts(
    file: NeffFile,
    subgraph: SubgraphNumber = 0,
    plot: Annotated[
        str | None,
        typer.Option(
            "--plot",
            "-p",
            metavar="FUNCTION",
            help="Plot the error of one function over its range.",
            show_default=False,
        ),
    ] = None,
    span: Annotated[
        str | None,
        typer.Option(
            "--range",
            "-r",
            metavar="LOW:HIGH",
            show_default=False,
            help="Compare there; the range between the table's own thresholds unless given.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show the activation functions of a NEFF and how exact they are.

    Tables are piecewise cubics in fp32; the errors are the largest against the exact function, sampled over the range.
    """
    with report("neff acts", json, file=file, subgraph=subgraph, plot=plot, range=span) as out:
        ends = _parse_ends(span)
        graph = open_subgraph(file, subgraph)
        from neurontools.command.uninterrupted import import_numpy  # deferred: start-up

        import_numpy()
        found = activations(graph, plot, ends)
        out.result = found
        out.lines = lambda: view(found) if found.curve is None else plot_view(found.curve)


def _parse_ends(text: str | None) -> Ends | None:
    if text is None:
        return None
    low, _, high = text.partition(":")
    try:
        ends = float(low), float(high)
    except ValueError:
        ends = 0.0, 0.0
    if not -1e38 < ends[0] < ends[1] < 1e38:
        raise typer.BadParameter(f"{text!r} is not LOW:HIGH", param_hint="--range")
    return ends


app = command_app(acts, result=Activations)
