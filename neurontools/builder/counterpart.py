"""The second program of a launch, where it does what the first one does at other places of tensors in device memory.

Kernels divide their work evenly: the programs of a launch mostly come to the same operations on the same tiles, and
differ in the rows that their transfers load and store. Then tiles, waits, semaphores and words of both are the same
but for the addresses of transfers, and what was worked out for one core is taken for the other.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from operator import attrgetter, itemgetter, sub
from typing import Any

from formats.engines import ENGINES
from formats.isa import DmaIndirect, PseudoDmaDirect2d
from formats.neff.writer_subgraph import SubgraphWriter
from formats.neuron_core import WORD
from neurontools.builder.allocate import Life
from neurontools.builder.chip import QueueFacts
from neurontools.builder.indirect import indirect_words
from neurontools.builder.streams import CONDITION
from neurontools.builder.tiles import Tiles
from neurontools.builder.trace import (
    BarrierOp,
    ComputeOp,
    DmaOp,
    IndirectDmaOp,
    LoopEndOp,
    LoopOp,
    MatmulOp,
    Op,
    SendRecvOp,
    Space,
    Trace,
    View,
)
from neurontools.builder.transfers import Transfer, descriptors
from neurontools.builder.variables import Variables

__all__ = ["Move", "are_counterparts", "moved_words", "tiles_of"]

_HBM = Space.HBM
_life_of: Callable[[tuple[Any, ...]], Life] = partial(tuple.__new__, Life)
_ALLOCATION, _OFFSET = (itemgetter(View._fields.index(field)) for field in ("allocation", "offset"))
_FORM = itemgetter(*map(View._fields.index, ("dtype", "partition", "partitions", "dims")))
_ID = attrgetter("id")
_STORAGE = attrgetter("id", "space", "name", "dtype", "shape", "kind", "address", "born", "partitions",
                      "partition_bytes")  # fmt: skip
_PLACE = attrgetter("source", "name")
_WORD = attrgetter("instruction", "engine")
_OPERANDS, _FIELDS = attrgetter("operands"), attrgetter("fields")
_COPY = attrgetter("engine", "transpose")
# What the words of others depend on besides views, source and name; of no kind here on the number of the program.
_SAID: dict[type[Any], Callable[[Any], object]] = {
    MatmulOp: attrgetter("accumulate", "is_transpose"),
    IndirectDmaOp: attrgetter("step", "rows", "engine", "scatter", "skip", "accumulate", "order"),
    BarrierOp: attrgetter("engine"),
    SendRecvOp: attrgetter("pipe"),  # the tile comes from where the other program has the same one
    LoopOp: attrgetter("counting"),
    LoopEndOp: type,
}
_KINDS = frozenset((ComputeOp, DmaOp, *_SAID))
_SRC, _DST = PseudoDmaDirect2d.FIELDS["src"].offset, PseudoDmaDirect2d.FIELDS["dst"].offset
_INDIRECT_SEMAPHORE = DmaIndirect.FIELDS["semaphore"].offset
_put_address = struct.Struct("<II").pack_into


Move = tuple[int, int, int, Transfer | None, QueueFacts, int, int]
"""A copy of a program: number of its operation; the engine whose words in front of a byte, the next, carry it out.

