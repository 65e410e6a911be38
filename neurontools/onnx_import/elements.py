"""ONNX operators on single elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import numpy as np

from formats.errors import UnsupportedError
from formats.hlo import PrimitiveType, Shape
from neurontools.onnx_import.builder import Tensor, integer_range
from neurontools.onnx_import.registry import OPERATORS, Node, element_type, operator

__all__: list[str] = []

# fmt: off
_UNARY = {
    "Abs": "abs",       "Neg": "negate",  "Ceil": "ceil",    "Floor": "floor",  "Round": "round-nearest-even",
    "Exp": "exponential", "Log": "log",   "Sqrt": "sqrt",    "Sin": "sine",     "Cos": "cosine",  "Tan": "tan",
    "Sinh": "sinh",     "Cosh": "cosh",   "Tanh": "tanh",    "Asin": "asin",    "Acos": "acos",
    "Asinh": "asinh",   "Acosh": "acosh", "Atanh": "atanh",  "Erf": "erf",      "Sigmoid": "logistic",
    "Not": "not",       "BitwiseNot": "not", "Sign": "sign",
}
_BINARY = {
    "Add": "add", "Sub": "subtract", "Mul": "multiply", "And": "and", "Or": "or", "Xor": "xor",
    "BitwiseAnd": "and", "BitwiseOr": "or", "BitwiseXor": "xor",
}
_COMPARED = {"Equal": "EQ", "Greater": "GT", "GreaterOrEqual": "GE", "Less": "LT", "LessOrEqual": "LE"}
_FORMULAS: dict[str, Callable[[Node, Tensor], Tensor]] = {
    "Identity":        lambda n, x: x,
    "Relu":            lambda n, x: x.maximum(0),
    "Reciprocal":      lambda n, x: 1 / x,
    "Atan":            lambda n, x: x.binary("atan2", 1),
    "Softplus":        lambda n, x: x.maximum(0) + (-x.unary("abs")).unary("exponential").unary("log-plus-one"),
    "Softsign":        lambda n, x: x / (x.unary("abs") + 1),
    "Elu":             lambda n, x: (x > 0).where(x, x.unary("exponential-minus-one") * n.get("alpha", 1.0)),
    "Celu":            lambda n, x: x.maximum(0) + ((x / n.get("alpha", 1.0)).unary("exponential-minus-one")
                                                    * n.get("alpha", 1.0)).minimum(0),
    "Selu":            lambda n, x: (x > 0).where(x, x.unary("exponential-minus-one")
                                                  * n.get("alpha", 1.67326319217681884765625))
                                    * n.get("gamma", 1.05070102214813232421875),
    "LeakyRelu":       lambda n, x: (x < 0).where(x * n.get("alpha", 0.01), x),
    "ThresholdedRelu": lambda n, x: (x > n.get("alpha", 1.0)).where(x, 0),
    "HardSigmoid":     lambda n, x: (x * n.get("alpha", 0.2) + n.get("beta", 0.5)).maximum(0).minimum(1),
    "HardSwish":       lambda n, x: x * (x / 6 + 0.5).maximum(0).minimum(1),
    "Mish":            lambda n, x: x * _FORMULAS["Softplus"](n, x).unary("tanh"),
    "Swish":           lambda n, x: x * (x * n.get("alpha", 1.0)).unary("logistic"),
    "Shrink":          lambda n, x: (x < -n.get("lambd", 0.5)).where(
                           x + n.get("bias", 0.0), (x > n.get("lambd", 0.5)).where(x - n.get("bias", 0.0), 0)),
    "IsNaN":           lambda n, x: x.compare("NE", x),
}
# fmt: on


def _enter() -> None:
    for name, opcode in _UNARY.items():
        OPERATORS[name] = lambda n, opcode=opcode: n.input(0).unary(opcode)  # type: ignore[misc]
    for name, opcode in _BINARY.items():
        OPERATORS[name] = lambda n, opcode=opcode: n.input(0).binary(opcode, n.input(1))  # type: ignore[misc]
    for name, direction in _COMPARED.items():
        OPERATORS[name] = lambda n, d=direction: n.input(0).compare(d, n.input(1))  # type: ignore[misc]
    for name, formula in _FORMULAS.items():
        OPERATORS[name] = lambda n, formula=formula: formula(n, n.input(0))  # type: ignore[misc]


_enter()


@operator("Div")
def divide(n: Node) -> Tensor:
    """Divide; integers towards zero."""
    return n.input(0) / n.input(1)


@operator("Mod")
def modulo(n: Node) -> Tensor:
    """Return what a division leaves: with the sign of the dividend where `fmod` is set, else of the divisor."""
    a, b = n.input(0), n.input(1)
    left = a.binary("remainder", b)
    if n.get("fmod", 0):
        return left
    wrong = (left.compare("NE", 0)) & (left < 0).compare("NE", (b < 0).expand(left.shape))
    return wrong.where(left + b, left)


@operator("Pow")
def power(n: Node) -> Tensor:
    """Raise to a power; the result has the base's type."""
    a, b = n.input(0), n.input(1)
    if a.kind is b.kind:
        return a.binary("power", b)
    if a.kind.is_integral and b.kind.is_integral:  # float64 holds 53 bits of the result only
        wide = PrimitiveType.S64 if a.kind.is_signed else PrimitiveType.U64
    else:  # as NumPy has it: computed in the wider type
        wide = max(a.kind, b.kind, PrimitiveType.F32, key=lambda kind: (kind.is_float, kind.bits))
        wide = PrimitiveType.F64 if max(a.kind.bits, b.kind.bits) > 32 or a.kind.is_integral else wide
    return a.cast(wide).binary("power", b.cast(wide)).cast(a.kind)


