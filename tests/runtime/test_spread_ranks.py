"""Ranks shared out between sites give what one process gives: outputs, times, collectives, hangs and faults."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import neurontools
import neurontools.nki.collectives as ncc
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.errors import InputError
from emulator.runtime.ranks import RankedResult, Ranks, execute_ranks
from emulator.runtime.site import Site, SiteOrder
from emulator.runtime.spread import Asker
from emulator.runtime.spread_ranks import spread_ranks
from emulator.settings import Settings
from formats.neff import Neff
from tests.emulator.machine.test_ranks import groups, hbm
from tests.emulator.machine.test_timed_ranks import PROGRAMS, built, waits, whole


class Said:
    """What a site in this process answered, as bytes, as between processes."""

    def __init__(self, value: Any) -> None:
        self.value = pickle.dumps(value)

    def result(self) -> Any:
        return pickle.loads(self.value)


ASKED: list[str] = []


@contextmanager
def here(orders: Sequence[SiteOrder]) -> Iterator[Sequence[Asker]]:
    def asker(order: SiteOrder) -> Asker:
        site = Site(pickle.loads(pickle.dumps(order)))

        def ask(name: str, *arguments: Any) -> Said:
            ASKED.append(name)
            return Said(getattr(site, name)(*pickle.loads(pickle.dumps(arguments))))

        return ask

    yield [asker(order) for order in orders]


def both(
    neffs: Sequence[Neff | None], where: Ranks, sites: int, settings: Settings | None = None
) -> tuple[RankedResult, RankedResult]:
    rng = np.random.default_rng(7)
    inputs = [{} if neff is None else {one.name: rng.standard_normal(one.shape).astype(np.float32)
                                       for one in neff.inputs} for neff in neffs]  # fmt: skip
    settings = settings or Settings()
    return spread_ranks(neffs, inputs, where, settings, sites, here), execute_ranks(neffs, inputs, where, settings)


def same(found: RankedResult, full: RankedResult) -> None:
    for mine, theirs in zip(found.results, full.results, strict=True):
        assert mine.time_ps == theirs.time_ps and mine.stats.words == theirs.stats.words
        assert list(mine.outputs) == list(theirs.outputs)
        for name, array in mine.outputs.items():
            assert array.tobytes() == theirs.outputs[name].tobytes()
        assert (mine.fault, mine.hang, mine.warnings) == (theirs.fault, theirs.hang, theirs.warnings)
        assert mine.unwritten == theirs.unwritten
    assert found.collectives == full.collectives and found.places == full.places
    assert (found.hang is None) == (full.hang is None)
    assert found.hang is None or full.hang is None or found.hang.text() == full.hang.text()


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(("ranks", "sites"), [(2, 2), (8, 3)])
def test_what_comes_out_is_what_one_process_gives(program: str, ranks: int, sites: int) -> None:
    neff = built(PROGRAMS[program], ranks)
    same(*both([neff] * ranks, Ranks(ranks), sites))


@pytest.mark.parametrize("settings", [Settings(seed=3), Settings(timing=False), Settings(max_steps=40),
                                      Settings(limit_ps=9_000_000)])  # fmt: skip
def test_settings_hold_at_sites(settings: Settings) -> None:
    same(*both([built(waits, 4)] * 4, Ranks(4, None, 2), 2, settings))


def test_two_cores_of_each_rank() -> None:
    same(*both([built(waits, 4, lnc=2)] * 4, Ranks(4), 2))


def test_who_only_waits_is_not_asked() -> None:
    """What engines carry meanwhile is known without a question; where a program goes on, its site is asked."""
    ASKED.clear()
    both([built(waits, 8)] * 8, Ranks(8), 2)
    waiting = ASKED.count("carried_until")
    ASKED.clear()
    both([built(PROGRAMS["overlaps"], 8)] * 8, Ranks(8), 2)
    assert waiting == 0 < ASKED.count("carried_until")


def sized(rows: int) -> Neff:
    def kernel(x: Any) -> Any:
        out = hbm(*x.shape)
        ncc.all_reduce([x], [out], whole(3), nl.add)
        return out

    return neurontools.build(kernel, np.zeros((rows, 8), np.float32), target="trn2", lnc=1)


def test_ranks_that_wait_for_ever_and_ranks_that_stay_away() -> None:
    same(*both([sized(16), sized(16), None], Ranks(3), 2))
    same(*both([sized(16), sized(16), sized(8)], Ranks(3), 3))


def test_a_call_that_cannot_be_is_a_fault_of_its_rank() -> None:
    def kernel(x: Any) -> Any:
        out = hbm(*x.shape)
        nisa.dma_copy(out, x)
        ncc.all_reduce([x], [out], groups([0, 1], [3, 4]), nl.add)
        return out

    neff = neurontools.build(kernel, np.zeros((16, 8), np.float32), target="trn2", lnc=1)
    found, full = both([neff] * 3, Ranks(3), 2)
    same(found, full)
    assert full.results[2].fault is not None


def test_more_ranks_than_there_are() -> None:
    with pytest.raises(InputError, match=r"129 ranks; trn2\.48xlarge has 1 to 128"):
        both([built(waits, 2)] * 129, Ranks(129), 2)
