"""Pass `attention`: product, scale or mask, softmax and product become one node, whose scores never leave the core.

What lies between the products may be any element-wise expression of the scores; a factor, and a mask with one number,
are taken into the exponential. Only what nobody else reads is taken in, so gradients keep the shares they need.
"""

from __future__ import annotations

from math import isfinite, prod
from typing import Any

import numpy as np

from formats.named_tuple import NamedTuple
from formats.neuron_core import PSUM_FP32
from neurontools.compiler.canonicalise import without_dead
from neurontools.compiler.elementwise import ELEMENTWISE
from neurontools.compiler.fusion import squeezed
from neurontools.compiler.graph import Graph, Node, Value
from neurontools.compiler.tile_folds import fold_of

__all__ = ["LONGEST", "fuse_attention", "split_axes"]

LONGEST = 8192  # keys of a row: its scores and powers lie in SBUF whole, twice
_WIDEST = PSUM_FP32  # columns of the values: one bank of PSUM
_FLOATS = ("f32", "bf16", "f16")


class _Softmax(NamedTuple):
    """What a softmax was computed from, and the nodes that did it."""

    scores: Value
    nodes: set[Node]


class _Match(NamedTuple):
    operands: tuple[Value, ...]
    attrs: dict[str, Any]


def fuse_attention(graph: Graph) -> Graph:
    """Return the graph with attention as one node wherever it stands, bodies of loops included."""
    products = [node for node in graph.nodes if node.opcode == "dot"]
    finder = _Finder(graph) if len(products) > 1 else None
    matches = {node: match for node in products if finder is not None and (match := finder.match(node)) is not None}
    inner = {
        node: {key: _inside(value) for key, value in node.attrs.items()}
        for node in graph.nodes if node.opcode in _LOOPS
    }  # fmt: skip
    if not matches and not inner:
        return graph  # the usual case costs no copy
    out = Graph(graph.name)
    made: dict[Value, Value] = {}
    for node in graph.nodes:
        out.origin = node.origin
        found = matches.get(node)
        attrs = inner.get(node, node.attrs)
        opcode, operands = (node.opcode, node.operands) if found is None else ("attention", found.operands)
        kinds = [(one.dtype, one.shape) for one in node.results]
        copy = out.node(opcode, [made[one] for one in operands], kinds, attrs if found is None else found.attrs)
        if node.opcode == "parameter":
            out.parameters.append(copy.result)
        made.update(zip(node.results, copy.results, strict=True))
    out.roots = [made[one] for one in graph.roots]
    out.carry_names(graph, made)
    return without_dead(out)


_LOOPS = ("while", "conditional")


def _inside(value: Any) -> Any:
    if isinstance(value, Graph):
        return fuse_attention(value)
    if isinstance(value, list) and value and isinstance(value[0], Graph):
        return [fuse_attention(one) for one in value]
    return value


def split_axes(attrs: dict[str, Any], side: int, rank: int) -> tuple[list[int], list[int], list[int]]:
    """Return the batch, free and contracted axes of an operand of a product."""
    name = ("lhs", "rhs")[side]
    batch, inner = list(attrs[f"{name}_batch"]), list(attrs[f"{name}_contracting"])
    return batch, [axis for axis in range(rank) if axis not in batch and axis not in inner], inner


def _axes(node: Node, side: int) -> tuple[list[int], list[int], list[int]]:
    return split_axes(node.attrs, side, len(node.operands[side].shape))


def _strip(value: Value) -> Value:
    """Return what a value is without dimensions of 1 that came or went."""
    while value.node.opcode == "reshape" and squeezed(value.node.operands[0].shape) == squeezed(value.shape):
        value = value.node.operands[0]
    return value


def _number(value: Value) -> float | None:
    """Return the number that all elements of a value are, where that is plain to see."""
    while value.node.opcode in ("broadcast", "reshape"):
        value = value.node.operands[0]
    if value.node.opcode != "constant" or value.size != 1 or value.dtype not in _FLOATS:
        return None
    return float(np.asarray(value.node.attrs["data"]).reshape(-1)[0])


def _row(value: Value, space: tuple[int, ...]) -> Value | None:
    """Return the values of one element a row that a value repeats along the last dimension of an index space."""
    value = _strip(value)
    if value.node.opcode != "broadcast" or squeezed(value.shape) != space:
        return None
    given = value.node.operands[0]
    real = [axis for axis, extent in enumerate(value.shape) if extent != 1]
    places = [axis for axis, extent in zip(value.node.attrs["dimensions"], given.shape, strict=True) if extent != 1]
    return _strip(given) if squeezed(given.shape) == space[:-1] and places == real[:-1] else None


