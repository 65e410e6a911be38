"""Checks alongside a session over ranks: what a run of `check --ranks` finds, each at its place, on each rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import neurontools
import neurontools.nki.collectives as ncc
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.runtime.ranks import Ranks, execute_ranks
from emulator.settings import Settings
from formats.neff import Neff
from neurontools.debugger.ranks import RankSessions
from tests.debugger.test_ranks import carry_out, do

X = np.ones((16, 4), np.float32)


def kernel(x: Any, broken: bool) -> Any:
    """Add up over both ranks; a broken one adds a tile that nothing wrote."""
    total, out = (nl.ndarray(x.shape, x.dtype, nl.shared_hbm) for _ in range(2))
    tile, other = (nl.ndarray(x.shape, nl.float32) for _ in range(2))
    ncc.all_reduce([x], [total], [[0, 1]], nl.add)
    nisa.dma_copy(tile, total)
    if not broken:
        nisa.memset(other, 0.0)
    nisa.tensor_tensor(tile, tile, other, nl.add)
    nisa.dma_copy(out, tile)
    return out


def built(broken: bool) -> Neff:
    return neurontools.build(lambda x: kernel(x, broken), X, target="trn2", lnc=1)


def opened(*broken: bool) -> RankSessions:
    neffs = [built(one) for one in broken]
    given = [{one.inputs[0].name: X} for one in neffs]
    return RankSessions(neffs, given, Ranks(len(neffs)), Settings(), 50_000_000)


@pytest.mark.parametrize("broken", [(True, True), (False, True), (False, False)])
def test_findings_are_those_of_a_run(broken: tuple[bool, ...]) -> None:
    ranks = opened(*broken)
    do(ranks, "checks on all")
    assert {each.checks for each in ranks.sessions.values()} == {("memcheck", "initcheck", "racecheck", "synccheck")}
    assert do(ranks, "continue").reason == "finished"
    neffs = [built(one) for one in broken]
    wanted = execute_ranks(neffs, [{neff.inputs[0].name: X} for neff in neffs], Ranks(2), checks="all")
    for rank, result in enumerate(wanted.results):
        found = [one.kind for one in ranks.sessions[rank].findings() if one.severity != "note"]
        assert found == [one.kind for one in result.findings if one.severity != "note"]
        assert bool(found) is broken[rank]


def test_a_finding_stops_all_ranks_and_goes_away_on_the_way_back() -> None:
    ranks = opened(False, True)
    do(ranks, "checks on", "catch finding")
    stop = do(ranks, "continue")
    assert (stop.rank, stop.reason) == (1, "finished") or stop.rank == 1
    found = do(ranks, "rank 1", "info findings")
    assert [one.kind for one in found] == ["undefined-output"]
    assert do(ranks, "goto start", "info findings") == ()
    do(ranks, "rank 0", "continue")
    assert do(ranks, "rank 0", "info findings") == ()


def test_checks_and_changes_by_hand_exclude_each_other() -> None:
    ranks = opened(False, False)
    do(ranks, "checks on", "step")
    assert "turn them off first" in str(carry_out(ranks.session, "set S[3] = 5").error)
    do(ranks, "checks off", "set S[3] = 5")
    assert "do not follow changes" in str(carry_out(ranks.session, "checks on").error)
    do(ranks, "run", "checks on")
