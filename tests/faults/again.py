"""Programs that use something again: a static block in a loop, credits for buffers, banks of PSUM in turns.

Origin: written for this suite, from what a reviewer of hand-written synchronization asks: who says that a buffer is
free, when, how often, and who takes that back.
"""

from __future__ import annotations

from tests.faults.templates import Template, as_planted, one_tile

__all__ = ["PLANTED"]

_RACES = ("racecheck:write-read", "racecheck:read-write", "racecheck:write-write")
_TILE, _FLAT, _ONE = "[1,1,1][64,1,1]", "[1,1,1,1][64,1,1,1]", "[1,1,1,1][1,1,1,1]"


def _turn(engine: str, at: int, register: int, count: object, body: str) -> str:
    """Return a loop of an engine whose counter lies on chip."""
    number = f"int32@{at:#x}"
    return f""".engine {engine}
    MEMSET value=i{count} dst={number}{_ONE} count=1 channels=1
    MEMSET dst=fp32@{"0x7000" if engine == "dve" else "0x7800"}{_FLAT} count=64 channels=128
{engine}_again:
{body}    TENSOR_SCALAR ops=ADD,BYPASS imm=i-1,0.0 imm_src=INSTRUCTION,INSTRUCTION src={number}[1,1,1][1,1,1] \
dst={number}[1,1,1][1,1,1] channels=1
    REGISTER_LOAD register={register} src={number}[1,1,1,1,1][1,1,1,1,1] channels=1
    COMPARE_BRANCH cmp_op=NE dtype=int32 cmp0=$R[{register}] cmp1=0 label_id=%{engine}_again
    NOP cycle=0
"""


_RESET = "    EVENT_SEMAPHORE setter=0 S[{}]=0@complete{}\n"
_FREE = "    NOP S[31]++@complete cycle=0\n"
_SUM = f"    TENSOR_TENSOR op=ADD src0=fp32@0x4000{_TILE} src1=fp32@0x7000{_TILE} dst=fp32@0x7000{_TILE} channels=128 "


def _looped(summing: str, *, loads: object = 3, waits: str = "S[31]>=1", trigger: str = "", taken: str = "") -> str:
    """Return a program whose Pool triggers one static block in a loop, and whose DVE adds each tile to a sum."""
    load = (
        f"    PSEUDO_DMA_TRIGGER qLoop block_id=0 {trigger}\n    NOP {waits} cycle=0\n{taken or _RESET.format(31, '')}"
    )
    return f""".target trn2
.name again
.dialect extended
.constant x float32 [128, 64] 1.5
.output y float32 [128, 64]
.queue qLoop pool 40
.queue qOut act 24
.dma qLoop 0 40 x+0[1,256][256,128] -> SB+0x4000[1,262144][256,128]
.dma qOut 0 24 SB+0x7000[1,262144][256,128] -> y+0[1,256][256,128]
{_turn("pool", 0x2000, 7, loads, load)}{_turn("dve", 0x3000, 8, 3, summing)}    NOP S[6]++@complete cycle=0
.engine act
    PSEUDO_DMA_TRIGGER S[6]>=1 qOut block_id=0
    NOP S[24]>=16 cycle=0
"""


_LOADED, _BACK = "    NOP S[40]>=16 cycle=0\n", _RESET.format(40, "")
_AWAITED = _LOADED.replace("cycle=0", "cycle=0 #fault")


