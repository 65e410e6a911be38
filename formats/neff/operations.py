"""The operations of a graph that a NEFF was compiled from: member `sgNN/operations.json`; `model.hlo.pb` is the graph.

    {"files": ["model.py"], "operations": [
      {"name": "dot.5", "path": "", "opcode": "dot", "file": 0, "line": 42, "results": [
        {"dtype": "f32", "shape": [4, 8], "as": "float32", "tensor": "dot.5", "offset": 0, "strides": [8, 1]}]}]}

`path` names the calls, loops and branches that the operation stands in, with `/` between them. A result lies in a
tensor of device memory (`offset` and `strides` count elements of the type `as`), is one number throughout (`number`,
"inf", "-inf" and "nan" as texts), or lies in tiles, piece by piece:

    {"dtype": "f32", "shape": [200, 8], "as": "float32", "forms": [[[[1, 8]], [[8, 128]], [[1, 8]]], …],
     "tiles": [["t7", 0, 0, 0, 0], ["t9", 0, 0, 1024, 1]]}

A piece has its tile's name, the partition and byte in it, the number of its first element in the result counted in
row-major order, and its form: the walk of (step, count) pairs inside a partition of the tile, the walk over the result
from partition to partition, and that inside a partition; a sixth number is the core, where it is not the first of a
logical core. A result without any of these became part of other
operations. `by`, where it stands, is the operation whose instructions make it: views have none. `cast`, where it
stands, is the type that --auto-cast gave the operands. The format is ours.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

from formats.dtypes import Dtype
from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.neff.fields import Fields, load

__all__ = ["FLAGS", "GRAPH", "OPERATIONS", "Form", "Held", "Operation", "Operations", "Piece", "Walk", "operation_name",
           "parse_operations", "write_operations"]  # fmt: skip

GRAPH = "model.hlo.pb"
FLAGS = "compile_flags.json"  # options of the compilation that are not the defaults
OPERATIONS = "operations.json"
_ENDLESS = ("inf", "-inf", "nan")
_MOST = 1 << 40  # of any number in the file: above what any device's memory has bytes for
_MOST_CORES = 8  # of a logical core
# What the builder puts beside the words of an operation is named after it: waits, tables, fills, what tests loops.
_ADDED = re.compile(r"-(wait-\d+|table|clear|load|enter|meet|test|again|branch|leave)$")

Walk = tuple[tuple[int, int], ...]


class Form(NamedTuple):
    """How elements of a piece lie: (step, count) inside the tile's partitions, over the result by row, and inside."""

    tile: Walk
    rows: Walk
    inner: Walk


class Piece(NamedTuple):
    """A part of a result in a tile of a core: partition and byte in the tile, and the number of its first element."""

    tile: str
    partition: int
    offset: int
    first: int
    form: Form
    core: int = 0

    @property
    def partitions(self) -> int:
        """Return how many partitions the piece has."""
        return prod(count for _, count in self.form.rows)


class Held(NamedTuple):
    """Where one result of an operation lies: in a tensor, as a number, in tiles, or nowhere of its own.

    `dtype` is the type in the graph as HLO spells it, `kept` that of the elements in memory; `by` is the operation
    whose instructions make it, "" for the operation itself.
    """

    dtype: str
    shape: tuple[int, ...]
    kept: str
    by: str = ""
    tensor: str = ""
    offset: int = 0
    strides: tuple[int, ...] = ()
    number: float | int | None = None
    pieces: tuple[Piece, ...] = ()

    @property
    def nbytes(self) -> int:
        """Return the bytes of the elements as they are kept."""
        return prod(self.shape) * Dtype.from_numpy_name(self.kept).size

    @property
    def text(self) -> str:
        """Return the type as HLO writes it."""
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


class Operation(NamedTuple):
    """One operation of the graph; `path` names the calls and loops around it."""

    name: str
    path: str
    opcode: str
    file: str
    line: int
    results: tuple[Held, ...]
    cast: str = ""

    @property
    def key(self) -> str:
        """Return the name with those of the calls and loops around it."""
        return f"{self.path}/{self.name}" if self.path else self.name


class Operations:
    """The operations of one subgraph, in the order in which the graph has them."""

    def __init__(self, rows: Iterable[Operation]) -> None:
        self.rows = tuple(rows)
        self.by_name: dict[str, list[Operation]] = {}
        for row in self.rows:
            self.by_name.setdefault(row.name, []).append(row)

    def of_word(self, name: str) -> str:
        """Return the operation that a word of this name in the debug information comes from, "" where none."""
        if name in self.by_name:
            return name
        whole = operation_name(name)
        return whole if whole in self.by_name else ""


def operation_name(word: str) -> str:
    """Return a word's name without what the builder puts behind that of an operation."""
    return _ADDED.sub("", word)


