"""What the documentation says of single activation functions and their engines. Source: nki.api.shared, nki.isa."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
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
