"""Tensor indirection of gen4: columns gathered from, or scattered to, places in a tile of indices.

Source: `NkiTensor.indirect` of the nki.language pages. An index out of bounds is a fault (not documented).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from emulator.dtypes import Array, Step, bind_load, bind_store, chain
from emulator.engines.operands import packed, raw_input, raw_view, refuse, require_elements
from emulator.engines.registry import executes
from emulator.engines.rows import raw_rows, raw_rows_out
from emulator.port import Port
from emulator.scratch import scratch
from formats import isa
from formats.errors import UnsupportedError
from formats.isa.extension_indirection import Indirection

__all__ = ["column_places", "index_rows", "require_inside"]


def column_places(indices: Array, group: int, count: int) -> Array:
    """Return the column that each partition's element i lies in, (partitions, count), from rows of indices."""
    partitions, columns = indices.shape
    snake = indices.reshape(partitions // group, group, columns).transpose(0, 2, 1).reshape(partitions // group, -1)
    return snake[:, :count].astype(np.intp).repeat(group, axis=0)


def index_rows(word: isa.Instruction, port: Port) -> tuple[Array, Step]:
    """Return the indices of a word as rows in their own type, and the step that copies them there."""
    view = port.read("indices")
    if view.dtype.kind not in "iu":
        raise refuse(word, "indices are no integers", "indices", "an integer element type", view.dtype.name)
    return packed(view, (view.shape[0], view.size // view.shape[0]))


def require_inside(word: isa.Instruction, places: Array, width: int) -> None:
    """Raise a fault unless all indices are below `width`; a negative one does not count from the end as NumPy's do."""
    for worst in (int(places.min()), int(places.max())) if places.size else ():
        if not 0 <= worst < width:
            raise refuse(word, "an index is out of bounds", "indices", f"0 to {width - 1}", str(worst))


def _indices(word: Indirection, port: Port, count: int, width: int) -> tuple[Array, Step, Step]:
    """Return the places of `count` elements below `width`, the step that loads indices and the one that decodes."""
    rows, load = index_rows(word, port)
    group = int(word.group)
    if group < 1 or rows.shape[0] % group or count > group * rows.shape[1]:
        raise refuse(
            word,
            "groups do not fit",
            "indices",
            f"groups of {group} partitions, at least {count} indices",
            f"{rows.shape[0]} partitions of {rows.shape[1]}",
        )
    places = scratch((rows.shape[0], count), np.intp)

    def decode() -> None:
        np.copyto(places, column_places(rows, group, count))
        require_inside(word, places, width)

    return places, load, decode


def _same_type(word: Indirection) -> None:
    if word.src_dtype != word.dst_dtype:
        raise UnsupportedError(f"{word.NAME} between element types is not modelled: bits are moved")


@executes(isa.IndirectRead)
def indirect_read(word: isa.IndirectRead, port: Port) -> Step:
    """Return dst[p, i] = src[p, index i of p's group]."""
    _same_type(word)
    out, store = raw_rows_out(port.write("dst"))
    data, load = raw_rows(port.read("src"))
    places, load_indices, decode = _indices(word, port, out.shape[1], data.shape[1])

    def gather() -> None:
        np.copyto(out, np.take_along_axis(data, places, axis=1))

    return chain(load, load_indices, decode, gather, store)


@executes(isa.IndirectWrite)
def indirect_write(word: isa.IndirectWrite, port: Port) -> Step:
    """Return dst[p, index i of p's group] = src[p, i], or += in fp32, in the order of i; other columns stay."""
    _same_type(word)
    dst, src = port.write("dst"), port.read("src")
    if word.accumulate:
        out, fetch = _sums(dst, word.dst_dtype)
        data, load = _sums(src, word.src_dtype)
        put: Step = bind_store(out.reshape(dst.shape), dst, word.dst_dtype)
    else:
        out, fetch = raw_rows(dst)
        data, load = raw_rows(src)
        put = partial(np.copyto, raw_view(dst), out.reshape(dst.shape))
    count = data.shape[1]
    places, load_indices, decode = _indices(word, port, count, out.shape[1])
    test, load_test = _predicate(word, port, data.shape)
    rows_of = np.arange(data.shape[0])[:, None]

    def scatter() -> None:
        where = np.broadcast_to(rows_of, places.shape), places
        values = data
        if test is not None:
            chosen = (test == 0) if word.reverse else (test != 0)
            where, values = (where[0][chosen], places[chosen]), data[chosen]
        if word.accumulate:
            np.add.at(out, where, values)  # `+=` would add only one of several values for one place
        else:
            out[where] = values  # of equal places the last counts

    return chain(fetch, load, load_indices, load_test, decode, scatter, put)


def _sums(view: Array, code: int) -> tuple[Array, Step]:
    """Return a packed fp32 copy of the elements, (partitions, elements), and the step that makes it."""
    values, load = bind_load(view, code)
    rows = scratch(view.shape, np.float32)
    return rows.reshape(view.shape[0], -1), chain(load, partial(np.copyto, rows, values))


def _predicate(word: isa.IndirectWrite, port: Port, shape: tuple[int, ...]) -> tuple[Array | None, Step | None]:
    if not word.uses("predicate"):
        return None, None
    view = port.read("predicate")
    require_elements(word, "predicate", view, shape[1])
    return raw_input(word, view, shape, "predicate")
