"""Expansion of collectives: what ranks exchange becomes dense arrays with the dimension of ranks outermost.

A rank that is alone in its group gets what it gave. Ranks that replica groups name are those of the launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from formats.isa import AluOp, CollectiveKind
from formats.limits import MAX_RANKS
from neurontools.compiler.errors import UnsupportedGraphError, failed
from neurontools.compiler.graph import Node, Value
from neurontools.compiler.rewriting import Builder, Rule
from neurontools.compiler.tile_folds import fold_of

__all__ = ["COLLECTIVES", "check_groups"]

Groups = tuple[tuple[int, ...], ...]
_FOLDS = {"add": AluOp.ADD, "minimum": AluOp.MIN, "maximum": AluOp.MAX}
_TRUTH_FOLDS = {"and": AluOp.MIN, "or": AluOp.MAX, "minimum": AluOp.MIN, "maximum": AluOp.MAX}


def check_groups(node: Node) -> None:
    """Raise CompileError for groups that overlap or differ in size, and for pairs that meet at a rank."""
    groups: Groups = node.attrs.get("groups", ())
    pairs: Groups = node.attrs.get("pairs", ())
    every = [rank for group in groups for rank in group]
    what = ""
    if any(not 0 <= rank < MAX_RANKS for rank in (*every, *(rank for pair in pairs for rank in pair))):
        what = f"ranks must be 0 to {MAX_RANKS - 1}"
    elif len(set(every)) != len(every):
        what = f"no rank may be in two groups, {_shown(groups)}"
    elif len({len(group) for group in groups}) > 1:
        what = f"groups must have the same number of ranks, {_shown(groups)}"
    elif any(len({pair[side] for pair in pairs}) != len(pairs) for side in (0, 1)):
        what = f"no rank may be source or target twice, {_shown(pairs)}"
    if what:
        raise failed("EVRF064", f"{node.opcode}: {what}", node.origin)


def _shown(groups: Groups) -> str:
    text = ", ".join("{" + ",".join(map(str, group)) + "}" for group in groups[:8])
    return text + (" …" if len(groups) > 8 else "")


def _groups(node: Node, grown: int) -> Groups:
    """Return the groups; without any there is one of all ranks, as many as sizes say."""
    groups: Groups = node.attrs["groups"] or (tuple(range(grown)),)
    return groups


def _named(node: Node) -> Groups:
    """Return the groups, which must be there: without any all ranks take part, and no shape says how many."""
    groups: Groups = node.attrs["groups"]
    if not groups:
        raise UnsupportedGraphError("EUOC002", f"{node.opcode} without replica groups: the graph does not say how many "
                                    "ranks take part; {{0}} is one rank", node.origin)  # fmt: skip
    return groups


def _meet(b: Builder, kind: CollectiveKind, value: Value, shape: Sequence[int], groups: Groups, **attrs: Any) -> Value:
    return b.graph.add("rank-collective", (value,), value.dtype, shape, kind=kind, groups=groups, **attrs)


def _reduction(node: Node) -> AluOp:
    fold = fold_of(node.attrs["body"]) or "another function"
    known = _TRUTH_FOLDS if node.operands[0].dtype == "pred" else _FOLDS
    if fold not in known:
        raise UnsupportedGraphError("EUOC002", f"{node.opcode} by {fold} is not supported; allowed are "
                                    f"{', '.join(known)}", node.origin)  # fmt: skip
    return known[fold]


def _split(b: Builder, value: Value, axis: int, ranks: int, node: Node) -> Value:
    """Return a value with a dimension cut for ranks, theirs first."""
    shape = value.shape
    if shape[axis] % ranks:
        raise failed("EVRF064", f"{node.opcode} cuts {shape[axis]} elements for {ranks} ranks", node.origin)
    cut = b.reshape(value, (*shape[:axis], ranks, shape[axis] // ranks, *shape[axis + 1 :]))
    return b.transpose(cut, (axis, *(one for one in range(len(shape) + 1) if one != axis)))


def _joined(b: Builder, value: Value, axis: int) -> Value:
    """Return a value with its first dimension, that of ranks, made part of another one."""
    rank = len(value.shape)
    turned = b.transpose(value, (*range(1, axis + 1), 0, *range(axis + 1, rank)))
    shape = turned.shape
    return b.reshape(turned, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def _all_reduce(b: Builder, node: Node, operands: list[Value]) -> list[Value]:
    groups = _named(node)
    reduce = _reduction(node) if len(groups[0]) > 1 else AluOp.ADD
    if len(groups[0]) == 1:
        return operands
    same = bool(node.attrs.get("one_program"))
    return [_meet(b, CollectiveKind.ALL_REDUCE, one, one.shape, groups, reduce=reduce, one_program=same)
            for one in operands]  # fmt: skip


def _all_gather(b: Builder, node: Node, operands: list[Value]) -> list[Value]:
    axis = node.attrs["dimension"]
    given, result = operands[0].shape[axis], node.results[0].shape[axis]
    groups = _groups(node, result // given if given else 1)
    ranks = len(groups[0])
    if ranks == 1:
        return operands
    return [_joined(b, _meet(b, CollectiveKind.ALL_GATHER, one, (ranks, *one.shape), groups), axis) for one in operands]


def _reduce_scatter(b: Builder, node: Node, operands: list[Value]) -> list[Value]:
    axis = node.attrs["dimension"]
    given, result = operands[0].shape[axis], node.results[0].shape[axis]
    groups = _groups(node, given // result if result else 1)
    ranks = len(groups[0])
    if ranks == 1:
        return operands
    reduce = _reduction(node)
    found = []
    for one in operands:
        cut = _split(b, one, axis, ranks, node)
        found.append(_meet(b, CollectiveKind.REDUCE_SCATTER, cut, cut.shape[1:], groups, reduce=reduce))
    return found


def _all_to_all(b: Builder, node: Node, operands: list[Value]) -> list[Value]:
    groups = _groups(node, len(operands))
    ranks = len(groups[0])
    if ranks == 1:
        return operands
    if len(operands) > 1 or node.attrs["dimension"] is None:
        if len(operands) != ranks:
            raise failed("EVRF064", f"all-to-all of {len(operands)} parts among {ranks} ranks", node.origin)
        rows = b.concatenate([b.reshape(one, (1, *one.shape)) for one in operands], 0)
        met = _meet(b, CollectiveKind.ALL_TO_ALL, rows, rows.shape, groups)
        return [b.reshape(b.part(met, 0, place, 1), one.shape) for place, one in enumerate(operands)]
    axis, (value,) = node.attrs["dimension"], operands
    cut = _split(b, value, axis, ranks, node)
    met = _joined(b, _meet(b, CollectiveKind.ALL_TO_ALL, cut, cut.shape, groups), _grown(node, value, axis, ranks))
    if met.shape != node.result.shape:
        raise failed("EVRF064", f"all-to-all of {list(value.shape)} along {axis} among {ranks} ranks cannot give "
                     f"{list(node.result.shape)}", node.origin)  # fmt: skip
    return [met]


def _grown(node: Node, value: Value, axis: int, ranks: int) -> int:
    """Return the dimension along which parts are put together: that of the cut, unless another one has grown.

    XLA has one dimension; nkipy names the one that is cut and lets the result's shape say the other (compiler.md 5.6).
    """
    pairs = enumerate(zip(value.shape, node.result.shape, strict=False))
    grown = [place for place, (old, new) in pairs if place != axis and new == old * ranks]
    return grown[0] if grown and node.result.shape != value.shape else axis


def _permute(b: Builder, node: Node, operands: list[Value]) -> list[Value]:
    pairs: Groups = node.attrs.get("pairs", ())
    if not pairs:
        return [b.like(0, operands[0])]
    if not any(source or target for source, target in pairs):
        return operands
    return [_meet(b, CollectiveKind.PERMUTE, one, one.shape, pairs) for one in operands]


def _broadcast(b: Builder, node: Node, operands: list[Value]) -> list[Value]:
    """Expand into a gather of which the first rank's part is kept."""
    groups = _named(node)
    if len(groups[0]) == 1:
        return operands
    gathered = [_meet(b, CollectiveKind.ALL_GATHER, one, (len(groups[0]), *one.shape), groups) for one in operands]
    return [b.reshape(b.part(one, 0, 0, 1), one.shape[1:]) for one in gathered]


def _on_stream(rule: Rule) -> Rule:
    """Return a rule whose collectives go on the stream that the operation names."""

    def expanded(b: Builder, node: Node, operands: list[Value]) -> list[Value] | None:
        first = len(b.graph.nodes)
        found = rule(b, node, operands)
        for made in b.graph.nodes[first:]:
            if made.opcode == "rank-collective" and node.attrs.get("stream"):
                made.attrs["stream"] = node.attrs["stream"]
        return found

    return expanded


COLLECTIVES: dict[str, Rule] = {
    "all-gather": _on_stream(_all_gather),
    "all-reduce": _on_stream(_all_reduce),
    "all-to-all": _on_stream(_all_to_all),
    "collective-broadcast": _on_stream(_broadcast),
    "collective-permute": _on_stream(_permute),
    "reduce-scatter": _on_stream(_reduce_scatter),
}
