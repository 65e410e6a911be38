"""Built files on the emulator against NumPy, under several schedules: the builder's words do what the trace says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emulator import runtime
from formats import isa
from formats.dtypes import Dtype
from formats.neff import open_neff
from neurontools.builder import BuildError, build
from neurontools.builder.trace import Trace
from tests.builder.maker import BF16, F16, F32, Maker, interpret, numpy_type
from tests.builder.order import unordered

Array = np.ndarray[Any, Any]
TARGETS = ("trn1", "trn2", "trn3")


def run(traces: list[Trace], inputs: dict[str, Array], seed: int | None = None) -> dict[str, Array]:
    """Build, verify and run; return the outputs."""
    data = build(traces, "test").to_bytes()
    assert [one for one in open_neff(data).verify() if one.severity == "error"] == []
    result = runtime.run(data, inputs, seed=seed)
    assert result.fault is None, result.fault
    assert result.hang is None, result.hang.text()
    return result.outputs


def numbers(*shape: int, dtype: Dtype = F32, seed: int = 0) -> Array:
    """Return whole numbers from -4 to 4, exact in every type."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(numpy_type(dtype))


def tiled_product(target: str, dtype: Dtype, m: int, k: int, n: int) -> Trace:
    """Return out = leftᵀ · right in tiles of 128 x 128 x 512, every tile loaded anew."""
    t = Maker(target)
    left, right, out = t.input("left", (k, m), dtype), t.input("right", (k, n), dtype), t.output("out", (m, n))
    for i in range(0, m, 128):
        for j in range(0, n, 512):
            total, result = t.psum((128, 512)), t.sbuf((128, 512))
            for a in range(0, k, 128):
                x, y = t.sbuf((128, 128), dtype), t.sbuf((128, 512), dtype)
                t.dma(x, t.view(left, slice(a, a + 128), slice(i, i + 128)))
                t.dma(y, t.view(right, slice(a, a + 128), slice(j, j + 512)))
                t.matmul(total, x, y)
            t.copy(result, total)
            t.dma(t.view(out, slice(i, i + 128), slice(j, j + 512)), result)
    return t.trace


@pytest.mark.parametrize("dtype", [F32, F16, BF16])
@pytest.mark.parametrize("target", TARGETS)
def test_tiled_product(target: str, dtype: Dtype) -> None:
    trace = tiled_product(target, dtype, 256, 256, 1024)
    left, right = numbers(256, 256, dtype=dtype), numbers(256, 1024, dtype=dtype, seed=1)
    out = run([trace], {"left": left, "right": right}, seed=3)["out"]
    np.testing.assert_array_equal(out, left.astype(np.float32).T @ right.astype(np.float32))


def test_fp32_product_keeps_both_halves() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((256, 128), np.float32), rng.standard_normal((256, 512), np.float32)
    out = run([tiled_product("trn2", F32, 128, 256, 512)], {"left": left, "right": right})["out"]
    np.testing.assert_allclose(out, left.astype(np.float64).T @ right, rtol=0, atol=1e-4)


def deep_views(t: Maker) -> None:
    x, y = t.input("x", (64, 3, 4, 5, 6)), t.output("y", (64, 3, 4, 5, 6))
    a, b = t.sbuf((64, 3, 4, 5, 6)), t.sbuf((64, 3, 4, 5, 6))
    t.dma(a, x)
    t.memset(b, 1.0)
    key = (slice(None), slice(0, 3, 2), slice(0, 4, 3), slice(0, 5, 2), slice(0, 6, 5))
    t.add(t.view(b, *key), t.view(a, *key), t.view(a, *key))
    t.dma(y, b)


def deep_transfers(t: Maker) -> None:
    x, y = t.input("x", (8, 16, 6, 10)), t.output("y", (16, 8, 3, 5))
    tile = t.sbuf((16, 8, 3, 5))
    source = t.view(x, slice(None), slice(None), slice(0, 6, 2), slice(0, 10, 2))
    t.dma(tile, source._replace(dims=(source.dims[1], source.dims[0], *source.dims[2:])))
    t.dma(y, tile)


def other_shapes(t: Maker) -> None:
    """Cut the same elements differently on both sides, and go from a row to a column."""
    x, y, z = t.input("x", (4, 96)), t.output("y", (32, 12)), t.output("z", (1, 128))
    tile, column = t.sbuf((32, 12)), t.sbuf((128, 1))
    t.dma(tile, x)
    t.dma(y, tile)
    t.dma(t.view(column, slice(0, 96)), t.view(x, 1))
    t.memset(t.view(column, slice(96, 128)), 7.0)
    t.dma(z, column)


