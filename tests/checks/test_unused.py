"""A spill of a tile of which a half is still loaded: harmless where that half is spilled again before it is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checks.support import assembled
from tests.cli.conftest import Cli, cli

__all__ = ["cli"]  # a fixture

PROGRAM = """.target trn2
.name spilled
.constant x float32 [128, 64] 1.5 2.5 3.5
.output y float32 [128, 64]
.var scratch 32768 512
.queue qA sp 8
.queue qB pool 24
.queue qSpill dve 40
.queue qOut act 56
.dma qA 0 8 x+0[1,256][256,64] -> SB+0x4000[1,262144][256,64]
.dma qB 0 24 x+16384[1,256][256,64] -> SB+0x1004000[1,262144][256,64]
.dma qSpill 0 40 SB+0x4000[1,262144][256,128] -> scratch+0[1,256][256,128]
.dma qSpill 1 40 SB+0x1004000[1,262144][256,64] -> scratch+16384[1,256][256,64]
.dma qOut 0 56 scratch+0[1,256][256,128] -> y+0[1,256][256,128]
.engine sp
    PSEUDO_DMA_TRIGGER qA block_id=0
.engine pool
    PSEUDO_DMA_TRIGGER qB block_id=0
.engine dve
    PSEUDO_DMA_TRIGGER S[8]>=16 qSpill block_id=0
    NOP S[24]>=16 cycle=0
    NOP S[40]>=16 cycle=0
    {again}
.engine act
    PSEUDO_DMA_TRIGGER S[40]>={spills} qOut block_id=0
    NOP S[56]>=16 cycle=0
"""
AGAIN = "PSEUDO_DMA_TRIGGER qSpill block_id=1"
STALE = PROGRAM.format(again=AGAIN, spills=32)
WAITING = STALE.replace("    PSEUDO_DMA_TRIGGER S[8]", "    NOP S[24]>=16 cycle=0\n    PSEUDO_DMA_TRIGGER S[8]")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_stale_part_that_is_spilled_again_is_a_note(cli: Cli, tmp_path: Path, seed: int) -> None:
    file = tmp_path / "spilled.s"
    file.write_text(PROGRAM.format(again=AGAIN, spills=32))
    done = cli("check", file, "--seed", seed, "--json")
    (found,) = done.json["result"]["findings"]
    assert done.status == 0 and (found["kind"], found["severity"]) == ("unused-read", "note")
    assert "no output changed" in found["message"]


@pytest.mark.parametrize("bad", [False, True])
def test_over_ranks_the_bytes_of_each_are_tried(cli: Cli, tmp_path: Path, bad: bool) -> None:
    """Rank 1 has the spill that may be stale; its twin on rank 0 waits for both loads."""
    for rank, text in enumerate((WAITING, PROGRAM.format(again="NOP cycle=0", spills=16) if bad else STALE)):
        (tmp_path / f"p-{rank}.neff").write_bytes(assembled(text).to_bytes())
    done = cli("check", tmp_path / "p-{rank}.neff", "--ranks", 2, "--json")
    found = done.json["result"]["findings"]
    kinds = {one["kind"] for one in found if one["tool"] == "racecheck"}
    assert done.status == int(bad) and kinds
    assert kinds <= {"write-read", "read-write"} if bad else kinds == {"unused-read"}
    assert all(one["message"].endswith("(rank 1)") for one in found)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_stale_part_that_is_read_is_a_race(cli: Cli, tmp_path: Path, seed: int) -> None:
    file = tmp_path / "spilled.s"
    file.write_text(PROGRAM.format(again="NOP cycle=0", spills=16))
    done = cli("check", file, "--seed", seed, "--json")
    kinds = {one["kind"] for one in done.json["result"]["findings"] if one["severity"] == "error"}
    assert done.status == 1 and kinds <= {"write-read", "read-write"} and kinds
