"""Traces out of the JSON objects that `neurontools.builder.saved_trace` makes of them.

Whatever the builder does not check is checked here: numbers point somewhere, views lie inside of their tensors.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from math import prod
from typing import Any

import ml_dtypes  # noqa: F401  it registers the names of its types
import numpy as np

from formats.dtypes import Dtype
from formats.engines import ENGINES
from formats.errors import FormatError
from formats.isa.registry import BY_NAME
from formats.named_tuple import NamedTuple
from formats.neff.fields import Fields, printable
from formats.neff.visits import read_rows
from formats.targets import resolve_target
from neurontools.builder.saved_trace import ENUMS, OPS
from neurontools.builder.trace import (
    KINDS,
    Allocation,
    LoopEndOp,
    LoopOp,
    Op,
    Place,
    Source,
    Space,
    Trace,
    View,
    views_of,
)

__all__ = ["VisitTable", "load_trace"]

_MOST_BYTES = 1 << 40


class VisitTable(NamedTuple):
    """Where a kernel stood, as `Trace.visits` wants it."""

    sites: list[Any]
    rows: list[Any]


def load_trace(given: Fields) -> Trace:
    """Return the trace that an object holds; FormatError where it is malformed."""
    target = resolve_target(given.text("target"))
    programs = given.integer("programs")
    trace = Trace(target, given.integer("program"), programs)
    for number, item in enumerate(given.array("allocations")):
        trace.allocations.append(_allocation(number, item, given))
    sites, rows = read_rows(given, given.where)
    trace.visits = VisitTable(sites, rows) if rows else None
    views = [_view(item, trace.allocations, given) for item in given.array("views")]
    places = [_place(item, len(rows), given) for item in given.array("places")]
    depth = 0
    for item in given.array("ops"):
        op = _op(item, views, places, given)
        depth += isinstance(op, LoopOp) - isinstance(op, LoopEndOp)
        if depth < 0:
            raise given.fail("ops", "a loop before its end")
        trace.ops.append(op)
    if depth:
        raise given.fail("ops", "an end of every loop")
    if any(one.born > len(trace.ops) for one in trace.allocations) or any(
        view.allocation.born > number for number, op in enumerate(trace.ops) for view in views_of(op)
    ):
        raise given.fail("allocations", "tensors that are there before they are used")
    trace.inputs = [_pick(trace.allocations, one, given, "inputs") for one in given.array("inputs")]
    trace.outputs = [_pick(trace.allocations, one, given, "outputs") for one in given.array("outputs")]
    many = len(trace.ops)
    for item in given.array("after"):
        if not (_list_of(item, 2) and _is_below(item[0], many) and isinstance(item[1], list)
                and all(_is_below(one, item[0]) for one in item[1])):  # fmt: skip
            raise given.fail("after", "operations and those that come before them")
        trace.after[item[0]] = set(item[1])
    return trace


def _list_of(item: Any, count: int) -> bool:
    return isinstance(item, list) and len(item) == count


def _is_below(value: Any, most: int) -> bool:
    return type(value) is int and 0 <= value < most


def _count(value: Any) -> int:
    return value if _is_below(value, _MOST_BYTES) else 0


def _pick(values: list[Any], number: Any, given: Fields, key: str) -> Any:
    if not _is_below(number, len(values)):
        raise given.fail(key, f"numbers below {len(values)}")
    return values[number]


def _dtype(code: Any, given: Fields, key: str) -> Dtype:
    if type(code) is not int or code not in Dtype._value2member_map_ or code == Dtype.UNKNOWN:
        raise given.fail(key, "codes of element types")
    return Dtype(code)


def _allocation(number: int, item: Any, given: Fields) -> Allocation:
    bad = given.fail("allocations", "rows of space, name, type, shape, kind, address, birth and data")
    if not _list_of(item, 8):
        raise bad
    space, name, code, shape, kind, address, born, data = item
    if not (isinstance(shape, list) and len(shape) <= 32 and all(_is_below(one, _MOST_BYTES) for one in shape)):
        raise bad
    if space not in ("sbuf", "psum", "hbm") or not isinstance(name, str) or kind not in (*KINDS,):
        raise bad
    if address is not None and not (_list_of(address, 2) and all(_is_below(one, 1 << 31) for one in address)):
        raise bad
    dtype = _dtype(code, given, "allocations")
    if prod(shape) * dtype.size > _MOST_BYTES or not _is_below(born, 1 << 40) or (space != "hbm" and not shape):
        raise bad
    one = Allocation(number, Space(space), printable(name), dtype, tuple(shape), kind,
                     address=None if address is None else tuple(address), born=born)  # fmt: skip
    if data is not None:
        one.data = _array(data, one, given)
    return one


def _array(data: Any, one: Allocation, given: Fields) -> np.ndarray[Any, Any]:
    bad = given.fail("allocations", f"the {one.nbytes} bytes of constant {one.name}")
    if not _list_of(data, 3) or not isinstance(data[0], str) or not isinstance(data[2], str):
        raise bad
    try:
        held = base64.b64decode(data[2], validate=True)
        kind = np.dtype(Dtype.from_numpy_name(data[0]).numpy_name)
    except (binascii.Error, ValueError, FormatError):
        raise bad from None
    if len(held) != one.nbytes or len(held) % kind.itemsize or not isinstance(data[1], list):
        raise bad
    if not all(_is_below(extent, _MOST_BYTES) for extent in data[1]) or prod(data[1]) * kind.itemsize != len(held):
        raise bad
    return np.frombuffer(held, kind).reshape(data[1])


def _view(item: Any, allocations: list[Allocation], given: Fields) -> View:
    bad = given.fail("views", "rows of tensor, type, partition, partitions, offset and walks inside of the tensor")
    if not _list_of(item, 6) or not all(type(one) is int for one in item[:5]) or not isinstance(item[5], list):
        raise bad
    number, code, partition, partitions, offset, dims = item
    one = _pick(allocations, number, given, "views")
    dtype = _dtype(code, given, "views")
    low = high = 0
    for walk in dims:
        if not (_list_of(walk, 2) and type(walk[0]) is int and _count(walk[1]) > 0):
            raise bad
        reach = walk[0] * (walk[1] - 1)
        low, high = low + min(0, reach), high + max(0, reach)
    inside = offset + low * dtype.size >= 0 and offset + (high + 1) * dtype.size <= one.partition_bytes
    if not inside or not 0 <= partition < partition + partitions <= one.partitions:
        raise bad
    return View(one, dtype, partition, partitions, offset, tuple((step, count) for step, count in dims))


def _place(item: Any, rows: int, given: Fields) -> Source:
    if not (_list_of(item, 3) and isinstance(item[0], str) and _is_below(item[1], 1 << 31)
            and type(item[2]) is int and -1 <= item[2] < rows):  # fmt: skip
        raise given.fail("places", "rows of file, line and visit")
    return Place(printable(item[0]), item[1], item[2])


def _op(item: Any, views: list[View], places: list[Source], given: Fields) -> Op:
    if not _list_of(item, 4) or not isinstance(item[0], str) or item[0] not in OPS or not isinstance(item[2], dict):
        raise given.fail("ops", f"rows that begin with {', '.join(OPS)}")
    cls, kinds = OPS[item[0]]
    held: Mapping[str, Any] = item[2]
    if set(held) != set(kinds):
        raise given.fail("ops", f"a {item[0]} of {', '.join(kinds)}")
    values = {name: _value(kind, held[name], views, given) for name, kind in kinds.items()}
    if item[3] is not None:
        if not isinstance(item[3], str) or "name" not in cls.__slots__:
            raise given.fail("ops", "names that are texts")
        values["name"] = printable(item[3])
    made: Op = cls(source=_pick(places, item[1], given, "ops"), **values)
    return made


def _value(kind: str, value: Any, views: list[View], given: Fields) -> Any:
    if kind.endswith("?"):
        if value is None:
            return None
        kind = kind[:-1]
    if kind == "view":
        return _pick(views, value, given, "ops")
    if kind == "views" and isinstance(value, list) and value:
        return tuple(_pick(views, one, given, "ops") for one in value)
    if kind == "operands" and isinstance(value, dict) and value:
        return {str(key): _pick(views, one, given, "ops") for key, one in value.items()}
    if kind == "fields" and isinstance(value, dict):
        return {str(key): _field(one, given) for key, one in value.items()}
    if kind == "numbers" and isinstance(value, list) and all(_is_below(one, 32) for one in value):
        return tuple(value)
    plain = {
        "truth": isinstance(value, bool),
        "number": _is_below(value, 1 << 40),
        "engine": value in ENGINES,
    }
    if plain.get(kind):
        return value
    if kind == "class" and isinstance(value, str) and value in BY_NAME:
        return BY_NAME[value]
    raise given.fail("ops", f"values that are each a {kind}")


def _field(value: Any, given: Fields) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return printable(value)
    if _list_of(value, 2) and value[0] == "numbers" and isinstance(value[1], list):
        if all(type(one) is int and abs(one) < _MOST_BYTES for one in value[1]):
            return tuple(value[1])
    elif _list_of(value, 2) and isinstance(value[0], str) and value[0] in ENUMS and type(value[1]) is int:
        codes = ENUMS[value[0]]
        if value[1] in codes._value2member_map_:
            return codes(value[1])
    raise given.fail("ops", "fields that are numbers, texts or codes")
