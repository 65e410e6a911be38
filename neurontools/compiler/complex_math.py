"""Functions of complex numbers as functions of their two parts, each good to a few roundings of fp32.

Where the textbook formula overflows or cancels, a better one stands in its place, and the function says so.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from formats.named_tuple import NamedTuple
from neurontools.compiler.graph import Value
from neurontools.compiler.rewriting import Builder

__all__ = ["FUNCTIONS", "Pair", "magnitude"]


class Pair(NamedTuple):
    """The two parts of complex numbers, fp32."""

    real: Value
    imaginary: Value


def magnitude(b: Builder, z: Pair) -> Value:
    """Return |z| without squares of large numbers: the larger part times sqrt(1 + ratio^2)."""
    x, y = b.op("abs", z.real), b.op("abs", z.imaginary)
    high, low = b.op("maximum", x, y), b.op("minimum", x, y)
    ratio = b.op("divide", low, high)
    grown = b.op("sqrt", b.op("add", b.op("multiply", ratio, ratio), b.like(1.0, ratio)))
    size = b.op("multiply", high, grown)
    # Where the ratio would be 0 / 0 or infinity / infinity, the larger part is the size.
    same = b.op("or", b.compare("EQ", low, b.like(0.0, low)), b.compare("EQ", high, b.like(inf, high)))
    return b.op("select", same, high, size)


def _each(opcode: str) -> Callable[[Builder, Pair, Pair], Pair]:
    return lambda b, z, w: Pair(b.op(opcode, z.real, w.real), b.op(opcode, z.imaginary, w.imaginary))


def _multiply(b: Builder, z: Pair, w: Pair) -> Pair:
    (p, q), (r, s) = z, w
    real = b.op("subtract", b.op("multiply", p, r), b.op("multiply", q, s))
    return Pair(real, b.op("add", b.op("multiply", p, s), b.op("multiply", q, r)))


def _divide(b: Builder, z: Pair, w: Pair) -> Pair:
    """Return z / w as Smith does: by the ratio of the divisor's parts, whose squares are never formed."""
    (p, q), (r, s) = z, w
    tall = b.compare("LT", b.op("abs", r), b.op("abs", s))
    high, low = b.op("select", tall, s, r), b.op("select", tall, r, s)
    none = b.compare("EQ", low, b.like(0.0, low))  # 0 / 0 would spoil what has one part
    ratio = b.op("select", none, low, b.op("divide", low, high))
    divisor = b.op("add", high, b.op("multiply", low, ratio))
    first, second = b.op("select", tall, q, p), b.op("select", tall, p, q)
    real = b.op("divide", b.op("add", first, b.op("multiply", second, ratio)), divisor)
    less = b.op("subtract", second, b.op("multiply", first, ratio))
    imaginary = b.op("divide", less, divisor)
    return Pair(real, b.op("select", tall, b.op("negate", imaginary), imaginary))


def _negate(b: Builder, z: Pair) -> Pair:
    return Pair(b.op("negate", z.real), b.op("negate", z.imaginary))


def _half(b: Builder, x: Value) -> Value:
    return b.op("multiply", x, b.like(0.5, x))


def _exponential(b: Builder, z: Pair) -> Pair:
    """Return e^z; half the exponent twice, so that it overflows no sooner than the result."""
    half = b.op("exponential", _half(b, z.real))
    real = b.op("multiply", b.op("multiply", half, b.op("cosine", z.imaginary)), half)
    imaginary = b.op("multiply", b.op("multiply", half, b.op("sine", z.imaginary)), half)
    flat = b.compare("EQ", z.imaginary, b.like(0.0, z.imaginary))  # infinity times 0 is none
    return Pair(real, b.op("select", flat, z.imaginary, imaginary))


def _expm1(b: Builder, z: Pair) -> Pair:
    """Return e^z - 1, whose real part is expm1(x) cos y - 2 sin(y/2)^2: nothing cancels near 0."""
    less, sine = b.op("exponential-minus-one", z.real), b.op("sine", _half(b, z.imaginary))
    fall = b.op("multiply", b.op("multiply", sine, sine), b.like(2.0, sine))
    real = b.op("subtract", b.op("multiply", less, b.op("cosine", z.imaginary)), fall)
    return Pair(real, _exponential(b, z).imaginary)


def _log(b: Builder, z: Pair) -> Pair:
    return Pair(b.op("log", magnitude(b, z)), b.op("atan2", z.imaginary, z.real))


def _log1p(b: Builder, z: Pair) -> Pair:
    """Return log(1 + z); near 0 the real part is log1p(x (x + 2) + y^2) / 2, where |1 + z| has lost its last bits."""
    x, y = z
    one = b.op("add", x, b.like(1.0, x))
    square = b.op("add", b.op("multiply", x, b.op("add", x, b.like(2.0, x))), b.op("multiply", y, y))
    near = b.compare("LT", magnitude(b, z), b.like(0.5, x))
    near_real = _half(b, b.op("log-plus-one", square))
    real = b.op("select", near, near_real, b.op("log", magnitude(b, Pair(one, y))))
    return Pair(real, b.op("atan2", y, one))


