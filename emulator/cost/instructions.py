"""Cost of every instruction class, over the rows of `figures`. Source: hardware.md 3, 5, 10.

Most classes declare theirs (`COST`); those with modes of their own have a function here or in `extensions`.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

from emulator.cost.cold import DOORBELL, GENERATE, PAUSE, REGISTER, ROWS
from emulator.cost.figures import figure
from emulator.cost.model import Chip, Cost, cost_of, costs, costs_of
from emulator.cost.strides import is_strided, passes_apart, strided
from emulator.cost.tiles import Tile, tile, tiles
from formats import isa
from formats.dtypes import Dtype
from formats.isa import AluOp, Fp32Pass
from formats.neuron_core import PARTITIONS

__all__ = ["shown_ps"]

_PLAIN_OPS = frozenset((AluOp.ADD, AluOp.MULTIPLY, AluOp.SUBTRACT))
_FOLDS = frozenset((AluOp.ADD, AluOp.MAX))
_FP32 = frozenset((Dtype.FLOAT32,))
_LEAST_ROWS = PARTITIONS  # of a transfer: fewer take a generator no less, as far as captures show
# How long a word that rings bells takes: two registers, one, and until the next word.
_TRIGGERS = {
    "Pool":       ("trigger_pool",   "trigger_pool_single",   "trigger_pool_interval"),
    "SP":         ("trigger_sync",   "trigger_sync_single",   "trigger_sync_interval"),
    "Activation": ("trigger_scalar", "trigger_scalar_single", "trigger_scalar_interval"),
    "DVE":        ("trigger_vector", "trigger_vector_single", "trigger_vector_interval"),
    "PE":         ("trigger_tensor", "trigger_tensor_single", "trigger_tensor_interval"),
}  # fmt: skip
_FP32_PASSES = {int(Fp32Pass.LOW_HIGH): "fp32_pass", int(Fp32Pass.NONE): "fp32_whole"}


def _ps(ns: float) -> int:
    return round(ns * 1000)


def _fixed(name: str, chip: Chip) -> Cost:
    """Return a cost that is one duration."""
    duration = _ps(figure(name, chip.target))
    return Cost(duration, duration)


def _timed(duration: str, interval: str, chip: Chip) -> Cost:
    """Return a cost of a duration, and another time until the next word."""
    return Cost(_ps(figure(interval, chip.target)), _ps(figure(duration, chip.target)))


def _paced(cycles: float, latency: str, engine: str, chip: Chip, gap: float = 0.0) -> Cost:
    """Return interval and latency of work that takes `cycles`, with the fixed latency of that name.

    `gap` is how many cycles after the work the next word of the engine can start.
    """
    clock, target = chip.clock_ghz(engine), chip.target
    if engine == "Pool":
        total = _ps((figure("pool_start", target) + cycles) / clock)
        return Cost(total, total, _ps(cycles / clock))
    interval = max(cycles + gap, figure("minimum_interval", target)) / clock
    return Cost(_ps(interval), _ps(figure(latency, target) + cycles / clock), _ps(cycles / clock))


def _on_vector(word: isa.Instruction, cycles: float, latency: str, engine: str, chip: Chip) -> Cost:
    """Return the cost of a word of the Vector engine (or GpSimd, or Scalar) that touches memory."""
    gap = figure("scalar_gap" if engine == "Activation" else "vector_gap", chip.target)
    if engine == "DVE" and _has_pointer(word):
        gap += figure("vector_pointer_gap", chip.target)
    from_psum = engine == "Activation" and any(
        one.in_psum for one in tiles(word, *(name for name in word.OPERANDS if name.startswith("src")))
    )
    return _in_order(_paced(cycles, latency, engine, chip, gap), engine, chip, from_psum)


def _in_order(cost: Cost, engine: str, chip: Chip, from_psum: bool) -> Cost:
    """Return a cost whose writes leave behind those of the word before.

    Words of Scalar that read PSUM issue a little faster than they complete; its results wait up to a word's time.
    """
    if engine == "Pool" or chip.generation == "gen2":
        return cost  # one word at a time; and nothing of the kind was captured on trn1
    apart = cost.work_ps
    if engine == "Activation" and from_psum:
        apart = cost.interval_ps + _ps(figure("scalar_psum_behind", chip.target))
    return cost._replace(apart_ps=apart, lag_ps=apart)


def _has_pointer(word: isa.Instruction) -> bool:
    """Return whether a value per partition is an operand besides the tiles."""
    return any(isinstance(field, isa.Pointer) and word.uses(name) for name, field in word.OPERANDS.items())


def _passes_of_two(first: Tile, second: Tile, plain: bool, chip: Chip, name: str = "two_inputs") -> float:
    """Return how often the elements pass: once where one input is in PSUM or `plain` holds, else as a figure says."""
    return 1.0 if first.in_psum != second.in_psum or plain else figure(name, chip.target)


def _passing(cost: isa.Passes, word: isa.Instruction, engine: str, chip: Chip) -> Cost:
    """Return the cost of passes over a tile, as the class of the word declares it."""
    over = tile(word, cost.over)
    passes = figure(cost.figure, chip.target) if cost.figure else 1.0
    elements = 0 if over is None else over.elements
    cycles = elements * passes_apart(word, passes, engine, chip, *cost.slowed_by)
    return _on_vector(word, cycles, cost.latency, engine, chip)


def _lasting(cost: isa.Duration, word: isa.Instruction, engine: str, chip: Chip) -> Cost:
    """Return the cost of a fixed time, as the class of the word declares it."""
    if cost.figure == "control":
        name = {"DVE": "control_vector", "SP": "control_sync"}.get(engine, "control")
        return _timed(name, "control_interval", chip)
    return _fixed(cost.figure, chip)


_cls: type[isa.Instruction]
for _cls in (*isa.CLASSES, isa.Unknown):
    if isinstance(_cls.COST, isa.Passes):
        costs(_cls)(partial(_passing, _cls.COST))
    elif isinstance(_cls.COST, isa.Duration):
        costs(_cls)(partial(_lasting, _cls.COST))


@costs(isa.LoadWeights)
def load_weights(word: isa.LoadWeights, engine: str, chip: Chip) -> Cost:
    """Return the cost of a load: a few nanoseconds where it runs behind the matmul before it.

    Where it does not, the next matmul waits for it (`contention`).
    """
    (src,) = tiles(word, "src")
    share, passes, rate = figure("load_weights_share", chip.target), 1.0, "load_strided_rate"
    apart = is_strided(src, chip)
    if word.dtype in _FP32:
        name = "load_transpose_fp32" if word.transpose_mode else "load_weights_fp32"
        share = passes = figure(name, chip.target)
        rate = "load_strided_rate_fp32"
    elif apart:
        share = figure("load_strided_share", chip.target)
    work = _ps(src.elements * share / chip.clock_ghz(engine))
    read = _ps(src.elements * src.size * passes / figure(rate, chip.target)) if apart else 0
    latency = _ps(figure("load_weights_latency", chip.target)) + work
    return Cost(_ps(figure("load_weights_exposed", chip.target)), max(latency, read), work, weights=True, read_ps=read)


@costs(isa.MatMul)
def matmul(word: isa.MatMul, engine: str, chip: Chip) -> Cost:
    """Return the cost of a matmul: one column a cycle, more passes for fp32."""
    passes = 1.0
    if word.dtype in _FP32:
        name = "fp32_pass" if word.transpose_mode else _FP32_PASSES.get(int(word.fp32_mode), "fp32_half_pass")
        passes = figure(name, chip.target)
    return _paced(word.src.elements * passes, "matmul_latency", engine, chip)


@costs(isa.Copy, isa.Cast, isa.TensorScalar)
def one_input(word: Any, engine: str, chip: Chip) -> Cost:
    """Return the cost of a copy, a cast or a tile with scalars, in the fastest mode whose conditions hold."""
    src, dst = tiles(word, "src", "dst")
    if engine == "Activation":
        cycles = src.elements / _activation_speed(src, dst, chip)
        return strided(_on_vector(word, cycles, "scalar_copy_latency", engine, chip), [src], dst, engine, chip)
    name = "tensor_scalar_latency" if isinstance(word, isa.TensorScalar) else "vector_latency"
    speed = _vector_speed(src, dst, chip) if engine == "DVE" else 1.0
    cost = _on_vector(word, src.elements / speed, name, engine, chip)._replace(fast=speed > 1.0)
    return strided(cost, [src], dst, engine, chip)


def _vector_speed(src: Tile, dst: Tile, chip: Chip) -> float:
    if chip.generation == "gen2":
        return 1.0
    eight = chip.generation == "gen4"
    wide = all(t.is_wide16 or (eight and t.is_wide8) for t in (src, dst))
    contiguous = src.contiguous and dst.contiguous
    if wide and contiguous and not src.in_psum and not dst.in_psum:
        return figure("wide_quadruple", chip.target)
    if wide and (src.in_psum != dst.in_psum if contiguous else not (src.in_psum or dst.in_psum)):
        return figure("wide_double", chip.target)
    if src.is_wide16 and dst.is_wide8 and contiguous and not (src.in_psum or dst.in_psum):
        return figure("wide_double", chip.target)
    # fp32 has this speed, and narrower floats on either side need no more of the memory.
    if all(t.is_float for t in (src, dst)) and not (src.in_psum or dst.in_psum):
        double = figure("single_double", chip.target)
        # Its lower rate for elements far apart is one of this speed, not of the plain one; nearer ones lose no more.
        near = contiguous or is_strided(src, chip) or is_strided(dst, chip)
        return double if near else max(1 / figure("vector_strided_read", chip.target), 1.0)
    return 1.0


def _activation_speed(src: Tile, dst: Tile, chip: Chip) -> float:
    fast = chip.generation == "gen4" and all(t.is_wide16 or t.is_wide8 for t in (src, dst))
    return figure("activation_double", chip.target) if fast else 1.0


@costs(isa.TensorTensor)
def tensor_tensor(word: isa.TensorTensor, engine: str, chip: Chip) -> Cost:
    """Return the cost of an operator on two tiles."""
    src0, src1, dst = every = tiles(word, "src0", "src1", "dst")
    if chip.generation == "gen2":
        plain = (
            all(t.dtype == Dtype.BFLOAT16 and t.contiguous for t in every)
            and word.op in _PLAIN_OPS
            and not (src0.in_psum or src1.in_psum)
        )
    else:
        eight = chip.generation == "gen4"
        plain = all(t.is_wide16 or (eight and t.is_wide8) for t in every) and not (src0.in_psum or src1.in_psum)
    once = src0.in_psum != src1.in_psum or (plain and engine == "DVE")
    passes = figure("two_tensors", chip.target) if engine == "DVE" else figure("two_inputs", chip.target)
    cost = _on_vector(word, dst.elements * (1.0 if once else passes), "vector_latency", engine, chip)
    cost = cost._replace(fast=plain and engine == "DVE" and chip.generation != "gen2")
    return strided(cost, [src0, src1], dst, engine, chip)


@costs(isa.ScalarTensorTensor)
def scalar_tensor_tensor(word: isa.ScalarTensorTensor, engine: str, chip: Chip) -> Cost:
    """Return the cost of a scalar and a tile operator in one."""
    src, src1, dst = tiles(word, "src", "src1", "dst")
    plain = (
        src.dtype == src1.dtype == Dtype.BFLOAT16
        and word.op0 == AluOp.SUBTRACT
        and word.op1 == AluOp.MULTIPLY
        and dst.elements % 2 == 0
    )
    passes = _passes_of_two(src, src1, plain, chip, "scalar_two_tensors")
    cycles = dst.elements * passes_apart(word, passes, engine, chip, "src", "src1", "dst")
    return _on_vector(word, cycles, "scalar_tensor_latency", engine, chip)


@costs(isa.Select)
def select(word: isa.Select, engine: str, chip: Chip) -> Cost:
    """Return the cost of a choice: one pass where input and predicate are in different memories."""
    predicate, src, dst = tiles(word, "predicate", "src", "dst")
    passes = _passes_of_two(predicate, src, False, chip)
    passes = passes_apart(word, passes, engine, chip, "predicate", "src", "on_false_tile", "dst")
    return _on_vector(word, dst.elements * passes, "vector_latency", engine, chip)


@costs(isa.TensorReduce)
def tensor_reduce(word: isa.TensorReduce, engine: str, chip: Chip) -> Cost:
    """Return the cost of a fold: half for bf16 sums and maxima."""
    src, dst = tiles(word, "src", "dst")
    halved = src.dtype == dst.dtype == Dtype.BFLOAT16 and word.op in _FOLDS
    passes = figure("halved", chip.target) if halved else 1.0
    passes = passes_apart(word, passes, engine, chip, "src")
    return _on_vector(word, src.elements * passes, "tensor_reduce_latency", engine, chip)


@costs(isa.Memset)
def memset(word: isa.Memset, engine: str, chip: Chip) -> Cost:
    """Return the cost of a fill: half for zeros of a 16-bit float type."""
    (dst,) = tiles(word, "dst")
    halved = dst.is_wide16 and not word.value_is_integer and word.value == 0 and engine == "DVE"
    passes = figure("halved", chip.target) if halved else 1.0
    passes = passes_apart(word, passes, engine, chip, "dst")
    return _on_vector(word, dst.elements * passes, "vector_latency", engine, chip)


@costs(isa.Activate, isa.ActivationExtended)
def activate(word: Any, engine: str, chip: Chip) -> Cost:
    """Return the cost of an activation; folding into the accumulators is free."""
    src, dst = tiles(word, "src", "dst")
    return activation_cost(src, dst, engine, chip)


def activation_cost(src: Tile, dst: Tile, engine: str, chip: Chip) -> Cost:
    """Return the cost of a function over a tile; what comes from PSUM starts a little earlier."""
    cycles = src.elements / _activation_speed(src, dst, chip)
    if src.in_psum:
        gap = figure("activation_psum_gap", chip.target)
        cost = _paced(cycles, "activation_psum_latency", engine, chip, gap)
    else:
        cost = _paced(cycles, "activation_latency", engine, chip, figure("activation_gap", chip.target))
    return strided(_in_order(cost, engine, chip, src.in_psum), [src], dst, engine, chip)


@costs(isa.ActivationReadAccumulator)
def read_accumulator(word: isa.ActivationReadAccumulator, engine: str, chip: Chip) -> Cost:
    """Return the cost of storing the accumulators."""
    return _paced(figure("read_accumulator", chip.target), "activation_latency", engine, chip)


@costs(isa.Nop)
def nop(word: isa.Nop, engine: str, chip: Chip) -> Cost:
    """Return the cost of a pause of so many cycles."""
    cost, pause = _timed("nop", "nop_interval", chip), _ps(word.cycle / chip.clock_ghz(engine))
    return Cost(cost.interval_ps + pause, cost.latency_ps + pause, cold=(PAUSE,))


@costs(isa.PseudoDmaTrigger, isa.TensorStore, isa.Collective)
def trigger(word: isa.Instruction, engine: str, chip: Chip) -> Cost:
    """Return the cost, to the engine, of telling a queue or a device register something."""
    both, _, interval = _TRIGGERS[engine]
    return _timed(both, interval, chip)._replace(cold=(DOORBELL, REGISTER))


@costs(isa.Write)
def write(word: isa.Write, engine: str, chip: Chip) -> Cost:
    """Return the cost of a write: a doorbell of a queue has one register or two."""
    if word.size1:
        return trigger(word, engine, chip)
    _, one, interval = _TRIGGERS[engine]
    shorter = figure(interval, chip.target) - figure("trigger_second", chip.target)
    return Cost(_ps(shorter), _ps(figure(one, chip.target)), cold=(DOORBELL,))


@costs(isa.PseudoDmaDirect2d, isa.DmaDirect2d, isa.DmaIndirect, isa.SendReceive)
def direct(word: isa.Instruction, engine: str, chip: Chip) -> Cost:
    """Return the cost, to the engine, of a transfer whose descriptors are made now."""
    target = chip.target
    if engine == "Pool":
        return Cost(_ps(figure("generate_software", target)), _ps(figure("generate_first", target)), cold=(GENERATE,))
    rows = max(
        (prod(each.pattern.counts) for each in word.writes if isinstance(each, isa.DmaAccess)), default=_LEAST_ROWS
    )
    rows = max(rows, _LEAST_ROWS)
    took = figure("generate_hardware", target) + figure("generate_row", target) * rows
    cold = (GENERATE,) if rows <= _LEAST_ROWS else (GENERATE, ROWS)
    return Cost(_ps(took + figure("generate_gap", target)), _ps(took), cold=cold)


def shown_ps(word: isa.Instruction, engine: str, chip: Chip) -> int | None:
    """Return how long profiles show a word that ends otherwise than it completes here; None where they agree.

    They show the last part only of a trigger on GpSimd. A word without data ends when it is through itself, also where
    words before it are not, behind which it completes here.
    """
    function = costs_of(type(word))
    if function is direct and engine == "Pool":
        return _ps(figure("software_word", chip.target))
    return cost_of(word, engine, chip).latency_ps if function in (direct, write) else None
