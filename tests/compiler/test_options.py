"""What each option of neuronx-cc changes, one test each; auto-cast is in test_operations, --verbose in tests/cli."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import neurontools
from formats.errors import FormatError, UnsupportedError
from neurontools.compiler.epilogues import Finished, with_epilogues
from neurontools.compiler.fusion import REACH, plan
from neurontools.compiler.graph import Graph, Value
from neurontools.compiler.options import CompileOptions, check_options
from neurontools.compiler.pipeline import Compiled
from neurontools.compiler.rewriting import Builder
from tests.compiler.support import OURS, compiled, floats, run, run_graph
from tests.compiler.test_attention import _softmax as softmax


def _dot(b: Builder, left: Value, right: Value) -> Value:
    shape = (left.shape[0], right.shape[1])
    return b.graph.add("dot", (left, right), "f32", shape, lhs_batch=(), rhs_batch=(), lhs_contracting=(1,),
                       rhs_contracting=(0,), precision=())  # fmt: skip


def _layer(b: Builder, x: Value, w: Value, bias: Value) -> list[Value]:
    """A product, something behind it, and a second one behind that."""
    wide = b.broadcast(bias, (x.shape[0], w.shape[1]), (1,))
    h = b.op("tanh", b.op("add", _dot(b, x, w), wide))
    return [h, b.op("multiply", _dot(b, h, b.transpose(w, (1, 0))), x)]


def _time(made: Compiled, *inputs: np.ndarray[Any, Any]) -> tuple[int, list[np.ndarray[Any, Any]]]:
    given = dict(zip(made.names.inputs, inputs, strict=True))
    found = neurontools.run(neurontools.open_neff(made.neff), given, checks="all")
    assert [one.text() for one in found.findings if one.severity != "note"] == []
    return found.time_ps, [np.asarray(found.outputs[name]) for name in made.names.outputs]


@pytest.mark.parametrize("lnc", [1, 2])
@pytest.mark.parametrize("shape", [(40, 48, 24), (300, 192, 700)])
def test_a_higher_level_takes_no_longer_and_gives_the_same_bits(lnc: int, shape: tuple[int, int, int]) -> None:
    rows, inner, columns = shape
    inputs = floats(rows, inner) * 0.1, floats(inner, columns, seed=1) * 0.1, floats(columns, seed=2)
    found = [_time(compiled(_layer, *inputs, options=OURS._replace(optlevel=level, lnc=lnc)), *inputs)
             for level in (1, 2, 3)]  # fmt: skip
    times = [time for time, _ in found]
    assert times[0] > times[1] >= times[2]
    for _, values in found[1:]:
        assert all(np.array_equal(one, other) for one, other in zip(values, found[0][1], strict=True))


def test_products_are_finished_where_one_kernel_reads_them() -> None:
    def steps(make: Any) -> list[Any]:
        graph = Graph("test")
        b = Builder(graph)
        made = make(b, graph.parameter("f32", (16, 32)), graph.parameter("f32", (32, 8)))
        graph.roots = [made] if isinstance(made, Value) else list(made)
        return list(with_epilogues(plan(graph), graph, REACH["generic"].behind))

    def reshaped(b: Builder, x: Value, w: Value) -> Value:
        return b.op("exponential", b.reshape(_dot(b, x, w), (4, 4, 8)))

    def kept(b: Builder, x: Value, w: Value) -> list[Value]:
        made = _dot(b, x, w)
        return [made, b.op("exponential", made)]

    def turned(b: Builder, x: Value, w: Value) -> Value:
        return b.op("exponential", b.transpose(_dot(b, x, w), (1, 0)))

    def folded(b: Builder, x: Value, w: Value) -> Value:
        return softmax(b, _dot(b, x, w))

    assert [isinstance(one, Finished) for one in steps(reshaped)].count(True) == 1
    for other in (kept, turned, folded):
        assert not any(isinstance(one, Finished) for one in steps(other))
    x, w = floats(16, 32), floats(32, 8, seed=1)
    (found,) = run_graph(reshaped, x, w)
    assert np.allclose(found, np.exp(x @ w).reshape(4, 4, 8), 1e-4, 1e-5)


@pytest.mark.parametrize(("rows", "inner", "columns"), [(1, 200, 3), (130, 1, 600), (5, 7000, 9), (129, 130, 131)])
def test_a_finished_product_of_any_shape(rows: int, inner: int, columns: int) -> None:
    x, w, bias = floats(rows, inner), floats(inner, columns, seed=1) / np.float32(inner**0.5), floats(columns, seed=2)

    def make(b: Builder, x: Value, w: Value, bias: Value) -> Value:
        wide = b.broadcast(bias, (rows, columns), (1,))
        two = b.broadcast(b.constant(2.0, "f32"), (rows, columns), ())
        return b.op("maximum", b.op("multiply", b.op("add", _dot(b, x, w), wide), two), wide)

    (found,) = run_graph(make, x, w, bias)
    assert np.allclose(found, np.maximum((x.astype(np.float64) @ w + bias) * 2, bias), 1e-4, 1e-4)


def _moved(made: Compiled) -> int:
    return sum(core.transfer_bytes for core in made.report.cores)


def test_transformers_keep_long_rows_in_sbuf() -> None:
    x = floats(64, 3000)
    generic, transformer = (compiled(softmax, x, options=OURS._replace(model_type=kind))
                            for kind in ("generic", "transformer"))  # type: ignore[arg-type]  # fmt: skip
    assert _moved(transformer) <= _moved(generic) / 2
    assert np.allclose(run(generic, x)[0], run(transformer, x)[0], 1e-5, 1e-7)
    assert _moved(transformer) < 2.1 * x.nbytes  # in and out


def test_unets_keep_long_chains_in_sbuf() -> None:
    def chain(b: Builder, x: Value, w: Value) -> Value:
        made = _dot(b, x, w)
        for _ in range(30):
            made = b.op("tanh", b.op("negate", made))
        return made

    x, w = floats(128, 64), floats(64, 128, seed=1)
    generic, unet = (compiled(chain, x, w, options=OURS._replace(model_type=kind))
                     for kind in ("generic", "unet-inference"))  # type: ignore[arg-type]  # fmt: skip
    assert _moved(unet) < _moved(generic)
    assert unet.report.cores[0].hbm_bytes.get("virtual", 0) < generic.report.cores[0].hbm_bytes["virtual"]
    assert np.array_equal(run(generic, x, w)[0], run(unet, x, w)[0])


def test_sums_without_mixed_precision_are_rounded_at_every_step() -> None:
    x = (1 + floats(16, 256) / 64).astype(ml_dtypes.bfloat16)

    def make(b: Builder, x: Value) -> Value:
        return b.reduce(x, (1,), "add", 0.0)

    wide, narrow = (run_graph(make, x, options=OURS._replace(mixed_precision_accumulation=one))[0]
                    for one in (True, False))  # fmt: skip
    exact = x.astype(np.float64).sum(1)
    halves = x
    while halves.shape[1] > 1:
        middle = halves.shape[1] // 2
        halves = halves[:, :middle] + halves[:, middle:]  # NumPy rounds each sum to bfloat16
    assert np.array_equal(wide, exact.astype(ml_dtypes.bfloat16))
    assert np.array_equal(narrow, halves[:, 0])
    assert not np.array_equal(wide, narrow)
    plain = floats(16, 256)
    same = [run_graph(make, plain, options=OURS._replace(mixed_precision_accumulation=one))[0] for one in (True, False)]
    assert np.array_equal(*same)  # fp32 is as wide as it gets


def test_saturated_infinities_leave_their_neighbours_alone() -> None:
    x, w = floats(40, 32), np.eye(32, dtype=np.float32)
    x[3, 5] = np.inf

    def found(target: str, saturate: bool) -> np.ndarray[Any, Any]:
        made = compiled(_dot, w, np.ascontiguousarray(x.T), options=OURS._replace(target=target))
        turned = compiled(lambda b, x, w: _dot(b, x, w), x, w,
                          options=OURS._replace(target=target, saturate_infinity=saturate))  # fmt: skip
        assert made.report.target.startswith(turned.report.target[:4])
        return run(turned, x, w)[0]

    trn1, saturated = found("trn1", False), found("trn1", True)
    assert np.isnan(trn1).sum() > np.isnan(saturated).sum()
    assert np.allclose(np.delete(saturated, 3, 0), np.delete(x, 3, 0))
    assert np.array_equal(found("trn2", False), found("trn2", True), equal_nan=True)  # its transposes are exact


def test_fast_loading_stores_the_members_as_they_are() -> None:
    x = floats(64, 64)
    plain, fast = (compiled(softmax, x, options=OURS._replace(fast_loading=one)) for one in (False, True))
    assert len(fast.neff) > 2 * len(plain.neff)
    assert np.array_equal(run(plain, x)[0], run(fast, x)[0])


@pytest.mark.parametrize("option", [{"fast_context_switch": True}, {"distribution_strategy": "llm-training"}])
def test_what_has_no_effect_changes_no_byte(option: dict[str, Any]) -> None:
    x = floats(8, 8)
    assert compiled(softmax, x, options=OURS._replace(**option)).neff == compiled(softmax, x).neff


def test_native_integers_of_64_bits_end_with_a_reason() -> None:
    with pytest.raises(UnsupportedError, match="held in 32 bits"):
        check_options(CompileOptions(native_int64="enabled"))
    with pytest.raises(FormatError, match="trn2 or newer"):
        check_options(CompileOptions(target="trn1", native_int64="enabled"))
    wide = np.array([1, -5, 1 << 20], np.int64)
    kinds: tuple[Any, ...] = ("default", "disabled")
    for kind in kinds:
        (found,) = run_graph(lambda b, x: b.op("add", x, x), wide, options=OURS._replace(native_int64=kind))
        assert np.array_equal(found, 2 * wide)


@pytest.mark.parametrize("target", ["trn1", "inf2"])
def test_two_cores_need_a_target_that_has_them(target: str) -> None:
    from neurontools.compiler.errors import CompileError

    with pytest.raises(CompileError, match="EARG001"):
        check_options(CompileOptions(target=target, lnc=2))


@pytest.mark.parametrize("target", ["inf1", "gen1", "tonga"])
def test_the_first_generation_ends_with_a_reason(target: str) -> None:
    with pytest.raises(UnsupportedError, match="neuron-cc"):
        check_options(CompileOptions(target=target))
