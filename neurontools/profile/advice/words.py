"""Rules about instructions: passes, partitions, tables, and which engine does the work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from emulator.timeline.change import Change
from formats import isa
from formats.dtypes import Dtype
from formats.neuron_core import PARTITIONS
from neurontools.profile.advice.context import Candidate, Context, Row, pricing
from neurontools.profile.rows import SHOWN

__all__ = ["engine_imbalance", "fp32_matmuls", "partitions", "table_loads"]

_PASSES = 4  # fp32 on the Tensor engine, hardware.md 3.3
_FEW = 64  # fewer partitions than these leave half of the lanes idle
_MINIMUM_CYCLES = 64  # the least interval, hardware.md 3.9


def fp32_matmuls(context: Context) -> Iterator[Candidate]:
    """Matmuls of fp32 take four passes where bf16 takes one."""
    rows = [
        row
        for row, word in context.rows
        if isinstance(word, isa.MatMul | isa.LoadWeights) and word.dtype == Dtype.FLOAT32
    ]
    for line, group in context.by_line(rows).items():
        least = _least(context, "PE")
        change = _priced({context.key(row): (1 / _PASSES, least) for row in group})
        products = sum(isinstance(context.timeline.causes.word(*row), isa.MatMul) for row in group)
        yield Candidate(
            "fp32-matmul",
            line,
            f"{products} MATMUL of fp32: bf16 operands take one pass instead of four, "
            "with 8 bits of mantissa instead of 24",
            change,
            "the schedule was run again with one pass for each",
            "hardware.md 3.3, 5.1",
            sum(map(context.busy_ps, group)),
        )


def partitions(context: Context) -> Iterator[Candidate]:
    """Work on few partitions leaves lanes idle: the same elements on all of them take less time."""
    few: dict[Row, int] = {}
    for row, word in context.rows:
        if isinstance(word, isa.LoadWeights) or row[0].name == "SP":
            continue
        used = _partitions(word)
        if used and used < _FEW:
            few[row] = used
    for line, group in context.by_line(few).items():
        least = {name: _least(context, name) for name in SHOWN}
        prices = {context.key(row): (few[row] / PARTITIONS, least[row[0].name]) for row in group}
        least_used, most_used = min(few[row] for row in group), max(few[row] for row in group)
        counts = f"{least_used}" if least_used == most_used else f"{least_used} to {most_used}"
        tensor = group[0][0].name == "PE"
        how = (
            "rows of the array; tiles of 32 or 64 rows can share it"
            if tensor
            else "partitions; spread over all of them each holds fewer elements"
        )
        yield Candidate(
            "partitions",
            line,
            f"{len(group)} instructions on {SHOWN[group[0][0].name]} use {counts} of 128 {how}",
            _priced(prices),
            "the schedule was run again with the work spread over 128",
            "hardware.md 3.3" if tensor else "hardware.md 2.1, 5",
            sum(context.busy_ps(row) * (PARTITIONS - few[row]) // PARTITIONS for row in group),
        )


def _partitions(word: isa.Instruction) -> int:
    """Return the partitions that a word works on, 0 for a word without data."""
    if isinstance(word, isa.MatMul):
        return int(word.rows)
    return max(
        (access.partitions for access in (*word.reads, *word.writes) if isinstance(access, isa.Access)), default=0
    )


def table_loads(context: Context) -> Iterator[Candidate]:
    """Find tables that are loaded again, because functions of other tables came between."""
    rows = [(row, word.table_select) for row, word in context.rows if isinstance(word, isa.ActTableLoad)]
    first = {(row[0], table): row for row, table in reversed(rows)}
    again = [row for row, table in rows if row != first[row[0], table]]
    for line, group in context.by_line(again).items():
        change = _priced({context.key(row): (0.0, 0) for row in group})
        yield Candidate(
            "table-loads",
            line,
            f"{len(group)} loads of a function table that was there before: do "
            "everything with one table before the next one is needed",
            change,
            "the schedule was run again without these loads",
            "hardware.md 3.9, 5.3",
            sum(map(context.busy_ps, group)),
        )


def engine_imbalance(context: Context) -> Iterator[Candidate]:
    """One engine is busy while another that could do part of its work is not."""
    end = context.end_ps
    busy: dict[tuple[int, str], int] = defaultdict(int)
    for row, _ in context.rows:
        busy[row[0].core, row[0].name] += context.busy_ps(row)
    movable: dict[tuple[int, str, str], list[Row]] = defaultdict(list)
    for row, word in context.rows:
        owner = row[0]
        if owner.name not in ("DVE", "Activation", "Pool") or not isinstance(
            word, isa.TensorTensor | isa.TensorScalar | isa.Copy | isa.Cast | isa.Memset
        ):
            continue
        # The Scalar engine takes some pairs of operators only, GpSimd does not reach PSUM.
        others = [
            name
            for name in type(word).ENGINES
            if name != owner.name
            and not (name == "Pool" and _in_psum(word))
            and not (name == "Activation" and isinstance(word, isa.TensorScalar))
        ]
        if others:
            best = min(others, key=lambda name: busy[owner.core, name])
            movable[owner.core, owner.name, best].append(row)
    for (core, name, other), rows in movable.items():
        mine, theirs = busy[core, name], busy[core, other]
        if mine < 0.25 * end or theirs > mine / 2:
            continue
        for line, group in context.by_line(rows).items():
            half = group[::2]
            yield Candidate(
                "engine-imbalance",
                line,
                f"{SHOWN[name]} is busy {100 * mine // end} % of the time, "
                f"{SHOWN[other]} {100 * theirs // end} %, and can do this too: give it {len(half)} of the "
                f"{len(group)} instructions",
                Change(word=pricing({}, _moved(context, half, other))),
                f"the schedule was run again with them on {SHOWN[other]}, as if that did nothing else: at most",
                "hardware.md 5.1, 5.2",
                sum(map(context.busy_ps, half)),
            )


def _moved(context: Context, rows: list[Row], engine: str) -> dict[tuple[int, str, int], int]:
    """Return how long words take on another engine."""
    costs = context.timeline.device.costs
    return {context.key(row): costs.cost_of(context.timeline.causes.word(*row), engine).latency_ps for row in rows}


def _in_psum(word: isa.Instruction) -> bool:
    return any(
        access.pattern.address >= isa.PSUM_BASE
        for access in (*word.reads, *word.writes)
        if isinstance(access, isa.Access)
    )


def _least(context: Context, engine: str) -> int:
    """Return the least interval of an engine in picoseconds."""
    return round(_MINIMUM_CYCLES / context.timeline.device.arch.clock_ghz(engine) * 1000)


def _priced(prices: dict[tuple[int, str, int], tuple[float, int]]) -> Change:
    return Change(word=pricing(prices))
