"""Element-wise functions: what calling an operator (`nl.add(a, b)`, `nl.exp(x)`) does."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

from formats import isa as words
from neurontools.builder.trace import Space, View
from neurontools.nki.dtype import DType, bool_, dtype_of, float32, promote, scalar_dtype
from neurontools.nki.isa.activations import activation
from neurontools.nki.isa.checks import number, tile
from neurontools.nki.isa.moves import memset, of_type, tensor_copy
from neurontools.nki.isa.vector import reciprocal, tensor_scalar, tensor_tensor
from neurontools.nki.language.movement import cast, in_sbuf, load, partition_broadcast, store, stretch
from neurontools.nki.operations import OPERATIONS
from neurontools.nki.operators import OPERATORS, Operator
from neurontools.nki.storage import new_tensor
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, tracer

__all__ = ["binary", "combine", "unary", "where"]

_WIDE = frozenset({"int32", "uint32"})
_QUOTIENTS = ("divide", "power")
_WHOLE = ("floor", "ceil", "trunc")  # which leave integers as they are


def _on_chip(t: Tracer, op: Operator, argument: str, x: Any) -> NkiTensor:
    """Return an operand where engines reach it: one in HBM is loaded first, as AWS's simulator computes on it."""
    if not isinstance(x, NkiTensor):
        raise t.error(f"nl.{op.name}: {argument} is {x!r}, must be a tensor")
    return x if x.on_chip else load(x)


def unary(op: Operator, x: Any, dtype: Any = None) -> NkiTensor:
    """Return a new SBUF tile of op(x), of the type of `x` unless given."""
    t = tracer()
    x = _on_chip(t, op, "x", x)
    kind = x.dtype if dtype is None else dtype_of(dtype)
    # The tables of the Scalar engine take fp32, which does not hold all integers of 32 bits.
    same = x.dtype.is_int and (op.name in _WHOLE or (op.name == "abs" and x.dtype.startswith("uint")))
    if not same and x.dtype in _WIDE and op.name in _WIDE_UNARY:
        return cast(t, _WIDE_UNARY[op.name](t, x), kind)
    result = new_tensor(t, x.shape, kind)
    if same or op.name == "copy":
        tensor_copy(result, x)
    elif op.name == "reciprocal":
        reciprocal(result, x)
    elif op.name == "negative":
        tensor_scalar(result, x, OPERATORS["multiply"], -1.0)
    elif op.name == "invert" and x.dtype == bool_:  # as NumPy has it: the bits of a true 1 would leave it true
        tensor_scalar(result, x, OPERATORS["logical_not"], None)
    elif op.name == "invert":
        if kind != x.dtype:
            return cast(t, unary(op, x), kind)
        mask = -1 if x.dtype.startswith("int") else (1 << 8 * x.dtype.itemsize) - 1
        tensor_scalar(result, x, OPERATORS["bitwise_xor"], mask)
    elif op.name == "sin":
        activation(result, op, _reduced(t, x))
    elif op.function is not None:
        activation(result, op, x)
    else:
        tensor_scalar(result, x, op, None)
    return result


def _reduced(t: Tracer, x: NkiTensor) -> NkiTensor:
    """Return angles moved to -pi to pi, where alone the Scalar engine has a sine. Source: nki.api.shared."""
    turned = new_tensor(t, x.shape, float32)
    tensor_scalar(turned, x, OPERATORS["add"], pi, op1=OPERATORS["mod"], operand1=2 * pi)
    tensor_scalar(turned, turned, OPERATORS["subtract"], pi)
    return turned


# 32-bit integers are exact on GpSimd only, so these are built from its two-tile operations.
_WIDE_UNARY: dict[str, Callable[[Tracer, NkiTensor], NkiTensor]] = {
    "negative": lambda t, x: combine(t, OPERATORS["subtract"], 0, x),
    "abs": lambda t, x: combine(t, OPERATORS["maximum"], x, combine(t, OPERATORS["subtract"], 0, x)),
    "square": lambda t, x: combine(t, OPERATORS["multiply"], x, x),
    "relu": lambda t, x: combine(t, OPERATORS["maximum"], x, 0),
}


def binary(op: Operator, x: Any, y: Any, dtype: Any = None) -> NkiTensor:
    """Return a new SBUF tile of x op y; (P, 1) and (1, F) broadcast, numbers may stand on either side."""
    return combine(tracer(), op, x, y, dtype=None if dtype is None else dtype_of(dtype))


