"""Words of the Vector engine that choose or scale elements and fold them into its accumulator registers.

Folds run left to right in fp32 over the results before the output's rounding: published advice for masks with a fill of
the least fp32 number needs that. Source: hardware.md 5.1, 5.2, 5.5, nki.isa pages.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from emulator import alu
from emulator.dtypes import Array, Step, bind_store, chain
from emulator.engines.operands import (
    elements,
    float_input,
    immediate_integer,
    raw_input,
    raw_view,
    require_elements,
    scalar_bits,
    squeezed,
)
from emulator.engines.reduce import bind_fold
from emulator.engines.registry import executes
from emulator.engines.rows import float_rows, float_rows_out, number_or_column
from emulator.port import Port
from emulator.scratch import scratch
from formats import isa
from formats.errors import UnsupportedError
from formats.isa import AluOp, ReduceCommand
from formats.isa.extension_select import Accumulating

__all__ = ["bind_accumulate", "identity_of", "start_registers"]

# What registers begin with. Source: nki.isa pages; magnitudes begin with the value that any other replaces (inferred).
_IDENTITY = {
    AluOp.ADD: 0.0,
    AluOp.SUBTRACT: 0.0,
    AluOp.MULTIPLY: 1.0,
    AluOp.MAX: -np.inf,
    AluOp.MIN: np.inf,
    AluOp.ABS_MAX: 0.0,
    AluOp.ABS_MIN: np.inf,
}


def identity_of(word: isa.Instruction, op: AluOp) -> np.float32:
    """Return the value from which an operator's fold begins."""
    if op not in _IDENTITY:
        raise UnsupportedError(f"{word.NAME}: {op.name} cannot accumulate")
    return np.float32(_IDENTITY[op])


def start_registers(word: Accumulating | isa.Activate2, port: Port, lanes: Array) -> Step | None:
    """Return the step that prepares the registers of a word that accumulates."""
    command = word.reduce_command
    if command in (ReduceCommand.RESET, ReduceCommand.RESET_REDUCE):
        return partial(lanes.fill, identity_of(word, alu.alu_op(word.reduce_op)))
    if command == ReduceCommand.LOAD_REDUCE:
        value, load = number_or_column(word, port, "initial")
        column = value[:, 0] if isinstance(value, np.ndarray) else value
        return chain(load, partial(np.copyto, lanes, column))
    if command not in (ReduceCommand.IDLE, ReduceCommand.REDUCE):
        raise UnsupportedError(f"{word.NAME}: reduce command {int(command)} is not known")
    return None


def bind_accumulate(word: Accumulating | isa.Activate2, op: AluOp, lanes: Array, rows: Array) -> Step:
    """Return the step that folds fp32 `rows` (partitions, elements) into the registers, which come first."""
    identity_of(word, op)
    joined = scratch((rows.shape[0], 1, rows.shape[1] + 1), np.float32)
    total = scratch((rows.shape[0], 1), np.float32)
    return chain(
        partial(np.copyto, joined[:, 0, 0], lanes),
        partial(np.copyto, joined[:, 0, 1:], rows),
        bind_fold(op, joined, total),
        partial(np.copyto, lanes, total[:, 0]),
    )


def _fold(word: Accumulating, port: Port, rows: Array, negate: bool = False) -> Step | None:
    """Return the steps that fold the results and store the registers, as the word says."""
    lanes = port.accumulators[: rows.shape[0]]
    steps = [start_registers(word, port, lanes)]
    if word.reduce_command not in (ReduceCommand.IDLE, ReduceCommand.RESET):
        steps.append(bind_accumulate(word, alu.alu_op(word.reduce_op), lanes, rows))
    return chain(*steps, _store_registers(word, port, lanes, negate))


def _store_registers(word: Accumulating, port: Port, lanes: Array, negate: bool = False) -> Step | None:
    if not word.uses("reduce_res"):
        return None
    result = port.write("reduce_res")
    require_elements(word, "reduce_res", result, 1)
    out, store = float_rows_out(result, word.reduce_res_dtype)
    read = partial(np.negative, lanes, out[:, 0]) if negate else partial(np.copyto, out[:, 0], lanes)
    return chain(read, store)


@executes(isa.CopyPredicated, movable=True)
def copy_predicated(word: isa.CopyPredicated, port: Port) -> Step:
    """Return dst = src, or the value, where the predicate holds; other elements stay."""
    dst = squeezed(port.write("dst"))
    test, load_test = raw_input(word, port.read("predicate"), dst.shape, "predicate")
    mask = scratch(dst.shape, np.bool_)
    decide = partial(np.equal if word.reverse else np.not_equal, test, 0, mask)
    if word.uses("src"):
        if word.src_dtype != word.dst_dtype:
            raise UnsupportedError("COPY_PREDICATED between element types is not modelled: they must be equal")
        bits, load = raw_input(word, port.read("src"), dst.shape, "src")
    else:
        value = immediate_integer(word, "value", signed=True) if word.value_is_integer else word.value
        bits, load = scalar_bits(value, word.dst_dtype), None
    return chain(load_test, load, decide, partial(np.copyto, raw_view(dst), bits, where=mask))


