"""How much longer words take over elements that lie far apart. Source: hardware.md 2.3, 3.4, and captures of trn2."""

from __future__ import annotations

from emulator.cost.figures import figure
from emulator.cost.model import Chip, Cost
from emulator.cost.tiles import Tile, tile
from formats.isa import Instruction
from formats.named_tuple import NamedTuple

__all__ = ["is_strided", "passes_apart", "strided"]

_WHOLE_WRITE = 4  # bytes that a strided write takes no longer than others: fp32 was measured, fp16 takes more


def is_strided(one: Tile, chip: Chip) -> bool:
    """Return whether elements lie so far apart that the memory takes longer over them."""
    return one.stride >= figure("slow_stride", chip.target)


class _Strides(NamedTuple):
    """Figures of an engine for elements that lie far apart: factors of writes, and of writes under four bytes."""

    read: str  # cycles of an element, at least
    write: str
    small_write: str
    front: str  # the part of small writes behind which the next word begins
    whole_front: str  # the same of others

    def written(self, dst: Tile) -> str:
        """Return the figure of writes to a tile."""
        return self.write if dst.size >= _WHOLE_WRITE else self.small_write


_VECTOR = _Strides(
    "vector_strided_read", "vector_strided_write", "vector_strided_write16", "vector_strided_front", "whole_front"
)
_SCALAR = _Strides(
    "scalar_strided_read", "scalar_strided_write", "scalar_strided_write16", "scalar_strided_front", "whole_front"
)
_STRIDES = {"DVE": _VECTOR, "Activation": _SCALAR}
_SCALAR_FROM_PSUM = _Strides(
    "scalar_strided_read",
    "scalar_strided_write_psum",
    "scalar_strided_write16_psum",
    "scalar_strided_front_psum",
    "whole_front_psum",
)


def passes_apart(word: Instruction, passes: float, engine: str, chip: Chip, *names: str) -> float:
    """Return how often the elements of a word pass where those of the operands named may lie far apart.

    What was measured of an engine's copies holds for its other words: the memory has its pace, and a word that takes
    longer over an element loses nothing.
    """
    apart = [(name, one) for name in names if (one := tile(word, name)) is not None and is_strided(one, chip)]
    if not apart:
        return passes
    if chip.generation == "gen2" or engine not in _STRIDES:
        return passes * figure("slow_stride_factor", chip.target)
    figures = _STRIDES[engine]
    for name, one in apart:
        pace = figures.read if word.OPERANDS[name].role == "read" else figures.written(one)
        passes = max(passes, figure(pace, chip.target))
    return passes


def strided(cost: Cost, inputs: list[Tile], dst: Tile, engine: str, chip: Chip) -> Cost:
    """Return the cost of a word of the Vector or Scalar engine where elements of its tiles lie far apart."""
    gap = cost.interval_ps - cost.work_ps
    apart = any(is_strided(one, chip) for one in inputs)
    if chip.generation == "gen2" or engine not in _STRIDES:
        slow = apart or is_strided(dst, chip)
        return _slowed(cost, figure("slow_stride_factor", chip.target) if slow else 1.0, gap)
    from_psum = engine == "Activation" and any(one.in_psum for one in inputs)
    figures = _SCALAR_FROM_PSUM if from_psum else _STRIDES[engine]
    if is_strided(dst, chip):
        # Nothing is added between words that wait for their writes anyhow: the next one begins when they have begun,
        # though no sooner than behind a word without strides.
        whole = dst.size >= _WHOLE_WRITE
        slowed = _slowed(cost, figure(figures.written(dst), chip.target), 0)
        front = round(slowed.work_ps * figure(figures.whole_front if whole else figures.front, chip.target))
        return slowed._replace(interval_ps=max(front, cost.interval_ps), apart_ps=slowed.work_ps, lag_ps=0)
    if apart:
        least = round(inputs[0].elements * figure(figures.read, chip.target) / chip.clock_ghz(engine) * 1000)
        return _slowed(cost, max(least / cost.work_ps, 1.0), gap) if cost.work_ps else cost
    return cost


def _slowed(cost: Cost, factor: float, gap: int) -> Cost:
    if factor == 1.0:
        return cost
    work = round(cost.work_ps * factor)
    return cost._replace(interval_ps=work + gap, latency_ps=cost.latency_ps + work - cost.work_ps, work_ps=work)
