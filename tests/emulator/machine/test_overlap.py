"""Compute and collectives on the DMA engines of a rank, and what of a collective compute hides."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import neurontools
import neurontools.nki.collectives as ncc
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.machine.ranks.machine import Packets
from emulator.machine.ranks.overlap import Activity, Move, overlap_of, share_of, union
from emulator.runtime.ranks import RankedResult, Ranks, execute_ranks
from formats.errors import UnsupportedError
from formats.neuron_core import DMA_ENGINES
from neurontools.overlap.trace import trace_events

BOTH = [[0, 1]]


def ran(kernel: Any, x: Any, packets: Packets, target: str = "trn1") -> tuple[RankedResult, list[Activity]]:
    neff = neurontools.build(kernel, x, target=target, lnc=1)
    watched = [Activity(), Activity()]
    found = execute_ranks(neff, [{neff.inputs[0].name: x}] * 2, Ranks(2), packets=packets, record=True,
                          watch=lambda rank: [watched[rank]])  # fmt: skip
    assert found.ok, found.hang
    return found, watched


def backlog(x: Any, copies: int = 2) -> Any:
    """Copy again and again, from load-time descriptors, while ranks add up a large tensor."""
    mine, total = (nl.ndarray(x.shape, x.dtype, nl.shared_hbm) for _ in range(2))
    outs = [nl.ndarray(x.shape, x.dtype, nl.shared_hbm) for _ in range(copies)]
    ncc.all_reduce([x], [total], BOTH, nl.add)
    for out in (mine, *outs):
        nisa.dma_copy(out, x)
    return (total, *outs)


WIDE = 16383  # elements of a row of nearly 64 KiB: a descriptor, and so a packet, holds one at most
X = np.ones((64, WIDE), np.float32)


@pytest.mark.parametrize(("packets", "rows", "copies", "share"), [
    (Packets(), 256, 3, 4 / 68), (Packets(65536, (4096,)), 64, 20, 64 / 68), (Packets(65536, (65536,)), 256, 4, 0.5),
])  # fmt: skip
def test_shares_of_busy_engines_are_the_documented_ones(packets: Packets, rows: int, copies: int, share: float) -> None:
    """Compute has 5.9 % by default and 94.1 % as recommended, read off a run. Source: collectives.md 9.

    The collective's last packet is not followed by one of compute: of n packets the share misses one part.
    """
    found, watched = ran(lambda x: backlog(x, copies), np.ones((rows, WIDE), np.float32), packets)
    carried = [one[1:] for one in found.carried if one.rank == 0 and one.begin_ps < 10_000_000]
    got = share_of(watched[0].moves, carried, found.carried_rate)
    assert len(carried) == 1 and got.both_ps > 5_000_000
    assert got.compute == pytest.approx(share, abs=0.01)


def rows_of(x: Any, columns: int, copies: int) -> Any:
    """Copy the left part of each row again and again while ranks add up all of it: a descriptor is a row's part."""
    total, *outs = (
        nl.ndarray((x.shape[0], width), x.dtype, nl.shared_hbm) for width in (x.shape[1], *[columns] * copies)
    )
    ncc.all_reduce([x], [total], BOTH, nl.add)
    for out in outs:
        nisa.dma_copy(out, x[:, :columns])
    return (total, *outs)


@pytest.mark.parametrize(("packets", "columns", "share"), [
    (Packets(65536, (4096,)), 2048, 64 / 68),  # eight rows of 8 KiB
    (Packets(65536, (4096,)), 128, 32 / 36),  # no more than 64 descriptors, of 512 bytes
    (Packets(), 2048, 4 / 68), (Packets(), 128, 1 / 129),  # of the default, no more than one
])  # fmt: skip
def test_larger_packets_hold_several_descriptors(packets: Packets, columns: int, share: float) -> None:
    """Rows make packets as far as they fit, where packets were made larger. Source: collectives.md 9."""
    x = np.ones((1 << 21 - columns.bit_length(), 2 * columns), np.float32)
    found, watched = ran(lambda x: rows_of(x, columns, 40), x, packets)
    carried = [one[1:] for one in found.carried if one.rank == 0 and one.begin_ps < 10_000_000]
    assert len(carried) == 1
    assert share_of(watched[0].moves, carried, found.carried_rate).compute == pytest.approx(share, abs=0.02)


def test_packets_only_grow_or_shrink() -> None:
    for wrong in (Packets(2048), Packets(None, (131072,)), Packets(None, (1, 1, 1, 1, 1))):
        with pytest.raises(UnsupportedError):
            ran(backlog, X[:4], wrong)


