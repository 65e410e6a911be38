"""Lowering of attention: for 128 queries at a time, all their scores, the exponential, and its product with the values.

Scores of a block are made before the products of the block before it, so that the Tensor engine never waits for an
exponential. What the exponentials sum to divides the result, which is shorter than a row of scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product as places_of

from formats import isa as words
from formats.dtypes import Dtype
from formats.isa import AluOp, ReduceCommand
from formats.named_tuple import NamedTuple
from formats.neuron_core import PARTITIONS, PSUM_FP32
from neurontools.builder.trace import View
from neurontools.compiler.arrays import Array
from neurontools.compiler.attention import split_axes
from neurontools.compiler.dots import Side, span, strips_of
from neurontools.compiler.element_types import element_type
from neurontools.compiler.elementwise import apply
from neurontools.compiler.graph import Graph, Node, Value
from neurontools.compiler.kernels import Splat
from neurontools.compiler.loading import load, part_of
from neurontools.compiler.lowering import Lowering, lowers
from neurontools.compiler.tile_math import constant_like
from neurontools.compiler.tiling import Tile

__all__: list[str] = []

_ROWS, _BANK = PARTITIONS, PSUM_FP32
_NS_BLOCK = 8000  # about what a block takes
_HELD = 2  # banks of scores that stay in PSUM until their exponential; more are copied out
_MASK_BYTES = 16 << 10  # of a partition, for masks that several heads share


class _Block(NamedTuple):
    """Some queries of one head: the place in the outer dimensions, the first query, how many."""

    place: tuple[int, ...]
    first: int
    rows: int


class _Powers(NamedTuple):
    """What the exponential made of a block: the powers, and the sum of each row."""

    powers: View
    total: View


@lowers("attention")
def _attention(self: Lowering, node: Node) -> None:
    kernel = _Kernel(self, node)
    blocks = list(kernel.blocks())
    for begin, end in self.portions(len(blocks), len(blocks) * _NS_BLOCK):
        kernel.run(blocks[begin:end])


class _Kernel:
    """The arrays of one attention by dimensions: outer ones, queries or keys, and the depth or width."""

    def __init__(self, self_: Lowering, node: Node) -> None:
        self.lowering, self.e, self.node = self_, self_.emitter, node
        attrs = node.attrs
        self.space: tuple[int, ...] = attrs["space"]
        queries, keys, values, *extras = node.operands
        first, second = attrs["first"], attrs["second"]
        self.queries = self._arranged(queries, split_axes(first, 0, len(queries.shape)), last_inner=True)
        self.keys = self._arranged(keys, split_axes(first, 1, len(keys.shape)), last_inner=False)
        side = 1 - attrs["side"]
        self.values = self._arranged(values, split_axes(second, side, len(values.shape)), last_inner=False)
        self.first_type = queries.dtype if queries.dtype == keys.dtype else "f32"
        self.second_type = values.dtype if values.dtype == attrs["shares"] else "f32"
        self.shared = len(self.keys.shape) - 2  # dimensions of the batch
        self.extras: list[Array | Splat] = []
        for one in extras:
            splat = self_.splats.get(one)
            kind = element_type(one.dtype).storage
            self.extras.append(self_.array(one) if splat is None else Splat(kind, splat))
        self.out = self._result(node)

    def _arranged(self, value: Value, axes: tuple[list[int], list[int], list[int]], *, last_inner: bool) -> Array:
        """Return an operand as (outer..., rows, depth) or (outer..., depth, columns), no outer one of 1."""
        array = self.lowering.array(value)
        batch, free, inner = axes
        outer = [axis for axis in batch if array.shape[axis] != 1]
        deep = 1
        for axis in inner:
            deep *= array.shape[axis]
        if last_inner:
            kept = [axis for axis in free if array.shape[axis] != 1]
            order, shape = [*batch, *free, *inner], [*(array.shape[axis] for axis in (*outer, *kept)), deep]
            if not kept:
                shape.insert(-1, 1)
        else:
            wide = 1
            for axis in free:
                wide *= array.shape[axis]
            order, shape = [*batch, *inner, *free], [*(array.shape[axis] for axis in outer), deep, wide]
        return self.lowering.reshaped(array.permuted(order), shape)

    def _result(self, node: Node) -> Array:
        """Allocate the result; return it as (outer..., rows, columns) in the order of the index space."""
        attrs = node.attrs
        self_ = self.lowering
        batch, rows = attrs["batch"], attrs["rows"]
        wide = self.values.shape[-1]
        value = node.result
        lead = [self.space[axis] for axis in (*batch, *rows)]
        order = [(*batch, *rows).index(axis) for axis in range(len(lead))]
        if attrs["side"] == 0:
            found = self_.result(node).reshaped((*lead, wide))
        elif value in self_.direct:
            many = len(batch)
            turned = self_.result(node).reshaped((*lead[:many], wide, *lead[many:]))
            assert turned is not None  # dense
            found = turned.permuted([*range(many), *range(many + 1, len(lead) + 1), many])
        else:
            # The rows stay side by side; the graph sees them in its own order.
            made = self_.new(value.dtype, (*lead, wide))
            many = len(split_axes(attrs["second"], 0, 0)[0])
            last = value.shape[many:]
            free = len(self.node.operands[2].shape) - many - len(attrs["second"]["lhs_contracting"])
            logical = made.reshaped((*value.shape[:many], *last[free:], *last[:free]))
            assert logical is not None  # dense
            behind = len(value.shape) - many - free
            self_.values[value] = logical.permuted(
                [*range(many), *range(many + behind, many + behind + free), *range(many, many + behind)]
            )
            found = made
        assert found is not None  # dense
        return found.permuted([*order, len(lead)])

    def blocks(self) -> Iterator[_Block]:
        """Yield the blocks, those that share keys and values side by side."""
        *outer, rows, _ = self.space
        for place in places_of(*map(range, outer)):
            for first in range(0, rows, _ROWS):
                yield _Block(place, first, min(_ROWS, rows - first))

    def run(self, blocks: Sequence[_Block]) -> None:
        """Append blocks: the scores of each in front of the second product of the one before."""
        self._keys: tuple[tuple[int, ...], list[View]] | None = None
        self._values: tuple[tuple[int, ...], list[View]] | None = None
        self._masks: dict[object, View] = {}
        self._mask_bytes = 0
        ahead: tuple[_Block, _Powers, list[View]] | None = None
        for block in blocks:
            powers = self._scores(block)
            values = self._strips_of_values(block)
            if ahead is not None:
                self._mix(*ahead)
            ahead = block, powers, values
        if ahead is not None:
            self._mix(*ahead)

    # The first product and the exponential

    def _scores(self, block: _Block) -> _Powers:
        e, attrs = self.e, self.node.attrs
        e.origin = attrs["scores_origin"]
        kind = element_type(self.first_type).storage
        queries = self.queries
        part = queries.sliced((*block.place, block.first, 0), (*(1,) * len(block.place), block.rows, queries.shape[-1]))
        part = part._replace(shape=(1, *part.shape[-2:]), strides=(0, *part.strides[-2:])).permuted((0, 2, 1))
        weights = strips_of(e, Side(part, kind), 0, 0, block.rows)
        moving = self._strips_of_keys(block)
        length = self.space[-1]
        plain = attrs["body"] is None and attrs["fill"] is None
        held = plain and length <= _HELD * _BANK
        whole = None if held else e.tile(Dtype.FLOAT32, block.rows, (length,))
        banks = [(start, min(_BANK, length - start)) for start in range(0, length, _BANK)]
        pieces = []
        for start, width in banks:
            e.origin = attrs["scores_origin"]
            total = e.tile(Dtype.FLOAT32, block.rows, (width,), psum=True)
            for number, (one, other) in enumerate(zip(weights, moving, strict=True)):
                e.matmul(total, one, span(other, start, width), number > 0)
            if whole is None:
                pieces.append(total)
                continue
            self._shaped(span(whole, start, width), total, block, start)
        if whole is not None:
            pieces = [whole]
        return self._exponential(pieces, length)

    def _shaped(self, out: View, total: View, block: _Block, start: int) -> None:
        """Write what the graph makes of a bank of scores, all but the factor."""
        e, attrs = self.e, self.node.attrs
        e.origin = attrs["softmax_origin"]
        body: Graph | None = attrs["body"]
        width = out.dims[0][1]
        if body is None and attrs["fill"] is None:
            e.evict(out, total)
            return
        extras = [self._extra(one, block, start, width) for one in self.extras]
        if body is None:
            e.fill(out, attrs["fill"])
            e.choose(out, extras[0], total)
            return
        scores = total
        product = element_type(attrs["product"]).storage
        if product is not Dtype.FLOAT32:
            scores = e.like(total, product)
            e.cast(scores, total)
        made = dict(zip(body.parameters, [scores, *extras], strict=True))
        for node in body.nodes:
            if node.opcode != "parameter":
                e.origin = node.origin
                made[node.result] = apply(e, node, [made[one] for one in node.operands])
        e.cast(out, made[body.roots[0]])

    def _extra(self, given: Array | Splat, block: _Block, start: int, width: int) -> View:
        """Return the part of another array that goes with a bank of scores; small ones are loaded once."""
        e = self.e
        if isinstance(given, Splat):
            like = e.tile(Dtype.UINT8, block.rows, (1,))._replace(dims=((0, width),))
            return constant_like(e, like, given.dtype, given.value)
        strides = [step for step, extent in zip(given.strides, given.shape, strict=True) if extent != 1]
        offset = given.offset + sum(at * step for at, step in zip(block.place, strides, strict=False))
        plane = Array(given.allocation, given.dtype, offset, self.space[-2:], tuple(strides[-2:]))
        key = (given.allocation.id, given.dtype, offset, plane.strides, block.first, start)
        found = self._masks.get(key)
        if found is not None:
            return found
        tile = Tile((block.first, start), (block.rows, width), (0, 1), 1)
        found = load(e, part_of(plane, plane.strides, tile), tile)
        size = width * given.dtype.size
        if self._mask_bytes + size <= _MASK_BYTES:
            self._mask_bytes += size
            self._masks[key] = found
        return found

    def _exponential(self, pieces: list[View], length: int) -> _Powers:
        """Append exp(scale * (scores - their row's largest)), and its sum."""
        e, attrs = self.e, self.node.attrs
        e.origin = attrs["softmax_origin"]
        rows, scale = pieces[0].partitions, attrs["scale"]
        largest = e.tile(Dtype.FLOAT32, rows, (len(pieces),))
        for number, piece in enumerate(pieces):
            e.reduce(span(largest, number, 1), piece, AluOp.MAX, 1, negate=len(pieces) == 1)
        if len(pieces) > 1:
            one = e.tile(Dtype.FLOAT32, rows)
            e.reduce(one, largest, AluOp.MAX, 1, negate=True)
            largest = one
        if scale != 1.0:
            bias = e.tile(Dtype.FLOAT32, rows)
            e.tensor_scalar(bias, largest, AluOp.MULTIPLY, scale)
            largest = bias
        powers = e.tile(element_type(self.second_type).storage, rows, (length,))
        total = e.tile(Dtype.FLOAT32, rows)
        start = 0
        for number, piece in enumerate(pieces):
            width = piece.dims[0][1]
            command = ReduceCommand.RESET_REDUCE if number == 0 else ReduceCommand.REDUCE
            e.activation(span(powers, start, width), piece, "exp", scale, largest, command)
            start += width
        e.read_total(total)
        return _Powers(powers, total)

    # The second product

    def _mix(self, block: _Block, made: _Powers, values: list[View]) -> None:
        """Append the powers' product with the values, divided by their sum, and store it."""
        e, attrs = self.e, self.node.attrs
        e.origin = attrs["softmax_origin"]
        inverse = e.tile(Dtype.FLOAT32, block.rows)
        e.compute(words.Reciprocal, "DVE", {"src": made.total, "dst": inverse}, {})
        e.origin = self.node.origin
        width = values[0].dims[0][1]
        total = e.tile(Dtype.FLOAT32, block.rows, (width,), psum=True)
        for number, (turned, one) in enumerate(zip(self._turned(made.powers), values, strict=True)):
            e.matmul(total, turned, one, number > 0)
        out = e.tile(self.out.dtype, block.rows, (width,))
        e.tensor_scalar(out, total, AluOp.MULTIPLY, inverse)
        shape = (*(1,) * len(block.place), block.rows, width)
        target = self.out.sliced((*block.place, block.first, 0), shape)
        e.copy(target._replace(shape=shape[-2:], strides=target.strides[-2:]), out)

    def _turned(self, powers: View) -> list[View]:
        """Return the powers with keys on partitions, 128 of them a tile; several are copied out of PSUM at once."""
        e = self.e  # powers are finite: nothing is to be saturated
        rows, length = powers.partitions, powers.dims[0][1]
        exact = e.limits.transpose_exact
        middle_type = powers.dtype if exact else Dtype.FLOAT32
        ones = e.identity(powers.dtype)._replace(partitions=rows, dims=((1, rows),))
        out: list[View] = []
        many = _BANK // rows
        for begin in range(0, length, many * _ROWS):
            end = min(length, begin + many * _ROWS)
            keys = min(_ROWS, end - begin)
            starts = [at for at in range(begin, end, _ROWS) if end - at >= keys or end == length]
            full = [at for at in starts if length - at >= _ROWS]
            for group in filter(None, (full, [at for at in starts if at not in full])):
                deep = min(_ROWS, length - group[0])
                middle = e.tile(middle_type, deep, (len(group) * rows,), psum=True)
                turned = e.tile(powers.dtype, deep, (len(group) * rows,))
                for number, at in enumerate(group):
                    e.matmul(span(middle, number * rows, rows), span(powers, at, deep), ones, False, exact)
                e.evict(turned, middle)
                out += [span(turned, number * rows, rows) for number in range(len(group))]
        return out

    # Operands that blocks share

    def _strips_of_keys(self, block: _Block) -> list[View]:
        place = block.place[: self.shared]
        if self._keys is None or self._keys[0] != place:
            kind = element_type(self.first_type).storage
            self._keys = place, strips_of(self.e, Side(_plane(self.keys, place), kind), 0, 0, self.space[-1])
        return self._keys[1]

    def _strips_of_values(self, block: _Block) -> list[View]:
        self.e.origin = self.node.origin
        axes = self.node.attrs["batch"]
        place = tuple(block.place[axis] for axis in axes)
        if self._values is None or self._values[0] != place:
            kind = element_type(self.second_type).storage
            side = Side(_plane(self.values, place), kind)
            self._values = place, strips_of(self.e, side, 0, 0, self.values.shape[-1])
        return self._values[1]


def _plane(array: Array, place: tuple[int, ...]) -> Array:
    """Return the matrix at a place of the outer dimensions, with one dimension in front."""
    shape = (*(1,) * len(place), *array.shape[-2:])
    part = array.sliced((*place, 0, 0), shape)
    return part._replace(shape=(1, *shape[-2:]), strides=(0, *part.strides[-2:]))
