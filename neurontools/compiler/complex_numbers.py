"""Pass `complex`: complex64 becomes two tensors of fp32, real and imaginary parts; the device has no such type.

Inputs and outputs keep their bytes: fp32 with one more dimension of two elements. Movements are done to each part, so
are folds that add; other bodies (of folds, scatters, sorts, loops) take the parts as two parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from neurontools.compiler.complex_math import FUNCTIONS, Pair, magnitude
from neurontools.compiler.fourier import transformed
from neurontools.compiler.graph import Graph, Node, Value
from neurontools.compiler.rewriting import Builder, scalar_body
from neurontools.compiler.tile_folds import fold_of

__all__ = ["COMPLEX", "DOCUMENTED_COMPLEX", "without_complex"]

Part = Value | Pair
_PARTWISE = frozenset({"broadcast", "concatenate", "copy", "dynamic-slice", "dynamic-update-slice", "gather", "pad",
                       "reshape", "reverse", "select", "slice", "transpose", "all-gather", "all-to-all",
                       "collective-broadcast", "collective-permute", "bitcast"})  # fmt: skip
_BODIES = frozenset({"conditional", "reduce", "reduce-window", "scatter", "sort", "while"})
# Operations of complex64 that AWS's compiler has: compiler.md 5.2.
DOCUMENTED_COMPLEX = frozenset({
    "abs", "add", "broadcast", "compare", "complex", "concatenate", "cosine", "divide", "dot", "dynamic-slice",
    "dynamic-update-slice", "exponential", "exponential-minus-one", "imag", "iota", "log", "log-plus-one", "logistic",
    "multiply", "negate", "pad", "power", "real", "reshape", "reverse", "rsqrt", "select", "sign", "sine", "slice",
    "sqrt", "subtract", "tan", "tanh", "transpose", "constant", "parameter", "copy", "while", "conditional",
})  # fmt: skip


def without_complex(graph: Graph) -> Graph:
    """Return the graph without complex types; it is given back as it is where there are none."""
    return _split(graph, whole=True) if _has_complex(graph) else graph


def _has_complex(graph: Graph) -> bool:
    return any(_touches(node) for node in graph.nodes)


def _touches(node: Node) -> bool:
    return (
        any(value.dtype == "c64" for value in (*node.operands, *node.results))
        or node.opcode in ("real", "imag", "fft")
        or any(_has_complex(body) for body in _bodies(node))
    )


def _bodies(node: Node) -> list[Graph]:
    found = [one for value in node.attrs.values() for one in (value if isinstance(value, list) else [value])]
    return [one for one in found if isinstance(one, Graph)]


def _split(graph: Graph, *, whole: bool) -> Graph:
    """Return a graph of parts; `whole` keeps its parameters and results one tensor each."""
    out = Graph(graph.name)
    b = Builder(out)
    made: dict[Value, Part] = {}
    for node in graph.nodes:
        out.origin = node.origin
        if node.opcode == "parameter":
            made[node.result] = _parameter(b, node, whole)
        elif not _touches(node):
            copy = out.node(node.opcode, _leaves([made[one] for one in node.operands]), _kinds(node), node.attrs)
            made.update(zip(node.results, copy.results, strict=True))
        else:
            made.update(zip(node.results, _node(b, node, [made[one] for one in node.operands]), strict=True))
    for one in graph.roots:
        part = made[one]
        out.origin = one.node.origin
        out.roots += [_packed(b, part)] if whole and isinstance(part, Pair) else _leaves([part])
    # A complex result is known by its two parts.
    out.named = [
        one._replace(results=tuple(
            leaf for value in one.results for leaf in ([None] if value is None else _leaves([made[value]]))
        ))
        for one in graph.named
    ]  # fmt: skip
    return out


def _parameter(b: Builder, node: Node, whole: bool) -> Part:
    attrs = {key: value for key, value in node.attrs.items() if key != "index"}
    kind, shape = node.result.dtype, node.result.shape
    if kind != "c64":
        return b.graph.parameter(kind, shape, **attrs)
    if not whole:
        return Pair(b.graph.parameter("f32", shape, **attrs), b.graph.parameter("f32", shape, **attrs))
    both = b.graph.parameter("f32", (*shape, 2), **attrs)
    return Pair(*(b.reshape(b.part(both, len(shape), place, 1), shape) for place in range(2)))


def _packed(b: Builder, pair: Pair) -> Value:
    parts = [b.reshape(one, (*one.shape, 1)) for one in pair]
    return b.concatenate(parts, len(parts[0].shape) - 1)


def _leaves(parts: Sequence[Part]) -> list[Value]:
    return [leaf for part in parts for leaf in (part if isinstance(part, Pair) else (part,))]


def _kinds(node: Node) -> list[tuple[str, tuple[int, ...]]]:
    kinds: list[tuple[str, tuple[int, ...]]] = []
    for one in node.results:
        kinds += [("f32", one.shape)] * 2 if one.dtype == "c64" else [(one.dtype, one.shape)]
    return kinds


def _grouped(node: Node, values: Sequence[Value]) -> list[Part]:
    """Return results of a split node as those of the node: two of complex type are one pair."""
    rest = iter(values)
    return [Pair(next(rest), next(rest)) if one.dtype == "c64" else next(rest) for one in node.results]


def _node(b: Builder, node: Node, operands: list[Part]) -> list[Part]:
    opcode = node.opcode
    if opcode in _PARTWISE or (opcode in _BODIES and _separable(node)):
        return _partwise(b, node, operands)
    if opcode in _BODIES:
        attrs = {key: _attribute(value) for key, value in node.attrs.items()}
        if opcode == "conditional":
            attrs["counts"] = [len(body.parameters) for body in attrs["branches"]]
        if opcode == "sort":
            attrs["body"] = _comparator(node.attrs["body"])
        return _grouped(node, b.graph.node(opcode, _leaves(operands), _kinds(node), attrs).results)
    if opcode in FUNCTIONS:
        return [FUNCTIONS[opcode](b, *operands)]
    return [_OTHERS[opcode](b, node, operands)]


def _attribute(value: Any) -> Any:
    if isinstance(value, Graph):
        return _split(value, whole=False)
    if isinstance(value, list) and value and isinstance(value[0], Graph):
        return [_split(one, whole=False) for one in value]
    return value


def _comparator(body: Graph) -> Graph:
    """Return a comparator of parts: a sort gives it both elements of one operand, then both of the next."""
    out = _split(body, whole=False)
    rest = iter(out.parameters)
    sides = [[next(rest) for _ in range(2 if one.dtype == "c64" else 1)] for one in body.parameters]
    both = zip(sides[::2], sides[1::2], strict=True)
    out.parameters = [one for left, right in both for pair in zip(left, right, strict=True) for one in pair]
    return out


def _separable(node: Node) -> bool:
    """Return whether a body does the same to each part: it adds, or takes the new element."""
    body = node.attrs.get("body")
    if node.opcode not in ("reduce", "reduce-window", "scatter") or len(node.results) != 1:
        return False
    return isinstance(body, Graph) and (fold_of(body) == "add" or body.roots[0] is body.parameters[-1])


def _partwise(b: Builder, node: Node, operands: list[Part]) -> list[Part]:
    attrs = dict(node.attrs)
    if "body" in attrs:
        body: Graph = attrs["body"]
        attrs["body"] = scalar_body("add", "f32") if fold_of(body) == "add" else _second()
    shape = node.result.shape

    def part(place: int) -> Value:
        mine = [one[place] if isinstance(one, Pair) else one for one in operands]
        return b.graph.add(node.opcode, mine, "f32", shape, **attrs)

    return [Pair(part(0), part(1))]


def _second() -> Graph:
    body = Graph("second")
    body.parameter("f32", ())
    body.roots = [body.parameter("f32", ())]
    return body


def _constant(b: Builder, node: Node, operands: list[Part]) -> Part:
    data = np.asarray(node.attrs["data"]).reshape(node.result.shape)
    return Pair(b.constant(data.real, "f32"), b.constant(data.imag, "f32"))


def _iota(b: Builder, node: Node, operands: list[Part]) -> Part:
    real = b.iota("f32", node.result.shape, node.attrs["dimension"])
    return Pair(real, b.like(0.0, real))


def _convert(b: Builder, node: Node, operands: list[Part]) -> Part:
    source, wanted = operands[0], node.result.dtype
    if not isinstance(source, Pair):
        real = b.convert(source, "f32")
        return Pair(real, b.like(0.0, real))
    if wanted != "pred":
        return source if wanted == "c64" else b.convert(source.real, wanted)
    return b.op("or", *(b.compare("NE", one, b.like(0.0, one)) for one in source))


def _compare(b: Builder, node: Node, operands: list[Part]) -> Part:
    direction = node.attrs["direction"]
    (p, q), (r, s) = operands  # type: ignore[misc]
    return b.op("and" if direction == "EQ" else "or", b.compare(direction, p, r), b.compare(direction, q, s))


def _real(b: Builder, node: Node, operands: list[Part]) -> Part:
    return operands[0][0] if isinstance(operands[0], Pair) else operands[0]


def _imag(b: Builder, node: Node, operands: list[Part]) -> Part:
    return operands[0][1] if isinstance(operands[0], Pair) else b.like(0.0, operands[0])


def _bilinear(b: Builder, node: Node, operands: list[Part]) -> Part:
    """Return a product of matrices or a convolution: of every part of one side with every part of the other."""

    def product(left: Value, right: Value) -> Value:
        return b.graph.add(node.opcode, (left, right), "f32", node.result.shape, **node.attrs)

    left, right = operands
    if not isinstance(left, Pair):
        left = b.convert(left, "f32")
        assert isinstance(right, Pair)  # one side is complex
        return Pair(product(left, right.real), product(left, right.imaginary))
    if not isinstance(right, Pair):
        right = b.convert(right, "f32")
        return Pair(product(left.real, right), product(left.imaginary, right))
    real = b.op("subtract", product(left.real, right.real), product(left.imaginary, right.imaginary))
    crossed = b.op("add", product(left.real, right.imaginary), product(left.imaginary, right.real))
    return Pair(real, crossed)


def _fourier(b: Builder, node: Node, operands: list[Part]) -> Part:
    return transformed(b, node.attrs["kind"], node.attrs["lengths"], operands[0])


def _map(b: Builder, node: Node, operands: list[Part]) -> Part:
    body = _split(node.attrs["body"], whole=False)
    return _grouped(node, b.apply(body, _leaves(operands), node.result.shape))[0]


_OTHERS: dict[str, Callable[[Builder, Node, list[Any]], Part]] = {
    "abs": lambda b, node, operands: magnitude(b, operands[0]),
    "bitcast-convert": lambda b, node, operands: operands[0],  # verification lets no other type in
    "compare": _compare,
    "complex": lambda b, node, operands: Pair(*operands),
    "constant": _constant,
    "convert": _convert,
    "convolution": _bilinear,
    "dot": _bilinear,
    "fft": _fourier,
    "imag": _imag,
    "iota": _iota,
    "map": _map,
    "real": _real,
}
COMPLEX = frozenset({*_PARTWISE, *_BODIES, *FUNCTIONS, *_OTHERS, "parameter"})
