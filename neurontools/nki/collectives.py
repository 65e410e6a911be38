"""`nki.collectives`: communication between ranks.

A kernel is one program for all ranks of a launch. Groups of one rank each need no communication: they become copies.
The encoding of what triggers a collective is ours (`formats.isa.extension_collective`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from formats.isa import CollectiveKind
from formats.neuron_core import PARTITIONS
from neurontools.builder.trace import Space
from neurontools.nki.collective_groups import ReplicaGroup, append, channels, fold, groups_of, paired, pairs_of, where
from neurontools.nki.dtype import uint32
from neurontools.nki.isa.checks import tensor
from neurontools.nki.isa.dma import check_priority, dma_copy
from neurontools.nki.isa.dma_indirect import dma_compute
from neurontools.nki.isa.refusals import reject
from neurontools.nki.isa.registers import VirtualRegister
from neurontools.nki.isa.vector import tensor_tensor
from neurontools.nki.regions import MemoryRegion
from neurontools.nki.storage import new_tensor
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer, tracer

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

_V_RANKS = 4  # of a group of all_gather_v, by the documentation
Groups = tuple[tuple[int, ...], ...]


def _all(
    t: Tracer, kind: CollectiveKind, pairs: list[tuple[NkiTensor, NkiTensor]], groups: Groups, name: str | None,
    **fields: Any,
) -> None:  # fmt: skip
    """Append a collective for every pair; ranks that are alone copy."""
    for src, dst in pairs:
        if len(groups[0]) == 1:
            dma_copy(dst, src, name=name)
        else:
            append(t, kind, src, dst, groups, name, **fields)


def _dim(t: Tracer, collective: str, dim: Any, allowed: tuple[int, ...]) -> int:
    if dim not in allowed:
        raise reject(t, where(collective), "collective_dim", dim, f"must be {' or '.join(map(str, allowed))}")
    return int(dim)


def all_reduce(
    srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: Any, op: Any, priority: int | None = None,
    name: str | None = None,
) -> None:  # fmt: skip
    """Fold the sources of all ranks into every rank's destinations."""
    t = tracer()
    reduce = fold(t, "all_reduce", op)
    check_priority(t, where("all_reduce"), priority)
    groups = groups_of(t, "all_reduce", replica_group)
    _all(t, CollectiveKind.ALL_REDUCE, paired(t, "all_reduce", srcs, dsts), groups, name, reduce=reduce)


