"""One clean program in assembler, and what can be wrong with it: each fault is a small change of the text.

Origin: written for this suite; no fault is copied from a program of somebody else. `Fault.origin` says which mistake of
kernel authors or compilers, or which documented rule, a fault stands for, where its name does not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tests.checks.support import assembled
from tests.faults.model import Expected, Planted, Program
from tests.faults.model import Place as Side

__all__ = ["BASE", "FAULTS", "INPUTS", "PLANTED", "Change", "Fault", "as_planted", "block", "line_of", "one",
           "planted", "pool", "race"]  # fmt: skip

# Loads x and w, multiplies and adds them on PE and DVE, joins the results on ACT and stores them.
BASE = """
.target trn2
.name planted
.input  x float32 [128, 64]
.constant w float32 [128, 64] 0.5
.output y float32 [128, 64]
.var scratch 32768 512
.queue qIn sp 8
.queue qOut act 24
.queue qW pool 40
.dma qIn  0 8  x+0[1,256][256,128] -> SB+0x4000[1,262144][256,128]
.dma qW   0 40 w+0[1,256][256,128] -> SB+0x6000[1,262144][256,128]
.dma qOut 0 24 SB+0x7000[1,262144][256,128] -> y+0[1,256][256,128]
.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
    NOP E[3]==1- cycle=0
    NOP E[4]==1- cycle=0
.engine pool
    PSEUDO_DMA_TRIGGER qW block_id=0
    NOP S[40]>=16 cycle=0
.engine pe
    LDWEIGHTS S[40]>=16 transpose_mode=DISABLED src=fp32@0x6000[1,0,0][64,1,1] 128*64
    MATMUL S[8]>=16 S[5]++@complete acc_flags=3 src=fp32@0x4000[1,0,0][64,1,1] dst=0x2000000[1,0,0][64,1,1] 128*64
.engine dve
    EVENT_SEMAPHORE S[8]>=16 setter=0 S[40]>=16
    TENSOR_TENSOR S[6]++@complete op=ADD src0=fp32@0x4000[1,1,1][64,1,1] src1=fp32@0x6000[1,1,1][64,1,1] \
dst=fp32@0x5000[1,1,1][64,1,1] channels=128
    NOP E[3]+@complete cycle=0
    COPY S[5]>=1 S[6]++@complete src=fp32@0x2000000[1,1,1,1][64,1,1,1] dst=fp32@0x5800[1,1,1,1][64,1,1,1] channels=64
.engine act
    COPY S[6]>=1 src=fp32@0x5000[1,1,1,1][64,1,1,1] dst=fp32@0x7000[1,1,1,1][64,1,1,1] channels=128
    COPY S[6]>=2 src=fp32@0x5800[1,1,1,1][64,1,1,1] dst=fp32@0x7000[1,1,1,1][64,1,1,1] channels=64
    NOP E[4]+@complete cycle=0
    PSEUDO_DMA_TRIGGER qOut block_id=0
    NOP S[24]>=16 cycle=0
