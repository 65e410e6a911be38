"""Cost of an instruction: when its engine can issue the next one, and when it completes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Protocol, TypeVar

from emulator.cost.dma import UNIT, DmaCosts, dma_costs
from emulator.cost.figures import figure
from formats.errors import UnsupportedError
from formats.isa import Instruction
from formats.named_tuple import NamedTuple

__all__ = ["UNIT_COST", "Chip", "Cost", "CostModel", "cost_of", "costs", "costs_of"]


class Chip(Protocol):
    """What costs depend on, as `emulator.arch.Arch` has it."""

    @property
    def target(self) -> str:
        """Return the name of the chip."""
        ...

    @property
    def generation(self) -> str:
        """Return gen2, gen3 or gen4."""
        ...

    def clock_ghz(self, engine: str) -> float:
        """Return the clock of an engine."""
        ...


class Cost(NamedTuple):
    """Picoseconds from the issue of an instruction until the engine can issue the next one, and until it completes.

    `work_ps` is the part of it in which data move, `fast` a mode that takes more than its share of a memory port,
    `weights` marks a load of the Tensor engine, whose result the next matmul needs; `read_ps` is how long memory takes
    to give its elements where they lie far apart; `apart_ps` is how long behind the word before it completes at the
    earliest, as an engine's writes leave in order, and `lag_ps` how long they wait for that before the next word's
    start does too; `cold` names what of it takes longer the first times (`emulator.cost.cold`).
    """

    interval_ps: int
    latency_ps: int
    work_ps: int = 0
    fast: bool = False
    weights: bool = False
    read_ps: int = 0
    apart_ps: int = 0
    lag_ps: int = 0
    cold: tuple[str, ...] = ()


UNIT_COST = Cost(1, 1)

CostFunction = Callable[[Any, str, Chip], Cost]
C = TypeVar("C", bound=CostFunction)

_COSTS: dict[type[Instruction], CostFunction] = {}


def costs(*classes: type[Instruction]) -> Callable[[C], C]:
    """Register the decorated function, (word, engine, chip) -> Cost, for the given classes."""

    def register(function: C) -> C:
        for cls in classes:
            if cls in _COSTS:
                raise TypeError(f"{cls.__name__} has a cost already")
            _COSTS[cls] = function
        return function

    return register


def costs_of(cls: type[Instruction]) -> CostFunction | None:
    """Return the cost function of a class, if it has one."""
    return _COSTS.get(cls)


def cost_of(word: Instruction, engine: str, chip: Chip) -> Cost:
    """Return the cost of a word on an engine of a chip."""
    function = _COSTS.get(type(word))
    if function is None:
        raise UnsupportedError(f"{word.name} has no cost")
    return function(word, engine, chip)


class CostModel:
    """Costs of one chip; with `timing` off every step takes one picosecond: order without time.

    `propagation_ps` is the time from a completion until a waiting engine sees its semaphore, `dispatch_ps` that from a
    word to one without data behind it; `dma` has the figures of
    DMA transfers; `without` names parts of the model to leave out (`emulator.cost.contention.PARTS`).
    """

    def __init__(self, chip: Chip, timing: bool = True, without: Collection[str] = ()) -> None:
        self.chip, self.timing, self.without = chip, timing, frozenset(without)
        # figures are in nanoseconds, the emulator counts in picoseconds
        self.propagation_ps = round(figure("propagation", chip.target) * 1000) if timing else 0
        self.dispatch_ps = round(figure("dispatch", chip.target) * 1000) if timing else 0
        self.dma: DmaCosts = dma_costs(chip.target) if timing else UNIT

    def cost_of(self, word: Instruction, engine: str) -> Cost:
        """Return the cost of a word on an engine."""
        return cost_of(word, engine, self.chip) if self.timing else UNIT_COST
