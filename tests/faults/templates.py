"""Whole programs in assembler whose text holds both variants: <<wrong||right>>; marks say which words are meant.

Origin: written for this suite, from what reviewers of kernels look for: buffers used in turns, padding, views of
another type, groups in PSUM, registers, semaphores that are set. `#fault` marks the word that a finding
has to name, `#other` its other side.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tests.checks.support import assembled
from tests.faults.model import Expected, Place, Planted, Program

__all__ = ["PLANTED", "Template", "as_planted", "one_tile", "product"]

_RACES = ("racecheck:write-read", "racecheck:read-write", "racecheck:write-write")
_UNDEFINED = ("initcheck:undefined-output",)
_ENGINES = {"act": "Activation", "dve": "DVE", "pe": "PE", "pool": "Pool", "sp": "SP"}


class Template(NamedTuple):
    """One program: the kinds of its finding, its text, what it is given."""

    kinds: tuple[str, ...]
    text: str
    inputs: Mapping[str, Any] = {}


def variant(text: str, wrong: bool) -> str:
    """Return one of the two programs in a text."""
    return re.sub(r"<<(.*?)\|\|(.*?)>>", lambda found: found[1 if wrong else 2], text, flags=re.DOTALL)


def place(text: str, mark: str) -> Place | None:
    """Return the word that a mark stands behind, by counting words of its engine; None where there is no mark."""
    engine, pcs = "", {}
    for line, content in enumerate(text.splitlines(), 1):
        if content.startswith(".engine"):
            engine = _ENGINES[content.split()[1]]
        word = content.startswith("    ")
        if mark in content:
            return Place(engine, pcs.get(engine, 0), line) if word else Place("host", -1, -1)
        pcs[engine] = pcs.get(engine, 0) + word
    return None


# --- four tiles through two buffers ----------------------------------------------------------------------------------


def _turns(loads: str = "0012", sums: str = "1234", reuse: str = "0012", stores: str = "1234", end: int = 64,
           marks: Mapping[str, str] | None = None) -> str:  # fmt: skip
    """Return a pipeline: SP loads, DVE adds, ACT stores, through two buffers each.

    Digits say what each turn waits for: sums before a load, loads and stores before a sum, sums before a store.
    """

    def mark(place: str) -> str:
        return (marks or {}).get(place, "")

    blocks, sp, dve, act = [], [], [], []
    for turn in range(4):
        source, target = 0x4000 + 0x400 * (turn % 2), 0x6000 + 0x400 * (turn % 2)
        blocks += [
            f".dma qIn {turn} 8 x+{turn * 32768}[1,256][256,128] -> SB+{source:#x}[1,262144][256,128]",
            f".dma qOut {turn} 40 SB+{target:#x}[1,262144][256,128] -> y+{turn * 32768}[1,256][256,128]",
        ]
        wait = f" S[30]>={loads[turn]}" if loads[turn] != "0" else ""
        sp.append(f"    PSEUDO_DMA_TRIGGER{wait} qIn block_id={turn} {mark(f'load {turn}')}")
        if reuse[turn] != "0":
            dve.append(f"    NOP S[40]>={16 * int(reuse[turn])} cycle=0")
        tile = f"fp32@{source:#x}[1,1,1][64,1,1]"
        dve.append(
            f"    TENSOR_TENSOR S[8]>={16 * int(sums[turn])} S[30]++@complete op=ADD src0={tile} src1={tile} "
            f"dst=fp32@{target:#x}[1,1,1][64,1,1] channels=128 {mark(f'sum {turn}')}"
        )
        act.append(f"    PSEUDO_DMA_TRIGGER S[30]>={stores[turn]} qOut block_id={turn} {mark(f'store {turn}')}")
    act.append(f"    NOP S[40]>={end} cycle=0 {mark('end')}")
    head = [
        ".target trn2",
        ".name turns",
        ".input x float32 [512, 64]",
        ".output y float32 [512, 64]",
        ".queue qIn sp 8",
        ".queue qOut act 40",
    ]
    return "\n".join((*head, *blocks, ".engine sp", *sp, ".engine dve", *dve, ".engine act", *act))  # fmt: skip


_RIGHT = _turns()
_TURNS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "the third load does not wait for the first sum": (
        _RACES, {"loads": "0002", "marks": {"load 2": "#fault", "sum 0": "#other"}}),
    "the fourth load waits a turn too few": (
        _RACES, {"loads": "0011", "marks": {"load 3": "#fault", "sum 1": "#other"}}),
    "the second sum waits for the first load": (
        _RACES, {"sums": "1134", "marks": {"sum 1": "#fault", "load 1": "#other"}}),
    "a buffer is filled again while it is stored": (
        _RACES, {"reuse": "0002", "marks": {"sum 2": "#fault", "store 0": "#other"}}),
    "a store comes a turn early": (
        _RACES, {"stores": "1224", "marks": {"store 2": "#fault", "sum 2": "#other"}}),
    "the last of four stores is not awaited": (
        ("racecheck:output-not-awaited",), {"end": 48, "marks": {"store 3": "#fault"}}),
    "the end waits for a fifth store": (("synccheck:never-met",), {"end": 80, "marks": {"end": "#fault"}}),
}  # fmt: skip

# --- one tile in, one tile out ---------------------------------------------------------------------------------------

_TILE, _FLAT = "[1,1,1][64,1,1]", "[1,1,1,1][64,1,1,1]"
_HEAD = """.target trn2
.name written
.dialect extended
.constant x float32 [128, 64] 1.5
.constant w float32 [128, 64] 0.5
.output y float32 [{rows}, 64]
.var scratch 32768 512
.queue qIn sp 8
.queue qOut act 24
.queue qW pool 40
.dma qIn  0 8  x+0[1,256][256,128] -> SB+0x4000[1,262144][256,128]
.dma qW   0 40 w+0[1,256][256,128] -> SB+0x6000[1,262144][256,128]
.dma qOut 0 24 SB+0x7000[1,262144][256,{rows}] -> y+0[1,256][256,{rows}]
{more}
.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
{sp}
.engine pool
    PSEUDO_DMA_TRIGGER qW block_id=0
    NOP S[40]>=16 cycle=0
{pool}
.engine pe
    NOP S[40]>=16 cycle=0
    NOP S[8]>=16 cycle=0
{pe}
.engine dve
{dve}
.engine act
    PSEUDO_DMA_TRIGGER S[6]>={results} qOut block_id=0 {stored}
    NOP S[24]>=16 cycle=0
{act}
"""
_COPY = f"    COPY S[8]>=16 S[6]++@complete src=fp32@0x4000{_FLAT} dst=fp32@0x7000{_FLAT} channels=128"
_WEIGHTS = "    LDWEIGHTS transpose_mode=DISABLED src=fp32@0x6000[1,0,0][64,1,1] 128*64"
_TAKE = f"    COPY S[5]>={{}} S[6]++@complete src=fp32@0x2000000{_FLAT} dst=fp32@0x7000{_FLAT} channels=64"


def product(flags: object, *, done: bool = False, at: str = "0x2000000") -> str:
    signal = " S[5]++@complete" if done else ""
    return f"    MATMUL{signal} acc_flags={flags} src=fp32@0x4000[1,0,0][64,1,1] dst={at}[1,0,0][64,1,1] 128*64"


def one_tile(*, dve: str = _COPY, rows: int = 128, results: int = 1, **parts: str) -> str:
    """Return the program with some of its parts; a blank line stands for each that it does not have."""
    named = dict.fromkeys(("more", "sp", "pool", "pe", "act", "stored"), "") | parts
    return _HEAD.format(dve=dve, rows=rows, results=results, **named)


_GATHER = """.target trn2
.name gathered
.dialect extended
.constant x float32 [8, 16] 1.0
.constant i int32 [1, 4] 2 0 7 1
.output y float32 [4, 16]
.queue qIn sp 8
.queue qDyn pool 24
.queue qOut act 40
.dma qIn 0 8 i+0[1,16][16,1] -> SB+0x1000[1,262144][16,1]
.dma qOut 0 40 SB+0x2000[1,262144][64,4] -> y+0[1,64][64,4]
.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0 #other
.engine pool
    DMA_INDIRECT<<|| S[8]>=16>> semaphore=24 sem_increment=16 rows=4 index_step=64 row_step=262144 \