def _result_dtype(x: Any, y: Any) -> DType:
    """Return the promoted type; a number does not widen a tile of its own kind, a float turns integers into fp32."""
    if isinstance(x, NkiTensor) and isinstance(y, NkiTensor):
        return promote(x.dtype, y.dtype)
    one, value = (x, y) if isinstance(x, NkiTensor) else (y, x)
    if scalar_dtype(value) is float32 and not one.dtype.is_float:
        return float32
    return one.dtype


def _common_shape(t: Tracer, op: str, first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    if len(first) != len(second) or any(a != b and 1 not in (a, b) for a, b in zip(first, second, strict=True)):
        raise t.error(f"nl.{op}: shapes {first} and {second} do not broadcast (equal rank, equal sizes or 1)")
    return tuple(max(a, b) for a, b in zip(first, second, strict=True))


def _fit(t: Tracer, x: NkiTensor, shape: tuple[int, ...]) -> NkiTensor:
    """Return `x` repeated up to `shape`: partitions into a new tile, free dimensions as a view."""
    if x.shape[0] != shape[0]:
        x = partition_broadcast(t, x, shape[0])
    return stretch(x, shape)


def _column(t: Tracer, value: Any, partitions: int, dtype: DType, rank: int) -> NkiTensor:
    """Return a tile of one number per partition, of any rank."""
    # kernels add the same constant in each turn of an unrolled loop
    key = ("column", repr(value), partitions, dtype, rank)
    found: NkiTensor | None = t.cache.get(key)
    if found is None:
        found = t.cache[key] = new_tensor(t, (partitions,) + (1,) * max(rank - 1, 1), dtype)
        memset(found, value)
    return found


def combine(
    t: Tracer, op: Operator, x: Any, y: Any, dst: NkiTensor | None = None, dtype: DType | None = None
) -> NkiTensor:
    """Append x op y into `dst`, or into a new SBUF tile, and return it."""
    if dst is not None and not dst.on_chip:
        store(dst, combine(t, op, x, y, dtype=dst.dtype))
        return dst
    if not isinstance(x, NkiTensor) and not isinstance(y, NkiTensor):
        raise t.error(f"nl.{op.name}: x is {x!r}, must be a tensor")
    for argument, one in (("x", x), ("y", y)):
        if not isinstance(one, NkiTensor) and not number(one):
            raise t.error(f"nl.{op.name}: {argument} is {one!r}, must be a tile or a number")
        if op.kind == "bitvec" and not (one.dtype if isinstance(one, NkiTensor) else scalar_dtype(one)).is_int:
            raise t.error(f"nl.{op.name}: {argument} is {one!r}, must be of an integer type")
    x, y = (_on_chip(t, op, "x", one) if isinstance(one, NkiTensor) else one for one in (x, y))
    shapes = [one.shape for one in (x, y) if isinstance(one, NkiTensor)]
    shape = _common_shape(t, op.name, *shapes) if len(shapes) == 2 else shapes[0]
    if dst is None:
        kind = dtype or _result_dtype(x, y)
    elif dst.shape == shape:
        kind = dst.dtype
    else:
        raise t.error(f"nl.{op.name}: a result of shape {shape} does not fit {dst.name} of {dst.shape}")
    exact = _exact_type(op, x, y)
    if op.name in _QUOTIENTS and kind.is_float:
        exact = None  # what is asked for as a fraction is not rounded to a whole number before
    if exact is not None and kind != exact:
        through = combine(t, op, x, y, dtype=exact)
        result = dst if dst is not None else new_tensor(t, shape, kind)
        tensor_copy(result, through)
        return result
    result = dst if dst is not None else new_tensor(t, shape, kind)
    _emit(t, op, x, y, shape, result, exact)
    return result


def _exact_type(op: Operator, x: Any, y: Any) -> DType | None:
    """Return the integer type in which the operation has to be done, or None where fp32 arithmetic is meant."""
    types = [one.dtype if isinstance(one, NkiTensor) else scalar_dtype(one) for one in (x, y)]
    if not all(kind.is_int for kind in types):
        return None
    tiles = [one.dtype for one in (x, y) if isinstance(one, NkiTensor)]
    joint = tiles[0] if len(tiles) == 1 else promote(*tiles)
    if op.kind == "bitvec":
        return joint if joint.is_int else None
    return joint if all(kind in _WIDE for kind in tiles) and joint in _WIDE else None


def _emit(t: Tracer, op: Operator, x: Any, y: Any, shape: tuple[int, ...], dst: NkiTensor, exact: DType | None) -> None:
    """Append the one instruction (after broadcasts and copies) that computes x op y."""
    tiles_only = op.name == "power" or (exact is not None and op.kind != "bitvec")
    if not isinstance(x, NkiTensor) or not isinstance(y, NkiTensor):
        one, value = (x, y) if isinstance(x, NkiTensor) else (y, x)
        if not tiles_only and (op.kind != "bitvec" or scalar_dtype(value).is_int):
            tensor_scalar(dst, one, op, value, reverse0=one is y)
            return
        kind = exact or float32
        value = of_type(t, f"nl.{op.name}", "x" if one is y else "y", value, kind)
        column = _column(t, value, shape[0], kind, len(shape))
        x, y = (one, column) if one is x else (column, one)
    x, y = (partition_broadcast(t, one, shape[0]) if one.shape[0] != shape[0] else one for one in (x, y))
    if not tiles_only and op.kind != "bitvec":
        # a column of fp32 is an operand of one word; any other is repeated as a view
        for wide, narrow, swapped in ((x, y, False), (y, x, True)):
            if narrow.free_size == 1 and narrow.dtype == "float32" and wide.shape == shape and wide.free_size != 1:
                tensor_scalar(dst, wide, op, narrow, reverse0=swapped)
                return
    x, y = stretch(x, shape), stretch(y, shape)
    if op.name == "power" or (x.space is Space.PSUM and y.space is Space.PSUM):
        x = in_sbuf(t, x)
    if op.name == "power":
        y = in_sbuf(t, y)
    tensor_tensor(dst, x, y, op)


def where(condition: NkiTensor, x: Any, y: Any, dtype: Any = None) -> NkiTensor:
    """Return a new SBUF tile of `x` where the condition is not zero, else `y`; x and y are tiles or numbers."""
    t = tracer()
    condition, x, y = (
        load(one) if isinstance(one, NkiTensor) and not one.on_chip else one for one in (condition, x, y)
    )
    shape = condition.shape if isinstance(condition, NkiTensor) else ()
    for argument, one in (("condition", condition), ("x", x), ("y", y)):
        if isinstance(one, NkiTensor):
            shape = _common_shape(t, "where", shape, one.shape)
        elif argument == "condition" or not number(one):
            raise t.error(
                f"nl.where: {argument} is {one!r}, must be a tile{'' if argument == 'condition' else ' or a number'}"
            )
    if dtype is not None:
        kind = dtype_of(dtype)
    elif isinstance(x, NkiTensor) or isinstance(y, NkiTensor):
        kind = _result_dtype(x, y)
    else:
        kind = promote(scalar_dtype(x), scalar_dtype(y))
    kind = dtype_of("uint8") if kind == bool_ else kind
    result = new_tensor(t, shape, kind)
    if not isinstance(x, NkiTensor):
        x = _column(t, of_type(t, "nl.where", "x", x, kind), shape[0], kind, len(shape))
    operands: dict[str, View] = {
        "dst": tile(t, "select", "dst", result),
        "predicate": tile(t, "select", "condition", _fit(t, condition, shape)),
        "src": tile(t, "select", "x", _fit(t, x, shape)),
    }
    fields: dict[str, object] = {}
    if isinstance(y, NkiTensor):
        operands["on_false_tile"] = tile(t, "select", "y", _fit(t, y, shape))
    else:
        fields["on_false"] = of_type(t, "nl.where", "y", y, kind)
    t.compute(words.Select, "DVE", operands, fields)
    return result


def _method(name: str) -> Callable[[Any, Any], NkiTensor]:
    return lambda x, y: combine(tracer(), OPERATORS[name], x, y)


def _in_place(name: str) -> Callable[[NkiTensor, Any], NkiTensor]:
    return lambda x, y: combine(tracer(), OPERATORS[name], x, y, dst=x)


OPERATIONS["unary"] = unary
OPERATIONS["binary"] = binary
OPERATIONS["negative"] = lambda x: unary(OPERATORS["negative"], x)
for _name in (
    "add",
    "subtract",
    "multiply",
    "divide",
    "power",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "left_shift",
    "right_shift",
):
    OPERATIONS[_name] = _method(_name)
    OPERATIONS["in_place_" + _name] = _in_place(_name)