class _Finder:
    def __init__(self, graph: Graph) -> None:
        self._uses: dict[Node, list[Node | None]] = {}
        for node in graph.nodes:
            for one in node.operands:
                self._uses.setdefault(one.node, []).append(node)
        for one in graph.roots:
            self._uses.setdefault(one.node, []).append(None)

    def match(self, node: Node) -> _Match | None:
        """Return the attention that ends at a product."""
        for side in (0, 1):
            found = self._match(node, side)
            if found is not None:
                return found
        return None

    def _match(self, node: Node, side: int) -> _Match | None:
        shares = node.operands[side]
        batch, free, inner = _axes(node, side)
        real = [axis for axis, extent in enumerate(shares.shape) if extent != 1]
        space = squeezed(shares.shape)
        if len(space) < 2 or [axis for axis in inner if axis in real] != [real[-1]] or space[-1] > LONGEST:
            return None
        values = node.operands[1 - side]
        wide = prod(values.shape[axis] for axis in _axes(node, 1 - side)[1])
        if not wide or wide > _WIDEST or node.result.dtype not in _FLOATS:
            return None
        chain: set[Node] = {node}
        core = self._through(shares, chain, converts=True)
        softmax = self._softmax(core, space)
        if softmax is None or values.dtype not in _FLOATS or shares.dtype not in _FLOATS:
            return None
        chain |= softmax.nodes
        scores = self._scores(softmax.scores, space, chain)
        if scores is None:
            return None
        product, body, extras, scale, fill = scores
        if not self._alone(chain - {node}, chain):
            return None
        places = {axis: number for number, axis in enumerate(real)}
        attrs = {
            "space": space, "first": product.attrs, "second": node.attrs, "side": side, "scale": scale, "fill": fill,
            "body": body, "shares": shares.dtype, "product": product.result.dtype,
            "batch": tuple(places[axis] for axis in batch if axis in places),
            "rows": tuple(places[axis] for axis in free if axis in places),
            "scores_origin": product.origin, "softmax_origin": core.node.origin,
        }  # fmt: skip
        return _Match((*product.operands, values, *extras), attrs)

    def _through(self, value: Value, chain: set[Node], *, converts: bool) -> Value:
        """Return a value without reshapes and, where those may go, conversions of floats; note them in the chain."""
        while True:
            node = value.node
            flat = node.opcode == "reshape" and squeezed(node.operands[0].shape) == squeezed(value.shape)
            if not flat and not (converts and node.opcode == "convert" and node.operands[0].dtype == "f32"):
                return value
            chain.add(node)
            value = node.operands[0]

    def _alone(self, nodes: set[Node], chain: set[Node]) -> bool:
        """Return whether only nodes of a chain read what these make."""
        return all(user in chain for node in nodes for user in self._uses.get(node, ()))

    def _softmax(self, value: Value, space: tuple[int, ...]) -> _Softmax | None:
        nodes: set[Node] = {value.node}
        if value.node.opcode != "divide" or value.dtype != "f32":
            return None
        powers = self._through(value.node.operands[0], nodes, converts=False)
        total = self._folded(value.node.operands[1], space, "add", powers, nodes)
        if not total or powers.node.opcode != "exponential":
            return None
        nodes.add(powers.node)
        shifted = self._through(powers.node.operands[0], nodes, converts=False)
        if shifted.node.opcode != "subtract":
            return None
        nodes.add(shifted.node)
        scores = self._through(shifted.node.operands[0], nodes, converts=False)
        return (
            _Softmax(scores, nodes) if self._folded(shifted.node.operands[1], space, "maximum", scores, nodes) else None
        )

    def _folded(self, value: Value, space: tuple[int, ...], fold: str, source: Value, nodes: set[Node]) -> bool:
        """Return whether a value is the fold of a source's rows, repeated along them; note its nodes."""
        mine: set[Node] = set()
        spread = self._through(value, mine, converts=False)
        row = _row(spread, space)
        if row is None:
            return False
        mine.add(spread.node)
        row = self._through(spread.node.operands[0], mine, converts=False)
        if fold == "maximum" and row.node.opcode == "maximum":
            least = [_number(one) for one in row.node.operands]
            if float("-inf") not in least:
                return False
            mine.add(row.node)
            row = self._through(row.node.operands[least.index(float("-inf")) - 1], mine, converts=False)
        node = row.node
        if node.opcode != "reduce" or len(node.operands) != 2 or fold_of(node.attrs["body"]) != fold:
            return False
        given = node.operands[0]
        folded = [axis for axis in node.attrs["dimensions"] if given.shape[axis] != 1]
        real = [axis for axis, extent in enumerate(given.shape) if extent != 1]
        start = _number(node.operands[1])
        if (
            folded != real[-1:]
            or squeezed(given.shape) != space
            or start != {"add": 0.0, "maximum": float("-inf")}[fold]
        ):
            return False
        if _strip(given) is not _strip(source):
            return False
        nodes |= mine | {node}
        self._through(given, nodes, converts=False)
        return True

    def _scores(
        self, value: Value, space: tuple[int, ...], chain: set[Node]
    ) -> tuple[Node, Graph | None, tuple[Value, ...], float, float | None] | None:
        """Return the product behind scores and what is done to it: an expression, or a factor and a mask."""
        found = self._plain(value, space, chain)
        return found if found is not None else self._expression(value, space, chain)

    def _plain(
        self, value: Value, space: tuple[int, ...], chain: set[Node]
    ) -> tuple[Node, Graph | None, tuple[Value, ...], float, float | None] | None:
        mine: set[Node] = set()
        extras: tuple[Value, ...] = ()
        fill = None
        value = self._through(value, mine, converts=False)
        if value.node.opcode == "select":
            mask, kept, other = value.node.operands
            fill = _number(other)
            if fill is None or squeezed(mask.shape) != space:
                return None
            mine.add(value.node)
            extras, value = (mask,), kept
        scale = 1.0
        while True:
            value = self._through(value, mine, converts=False)
            node = value.node
            numbers = [_number(one) for one in node.operands] if node.opcode in ("multiply", "divide") else []
            if node.opcode == "multiply" and numbers[0] is not None:
                factor, value = numbers[0], node.operands[1]
            elif numbers and numbers[1] is not None and (node.opcode == "multiply" or numbers[1] != 0):
                factor = numbers[1] if node.opcode == "multiply" else 1.0 / numbers[1]
                value = node.operands[0]
            else:
                break
            mine.add(node)
            scale *= factor
        node = value.node
        if not self._is_product(node, space) or value.dtype != "f32" or not (scale > 0 and isfinite(scale)):
            return None
        if fill is not None and isfinite(fill):
            fill /= scale
            if abs(fill) > 3e38:
                return None
        chain |= mine | {node}
        return node, None, extras, scale, fill

    def _is_product(self, node: Node, space: tuple[int, ...]) -> bool:
        """Return whether a product has the batch first, then rows, then one dimension of keys."""
        if node.opcode != "dot" or squeezed(node.result.shape) != space:
            return False
        keys = [node.operands[1].shape[axis] for axis in _axes(node, 1)[1]]
        deep = prod(node.operands[0].shape[axis] for axis in _axes(node, 0)[2])
        kinds = {one.dtype for one in node.operands}
        return squeezed(tuple(keys)) == space[-1:] and 0 < deep <= _WIDEST and kinds <= set(_FLOATS)

    def _expression(
        self, value: Value, space: tuple[int, ...], chain: set[Node]
    ) -> tuple[Node, Graph | None, tuple[Value, ...], float, float | None] | None:
        """Return the product, and the element-wise expression of it and of other arrays of the index space."""
        inside: set[Node] = set()
        products: list[Node] = []
        rest = [value]
        while rest:
            one = rest.pop()
            node = one.node
            if node in inside or squeezed(one.shape) != space:
                continue
            if node.opcode in ELEMENTWISE or (node.opcode == "reshape" and squeezed(node.operands[0].shape) == space):
                if not self._alone({node}, inside | chain):
                    continue
                inside.add(node)
                rest += node.operands
            elif self._is_product(node, space) and node not in products:
                products.append(node)
        if not products or len(inside) > 12:
            return None
        product = min(products, key=lambda one: one.number)
        body = Graph("scores")
        made = {product.result: body.parameter(product.result.dtype, ())}
        extras: list[Value] = []
        for node in sorted(inside, key=lambda one: one.number):
            for one in node.operands:
                if one not in made:
                    made[one] = body.parameter(one.dtype, ())
                    extras.append(one)
            body.origin = node.origin
            if node.opcode == "reshape":
                made[node.result] = made[node.operands[0]]
            else:
                made[node.result] = body.add(
                    node.opcode, [made[one] for one in node.operands], node.result.dtype, (), **node.attrs
                )
        if any(squeezed(one.shape) != space for one in extras) or value not in made or value.dtype != "f32":
            return None
        body.roots = [made[value]]
        chain |= inside | {product}
        return product, body, tuple(extras), 1.0, None
