"""Words of the Vector engine that look for eight values, and its statistics. Source: hardware.md 5.2, nki.isa pages."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from emulator.dtypes import Array, Step, bind_store, chain
from emulator.engines.operands import elements, refuse, require_elements, scalar_bits
from emulator.engines.registry import executes
from emulator.engines.rows import float_rows, float_rows_out, raw_rows, raw_rows_out
from emulator.port import Port
from emulator.scratch import scratch
from formats import isa

__all__: list[str] = []

_EIGHT = 8


@executes(isa.Max8, lasting=True)
def max8(word: isa.Max8, port: Port) -> Step:
    """Return dst = the eight largest elements, descending."""
    dst, src = port.write("dst"), port.read("src")
    require_elements(word, "dst", dst, _EIGHT)
    if elements(src) < _EIGHT:
        raise refuse(word, "too few elements", "src", f"at least {_EIGHT}", f"{elements(src)}")
    rows, load = float_rows(src, word.src_dtype)
    out, store = float_rows_out(dst, word.dst_dtype)

    def sort() -> None:
        # In place: the rows are this word's own copy.
        rows.partition(rows.shape[1] - _EIGHT, axis=1)
        top = rows[:, -_EIGHT:]
        top.sort(axis=1)
        np.copyto(out, top[:, ::-1])

    return chain(load, sort, store)


def _searched(word: isa.FindIndex8 | isa.MatchReplace8, port: Port) -> tuple[Array, Array, Step]:
    """Return the elements and the eight values in fp32, and the step that copies them."""
    data, load = float_rows(port.read("src"), word.src_dtype)
    values, load_values = float_rows(port.read("values"), word.values_dtype)
    require_elements(word, "values", values, _EIGHT)
    return data, values, chain(load, load_values)


@executes(isa.FindIndex8, lasting=True)
def find_index8(word: isa.FindIndex8, port: Port) -> Step:
    """Return dst = the place of each value; the n-th of equal values gives the n-th place, none gives all ones."""
    dst = port.write("dst")
    data, values, load = _searched(word, port)
    out, store = raw_rows_out(dst)
    require_elements(word, "dst", dst, _EIGHT)
    taken = scratch(data.shape, np.bool_)
    return chain(load, partial(_match, data, values, range(_EIGHT), taken, out), store)


def _match(data: Array, values: Array, order: Iterable[int], taken: Array, places: Array) -> None:
    """Give each value, in that order, the first equal element that none before has taken."""
    taken.fill(False)
    if _match_largest(data, values, taken, places):
        return
    lanes = np.arange(data.shape[0])
    for number in order:
        equal = data == values[:, number : number + 1]
        equal &= ~taken
        first = equal.argmax(axis=1)
        found = equal[lanes, first]
        taken[lanes[found], first[found]] = True
        places[:, number] = np.where(found, first, np.iinfo(places.dtype).max).astype(places.dtype)


def _match_largest(data: Array, values: Array, taken: Array, places: Array) -> bool:
    """Do what `_match` does where each of the values is one of the eight largest elements; else say so."""
    partitions, width = data.shape
    large = np.flatnonzero(data >= values.min(axis=1, keepdims=True))
    if large.size != _EIGHT * partitions:
        return False
    rows, columns = (part.reshape(partitions, _EIGHT) for part in np.divmod(large, width))
    equal = data[rows, columns][:, None, :] == values[:, :, None]
    # As many of each row, and each equal to one value: in whatever order they are given, all get the same.
    lanes = np.arange(partitions)[:, None]
    if not (np.equal(rows, lanes).all() and all(np.equal(np.count_nonzero(equal, axis=at), 1).all() for at in (1, 2))):
        return False
    taken[rows, columns] = True
    places[...] = np.take_along_axis(columns, equal.argmax(axis=2), axis=1)
    return True


@executes(isa.MatchReplace8, lasting=True)
def match_replace8(word: isa.MatchReplace8, port: Port) -> Step:
    """Return dst = src with the element that each value finds replaced; values are taken from the last to the first."""
    dst, src = port.write("dst"), port.read("src")
    require_elements(word, "src", src, elements(dst))
    data, values, load = _searched(word, port)
    taken = scratch(data.shape, np.bool_)
    if word.uses("indices"):
        indices = port.write("indices")
        require_elements(word, "indices", indices, _EIGHT)
        places, keep = raw_rows_out(indices)
    else:
        places, keep = scratch((data.shape[0], _EIGHT), np.uint32), None
    match = partial(_match, data, values, range(_EIGHT - 1, -1, -1), taken, places)
    if word.src_dtype == word.dst_dtype:
        bits, copy = raw_rows(src)
        out, store = raw_rows_out(dst)
        put = partial(np.copyto, out, bits)
        replace = partial(np.copyto, out, scalar_bits(word.immediate, word.dst_dtype), where=taken)
        return chain(load, copy, match, put, replace, store, keep)
    results = scratch(dst.shape, np.float32)
    flat = results.reshape(data.shape)
    return chain(
        load,
        match,
        partial(np.copyto, flat, data),
        partial(np.copyto, flat, np.float32(word.immediate), where=taken),
        bind_store(results, dst, word.dst_dtype),
        keep,
    )


@executes(isa.BnStats, lasting=True)
def bn_stats(word: isa.BnStats, port: Port) -> Step:
    """Return dst = count, mean and count times variance of the even elements, then of the odd ones."""
    dst = port.write("dst")
    rows, load = float_rows(port.read("src"), word.src_dtype)
    out, store = float_rows_out(dst, word.dst_dtype)
    require_elements(word, "dst", dst, 6)

    def gather() -> None:
        for half in range(2):
            part = rows[:, half::2]
            count = np.float32(part.shape[1])
            mean = _total(part) / count if part.shape[1] else np.zeros(rows.shape[0], np.float32)
            away = part - mean[:, None]
            away *= away
            out[:, 3 * half] = count
            out[:, 3 * half + 1] = mean
            out[:, 3 * half + 2] = _total(away)

    return chain(load, gather, store)


def _total(rows: Array) -> Array:
    """Return the sums of rows, left to right in fp32."""
    if not rows.shape[1]:
        return np.zeros(rows.shape[0], np.float32)
    # Accumulated: a sum of NumPy's adds in pairs, which gives other last bits.
    result: Array = np.add.accumulate(rows, 1)[:, -1]
    return result


@executes(isa.BnAggregate, lasting=True)
def bn_aggregate(word: isa.BnAggregate, port: Port) -> Step:
    """Return dst = mean and variance of all that the triples of src describe."""
    dst, src = port.write("dst"), port.read("src")
    rows, load = float_rows(src, word.src_dtype)
    out, store = float_rows_out(dst, word.dst_dtype)
    require_elements(word, "dst", dst, 2)
    if not rows.shape[1] or rows.shape[1] % 3:
        raise refuse(word, "elements are no triples", "src", "a multiple of 3", f"{rows.shape[1]}")
    counts, means, spread = rows[:, 0::3], rows[:, 1::3], rows[:, 2::3]

    def gather() -> None:
        count = _total(counts)
        mean = _total(counts * means) / count
        away = means - mean[:, None]
        away *= away
        away *= counts
        away += spread
        out[:, 0] = mean
        out[:, 1] = _total(away) / count

    return chain(load, gather, store)
