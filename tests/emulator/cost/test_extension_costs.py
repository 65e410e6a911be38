"""Costs of searches, selections, gathers, statistics and random numbers: the documented formulas."""

from __future__ import annotations

import pytest

from emulator.arch import arch_of
from emulator.cost import cost_of
from formats import isa
from formats.dtypes import Dtype
from formats.isa import AccessPattern
from formats.neuron_core import PSUM_BASE

F32, BF16, U8, U16, U32, I32 = (Dtype.FLOAT32, Dtype.BFLOAT16, Dtype.UINT8, Dtype.UINT16, Dtype.UINT32, Dtype.INT32)
N = 600


def flat(address: int, count: int) -> AccessPattern:
    return AccessPattern(address, (1, 1, 1, 1, 1), (count, 1, 1, 1, 1))


def cycles(word: isa.Instruction, target: str = "trn3", engine: str | None = None) -> float:
    engine = engine or type(word).ENGINES[0]
    chip = arch_of(target)
    found = cost_of(word, engine, chip)
    # The start of a word of GpSimd is in its documented formula, the gap behind one of the others is not.
    return (found.interval_ps if engine == "Pool" else found.work_ps) / 1000 * chip.clock_ghz(engine)


A, B, C = flat(0, N), flat(0x4000, N), flat(0x8000, N)
SAME = {"src": A, "dst": C, "src_dtype": F32, "dst_dtype": F32}


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (isa.Iota(dst=C, dst_dtype=I32), 150 + N),
        (isa.AffineSelect(**SAME), 150 + N),
        (isa.SequenceBounds(**SAME), 150 + N),
        (isa.NGather(**SAME, indices=B, indices_dtype=U32), 150 + N + 150),  # two groups of 512 indices
        (isa.LocalGather(**SAME, indices=B, indices_dtype=U16, run=1, valid=640), 150 + 640 / 8),
        (isa.LocalGather(**SAME, indices=B, indices_dtype=U16, run=4, valid=640), 150 + 640 * 4 / (44 / 16)),
        (isa.IndirectRead(**SAME | {"dst": flat(0x8000, 40)}, indices=B, indices_dtype=U16), 40),
        (isa.IndirectWrite(**SAME | {"src": flat(0, 40)}, indices=B, indices_dtype=U16), 40),
        (
            isa.TopK(**SAME | {"src_dtype": BF16, "dst": flat(0x8000, 8)}, indices=B, indices_dtype=U32, count=900),
            150 + 4 * 900 + 8,
        ),
        (isa.Max8(**SAME | {"dst": flat(0x8000, 8)}), N),
        (isa.FindIndex8(**SAME | {"dst": flat(0x8000, 8)}, values=B, values_dtype=F32), N),
        (isa.MatchReplace8(**SAME, values=B, values_dtype=F32), N),
        (isa.BnStats(**SAME | {"dst": flat(0x8000, 6)}), N),
        (isa.BnAggregate(**SAME | {"dst": flat(0x8000, 2)}), 13 * N / 3),
        (isa.RangeSelect(**SAME), N),
        (isa.TensorScalarReduce(**SAME), N + 64),
        (isa.TensorScalarCumulative(**SAME), N),
        (isa.Exponential(**SAME), N / 4),
        (isa.CopyPredicated(**SAME, predicate=B, predicate_dtype=U8), 2 * N),
        (isa.CopyPredicated(**SAME, predicate=flat(PSUM_BASE, N), predicate_dtype=U8), N),
        (isa.CopyPredicated(dst=C, dst_dtype=F32, predicate=B, predicate_dtype=U8), N),
        (isa.SelectReduce(**SAME, predicate=B, predicate_dtype=U8), 2 * N),
        (isa.Dropout(**SAME), N),
        (isa.Rng(dst=C, dst_dtype=U32), N),
        (isa.Rand2(dst=C, dst_dtype=F32), N / 4),
        (isa.SetRngSeed(src=flat(0, 1), src_dtype=U32, channels=1), 64),
        (isa.QuantizeMx(**SAME | {"src_dtype": BF16, "dst_dtype": 0x83, "dst": flat(0x8000, N // 4)}), N / 4),
        (isa.MatMulMx(src=A, dst=flat(PSUM_BASE, N), src_dtype=0x83, dst_dtype=F32), N),
        (isa.Activate2(**SAME), N),
        (isa.Activate2(**SAME | {"src_dtype": BF16, "dst_dtype": BF16}), N / 2),
    ],
    ids=lambda value: value.NAME if isinstance(value, isa.Instruction) else None,
)
def test_documented_formula(word: isa.Instruction, expected: float) -> None:
    assert cycles(word) == pytest.approx(expected, abs=0.2)


def test_random_bits_on_gpsimd_start_slowly() -> None:
    assert cycles(isa.Rng(dst=C, dst_dtype=U32), "trn2", "Pool") == pytest.approx(150 + N, abs=0.2)
