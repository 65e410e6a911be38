"""A schedule under other costs: what would the run take if this engine, that line or the DMA were faster?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from emulator.cost import CostModel
from emulator.cost.dma import DmaCosts
from emulator.device import Device
from emulator.dma.transfer import Transfer

__all__ = ["CLOCKS", "DMA_PARTS", "Change", "Place", "scale_dma"]

Place = tuple[int, str, int]  # core, engine, position of the word in its stream
WordCost = Callable[[Any, Any, int, int], tuple[int, int]]

CLOCKS = {"pe": "clock_pe", "vector": "clock_vector", "scalar": "clock_scalar", "gpsimd": "clock_gpsimd"}
DMA_PARTS = ("latency", "bandwidth", "hbm")


# Figures are told apart by how `DmaCosts` names them, so that a new one has its part without being listed here.
def _part(name: str) -> str:
    """Return which part of the DMA's time a figure belongs to; "" for figures that are no times."""
    if "hbm" in name:
        return "hbm"
    if name.endswith("_ps_per_byte") or name.startswith("descriptor"):
        return "bandwidth"
    return "latency" if name.endswith("_ps") else ""


def scale_dma(costs: DmaCosts, factor: float, parts: Iterable[str] = DMA_PARTS) -> DmaCosts:
    """Return DMA costs with the times of some parts multiplied by a factor."""
    wanted = set(parts)
    changed: dict[str, Any] = {}
    for name in costs._fields:
        if _part(name) in wanted:
            value = getattr(costs, name)
            changed[name] = value * factor if isinstance(value, float) else round(value * factor)
    return costs._replace(**changed)


@dataclass(frozen=True)
class Change:
    """What differs from the chip as it is; times are multiplied by the factors.

    `clocks` are GHz by name of `CLOCKS`; `dma` factors by part; `semaphore` the factor on the way from a semaphore to
    an engine; `word` gives a word's (interval, latency) from (engine, loaded word, interval, latency); `transfer` the
    costs that a transfer is planned with; `unwaited` the words that wait for nothing.
    """

    clocks: Mapping[str, float] = field(default_factory=dict)
    dma: Mapping[str, float] = field(default_factory=dict)
    semaphore: float = 1.0
    word: WordCost | None = None
    transfer: Callable[[Transfer, DmaCosts], DmaCosts] | None = None
    unwaited: frozenset[Place] = frozenset()

    def apply(self, device: Device) -> None:
        """Change a device that has its program and has not run."""
        facts = {CLOCKS[name]: replace_value(device.arch, CLOCKS[name], value) for name, value in self.clocks.items()}
        costs = device.costs = CostModel(device.arch._replace(**facts), timing=device.timing)
        for part, factor in self.dma.items():
            costs.dma = scale_dma(costs.dma, factor, (part,))
        costs.propagation_ps = round(costs.propagation_ps * self.semaphore)
        device.propagation_ps, device.dma.costs = costs.propagation_ps, costs.dma
        device.reprice = self.word
        transfer = self.transfer
        if transfer is not None:
            device.dma.reprice = lambda one: transfer(one, device.dma.costs)
        for core, engine, position in self.unwaited:
            words: Any = device.cores[core].engines[engine].words

            words[position] = words[position].with_word(words[position].word.without_waits())


def replace_value(arch: Any, name: str, value: float) -> Any:
    """Return a fact of a chip with another value."""
    return getattr(arch, name)._replace(value=value)
