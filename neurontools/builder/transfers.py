"""From one copy to DMA words: direct 2-D words where the pattern fits, else a trigger with a list of descriptors."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

from formats.dtypes import Dtype
from formats.isa import DmaAddress, DmaPattern, PseudoDmaDirect2d
from formats.named_tuple import NamedTuple
from formats.neff.transfers import Descriptor
from formats.neuron_core import SBUF_PARTITION_STRIDE, WORD
from neurontools.builder.areas import Access, Way, access_to
from neurontools.builder.dims import Dims, Limit, common, elements, split
from neurontools.builder.encode import refuse
from neurontools.builder.templates import keep
from neurontools.builder.trace import DmaOp, Space, View

__all__ = ["DESCRIPTOR", "MOST_DESCRIPTORS", "Direct", "Side", "Transfer", "TransferEncoder", "Walk", "byte_dims",
           "descriptors", "direct_word", "dtype_name", "variable_code", "walk"]  # fmt: skip

_SRC, _DST = PseudoDmaDirect2d.FIELDS["src"].offset, PseudoDmaDirect2d.FIELDS["dst"].offset
_SEMAPHORE = PseudoDmaDirect2d.FIELDS["semaphore"].offset
_HBM = Space.HBM
# A direct word: semaphore, then offset and code of source and target, and all that stands around them.
_WORD = struct.Struct(f"<{_SEMAPHORE}sB{_SRC - _SEMAPHORE - 1}sII{_DST - _SRC - 8}sII{WORD - _DST - 8}s")
_pack = _WORD.pack
# element sizes and counts of a direct word have 16 bits (isa.md 8)
_MOST_RUN = (1 << 16) - 1
_MOST_COUNT = (1 << 16) - 1
_STEPS = -(1 << 31), (1 << 31) - 1
_DIRECT = Limit(2, _MOST_COUNT, *_STEPS)
# A descriptor has four dimensions, of which the innermost is the contiguous run (formats.md 3.6).
DESCRIPTOR = Limit(3, (1 << 31) - 1, *_STEPS)
# A few direct words start sooner than one list: more than these, and the list is shorter.
_MOST_DIRECT = 4
# Ours: a transfer that needs more is better written as several.
MOST_DESCRIPTORS = 1 << 14


class Side(NamedTuple):
    """One end: byte of the first element in its variable, and the variable as words and as descriptors name it."""

    offset: int
    code: int
    variable: str


@lru_cache(maxsize=1 << 10)
def variable_code(form: str, index: int) -> int:
    """Return the upper half of a DMA address: form and index of a variable or table entry."""
    word = PseudoDmaDirect2d(src=DmaAddress(form, index, 0)).raw
    return int.from_bytes(word[_SRC + 4 : _SRC + 8], "little")


class Walk(NamedTuple):
    """Both ends walked together: runs of `run` elements, dimensions outermost first, steps in bytes."""

    run: int
    src: Dims
    dst: Dims


class Direct(NamedTuple):
    """A direct word without addresses, and how far behind the start of each side it begins.

    `around` is what stands around its semaphore and addresses, where `direct_word` puts these in.
    """

    raw: bytes
    src_delta: int
    dst_delta: int
    around: tuple[bytes, ...] = ()


# A descriptor without variables: how far behind the start of its side the source begins, its sizes and steps, the same
# of the target, what it does, and the types of both.
Listed = tuple[int, tuple[int, ...], tuple[int, ...], int, tuple[int, ...], tuple[int, ...], str, tuple[str, str]]


class Transfer(NamedTuple):
    """What copies of one shape share: the walk, direct words unless a list is shorter, and the bytes of both sides.

    `listed` is that list once one was asked for, with `descriptors`.
    `nbytes` is what arrives, over all partitions. `src_way` and `dst_way` say how each side is walked and cut into
    descriptors: accesses of one queue that are alike there go through the same rings.
    """

    way: Walk
    direct: list[Direct] | None
    listed: list[Listed]
    src: Access
    dst: Access
    nbytes: int
    src_way: Way
    dst_way: Way


_encoded: dict[Any, Transfer] = {}


class TransferEncoder:
    """Encode the copies of one program; copies of one shape share their work."""

    def __init__(self, direct: bool) -> None:
        self.direct = direct
        self._known: dict[Any, Transfer] = {}

    def encode(self, op: DmaOp) -> Transfer:
        """Return how a copy is carried out, by direct words or, with `descriptors`, by a list.

        Raises BuildError, with the kernel line, for views that no transfer can pair.
        """
        src, dst = op.src, op.dst
        key = (
            op.transpose, src.allocation.space is _HBM, dst.allocation.space is _HBM,
            src[1::2], dst[1::2],  # type, partitions, dims of each
        )  # fmt: skip
        known = self._known.get(key)
        if known is not None:
            return known
        known = _encoded.get((self.direct, key))
        if known is not None:
            self._known[key] = known
        else:
            way = walk(op)
            direct = _direct_templates(op, way) if self.direct else None
            cut = (op.transpose, direct is None, way.run * src.dtype.size, way.run * dst.dtype.size,
                   *(count for _, count in way.src))  # fmt: skip
            known = self._known[key] = Transfer(
                way,
                direct,
                [],
                access_to(0, src.dims, src.dtype.size, False),
                access_to(1, dst.dims, dst.dtype.size, True),
                dst.elements * dst.dtype.size,
                (*cut, way.src),
                (*cut, way.dst),
            )
            keep(_encoded, (self.direct, key), known)
        return known


def direct_word(word: Direct, src: Side, dst: Side, semaphore: int) -> bytes:
    """Return a direct word with its addresses and semaphore."""
    _, src_delta, dst_delta, (head, front, middle, tail) = word
    start, code, _ = src
    end, its_code, _ = dst
    return _pack(head, semaphore, front, start + src_delta, code, middle, end + dst_delta, its_code, tail)


def byte_dims(view: View) -> Dims:
    """Return all dimensions of a view with steps in bytes, partitions outermost."""
    size = view.dtype.size
    inner = tuple((step * size, count) for step, count in view.dims)
    if view.allocation.space is Space.HBM:
        return inner
    return ((SBUF_PARTITION_STRIDE, view.partitions), *inner)


def walk(op: DmaOp) -> Walk:
    """Return how a copy goes through both of its views.

    A transpose walks its source with the dimensions the other way round. Raises BuildError where the elements of both
    sides cannot be paired.
    """
    src, dst = byte_dims(op.src), byte_dims(op.dst)
    if op.transpose:
        src = tuple(pair for pair in src if pair[1] != 1)
        if len(src) > 2:
            raise refuse(op, f"transposes {len(src)} dimensions, two can be swapped")
        src = src[::-1]
    both = common([src, dst])
    if both is None:
        if elements(src) != elements(dst):
            raise refuse(op, f"copies {elements(src)} elements to {elements(dst)}")
        raise refuse(op, "pairs views whose dimensions do not nest; copy it in parts")
    src, dst = both
    run = 1
    src_size, dst_size = op.src.dtype.size, op.dst.dtype.size
    # a single element
    if src[-1] == (1, 1) and dst[-1] == (1, 1):
        return Walk(1, (), ())
    if src[-1][0] == src_size and dst[-1][0] == dst_size:
        run = src[-1][1]
        src, dst = src[:-1], dst[:-1]
    largest = _MOST_RUN // max(src_size, dst_size)
    if run > largest:
        # into equal parts, the largest that fit: all elements of one word have one size
        part = next((size for size in range(largest, 0, -1) if run % size == 0), 1)
        src, dst = (*src, (part * src_size, run // part)), (*dst, (part * dst_size, run // part))
        run = part
    return Walk(run, src, dst)


def _direct_templates(op: DmaOp, way: Walk) -> list[Direct] | None:
    """Return the direct words of a copy, without addresses; None where too many would be needed."""
    if op.transpose:
        return None
    both = (way.src or ((1, 1),), way.dst or ((1, 1),))
    pieces = split(both, [_DIRECT, _DIRECT])
    if len(pieces) > _MOST_DIRECT:
        return None
    words = []
    for piece in pieces:
        word = PseudoDmaDirect2d(
            src_pattern=_pattern(piece.dims[0]),
            src_element_size=way.run * op.src.dtype.size,
            src_dtype=op.src.dtype,
            dst_pattern=_pattern(piece.dims[1]),
            dst_element_size=way.run * op.dst.dtype.size,
            dst_dtype=op.dst.dtype,
        )
        head, _, front, _, _, middle, _, _, tail = _WORD.unpack(word.raw)
        words.append(Direct(word.raw, piece.offsets[0], piece.offsets[1], (head, front, middle, tail)))
    return words


def _pattern(dims: Dims) -> DmaPattern:
    """Return two dimensions, innermost first; what is missing has count 1 and step 1, as in real files."""
    (step, count), (outer_step, outer_count) = dims[-1], dims[-2] if len(dims) > 1 else (1, 1)
    return DmaPattern((step, outer_step), (count, outer_count))


def descriptors(op: DmaOp, how: Transfer, src: Side, dst: Side) -> list[Descriptor]:
    """Return the descriptors of a copy: at most three dimensions and a run each."""
    if not how.listed:
        how.listed.extend(_listed(op, how.way))
    (start, _, source), (end, _, target) = src, dst
    return [
        Descriptor(source, start + ahead, source_sizes, source_steps, target, end + behind, sizes, steps, kind, *types)
        for ahead, source_sizes, source_steps, behind, sizes, steps, kind, types in how.listed
    ]


def _listed(op: DmaOp, way: Walk) -> list[Listed]:
    both = (way.src or ((1, 1),), way.dst or ((1, 1),))
    pieces = split(both, [DESCRIPTOR, DESCRIPTOR])
    if len(pieces) > MOST_DESCRIPTORS:
        raise refuse(op, f"needs {len(pieces)} descriptors, at most {MOST_DESCRIPTORS} are written")
    kind = "transpose" if op.transpose else "copy" if op.src.dtype is op.dst.dtype else "cast"
    out = []
    for piece in pieces:
        sizes = [[count for _, count in reversed(dims)] for dims in piece.dims]
        steps = [[step for step, _ in reversed(dims)] for dims in piece.dims]
        out.append(
            (
                piece.offsets[0],
                (way.run * op.src.dtype.size, *sizes[0]),
                (1, *steps[0]),
                piece.offsets[1],
                (way.run * op.dst.dtype.size, *sizes[1]),
                (1, *steps[1]),
                kind,
                (dtype_name(op.src.dtype), dtype_name(op.dst.dtype)),
            )
        )
    return out


# Spellings of the engine JSON that are not NumPy's. Source: formats.md 3.6.
_JSON_NAMES = {
    Dtype.FLOAT8E3: "float8e3",
    Dtype.FLOAT8E4: "float8e4",
    Dtype.FLOAT8E5: "float8e5",
    Dtype.FLOAT32R: "float32r",
}


def dtype_name(dtype: Dtype) -> str:
    """Return the spelling of an element type in the engine's JSON."""
    return _JSON_NAMES.get(dtype) or dtype.numpy_name
