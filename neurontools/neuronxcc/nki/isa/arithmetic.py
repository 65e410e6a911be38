"""Instructions that compute every element by itself."""

from __future__ import annotations

from typing import Any

from neurontools.neuronxcc.nki.isa import constants
from neurontools.neuronxcc.nki.isa.operands import column, on_chip, pair, token
from neurontools.neuronxcc.nki.refusals import refuse_unknown
from neurontools.neuronxcc.nki.tile import Tile, materialize
from neurontools.nki import isa
from neurontools.nki import language as nl
from neurontools.nki.dtype import dtype_of, promote
from neurontools.nki.isa import unknown_engine
from neurontools.nki.operators import operator_of

__all__ = [
    "activation",
    "activation_reduce",
    "dropout",
    "reciprocal",
    "scalar_tensor_tensor",
    "tensor_scalar",
    "tensor_tensor",
]


def tensor_tensor(
    data1: Tile,
    data2: Tile,
    op: Any,
    *,
    dtype: Any = None,
    mask: Any = None,
    engine: Any = unknown_engine,
    **unused: Any,
) -> Tile:
    """Return data1 op data2."""
    data1, data2 = pair(on_chip(data1), on_chip(data2))
    return materialize(
        data1.shape,
        dtype or promote(data1.dtype, data2.dtype),
        mask,
        lambda dst, a, b: isa.tensor_tensor(dst, a, b, token(op), engine=engine),
        data1,
        data2,
        apart=True,
    )


def tensor_scalar(
    data: Tile,
    op0: Any,
    operand0: Any,
    reverse0: bool = False,
    op1: Any = None,
    operand1: Any = None,
    reverse1: bool = False,
    *,
    dtype: Any = None,
    mask: Any = None,
    engine: Any = unknown_engine,
    **unused: Any,
) -> Tile:
    """Return (data op0 operand0) op1 operand1."""
    second = {} if op1 is None else {"op1": token(op1)}

    def emit(dst: Any, source: Any, first: Any, other: Any) -> None:
        extra = second if not second else {**second, "operand1": other, "reverse1": reverse1}
        isa.tensor_scalar(dst, source, token(op0), first, reverse0, engine=engine, **extra)

    data = on_chip(data)
    first, other = (column(value, bits=_on_bits(op)) for value, op in ((operand0, op0), (operand1, op1)))
    return materialize(data.shape, dtype or data.dtype, mask, emit, data, first, other, apart=True)


def _on_bits(op: Any) -> bool:
    found = operator_of(token(op))
    return found is not None and found.kind == "bitvec"


def scalar_tensor_tensor(
    *,
    data: Tile,
    op0: Any,
    operand0: Any,
    op1: Any,
    operand1: Any,
    reverse0: bool = False,
    reverse1: bool = False,
    dtype: Any = None,
    mask: Any = None,
    **unused: Any,
) -> Tile:
    """Return (data op0 operand0) op1 operand1 with a tile as the last operand."""

    def emit(dst: Any, source: Any, first: Any, other: Any) -> None:
        isa.scalar_tensor_tensor(dst, source, token(op0), first, token(op1), other, reverse0, reverse1)

    data, operand0 = on_chip(data), column(operand0)
    return materialize(data.shape, dtype or data.dtype, mask, emit, data, operand0, operand1, apart=True)


def activation(
    op: Any,
    data: Tile,
    *,
    bias: Any = None,
    scale: Any = 1.0,
    reduce_op: Any = None,
    reduce_res: Any = None,
    reduce_cmd: Any = constants.reduce_cmd.idle,
    dtype: Any = None,
    mask: Any = None,
    **unused: Any,
) -> Tile:
    """Return op(data * scale + bias)."""

    def emit(dst: Any, source: Any, offset: Any, factor: Any, result: Any = None) -> None:
        isa.activation(dst, token(op), source, offset, factor, token(reduce_op), result, reduce_cmd)

    data = on_chip(data)
    idle = reduce_cmd is constants.reduce_cmd.idle and reduce_res is None  # then the boxes of a mask are apart
    return materialize(
        data.shape, dtype or data.dtype, mask, emit, data, bias, column(scale), apart=idle, folded=reduce_res
    )


def activation_reduce(
    op: Any,
    data: Tile,
    *,
    reduce_op: Any,
    reduce_res: Any = None,
    bias: Any = None,
    scale: Any = 1.0,
    dtype: Any = None,
    mask: Any = None,
    **unused: Any,
) -> Tile:
    """Return op(data * scale + bias), and its reduction in reduce_res."""

    def emit(dst: Any, source: Any, offset: Any, factor: Any, result: Any) -> None:
        isa.activation_reduce(dst, token(op), source, token(reduce_op), result, offset, factor)

    data = on_chip(data)
    result = reduce_res if reduce_res is not None else Tile(nl.ndarray((data.shape[0], 1), nl.float32, nl.sbuf))
    return materialize(data.shape, dtype or data.dtype, mask, emit, data, bias, column(scale), folded=result)


def reciprocal(data: Tile, *, dtype: Any = None, mask: Any = None, **unused: Any) -> Tile:
    """Return 1 / data."""
    return materialize(data.shape, dtype or data.dtype, mask, isa.reciprocal, on_chip(data), apart=True)


def dropout(data: Tile, prob: Any, *, mask: Any = None, dtype: Any = None, **unused: Any) -> Tile:
    """Return data with elements zeroed at random."""
    dropped = materialize(data.shape, data.dtype, mask, lambda dst, a, p: isa.dropout(dst, a, p), data, prob)
    if dtype is None or dtype_of(dtype) is data.dtype:
        return dropped
    cast = dropped.astype(dtype)  # the word keeps the type of its data
    cast.valid = dropped.valid
    return cast


refuse_unknown(globals())
