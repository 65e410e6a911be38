"""The first result that differs, as lines."""

from __future__ import annotations

from collections.abc import Iterator

from neurontools.divergence.results import (
    Completion,
    Difference,
    Divergence,
    Figures,
    GoldenRun,
    GraphRun,
    Number,
    OperandPair,
    OperationDifference,
    RunDifference,
)
from neurontools.running.rows import place_text
from neurontools.text.table import bold, count, duration, ranges, table

__all__ = ["comparison_lines", "golden_lines", "graph_lines"]


def comparison_lines(found: RunDifference, names: tuple[str, str]) -> Iterator[str]:
    """Return two executions side by side for people."""
    for each in found.alignments:
        if each.how == "line":
            yield (
                f"streams of nc{each.core} {each.engine} differ ({each.words[0]:,} and {each.words[1]:,} words): "
                f"{each.matched:,} matched by opcode, source line and tile name"
            )
    if found.moved:
        yield f"{count(found.moved, 'word')} more matched on other engines, by the same"
    if any(found.unmatched):
        yield f"without a counterpart: {found.unmatched[0]:,} results of A, {found.unmatched[1]:,} of B"
    if found.operations is not None:
        yield from _operations(found.operations)
    if found.divergence is not None:
        yield bold(f"first result that differs, after {count(found.compared, 'equal result')}:")
        yield from _divergence(found.divergence, ("A", "B"))
        for start, label, line in zip(("stop there", ""), "AB", found.commands or (), strict=False):
            yield f"{start:10}  {label}  {line}"
        return
    yield f"A {names[0]}: {found.outcomes[0]}; B {names[1]}: {found.outcomes[1]}"
    yield from (f"{label} stopped: {stop}" for label, stop in zip("AB", found.stops, strict=True) if stop)
    for name, gap in found.outputs:
        yield f"output {name} differs: {_gap(gap)}"
    for name in found.missing:
        yield f"output {name} is on one side only"
    if found.same:
        yield f"no result differs: {count(found.compared, 'result')} compared"


def _operations(found: OperationDifference) -> Iterator[str]:
    if found.name is None or found.source is None or found.difference is None:
        yield f"operation by operation: {count(found.compared, 'operation')} of both graphs have the same values"
        return
    turn = "" if found.turn is None else f", turn {found.turn} of its loop"
    yield bold(f"first operation that differs: %{found.name} = {found.type}, {found.source.file}:{found.source.line}"
               f"{turn}, after {found.compared - 1} that do not")  # fmt: skip
    yield f"  {_gap(found.difference)}"
    for label, words in zip("AB", found.words, strict=False):
        listed = "  ".join(f"{engine} {ranges(pcs)}" for engine, pcs in words.items())
        yield f"  instructions of {label}: {listed or 'none of its own'}"


def golden_lines(found: GoldenRun, file: str) -> Iterator[str]:
    """Return an execution against known arrays for people."""
    rows = [
        [row.name, row.space, "-" if row.number is None else f"#{row.number}",
         "as it should be" if row.difference is None else _gap(row.difference)]
        for row in found.names
    ]  # fmt: skip
    yield from table(["name", "space", "last write", f"against {file}"], rows)
    if found.divergence is not None:
        yield bold("the first result that is still there and wrong:")
        yield from _divergence(found.divergence, ("", file))
        yield f"stop there  {found.command}"
    if found.outcome != "finished":
        yield f"the execution ended with a {found.outcome}"


