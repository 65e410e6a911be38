"""Two compilations of one graph: what passes made of it, what operations became, how long it takes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.numerals import parse_decimal

if TYPE_CHECKING:
    from neurontools.compiler.options import CompileOptions
    from neurontools.compiler.reporting import CompileReport

__all__ = ["CompileDifference", "OperationChange", "PassChange", "Side", "differences", "options_of", "pass_changes",
           "side_of"]  # fmt: skip

_NODE = re.compile(r"^ *%\d+ = .*? ([a-z][a-z0-9-]*)\(", re.MULTILINE)
Numbers = tuple[int, int]


class Side(NamedTuple):
    """One compilation."""

    name: str
    target: str
    options: Annotated[dict[str, object], "those that are not the defaults; of a NEFF unknown"]
    size: Annotated[int, "bytes of the file"]
    words: Annotated[dict[str, int], "instructions that ran, by engine"]
    moved: Annotated[int, "bytes that transfers wrote"]
    stored: Annotated[int, "bytes of values that went through device memory"]
    time_ns: float


class PassChange(NamedTuple):
    """The graph behind one pass on both sides: nodes, and opcodes that stand in other numbers."""

    name: str
    same: bool
    nodes: Numbers
    opcodes: Annotated[dict[str, tuple[int, int]], "opcodes whose numbers differ"]


class OperationChange(NamedTuple):
    """One operation on both sides; it has no instructions where the numbers are 0."""

    name: str
    opcode: str
    words: Numbers
    bytes: Numbers
    busy_ns: tuple[float, float]
    critical_ns: tuple[float, float]


class CompileDifference(NamedTuple):
    """What came of two compilations."""

    same: Annotated[bool, "whether instructions, bytes and time are the same"]
    sides: tuple[Side, Side]
    passes: Annotated[tuple[PassChange, ...], "of two sets of options; files do not tell"]
    operations: Annotated[
        tuple[OperationChange, ...], "those that differ, by the time they differ on the critical path"
    ]


def options_of(text: str) -> CompileOptions:
    """Return the options that "auto_cast=matmult,lnc=1" means: those of `neurontools.compile`.

    Raises FormatError for a name or a value that is none.
    """
    from neurontools.compiler.options import CompileOptions, check_options  # deferred: start-up

    chosen: dict[str, Any] = {}
    defaults = CompileOptions()._asdict()
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, equals, value = part.partition("=")
        name = name.strip().removeprefix("--").replace("-", "_")
        if not equals or name not in defaults:
            raise FormatError("not an option of the compiler", field=part, expected=f"one of {', '.join(defaults)}, as "
                              "lnc=1")  # fmt: skip
        chosen[name] = _value(name, value.strip(), defaults[name])
    options = CompileOptions(**chosen)
    check_options(options)
    return options


def _value(name: str, text: str, default: object) -> object:
    if isinstance(default, bool):
        if text.lower() not in ("true", "false", "1", "0"):
            raise FormatError("wrong value", field=name, expected="true or false", got=text)
        return text.lower() in ("true", "1")
    if isinstance(default, int):
        number = parse_decimal(text)
        if number is None:
            raise FormatError("wrong value", field=name, expected="a number", got=text)
        return number
    return text


def pass_changes(one: dict[str, str], other: dict[str, str]) -> tuple[PassChange, ...]:
    """Return what each pass made on both sides, from the graphs as `--dump-after` prints them."""
    rows = []
    for name, text in one.items():
        counts = Counter(_NODE.findall(text)), Counter(_NODE.findall(other[name]))
        changed = {
            opcode: (counts[0][opcode], counts[1][opcode])
            for opcode in sorted(counts[0].keys() | counts[1].keys())
            if counts[0][opcode] != counts[1][opcode]
        }
        rows.append(PassChange(name, text == other[name], (counts[0].total(), counts[1].total()), changed))
    return tuple(rows)


def side_of(name: str, found: CompileReport, size: int, options: CompileOptions | None) -> Side:
    """Return one side from its report."""
    words: Counter[str] = Counter()
    for row in found.operations:
        words.update(row.words)
    given = {}
    if options is not None:
        defaults = type(options)()._asdict()
        given = {key: value for key, value in options._asdict().items() if value != defaults[key]}
    return Side(name, found.target, given, size, dict(words), sum(row.bytes for row in found.operations),
                found.stored_bytes, found.total_ns)  # fmt: skip


def differences(
    sides: tuple[Side, Side], reports: Sequence[CompileReport], passes: tuple[PassChange, ...]
) -> CompileDifference:
    """Return two reports side by side."""
    here, there = ({row.name: row for row in each.operations} for each in reports)
    rows = []
    for name in [*here, *(name for name in there if name not in here)]:
        a, b = here.get(name), there.get(name)
        opcode = a.opcode if a is not None else there[name].opcode
        row = OperationChange(
            name, opcode,
            (sum(a.words.values()) if a else 0, sum(b.words.values()) if b else 0),
            (a.bytes if a else 0, b.bytes if b else 0),
            (a.busy_ns if a else 0.0, b.busy_ns if b else 0.0),
            (a.critical_ns if a else 0.0, b.critical_ns if b else 0.0),
        )  # fmt: skip
        if any(one != other for one, other in row[2:]):
            rows.append(row)
    rows.sort(key=lambda row: (-abs(row.critical_ns[1] - row.critical_ns[0]), -abs(row.busy_ns[1] - row.busy_ns[0])))
    same = not rows and sides[0].time_ns == sides[1].time_ns
    return CompileDifference(same, sides, passes, tuple(rows))
