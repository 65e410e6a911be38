"""Kinds of tensors: what views that differ in their storage and columns only have in common, once per process.

Kernels index tiles of a few shapes by the same few slices, and give them to the same few instructions. Which shape
comes of an index, which dimensions engines see, and what an instruction says to its operands, depends on shapes,
strides, types, memories and partitions alone: `Kind.parts` has the indices that were asked for, `Operations` the
instructions.
"""

from __future__ import annotations

from typing import Any

from formats.dtypes import Dtype
from neurontools.builder.trace import Space
from neurontools.nki.strides import contiguous_strides, reach_of

__all__ = [
    "FAR",
    "INDIRECT",
    "NOTHING",
    "WHOLES",
    "Bounds",
    "Kind",
    "Operations",
    "kind_of",
    "operations_under",
    "whole",
]

FAR = 1 << 90
"""The end of a slice without one in `Bounds`: no kernel names an element so far away."""

Bounds = tuple[int | tuple[int, int] | tuple[int, int, int], ...]
"""An index by dimension: the number of an element, start and size, or start, stop and step as of `FAR` elements."""

Dims = tuple[tuple[int, int], ...]
_Shape = tuple[int, ...]

_MOST = 1 << 12
_MOST_PARTS = 1 << 15
_MOST_OPERATIONS = 1 << 13
_kinds: dict[tuple[Any, ...], Kind] = {}
WHOLES: dict[tuple[Any, ...], Kind] = {}
"""What `whole` has found, by shape, types, the identity of the memory and first partition: asked first at each tile."""

_dims: dict[Dims, Dims] = {}
_operations: dict[int, tuple[object, Operations]] = {}
_parts = 0  # of all kinds, since they were forgotten last
_HBM = Space.HBM


class Kind:
    """Views of one shape, strides, types, memory and first partition; `row` are the elements of one, 0 in HBM.

    `dims` are the dimensions as the builder reads them, without the partitions; None where no engine or queue could
    work on such a view. Its first element lies at `low` or behind it, and before `end`. The very object tells kinds
    apart, so that it serves as a key: of one kind there may be several.
    """

    __slots__ = (
        "base", "dims", "end", "low", "partition", "partitions", "parts", "reach", "row", "shape", "span", "strides",
    )  # fmt: skip

    def __init__(self, shape: _Shape, strides: _Shape, row: int, size: int, partition: int) -> None:
        self.shape = shape
        self.strides = strides
        self.row = row
        self.partition = partition
        self.partitions = shape[0] if row else 1
        self.base = partition * row
        self.low, self.end = (self.base, self.base + row) if row else (-FAR, FAR)
        self.dims: Dims | None = None
        self.span = 0  # bytes of a partition from the first element to the last
        below, above, first = reach_of(strides, shape)
        # elements in front of the first one and behind it, in its partition and in all
        self.reach = below, above, below + min(first, 0), above + max(first, 0)
        if 0 not in shape and not (row and strides[0] != row and shape[0] != 1):
            dims = tuple(zip(strides, shape, strict=True))
            if row:
                dims = dims[1:] or ((1, 1),)
            self.dims = _dims.setdefault(dims, dims)  # traces hold millions
            self.span = (1 + sum(step * (count - 1) for step, count in dims)) * size
        self.parts: dict[Bounds | tuple[Any, ...], tuple[Kind, int]] = {}  # with the elements in front of the first

    def remember(self, bounds: Bounds | tuple[Any, ...], kind: Kind, front: int) -> None:
        """Note what an index, or a method with what it is given, makes of such a view."""
        global _parts
        _parts += 1
        if _parts > _MOST_PARTS:
            _forget()
        self.parts[bounds] = kind, front


INDIRECT = Kind((1,), (1,), 0, 1, 0)
"""What all views have whose addresses depend on data: nothing is known of them."""


def kind_of(shape: _Shape, strides: _Shape, offset: int, row: int, dtype: str, code: Dtype, space: Space,
            address: tuple[int, int] | None) -> Kind:  # fmt: skip
    """Return the kind of a view."""
    partition = offset // row if row else 0
    # Python finds the value of a member of an enumeration, and its hash, by functions.
    key = shape, strides, row, dtype, code, id(space), partition, 0 if address is None else address[0]
    found = _kinds.get(key)
    if found is None:
        if len(_kinds) >= _MOST:
            _forget()
        found = _kinds[key] = Kind(shape, strides, row, code.size, partition)
    return found


def whole(shape: _Shape, dtype: str, code: Dtype, space: Space, address: tuple[int, int] | None) -> Kind:
    """Return the kind of all of an allocation, which is row major."""
    key = shape, dtype, code, id(space), 0 if address is None else address[0]
    found = WHOLES.get(key)
    if found is None:
        row = 0
        if space is not _HBM:
            row = 1
            for extent in shape[1:]:
                row *= extent
        found = kind_of(shape, contiguous_strides(shape), 0, row, dtype, code, space, address)
        WHOLES[key] = found
    return found


def _forget() -> None:
    """Let go of all kinds; tensors that have one keep it."""
    global _parts
    _parts = 0
    for table in (_kinds, WHOLES, _dims):
        table.clear()


class Operations(dict[tuple[Any, ...], Any]):
    """What instructions of one generation make of operands of known kinds, by all that they ask for.

    Only what went well is noted: an error is worked out again, with the names of its tensors.
    """

    __slots__ = ()

    def note(self, key: tuple[Any, ...], made: Any) -> None:
        """Note what came of a call."""
        if INDIRECT in key:
            return
        if len(self) >= _MOST_OPERATIONS:
            self.clear()
        self[key] = made


class _Nothing(Operations):
    """What a lenient launch knows, which warns of each operation."""

    __slots__ = ()

    def note(self, key: tuple[Any, ...], made: Any) -> None:
        """Note nothing."""


NOTHING = _Nothing()


def operations_under(limits: object) -> Operations:
    """Return what is known under the limits of a generation, which are one object."""
    found = _operations.get(id(limits))
    if found is None or found[0] is not limits:
        found = _operations[id(limits)] = limits, Operations()
    return found[1]
