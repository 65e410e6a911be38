"""How long things take: figures with their sources, cost functions per instruction class, DMA figures."""

from emulator.cost import extensions, instructions  # noqa: F401  registers cost functions
from emulator.cost.contention import Claim, Contention
from emulator.cost.dma import DmaCosts, dma_costs
from emulator.cost.figures import FIGURES, figure
from emulator.cost.model import UNIT_COST, Cost, CostModel, cost_of, costs, costs_of

__all__ = [
    "FIGURES",
    "UNIT_COST",
    "Claim",
    "Contention",
    "Cost",
    "CostModel",
    "DmaCosts",
    "cost_of",
    "costs",
    "costs_of",
    "dma_costs",
    "figure",
]