"""

Change = tuple[str, str]
Place = tuple[str, int]


class Fault(NamedTuple):
    """A change, and the finding it has to give: tool:kind (several where the schedule decides), place, other side.

    A race has two sides, and which one comes later is the schedule's choice: the pair is compared, not its order.
    `twin` are the changes of the program that does the same and is right; without any it is the program itself.
    """

    changes: tuple[Change, ...]
    kinds: tuple[str, ...]
    place: Place
    other: Place | None = None
    twin: tuple[Change, ...] = ()
    origin: str = ""
    declared: str = ""  # how the line begins that a finding without a word names


def race(place: Place, other: Place, *changes: Change, twin: tuple[Change, ...] = (), origin: str = "") -> Fault:
    """Return a fault that is a race of two places, whatever their order."""
    kinds = tuple(f"racecheck:{kind}" for kind in ("write-read", "read-write", "write-write"))
    return Fault(changes, kinds, place, other, twin, origin)


def one(kind: str, place: Place, *changes: Change, other: Place | None = None, twin: tuple[Change, ...] = (),
        origin: str = "") -> Fault:  # fmt: skip
    """Return a fault that gives one kind of finding."""
    return Fault(changes, (kind,), place, other, twin, origin)


_POOL_END = ("    NOP S[40]>=16 cycle=0\n", "    NOP S[40]>=16 cycle=0\n{}\n")
_SIDE = ".dma qOut 0"


def pool(*lines: str) -> Change:
    """Return the change that gives Pool more words."""
    return _POOL_END[0], _POOL_END[1].format("\n".join(f"    {line}" for line in lines))


def block(text: str) -> Change:
    """Return the change that declares one more DMA block."""
    return _SIDE, f"{text}\n{_SIDE}"


_ROWS = "y+{}[1,512][256,64]"
_LATE = ("    NOP E[3]==1- cycle=0", "    NOP S[24]>=16 cycle=0\n    NOP E[3]==1- cycle=0")

FAULTS: dict[str, Fault] = {
    # --- races: one wait less, or one access more -----------------------------------------------------------------
    "the load of x is not awaited by DVE": race(
        ("DVE", 1), ("SP", 0), ("S[8]>=16 setter=0 S[40]>=16", "S[40]>=16 setter=0")
    ),
    "the load of w is not awaited by DVE": race(("DVE", 1), ("Pool", 0), ("setter=0 S[40]>=16", "setter=0")),
    "the weights are not awaited": race(("PE", 0), ("Pool", 0), ("LDWEIGHTS S[40]>=16", "LDWEIGHTS")),
    "the moving tile is not awaited": race(("PE", 1), ("SP", 0), ("MATMUL S[8]>=16", "MATMUL")),
    "the product is not awaited": race(("DVE", 3), ("PE", 1), ("COPY S[5]>=1", "COPY")),
    "the sum is not awaited": race(("Activation", 0), ("DVE", 1), ("COPY S[6]>=1", "COPY")),
    "the second copy waits for the first signal": race(("Activation", 1), ("DVE", 3), ("COPY S[6]>=2", "COPY S[6]>=1")),
    "two engines write one tile": race(
        ("DVE", 3),
        ("Activation", 0),
        ("dst=fp32@0x5800", "dst=fp32@0x7040"),
        ("COPY S[6]>=2 src=fp32@0x5800", "COPY S[6]>=2 src=fp32@0x5000"),
    ),
    "Pool overwrites what DVE reads": race(
        ("Pool", 2),
        ("DVE", 1),
        pool("COPY S[8]>=16 src=fp32@0x6000[1,1,1,1][64,1,1,1] dst=fp32@0x4000[1,1,1,1][64,1,1,1] channels=128"),
        twin=(
            pool("COPY S[24]>=16 src=fp32@0x6000[1,1,1,1][64,1,1,1] dst=fp32@0x4000[1,1,1,1][64,1,1,1] channels=128"),
        ),
    ),
    "two queues load one tile": race(
        ("Pool", 2),
        ("SP", 0),
        block(".dma qW 1 40 w+0[1,256][256,128] -> SB+0x4000[1,262144][256,128]"),
        pool("PSEUDO_DMA_TRIGGER qW block_id=1", "NOP S[40]>=32 cycle=0"),
        twin=(
            block(".dma qW 1 40 w+0[1,256][256,128] -> SB+0x4000[1,262144][256,128]"),
            pool("PSEUDO_DMA_TRIGGER S[24]>=16 qW block_id=1", "NOP S[40]>=32 cycle=0"),
        ),
    ),
    "two queues store to one place in HBM": race(
        ("Pool", 2),
        ("Activation", 3),
        block(".dma qW 1 40 SB+0x6000[1,262144][256,128] -> y+0[1,256][256,128]"),
        pool("PSEUDO_DMA_TRIGGER qW block_id=1", "NOP S[40]>=32 cycle=0"),
        twin=(
            block(".dma qW 1 40 SB+0x6000[1,262144][256,128] -> scratch+0[1,256][256,128]"),
            pool("PSEUDO_DMA_TRIGGER qW block_id=1", "NOP S[40]>=32 cycle=0"),
        ),
    ),
    "strided stores share one row": race(
        ("Pool", 2),
        ("Activation", 3),
        ("SB+0x7000[1,262144][256,128] -> y+0[1,256][256,128]", "SB+0x7000[1,524288][256,64] -> " + _ROWS.format(0)),
        block(".dma qW 1 40 SB+0x6000[1,524288][256,63] -> y+128[1,512][256,63]"),
        pool("PSEUDO_DMA_TRIGGER qW block_id=1", "NOP S[40]>=32 cycle=0"),
        twin=(
            (
                "SB+0x7000[1,262144][256,128] -> y+0[1,256][256,128]",
                "SB+0x7000[1,524288][256,64] -> " + _ROWS.format(0),
            ),
            block(f".dma qW 1 40 SB+0x6000[1,524288][256,64] -> {_ROWS.format(256)}"),
            pool("PSEUDO_DMA_TRIGGER qW block_id=1", "NOP S[40]>=32 cycle=0"),
        ),
    ),
    "the store is not awaited": one(
        "racecheck:output-not-awaited", ("Activation", 3), ("    NOP S[24]>=16 cycle=0\n", "")
    ),
    # --- waits and signals ----------------------------------------------------------------------------------------
    "nothing signals": one("synccheck:never-signalled", ("DVE", 3), ("S[8]>=16 S[5]++@complete", "S[8]>=16")),
    "too few signals": one(
        "synccheck:never-met", ("Activation", 1), ("COPY S[6]>=2", "COPY S[6]>=3"), other=("DVE", 1)
    ),
    "an event that nobody sets": one("synccheck:never-signalled", ("SP", 1), ("NOP E[3]+@complete", "NOP")),
    "an event that nobody consumes": one("synccheck:event-left", ("Activation", 2), ("    NOP E[4]==1- cycle=0\n", "")),
    "an event set twice": one(
        "synccheck:double-set",
        ("DVE", 3),
        _LATE,
        ("    NOP E[3]+@complete cycle=0\n", "    NOP E[3]+@complete cycle=0\n" * 2),
        other=("DVE", 2),
        twin=(_LATE,),
    ),
    "an equality that a later signal passes": one(
        "synccheck:overshoot", ("Activation", 0), ("COPY S[6]>=1", "COPY S[6]==1"), other=("DVE", 3)
    ),
    "an equality that is jumped over": one("synccheck:overshoot", ("Activation", 4), ("S[24]>=16", "S[24]==8")),
    "half of a transfer": one("synccheck:count-mismatch", ("Activation", 4), ("S[24]>=16", "S[24]>=8")),
    "a quarter in the second slot": one(
        "synccheck:count-mismatch", ("DVE", 0), ("setter=0 S[40]>=16", "setter=0 S[40]>=4")
    ),
    "more than one transfer, less than two": one(
        "synccheck:count-mismatch", ("Pool", 1), ("NOP S[40]>=16", "NOP S[40]>=15")
    ),
    "two producers of one semaphore": one(
        "synccheck:ambiguous",
        ("Activation", 0),
        ("S[5]++@complete", "S[6]++@complete"),
        ("COPY S[5]>=1", "COPY S[6]>=2"),
        ("COPY S[6]>=2 src=fp32@0x5800", "COPY S[6]>=3 src=fp32@0x5800"),
    ),
    "two engines wait for each other": one(
        "synccheck:deadlock",
        ("DVE", 3),
        ("COPY S[5]>=1", "COPY S[4]>=1"),
        ("COPY S[6]>=2 src=fp32@0x5800", "COPY S[6]>=2 S[4]++@complete src=fp32@0x5800"),
        other=("Activation", 1),
    ),
    "an engine that waits for itself": one(
        "synccheck:deadlock", ("PE", 0), ("LDWEIGHTS S[40]>=16", "LDWEIGHTS S[5]>=1"), other=("PE", 1)
    ),
    "a transfer that is never triggered": one(
        "synccheck:never-signalled",
        ("PE", 0),
        ("    PSEUDO_DMA_TRIGGER qW block_id=0\n    NOP S[40]>=16 cycle=0\n", "    NOP cycle=0\n"),
    ),
    "an engine behind a fault": one(
        "synccheck:fault", ("Activation", 0), ("src1=fp32@0x6000", "src1=fp32@0x37ff0"), other=("DVE", 1)
    ),
    # --- bytes that nothing wrote ---------------------------------------------------------------------------------
    "an input beside its tile": one(
        "initcheck:undefined-output", ("DVE", 1), ("src1=fp32@0x6000", "src1=fp32@0x6200"), other=("Activation", 3)
    ),
    "one column too far": one(
        "initcheck:undefined-output", ("DVE", 1), ("src1=fp32@0x6000", "src1=fp32@0x6004"), other=("Activation", 3)
    ),
    "half a tile is copied": one(
        "initcheck:undefined-output",
        ("Activation", 3),
        ("dst=fp32@0x7000[1,1,1,1][64,1,1,1] channels=128", "dst=fp32@0x7000[1,1,1,1][64,1,1,1] channels=64"),
    ),
    "weights that nobody loaded": one(
        "initcheck:undefined-output",
        ("PE", 0),
        (
            "LDWEIGHTS S[40]>=16 transpose_mode=DISABLED src=fp32@0x6000",
            "LDWEIGHTS S[40]>=16 transpose_mode=DISABLED src=fp32@0x6200",
        ),
        other=("Activation", 3),
    ),
    "a moving tile that nobody loaded": one(
        "initcheck:undefined-output",
        ("PE", 1),
        ("acc_flags=3 src=fp32@0x4000", "acc_flags=3 src=fp32@0x4200"),
        other=("Activation", 3),
    ),
    "a load of half the partitions": one(
        "initcheck:undefined-output",
        ("DVE", 1),
        ("x+0[1,256][256,128] -> SB+0x4000[1,262144][256,128]", "x+0[1,256][256,64] -> SB+0x4000[1,262144][256,64]"),
        other=("Activation", 3),
    ),
    "a sum onto PSUM that nothing began": one(
        "initcheck:undefined-output", ("PE", 1), ("acc_flags=3", "acc_flags=2"), other=("Activation", 3)
    ),
    "scratch that nobody filled": one(
        "initcheck:undefined-output", ("SP", 0), ("x+0[1,256]", "scratch+0[1,256]"), other=("Activation", 3)
    ),
    "half of the output": one(
        "initcheck:output-unwritten",
        ("host", -1),
        ("SB+0x7000[1,262144][256,128] -> y+0[1,256][256,128]", "SB+0x7000[1,262144][256,64] -> y+0[1,256][256,64]"),
        other=("Activation", 3),
    ),
    # --- bounds ---------------------------------------------------------------------------------------------------
    "an operand behind SBUF": one("memcheck:oob", ("DVE", 1), ("src1=fp32@0x6000", "src1=fp32@0x37ff0")),
    "an output behind PSUM": one("memcheck:oob", ("PE", 1), ("dst=0x2000000", "dst=0x2003f80")),
    "partitions behind the last": one("memcheck:partitions", ("DVE", 1), ("src0=fp32@0x4000", "src0=fp32@0x1004000")),
    "half an element": one(
        "memcheck:alignment", ("Activation", 0), ("COPY S[6]>=1 src=fp32@0x5000", "COPY S[6]>=1 src=fp32@0x5002")
    ),
    "Pool reads PSUM": one(
        "memcheck:access",
        ("Pool", 2),
        pool("COPY S[5]>=1 src=fp32@0x2000000[1,1,1,1][64,1,1,1] dst=fp32@0x9000[1,1,1,1][64,1,1,1] channels=64"),
    ),
    "PE writes SBUF": one("memcheck:access", ("PE", 1), ("dst=0x2000000[1,0,0]", "dst=0x9000[1,0,0]")),
    "a load behind the partition": one("memcheck:oob", ("SP", 0), ("SB+0x4000[1,262144]", "SB+0x37fc0[1,262144]")),
    "a start that engines do not take": one(
        "memcheck:rule", ("Activation", 1), ("COPY S[6]>=2 src=fp32@0x5800", "COPY S[6]>=2 src=fp32@0x285800")
    ),
    "a product over two banks": one(
        "memcheck:bank",
        ("PE", 1),
        ("dst=0x2000000[1,0,0][64,1,1] 128*64", "dst=0x2000780[1,0,0][64,1,1] 128*64"),
        twin=(
            ("dst=0x2000000[1,0,0][64,1,1] 128*64", "dst=0x2000700[1,0,0][64,1,1] 128*64"),
            ("src=fp32@0x2000000[1,1,1,1]", "src=fp32@0x2000700[1,1,1,1]"),
        ),
        origin="a result has to stay in one bank of 2 KiB (hardware.md 2.1)",
    ),
    "a product on Pool": one(
        "memcheck:operand",
        ("Pool", 2),
        pool("MATMUL S[8]>=16 acc_flags=3 src=fp32@0x4000[1,0,0][64,1,1] dst=0x2001000[1,0,0][64,1,1] 128*64"),
        twin=(
            pool("COPY S[8]>=16 src=fp32@0x4000[1,1,1,1][64,1,1,1] dst=fp32@0x9000[1,1,1,1][64,1,1,1] channels=128"),
        ),
        origin="a word in the stream of an engine that does not have it",
    ),
    "a write to where nothing stands": one(
        "memcheck:oob",
        ("SP", 1),
        ("    NOP E[3]==1- cycle=0\n", "    WRITE data=0x5 size=4 dst=0x7f00000000\n    NOP E[3]==1- cycle=0\n"),
        twin=(
            ("    NOP E[3]==1- cycle=0\n", "    WRITE data=0x5 size=4 dst=0x2000009000\n    NOP E[3]==1- cycle=0\n"),
        ),
        origin="an address outside the map of the device (formats.md 7)",
    ),
    "a write to a register that is for reading": one(
        "memcheck:access",
        ("SP", 1),
        ("    NOP E[3]==1- cycle=0\n", "    WRITE data=0x5 size=4 dst=0x2802701024\n    NOP E[3]==1- cycle=0\n"),
        twin=(
            ("    NOP E[3]==1- cycle=0\n", "    WRITE data=0x5 size=4 dst=0x2802701424\n    NOP E[3]==1- cycle=0\n"),
        ),
        origin="a semaphore has four registers, one of them for reading (formats.md 7)",
    ),
    "a semaphore beyond 32 bits": one(
        "memcheck:semaphore",
        ("Pool", 3),
        pool("EVENT_SEMAPHORE setter=0 S[100]+=2147483647@complete", "EVENT_SEMAPHORE setter=0 S[100]+=1@complete"),
        twin=(
            pool("EVENT_SEMAPHORE setter=0 S[100]+=2147483646@complete", "EVENT_SEMAPHORE setter=0 S[100]+=1@complete"),
        ),
        origin="a counter that nothing resets",
    ),
    "a branch to where no word begins": one(
        "memcheck:branch",
        ("Pool", 2),
        pool("COMPARE_BRANCH cmp_op=ALWAYS label_id=200"),
        twin=(pool("COMPARE_BRANCH cmp_op=ALWAYS label_id=64"),),
        origin="a distance in words where bytes belong",
    ),
    # --- what is worth knowing and no reason to fail --------------------------------------------------------------
    "a read that no output needs": one(
        "initcheck:unwritten-read",
        ("Pool", 2),
        pool("COPY src=fp32@0xa000[1,1,1,1][64,1,1,1] dst=fp32@0xb000[1,1,1,1][64,1,1,1] channels=128"),
        twin=(pool("COPY src=fp32@0x6000[1,1,1,1][64,1,1,1] dst=fp32@0xb000[1,1,1,1][64,1,1,1] channels=128"),),
    ),
    "a signal more than anybody waits for": one(
        "synccheck:leftover",
        ("DVE", -1),
        ("    COPY S[5]>=1", "    NOP S[6]++@complete cycle=0\n    COPY S[5]>=1"),
        ("COPY S[6]>=2 src=fp32@0x5800", "COPY S[6]>=2 src=fp32@0x5000"),
        twin=(
            ("    COPY S[5]>=1", "    NOP S[6]++@complete cycle=0\n    COPY S[5]>=1"),
            ("COPY S[6]>=2 src=fp32@0x5800", "COPY S[6]>=3 src=fp32@0x5800"),
        ),
    ),
    "an engine behind one that is stuck": one(
        "synccheck:blocked",
        ("Activation", 1),
        ("S[8]>=16 S[5]++@complete", "S[8]>=16"),
        other=("DVE", 3),
    ),
}


def planted(changes: tuple[Change, ...]) -> str:
    """Return the program with changes; each has to apply."""
    text = BASE
    for old, new in changes:
        if old not in text:
            raise ValueError(f"nothing to change: {old}")
        text = text.replace(old, new, 1) if "\n" in new or old == _SIDE else text.replace(old, new)
    return text


def line_of(text: str, engine: str, pc: int) -> int:
    """Return the line of a word in a program's text."""
    short = "act" if engine == "Activation" else engine.lower()
    lines = text.splitlines()
    start = lines.index(f".engine {short}")
    return start + 2 + pc


def as_planted(name: str, fault: Fault) -> Planted:
    """Return a fault as the suite runs it."""

    def bad() -> tuple[Program, Expected]:
        text = planted(fault.changes)

        def place(where: Place) -> Side:
            if fault.declared and where == fault.place:
                return Side(
                    *where, next(n for n, one in enumerate(text.splitlines(), 1) if one.startswith(fault.declared))
                )
            return Side(*where, line_of(text, *where) if where[1] >= 0 else -1)

        other = None if fault.other is None else place(fault.other)
        return Program(assembled(text, "planted.s"), INPUTS), Expected(fault.kinds, place(fault.place), other)

    return Planted(name, fault.origin or f"a slip of the pen: {name}", fault.kinds, bad,
                   lambda: Program(assembled(planted(fault.twin), "twin.s"), INPUTS))  # fmt: skip


INPUTS = {"x": np.ones((128, 64), np.float32)}
PLANTED = tuple(as_planted(name, fault) for name, fault in FAULTS.items())
