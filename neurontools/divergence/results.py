"""Where two executions part: the values that the comparison makes, and that its commands report."""

from __future__ import annotations

from typing import Annotated, Literal

from formats.named_tuple import NamedTuple
from neurontools.command.results import LEFT_OUT
from neurontools.running.rows import SourceRow

__all__ = ["Alignment", "Completion", "Difference", "Divergence", "Figures", "GoldenRow", "GoldenRun", "GraphRun",
           "OperandPair", "OperationDifference", "OperationGap", "OperationOperand", "OutputGap", "RunDifference",
           "Untried"]  # fmt: skip

Kind = Literal["instruction", "dma", "barrier"]
Outcome = Literal["running", "finished", "fault", "hang"]
Number = Annotated[float | str, "infinities and NaN as text"]


class Difference(NamedTuple):
    """Where and by how much arrays differ: `differing` of `elements` are beyond tolerance.

    Absolute and relative differences are the largest between finite elements, relative to the second array, 0 where
    only NaN and infinities differ. `first` is the index of the first element beyond tolerance, `worst` that of the
    largest difference (a NaN against a number is larger than any), `one` and `other` the values there; `nans` are
    counted on both sides.
    """

    shape: tuple[int, ...]
    elements: int
    differing: Annotated[int, "elements beyond tolerance"]
    max_abs: Number
    max_rel: Number
    mean_abs: Number
    first: tuple[int, ...]
    worst: tuple[int, ...]
    one: Number
    other: Number
    nans: tuple[int, int]


class Figures(NamedTuple):
    """What the elements of an array are like; minimum, maximum and mean of the finite ones, None without any."""

    elements: int
    minimum: float | None
    maximum: float | None
    mean: float | None
    nans: int
    infinities: int


class OperandPair(NamedTuple):
    """An operand on both sides: what its elements are like, and how they differ; `other` is None against arrays."""

    name: str
    tensor: str
    region: str
    dtype: str
    shape: tuple[int, ...]
    one: Figures
    other: Figures | None
    difference: Difference | None


class Completion(NamedTuple):
    """The completion on one side: `text` is the word or transfer."""

    number: Annotated[int, "of the event, as `goto #N` takes it"]
    time_ps: int
    core: int
    engine: Annotated[str, "of a transfer the queue"]
    pc: int
    kind: Kind
    text: str
    source: SourceRow | None


class Divergence(NamedTuple):
    """The first completion whose result differs: `operand` of `tensor`, on one side and, of two runs, the other."""

    one: Completion
    other: Completion | None
    operand: str
    tensor: str
    difference: Difference
    inputs: tuple[OperandPair, ...]
    outputs: tuple[OperandPair, ...]


class Alignment(NamedTuple):
    """How one engine's streams were matched; `how` is "position" (same opcodes throughout) or "line".

    `matched` words have a counterpart in the same stream; by "line" means by opcode, source line and tile name.
    """

    core: int
    engine: str
    how: Literal["position", "line"]
    words: tuple[int, int]
    matched: int


class OutputGap(NamedTuple):
    """An output that differs, where no divergence says why."""

    name: str
    difference: Difference


class OperationDifference(NamedTuple):
    """Two compiled graphs operation by operation: the first whose values differ, where one does."""

    compared: int
    unmatched: Annotated[tuple[int, int], "operations of each side whose values the other one does not hold"]
    name: Annotated[str | None, "with the calls, loops and branches around it"]
    source: SourceRow | None
    type: str
    turn: Annotated[int | None, "of the loop around it"]
    difference: Difference | None
    words: Annotated[tuple[dict[str, tuple[int, ...]], ...], "instructions by engine, of both sides"]


class RunDifference(NamedTuple):
    """What came of two executions side by side.

    `compared` results were equal within tolerance; `unmatched` completions of each side have no counterpart on the
    other one, or one of another size. Two runs that fault or hang are the same where they do so in one way, at
    words that were matched.
    """

    same: bool
    compared: int
    unmatched: tuple[int, int]
    outcomes: tuple[Outcome, ...]
    stops: Annotated[tuple[str, ...], "what faulted or hung on each side, empty where nothing did"]
    alignments: tuple[Alignment, ...]
    moved: Annotated[int, "words matched on another engine"]
    divergence: Annotated[Divergence | None, "the first completion whose result differs"]
    outputs: tuple[OutputGap, ...]
    missing: Annotated[tuple[str, ...], "outputs that one side has"]
    commands: Annotated[tuple[str, ...] | None, "what stops there in the debugger, of both sides"]
    operations: Annotated[
        OperationDifference | None, LEFT_OUT, "of compiled graphs whose words differ, the first operation that does"
    ] = None


class GoldenRow(NamedTuple):
    """One name: `difference` is None where it fits."""

    name: str
    space: str
    number: Annotated[int | None, "the last event that wrote it"]
    difference: Difference | None


class GoldenRun(NamedTuple):
    """What came of an execution against known arrays."""

    same: bool
    outcome: Outcome
    names: tuple[GoldenRow, ...]
    unknown: Annotated[tuple[str, ...], "names that are none of the program's"]
    divergence: Annotated[Divergence | None, "the first completion whose bytes are still there and wrong"]
    command: Annotated[str | None, "what stops there in the debugger"]


class OperationOperand(NamedTuple):
    """An operand of an operation, as the device had it."""

    name: str
    type: str
    figures: Figures | None


class OperationGap(NamedTuple):
    """An operation whose result is not what the reference interpreter makes of the operands that the device had."""

    name: Annotated[str, "with the calls, loops and branches around it"]
    opcode: str
    source: SourceRow
    result: Annotated[int, "of an operation with several results, which"]
    type: str
    turn: Annotated[int | None, "of the loop around it, counted from 0 over the whole run"]
    tolerance: Annotated[str, "the rule, and its numbers"]
    difference: Difference
    operands: tuple[OperationOperand, ...]
    words: Annotated[dict[str, tuple[int, ...]], "instructions by engine"]


class Untried(NamedTuple):
    """An operation that was not compared, and why."""

    name: str
    why: str


class GraphRun(NamedTuple):
    """What came of an execution against the graph that it was compiled from."""

    same: bool
    outcome: Outcome
    operations: Annotated[int, "of the graph, those of bodies among them"]
    compared: int
    first: Annotated[OperationGap | None, "the first operation that differs, in the order of the graph"]
    others: Annotated[tuple[str, ...], "further operations that differ, given their own operands"]
    untried: tuple[Untried, ...]
    command: Annotated[str | None, "what stops there in the debugger"]
