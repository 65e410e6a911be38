"""Faults of what engines and counters hold: function tables, groups in PSUM, semaphores below zero, idle DMA blocks.

Origin: written for this suite; changes of `assembled.BASE`. Each twin is the same program, the fault mended.
"""

from __future__ import annotations

from tests.faults.assembled import Fault, as_planted, block, one, pool

__all__ = ["FAULTS", "PLANTED"]

_COPY = "COPY S[6]>=1 src=fp32@0x5000[1,1,1,1][64,1,1,1] dst=fp32@0x7000[1,1,1,1][64,1,1,1] channels=128"
_EXP = ("ACTIVATE{} EXP src=fp32@0x5000[1,1,1][64,1,1] dst=fp32@0x7000[1,1,1][64,1,1] channels=128 scale=1.0 imm=0.0 "
        "accumulator_cmd=IDLE")  # fmt: skip
_LOAD = "ACT_TABLE_LOAD table_sel={}"
_MATMUL = (
    "MATMUL S[8]>=16 S[5]++@complete acc_flags=3 src=fp32@0x4000[1,0,0][64,1,1] dst=0x2000000[1,0,0][64,1,1] 128*64"
)
_PART = "MATMUL{} acc_flags={} src=fp32@0x4000[1,0,0][64,1,1] dst=0x2000000[1,0,0][64,1,1] 128*64"
_IDLE = block(".dma qW 1 40 w+0[1,256][256,128] -> SB+0x8000[1,262144][256,128]")


def _act(*lines: str) -> tuple[str, str]:
    return _COPY, "\n    ".join(lines)


def _products(*flags: int) -> tuple[str, str]:
    """Return the change that makes the product one of several, with their acc_flags."""
    words = [_PART.format(" S[8]>=16" if number == 0 else "", one) for number, one in enumerate(flags)]
    words[-1] = words[-1].replace(" acc_flags", " S[5]++@complete acc_flags")
    return _MATMUL, "\n    ".join(words)


def _two_groups(second: str) -> tuple[str, str]:
    """Return the change that makes the product two, each a group of its own."""
    first, last = _PART.format(" S[8]>=16", 3), _PART.format(" S[5]++@complete", 3)
    return _MATMUL, first + "\n    " + last.replace("0x2000000", second)


FAULTS: dict[str, Fault] = {
    "a function without its table": one(
        "memcheck:table", ("Activation", 0), _act(_EXP.format(" S[6]>=1")),
        twin=(_act(_LOAD.format(0), _EXP.format(" S[6]>=1")),), origin="a load of the table left out",
    ),
    "a function behind the load of another table": one(
        "memcheck:table", ("Activation", 0), _act(_LOAD.format(1), _EXP.format(" S[6]>=1")),
        twin=(_act(_LOAD.format(0), _EXP.format(" S[6]>=1")),), origin="a table number that the file does not have",
    ),
    "a function in front of its table": one(
        "memcheck:table", ("Activation", 0), _act(_EXP.format(" S[6]>=1"), _LOAD.format(0)),
        twin=(_act(_LOAD.format(0), _EXP.format(" S[6]>=1"), _LOAD.format(0)),), origin="two lines changed places",
    ),
    "a group that nothing ends": one(
        "memcheck:psum-group", ("DVE", 3), _products(1, 0), other=("PE", 1), twin=(_products(1, 2),),
        origin="the last product of a loop does not say that it is the last",
    ),
    "a group that begins twice": one(
        "memcheck:psum-group", ("PE", 2), _products(1, 3), other=("PE", 1), twin=(_products(1, 2),),
        origin="each turn of a loop overwrites instead of adding",
    ),
    "a group that nobody read is overwritten": one(
        "memcheck:psum-unread", ("PE", 2), _products(3, 3), other=("PE", 1), twin=(_products(3,),),
        origin="two results in one bank",
    ),
    "a group begins on the last column of another that nobody read": one(
        "memcheck:psum-unread", ("PE", 2), _two_groups("0x20000fc"), other=("PE", 1), twin=(_two_groups("0x2000100"),),
        origin="an offset counted from the last column, not from behind it",
    ),
    "a semaphore is lowered before it is raised": one(
        "memcheck:semaphore", ("Pool", 2),
        pool("NOP S[100]--@complete cycle=0", "NOP S[100]++@complete cycle=0"),
        twin=(pool("NOP S[100]++@complete cycle=0", "NOP S[100]--@complete cycle=0"),),
        origin="a lock given back before it is taken",
    ),
    "a block that nothing triggers": Fault(
        (_IDLE,), ("synccheck:never-triggered",), ("Pool", -1),
        twin=(_IDLE, pool("PSEUDO_DMA_TRIGGER qW block_id=1", "NOP S[40]>=32 cycle=0")),
        origin="a trigger left out whose semaphore nobody waits for", declared=".dma qW 1",
    ),
}  # fmt: skip

PLANTED = tuple(as_planted(name, fault) for name, fault in FAULTS.items())
