"""Products with the element-wise operations behind them: what the array makes is finished before it is stored.

A product whose one reader is a kernel of element-wise nodes over the same elements is lowered together with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod

from formats.named_tuple import NamedTuple
from formats.neuron_core import PARTITIONS, PSUM_FP32
from neurontools.builder.trace import View
from neurontools.compiler.arrays import Array
from neurontools.compiler.elementwise import ELEMENTWISE, apply, as_stored
from neurontools.compiler.emitter import Emitter
from neurontools.compiler.fusion import Group, squeezed
from neurontools.compiler.graph import Graph, Node, Value
from neurontools.compiler.kernels import Part, Parts, Splat
from neurontools.compiler.loading import load, part_of
from neurontools.compiler.tile_math import constant_like
from neurontools.compiler.tiling import Tile

__all__ = ["Finished", "Finisher", "with_epilogues"]

_ROWS, _COLUMNS = PARTITIONS, PSUM_FP32  # of a tile of a product


class Finished(NamedTuple):
    """A product and the kernel that finishes it; `result` is what the kernel reads of it."""

    product: Node
    result: Value
    group: Group

    @property
    def operands(self) -> tuple[Value, ...]:
        """Return what both read from outside."""
        rest = (one for one in self.group.inputs if one is not self.result)
        return tuple(dict.fromkeys((*self.product.operands, *rest)))


Step = Group | Node | Finished


def with_epilogues(steps: Iterable[Group | Node], graph: Graph, most: int) -> Iterator[Step]:
    """Yield steps with products joined to the kernels, of at most `most` nodes, that alone read them."""
    listed = list(steps)
    readers: dict[Value, list[int]] = {}
    for number, step in enumerate(listed):
        for value in step.operands if isinstance(step, Node) else step.inputs:
            readers.setdefault(value, []).append(number)
    joined: dict[int, Finished] = {}
    gone: set[int] = set()
    roots = set(graph.roots)
    for number, step in enumerate(listed):
        if not isinstance(step, Node) or step.opcode != "dot" or not all(one.size for one in step.operands):
            continue
        value, passed = step.result, [number]
        while value not in roots and len(readers.get(value, ())) == 1:
            place = readers[value][0]
            reader = listed[place]
            # One reader only: with another the product had to be stored too, and nothing were saved.
            if isinstance(reader, Group):
                if place not in joined and _finishes(reader, value, most) and _pays(step):
                    joined[place] = Finished(step, value, reader)
                    gone.update(passed)
                break
            if reader.opcode != "reshape":
                break
            value = reader.result
            passed.append(place)
    for number, step in enumerate(listed):
        if number not in gone:
            yield joined.get(number, step)


def _finishes(group: Group, value: Value, most: int) -> bool:
    return (
        len(group.nodes) <= most
        and group.split == len(group.shape)  # no reduction, which would need rows that other tiles hold
        and group.shape == squeezed(value.shape)
        and all(one.opcode in ELEMENTWISE for one in group.nodes)
    )


def _pays(product: Node) -> bool:
    """Return whether the tiles of a product are not many more than those of a kernel over its elements."""
    left, right = (one.shape for one in product.operands)
    attrs = product.attrs
    batch = prod(left[axis] for axis in attrs["lhs_batch"])
    inner = prod(left[axis] for axis in attrs["lhs_contracting"])
    rows, columns = (prod(one) // (batch * inner) for one in (left, right))
    mine = batch * -(-rows // _ROWS) * -(-columns // _COLUMNS)
    return bool(mine <= max(1, 2 * rows * columns * batch // (_ROWS * _COLUMNS)))


class Finisher:
    """Carry out a kernel on a tile of a product; `inputs` and `outputs` are arrays of (batch, rows, columns)."""

    def __init__(
        self, e: Emitter, step: Finished, inputs: dict[Value, Array | Splat], outputs: Mapping[Value, Array]
    ) -> None:
        self.e, self.step, self.inputs, self.outputs = e, step, inputs, outputs
        self.shape = (1, 1, 1)  # of the product: batch, rows, columns
        self.parts: Parts = {}

    def finish(self, made: View, place: tuple[int, int, int]) -> dict[Value, View]:
        """Append the nodes for a tile of a product at (batch, row, column); return the tiles of the outputs."""
        e = self.e
        (width,) = (count for _, count in made.dims)
        origin = e.origin
        tiles: dict[Value, View] = {self.step.result: made}
        for value, given in self.inputs.items():
            if isinstance(given, Splat):
                tiles[value] = constant_like(e, made, given.dtype, given.value)
                continue
            plane = given.sliced((place[0], 0, 0), (1, *given.shape[1:]))
            plane = plane._replace(shape=plane.shape[1:], strides=plane.strides[1:])
            tile = Tile(place[1:], (made.partitions, width), (0, 1), 1)
            tiles[value] = load(e, part_of(plane, plane.strides, tile), tile)
        for node in self.step.group.nodes:
            e.origin = node.origin
            tiles[node.result] = apply(e, node, [tiles[one] for one in node.operands])
        found = {value: as_stored(e, value.dtype, tiles[value]) for value in self.outputs}
        e.origin = origin
        self._note(tiles, place)
        return found

    def _note(self, tiles: Mapping[Value, View], place: tuple[int, int, int]) -> None:
        """Note where results lie that are not stored."""
        made = tiles[self.step.result]
        _, rows, columns = self.shape
        first = (place[0] * rows + place[1]) * columns + place[2]
        (width,) = (count for _, count in made.dims)
        inside = [self.step.product.result, self.step.result, *(node.result for node in self.step.group.nodes)]
        for value in dict.fromkeys(inside):
            view = tiles.get(value, made)
            if value not in self.outputs and view.elements == made.elements:
                part = Part(view, first, ((columns, made.partitions),), ((1, width),), self.e.core)
                self.parts.setdefault(value, []).append(part)
