"""What the documentation says of single activation functions and their engines. Source: nki.api.shared, nki.isa."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from formats.targets import resolve_target
from neurontools.nki.tracer import Tracer, tracing
from tests.nki.direct import TARGETS, run, tile
from tests.nki.support import trace_body

ANGLES = np.array([[-30.0, -9.0, -math.pi, -1.0, 0.0, 1.0, math.pi, 3.5, 9.0, 40.0]], np.float32)


@pytest.mark.parametrize("target", TARGETS)
def test_the_sine_of_the_scalar_engine_is_a_cubic_outside_its_range(target: str) -> None:
    def body() -> Any:
        x, out = tile(1, 10, nl.float32), tile(1, 10, nl.float32)
        nisa.activation(out, nl.sin, x)
        return [(x, ANGLES)], [out]

    got = run(body, target)[0][0]
    assert abs(got[8] - 27.65) < 0.01 and abs(got[1] + 27.65) < 0.01  # the figure of the documentation for 9
    np.testing.assert_allclose(got[2:7], np.sin(ANGLES[0, 2:7]), atol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_the_functional_sine_reduces_its_range(target: str) -> None:
    def body() -> Any:
        x = tile(1, 10, nl.float32)
        return [(x, ANGLES)], [nl.sin(x)]

    np.testing.assert_allclose(run(body, target)[0], np.sin(ANGLES.astype(np.float64)), atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_prelu_without_a_parameter_keeps_nothing_of_negative_values(target: str) -> None:
    data = np.array([[-2.5, -0.0, 0.0, 3.5]], np.float32)

    def body() -> Any:
        x, out, total = tile(1, 4, nl.float32), tile(1, 4, nl.float32), tile(1, 1, nl.float32)
        nisa.activation(out, nl.prelu, x, scale=2.0)
        nisa.activation_reduce(tile(1, 4, nl.float32), nl.prelu, x, nl.add, total)
        return [(x, data)], [out, total]

    out, total = run(body, target)
    assert (out == [[0, 0, 0, 7]]).all() and total[0, 0] == 3.5


def test_prelu_takes_its_slope_on_gen4() -> None:
    data, slopes = np.array([[-2.0, 3.0], [-4.0, 5.0]], np.float32), np.array([[0.5], [0.25]], np.float32)

    def body() -> Any:
        x, slope, out, other = tile(2, 2, nl.float32), tile(2, 1, nl.float32), tile(2, 2, nl.float32), tile(
            2, 2, nl.float32)  # fmt: skip
        nisa.activate2(out, nl.prelu, x, 1.0, 0.0, nl.multiply, nl.add, relu_param=slope)
        nisa.activate2(other, nl.prelu, x, 1.0, 0.0, nl.multiply, nl.add, relu_param=0.125)
        return [(x, data), (slope, slopes)], [out, other]

    out, other = run(body, "trn3")
    assert (out == [[-1, 3], [-1, 5]]).all() and (other == [[-0.25, 3], [-0.5, 5]]).all()


def test_reciprocal_takes_no_bias_before_gen3() -> None:
    def body() -> None:
        x, bias, out = tile(4, 4, nl.float32), tile(4, 1, nl.float32), tile(4, 4, nl.float32)
        nisa.activation(out, nl.reciprocal, x, bias=bias)

    trace_body(body, "trn2")
    with pytest.raises(nki.NkiValidationError, match=r"bias is .*no bias before gen3, on trn1 .*test_docum"):
        trace_body(body, "trn1")


def rows_by_index(rows: int = 128, index: tuple[int, int] = (128, 1), kind: Any = nl.uint32, dtype: Any = nl.bfloat16,
                  width: int = 128, **more: Any) -> None:  # fmt: skip
    source = nl.ndarray((256, width), dtype, nl.shared_hbm)
    view = source.ap([[width, rows], [1, width]], vector_offset=nl.ndarray(index, kind))
    nisa.dma_transpose(nl.ndarray((width, rows), dtype), view, axes=(1, 0), **more)


def halves(**more: Any) -> None:
    kind = nl.float8_e5m2
    out, left, right = nl.ndarray((32, 16), nl.float32, nl.psum), nl.ndarray((32, 2, 32), kind), nl.ndarray(
        (32, 2, 16), kind)  # fmt: skip
    nisa.nc_matmul(out, left, right, perf_mode=nisa.matmul_perf_mode.double_row, **more)


# Sentences of the nki.isa pages: what breaks them, and the limit that the message names.
SENTENCES: list[tuple[Any, str]] = [
    (lambda: rows_by_index(dtype=nl.float32), "src is of float32, types of 2 bytes"),
    (lambda: rows_by_index(kind=nl.int32), "indices is of int32, must be uint32"),
    (lambda: rows_by_index(rows=120), "src.shape[0] is 120, must be a multiple of 16"),
    (lambda: rows_by_index(rows=32, index=(40, 1)), "partitions of the indices is 40, must be a multiple of 16"),
    (lambda: rows_by_index(index=(64, 2)), "partitions of the indices is 64, must be 128 in more than one column"),
    (lambda: rows_by_index(dge_mode=nisa.dge_mode.hwdge), "dge_mode is dge_mode.hwdge, must be unknown or swdge"),
    (lambda: nisa.dma_transpose(nl.ndarray((16, 32), nl.bfloat16), nl.ndarray((32, 16), nl.bfloat16, nl.shared_hbm),
                                oob_mode=nisa.oob_mode.skip), "oob_mode is oob_mode.skip, goes with indices only"),
    (lambda: halves(tile_position=(0, 0), tile_size=(128, 32)), "double_row cannot be combined with column tiling"),
    (lambda: nisa.dma_compute(nl.ndarray((4, 4), nl.float32), [nl.ndarray((4, 4), nl.float32)] * 17, nl.add),
     "srcs is 17 tensors, must be 2 to 16"),
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS[1:])
@pytest.mark.parametrize(("call", "message"), SENTENCES, ids=[message for _, message in SENTENCES])
def test_what_the_pages_rule_out_is_refused(call: Any, message: str, target: str) -> None:
    with pytest.raises(nki.NkiValidationError) as error:
        trace_body(call, target)
    assert message in str(error.value) and f"on {target} (gen" in str(error.value)
    assert "test_documented_functions.py:" in str(error.value)


@pytest.mark.parametrize("target", TARGETS[1:])
def test_what_the_pages_allow_is_taken(target: str) -> None:
    t = Tracer(resolve_target(target))
    with tracing(t):
        rows_by_index(dge_mode=nisa.dge_mode.swdge)
        rows_by_index(rows=256, index=(128, 2))
        halves(tile_position=(64, 0), tile_size=(64, 128))
    assert len(t.ops) == 4
