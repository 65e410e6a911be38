"""Trying the candidates of every rule, and keeping what saves time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from neurontools.profile.advice.context import Candidate, Context
from neurontools.profile.advice.order import better_order
from neurontools.profile.advice.transfers import small_descriptors, small_transfers
from neurontools.profile.advice.waits import missing_overlap, psum_banks, serialising_waits
from neurontools.profile.advice.words import engine_imbalance, fp32_matmuls, partitions, table_loads
from neurontools.profile.results import Advice
from neurontools.profile.summary import line_text, ns, percent

if TYPE_CHECKING:
    from neurontools.profile.rows import Timeline
    from neurontools.program.opening import Program

__all__ = ["RULES", "advise"]

RULES: dict[str, Callable[[Context], Iterable[Candidate]]] = {
    "small-transfers": small_transfers,
    "small-descriptors": small_descriptors,
    "missing-overlap": missing_overlap,
    "serialising-wait": serialising_waits,
    "psum-banks": psum_banks,
    "fp32-matmul": fp32_matmuls,
    "engine-imbalance": engine_imbalance,
    "partitions": partitions,
    "table-loads": table_loads,
    "order": better_order,
}
_TRIED = 3  # lines tried per rule
_LEAST = 0.005  # of the run: what saves less is not worth a line


def advise(program: Program, timeline: Timeline) -> tuple[Advice, ...]:
    """Return advice, what saves most first."""
    context = Context(program, timeline)
    found = []
    for name, rule in RULES.items():
        tried = sorted(rule(context), key=lambda one: -one.weight)[:_TRIED]
        for candidate in tried:
            after = context.again(candidate.change, candidate.neff)
            saves = context.end_ps - after.end_ps
            if after.device.outcome == "finished" and saves >= _LEAST * context.end_ps:
                line = candidate.line
                found.append(
                    Advice(
                        name,
                        line_text(line),
                        line[0] if line and line[1] else None,
                        candidate.message,
                        ns(saves),
                        percent(saves, context.end_ps),
                        candidate.proof,
                        candidate.source,
                    )
                )
    return tuple(sorted(found, key=lambda one: -one.saves_ns))
