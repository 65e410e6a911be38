"""`nki.collectives`: communication between ranks.

One launch is one rank here, so a group of one rank is complete and what reaches for another rank is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from neurontools.builder.trace import Space
from neurontools.nki.isa.checks import tensor
from neurontools.nki.isa.dma import check_priority, dma_copy
from neurontools.nki.isa.dma_indirect import dma_compute
from neurontools.nki.isa.refusals import reject
from neurontools.nki.isa.registers import VirtualRegister
from neurontools.nki.isa.vector import tensor_tensor
from neurontools.nki.limits import PARTITIONS
from neurontools.nki.objects import NKIObject
from neurontools.nki.operators import operator_of
from neurontools.nki.storage import new_tensor
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, tracer
from neurontools.nki.views import unsupported

__all__ = [
    "ReplicaGroup",
    "all_gather",
    "all_gather_v",
    "all_reduce",
    "all_to_all",
    "all_to_all_v",
    "collective_permute",
    "collective_permute_implicit",
    "collective_permute_implicit_current_processing_rank_id",
    "collective_permute_implicit_reduce",
    "rank_id",
    "reduce_scatter",
]

_FOLDS = ("add", "minimum", "maximum")
_CHANNELS = 4


@dataclass
class ReplicaGroup(NKIObject):
    """The groups of ranks that a collective works in."""

    groups: Any = None


def _alone(t: Tracer, collective: str, replica_group: Any) -> None:
    """Refuse groups that are none, overlap, or hold more than this launch's rank."""
    groups = replica_group.groups if isinstance(replica_group, ReplicaGroup) else replica_group
    try:
        ranks = [[int(rank) for rank in group] for group in groups]
    except (TypeError, ValueError):
        raise reject(t, _of(collective), "replica_group", repr(groups), "must be lists of ranks") from None
    every = [rank for group in ranks for rank in group]
    if len(set(every)) != len(every):
        raise reject(t, _of(collective), "replica_group", ranks, "no rank may be in two groups")
    if every != [0]:
        raise unsupported(f"nki.collectives.{collective} over {len(every)} ranks (communication between devices)")
    if t.trace.num_programs > 1:
        raise unsupported(f"nki.collectives.{collective} in a launch on two cores")


def _of(collective: str) -> str:
    return f"nki.collectives.{collective}"


def _pairs(
    t: Tracer, collective: str, srcs: Sequence[Any], dsts: Sequence[Any], *, most: int = 0, sbuf: bool = True
) -> list[tuple[NkiTensor, NkiTensor]]:
    """Return sources with their destinations; all in HBM, or one pair in SBUF."""
    where = _of(collective)
    if len(srcs) != len(dsts) or not srcs or len(srcs) > (most or len(srcs)):
        raise reject(t, where, "srcs and dsts", f"{len(srcs)} and {len(dsts)} tensors",
                     "must be one each" if most == 1 else "must be equally many, at least one")  # fmt: skip
    spaces = {tensor(t, where, name, one).allocation.space for name, group in (("srcs", srcs), ("dsts", dsts))
              for one in group}  # fmt: skip
    if spaces != {Space.HBM} and not (sbuf and spaces == {Space.SBUF}):
        names = " and ".join(sorted(space.value for space in spaces))
        raise reject(t, where, "srcs and dsts", f"in {names}", "must be in HBM" + (", or all in SBUF" if sbuf else ""))
    if spaces == {Space.SBUF} and len(srcs) > 1:
        raise reject(t, where, "srcs", f"{len(srcs)} tensors in SBUF", "several tensors must be in HBM")
    for src, dst in zip(srcs, dsts, strict=True):
        if src.size != dst.size or src.dtype != dst.dtype:
            raise reject(t, where, "dsts", f"{dst.size} elements of {dst.dtype}",
                         f"must be the {src.size} of {src.dtype} of one rank")  # fmt: skip
    return list(zip(srcs, dsts, strict=True))


def _copy(pairs: list[tuple[NkiTensor, NkiTensor]], name: str | None) -> None:
    for src, dst in pairs:
        dma_copy(dst, src, name=name)


def _fold(t: Tracer, collective: str, op: Any) -> str:
    found = operator_of(op)
    if found is None or found.name not in _FOLDS:
        raise reject(t, _of(collective), "op", repr(op), f"must be nl.{', nl.'.join(_FOLDS)}")
    return found.name


def _dim(t: Tracer, collective: str, dim: Any, allowed: tuple[int, ...]) -> None:
    if dim not in allowed:
        raise reject(t, _of(collective), "collective_dim", dim, f"must be {' or '.join(map(str, allowed))}")


def all_reduce(
    srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: Any, op: Any, priority: int | None = None,
    name: str | None = None,
) -> None:  # fmt: skip
    """Fold the sources of all ranks into every rank's destinations."""
    t = tracer()
    _fold(t, "all_reduce", op)
    check_priority(t, _of("all_reduce"), priority)
    _alone(t, "all_reduce", replica_group)
    _copy(_pairs(t, "all_reduce", srcs, dsts), name)