Then how, None for a copy by index, and of descriptors in a list: queue, block and semaphore. A plain tuple, as
`builder.areas.Access`.
"""


def are_counterparts(first: Trace, second: Trace, written: frozenset[int]) -> bool:
    """Return whether the words of two programs differ in addresses of transfers in device memory alone.

    `written` are the tensors, by allocation id, that any transfer writes. Accesses to one of those must be as far apart
    in one program as in the other: these are put in order by the bytes that they share.
    """
    ops, others = first.ops, second.ops
    if len(ops) != len(others) or first.after != second.after:
        return False
    kinds = [*map(type, ops)]
    if not _KINDS.issuperset(kinds) or kinds != [*map(type, others)]:
        return False
    mine, theirs = first.what_is_touched(), second.what_is_touched()
    views, its = mine.views, theirs.views
    touched = [*map(_ID, map(_ALLOCATION, views))]
    if mine.ends != theirs.ends:
        return False
    if touched != [*map(_ID, map(_ALLOCATION, its))] or not _are_equal(_FORM, views, its):
        return False
    if not _are_equal(_STORAGE, first.allocations, second.allocations) or not _are_equal(_PLACE, ops, others):
        return False
    on_chip = {one.id for one in first.allocations if one.space is not _HBM}
    apart: dict[int, int] = {}
    for number, distance in {*zip(touched, map(sub, map(_OFFSET, its), map(_OFFSET, views)), strict=True)}:
        if number in on_chip:
            if distance:
                return False
        elif number in written and apart.setdefault(number, distance) != distance:
            return False
    if not _are_equal(_COPY, mine.copies, theirs.copies):
        return False
    for kind in {*kinds} & _SAID.keys():
        if not _are_equal(_SAID[kind], _of_kind(kind, ops), _of_kind(kind, others)):
            return False
    return _say_the_same(mine.computing, theirs.computing)


def _of_kind(kind: type[Any], ops: list[Op]) -> list[Op]:
    return [op for op in ops if type(op) is kind]


def _are_equal(said: Callable[[Any], object], ones: Iterable[Any], others: Iterable[Any]) -> bool:
    return [*map(said, ones)] == [*map(said, others)]


def _say_the_same(ones: list[ComputeOp], others: list[ComputeOp]) -> bool:
    """Return whether operations of two programs have the same words but for their operands' addresses."""
    if not _are_equal(_WORD, ones, others) or not _are_equal(tuple, map(_OPERANDS, ones), map(_OPERANDS, others)):
        return False
    fields, its = [*map(_FIELDS, ones)], [*map(_FIELDS, others)]
    # Types as well, since 1 and 1.0 are equal and their bits are not; so it is with the two zeros.
    if fields != its or not _are_equal(tuple, fields, its):
        return False
    values, theirs = (list(chain.from_iterable(map(dict.values, each))) for each in (fields, its))
    if not _are_equal(type, values, theirs):
        return False
    return 0.0 not in values or _are_equal(repr, values, theirs)


def tiles_of(first: Trace, tiles: Tiles, second: Trace) -> Tiles:
    """Return the tiles of a program that are where its counterpart has them."""
    own = {one.id: other for one, other in zip(first.allocations, second.allocations, strict=True)}
    lives = [_life_of((own[tile.id], begin, end, source)) for tile, begin, end, source in tiles.lives]
    return Tiles(lives, tiles.places, tiles.groups)


def moved_words(
    words: dict[str, bytes], moves: list[Move], trace: Trace, variables: Variables, tiles: Tiles,
    writer: SubgraphWriter, name: Callable[[int], str],
) -> dict[str, bytes]:  # fmt: skip
    """Return the words of a program by engine, made of those of its counterpart with the transfers' own addresses.

    Lists of descriptors are written into the subgraph.
    """
    ops, places, side = trace.ops, tiles.places, variables.side
    raws = [words[engine] for engine in ENGINES]
    changed: dict[int, bytearray] = {}
    for number, engine, end, how, queue, block, semaphore in moves:
        op: Any = ops[number]
        src, dst = side(op.src, places), side(op.dst, places)
        if how is not None and how.direct is None:
            writer.dma_block(queue.name, block, queue.engine, descriptors(op, how, src, dst),
                             semaphore=semaphore, comment=name(number))  # fmt: skip
            continue
        raw = changed.get(engine)
        if raw is None:
            raw = changed[engine] = bytearray(raws[engine])
        if how is None:
            index = tiles.place(op.index.allocation)
            _put_indirect(raw, end, indirect_words(op, src, dst, index))
            continue
        assert how.direct is not None
        at = end - WORD * len(how.direct)
        start, code, _ = src
        stop, its_code, _ = dst
        for _, ahead, behind, _ in how.direct:
            _put_address(raw, at + _SRC, start + ahead, code)
            _put_address(raw, at + _DST, stop + behind, its_code)
            at += WORD
    return {
        engine: bytes(changed[number]) if number in changed else raws[number] for number, engine in enumerate(ENGINES)
    }


def _put_indirect(raw: bytearray, end: int, words: list[bytearray]) -> None:
    """Put words of a copy by index in front of a byte, in place of others whose waits and semaphores they take over."""
    at = end - sum(map(len, words))
    for word in words:
        before = raw[at : at + len(word)]
        word[CONDITION] = before[CONDITION]
        word[_INDIRECT_SEMAPHORE] = before[_INDIRECT_SEMAPHORE]
        raw[at : at + len(word)] = word
        at += len(word)
