"""`neurontools hlo flops`: arithmetic and bytes of a module, counted from its shapes."""

from __future__ import annotations

from typing import Annotated

import typer

from formats.named_tuple import NamedTuple
from neurontools.command.lazy import command_app
from neurontools.command.options import Json
from neurontools.command.output import report
from neurontools.hlo.opening import HloFile, open_module
from neurontools.text.table import table


class CostRow(NamedTuple):
    """One instruction of the entry, with all that it calls."""

    name: str
    opcode: str
    shape: str
    flops: int
    transcendentals: int
    bytes: int
    turns: Annotated[int | None, "of a loop, where they are known; an unknown one is counted once"]
    source: str | None


class HloCost(NamedTuple):
    """The result of `hlo flops`."""

    flops: int
    transcendentals: int
    bytes: Annotated[int, "of operands and results, each instruction for itself"]
    flops_per_byte: float
    unknown_loops: Annotated[int, "loops counted once because their turns are not known"]
    instructions: Annotated[tuple[CostRow, ...], "the costliest first"]


def flops(
    file: HloFile,
    top: Annotated[int, typer.Option("--top", metavar="N", min=0, help="How many instructions are listed.")] = 10,
    json: Json = False,
) -> None:
    """Count the arithmetic and the bytes of a module.

    A dot counts two operations for each product, an element-wise operation one for each element; functions such as
    exponential are counted apart. Loops count as often as they turn, where that is plain from the module.
    """
    with report("hlo flops", json, file=file, top=top) as out:
        from formats.hlo.verify import need_valid  # deferred: start-up
        from neurontools.hlo.cost import Costs, trip_count  # deferred: start-up

        module = open_module(file)
        need_valid(module)
        costs, rows = Costs(module), []
        total = costs.total
        for each in module.entry.instructions:
            cost = costs.of(each)
            turns = trip_count(each) if each.opcode == "while" else None
            source = module.source(each)
            rows.append(CostRow(each.name, each.opcode, str(each.shape), *cost, turns, str(source) if source else None))
        rows.sort(key=lambda row: (-row.flops - row.transcendentals, -row.bytes))
        unknown = sum(each.opcode == "while" and trip_count(each) is None for each in module.instructions())
        found = HloCost(*total, round(total.flops / max(1, total.bytes), 3), unknown, tuple(rows[:top]))
        out.result = found
        out.lines = lambda: [
            f"{found.flops:,} operations, {found.transcendentals:,} functions, {found.bytes:,} bytes; "
            f"{found.flops_per_byte:g} operations a byte" + (f"; {unknown} loops counted once" if unknown else ""),
            "",
            *table(["instruction", "opcode", "operations", "functions", "bytes", "source"],
                   [(r.name, r.opcode, r.flops, r.transcendentals, r.bytes, r.source) for r in found.instructions]),
        ]  # fmt: skip


app = command_app(flops, result=HloCost)
