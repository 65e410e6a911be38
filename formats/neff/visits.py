"""The call of the kernel that each word comes from, and the turn of the loops around it: member `sgNN/visits.json`.

    {"sites": [{"file": "k.py", "function": "kernel", "line": 8, "loops": [[7, ["k"]]]}],
     "visits": [[-1, 0, -1, 1, {"k": 0, "t": {"tensor": "t"}}], [-1, 0, 0, 2, {"k": 1, "t": {"tensor": "t_1"}}]],
     "words": {"PE": [12, 0, 14, 1, 16, -1]}}

A kernel is traced once, its loops unrolled: many words come from one line. A visit is one call that the kernel, or a
function it calls, makes from a site; its row has the visit that called its function (-1 for none), the site, an earlier
visit whose variables hold but for those given (-1 for none), how often this call of the function has come by the
site, and the variables. `words` has, per engine, pairs of a pc and the visit from there on. The format is ours.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from json.encoder import encode_basestring_ascii

from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.neff import Subgraph
from formats.neff.fields import Fields, load, printable

__all__ = ["Loop", "Scalar", "Site", "TensorName", "Value", "Variable", "Visits", "cut_visits", "parse_visits",
           "plain_rows", "read_rows", "read_visits", "write_visits"]  # fmt: skip

_MEMBER = "visits.json"


class TensorName(str):
    """The name of the tensor that a variable stands for."""

    __slots__ = ()


Scalar = bool | int | float | str
Value = Scalar | tuple[int, ...] | TensorName


class Loop(NamedTuple):
    """A loop around a site: the line of its head, and the variables that tell its turns apart."""

    line: int
    names: tuple[str, ...]


class Site(NamedTuple):
    """One line of a function that calls something; its loops from the outermost on."""

    file: str
    function: str
    line: int
    loops: tuple[Loop, ...] = ()


class Variable(NamedTuple):
    """A variable of the kernel, and what it was."""

    name: str
    value: Value


class _Row(NamedTuple):
    parent: int
    site: int
    base: int
    turn: int
    own: Mapping[str, Value]


class Visits:
    """The visits of one subgraph; every row names earlier rows only."""

    def __init__(self, sites: Sequence[Site], rows: Sequence[_Row], words: Mapping[str, Sequence[int]]) -> None:
        self.sites = tuple(sites)
        self._rows = tuple(rows)
        self._words = {engine: (runs[::2], runs[1::2]) for engine, runs in words.items()}

    def __len__(self) -> int:
        return len(self._rows)

    def at(self, engine: str, pc: int) -> int:
        """Return the visit that a word comes from, -1 where none is known."""
        firsts, visits = self._words.get(engine, ((), ()))
        place = bisect_right(firsts, pc) - 1
        return visits[place] if place >= 0 else -1

    def row(self, visit: int) -> _Row:
        """Return what is kept of a visit."""
        return self._rows[visit]

    def site(self, visit: int) -> Site:
        """Return where a visit was."""
        return self.sites[self._rows[visit].site]

    def parent(self, visit: int) -> int:
        """Return the visit that called the function of this one, -1 for the kernel's own."""
        return self._rows[visit].parent

    def chain(self, visit: int) -> tuple[int, ...]:
        """Return a visit and those that called it, the innermost first."""
        found = []
        while visit >= 0:
            found.append(visit)
            visit = self._rows[visit].parent
        return tuple(found)

    def variables(self, visit: int) -> dict[str, Value]:
        """Return the variables of a visit's function."""
        row = self._rows[visit]
        known = dict(self._rows[row.base].own) if row.base >= 0 else {}
        known.update(row.own)
        return known

    def iteration(self, visit: int, turns: Mapping[tuple[str, int], int | None] | None = None) -> tuple[Variable, ...]:
        """Return the turn of every loop around a visit, those of its callers first.

        A loop without a variable that a file can hold is named `#`, with the count of times its function came by.
        `turns` has the loops, by file and line, that run on the device, which were traced once: `#` is their turn, and
        there is none where it is None.
        """
        found: list[Variable] = []
        for each in reversed(self.chain(visit)):
            site, row = self.site(each), self._rows[each]
            known = self.variables(each) if site.loops else {}
            for loop in site.loops:
                if turns and (site.file, loop.line) in turns:
                    turn = turns[site.file, loop.line]
                    found += [] if turn is None else [Variable("#", turn)]
                    continue
                # A tensor tells no turn: it is another one in the next turn, or the same.
                named = [Variable(name, known[name]) for name in loop.names
                         if name in known and not isinstance(known[name], TensorName)]  # fmt: skip
                found += named or [Variable("#", row.turn)]
        return tuple(found)