def all_gather(
    srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: Any, collective_dim: int,
    priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Put the sources of all ranks one behind the other into every rank's destinations."""
    t = tracer()
    check_priority(t, _of("all_gather"), priority)
    _alone(t, "all_gather", replica_group)
    pairs = _pairs(t, "all_gather", srcs, dsts)
    _dim(t, "all_gather", collective_dim, (0,) if pairs[0][0].allocation.space is Space.HBM else (0, 1))
    _copy(pairs, name)


def reduce_scatter(
    srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: Any, collective_dim: int, op: Any,
    priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Fold the sources of all ranks and give each rank its part."""
    t = tracer()
    _fold(t, "reduce_scatter", op)
    _dim(t, "reduce_scatter", collective_dim, (0,))
    check_priority(t, _of("reduce_scatter"), priority)
    _alone(t, "reduce_scatter", replica_group)
    _copy(_pairs(t, "reduce_scatter", srcs, dsts), name)


def all_to_all(
    srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: Any, collective_dim: int,
    priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Give the n-th part of each rank's sources to rank n."""
    t = tracer()
    _dim(t, "all_to_all", collective_dim, (0,))
    check_priority(t, _of("all_to_all"), priority)
    _alone(t, "all_to_all", replica_group)
    _copy(_pairs(t, "all_to_all", srcs, dsts, sbuf=False), name)


def collective_permute(
    srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], source_target_pairs: Sequence[tuple[int, int]],
    priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Send from the first to the second rank of each pair."""
    t = tracer()
    check_priority(t, _of("collective_permute"), priority)
    _alone(t, "collective_permute", [sorted({rank for pair in source_target_pairs for rank in pair})])
    _copy(_pairs(t, "collective_permute", srcs, dsts, most=1, sbuf=False), name)


def _channels(t: Tracer, collective: str, channel_ids: Sequence[int], *groups: Sequence[Any]) -> None:
    ids = list(channel_ids)
    if ids != list(range(len(ids))) or not 1 <= len(ids) <= _CHANNELS:
        raise reject(t, _of(collective), "channel_ids", ids, f"must be 0, 1 … up to {_CHANNELS} channels")
    if any(len(group) != len(ids) for group in groups):
        raise reject(t, _of(collective), "channels", [len(group) for group in groups], f"must be {len(ids)}")


def collective_permute_implicit(
    srcs_by_channel: Sequence[Sequence[NkiTensor]], dsts_by_channel: Sequence[Sequence[NkiTensor]],
    replica_group: Any, channel_ids: Sequence[int] = (0,), priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Send to the next rank of the ring and receive from the one before."""
    t = tracer()
    collective = "collective_permute_implicit"
    check_priority(t, _of(collective), priority)
    _channels(t, collective, channel_ids, srcs_by_channel, dsts_by_channel)
    _alone(t, collective, replica_group)
    for srcs, dsts in zip(srcs_by_channel, dsts_by_channel, strict=True):
        _copy(_pairs(t, collective, srcs, dsts, most=1), name)


def collective_permute_implicit_reduce(
    srcs0_by_channel: Sequence[Sequence[NkiTensor]], srcs1_by_channel: Sequence[Sequence[NkiTensor]],
    dsts_by_channel: Sequence[Sequence[NkiTensor]], replica_group: Any, op: Any, channel_ids: Sequence[int] = (0,),
    priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Send op(source 0, source 1) to the next rank of the ring and receive that of the one before."""
    t = tracer()
    collective = "collective_permute_implicit_reduce"
    fold = _fold(t, collective, op)
    check_priority(t, _of(collective), priority)
    _channels(t, collective, channel_ids, srcs0_by_channel, srcs1_by_channel, dsts_by_channel)
    _alone(t, collective, replica_group)
    for firsts, seconds, dsts in zip(srcs0_by_channel, srcs1_by_channel, dsts_by_channel, strict=True):
        ((first, dst),) = _pairs(t, collective, firsts, dsts, most=1)
        ((second, _),) = _pairs(t, collective, seconds, dsts, most=1)
        if fold == "add":
            dma_compute(dst, (first, second), op, name=name)
        else:
            _combine(t, first, second, dst, op, name)


def _combine(t: Tracer, first: NkiTensor, second: NkiTensor, dst: NkiTensor, op: Any, name: str | None) -> None:
    """Append dst = first op second through SBUF, as many rows at a time as there are partitions."""
    rows = first.shape[0]
    for start in range(0, rows, PARTITIONS):
        part = slice(start, min(start + PARTITIONS, rows))
        tiles = [new_tensor(t, first[part].shape, first.dtype) for _ in range(2)]
        for tile, source in zip(tiles, (first, second), strict=True):
            dma_copy(tile, source[part], name=name)
        tensor_tensor(tiles[0], tiles[0], tiles[1], op, name=name)
        dma_copy(dst[part], tiles[0], name=name)


def collective_permute_implicit_current_processing_rank_id(
    iteration_id: int, replica_group: Any, channel_id: int = 0, name: str | None = None
) -> VirtualRegister:
    """Return a register with the rank whose data an iteration of the ring works on."""
    t = tracer()
    _alone(t, "collective_permute_implicit_current_processing_rank_id", replica_group)
    return VirtualRegister(0)


def rank_id(name: str | None = None) -> VirtualRegister:
    """Return a register with the rank of this launch: 0, the only one."""
    return VirtualRegister(0)


def all_gather_v(
    srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: Any, metadata_tensor: NkiTensor,
    recv_counts_known: bool = False, has_rdispls: bool = False, priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Refuse: the documentation has it for four ranks only."""
    raise unsupported("nki.collectives.all_gather_v (communication between devices)")


def all_to_all_v(
    srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: Any, metadata_tensor: NkiTensor,
    recv_counts_known: bool = False, has_rdispls: bool = False, priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Refuse: the documentation has it between devices only."""
    raise unsupported("nki.collectives.all_to_all_v (communication between devices)")