@operator("Sum", "Max", "Min", "Mean")
def variadic(n: Node) -> Tensor:
    """Fold any number of tensors."""
    opcode = {"Sum": "add", "Mean": "add", "Max": "maximum", "Min": "minimum"}[n.op]
    found = reduce(lambda a, b: a.binary(opcode, b), (n.input(each) for each in range(len(n.inputs))))
    return found / len(n.inputs) if n.op == "Mean" else found


@operator("BitShift")
def bit_shift(n: Node) -> Tensor:
    """Shift bits; to the right a signed integer keeps its sign."""
    right = "shift-right-arithmetic" if n.input(0).kind.is_signed else "shift-right-logical"
    opcode = "shift-left" if n.choice("direction", "RIGHT", "LEFT") == "LEFT" else right
    return n.input(0).binary(opcode, n.input(1))


@operator("Where")
def where(n: Node) -> Tensor:
    """Choose by a predicate."""
    return n.input(0).where(n.input(1), n.input(2))


@operator("Clip")
def clip(n: Node) -> Tensor:
    """Keep within bounds."""
    x = n.input(0)
    for number, name, opcode in ((1, "min", "maximum"), (2, "max", "minimum")):
        bound = n.optional(number)
        if bound is not None:
            x = x.binary(opcode, bound)
        elif name in n.attributes:
            x = x.binary(opcode, n.get(name))
    return x


@operator("PRelu")
def prelu(n: Node) -> Tensor:
    """Scale what is negative."""
    x = n.input(0)
    return (x < 0).where(x * n.input(1), x)


@operator("Gelu")
def gelu(n: Node) -> Tensor:
    """Return x times the normal distribution's share below x, exactly or by a hyperbolic tangent."""
    x = n.input(0)
    if n.choice("approximate", "none", "tanh") == "tanh":
        return x * 0.5 * ((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)).unary("tanh").binary("add", 1)
    return x * 0.5 * (x * math.sqrt(0.5)).unary("erf").binary("add", 1)


@operator("IsInf")
def is_infinite(n: Node) -> Tensor:
    """Find infinities of either sign, or of one."""
    x = n.input(0)
    yes = n.to.constant(np.zeros((), bool)).expand(x.shape)
    if n.get("detect_positive", 1):
        yes = yes | x.equals(math.inf)
    if n.get("detect_negative", 1):
        yes = yes | x.equals(-math.inf)
    return yes


@operator("Cast")
def cast(n: Node) -> Tensor:
    """Convert elements."""
    return _converted(n, n.input(0), element_type(n.required("to")))


@operator("CastLike")
def cast_like(n: Node) -> Tensor:
    """Convert elements to the type of another tensor."""
    return _converted(n, n.input(0), n.input(1).kind)


_SATURATED = {"F8E4M3FN", "F8E4M3FNUZ", "F8E5M2FNUZ", "F8E5M2", "F4E2M1FN"}