def casting_transfers(t: Maker) -> None:
    x, y = t.input("x", (128, 40)), t.output("y", (128, 40), BF16)
    tile, cast = t.sbuf((128, 40), F16), t.sbuf((128, 40))
    t.dma(tile, x)
    t.copy(cast, tile)
    t.dma(y, cast)


def transposing_transfers(t: Maker) -> None:
    x, y = t.input("x", (24, 40)), t.output("y", (24, 40))
    tile = t.sbuf((40, 24))
    t.dma(tile, x, transpose=True)
    t.dma(y, tile, transpose=True)


def through_memory(t: Maker) -> None:
    """Store and load again, by other queues, on the way through scratch, a constant and columns."""
    x, y = t.input("x", (128, 64)), t.output("y", (128, 64))
    scratch, ones = t.hbm("scratch", (64, 128)), t.constant("ones", np.ones((128, 64), np.float32))
    tile, other, extra = t.sbuf((128, 64)), t.sbuf((128, 64)), t.sbuf((128, 64))
    t.dma(tile, x)
    t.dma(extra, ones)
    for column in range(4):
        part = slice(16 * column, 16 * column + 16)
        t.add(t.view(tile, slice(None), part), t.view(tile, slice(None), part), t.view(extra, slice(None), part))
        t.dma(t.view(scratch, part), t.view(tile, slice(None), part)._replace(dims=((1, 16),)), "SP")
    t.dma(other, scratch, "Activation")
    t.dma(y, other)
    t.dma(t.view(y, slice(0, 64)), t.view(x, slice(64, 128)), "SP")


def partly_written_sums(t: Maker) -> None:
    left, right, y = t.input("left", (128, 128)), t.input("right", (128, 64)), t.output("y", (128, 64))
    a, b, out = t.sbuf((128, 128)), t.sbuf((128, 64)), t.sbuf((128, 64))
    total = t.psum((128, 64))
    t.dma(a, left)
    t.dma(b, right)
    t.matmul(t.view(total, slice(None), slice(4, 60, 8)), a, t.view(b, slice(None), slice(0, 7)))
    t.matmul(total, a, b)
    t.matmul(total, a, b, True)
    t.copy(out, total, "Activation")
    t.dma(y, out)


@pytest.mark.parametrize(
    "make",
    [
        deep_views,
        deep_transfers,
        other_shapes,
        casting_transfers,
        transposing_transfers,
        through_memory,
        partly_written_sums,
    ],
)
@pytest.mark.parametrize("target", TARGETS)
def test_traces_compute_what_numpy_computes(make: Callable[[Maker], None], target: str) -> None:
    t = Maker(target)
    if target == "trn1" and make is partly_written_sums:
        pytest.skip("Scalar copies need gen3")
    make(t)
    inputs = {one.name: numbers(*one.shape, dtype=one.dtype, seed=i) for i, one in enumerate(t.trace.inputs)}
    expected = interpret(t.trace, inputs)
    for seed in (None, 1):
        outputs = run([t.trace], inputs, seed)
        for name, values in expected.items():
            np.testing.assert_array_equal(outputs[name], values, err_msg=name)
    assert unordered(open_neff(build([t.trace], "test").to_bytes())) == []


def test_an_input_can_be_updated_in_place() -> None:
    t = Maker()
    x, tile = t.input("x", (128, 8)), t.sbuf((128, 8))
    t.dma(tile, x)
    t.add(tile, tile, tile)
    t.dma(x, tile)
    t.trace.outputs.append(x)
    values = numbers(128, 8)
    np.testing.assert_array_equal(run([t.trace], {"x": values})["x"], 2 * values)