def write_operations(rows: Sequence[Operation]) -> bytes:
    """Return the member."""
    files: dict[str, int] = {}
    items = []
    for row in rows:
        number = files.setdefault(row.file, len(files))
        item: dict[str, Any] = {"name": row.name, "path": row.path, "opcode": row.opcode, "file": number,
                                "line": row.line, "results": [_result(one) for one in row.results]}  # fmt: skip
        if row.cast:
            item["cast"] = row.cast
        items.append(item)
    whole = {"files": list(files), "operations": items}
    return json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode(whole).encode()


def _result(held: Held) -> dict[str, Any]:
    item: dict[str, Any] = {"dtype": held.dtype, "shape": held.shape, "as": held.kept}
    if held.by:
        item["by"] = held.by
    if held.tensor:
        item |= {"tensor": held.tensor, "offset": held.offset, "strides": held.strides}
    elif held.number is not None:
        item["number"] = held.number if math.isfinite(held.number) else str(held.number)  # JSON has no infinities
    elif held.pieces:
        forms: dict[Form, int] = {}
        item["tiles"] = [
            (
                one.tile,
                one.partition,
                one.offset,
                one.first,
                forms.setdefault(one.form, len(forms)),
                *((one.core,) if one.core else ()),
            )
            for one in held.pieces
        ]
        item["forms"] = list(forms)
    return item


def parse_operations(data: bytes, where: str) -> Operations:
    """Return the operations in the member; FormatError where they are malformed."""
    fields = load(data, where)
    files = fields.texts("files")
    rows = []
    for item in fields.objects("operations"):
        number = item.counted("file")
        if number >= len(files):
            raise item.fail("file", f"a number below {len(files)}")
        results = tuple(_held(one) for one in item.objects("results"))
        rows.append(Operation(item.text("name"), item.text("path"), item.text("opcode"), files[number],
                              item.counted("line"), results, item.text("cast", "")))  # fmt: skip
    return Operations(rows)


def _held(fields: Fields) -> Held:
    kept = fields.text("as")
    try:
        Dtype.from_numpy_name(kept)
    except FormatError:
        raise fields.fail("as", "an element type") from None
    shape = fields.shape("shape")
    if prod(shape) > _MOST:
        raise fields.fail("shape", f"at most {_MOST} elements")
    base = Held(fields.text("dtype"), shape, kept, fields.text("by", ""))
    if "tensor" in fields:
        strides = fields.integers("strides")
        if len(strides) != len(shape) or any(abs(one) > _MOST for one in strides):
            raise fields.fail("strides", "a step for each dimension")
        return base._replace(tensor=fields.text("tensor"), offset=fields.counted("offset"), strides=strides)
    if "number" in fields:
        number = fields.raw["number"]
        if isinstance(number, str) and number in _ENDLESS:
            number = float(number)
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise fields.fail("number", "a number")
        return base._replace(number=number)
    if "tiles" not in fields:
        return base
    forms = [_form(item, fields) for item in fields.array("forms")]
    return base._replace(pieces=tuple(_piece(item, forms, prod(shape), fields) for item in fields.array("tiles")))


def _form(item: object, fields: Fields) -> Form:
    if not isinstance(item, list) or len(item) != 3:
        raise fields.fail("forms", "lists of three walks")
    walks = []
    for walk in item:
        if not isinstance(walk, list) or len(walk) > 32:
            raise fields.fail("forms", "walks of at most 32 pairs")
        for pair in walk:
            if (
                not isinstance(pair, list)
                or len(pair) != 2
                or any(type(one) is not int or abs(one) > _MOST for one in pair)
                or pair[1] < 1
            ):
                raise fields.fail("forms", "pairs of a step and a count")
        walks.append(tuple((step, count) for step, count in walk))
    form = Form(*walks)
    # what one partition of the tile holds is what one row of the result has
    if prod(count for _, count in form.tile) != prod(count for _, count in form.inner):
        raise fields.fail("forms", "as many elements in the tile as in the result")
    return form


def _piece(item: object, forms: Sequence[Form], size: int, fields: Fields) -> Piece:
    if (
        not isinstance(item, list)
        or len(item) not in (5, 6)
        or not isinstance(item[0], str)
        or any(type(one) is not int or not 0 <= one < _MOST for one in item[1:])
        or item[4] >= len(forms)
        or (item[5:] and item[5] >= _MOST_CORES)
    ):
        raise fields.fail("tiles", "lists of a tile, partition, byte, element, form and perhaps core")
    form = forms[item[4]]
    low = item[3] + sum(min(step, 0) * (count - 1) for step, count in (*form.rows, *form.inner))
    high = item[3] + sum(max(step, 0) * (count - 1) for step, count in (*form.rows, *form.inner))
    if low < 0 or high >= size:
        raise fields.fail("tiles", "elements inside the result")
    return Piece(item[0], item[1], item[2], item[3], form, *item[5:])