def _converted(n: Node, x: Tensor, kind: PrimitiveType) -> Tensor:
    if kind.is_float and kind.bits <= 8 and x.kind is not kind:
        if x.kind.is_integral or x.kind.bits <= 8:
            x = x.cast(PrimitiveType.F32)  # the bounds below are no numbers of such types
        if kind is PrimitiveType.F8E8M0FNU:
            raise UnsupportedError("conversions to a scale of powers of two round up in ONNX; not modelled")
        if kind.name in _SATURATED and n.get("saturate", 1):
            import ml_dtypes  # deferred: start-up

            most = float(ml_dtypes.finfo(kind.numpy_name).max)  # type: ignore[no-untyped-call]  # it has no types
            inside = x.maximum(-most).minimum(most)
            x = x.compare("NE", x).where(x, inside)
        elif kind is PrimitiveType.F8E4M3FN:  # what rounds to more than 448, halfway to 480, has no number
            x = (x.unary("abs") > 464.0).where(math.nan, x)
    if kind.is_integral and kind.bits < 8 and x.kind.is_float:
        return x.unary("round-nearest-even").cast(PrimitiveType.S32).cast(kind)
    if kind.is_integral and x.kind.is_float and kind.bits < 32:
        return x.cast(PrimitiveType.S32).cast(kind)  # what is too large wraps, as ONNX's reference has it
    return x.cast(kind)


@operator("BitCast")
def bit_cast(n: Node) -> Tensor:
    """Take the bits as another type of the same width."""
    kind = element_type(n.required("to"))
    x = n.input(0)
    if kind.bits != x.kind.bits:
        raise UnsupportedError("BitCast between widths is not modelled")
    return n.to.emit("bitcast-convert", [x], Shape(kind, x.shape))


@operator("Dropout")
def dropout(n: Node) -> tuple[Tensor, ...]:
    """Pass values on, as at inference; training needs random numbers that nobody states."""
    x = n.input(0)
    training, ratio = n.static(2), n.static(1)
    if training is not None and bool(training) and (ratio is None or float(ratio) != 0):
        raise UnsupportedError("Dropout for training has a seed of its own")
    return x, n.to.constant(np.ones((), bool)).expand(x.shape)


@operator("QuantizeLinear")
def quantize(n: Node) -> Tensor:
    """Divide by a scale, round, add the zero point, saturate."""
    x, scale, zero = n.input(0), n.input(1), n.optional(2)
    kind = zero.kind if zero is not None else element_type(n.get("output_dtype", 0) or 2)
    if x.kind.is_integral:
        x = x.cast(PrimitiveType.F32)
    y = x / _along(n, scale.cast(x.kind), x)
    if kind.is_float:
        shift = y if zero is None else y + _along(n, zero.cast(y.kind), x)
        return _converted(n, shift, kind)
    y = y.unary("round-nearest-even").cast(PrimitiveType.F32)
    if zero is not None:
        y = y + _along(n, zero.cast(PrimitiveType.F32), x)
    low, high = integer_range(kind)
    return y.maximum(low).minimum(high).cast(PrimitiveType.S32).cast(kind)


@operator("DequantizeLinear")
def dequantize(n: Node) -> Tensor:
    """Take the zero point off and multiply by the scale."""
    x, scale, zero = n.input(0), n.input(1), n.optional(2)
    wide = x.cast(PrimitiveType.S32 if x.kind.is_integral else PrimitiveType.F32)
    if zero is not None:
        wide = wide - _along(n, zero.cast(wide.kind), x)
    # In float32, as ONNX's reference has it: an int32 may be more than float16 holds.
    product = wide.cast(PrimitiveType.F32) * _along(n, scale.cast(PrimitiveType.F32), x)
    stated = n.get("output_dtype", 0)
    return product.cast(element_type(stated) if stated else scale.kind)


def _along(n: Node, values: Tensor, x: Tensor) -> Tensor:
    """Return a scale or zero point for each element: one for all, one along an axis, or one a block."""
    if values.rank == 0 or values.shape == (1,):
        return values.reshape(())
    axis = x.axis(n.get("axis", 1))
    if values.rank == 1:
        return values.put(x.shape, (axis,))
    block = n.get("block_size", 0) or -(-x.shape[axis] // values.shape[axis])
    parts = [*values.shape[: axis + 1], block, *values.shape[axis + 1 :]]
    whole = values.put(parts, [dim for dim in range(len(parts)) if dim != axis + 1])
    shape = [*values.shape]
    shape[axis] *= block
    return whole.reshape(shape).slice(axis, 0, x.shape[axis])