index=int32@0x1000[1,1,1,1,1][4,1,1,1,1] channels=1 src_elem_size=64 dst_elem_size=64 src_pattern=[1,1,1,1][1,1,1,1] \
dst_pattern=[1,1,1,1][1,1,1,1] src_var_id=%x src_var_offset=0 src_shape_reg=0 dst_var_id=%SB dst_var_offset=8192 \
dst_shape_reg=0 src_dtype=FLOAT32 dst_dtype=FLOAT32 #fault
.engine act
    PSEUDO_DMA_TRIGGER S[24]>=16 qOut block_id=0
    NOP S[40]>=16 cycle=0
"""
_NUMBER = """.target trn2
.name counted
.dialect extended
.constant n int32 [1,1] 3
.queue qIn sp 8
.dma qIn 0 8 n+0[1,4][4,1] -> SB+0x1000[1,262144][4,1]
.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
.engine pool
    NOP S[8]>=16 cycle=0
    REGISTER_LOAD register=7 src=int32@{source}[1,1,1,1,1][1,1,1,1,1] channels=1 {loaded}
    COMPARE_BRANCH cmp_op=EQ dtype=int32 cmp0=$R[{register}] cmp1=3 label_id=%end #fault
    NOP cycle=0
end:
    NOP cycle=0