def _lent(credits: object, early: bool = False, third: str = "", first: str = "", gives: bool = True) -> str:
    """Return four loads through two buffers, by credits: SP takes one for each load, DVE gives it back."""
    blocks, sp, dve, act = [], [f"    EVENT_SEMAPHORE setter=0 S[60]={credits}@complete"], [], []
    for turn in range(4):
        place, done = f"{0x4000 + 0x400 * (turn % 2):#x}", 8 + turn % 2
        blocks += [f".dma qIn {turn} {done} x+{turn * 32768}[1,256][256,128] -> SB+{place}[1,262144][256,128]",
                   f".dma qOut {turn} 24 SB+{0x8000 + 0x400 * turn:#x}[1,262144][256,128] -> "
                   f"y+{turn * 32768}[1,256][256,128]"]  # fmt: skip
        mark = third if turn == 2 else ""
        sp += [f"    NOP S[60]>=1 cycle=0 {'' if gives else mark}", "    EVENT_SEMAPHORE setter=0 S[60]--@complete",
               f"    PSEUDO_DMA_TRIGGER qIn block_id={turn} {mark if gives else ''}"]  # fmt: skip
        copy = (f"    COPY S[6]++@complete src=fp32@{place}{_FLAT} dst=fp32@{0x8000 + 0x400 * turn:#x}{_FLAT} "
                f"channels=128 {'' if turn else first}")  # fmt: skip
        give = ["    NOP S[60]++@complete cycle=0"] if gives else []
        dve += [f"    NOP S[{done}]>=16 cycle=0", f"    EVENT_SEMAPHORE setter=0 S[{done}]=0@complete"]
        dve += [*give, copy] if early else [copy, *give]
        act.append(f"    PSEUDO_DMA_TRIGGER S[6]>={turn + 1} qOut block_id={turn}")
    head = [".target trn2", ".name lent", ".constant x float32 [512, 64] 1.5", ".output y float32 [512, 64]",
            ".queue qIn sp 8", ".queue qOut act 24"]  # fmt: skip
    return "\n".join((*head, *blocks, ".engine sp", *sp, ".engine dve", *dve, ".engine act", *act,
                      "    NOP S[24]>=64 cycle=0", ""))  # fmt: skip


def _banks(banks: int = 2, free: str = "0012", read: str = "0101", marks: str = "") -> str:
    """Return four products through banks of PSUM in turns; `marks` is like "pe2 do0": fault, other."""
    fault, _, other = marks.partition(" ")
    head = [".target trn2", ".name banks", ".constant x float32 [128, 64] 1.5", ".constant w float32 [128, 64] 0.5",
            ".output y float32 [256, 64]", ".queue qIn sp 8", ".queue qOut act 24",
            ".dma qIn 0 8 x+0[1,256][256,128] -> SB+0x4000[1,262144][256,128]",
            ".dma qIn 1 8 w+0[1,256][256,128] -> SB+0x6000[1,262144][256,128]"]  # fmt: skip
    pe = ["    NOP S[8]>=32 cycle=0", "    LDWEIGHTS transpose_mode=DISABLED src=fp32@0x6000[1,0,0][64,1,1] 128*64"]
    dve, act = [], []
    for turn in range(4):
        mark = {fault: "#fault", other: "#other"}
        head.append(f".dma qOut {turn} 24 SB+{0x8000 + 0x400 * turn:#x}[1,262144][256,64] -> "
                    f"y+{turn * 16384}[1,256][256,64]")  # fmt: skip
        if free[turn] != "0":
            pe.append(f"    NOP S[6]>={free[turn]} cycle=0")
        pe.append(
            "    MATMUL S[5]++@complete acc_flags=3 src=fp32@0x4000[1,0,0][64,1,1] "
            f"dst={0x2000000 + 0x800 * (turn % banks):#x}[1,0,0][64,1,1] 128*64 {mark.get(f'pe{turn}', '')}"
        )
        dve.append(
            f"    COPY S[5]>={turn + 1} S[6]++@complete src=fp32@{0x2000000 + 0x800 * int(read[turn]):#x}{_FLAT} "
            f"dst=fp32@{0x8000 + 0x400 * turn:#x}{_FLAT} channels=64 {mark.get(f'do{turn}', '')}"
        )
        act.append(f"    PSEUDO_DMA_TRIGGER S[6]>={turn + 1} qOut block_id={turn}")
    return "\n".join(
        (
            *head,
            ".engine sp",
            "    PSEUDO_DMA_TRIGGER qIn block_id=0",
            "    PSEUDO_DMA_TRIGGER qIn block_id=1",
            ".engine pe",
            *pe,
            ".engine dve",
            *dve,
            ".engine act",
            *act,
            "    NOP S[24]>=64 cycle=0",
            "",
        )
    )


