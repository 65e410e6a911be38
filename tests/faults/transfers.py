"""Faults of DMA transfers: order inside a queue, bytes touched twice, bounds. Changes of `assembled.BASE`.

Origin: written for this suite. Each twin is the same program, the fault mended.
"""

from __future__ import annotations

from tests.faults.assembled import Fault, as_planted, block, one, pool, race

__all__ = ["FAULTS", "PLANTED"]

_STORE = ".dma qW 1 40 SB+0x6000[1,262144][256,128] -> scratch+0[1,256][256,128]"
_TRIGGERS = ("PSEUDO_DMA_TRIGGER qW block_id=1", "PSEUDO_DMA_TRIGGER{} qW block_id=2", "NOP S[40]>=48 cycle=0")


def _reload(source: str, wait: str = "", rows: int = 128) -> tuple[tuple[str, str], ...]:
    """Return the changes that spill a tile and load it again on the same queue."""
    reload = f".dma qW 2 40 {source} -> SB+0x8000[1,262144][256,{rows}]"
    return block(_STORE + "\n" + reload), pool(*(line.format(wait) for line in _TRIGGERS))


_DOWN = "scratch+256[1,256][256,127]"
_HALVES = "scratch+0[1,512,256][256,64,2]"
_AWAITED = " S[40]>=32"

FAULTS: dict[str, Fault] = {
    "a reload that is one row further on than the store": race(
        ("Pool", 3), ("Pool", 2), *_reload(_DOWN, rows=127), twin=_reload(_DOWN, _AWAITED, 127),
        origin="one queue keeps order on one DMA engine only (hardware.md 4.1)",
    ),
    "a reload of the same rows in another order": race(
        ("Pool", 3), ("Pool", 2),
        block(_STORE + f"\n.dma qW 2 40 {_HALVES} -> SB+0x8000[1,262144][256,128]"),
        pool(*(line.format("") for line in _TRIGGERS)),
        twin=_reload("scratch+0[1,256][256,128]"),
        origin="the twin cuts store and reload alike: each row stays on its engine",
    ),
    "two loads of one queue into one tile, a row apart": race(
        ("Pool", 3), ("Pool", 2),
        block(".dma qW 1 40 w+0[1,256][256,128] -> SB+0x8000[1,262144][256,128]\n"
              ".dma qW 2 40 w+256[1,256][256,127] -> SB+0x48000[1,262144][256,127]"),
        pool(*(line.format("") for line in _TRIGGERS)),
        twin=(
            block(".dma qW 1 40 w+0[1,256][256,128] -> SB+0x8000[1,262144][256,128]\n"
                  ".dma qW 2 40 w+0[1,256][256,128] -> SB+0x8000[1,262144][256,128]"),
            pool(*(line.format("") for line in _TRIGGERS)),
        ),
    ),
    "a tile is moved onto itself, some bytes further": one(
        "racecheck:overlap", ("Pool", 2),
        block(".dma qW 1 40 SB+0x6000[1,262144][256,128] -> SB+0x6040[1,262144][256,128]"),
        pool("PSEUDO_DMA_TRIGGER S[24]>=16 qW block_id=1", "NOP S[40]>=32 cycle=0"),
        twin=(
            block(".dma qW 1 40 SB+0x6000[1,262144][256,128] -> SB+0x8040[1,262144][256,128]"),
            pool("PSEUDO_DMA_TRIGGER S[24]>=16 qW block_id=1", "NOP S[40]>=32 cycle=0"),
        ),
        origin="memmove where memcpy is what there is",
    ),
    "a shift of rows in device memory": one(
        "racecheck:overlap", ("Pool", 2),
        block(".dma qW 1 40 y+0[1,256][256,127] -> y+256[1,256][256,127]"),
        pool("PSEUDO_DMA_TRIGGER S[24]>=16 qW block_id=1", "NOP S[40]>=32 cycle=0"),
        twin=(
            block(".dma qW 1 40 y+0[1,512][256,64] -> y+256[1,512][256,64]"),
            pool("PSEUDO_DMA_TRIGGER S[24]>=16 qW block_id=1", "NOP S[40]>=32 cycle=0"),
        ),
        origin="a delay line in place; the twin's rows interleave and share no byte",
    ),
    "a step of zero in a destination": one(
        "racecheck:overlap", ("Pool", 2),
        block(".dma qW 1 40 w+0[1,256][256,128] -> scratch+0[1,0][256,128]"),
        pool("PSEUDO_DMA_TRIGGER qW block_id=1", "NOP S[40]>=32 cycle=0"),
        twin=(
            block(".dma qW 1 40 w+0[1,0][256,128] -> scratch+0[1,256][256,128]"),
            pool("PSEUDO_DMA_TRIGGER qW block_id=1", "NOP S[40]>=32 cycle=0"),
        ),
        origin="a broadcast the wrong way round",
    ),
    "a load of one row too many": one(
        "memcheck:oob", ("SP", 0),
        ("x+0[1,256][256,128] -> SB+0x4000[1,262144][256,128]", "x+0[1,258][256,128] -> SB+0x4000[1,262144][256,128]"),
        origin="a row stride that is not the tensor's",
    ),
    "a store that begins behind the start of the output": one(
        "memcheck:oob", ("Activation", 3), ("-> y+0[1,256]", "-> y+4[1,256]"), origin="an offset of one element",
    ),
}  # fmt: skip

PLANTED = tuple(as_planted(name, fault) for name, fault in FAULTS.items())