def all_gather(
    srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: Any, collective_dim: int,
    priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Put the sources of all ranks one behind the other into every rank's destinations."""
    t = tracer()
    collective = "all_gather"
    check_priority(t, where(collective), priority)
    groups = groups_of(t, collective, replica_group)
    pairs = paired(t, collective, srcs, dsts, grows=(len(groups[0]), 1))
    on_chip = pairs[0][0].allocation.space is Space.SBUF
    dim = _dim(t, collective, collective_dim, (0, 1) if on_chip else (0,))
    for src, dst in pairs:
        wanted = list(src.shape)
        wanted[dim] *= len(groups[0])
        if on_chip and (len(src.shape) != 2 or list(dst.shape) != wanted):
            raise reject(t, where(collective), "dsts", f"of shape {dst.shape} for srcs of {src.shape}",
                         "tensors in SBUF have two dimensions, and the gathered one is that of all ranks")  # fmt: skip
    _all(t, CollectiveKind.ALL_GATHER, pairs, groups, name, axis=dim)


def reduce_scatter(
    srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: Any, collective_dim: int, op: Any,
    priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Fold the sources of all ranks and give each rank its part."""
    t = tracer()
    collective = "reduce_scatter"
    reduce = fold(t, collective, op)
    _dim(t, collective, collective_dim, (0,))
    check_priority(t, where(collective), priority)
    groups = groups_of(t, collective, replica_group)
    pairs = paired(t, collective, srcs, dsts, grows=(1, len(groups[0])))
    _all(t, CollectiveKind.REDUCE_SCATTER, pairs, groups, name, reduce=reduce)


def all_to_all(
    srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: Any, collective_dim: int,
    priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Give the n-th part of each rank's sources to rank n."""
    t = tracer()
    collective = "all_to_all"
    _dim(t, collective, collective_dim, (0,))
    check_priority(t, where(collective), priority)
    groups = groups_of(t, collective, replica_group)
    pairs = paired(t, collective, srcs, dsts, sbuf=False)
    for src, _ in pairs:
        if src.shape[0] % len(groups[0]):
            raise reject(t, where(collective), "srcs", f"of shape {src.shape}",
                         f"dimension 0 must be a multiple of {len(groups[0])} ranks")  # fmt: skip
    _all(t, CollectiveKind.ALL_TO_ALL, pairs, groups, name)


def collective_permute(
    srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], source_target_pairs: Sequence[tuple[int, int]],
    priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Send from the first to the second rank of each pair; a rank that is no target keeps its destination."""
    t = tracer()
    collective = "collective_permute"
    check_priority(t, where(collective), priority)
    table = pairs_of(t, collective, source_target_pairs)
    ((src, dst),) = paired(t, collective, srcs, dsts, most=1, sbuf=False)
    if table == ((0, 0),):
        dma_copy(dst, src, name=name)
    else:
        append(t, CollectiveKind.PERMUTE, src, dst, table, name)


def collective_permute_implicit(
    srcs_by_channel: Sequence[Sequence[NkiTensor]], dsts_by_channel: Sequence[Sequence[NkiTensor]],
    replica_group: Any, channel_ids: Sequence[int] = (0,), priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Send to the next rank of the ring and receive from the one before."""
    t = tracer()
    collective = "collective_permute_implicit"
    check_priority(t, where(collective), priority)
    ids = channels(t, collective, channel_ids, srcs_by_channel, dsts_by_channel)
    groups = groups_of(t, collective, replica_group)
    for channel, srcs, dsts in zip(ids, srcs_by_channel, dsts_by_channel, strict=True):
        pairs = paired(t, collective, srcs, dsts, most=1)
        _all(t, CollectiveKind.PERMUTE_NEXT, pairs, groups, name, channel=channel, stream=channel)


def collective_permute_implicit_reduce(
    srcs0_by_channel: Sequence[Sequence[NkiTensor]], srcs1_by_channel: Sequence[Sequence[NkiTensor]],
    dsts_by_channel: Sequence[Sequence[NkiTensor]], replica_group: Any, op: Any, channel_ids: Sequence[int] = (0,),
    priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Send op(source 0, source 1) to the next rank of the ring and receive that of the one before."""
    t = tracer()
    collective = "collective_permute_implicit_reduce"
    fold(t, collective, op)
    check_priority(t, where(collective), priority)
    ids = channels(t, collective, channel_ids, srcs0_by_channel, srcs1_by_channel, dsts_by_channel)
    groups = groups_of(t, collective, replica_group)
    for channel, firsts, seconds, dsts in zip(ids, srcs0_by_channel, srcs1_by_channel, dsts_by_channel, strict=True):
        ((first, dst),) = paired(t, collective, firsts, dsts, most=1)
        ((second, _),) = paired(t, collective, seconds, dsts, most=1)
        if len(groups[0]) == 1:
            _combine(t, first, second, dst, op, name)
            continue
        on_chip = dst.allocation.space is Space.SBUF
        region = MemoryRegion.sbuf if on_chip else MemoryRegion.private_hbm
        # What is sent must not be the destination: the ring delivers into it meanwhile.
        sent = new_tensor(t, first.shape, first.dtype, region, name="sent")
        _combine(t, first, second, sent, op, name)
        append(t, CollectiveKind.PERMUTE_NEXT, sent, dst, groups, name, channel=channel, stream=channel)


def _combine(t: Tracer, first: NkiTensor, second: NkiTensor, dst: NkiTensor, op: Any, name: str | None) -> None:
    """Append dst = first op second: in SBUF, by DMA, or through SBUF with as many rows at a time as partitions."""
    if dst.allocation.space is Space.SBUF:
        tensor_tensor(dst, first, second, op, name=name)
        return
    if fold(t, "collective_permute_implicit_reduce", op).name == "ADD":
        # the DMA adds on the way (CCE); other folds need the Vector engine, which reads SBUF alone
        dma_compute(dst, (first, second), op, name=name)
        return
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
    collective = "collective_permute_implicit_current_processing_rank_id"
    groups = groups_of(t, collective, replica_group)
    channels(t, collective, range(int(channel_id) + 1))
    if not 0 <= int(iteration_id) < 1 << 32:
        raise reject(t, where(collective), "iteration_id", iteration_id, "must be 0 or more")
    register = VirtualRegister()
    append(t, CollectiveKind.RANK_IN_TURN, None, register.tile, groups, name,
           turn=int(iteration_id), channel=int(channel_id), stream=int(channel_id))  # fmt: skip
    return register


def rank_id(name: str | None = None) -> VirtualRegister:
    """Return a register with the rank that runs this program: 0 where there is one."""
    t = tracer()
    register = VirtualRegister()
    append(t, CollectiveKind.RANK, None, register.tile, ((0,),), name)
    return register


def _v_form(
    t: Tracer, collective: str, srcs: Sequence[Any], dsts: Sequence[Any], groups: Groups, metadata_tensor: Any,
    places: bool,
) -> tuple[NkiTensor, NkiTensor, NkiTensor]:  # fmt: skip
    """Return source, destination and table of a V form: one contiguous tensor each."""
    ((src, dst),) = paired(t, collective, srcs, dsts, most=1, sbuf=False, grows=None)
    table = tensor(t, where(collective), "metadata_tensor", metadata_tensor)
    shape: tuple[int, ...] = (4 if places else 3, len(groups[0]))
    if table.allocation.space is Space.SBUF:
        shape = (1, *shape)
    if table.dtype != uint32 or tuple(table.shape) != shape:
        raise reject(t, where(collective), "metadata_tensor", f"{table.dtype} of shape {table.shape}",
                     f"must be uint32 of shape {shape}")  # fmt: skip
    if dst.size % len(groups[0]) and not places:
        raise reject(t, where(collective), "dsts", f"{dst.size} elements",
                     f"must be a multiple of {len(groups[0])} ranks")  # fmt: skip
    return src, dst, table


def all_gather_v(
    srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: Any, metadata_tensor: NkiTensor,
    recv_counts_known: bool = False, has_rdispls: bool = False, priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Give every rank's chunk to all ranks; `metadata_tensor` says how long it is. Groups have four ranks."""
    t = tracer()
    collective = "all_gather_v"
    check_priority(t, where(collective), priority)
    groups = groups_of(t, collective, replica_group)
    if has_rdispls:
        raise reject(t, where(collective), "has_rdispls", has_rdispls, "is not supported")
    if len(groups[0]) != _V_RANKS:
        raise reject(t, where(collective), "replica_group", f"{len(groups[0])} ranks", f"must have {_V_RANKS} each")
    src, dst, table = _v_form(t, collective, srcs, dsts, groups, metadata_tensor, False)
    append(t, CollectiveKind.ALL_GATHER_V, src, dst, groups, name, counts=table.view_of_storage,
           keeps_counts=bool(recv_counts_known))  # fmt: skip


def all_to_all_v(
    srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], replica_group: Any, metadata_tensor: NkiTensor,
    recv_counts_known: bool = False, has_rdispls: bool = False, priority: int | None = None, name: str | None = None,
) -> None:  # fmt: skip
    """Give each rank a chunk of its own length; `metadata_tensor` says where chunks begin and how long they are."""
    t = tracer()
    collective = "all_to_all_v"
    check_priority(t, where(collective), priority)
    groups = groups_of(t, collective, replica_group)
    if len(groups[0]) < 2:
        raise reject(t, where(collective), "replica_group", f"{len(groups[0])} ranks", "must have two or more each")
    src, dst, table = _v_form(t, collective, srcs, dsts, groups, metadata_tensor, bool(has_rdispls))
    append(t, CollectiveKind.ALL_TO_ALL_V, src, dst, groups, name, counts=table.view_of_storage,
           keeps_counts=bool(recv_counts_known), has_places=bool(has_rdispls))  # fmt: skip