"""

_WRITTEN: dict[str, Template] = {
    "a tile of bf16 is read as fp32": Template(_UNDEFINED, one_tile(
        dve=f"    CAST S[8]>=16 src=fp32@0x4000{_FLAT} dst=bfloat16@0x5000{_FLAT} channels=128\n"
        f"    CAST S[6]++@complete src=<<fp32||bfloat16>>@0x5000{_FLAT} dst=fp32@0x7000{_FLAT} channels=128 #fault",
        stored="#other")),
    "a bias stands on one partition only": Template(_UNDEFINED, one_tile(
        more=".constant b float32 [1, 1] 2.0\n"
        ".dma qIn 1 8 b+0<<[1,4][4,1]||[1,0][4,128]>> -> SB+0x5000<<[1,4][4,1]||[1,262144][4,128]>>",
        sp="    PSEUDO_DMA_TRIGGER qIn block_id=1",
        dve="    TENSOR_SCALAR S[8]>=32 S[6]++@complete ops=ADD,BYPASS imm=0x5000,0.0 imm_src=PTR,INSTRUCTION "
        f"src=fp32@0x4000{_TILE} dst=fp32@0x7000{_TILE} channels=128 #fault", stored="#other")),
    "weights of fewer columns than the product": Template(_UNDEFINED, one_tile(
        rows=64, dve=_TAKE.format(1), stored="#other",
        pe="    LDWEIGHTS transpose_mode=DISABLED src=fp32@0x<<6200||6000>>[1,0,0][64,1,1] 128*64 #fault\n"
        + product(3, done=True))),
    "a product is added to a group that is over": Template(("memcheck:psum-group",), one_tile(
        rows=64, results=2, dve=_TAKE.format(1) + "\n" + _TAKE.format(2),
        pe=_WEIGHTS + "\n" + product(3, done=True) + " #other\n    NOP S[6]>=1 cycle=0\n"
        + product("<<2||3>>", done=True) + " #fault")),
    "a result is taken between two products of a group": Template(("memcheck:psum-group",), one_tile(
        rows=64, dve=_TAKE.format("<<1||2>>") + " #fault",
        pe=_WEIGHTS + "\n" + product(1, done=True) + " #other\n<<    NOP S[6]>=1 cycle=0||    NOP cycle=0>>\n"
        + product(2, done=True))),
    "weights are loaded again while they are latched": Template(_RACES, one_tile(
        rows=64, dve=_TAKE.format(1),
        more=".dma qW 1 40 x+0[1,256][256,128] -> SB+0x6000[1,262144][256,128]",
        pe=_WEIGHTS.replace("LDWEIGHTS", "LDWEIGHTS S[31]++@complete") + " #other\n" + product(3, done=True),
        pool="    PSEUDO_DMA_TRIGGER<<|| S[31]>=1>> qW block_id=1 #fault\n    NOP S[40]>=32 cycle=0")),
    "a store begins before the copy": Template(_RACES, one_tile(dve=_COPY + " #other", stored="#fault").replace(
        "PSEUDO_DMA_TRIGGER S[6]>=1 qOut", "PSEUDO_DMA_TRIGGER<<|| S[6]>=1>> qOut")),
    "a constant is stored over": Template(("memcheck:constant",), one_tile(
        more=".dma qOut 1 24 SB+0x7000[1,262144][256,128] -> <<x||scratch>>+0[1,256][256,128]",
        act="    PSEUDO_DMA_TRIGGER qOut block_id=1 #fault\n    NOP S[24]>=32 cycle=0")),
    "a semaphore is reset while it is raised": Template(("synccheck:unordered-set",), one_tile(
        pool="    <<||NOP S[24]>=16 cycle=0\n    >>EVENT_SEMAPHORE setter=0 S[6]=0@complete #fault",
        dve=_COPY + " #other")),
    "two engines trigger transfers of one queue": Template(("synccheck:ambiguous",), one_tile(
        more=".dma qIn 1 8 w+0[1,256][256,128] -> SB+0x5000[1,262144][256,128]",
        sp="    NOP S[31]++@complete cycle=0\n    NOP S[8]>=32 cycle=0",
        pool="<<||    NOP S[31]>=1 cycle=0\n>>    PSEUDO_DMA_TRIGGER qIn block_id=1 #fault")),
    "a row is copied onto itself one column on": Template(("racecheck:in-place",), one_tile(
        dve=_COPY.replace(" S[6]++@complete", "") + "\n    COPY S[6]++@complete src=fp32@0x7000[1,1,1,1][63,1,1,1] "
        "dst=fp32@<<0x7004||0x7100>>[1,1,1,1][63,1,1,1] channels=128 #fault")),
    "two engines raise one semaphore, both before the wait begins": Template(("synccheck:ambiguous",), one_tile(
        dve=_COPY, pool="    NOP S[8]>=16 S[<<6||30>>]++@complete cycle=2000 #other", stored="#fault").replace(
        "    PSEUDO_DMA_TRIGGER S[6]", "    NOP cycle=8000\n    PSEUDO_DMA_TRIGGER S[6]")),
    "an event is set again behind nothing that consumes it": Template(("synccheck:double-set",), one_tile(
        dve="    NOP E[6]+@complete cycle=1000\n<<||    NOP S[30]>=1 cycle=0\n>>"
        "    NOP E[6]+@complete cycle=1000 #fault\n" + _COPY,
        sp="    NOP E[6]==1- S[30]++@complete cycle=0 #other\n    NOP E[6]==1- cycle=0")),
    "two engines consume one event": Template(
        ("synccheck:never-signalled", "synccheck:never-met"), one_tile(
            pool="<<    NOP E[6]==1- cycle=0 #fault\n||>>",
            dve=_COPY.replace("S[6]++@complete", "E[6]+@complete")).replace(
            "PSEUDO_DMA_TRIGGER S[6]>=1 qOut block_id=0", "NOP E[6]==1- cycle=0\n"
            "    PSEUDO_DMA_TRIGGER qOut block_id=0")),
    "two engines add into one tile": Template(_RACES, one_tile(
        results=2, dve=_COPY + " #other",
        pool="    TENSOR_TENSOR S[<<8||6>>]>=<<16||1>> S[6]++@complete op=ADD "
        f"src0=fp32@0x7000{_TILE} src1=fp32@0x6000{_TILE} dst=fp32@0x7000{_TILE} channels=128 #fault")),
    "indices are used before they are there": Template(_RACES, _GATHER),
    "a branch goes by another register": Template(("initcheck:undefined-register",), _NUMBER.format(
        source="0x1000", loaded="", register="<<9||7>>")),
    "a branch goes by bytes that nothing wrote": Template(("initcheck:undefined-register",), _NUMBER.format(
        source="<<0x1004||0x1000>>", loaded="#other", register=7)),
}  # fmt: skip

_GIVEN = {"x": np.random.default_rng(0).random((512, 64)).astype(np.float32)}


def _program(text: str, inputs: Mapping[str, Any], name: str) -> Program:
    return Program(assembled(text.replace("#fault", "").replace("#other", ""), name), inputs)


def _planted(name: str, kinds: tuple[str, ...], wrong: str, right: str, inputs: Mapping[str, Any]) -> Planted:
    def fault() -> tuple[Program, Expected]:
        at = place(wrong, "#fault")
        assert at is not None
        return _program(wrong, inputs, "wrong.s"), Expected(kinds, at, place(wrong, "#other"))

    return Planted(name, "see the head of the file", kinds, fault, lambda: _program(right, inputs, "right.s"))


def as_planted(name: str, one: Template) -> Planted:
    """Return the fault that a template holds."""
    return _planted(name, one.kinds, variant(one.text, True), variant(one.text, False), one.inputs)


PLANTED = (
    *(_planted(name, kinds, _turns(**how), _RIGHT, _GIVEN) for name, (kinds, how) in _TURNS.items()),
    *(as_planted(name, one) for name, one in _WRITTEN.items()),
)  # fmt: skip
