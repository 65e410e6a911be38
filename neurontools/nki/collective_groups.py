"""What the functions of `nki.collectives` share: groups, pairs of tensors, and the operation that they append."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from formats.isa import AluOp, CollectiveKind
from formats.limits import MAX_RANKS
from neurontools.builder.trace import CollectiveOp, Space, View
from neurontools.nki.dtype import int32
from neurontools.nki.isa.checks import tensor
from neurontools.nki.isa.refusals import reject
from neurontools.nki.objects import NKIObject
from neurontools.nki.operators import operator_of
from neurontools.nki.storage import constant_tensor
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, kernel_line

__all__ = ["CHANNELS", "ReplicaGroup", "append", "channels", "fold", "groups_of", "paired", "pairs_of", "where"]

CHANNELS = 4  # of a ring at most; a stream of CC-cores each (ours)
_FOLDS = {"add": AluOp.ADD, "minimum": AluOp.MIN, "maximum": AluOp.MAX}


@dataclass
class ReplicaGroup(NKIObject):
    """The groups of ranks that a collective works in."""

    groups: Any = None


def where(collective: str) -> str:
    """Return the name of a function as messages give it."""
    return f"nki.collectives.{collective}"


def groups_of(t: Tracer, collective: str, replica_group: Any) -> tuple[tuple[int, ...], ...]:
    """Return the ranks of each group; refuse groups that are none, overlap, or differ in size."""
    groups = replica_group.groups if isinstance(replica_group, ReplicaGroup) else replica_group
    ranks = _ranks(t, collective, "replica_group", groups)
    every = [rank for group in ranks for rank in group]
    if len(set(every)) != len(every):
        raise reject(t, where(collective), "replica_group", [list(one) for one in ranks],
                     "no rank may be in two groups")  # fmt: skip
    if len({len(group) for group in ranks}) != 1 or not every:
        raise reject(t, where(collective), "replica_group", [list(one) for one in ranks],
                     "groups must have the same number of ranks, at least one")  # fmt: skip
    return ranks


def pairs_of(t: Tracer, collective: str, pairs: Any) -> tuple[tuple[int, ...], ...]:
    """Return pairs of source and target; refuse a rank that sends or receives twice."""
    found = _ranks(t, collective, "source_target_pairs", pairs)
    if not found or any(len(pair) != 2 for pair in found):
        raise reject(t, where(collective), "source_target_pairs", [list(one) for one in found],
                     "must be pairs of ranks, at least one")  # fmt: skip
    for name, at in (("source", 0), ("target", 1)):
        ranks = [pair[at] for pair in found]
        if len(set(ranks)) != len(ranks):
            raise reject(t, where(collective), "source_target_pairs", [list(one) for one in found],
                         f"no rank may be a {name} twice")  # fmt: skip
    return found


def _ranks(t: Tracer, collective: str, argument: str, lists: Any) -> tuple[tuple[int, ...], ...]:
    try:
        found = tuple(tuple(operator.index(rank) for rank in group) for group in lists)
    except TypeError:
        raise reject(t, where(collective), argument, repr(lists), "must be lists of ranks") from None
    if any(not 0 <= rank < MAX_RANKS for group in found for rank in group):
        raise reject(t, where(collective), argument, [list(one) for one in found],
                     f"ranks must be 0 to {MAX_RANKS - 1}")  # fmt: skip
    return found


def paired(
    t: Tracer, collective: str, srcs: Sequence[Any], dsts: Sequence[Any], *, grows: tuple[int, int] | None = (1, 1),
    most: int = 0, sbuf: bool = True,
) -> list[tuple[NkiTensor, NkiTensor]]:  # fmt: skip
    """Return sources with their destinations; all in HBM, or one pair in SBUF.

    `grows` is how many elements of the destination go with how many of the source, None where that is open.
    """
    name = where(collective)
    for argument, given in (("srcs", srcs), ("dsts", dsts)):
        if not isinstance(given, Sequence):
            raise reject(t, name, argument, repr(given), "must be a list of tensors")
    if len(srcs) != len(dsts) or not srcs or len(srcs) > (most or len(srcs)):
        raise reject(t, name, "srcs and dsts", f"{len(srcs)} and {len(dsts)} tensors",
                     "must be one each" if most == 1 else "must be equally many, at least one")  # fmt: skip
    spaces = {tensor(t, name, argument, one).allocation.space for argument, group in (("srcs", srcs), ("dsts", dsts))
              for one in group}  # fmt: skip
    if spaces != {Space.HBM} and not (sbuf and spaces == {Space.SBUF}):
        names = " and ".join(sorted(space.value for space in spaces))
        raise reject(t, name, "srcs and dsts", f"in {names}", "must be in HBM" + (", or all in SBUF" if sbuf else ""))
    if spaces == {Space.SBUF} and len(srcs) > 1:
        raise reject(t, name, "srcs", f"{len(srcs)} tensors in SBUF", "several tensors must be in HBM")
    for src, dst in zip(srcs, dsts, strict=True):
        if src.dtype != dst.dtype:
            raise reject(t, name, "dsts", f"of {dst.dtype}", f"must be of {src.dtype}, as srcs")
        if grows is not None and dst.size * grows[1] != src.size * grows[0]:
            ratio = "as many" if grows == (1, 1) else f"{grows[0]} for {grows[1]}"
            raise reject(t, name, "dsts", f"{dst.size} elements of {dst.dtype}",
                         f"must have {ratio} elements as srcs with {src.size}")  # fmt: skip
    return list(zip(srcs, dsts, strict=True))


def fold(t: Tracer, collective: str, op: Any) -> AluOp:
    """Return the reduction that an argument names."""
    found = operator_of(op)
    if found is None or found.name not in _FOLDS:
        raise reject(t, where(collective), "op", repr(op), f"must be nl.{', nl.'.join(_FOLDS)}")
    return _FOLDS[found.name]


def channels(t: Tracer, collective: str, channel_ids: Sequence[int], *groups: Sequence[Any]) -> list[int]:
    """Return the channels of a ring; refuse numbers with gaps, too many, and lists of other lengths."""
    ids = list(islice(channel_ids, CHANNELS + 1))
    if ids != list(range(len(ids))) or not 1 <= len(ids) <= CHANNELS:
        raise reject(t, where(collective), "channel_ids", ids, f"must be 0, 1 … up to {CHANNELS} channels")
    if any(len(group) != len(ids) for group in groups):
        raise reject(t, where(collective), "channels", [len(group) for group in groups], f"must be {len(ids)}")
    return ids


def append(
    t: Tracer, kind: CollectiveKind, src: NkiTensor | None, dst: NkiTensor, groups: tuple[tuple[int, ...], ...],
    name: str | None = None, **fields: Any,
) -> None:  # fmt: skip
    """Append a collective; without a source it gives a number that only the rank knows."""
    if name is not None and not isinstance(name, str):
        raise t.unnamed(name)
    key = ("replica groups", groups)
    table: NkiTensor | None = t.cache.get(key)
    if table is None:
        table = t.cache[key] = constant_tensor(t, np.array(groups, np.int32), "replica_groups", int32)
    view: View = table.view_of_storage
    source = view._replace(dims=((1, 1),)) if src is None else src.view_of_storage
    target, rows, columns = dst.view_of_storage, len(groups), len(groups[0])
    t.ops.append(CollectiveOp(kind, target, source, view, rows, columns, kernel_line(), name, **fields))
