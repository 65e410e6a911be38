"""Programs that go round: barriers that are counted, loops that a register ends, semaphores that are taken back.

Origin: written for this suite, as programs of `templates`; the faults are those of an adversary whose first ones these
were that no check named.
"""

from __future__ import annotations

from tests.faults.templates import Template, as_planted, one_tile, product

__all__ = ["PLANTED"]

_UNDEFINED = ("initcheck:undefined-output",)
_RACES = ("racecheck:write-read", "racecheck:read-write", "racecheck:write-write")
_FLAT, _TILE = "[1,1,1,1][64,1,1,1]", "[1,1,1][64,1,1]"
_LOADED = f"    COPY S[8]>=16 src=fp32@0x4000{_FLAT} dst=fp32@0x5000{_FLAT} channels=128"
_RELU = (
    f"    ACTIVATE RELU src=fp32@0x5000{_TILE} dst=fp32@0x7000{_TILE} channels=128 scale=1.0 imm=0.0 "
    "accumulator_cmd=IDLE"
)
_DONE = "    NOP S[6]++@complete cycle=0"


def _meet(count: object) -> str:
    """Return an engine's part in a barrier: it counts itself in, and waits until `count` have come."""
    return f"    NOP S[50]++@complete cycle=0\n    NOP S[50]>={count} cycle=0\n"


def _rounds(second: object) -> str:
    """Return two rounds of a barrier of DVE and Activation; the second one goes on counting from the first."""
    text = one_tile(dve=_meet(2) + f"{_LOADED} #other\n" + _meet(4) + _DONE)
    store = "    PSEUDO_DMA_TRIGGER S[6]>=1 qOut"
    return text.replace(store, _meet(2) + _meet(second) + f"{_RELU} #fault\n{store}")


_CLEAR = "    NOP S[9]++@complete cycle=0\n    EVENT_SEMAPHORE_RANGE_CLEAR mode=SEMAPHORE_ZERO first={} last=10 #fault"
_SPIN = """    NOP S[8]>=16 cycle=0
    REGISTER_LOAD register=3 src=int32@0x4000[1,1,1,1,1][1,1,1,1,1] channels=1
spin:
    COMPARE_BRANCH cmp_op=NE dtype=int32 cmp0=$R[3] cmp1=<<0||1069547520>> label_id=%spin #fault
    NOP cycle=0"""
_BOUNDS = """    MEMSET dst=fp32@0x5000[1,1,1,1][1,1,1,1] count=1 channels=128
    MEMSET value=64.0 dst=fp32@0x5004[1,1,1,1][1,1,1,1] count=1 channels=<<64||128>>
"""
_FIVE = "[1,1,1,1,1][64,1,1,1,1]"
_RANGE = (
    "    RANGE_SELECT S[8]>=16 S[6]++@complete op0=GREATER_EQUAL op1=LESS bound0=fp32@0x5000 bound1=fp32@0x5004 "
    "start=0 fill=-1.0 imm=0.0,0.0 imm_src=INSTRUCTION,INSTRUCTION immediate0_dtype=FLOAT32 "
    f"src=fp32@0x4000{_FIVE} dst=fp32@0x7000{_FIVE} channels=128 reduce_command=RESET_REDUCE reduce_op=MAX "
    "reduce_res=fp32@0x7800[1,1,1,1,1][1,1,1,1,1] #fault"
)
_STATE = "[1,1,1,1][<<23||24>>,1,1,1] count=<<23||24>>"
_SEEDS = f"""    MEMSET value=7 dst=uint32@0x5100{_STATE} channels=128
    RAND_SET_STATE src=uint32@0x5100[1,1,1,1,1][24,1,1,1,1] channels=128 #fault
    RNG S[6]++@complete dst=uint32@0x7000{_FIVE} channels=128"""
_GATHER = """.target trn2
.name gathered
.dialect extended
.constant x float32 [8, 16] 1.0
.output y float32 [4, 16]
.queue qDyn pool 24
.queue qOut act 40
.dma qOut 0 40 SB+0x2000[1,262144][64,4] -> y+0[1,64][64,4]
.engine pool
    MEMSET value=3 dst=int32@0x1000[1,1,1,1][<<3||4>>,1,1,1] count=<<3||4>> channels=1
    DMA_INDIRECT semaphore=24 sem_increment=16 rows=4 index_step=64 row_step=262144 \
index=int32@0x1000[1,1,1,1,1][4,1,1,1,1] channels=1 src_elem_size=64 dst_elem_size=64 src_pattern=[1,1,1,1][1,1,1,1] \
dst_pattern=[1,1,1,1][1,1,1,1] src_var_id=%x src_var_offset=0 src_shape_reg=0 dst_var_id=%SB dst_var_offset=8192 \
dst_shape_reg=0 src_dtype=FLOAT32 dst_dtype=FLOAT32 #fault
.engine act
    PSEUDO_DMA_TRIGGER S[24]>=16 qOut block_id=0
    NOP S[40]>=16 cycle=0
"""
_COPY = f"    COPY S[8]>=16 S[6]++@complete src=fp32@0x4000{_FLAT} dst=fp32@0x7000{_FLAT} channels=128"

_WRITTEN: dict[str, Template] = {
    "the second round of a barrier waits for the count of the first": Template(_RACES, _rounds("<<2||4>>")),
    "a range of semaphores is cleared with one that a transfer raises": Template(
        ("synccheck:unordered-set",), one_tile(dve=_COPY, sp=_CLEAR.format("<<8||9>>")).replace(
            "TRIGGER qIn block_id=0", "TRIGGER qIn block_id=0 #other")),
    "an engine goes round on a register that nothing changes": Template(
        ("synccheck:livelock",), one_tile(dve=_COPY, sp=_SPIN)),
    "the second product of a group lands a column further on": Template(("memcheck:psum-group",), one_tile(
        rows=64, dve=_COPY.replace("S[8]>=16", "S[5]>=1").replace("0x4000", "0x2000000").replace("=128", "=64"),
        pe="    LDWEIGHTS transpose_mode=DISABLED src=fp32@0x6000[1,0,0][64,1,1] 128*64\n"
        + product(1) + " #other\n" + product(2, done=True, at="0x200000<<4||0>>") + " #fault")),
    "a bound is set on half of the partitions": Template(_UNDEFINED, one_tile(dve=_BOUNDS + _RANGE, stored="#other")),
    "random numbers from a state that was set in part": Template(_UNDEFINED, one_tile(dve=_SEEDS, stored="#other")),
    "a gather goes by indices of which one was never written": Template(
        ("initcheck:undefined-fault",), _GATHER),
}  # fmt: skip

PLANTED = tuple(as_planted(name, one) for name, one in _WRITTEN.items())