def pair() -> list[Trace]:
    """Return two programs that share memory at a barrier and exchange tiles twice."""
    traces = []
    for program in range(2):
        t = Maker("trn2", program, 2)
        x, y = t.input("x", (256, 64)), t.output("y", (256, 64))
        shared, own = t.hbm("shared", (256, 64), kind="shared"), t.hbm("own", (128, 64))
        mine, other = slice(128 * program, 128 * program + 128), slice(128 - 128 * program, 256 - 128 * program)
        a, b, got = (t.sbuf((128, 64)) for _ in range(3))
        if program:
            t.sbuf((128, 64))  # nothing touches it; places need not be equal on both cores
            b = t.sbuf((128, 80))
            b = t.view(b, slice(None), slice(8, 72))  # type: ignore[assignment]
        t.dma(a, t.view(x, mine))
        t.dma(own, a)
        t.dma(b, own)
        t.add(a, a, b)
        t.dma(t.view(shared, mine), a)
        t.barrier()
        t.dma(b, t.view(shared, other))
        t.memset(got, 0.0)
        t.exchange(b, got)
        t.add(b, b, got)
        t.exchange(got, a)
        t.add(b, b, a)
        t.dma(t.view(y, mine), b)
        traces.append(t.trace)
    return traces


@pytest.mark.parametrize("seed", [None, 1, 2, 3, 4])
def test_two_cores_share_and_exchange(seed: int | None) -> None:
    x = numbers(256, 64)
    top, bottom = 2 * x[:128], 2 * x[128:]
    # Each gets the other's sum from memory, its own back, and the other's back in turn.
    expected = np.concatenate([bottom + top + bottom, top + bottom + top])
    np.testing.assert_array_equal(run(pair(), {"x": x}, seed)["y"], expected)


def test_two_cores_must_agree() -> None:
    first, second = pair()
    second.ops = [op for op in second.ops if type(op).__name__ != "SendRecvOp"]
    with pytest.raises(BuildError, match="on that pipe program 0 exchanges 2 tiles, program 1 0"):
        build([first, second], "pair")
    first, second = pair()
    shared = next(one for one in second.allocations if one.name == "shared")
    shared.partition_bytes //= 2
    with pytest.raises(BuildError, match=r"program 1 shares shared \(32768 bytes of fp32\), program 0 shares shared"):
        build([first, second], "pair")
    with pytest.raises(BuildError, match="3 programs"):
        build([first] * 3, "pair")


def test_the_same_traces_give_the_same_bytes() -> None:
    def made() -> bytes:
        return build(pair(), "pair").to_bytes()

    assert made() == made()
    assert (
        build([tiled_product("trn1", F32, 128, 256, 512)], "p").to_bytes()
        == build([tiled_product("trn1", F32, 128, 256, 512)], "p").to_bytes()
    )


def test_report() -> None:
    report = build([tiled_product("trn2", BF16, 128, 256, 512)], "product").report
    (core,) = report.cores
    assert (report.name, report.target, report.extended) == ("product", "trn2", False)
    assert core.words["PE"] == 2 + 4 + 0 and core.words["DVE"] == 3
    assert core.transfers == 5 and core.transfer_bytes == 2 * (128 * 128 + 128 * 512) * 2 + 128 * 512 * 4
    assert core.psum_bytes == 2048
    assert core.sbuf_bytes == 0x4000 + 2 * (256 + 1024) + 2048
    assert core.hbm_bytes == {"input": (256 * 128 + 256 * 512) * 2, "output": 128 * 512 * 4}
    assert 0 < core.waits < core.instructions, "a program that waits everywhere is correct and useless"


def test_saved_file_is_the_built_one(tmp_path: Any) -> None:
    built = build([tiled_product("trn2", BF16, 128, 128, 512)], "product")
    built.save(tmp_path / "product.neff")
    assert (tmp_path / "product.neff").read_bytes() == built.to_bytes()
    packed = build([tiled_product("trn2", BF16, 128, 128, 512)], "product", compression="gzip")
    assert len(packed.to_bytes()) < len(built.to_bytes()) // 2
    assert open_neff(packed.to_bytes()).subgraphs[0].stream_bytes("PE") == open_neff(built.to_bytes()).subgraphs[
        0
    ].stream_bytes("PE")


def test_functions_are_bound_by_name() -> None:
    t = Maker()
    x, y, a = t.input("x", (128, 16)), t.output("y", (128, 16)), t.sbuf((128, 16))
    t.dma(a, x)
    for name in ("exp", "gelu", "sqrt", "exp"):
        t.compute(isa.Activate, "Activation", {"src": a, "dst": a}, function=name, scale=0.25)
    t.dma(y, a)
    values = np.abs(numbers(128, 16))
    got = run([t.trace], {"x": values})["y"]
    from math import erf

    step = np.exp(values / 4) / 4
    step = step * 0.5 * (1 + np.vectorize(erf)(step / 2**0.5))
    np.testing.assert_allclose(got, np.exp(np.sqrt(step / 4) / 4), rtol=1e-5)