def write_visits(
    sites: Sequence[Site],
    rows: Sequence[tuple[int, int, int, int, Mapping[str, Value]]],
    words: Mapping[str, Sequence[int]],
) -> bytes:
    """Return the member."""
    encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
    # Written by hand, since a program may have a row for every word: most of it is numbers and the same few names.
    names: dict[str, str] = {}
    tensors: dict[str, str] = {}
    texts: list[str] = []
    before: Mapping[str, Value] | None = None
    known = ""
    for parent, site, base, turn, own in rows:
        if own is not before:
            parts = []
            for name, one in own.items():
                head = names.get(name)
                if head is None:
                    head = names[name] = f"{encode(name)}:"
                if one.__class__ is int:
                    parts.append(f"{head}{one}")
                elif one.__class__ is TensorName:
                    text = tensors.get(one)
                    if text is None:
                        text = tensors[one] = f'{{"tensor":{encode_basestring_ascii(one)}}}'
                    parts.append(head + text)
                else:
                    parts.append(head + encode(_plain(one)))
            before, known = own, ",".join(parts)
        texts.append(f"[{parent},{site},{base},{turn},{{{known}}}]")
    runs = encode({engine: list(pairs) for engine, pairs in words.items()})
    return f'{{"sites":{encode(_plain_sites(sites))},"visits":[{",".join(texts)}],"words":{runs}}}'.encode()


def plain_rows(
    sites: Sequence[Site], rows: Sequence[tuple[int, int, int, int, Mapping[str, Value]]]
) -> tuple[list[object], list[object]]:
    """Return sites and visits as values that JSON holds."""
    return (
        _plain_sites(sites),
        [
            (
                parent,
                site,
                base,
                turn,
                {
                    # nearly all are numbers, which stand for themselves
                    name: one if type(one) is int else _plain(one)
                    for name, one in own.items()
                },
            )
            for parent, site, base, turn, own in rows
        ],
    )


def _plain_sites(sites: Sequence[Site]) -> list[object]:
    return [{**site._asdict(), "loops": [[loop.line, list(loop.names)] for loop in site.loops]} for site in sites]


def _plain(value: Value) -> object:
    if isinstance(value, TensorName):
        return {"tensor": str(value)}
    # JSON has no infinities.
    return {"number": str(value)} if isinstance(value, float) and not math.isfinite(value) else value


def read_visits(subgraph: Subgraph) -> Visits | None:
    """Return the visits of a subgraph, None where the file has none; FormatError where they are malformed."""
    if not subgraph.has(_MEMBER):
        return None
    return parse_visits(subgraph.parsed_bytes(_MEMBER), subgraph.member(_MEMBER))