def _sqrt(b: Builder, z: Pair) -> Pair:
    """Return the root with a real part of 0 or more: the larger part from |z|, the other by division."""
    x, y = z
    root = b.op("sqrt", b.op("add", _half(b, magnitude(b, z)), _half(b, b.op("abs", x))))
    zero = b.like(0.0, x)
    none = b.compare("EQ", root, zero)
    other = b.op("select", none, zero, b.op("divide", _half(b, b.op("abs", y)), root))
    right = b.compare("GE", x, zero)
    real, size = b.op("select", right, root, other), b.op("select", right, other, root)
    # The sign bit, not a comparison: the root of -4 - 0i lies below the branch cut, at -2i.
    down = b.op("shift-right-logical", _bits(b, y), b.like(31, _bits(b, y)))
    return Pair(real, b.op("select", b.compare("NE", down, b.like(0, down)), b.op("negate", size), size))


def _bits(b: Builder, x: Value) -> Value:
    return b.graph.add("bitcast-convert", (x,), "u32", x.shape)


def _rsqrt(b: Builder, z: Pair) -> Pair:
    one = b.like(1.0, z.real)
    return _divide(b, Pair(one, b.like(0.0, one)), _sqrt(b, z))


def _hyperbolic(b: Builder, x: Value) -> tuple[Value, Value]:
    """Return cosh x and sinh x; the second from e^x - 1, which keeps its bits near 0."""
    up, down = b.op("exponential", x), b.op("exponential", b.op("negate", x))
    rise, fall = b.op("exponential-minus-one", x), b.op("exponential-minus-one", b.op("negate", x))
    return _half(b, b.op("add", up, down)), _half(b, b.op("subtract", rise, fall))


def _sine(b: Builder, z: Pair) -> Pair:
    cosh, sinh = _hyperbolic(b, z.imaginary)
    return Pair(b.op("multiply", b.op("sine", z.real), cosh), b.op("multiply", b.op("cosine", z.real), sinh))


def _cosine(b: Builder, z: Pair) -> Pair:
    cosh, sinh = _hyperbolic(b, z.imaginary)
    fall = b.op("negate", b.op("sine", z.real))
    return Pair(b.op("multiply", b.op("cosine", z.real), cosh), b.op("multiply", fall, sinh))


def _tanh(b: Builder, z: Pair) -> Pair:
    """Return (h (1 + t^2) + i t (1 - h^2)) / (1 + h^2 t^2) with h = tanh x, t = tan y: nothing grows with x."""
    h = b.op("tanh", z.real)
    t = b.op("divide", b.op("sine", z.imaginary), b.op("cosine", z.imaginary))
    one = b.like(1.0, h)
    both = b.op("multiply", h, t)
    divisor = b.op("add", one, b.op("multiply", both, both))
    real = b.op("multiply", h, b.op("add", one, b.op("multiply", t, t)))
    left = b.op("multiply", b.op("subtract", one, h), b.op("add", one, h))
    return Pair(b.op("divide", real, divisor), b.op("divide", b.op("multiply", t, left), divisor))


def _tan(b: Builder, z: Pair) -> Pair:
    """Return tan z as -i tanh(i z)."""
    turned = _tanh(b, Pair(b.op("negate", z.imaginary), z.real))
    return Pair(turned.imaginary, b.op("negate", turned.real))


def _logistic(b: Builder, z: Pair) -> Pair:
    """Return 1 / (1 + e^-z) as (1 + tanh(z / 2)) / 2."""
    real, imaginary = _tanh(b, Pair(_half(b, z.real), _half(b, z.imaginary)))
    return Pair(_half(b, b.op("add", real, b.like(1.0, real))), _half(b, imaginary))


def _power(b: Builder, z: Pair, w: Pair) -> Pair:
    """Return z^w as e^(w log z); 0 to a power is 0, 0 to the power of 0 is 1."""
    real, imaginary = _exponential(b, _multiply(b, w, _log(b, z)))
    zero = b.like(0.0, real)
    nothing = b.compare("EQ", magnitude(b, z), zero)
    once = b.compare("EQ", magnitude(b, w), zero)
    empty = b.op("select", once, b.like(1.0, zero), zero)
    return Pair(b.op("select", nothing, empty, real), b.op("select", nothing, zero, imaginary))


def _sign(b: Builder, z: Pair) -> Pair:
    size = magnitude(b, z)
    none = b.compare("EQ", size, b.like(0.0, size))
    return Pair(*(b.op("select", none, one, b.op("divide", one, size)) for one in z))


FUNCTIONS: dict[str, Callable[..., Pair]] = {
    "add": _each("add"),
    "cosine": _cosine,
    "divide": _divide,
    "exponential": _exponential,
    "exponential-minus-one": _expm1,
    "log": _log,
    "log-plus-one": _log1p,
    "logistic": _logistic,
    "multiply": _multiply,
    "negate": _negate,
    "power": _power,
    "rsqrt": _rsqrt,
    "sign": _sign,
    "sine": _sine,
    "sqrt": _sqrt,
    "subtract": _each("subtract"),
    "tan": _tan,
    "tanh": _tanh,
}
