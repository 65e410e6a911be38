"""Words of the Scalar engine: scale, bias, accumulators."""

from __future__ import annotations

import numpy as np
import pytest

from emulator.dtypes import numpy_dtype
from emulator.faults import FaultError
from formats import isa
from formats.dtypes import Dtype
from formats.errors import UnsupportedError
from formats.isa import ActivationFunction, AluOp, ReduceCommand
from tests.emulator.engines.machine import PSUM, A, Bench, C, P, flat

F32, BF16, F16, I32 = Dtype.FLOAT32, Dtype.BFLOAT16, Dtype.FLOAT16, Dtype.INT32
F = ActivationFunction
RNG = np.random.default_rng(9)


def plain(n: int = 32, **fields: object) -> isa.Activate:
    return isa.Activate(
        **{
            "src": flat(A, n),
            "dst": flat(C, n),
            "src_dtype": F32,
            "dst_dtype": F32,
            "function": F.EXP,
            "no_bias": 1,
            **fields,
        }
    )


def wide(n: int = 32, **fields: object) -> isa.ActivationExtended:
    return isa.ActivationExtended(
        **{
            "src": flat(A, n, 5),
            "dst": flat(C, n, 5),
            "src_dtype": F32,
            "dst_dtype": F32,
            "function": F.IDENTITY,
            **fields,
        }
    )


@pytest.mark.parametrize("function", [F.EXP, F.IDENTITY, F.SQUARE], ids=lambda f: f.name)
@pytest.mark.parametrize("scale", [1.0, -0.5])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("source", [F32, F16], ids=lambda d: d.name)
@pytest.mark.parametrize("target", [F32, BF16], ids=lambda d: d.name)
def test_function_of_scaled_and_biased_input(
    function: F, scale: float, biased: bool, source: Dtype, target: Dtype
) -> None:
    bench = Bench()
    x, bias = RNG.normal(size=(128, 32)).astype(np.float32), RNG.normal(size=(128, 1)).astype(np.float32)
    bench.put(A, x, source)
    bench.put(P, bias, F32)
    pointer = {"bias_pointer": P, "no_bias": 0} if biased else {}
    bench.run(plain(function=function, scale=scale, src_dtype=source, dst_dtype=target, **pointer))
    inner = bench.at(A, (128, 32), source).astype(np.float32) * np.float32(scale) + (bias if biased else 0)
    expected = {F.EXP: np.exp, F.IDENTITY: np.array, F.SQUARE: np.square}[function](inner.astype(np.float32))
    assert np.array_equal(bench.at(C, (128, 32), target), expected.astype(numpy_dtype(target)))
    assert np.array_equal(bench.at(P, (128, 1), F32), bias)


def test_bias_of_another_type_and_output_over_the_bias() -> None:
    bench, x = Bench(), RNG.normal(size=(128, 4)).astype(np.float32)
    bench.put(A, x, F32)
    bench.put(C, np.full((128, 4), 0.5), F32)
    bench.run(plain(4, function=F.IDENTITY, scale=2.0, bias_pointer=C))
    assert np.array_equal(bench.at(C, (128, 4), F32), x * 2 + np.float32(0.5))
    bench.put(P, np.full((128, 1), 1.5), BF16)
    bench.run(plain(4, function=F.IDENTITY, bias_pointer=P, bias_dtype=BF16))
    assert np.array_equal(bench.at(C, (128, 4), F32), x + np.float32(1.5))


@pytest.mark.parametrize(("target", "exact"), [("trn1", False), ("trn2", True)])
def test_copy_ignores_scale_and_bias_and_is_exact_from_gen3_on(target: str, exact: bool) -> None:
    bench = Bench(target)
    bench.put(A, np.full((128, 8), (1 << 24) + 1), I32)
    bench.run(plain(8, function=F.COPY, scale=3.0, bias_pointer=P, src_dtype=I32, dst_dtype=I32))
    assert (bench.at(C, (128, 8), I32) == (1 << 24) + (1 if exact else 0)).all()


def test_accumulator_commands_without_public_codes_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="accumulator command 2"):
        Bench().bind(plain(accumulator_command=2))


def test_scale_per_partition_and_constant_bias() -> None:
    bench, x, scale = (
        Bench(),
        RNG.normal(size=(128, 32)).astype(np.float32),
        RNG.normal(size=(128, 1)).astype(np.float32),
    )
    bench.put(PSUM, x, F32)
    bench.put(P, scale, F32)
    bench.run(wide(src=flat(PSUM, 32, 5), scale_pointer=P, bias=0.25, function=F.TANH))
    assert np.array_equal(bench.at(C, (128, 32), F32), np.tanh(x * scale + np.float32(0.25)))


def test_accumulators_fold_in_fp32_and_persist() -> None:
    bench, x = Bench(), RNG.normal(size=(64, 32)).astype(np.float32)
    bench.put(A, x, F32)
    bench.accumulators[:] = 7
    total = np.add.accumulate(x, axis=1)[:, -1]
    bench.run(wide(channels=64, dst_dtype=BF16, reduce_command=ReduceCommand.RESET_REDUCE))
    assert np.array_equal(bench.accumulators[:64], total) and (bench.accumulators[64:] == 7).all()
    bench.run(wide(channels=64, reduce_command=ReduceCommand.REDUCE))
    assert np.array_equal(bench.accumulators[:64], total + total)
    bench.run(wide(channels=64, reduce_command=ReduceCommand.REDUCE, reduce_op=AluOp.MAX))
    assert np.array_equal(bench.accumulators[:64], np.maximum(total + total, x.max(axis=1)))
    bench.run(wide(channels=64))
    bench.run(isa.ActivationReadAccumulator(dst=flat(C, 1, 5), dst_dtype=F32, channels=64))
    assert np.array_equal(bench.at(C, (64, 1), F32)[:, 0], bench.accumulators[:64])
    bench.run(wide(channels=64, reduce_command=ReduceCommand.RESET))
    assert (bench.accumulators[:64] == 0).all()


def test_accumulator_corners() -> None:
    bench = Bench()
    with pytest.raises(UnsupportedError, match="reduce command 4"):
        bench.bind(wide(reduce_command=ReduceCommand.LOAD_REDUCE))
    with pytest.raises(UnsupportedError, match="DIVIDE cannot reduce"):
        bench.bind(wide(reduce_command=ReduceCommand.REDUCE, reduce_op=AluOp.DIVIDE))
    with pytest.raises(FaultError, match="differ in size"):
        bench.bind(isa.ActivationReadAccumulator(dst=flat(C, 2, 5), dst_dtype=F32))
    bench.put(A, np.full((128, 32), (1 << 24) + 1), I32)
    bench.run(wide(function=F.COPY, src_dtype=I32, dst_dtype=I32, scale=9.0))
    assert (bench.at(C, (128, 32), I32) == (1 << 24) + 1).all()
