"""Programs that go round: barriers that are counted, loops that a register ends, semaphores that are taken back.

Origin: written for this suite, as programs of `templates`; the faults are those of an adversary whose first ones these
were that no check named.
"""

from __future__ import annotations

from tests.faults.templates import Template, as_planted, one_tile

__all__ = ["PLANTED"]

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
_COPY = f"    COPY S[8]>=16 S[6]++@complete src=fp32@0x4000{_FLAT} dst=fp32@0x7000{_FLAT} channels=128"

_WRITTEN: dict[str, Template] = {
    "the second round of a barrier waits for the count of the first": Template(_RACES, _rounds("<<2||4>>")),
    "a range of semaphores is cleared with one that a transfer raises": Template(
        ("synccheck:unordered-set",), one_tile(dve=_COPY, sp=_CLEAR.format("<<8||9>>")).replace(
            "TRIGGER qIn block_id=0", "TRIGGER qIn block_id=0 #other")),
    "an engine goes round on a register that nothing changes": Template(
        ("synccheck:livelock",), one_tile(dve=_COPY, sp=_SPIN)),
}  # fmt: skip

PLANTED = tuple(as_planted(name, one) for name, one in _WRITTEN.items())
