"""A program before and after settings are changed: the two runs of `neurontools overlap whatif FILE`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.numerals import parse_decimal
from neurontools.cc.asking import byte_count
from neurontools.overlap.report import Report, ShareRow
from neurontools.text.table import duration, table

if TYPE_CHECKING:
    from emulator.runtime.ranks import RankedResult

__all__ = ["KEYS", "ChangeRow", "OutputRow", "ProgramWhatif", "Settings", "Side", "compared", "settings_of", "view"]

KEYS = ("dma-packet", "cc-packet", "streams", "shift-ag", "shift-rs")
_SHOWN = 16  # collectives in the text


class Settings(NamedTuple):
    """What a run is made with; None is what the program and the runtime have of themselves."""

    dma_packet: int | None = None
    cc_packet: tuple[int, ...] = ()
    streams: int | None = None
    shift_ag: int | None = None
    shift_rs: int | None = None

    def options(self) -> dict[str, Any]:
        """Return what the compiler is told."""
        named = {"early_ag_shift": self.shift_ag, "late_rs_shift": self.shift_rs, "cc_streams": self.streams}
        return {name: value for name, value in named.items() if value is not None}

    @property
    def text(self) -> str:
        """Return what is not the default, as the command line spells it."""
        pairs = zip(KEYS, self, strict=True)
        said = {key: ",".join(map(str, one)) if isinstance(one, tuple) else one for key, one in pairs}
        return " ".join(f"{key}={value}" for key, value in said.items() if value not in (None, "")) or "as it is"


class Side(NamedTuple):
    """One of the two runs, all launches together."""

    settings: str
    time_ps: int
    hidden: Annotated[float, "part of the time of collectives that compute covers"]
    exposed_ps: Annotated[int, "of all collectives, at the rank with most"]
    both_ps: Annotated[int, "time in which DMA engines had work of compute and of collectives, over all ranks"]
    compute: Annotated[float, "share of compute in the bytes moved in that time"]
    shares: tuple[ShareRow, ...]


class PointRow(NamedTuple):
    """One collective in one of the runs, at the rank where most of it is exposed."""

    rank: int
    stream: int
    called_ps: int
    time_ps: int
    trigger_ps: Annotated[int, "from the word to the start of its CC-cores"]
    hidden_ps: int
    exposed_ps: int
    matmul_pc: Annotated[int | None, "the first word of the Tensor engine behind it"]
    matmul_idle_ps: Annotated[int, "how long the Tensor engine stood idle for it before that word"]


class ChangeRow(NamedTuple):
    """One collective in both runs; None where a run has no such one."""

    name: str
    group: tuple[int, ...]
    source: Annotated[str, "operation of the graph, else file:line"]
    before: PointRow | None
    after: PointRow | None

    @property
    def change_ps(self) -> int:
        """Return by how much more of it is exposed."""
        return sum(sign * one.exposed_ps for sign, one in ((1, self.after), (-1, self.before)) if one is not None)


class OutputRow(NamedTuple):
    """An output tensor that is not the same to the bit."""

    rank: int
    name: str
    differing: int
    elements: int
    largest: Annotated[float, "difference of two elements; infinite where one is not a number"]


class ProgramWhatif(NamedTuple):
    """The result of `overlap whatif FILE`."""

    instance: str
    ranks: int
    before: Side
    after: Side
    collectives: Annotated[tuple[ChangeRow, ...], "those whose exposed time changes most first"]
    compared: Annotated[int, "output tensors that were compared"]
    outputs: Annotated[tuple[OutputRow, ...], "those that differ"]
    slower: bool


def settings_of(texts: Sequence[str]) -> Settings:
    """Return the settings that texts such as "shift-ag=1" name; FormatError for one that is none."""
    found: dict[str, object] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or key not in KEYS:
            raise FormatError("no setting", field="--before", expected=f"one of {', '.join(KEYS)}, as shift-ag=0",
                              got=text)  # fmt: skip
        if key == "cc-packet":
            found[key] = tuple(byte_count(part) for part in value.split(","))
        elif key == "dma-packet":
            found[key] = byte_count(value)
        else:
            number = parse_decimal(value)
            if number is None:
                raise FormatError("no number", field=f"--before {key}", got=value)
            found[key] = number
    return Settings(**{key.replace("-", "_"): value for key, value in found.items()})  # type: ignore[arg-type]


def compared(
    runs: Sequence[Sequence[RankedResult]], reports: Sequence[Sequence[Report]], settings: Sequence[Settings]
) -> ProgramWhatif:
    """Return what lies between two runs: of each its launches, their reports, and what it was made with."""
    before, after = (_side(mine, chosen) for mine, chosen in zip(reports, settings, strict=True))
    points = [dict(_points(mine)) for mine in reports]
    rows = [
        ChangeRow(*key[1:4], points[0].get(key), points[1].get(key)) for key in dict.fromkeys([*points[0], *points[1]])
    ]
    rows.sort(key=lambda row: -abs(row.change_ps))
    count, differing = _outputs(*runs)
    first = runs[0][0]
    return ProgramWhatif(first.instance, len(first.results), before, after, tuple(rows), count, tuple(differing),
                         after.time_ps > before.time_ps)  # fmt: skip


def _side(reports: Sequence[Report], settings: Settings) -> Side:
    time = sum(rank.time_ps for one in reports for row in one.collectives for rank in row.ranks)
    hidden = sum(rank.hidden_ps for one in reports for row in one.collectives for rank in row.ranks)
    shares = [row for one in reports for row in one.shares if row.both_ps]
    both = sum(row.both_ps for row in shares)
    return Side(settings.text, sum(one.time_ps for one in reports), hidden / time if time else 0.0,
                sum(one.exposed_ps for one in reports), both,
                sum(row.compute * row.both_ps for row in shares) / both if both else 0.0, tuple(shares))  # fmt: skip


_Key = tuple[int, str, tuple[int, ...], str, int]


def _points(reports: Sequence[Report]) -> Iterator[tuple[_Key, PointRow]]:
    """Yield the collectives of a run by what stays the same: launch, name, group, source, which of several such."""
    seen: Counter[tuple[int, str, tuple[int, ...], str]] = Counter()
    for launch, report in enumerate(reports):
        for row in report.collectives:
            # An operation of a graph has one name in both; what stands for its source may be the file's name.
            key = launch, row.name, row.group, row.source.rpartition("%")[2]
            seen[key] += 1
            if row.ranks:
                worst = max(row.ranks, key=lambda each: each.exposed_ps)
                yield (*key, seen[key]), PointRow(
                    worst.rank, row.stream, worst.called_ps, worst.time_ps, worst.trigger_ps, worst.hidden_ps,
                    worst.exposed_ps, worst.matmul_pc, worst.matmul_idle_ps,
                )  # fmt: skip


def _outputs(before: Sequence[RankedResult], after: Sequence[RankedResult]) -> tuple[int, list[OutputRow]]:
    """Return how many outputs there are, and those that differ."""
    import numpy as np  # deferred: start-up

    count, found = 0, []
    for one, other in zip(before, after, strict=False):
        for rank, (mine, theirs) in enumerate(zip(one.results, other.results, strict=True)):
            for name, array in mine.outputs.items():
                count += 1
                new = theirs.outputs.get(name)
                if new is None or new.shape != array.shape or new.dtype != array.dtype:
                    found.append(OutputRow(rank, name, array.size, array.size, float("inf")))
                elif new.tobytes() != array.tobytes():
                    raw = [np.ascontiguousarray(each).view(np.uint8).reshape(array.size, -1) for each in (array, new)]
                    apart = (raw[0] != raw[1]).any(axis=1)
                    values = [np.asarray(each, np.float64).reshape(-1)[apart] for each in (array, new)]
                    with np.errstate(invalid="ignore"):
                        gap = float(np.max(np.abs(values[0] - values[1])))
                    found.append(
                        OutputRow(rank, name, int(apart.sum()), array.size, float("inf") if gap != gap else gap)
                    )
    return count, found


def view(found: ProgramWhatif) -> Iterator[str]:
    """Yield the text for people."""
    old, new = found.before, found.after
    yield f"{found.ranks} ranks of {found.instance}"
    yield from table(["", "before", "after"], [
        ["settings", old.settings, new.settings],
        ["run time", duration(old.time_ps), f"{duration(new.time_ps)} ({_percent(old.time_ps, new.time_ps)})"],
        ["hidden of collectives", f"{old.hidden:.1%}", f"{new.hidden:.1%}"],
        ["exposed, worst rank", duration(old.exposed_ps), duration(new.exposed_ps)],
        ["DMA engines have both", duration(old.both_ps), duration(new.both_ps)],
        ["share of compute then", _share(old), _share(new)],
    ])  # fmt: skip
    yield ""
    rows: list[list[object]] = []
    for row in found.collectives[:_SHOWN]:
        rows.append([row.name, row.source or None, *(
            text for name in ("called_ps", "trigger_ps", "hidden_ps", "exposed_ps", "matmul_idle_ps")
            for text in (_time(row.before, name), _time(row.after, name)))])  # fmt: skip
    yield from table(["collective", "from", "called", "then", "trigger", "then", "hidden", "then", "exposed", "then",
                      "next matmul idle", "then"], rows)  # fmt: skip
    if len(found.collectives) > _SHOWN:
        yield f"and {len(found.collectives) - _SHOWN} more, which change less (--json)"
    for side, name in ((old, "before"), (new, "after")):
        points = [(row, row.before if side is old else row.after) for row in found.collectives]
        worst = max(points, key=lambda pair: pair[1].matmul_idle_ps if pair[1] is not None else -1, default=None)
        if worst is not None and worst[1] is not None and worst[1].matmul_idle_ps:
            yield (f"{name}, the next matmul waits longest for {worst[0].name} {worst[0].source}: "
                   f"{duration(worst[1].matmul_idle_ps)} on rank {worst[1].rank}")  # fmt: skip
    if found.outputs:
        most = max(row.largest for row in found.outputs)
        yield f"{len(found.outputs)} of {found.compared} outputs differ, at most by {most:g}"
    else:
        yield f"all {found.compared} outputs are the same to the bit"
    yield "slower" if found.slower else "not slower"


def _percent(old: int, new: int) -> str:
    return f"{new / old - 1:+.1%}" if old else "-"


def _share(side: Side) -> str | None:
    return f"{side.compute:.1%}" if side.both_ps else None


def _time(point: PointRow | None, name: str) -> str | None:
    return None if point is None else duration(getattr(point, name))