def test_hidden_and_exposed_time_by_hand() -> None:
    activity = Activity()
    activity.compute = [(0, 10), (5, 20), (30, 40), (100, 200)]
    activity.matmuls = [(0, 10, 1), (30, 40, 2), (100, 200, 3)]
    assert union(activity.compute) == [(0, 20), (30, 40), (100, 200)]
    one = overlap_of(3, activity, 15, 90, 5)
    # 15 to 20 and 30 to 40 are covered; the matmul at 100 finds the Tensor engine idle since 40, 50 of it for this.
    assert (one.time_ps, one.hidden_ps, one.exposed_ps, one.trigger_ps) == (75, 15, 60, 5)
    assert one.delay is not None and (one.delay.pc, one.delay.begin_ps, one.delay.idle_ps) == (3, 100, 50)
    assert overlap_of(0, activity, 150, 190, 50).exposed_ps == 0
    assert overlap_of(0, activity, 250, 260, 50).delay is None
    # The second lies half outside of compute and does not count; the third begins while the first is under way.
    share = share_of([Move("q", 0, 60, 100, 100), Move("q", 90, 99, 100, 500)], [(10, 30, 5), (55, 95, 9), (20, 50, 7)])
    assert (share.both_ps, share.alone_ps, share.compute) == (40, 12, 0.7)


def product(x: Any, hide: bool) -> Any:
    """Multiply behind a collective, or beside it."""
    tile, weights, total = nl.ndarray((128, 128), nl.float32), nl.ndarray((128, 128), nl.float32), []
    psum, out = nl.ndarray((128, 128), nl.float32, nl.psum), nl.ndarray((128, 128), nl.float32, nl.shared_hbm)
    total = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
    nisa.dma_copy(weights, x)
    ncc.all_reduce([x], [total], BOTH, nl.add)
    nisa.dma_copy(tile, x if hide else total)
    for _ in range(60):
        nisa.nc_matmul(psum, weights, tile, accumulate=False)
    result = nl.ndarray((128, 128), nl.float32)
    nisa.tensor_copy(result, psum)
    if hide:
        nisa.dma_copy(tile, total)
        nisa.nc_matmul(psum, weights, tile, accumulate=False)
        nisa.tensor_copy(result, psum)
    nisa.dma_copy(out, result)
    return out


def test_compute_beside_a_collective_hides_it() -> None:
    x = np.ones((128, 128), np.float32)
    parts = []
    for hide in (False, True):

        def kernel(x: Any, hide: bool = hide) -> Any:
            return product(x, hide)

        found, watched = ran(kernel, x, Packets(), "trn2")
        (met,) = found.collectives
        assert met.source.startswith(__file__)
        one = overlap_of(0, watched[0], met.begun_ps[0], met.ended_ps[0], found.trigger_ps)
        assert one.delay is not None and one.hidden_ps + one.exposed_ps == one.time_ps
        parts.append(one.hidden_ps / one.time_ps)
        events = trace_events(found, watched)
        names = {event["args"]["name"] for event in events if event["ph"] == "M"}
        assert {"rank 0", "rank 1", "links", "PE", "stream 0", "stream 0 trigger", "rank 0 > rank 1"} <= names
        assert all(event["dur"] >= 0 for event in events if event["ph"] == "X")
    assert parts[0] < 0.05 and parts[1] > 0.5


def later(x: Any) -> Any:
    """Add up a tensor over ranks; copies follow one another through SBUF, so that none waits in a ring beforehand."""
    total = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
    ncc.all_reduce([x], [total], BOTH, nl.add)
    out = nl.ndarray((128, 8192), x.dtype, nl.shared_hbm)
    tile = nl.ndarray((128, 8192), x.dtype)
    for number in range(24):
        nisa.dma_copy(tile if number % 2 == 0 else out, x[:128, :8192] if number % 2 == 0 else tile)
    return total, out


def test_what_engines_get_later_puts_a_collective_off() -> None:
    """A transfer of a CC-core shares its engines with what is triggered while it is under way, not only before.

    64 KiB of a collective on each engine in packets of 4 KiB, beside packets of 64 KiB that come one after the other:
    each of these has its turn behind every packet of the collective. Source: collectives.md 9.
    """
    found, watched = ran(later, np.ones((256, 16384), np.float32), Packets(65536, (4096,)))
    (first,) = (one for one in found.carried if one.rank == 0 and one.begin_ps < 10_000_000)
    copies = [one for one in watched[0].moves if one.end_ps < first.end_ps]
    assert len(copies) > 10 and all(one.end_ps < two.begin_ps for one, two in pairwise(copies)), "none is given ahead"
    share = share_of(watched[0].moves, [first[1:]], found.carried_rate)
    assert first.end_ps - first.begin_ps > 6 * first.alone_ps and share.both_ps == 0, "it outlasts every copy"
    spent = sum(min(one.end_ps, first.end_ps) - one.begin_ps for one in copies[1:])
    moved = sum(one.nbytes for one in copies[1:]) / DMA_ENGINES * 1000 / 17  # ps of an engine
    assert moved / spent == pytest.approx(64 / 68, abs=0.03)
