"""Words without data: registers, device addresses, branches, and words nobody knows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import isa
from formats.dtypes import Dtype
from formats.errors import UnsupportedError
from formats.isa import BranchCompare
from tests.emulator.engines.machine import Bench


def test_write_of_one_and_two_values() -> None:
    bench = Bench()
    bench.run(isa.Write(address0=0x1000, size0=4, data0=0x1_2345_6789))
    assert bench.device == {0x1000: 0x2345_6789}
    bench.run(isa.Write(address0=0x1000, data0=7, address1=0x2000, size1=8, data1=1 << 40))
    assert bench.device == {0x1000: 7, 0x2000: 1 << 40}


def test_register_loads_walk_the_inner_dimension_first() -> None:
    bench = Bench()
    bench.device = {0x100 + 4 * i: 50 + i for i in range(32)}
    bench.run(
        isa.TensorLoad(address=0x100, count0=2, count1=3, step0=1, step1=8, registers=(9, 8, 7, 6, 5, 130) + (0,) * 26)
    )
    assert [bench.registers[r] for r in (9, 8, 7, 6, 5, 130)] == [50, 51, 58, 59, 66, 67]
    with pytest.raises(UnsupportedError, match="registers hold 32 bits"):
        bench.bind(isa.TensorLoad(dtype=Dtype.FLOAT16))


def test_stores_of_immediates() -> None:
    bench = Bench()
    data = (1, 0, 0, 0, 2, 1, 0, 0) + (0,) * 24
    bench.run(isa.TensorStore(store_kind=1, count0=2, count1=1, address=0x28, step0=0x8000, data=data))
    assert bench.device == {0x28: 1, 0x28 + 4 * 0x8000: 0x102}
    with pytest.raises(UnsupportedError, match="kind 0"):
        bench.bind(isa.TensorStore(store_kind=0, count0=1, count1=1))


COMPARE = {
    BranchCompare.EQ: lambda a, b: a == b,
    BranchCompare.NE: lambda a, b: a != b,
    BranchCompare.LT: lambda a, b: a < b,
    BranchCompare.LE: lambda a, b: a <= b,
    BranchCompare.GT: lambda a, b: a > b,
    BranchCompare.GE: lambda a, b: a >= b,
}
BENCH = Bench()
NEAR = st.integers(-3, 3) | st.sampled_from([(1 << 31) - 1, -(1 << 31)])


@pytest.mark.parametrize("compare", COMPARE, ids=lambda c: c.name)
@given(a=NEAR, b=NEAR)
def test_branches_compare_as_their_type_says(compare: BranchCompare, a: int, b: int) -> None:
    bench = BENCH
    for dtype, bits in ((Dtype.INT32, 0), (Dtype.UINT32, (1 << 32) - 1)):
        bench.branched.clear()
        bench.registers[3] = a & 0xFFFFFFFF
        bench.run(isa.CompareBranch(compare=compare, dtype=dtype, register=3, constant=b & 0xFFFFFFFF, target=-128))
        x, y = (a & bits, b & bits) if bits else (a, b)
        assert bench.branched == ([-128] if COMPARE[compare](x, y) else [])


def test_other_branches() -> None:
    bench = Bench()
    bench.run(isa.CompareBranch(compare=BranchCompare.ALWAYS, target=64))
    assert bench.branched == [64]
    for fields, match in (
        ({"branch_kind": 1}, "through registers"),
        ({"compare": 7}, "comparison 7"),
        ({"compare": BranchCompare.EQ, "dtype": Dtype.FLOAT32}, "on fp32"),
    ):
        with pytest.raises(UnsupportedError, match=match):
            bench.bind(isa.CompareBranch(**fields))


@pytest.mark.parametrize(
    "word", [isa.Opcode95(), isa.OpcodeA1(), isa.decode(bytes([0x77, 0x10]) + bytes(62))], ids=lambda w: w.name
)
def test_words_nobody_knows_stop_when_executed(word: isa.Instruction) -> None:
    step = Bench().bind(word, "Pool")
    with pytest.raises(UnsupportedError, match=f"{word.name}: the meaning of this word is not known"):
        step()


@pytest.mark.parametrize(
    "word",
    [
        isa.Nop(cycle=3),
        isa.EventSemaphore(),
        isa.Drain(),
        isa.Notify(),
        isa.SetOrderingMode(),
        isa.OpcodeCC(),
        isa.ActTableLoad(),
    ],
    ids=lambda w: w.name,
)
def test_words_without_effect(word: isa.Instruction) -> None:
    assert Bench().bind(word)() is None


def test_range_clear() -> None:
    bench = Bench()
    bench.run(isa.EventSemaphoreRangeClear(first=3, last=53))
    assert bench.semaphores == [0, 1, 2] + [0] * 51 + list(range(54, 256))
    with pytest.raises(UnsupportedError, match="mode 2 is not known"):
        bench.bind(isa.EventSemaphoreRangeClear(mode=2))
