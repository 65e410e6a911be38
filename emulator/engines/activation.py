"""Words of the Scalar engine: func(in * scale + bias), its accumulators, its tables.

A table load has no effect on data: functions are bound by the file's own table, whichever set is loaded.
Source: isa.md 7 (21), 11, hardware.md 3.5.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from emulator import activation_functions, alu
from emulator.activation_functions import Activation
from emulator.dtypes import Array, Step, bind_store, chain
from emulator.engines.operands import (
    float_input,
    float_output,
    immediate_float,
    per_partition,
    raw_input,
    raw_view,
    require_elements,
    squeezed,
)
from emulator.engines.reduce import bind_fold
from emulator.engines.registry import executes
from emulator.engines.rows import number_or_column
from emulator.engines.selection import bind_accumulate, start_registers
from emulator.port import Port
from emulator.scratch import scratch
from formats import isa
from formats.errors import UnsupportedError
from formats.isa import AccumulatorCommand, AluOp, ReduceCommand

__all__: list[str] = []

_ONE = np.float32(1.0)
_Activation = isa.Activate | isa.ActivationExtended | isa.Activate2


class _Operands:
    """Input, scale and bias of an activation, and where its result goes."""

    def __init__(self, word: _Activation, port: Port, *, keep: bool = False) -> None:
        self.dst = squeezed(port.write("dst"))
        self.values, self.load = float_input(word, port.read("src"), word.src_dtype, self.dst.shape, "src")
        self.out, self.store = float_output(self.dst, word.dst_dtype)
        if keep and self.store is None:  # the results are needed again, packed
            self.out = scratch(self.dst.shape, np.float32)
            self.store = bind_store(self.out, self.dst, word.dst_dtype)
        self.steps: list[Step | None] = [self.load]

    def scalar(self, word: isa.Instruction, port: Port, name: str, pointer: str) -> Any:
        """Return scale or bias: fp32, one per partition or one for all."""
        column = port.pointer(pointer)
        if column is None:
            return immediate_float(word, name) if name else np.float32(0.0)
        values, refresh = per_partition(word, pointer, column, self.dst.ndim)
        self.steps.append(refresh)
        return values

    def evaluate(self, function: Activation, scale: Any, bias: Any, immediate: float) -> None:
        """Append func(values * scale + bias)."""
        values = self.values
        # Where the input is a view of memory there has to be other room: a word does not change what it reads.
        if self.load is not None:
            room = values
        else:
            room = self.out if self.store is not None else scratch(self.dst.shape, np.float32)
        if not (isinstance(scale, np.float32) and scale == _ONE):
            self.steps.append(partial(np.multiply, values, scale, room))
            values = room
        if not (isinstance(bias, np.float32) and bias == 0.0):
            self.steps.append(partial(np.add, values, bias, room))
            values = room
        self.steps.append(partial(function, values, self.out, immediate))


@executes(isa.Activate, movable=True)
def activate(word: isa.Activate, port: Port) -> Step:
    """Return dst = func(src * scale + bias); the function named copy takes neither scale nor bias."""
    if word.accumulator_command != AccumulatorCommand.IDLE:
        raise UnsupportedError(
            f"ACTIVATE with accumulator command {int(word.accumulator_command)} is not modelled: "
            "the codes are not public"
        )
    function = port.activation(int(word.function))
    if function is activation_functions.COPY:
        return _copy(word, port, function)
    it = _Operands(word, port)
    bias = it.scalar(word, port, "", "bias_pointer")
    it.evaluate(function, np.float32(word.scale), bias, word.immediate)
    return chain(*it.steps, it.store)


def _copy(word: _Activation, port: Port, function: Activation) -> Step:
    """Return a copy: bit for bit from gen3 on, through fp32 before (hardware.md 3.5)."""
    if word.src_dtype == word.dst_dtype and port.generation != "gen2":
        dst = squeezed(port.write("dst"))
        bits, load = raw_input(word, port.read("src"), dst.shape, "src")
        return chain(load, partial(np.copyto, raw_view(dst), bits))
    it = _Operands(word, port)
    it.evaluate(function, _ONE, np.float32(0.0), 0.0)
    return chain(*it.steps, it.store)


@executes(isa.ActivationExtended, movable=True)
def activation_extended(word: isa.ActivationExtended, port: Port) -> Step:
    """Return dst = func(src * scale + bias), folding the results into the accumulators when asked.

    Accumulator i belongs to the i-th partition of the tile. The fold takes fp32 results, before the output's rounding.
    """
    function = port.activation(int(word.function))
    command = word.reduce_command
    if command == ReduceCommand.IDLE and function is activation_functions.COPY:
        return _copy(word, port, function)
    it = _Operands(word, port, keep=command in (ReduceCommand.REDUCE, ReduceCommand.RESET_REDUCE))
    if function is activation_functions.COPY:
        it.evaluate(function, _ONE, np.float32(0.0), 0.0)
    else:
        scale = it.scalar(word, port, "scale", "scale_pointer")
        it.evaluate(function, scale, it.scalar(word, port, "bias", "bias_pointer"), 0.0)
    return chain(*it.steps, _accumulate(word, port.accumulators, it.out), it.store)


def _accumulate(word: isa.ActivationExtended, accumulators: Array, results: Array) -> Step | None:
    command, lanes = word.reduce_command, accumulators[: results.shape[0]]
    if command == ReduceCommand.IDLE:
        return None
    if command == ReduceCommand.RESET:
        return partial(lanes.fill, 0.0)
    if command not in (ReduceCommand.REDUCE, ReduceCommand.RESET_REDUCE):
        raise UnsupportedError(f"ACTIVATION_EXTENDED: reduce command {int(command)} is not modelled")
    op = alu.alu_op(word.reduce_op)
    total = scratch((results.shape[0], 1), np.float32)
    fold = bind_fold(op, results.reshape(results.shape[0], 1, -1), total)
    if command == ReduceCommand.RESET_REDUCE:
        return chain(fold, partial(np.copyto, lanes, total[:, 0]))
    return chain(fold, partial(alu.float32(op), lanes, total[:, 0], lanes))


@executes(isa.ActivationReadAccumulator, movable=True)
def activation_read_accumulator(word: isa.ActivationReadAccumulator, port: Port) -> Step:
    """Return dst = the accumulator of each partition."""
    dst = squeezed(port.write("dst"))
    require_elements(word, "dst", dst, 1)
    return bind_store(port.accumulators[: dst.shape[0]].reshape(dst.shape, copy=False), dst, word.dst_dtype)


@executes(isa.Activate2, movable=True)
def activate2(word: isa.Activate2, port: Port) -> Step:
    """Return dst = func((src op0 a) op1 b), folding the results into the accumulators when asked."""
    function = port.activation(int(word.function))
    if word.reduce_command == ReduceCommand.LOAD_REDUCE:
        raise UnsupportedError("ACTIVATE2 with LOAD_REDUCE is not documented")
    it = _Operands(word, port, keep=True)
    rows = scratch((it.dst.shape[0], it.dst[0].size), np.float32)
    steps = [*it.steps, partial(np.copyto, rows.reshape(it.dst.shape), it.values)]
    for code, name, reverse in ((word.op0, "immediate0", word.reverse0), (word.op1, "immediate1", word.reverse1)):
        op = alu.alu_op(code)
        if op is not AluOp.BYPASS:
            operand, refresh = number_or_column(word, port, name)
            left, right = (operand, rows) if reverse else (rows, operand)
            steps += [refresh, partial(alu.float32(op), left, right, rows)]
    parameter, refresh = number_or_column(word, port, "parameter")
    results = it.out.reshape(rows.shape)
    steps += [refresh, partial(function, rows, results, parameter)]
    lanes = port.accumulators[: rows.shape[0]]
    steps.append(start_registers(word, port, lanes))
    if word.reduce_command in (ReduceCommand.REDUCE, ReduceCommand.RESET_REDUCE):
        steps.append(bind_accumulate(word, alu.alu_op(word.reduce_op), lanes, rows=results))
    return chain(*steps, it.store)
