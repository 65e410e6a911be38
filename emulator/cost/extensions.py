"""Cost functions of the extension words for searches, selections, gathers, statistics and random numbers.

Source: the formulas of hardware.md 5, those of the nki.isa pages; where there is none, one pass over the input.
"""

from __future__ import annotations

from typing import Any

from emulator.cost.figures import figure
from emulator.cost.instructions import _on_vector, _paced, _passes_of_two, activation_cost
from emulator.cost.model import Chip, Cost, costs
from emulator.cost.strides import passes_apart
from emulator.cost.tiles import Tile, tile
from formats import isa

__all__: list[str] = []


def _tile(word: isa.Instruction, name: str) -> Tile:
    found = tile(word, name)
    return found if found is not None else Tile(0, False, 0, 1)


@costs(isa.SetRngSeed, isa.RandSetState, isa.RandGetState)
def states(word: Any, engine: str, chip: Chip) -> Cost:
    """Return the cost of a move of generator states: the shortest there is."""
    return _on_vector(word, figure("minimum_interval", chip.target), "vector_latency", engine, chip)


@costs(isa.TensorScalarReduce)
def tensor_scalar_reduce(word: isa.TensorScalarReduce, engine: str, chip: Chip) -> Cost:
    """Return the cost of a tile with a scalar and of reading the registers."""
    src = _tile(word, "src")
    cycles = src.elements * passes_apart(word, 1.0, engine, chip, "src", "dst")
    cycles = max(cycles, figure("minimum_interval", chip.target)) + figure("read_accumulator", chip.target)
    return _on_vector(word, cycles, "tensor_scalar_latency", engine, chip)


@costs(isa.CopyPredicated, isa.SelectReduce)
def predicated(word: Any, engine: str, chip: Chip) -> Cost:
    """Return the cost of a choice by a predicate: two inputs, except where they come from both memories."""
    first, second = tile(word, "src"), _tile(word, "predicate")
    passes = 1.0 if first is None else _passes_of_two(first, second, False, chip)
    passes = passes_apart(word, passes, engine, chip, "src", "predicate", "dst")
    return _on_vector(word, second.elements * passes, "vector_latency", engine, chip)


@costs(isa.BnAggregate)
def bn_aggregate(word: isa.BnAggregate, engine: str, chip: Chip) -> Cost:
    """Return the cost of aggregating statistics, documented per triple."""
    cycles = _tile(word, "src").elements / 3 * figure("bn_aggregate", chip.target)
    return _on_vector(word, cycles, "vector_latency", engine, chip)


@costs(isa.MatMulMx)
def matmul_mx(word: isa.MatMulMx, engine: str, chip: Chip) -> Cost:
    """Return the cost of an MX product: one packed column a cycle."""
    return _paced(_tile(word, "src").elements, "matmul_latency", engine, chip)


@costs(isa.Activate2)
def activate2(word: isa.Activate2, engine: str, chip: Chip) -> Cost:
    """Return the cost of the second activation: that of the first."""
    return activation_cost(_tile(word, "src"), _tile(word, "dst"), engine, chip)


@costs(isa.NGather)
def n_gather(word: isa.NGather, engine: str, chip: Chip) -> Cost:
    """Return the cost of a gather, which starts once for every group of indices."""
    count = _tile(word, "indices").elements
    groups = -(-count // round(figure("gather_group", chip.target)))
    return _on_vector(word, count + (groups - 1) * figure("pool_start", chip.target), "vector_latency", engine, chip)


@costs(isa.LocalGather)
def local_gather(word: isa.LocalGather, engine: str, chip: Chip) -> Cost:
    """Return the documented cost of a gather in groups of 16 partitions."""
    src = _tile(word, "src")
    size = max(src.stride // max(abs(src.step), 1), 1)
    run = max(int(word.run), 1)
    moved = figure("gather_element", chip.target) * run
    share = (figure("gather_setup", chip.target) + moved) / moved / min(4 / size, run)
    return _on_vector(word, int(word.valid) * run / share, "vector_latency", engine, chip)


@costs(isa.TopK)
def top_k(word: isa.TopK, engine: str, chip: Chip) -> Cost:
    """Return the documented cost of the largest elements."""
    cycles = int(word.count) * figure("top_k", chip.target) + _tile(word, "dst").elements
    return _on_vector(word, cycles, "vector_latency", engine, chip)
