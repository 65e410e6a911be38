"""A queue that stands idle between two transfers, and one whose transfers need their order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli, cli

__all__ = ["cli"]  # a fixture

PROGRAM = """.target trn2
.name serial
.input x float32 [256, 64]
.output y float32 [256, 64]
.var scratch 32768 512
.queue qIn sp 8
.queue qOut act 40
.dma qIn 0 8 x+0[1,256][256,128] -> SB+0x4000[1,262144][256,128]
.dma qIn 1 8 {source} -> SB+{target}[1,262144][256,128]
.dma qOut 0 40 SB+0x4000[1,262144][256,128] -> y+0[1,256][256,128]
.dma qOut 1 40 SB+0x4400[1,262144][256,128] -> y+32768[1,256][256,128]
.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    NOP S[8]>=16 cycle=0
    {between}
    PSEUDO_DMA_TRIGGER qIn block_id=1
    {end}
.engine act
    NOP S[8]>=32 cycle=0
    PSEUDO_DMA_TRIGGER qOut block_id=0
    PSEUDO_DMA_TRIGGER qOut block_id=1
    NOP S[40]>=32 cycle=0
"""
PLAIN = {"source": "x+32768[1,256][256,128]", "target": "0x4400", "between": "NOP cycle=0", "end": "NOP cycle=0"}

SHIFTED = {"source": "SB+0x44000[1,262144][256,127]", "target": "0x4400"}


def program(**parts: str) -> str:
    text = PROGRAM.format(**PLAIN | parts)
    return text.replace("SB+0x4400[1,262144][256,128]", "SB+0x4400[1,262144][256,127]", 1) if parts else text


def lint(cli: Cli, tmp_path: Path, text: str) -> list[dict[str, object]]:
    file = tmp_path / "serial.s"
    file.write_text(text)
    done = cli("check", file, "--tool", "lint", "--inputs", "random", "--json")
    return [one for one in done.json["result"]["findings"] if one["kind"] == "serial-queue"]


def test_loads_one_behind_the_other(cli: Cli, tmp_path: Path) -> None:
    (found,) = lint(cli, tmp_path, program())
    assert found["site"]["source"]["line"] == 14  # type: ignore[index]
    assert "no race comes up, the outputs are the same" in str(found["hint"])
    faster = program().replace("    NOP S[8]>=16 cycle=0\n", "")
    assert lint(cli, tmp_path, faster) == []


@pytest.mark.parametrize("needed", [SHIFTED], ids=["the second reads what the first writes"])
def test_an_order_that_is_needed(cli: Cli, tmp_path: Path, needed: dict[str, str]) -> None:
    assert lint(cli, tmp_path, program(**needed)) == []


def test_on_ranks_nothing_is_said_that_was_not_tried(cli: Cli, tmp_path: Path) -> None:
    """The order is needed here; alone that is tried, and on ranks the finding came untried."""
    file = tmp_path / "serial.s"
    file.write_text(program(**SHIFTED))
    for more in ((), ("--ranks", 2)):
        done = cli("check", file, "--tool", "lint", "--inputs", "random", "--json", *more)
        assert [one for one in done.json["result"]["findings"] if one["kind"] == "serial-queue"] == []
