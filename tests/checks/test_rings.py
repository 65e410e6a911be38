"""A ring holds what it holds: what is triggered beyond waits for room, and is a finding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.dma import rings, system
from emulator.runtime import run
from formats.neff import Neff
from neurontools.nki.launch import build_neff
from tests.checks.support import assembled

P, W = 128, 64
X = np.arange(2 * P * W, dtype=np.float32).reshape(P, 2 * W)


def many(x: Any, count: int) -> Any:
    """Load every other element, one descriptor each, into tile after tile; nothing waits before the last."""
    out = nl.ndarray((P, W), dtype=nl.float32, buffer=nl.shared_hbm)
    for _ in range(count):
        part = nl.ndarray((P, W), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=part, src=x.ap([[2 * W, P], [2, W]]), dge_mode=nisa.dge_mode.hwdge)
    nisa.dma_copy(dst=out, src=part)
    return out


def built(count: int) -> Neff:
    neff: Neff = build_neff(many, (X, count), {}, target="trn2")
    return neff


@pytest.mark.parametrize(("count", "kinds"), [(500, {"ring-full"}), (60, set())])
def test_more_than_a_ring_holds(count: int, kinds: set[str]) -> None:
    neff = built(count)
    result = run(neff, {neff.inputs[0].name: X}, checks="synccheck")
    assert {one.kind for one in result.findings if one.serious} == kinds
    for finding in result.findings:
        if finding.kind == "ring-full":
            assert finding.site.owner == "SP" and getattr(finding.site.source, "line", 0) == 27
            assert "in a ring that holds 65536" in finding.message
            break


def test_what_finds_no_room_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """With rings for one and a half transfers, each begins when the one before it has gone; the data is the same."""
    neff = built(8)
    given = {neff.inputs[0].name: X}
    free = run(neff, given)
    monkeypatch.setattr(system, "RING_SIZE", 800)
    held = run(neff, given)
    assert held.ok and held.time_ps > free.time_ps
    (name,) = free.outputs
    assert free.outputs[name].tobytes() == held.outputs[name].tobytes()


_STATIC = """.target trn2
.input x float32 [128, 64]
.output y float32 [128, 64]
.queue qIn sp 8
.queue qOut act 24
.dma qIn 0 8 x+0[1,256][256,64] -> SB+0x4000[1,262144][256,64]
.dma qIn 1 8 x+16384[1,256][256,64] -> SB+0x1004000[1,262144][256,64]
.dma qOut 0 24 SB+0x4000[1,262144][256,128] -> y+0[1,256][256,128]
.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    PSEUDO_DMA_TRIGGER qIn block_id=1
.engine act
    PSEUDO_DMA_TRIGGER S[8]>=32 qOut block_id=0
    NOP S[24]>=16 cycle=0
"""


@pytest.mark.parametrize(("most", "lines"), [(1 << 24, []), (18, []), (17, [11]), (8, [10, 13])])
def test_rings_that_are_filled_at_load_time(most: int, lines: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 64 rows are 8 descriptors a ring, and one that raises the semaphore."""
    monkeypatch.setattr(rings, "LARGEST_RING", most)
    result = run(assembled(_STATIC, "static.s"), {"x": X[:, :W]}, checks="synccheck")
    assert [getattr(one.site.source, "line", 0) for one in result.findings] == lines
    assert all(one.kind == "ring-full" and f"a ring holds {most} at most" in one.message for one in result.findings)
