"""What differs between two NEFFs: header, members, variables, queues, and the instructions of every engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from neurontools.render.neff import fields, tensor_text
from neurontools.render.table import count

if TYPE_CHECKING:
    from formats.neff import Neff, Subgraph

__all__ = ["diff", "diff_lines"]

ENGINES = ("PE", "Activation", "Pool", "DVE", "SP")
# Of the header, what says which build made the file and not what the file does.
IDENTITY = ("hash", "uuid", "data_size", "pad")


def diff(one: Neff, other: Neff, shown: int) -> dict[str, Any]:
    """Return what differs; at most `shown` runs of differing instructions of each engine are listed."""
    header = _changed(fields(one.header), fields(other.header))
    members = _members(one, other)
    tensors = _changed(
        {kind: [tensor_text(t) for t in getattr(one, kind)] for kind in ("inputs", "outputs")},
        {kind: [tensor_text(t) for t in getattr(other, kind)] for kind in ("inputs", "outputs")},
    )
    parts = [
        _subgraphs(first, second, shown) for first, second in zip(one.subgraphs, other.subgraphs, strict=False)
    ]
    extra = len(one.subgraphs) - len(other.subgraphs)
    same = not (members["changed"] or members["only_in_first"] or members["only_in_second"] or header or extra)
    return {
        "same": same,
        "header": {key: value for key, value in header.items() if key not in IDENTITY},
        "identity": [key for key in header if key in IDENTITY],
        "tensors": tensors,
        "members": members,
        "subgraphs": parts,
        "extra_subgraphs": extra,
    }


def _changed(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {
        key: [_plain(first.get(key)), _plain(second.get(key))]
        for key in {**first, **second}
        if first.get(key) != second.get(key)
    }


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return list(value) if isinstance(value, tuple) else value


def _members(one: Neff, other: Neff) -> dict[str, list[str]]:
    first, second = ({member.name for member in neff.members} for neff in (one, other))
    return {
        "only_in_first": sorted(first - second),
        "only_in_second": sorted(second - first),
        "changed": [name for name in sorted(first & second) if one.read(name) != other.read(name)],
    }


def _subgraphs(first: Subgraph, second: Subgraph, shown: int) -> dict[str, Any]:
    def named(get: Callable[[Subgraph], Mapping[str, Any]]) -> dict[str, Any]:
        return _changed(*({name: fields(item) for name, item in get(graph).items()} for graph in (first, second)))

    return {
        "name": first.name,
        "variables": named(lambda graph: graph.variables),
        "queues": named(lambda graph: graph.queues),
        "engines": {
            engine: found for engine in ENGINES if (found := _engine(first, second, engine, shown)) is not None
        },
    }


def _engine(first: Subgraph, second: Subgraph, engine: str, shown: int) -> dict[str, Any] | None:
    """Return where two streams differ, None where they are equal; text is made for the lines that are shown."""
    if first.stream_bytes(engine) == second.stream_bytes(engine):
        return None
    from difflib import SequenceMatcher

    one, other = first.streams[engine], second.streams[engine]
    left, right = ([word.raw for word in stream] for stream in (one, other))
    head = next((i for i, (a, b) in enumerate(zip_longest(left, right)) if a != b), 0)
    tail = 0
    while tail < min(len(left), len(right)) - head and left[-1 - tail] == right[-1 - tail]:
        tail += 1
    cut_left, cut_right = left[head : len(left) - tail], right[head : len(right) - tail]
    matcher = SequenceMatcher(None, cut_left, cut_right, autojunk=False)
    # Comparing thousands of words with thousands takes minutes and tells nobody anything.
    if len(cut_left) * len(cut_right) > 4_000_000:
        runs = [("replace", 0, len(cut_left), 0, len(cut_right))]
    else:
        runs = [op for op in matcher.get_opcodes() if op[0] != "equal"]
    return {
        "words": [len(left), len(right)],
        "differing_runs": len(runs),
        "runs": [
            {
                "kind": kind,
                "pc": [head + a, head + c],
                "first": [one[head + i].text for i in range(a, min(b, a + shown))],
                "second": [other[head + i].text for i in range(c, min(d, c + shown))],
                "lengths": [b - a, d - c],
            }
            for kind, a, b, c, d in runs[:shown]
        ],
    }


def diff_lines(first: str, second: str, found: dict[str, Any]) -> list[str]:
    """Return `neff diff` for people: - is the first file, + the second."""
    if found["same"]:
        return [f"{first} and {second}: the same content"]
    lines = [f"- {first}", f"+ {second}"]
    for title in ("header", "tensors"):
        for key, (before, after) in found[title].items():
            lines += [f"{title} {key}:", f"  - {before}", f"  + {after}"]
    if found["identity"]:
        lines.append("header " + ", ".join(found["identity"]) + ": differ, as of any two builds")
    members = found["members"]
    lines += [f"- member {name}" for name in members["only_in_first"]]
    lines += [f"+ member {name}" for name in members["only_in_second"]]
    lines += [f"! member {name}" for name in members["changed"]]
    if found["extra_subgraphs"]:
        more = "first" if found["extra_subgraphs"] > 0 else "second"
        lines.append(f"the {more} file has {count(abs(found['extra_subgraphs']), 'subgraph')} more")
    for part in found["subgraphs"]:
        for title in ("variables", "queues"):
            for name, (before, after) in part[title].items():
                lines.append(f"{part['name']} {title[:-1]} {name}: " + _record(before, after))
        for engine, one in part["engines"].items():
            lines.append(
                f"{part['name']} {engine}: {one['words'][0]} and {one['words'][1]} words, "
                f"{count(one['differing_runs'], 'place')} differ"
            )
            for run in one["runs"]:
                lines.append(f"  pc {run['pc'][0]} / {run['pc'][1]}")
                for mark, side, length in zip("-+", ("first", "second"), run["lengths"], strict=True):
                    lines += [f"  {mark} {text}" for text in run[side]]
                    if length > len(run[side]):
                        lines.append(f"  {mark} and {length - len(run[side])} more")
    return lines


def _record(before: Any, after: Any) -> str:
    if before is None or after is None:
        return "only in the " + ("second" if before is None else "first")
    changed = [key for key in before if before[key] != after.get(key)]
    return ", ".join(f"{key} {before[key]} -> {after.get(key)}" for key in changed)