def cut_visits(visits: Visits, words: Mapping[str, Iterable[range]]) -> bytes:
    """Return a member of what is known of some words alone, by engine and runs of pcs; b"" where that is nothing."""
    runs: dict[str, list[tuple[int, int]]] = {}
    wanted: set[int] = set()
    for engine, ranges in words.items():
        mine = runs.setdefault(engine, [])
        for each in sorted(ranges, key=lambda one: one.start):
            for pc in each:
                visit = visits.at(engine, pc)
                if mine and mine[-1][0] == pc:
                    mine.pop()  # runs of words follow one another
                if not mine or mine[-1][1] != visit:
                    mine.append((pc, visit))
                wanted.update(visits.chain(visit))
            if mine and mine[-1][1] >= 0:
                mine.append((each.stop, -1))
    wanted |= {visits.row(one).base for one in wanted} - {-1}
    if not wanted:
        return b""
    number = {old: new for new, old in enumerate(sorted(wanted))} | {-1: -1}
    sites = {old: new for new, old in enumerate(sorted({visits.row(one).site for one in wanted}))}
    rows = [
        (number[row.parent], sites[row.site], number[row.base], row.turn, row.own)
        for row in map(visits.row, sorted(wanted))
    ]
    pairs = {engine: [part for pc, visit in mine for part in (pc, number[visit])] for engine, mine in runs.items()}
    return write_visits([visits.sites[one] for one in sites], rows, pairs)


def parse_visits(data: bytes, path: str) -> Visits:
    """Return the visits that a member holds; FormatError where they are malformed."""
    fields = load(data, path)
    sites, rows = read_rows(fields, path)
    words: dict[str, list[int]] = {}
    for engine, runs in fields.object("words").raw.items():
        if (
            not isinstance(runs, list)
            or len(runs) % 2
            or any(type(one) is not int or not -1 <= one < 1 << 40 for one in runs)
            or max(runs[1::2], default=-1) >= len(rows)
            or any(one >= two for one, two in zip(runs[::2], runs[2::2], strict=False))
        ):
            raise FormatError("words of visits are not pairs of a pc and a visit", path=path, field=printable(engine))
        words[engine] = runs
    return Visits(sites, rows, words)


def read_rows(fields: Fields, path: str) -> tuple[list[Site], list[_Row]]:
    """Return the sites and visits of an object; FormatError where they are malformed."""
    sites = [_site(each) for each in fields.objects("sites")]
    rows: list[_Row] = []
    for number, item in enumerate(fields.array("visits")):
        rows.append(_row(item, number, len(sites), rows, path))
    return sites, rows


def _site(fields: Fields) -> Site:
    loops = []
    for item in fields.array("loops"):
        if (
            not isinstance(item, list)
            or len(item) != 2
            or type(item[0]) is not int
            or not isinstance(item[1], list)
            or not all(isinstance(name, str) for name in item[1])
        ):
            raise fields.fail("loops", "lists of a line and names")
        loops.append(Loop(item[0], tuple(map(printable, item[1]))))
    return Site(fields.text("file"), fields.text("function"), fields.counted("line"), tuple(loops))


def _row(item: object, number: int, sites: int, rows: Sequence[_Row], path: str) -> _Row:
    field = f"visit {number}"
    if not isinstance(item, list) or len(item) != 5 or not isinstance(item[4], dict):
        raise FormatError("visit is not a row", path=path, field=field)
    parent, site, base, turn, own = item
    if any(type(one) is not int for one in (parent, site, base, turn)):
        raise FormatError("visit is not a row of numbers", path=path, field=field)
    if not (-1 <= parent < number and 0 <= site < sites and -1 <= base < number and turn >= 0):
        raise FormatError("visit names a row that does not come before it", path=path, field=field)
    # one step and no more, so that variables are looked up in a time that does not grow with the rows
    if base >= 0 and rows[base].base >= 0:
        raise FormatError("visit builds on one that builds on another", path=path, field=field)
    return _Row(parent, site, base, turn, {printable(name): _value(one, path, field) for name, one in own.items()})


def _value(value: object, path: str, field: str) -> Value:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list) and all(type(one) is int for one in value):
        return tuple(value)
    if isinstance(value, dict) and list(value) == ["tensor"] and isinstance(value["tensor"], str):
        return TensorName(printable(value["tensor"]))
    if isinstance(value, dict) and list(value) == ["number"] and value["number"] in ("inf", "-inf", "nan"):
        return float(value["number"])
    raise FormatError("variable of a visit is neither number, text, shape nor tensor", path=path, field=field)