_COPY = f"    COPY S[8]>=16 S[6]++@complete src=fp32@0x4000{_FLAT} dst=fp32@0x7000{_FLAT} channels=128"
_LOWER = "    NOP S[6]>=1 cycle=0\n    EVENT_SEMAPHORE setter=0 S[6]{}@complete #fault"
_SEEN = "    NOP S[7]>=1 cycle=0\n"


def _both(wrong: str, right: str) -> str:
    """Return two whole programs as one template."""
    return f"<<{wrong}||{right}>>"


_WRITTEN: dict[str, Template] = {
    "a block in a loop is free before its tile was read": Template(_RACES, _looped(
        f"{_LOADED}{_BACK}<<{_FREE}||>>{_SUM}#other\n<<||{_FREE}>>", trigger="#fault")),
    "a block in a loop whose count stays": Template(_RACES, _looped(
        f"{_LOADED}{_SUM}#other\n<<||{_BACK}>>{_FREE}", trigger="#fault")),
    "a block in a loop waits for itself, not for its reader": Template(_RACES, _looped(
        f"{_LOADED}{_SUM}#other\n<<||{_BACK}>>{_FREE}", trigger="#fault", waits="<<S[40]>=16||S[31]>=1>>",
        taken=f"<<    NOP cycle=0\n||{_RESET.format(31, '')}>>")),
    "a count in a loop is taken back behind the word that frees": Template(("synccheck:unordered-set",), _looped(
        f"{_LOADED}{_SUM}\n<<{_FREE}||>>{_RESET.format(40, ' #fault')}<<||{_FREE}>>", trigger="#other")),
    "a loop triggers once too few": Template(("synccheck:deadlock",), _looped(
        f"{_AWAITED}{_SUM}\n{_BACK.replace('complete', 'complete #other')}{_FREE}", loads="<<2||3>>")),
    "a credit more than there are buffers": Template(
        _RACES, _both(_lent(3, third="#fault", first="#other"), _lent(2))),
    "a credit is given back before the tile is read": Template(
        _RACES, _both(_lent(2, early=True, third="#fault", first="#other"), _lent(2))),
    "no credit is given back": Template(
        ("synccheck:never-met", "synccheck:deadlock"), _both(_lent(2, gives=False, third="#fault"), _lent(2))),
    "a bank fewer than the waits count": Template(
        _RACES, _both(_banks(1, free="0012", read="0000", marks="pe1 do0"), _banks(1, free="0123", read="0000"))),
    "a result is taken from the bank of the next": Template(
        _RACES, _both(_banks(read="0111", marks="do2 pe3"), _banks())),
    "a count is lowered while another engine may wait for it": Template(("synccheck:lost-signal",), one_tile(
        dve=_COPY, sp=f"<<||{_SEEN}>>{_LOWER.format('--')}").replace(
        "PSEUDO_DMA_TRIGGER S[6]>=1 qOut block_id=0 ", "NOP S[6]>=1 cycle=0 #other\n    NOP S[7]++@complete cycle=0\n"
        "    PSEUDO_DMA_TRIGGER qOut block_id=0 ")),
    "a count is cleared while another engine may wait for it": Template(("synccheck:lost-signal",), one_tile(
        dve=_COPY, sp=f"<<||{_SEEN}>>{_LOWER.format('=0')}").replace(
        "PSEUDO_DMA_TRIGGER S[6]>=1 qOut block_id=0 ", "NOP S[6]>=1 cycle=0 #other\n    NOP S[7]++@complete cycle=0\n"
        "    PSEUDO_DMA_TRIGGER qOut block_id=0 ")),
}  # fmt: skip

PLANTED = tuple(as_planted(name, one) for name, one in _WRITTEN.items())