@executes(isa.SelectReduce, movable=True)
def select_reduce(word: isa.SelectReduce, port: Port) -> Step:
    """Return dst = src where the predicate holds, else the operand."""
    dst = port.write("dst")
    shape = squeezed(dst).shape
    test, load_test = raw_input(word, port.read("predicate"), shape, "predicate")
    chosen, load = float_input(word, port.read("src"), word.src_dtype, shape, "src")
    other, load_other = number_or_column(word, port, "immediate0")
    values = scratch(shape, np.float32)
    rows = values.reshape(shape[0], -1)
    mask = scratch(shape, np.bool_)
    decide = partial(np.equal if word.reverse else np.not_equal, test, 0, mask)
    return chain(
        load_test,
        load,
        load_other,
        decide,
        partial(np.copyto, rows, other),
        partial(np.copyto, values, chosen, where=mask),
        _fold(word, port, rows),
        bind_store(values, squeezed(dst), word.dst_dtype),
    )


_BOUNDS = frozenset((AluOp.EQUAL, AluOp.LESS, AluOp.LESS_EQUAL, AluOp.GREATER, AluOp.GREATER_EQUAL))


@executes(isa.RangeSelect, movable=True)
def range_select(word: isa.RangeSelect, port: Port) -> Step:
    """Return dst = src where (place op0 bound0) and (place op1 bound1), else the fill; compared in fp32."""
    ops = alu.alu_op(word.op0), alu.alu_op(word.op1)
    if not _BOUNDS.issuperset(ops):
        raise UnsupportedError(f"RANGE_SELECT with {ops[0].name} and {ops[1].name} is not documented")
    dst = port.write("dst")
    chosen, load = float_rows(port.read("src"), word.src_dtype)
    require_elements(word, "src", port.read("src"), elements(dst))
    values, store = float_rows_out(dst, word.dst_dtype)
    places = np.arange(chosen.shape[1], dtype=np.float32) + np.float32(word.start)
    inside, other = scratch(values.shape, np.bool_), scratch(values.shape, np.bool_)
    steps: list[Step | None] = [load]
    for op, name, result in ((ops[0], "bound0", inside), (ops[1], "bound1", other)):
        column, refresh = number_or_column(word, port, name)
        steps += [refresh, partial(alu.float32(op), places, column, result)]
    return chain(
        *steps,
        partial(np.logical_and, inside, other, inside),
        partial(values.fill, np.float32(word.fill)),
        partial(np.copyto, values, chosen, where=inside),
        _fold(word, port, values),
        store,
    )


def _with_operand(word: Accumulating, port: Port, op: AluOp) -> tuple[Array, Step, Step]:
    """Return fp32 results of src op operand, the step that computes them, and the one that stores them."""
    dst = port.write("dst")
    src = port.read("src")
    require_elements(word, "src", src, elements(dst))
    values, load = float_rows(src, word.src_dtype)
    operand, refresh = number_or_column(word, port, "immediate0")
    results, store = float_rows_out(dst, word.dst_dtype)
    return results, chain(load, refresh, partial(alu.float32(op), values, operand, results)), store


@executes(isa.TensorScalarReduce, movable=True)
def tensor_scalar_reduce(word: isa.TensorScalarReduce, port: Port) -> Step:
    """Return dst = src op0 operand, folded into the registers."""
    results, compute, store = _with_operand(word, port, alu.alu_op(word.op0))
    return chain(compute, _fold(word, port, results, bool(word.negate)), store)


_RUNNING = {AluOp.ADD: np.add, AluOp.MULTIPLY: np.multiply, AluOp.MAX: np.maximum, AluOp.MIN: np.minimum}


@executes(isa.TensorScalarCumulative, movable=True)
def tensor_scalar_cumulative(word: isa.TensorScalarCumulative, port: Port) -> Step:
    """Return dst[i] = register = (src[i] op0 operand) op register."""
    op = alu.alu_op(word.reduce_op)
    if op not in _RUNNING and op is not AluOp.SUBTRACT:
        raise UnsupportedError(f"TENSOR_SCALAR_CUMULATIVE with {op.name} is not documented")
    results, compute, store = _with_operand(word, port, alu.alu_op(word.op0))
    lanes = port.accumulators[: results.shape[0]]

    def run() -> None:
        columns = results.T
        if op is AluOp.SUBTRACT:  # the register stands on the right
            previous = lanes
            for column in columns:
                np.subtract(column, previous, column)
                previous = column
        else:
            # The register stands in front of the first element, and each element in front of the next one.
            _RUNNING[op](columns[0], lanes, out=columns[0])
            _RUNNING[op].accumulate(results, 1, None, results)
        np.copyto(lanes, columns[-1])

    return chain(compute, start_registers(word, port, lanes), run, _store_registers(word, port, lanes), store)


@executes(isa.Exponential, movable=True)
def exponential(word: isa.Exponential, port: Port) -> Step:
    """Return dst = exp(src - operand), summed into the registers."""
    results, compute, store = _with_operand(word, port, AluOp.SUBTRACT)
    return chain(compute, partial(np.exp, results, results), _fold(word, port, results), store)
