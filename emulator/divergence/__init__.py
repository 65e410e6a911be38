"""The first instruction whose result differs: between two executions, or from arrays known to be right."""

from emulator.divergence.alignment import Alignment, Alignments, align
from emulator.divergence.difference import Difference, difference
from emulator.divergence.golden import GoldenComparison, GoldenRow, compare_golden
from emulator.divergence.lockstep import Comparison, compare_runs
from emulator.divergence.operands import Divergence, OperandPair, Side

__all__ = [
    "Alignment", "Alignments", "Comparison", "Difference", "Divergence", "GoldenComparison", "GoldenRow", "OperandPair",
    "Side", "align", "compare_golden", "compare_runs", "difference",
]  # fmt: skip