def graph_lines(found: GraphRun) -> Iterator[str]:
    """Return an execution against its graph for people."""
    if found.outcome != "finished":
        yield f"the execution ended with a {found.outcome}"
    agree = found.compared - (found.first is not None) - len(found.others)
    yield f"{count(found.compared, 'operation')} of {found.operations} compared, {agree} agree"
    for one in found.untried:
        yield f"not compared: %{one.name}: {one.why}"
    first = found.first
    if first is None:
        return
    turn = "" if first.turn is None else f", turn {first.turn} of its loop"
    yield bold(f"the first that differs: %{first.name} = {first.type} {first.opcode}, "
               f"{first.source.file}:{first.source.line}{turn}")  # fmt: skip
    yield f"  {_gap(first.difference)}"
    index = ", ".join(map(str, first.difference.worst))
    yield (f"  worst at [{index}]: is {_exact(first.difference.one)}, expected {_exact(first.difference.other)}; "
           f"first at [{', '.join(map(str, first.difference.first))}]")  # fmt: skip
    yield f"  allowed: {first.tolerance}"
    rows = [[f"%{one.name}", one.type, *(("-",) * 4 if one.figures is None else (
        *_range(one.figures), one.figures.nans))]
        for one in first.operands]  # fmt: skip
    yield from (f"  {line}" for line in table(["operand", "type", "min", "mean", "max", "NaN"], rows))
    words = "  ".join(f"{engine} {ranges(pcs)}" for engine, pcs in first.words.items())
    yield f"  instructions: {words or 'none of its own'}"
    if found.others:
        shown = ", ".join(f"%{one}" for one in found.others[:8])
        yield f"  also wrong, given the operands they had: {shown}{' …' if len(found.others) > 8 else ''}"
    if found.command is not None:
        yield f"stop there  {found.command}"


def _divergence(item: Divergence, labels: tuple[str, str]) -> Iterator[str]:
    yield from _completion(item.one, labels[0])
    if item.other is not None:
        yield from _completion(item.other, labels[1])
    tensor = f" of {item.tensor}" if item.tensor else ""
    yield f"  {item.operand}{tensor}: {_gap(item.difference)}"
    index = ", ".join(map(str, item.difference.worst))
    other = "B" if item.other is not None else "expected"
    yield (
        f"  worst at [{index}]: {labels[0] or 'is'} {_exact(item.difference.one)}, "
        f"{other} {_exact(item.difference.other)}; "
        f"first at [{', '.join(map(str, item.difference.first))}]"
    )
    heads = ["operand", "tensor", "type", "shape", "min", "mean", "max", "NaN", "where", "differs"]
    rows = [*(_row("in", pair) for pair in item.inputs), *(_row("out", pair) for pair in item.outputs)]
    yield from (f"  {line}" for line in table(heads, rows))
    if item.other is None or not item.inputs:
        return
    if all(pair.difference is None for pair in item.inputs):
        yield "  the inputs are equal: the difference arises here"
    else:
        yield (
            "  the inputs differ though no earlier result does: other inputs of the program, a race (neurontools "
            "check), or a word without counterpart"
        )


def _completion(item: Completion, label: str) -> Iterator[str]:
    head = f"{label} " if label else ""
    source = item.source
    line = "" if source is None else f"  ({place_text(source)})"
    pc = f"(pc {item.pc})" if item.kind == "dma" else f"pc {item.pc}"
    yield f"  {head}#{item.number} {duration(item.time_ps)}  nc{item.core} {item.engine} {pc}  {item.text}{line}"


def _row(way: str, pair: OperandPair) -> list[object]:
    one = pair.one
    numbers = [None if value is None else f"{value:.6g}" for value in (one.minimum, one.mean, one.maximum)]
    differs = "-" if pair.other is None else "no" if pair.difference is None else f"{pair.difference.differing:,}"
    return [f"{way} {pair.name}", pair.tensor or None, pair.dtype, f"[{', '.join(map(str, pair.shape))}]", *numbers,
            one.nans or None, pair.region, differs]  # fmt: skip


def _gap(gap: Difference) -> str:
    nans = f", NaN {gap.nans[0]:,} and {gap.nans[1]:,}" if any(gap.nans) else ""
    far = "" if nans else ", between infinities and other values"
    if gap.max_abs:
        far = (f", at most by {_short(gap.max_abs)} (relative {_short(gap.max_rel, 3)}), "
               f"on average {_short(gap.mean_abs, 3)}")  # fmt: skip
    return f"{gap.differing:,} of {gap.elements:,} elements differ{far}{nans}"


def _range(found: Figures) -> list[str | None]:
    return [None if value is None else _short(value) for value in (found.minimum, found.mean, found.maximum)]


def _exact(value: Number) -> str:
    return _short(value, 9)


def _short(value: Number, digits: int = 6) -> str:
    return value if isinstance(value, str) else f"{value:.{digits}g}"
