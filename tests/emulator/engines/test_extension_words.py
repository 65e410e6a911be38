"""What executors of searches, selections, gathers and random numbers refuse, and details that no kernel reaches."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

from emulator.faults import FaultError
from formats import isa
from formats.dtypes import Dtype
from formats.errors import UnsupportedError
from formats.isa import AccessPattern, AluOp, ReduceCommand
from tests.emulator.engines.machine import Bench

F32, BF16, U8, U16, U32, I32 = (Dtype.FLOAT32, Dtype.BFLOAT16, Dtype.UINT8, Dtype.UINT16, Dtype.UINT32, Dtype.INT32)
A, B, C, D = 0x0000, 0x2000, 0x4000, 0x6000


def flat(address: int, count: int = 8) -> AccessPattern:
    return AccessPattern(address, (1, 1, 1, 1, 1), (count, 1, 1, 1, 1))


SAME: dict[str, Any] = {"src": flat(A), "dst": flat(C), "src_dtype": F32, "dst_dtype": F32, "channels": 32}
INDICES = {"indices": flat(B), "indices_dtype": U32}
VALUES = {"values": flat(B), "values_dtype": F32}
QUANTIZE = SAME | {
    "dst": flat(C, 2),
    "dst_dtype": 0x83,
    "src_dtype": BF16,
    "scale_dtype": U8,
    "scale_channels": 4,
    "scale": flat(D, 2),
}


@pytest.mark.parametrize(("word", "error", "said"), [
    (isa.Iota(dst=flat(C), dst_dtype=I32, count0=7), FaultError, "7 elements per partition"),
    (isa.AffineSelect(**SAME, op=AluOp.ADD, count0=8), UnsupportedError, "the operator is no comparison"),
    (isa.NGather(**SAME | {"dst_dtype": BF16}, **INDICES), UnsupportedError, "different size"),
    (isa.NGather(**SAME, **INDICES | {"indices_dtype": F32}), FaultError, "indices are no integers"),
    (isa.LocalGather(**SAME | {"channels": 24}, **INDICES, valid=8), FaultError, "groups of 16 partitions"),
    (isa.IndirectRead(**SAME | {"channels": 24}, **INDICES), FaultError, "groups of 16 partitions"),
    (isa.IndirectRead(**SAME | {"dst_dtype": BF16}, **INDICES), UnsupportedError, "bits are moved"),
    (isa.IndirectRead(**SAME, **INDICES | {"indices_dtype": F32}), FaultError, "indices are no integers"),
    (isa.IndirectWrite(**SAME | {"src": flat(A, 200)}, **INDICES), FaultError, "at least 200 indices"),
    (isa.NonzeroWithCount(**SAME), UnsupportedError, "float32 or int32 into"),
    (isa.TopK(**SAME, **INDICES, count=4), FaultError, "groups do not fit"),
    (isa.TensorPartitionReduce(**SAME, op=AluOp.MULTIPLY), UnsupportedError, "MULTIPLY is not modelled"),
    (isa.TensorPartitionReduce(**SAME, op=AluOp.BITWISE_OR), UnsupportedError, "need integer element types"),
    (isa.TensorPartitionReduce(**SAME, dst_channels=2), FaultError, "several partitions"),
    (isa.CopyPredicated(**SAME | {"src_dtype": I32}, predicate=flat(B), predicate_dtype=U8), UnsupportedError,
     "they must be equal"),
    (isa.RangeSelect(**SAME, op0=AluOp.NOT_EQUAL, op1=AluOp.LESS), UnsupportedError, "is not documented"),
    (isa.TensorScalarReduce(**SAME, op0=AluOp.ADD, reduce_op=AluOp.DIVIDE, reduce_command=ReduceCommand.RESET_REDUCE),
     UnsupportedError, "DIVIDE cannot accumulate"),
    (isa.TensorScalarReduce(**SAME, op0=AluOp.ADD, reduce_command=9), UnsupportedError, "command 9 is not known"),
    (isa.TensorScalarCumulative(**SAME, op0=AluOp.ADD, reduce_op=AluOp.DIVIDE), UnsupportedError, "not documented"),
    (isa.Activate2(**SAME, function="EXP", reduce_command=ReduceCommand.LOAD_REDUCE), UnsupportedError,
     "with LOAD_REDUCE"),
    (isa.Max8(**SAME | {"src": flat(A, 7)}), FaultError, "too few elements"),
    (isa.FindIndex8(**SAME, values=flat(B, 7), values_dtype=F32), FaultError, "8 elements per partition"),
    (isa.BnAggregate(**SAME | {"dst": flat(C, 2)}), FaultError, "elements are no triples"),
    (isa.Rng(dst=flat(C), dst_dtype=F32), FaultError, "random bits of a float"),
    (isa.Dropout(**SAME | {"dst_dtype": U32}), FaultError, "element types differ"),
    (isa.SetRngSeed(src=flat(A, 2), src_dtype=U32, channels=1), FaultError, "the seed is not one number"),
    (isa.RandSetState(src=flat(A, 6), src_dtype=U32), FaultError, "24 elements per partition"),
    (isa.QuantizeMx(**SAME, scale=flat(D, 2), scale_dtype=U8), UnsupportedError, "from fp32 to fp32"),
    (isa.QuantizeMx(**QUANTIZE | {"channels": 16}), FaultError, "a multiple of 32"),
    (isa.QuantizeMx(**QUANTIZE | {"scale_channels": 3}), FaultError, "bytes in 4 partitions"),
], ids=lambda value: value.NAME if isinstance(value, isa.Instruction) else "")  # fmt: skip
def test_what_is_refused(word: isa.Instruction, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as caught:
        Bench("trn3").run(word)
    fault = getattr(caught.value, "fault", None)
    assert said in f"{caught.value} {fault and fault.expected}"


@pytest.mark.parametrize("kind", [Dtype.INT8, Dtype.INT16, I32])
@pytest.mark.parametrize("word", [isa.NGather, isa.IndirectRead, isa.IndirectWrite])
def test_a_negative_index_is_out_of_bounds(word: type[isa.Instruction], kind: Dtype) -> None:
    """Of narrow types too, whose bits are a column of a wide operand: 255 of -1."""
    bench = Bench("trn2")
    side = "dst" if word is isa.IndirectWrite else "src"
    bench.put(B, np.full((32, 8), -1), kind)
    with pytest.raises(FaultError, match="out of bounds") as caught:
        bench.run(word(**SAME | {side: flat(A if side == "src" else C, 300)}, indices=flat(B), indices_dtype=kind))
    assert caught.value.fault.got == "-1"


def test_seeds_change_every_lane_and_the_digest() -> None:
    bench = Bench("trn2")
    digests = []
    for seed in (1, 2, 1):
        bench.put(A, np.array([[seed]]), U32)
        bench.run(isa.SetRngSeed(src=flat(A, 1), src_dtype=U32, channels=1))
        sink = hashlib.sha256()
        bench.generators.digest(sink)
        digests.append(sink.digest())
    assert digests[0] == digests[2] != digests[1]
    state = bench.generators.of("DVE").state
    assert len(np.unique(state.reshape(-1, 6), axis=0)) == 128 * 4


def test_a_group_with_an_infinity_has_the_nan_scale() -> None:
    bench = Bench("trn3")
    data = np.ones((32, 8), np.float32)
    data[3, 2] = np.inf
    bench.put(A, data, BF16)
    bench.run(isa.QuantizeMx(**QUANTIZE))
    assert bench.at(D, (4, 2), U8).tolist() == [[255, 120], [120, 120], [120, 120], [120, 120]]
    elements = bench.at(C, (32, 8), Dtype.FLOAT8E4FN).astype(np.float32)
    assert np.isnan(elements[:8, :4]).all() and (elements[8:] == 128).all()


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("numbers", [6, 10**6, 10**7])
def test_searches_give_each_value_an_element_of_its_own(numbers: int, largest: bool) -> None:
    """Against a search of each row, one element after the other: the largest values, as MAX8 gives them, and others."""
    random, count = np.random.default_rng(numbers), 40
    data = random.integers(0, numbers, (32, count)).astype(np.float32)
    values = np.sort(data, axis=1)[:, : -8 - 1 : -1] if largest else random.permuted(data, axis=1)[:, :8].copy()
    if not largest:
        data[0, :3], data[1, 0], values[2, 0], values[3, :2] = np.nan, np.inf, np.nan, -1
    elif numbers == 10**7:  # one row has too few, and the next as many more: the values of the former
        data[4:6], data[5, :16] = 0, 2 * numbers - 2 * np.arange(16)
        values[4:6] = data[5, :16].reshape(2, 8)
    for order, word in (
        (range(8), isa.FindIndex8(**SAME | VALUES | {"src": flat(A, count), "dst_dtype": U32})),
        (range(7, -1, -1), isa.MatchReplace8(**SAME | VALUES | {"src": flat(A, count), "dst": flat(C, count)},
                                             immediate=-5.0, indices=flat(D), indices_dtype=U32)),
    ):  # fmt: skip
        bench = Bench()
        bench.put(A, data, F32)
        bench.put(B, values, F32)
        bench.run(word)
        places, left = np.full((32, 8), 0xFFFFFFFF, np.uint32), data.copy()
        for row in range(32):
            for number in order:
                for at in range(count):
                    if left[row, at] == values[row, number] and places[row].tolist().count(at) == 0:
                        places[row, number] = at
                        break
        found = bench.at(C if isinstance(word, isa.FindIndex8) else D, (32, 8), U32)
        assert np.array_equal(found, places)
        if isinstance(word, isa.MatchReplace8):
            for row in range(32):
                left[row, [at for at in places[row] if at < count]] = -5.0
            assert np.array_equal(bench.at(C, (32, count), F32), left, equal_nan=True)
