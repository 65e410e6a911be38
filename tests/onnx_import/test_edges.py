"""ONNX operators at their edges: NaN, integers beside fractions, wide integers, vectors of scales, no attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from formats.errors import FormatError, NeuronError, UnsupportedError
from neurontools.hlo_interpreter import evaluate

onnx = pytest.importorskip("onnx", reason="onnx is not installed")

NAN = np.nan


def f32(*values: Any) -> Any:
    return np.array(values if len(values) > 1 else values[0], np.float32)


def _evaluated(op: str, given: list[Any], version: int = 23, domain: str = "", **attributes: Any) -> Any:
    from neurontools.onnx_import import import_model

    helper = onnx.helper
    inputs = {f"i{k}": np.asarray(each) for k, each in enumerate(given)}
    infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(each.dtype), each.shape)
             for name, each in inputs.items()]  # fmt: skip
    graph = helper.make_graph([helper.make_node(op, list(inputs), ["y"], **attributes)], "g", infos,
                              [helper.make_tensor_value_info("y", 1, None)])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, version)])
    made = import_model(model, inputs)
    return np.asarray(evaluate(made.module, [inputs[name] for name in made.parameters]))


BYTES = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.uint8)
ROWS = f32(0.5, 1, 2)

# fmt: off
CASES: dict[str, tuple[str, list[Any], dict[str, Any], Any]] = {
    "a NaN is an extreme": ("ArgMax", [f32(1, NAN, 3, NAN)], {}, np.array([1])),
    "a NaN is the largest of a row": ("Hardmax", [f32([[1, NAN, 3], [2, 1, 0]])], {}, f32([[0, 1, 0], [1, 0, 0]])),
    "integers saturate as float8": (
        "Cast", [np.array([1000, -1000, 3], np.int32)], {"to": 17}, np.array([448, -448, 3], "float8_e4m3fn")),
    "float8 as another float8": (
        "Cast", [np.array([400, -448, 3], "float8_e4m3fn")], {"to": 19}, np.array([400, -448, 3], "float8_e5m2")),
    "integers are quantised": (
        "QuantizeLinear", [np.array([100, -30, 5], np.int32), f32(0.5), np.uint8(3)], {},
        np.array([203, 0, 13], np.uint8)),
    "the type that is asked for": (
        "DequantizeLinear", [np.array([100, -30], np.int8), f32(0.5)], {"output_dtype": 10},
        np.array([50, -15], np.float16)),
    "int32 beside a float16 scale": (
        "DequantizeLinear", [np.array([1_000_000, -30], np.int32), np.float16(0.001)], {},
        (np.array([1_000_000, -30]) * float(np.float16(0.001))).astype(np.float16)),
    "powers of wide integers": (
        "Pow", [np.array([3, -7], np.int64), np.array([39, 21], np.int32)], {}, np.array([3**39, (-7)**21])),
    "a power of float16 by float32": (
        "Pow", [np.array([1.0009765625], np.float16), f32([8191.5])], {},
        np.array([1.0009765625**8191.5], np.float16)),
    "ranges of wide integers": ("Range", [np.array(2**53 + 1), np.array(2**53 + 4), np.array(1)], {},
                                np.arange(2**53 + 1, 2**53 + 4)),
    "ranges that go down": ("Range", [np.array(10), np.array(-1), np.array(-3)], {}, np.arange(10, -1, -3)),
    "no dimension of a scalar": ("NonZero", [np.array(5)], {}, np.zeros((0, 1), np.int64)),
    "sums of nothing": ("CumSum", [np.zeros((2, 0), np.float32), np.array(1)], {}, np.zeros((2, 0), np.float32)),
    "a batch of one broadcasts": (
        "Einsum", [f32([[[1, 2]]]), f32([[[3], [4]], [[5], [6]]])], {"equation": "...ij,...jk->...ik"},
        f32([[[11]], [[17]]])),
    "a letter of one element broadcasts": ("Einsum", [f32([2]), f32(1, 2, 3)], {"equation": "i,i->i"}, f32(2, 4, 6)),
    "scales of rows": (
        "QLinearMatMul", [BYTES, ROWS, np.uint8([1, 2, 3]), BYTES, f32(1), np.uint8(0), f32(1), np.uint8(0)], {},
        np.rint((BYTES - f32([[1], [2], [3]])) * ROWS[:, None] @ BYTES.astype(np.float32)).astype(np.uint8)),
    "zero points of rows, as columns": (
        "MatMulInteger", [BYTES, BYTES, np.uint8([[1], [2], [3]])], {},
        ((BYTES.astype(int) - [[1], [2], [3]]) @ BYTES.astype(int)).astype(np.int32)),
    "a padding that leaves nothing": ("Pad", [BYTES, np.array([-2, 0, -1, 0])], {"mode": "edge"}, BYTES[:0]),
    "a sequence of nothing": (
        "LSTM", [np.zeros((0, 1, 2), np.float32), np.zeros((1, 12, 2), np.float32), np.zeros((1, 12, 3), np.float32)],
        {"hidden_size": 3}, np.zeros((0, 1, 1, 3), np.float32)),
}
REFUSED: dict[str, tuple[str, list[Any], dict[str, Any], type[NeuronError], str]] = {
    "half of an integer": ("Gemm", [BYTES, BYTES], {"alpha": 0.5}, UnsupportedError, "0.5 beside u8"),
    "step 0": ("Range", [np.array(0), np.array(5), np.array(0)], {}, FormatError, "step 0"),
    "a dimension beyond the last": ("Reshape", [BYTES, np.array([3, 3, 0])], {}, FormatError, "kept is not there"),
    "an axis twice": ("Unsqueeze", [BYTES, np.array([0, 0])], {}, FormatError, "named twice"),
    "an axis too many": ("Unsqueeze", [BYTES, np.array([5])], {}, FormatError, "not there"),
    "no axis": ("Concat", [BYTES, BYTES], {}, FormatError, "attribute axis is missing"),
    "another mode": ("Pad", [BYTES, np.array([1, 1, 1, 1])], {"mode": "symmetric"}, UnsupportedError, "'symmetric'"),
    "another reduction": ("ScatterND", [BYTES, np.array([[0]]), BYTES[:1]], {"reduction": "mean"}, UnsupportedError,
                          "'mean'"),
    "a mirror of nothing": ("Pad", [BYTES[:0], np.array([1, 0, 0, 0])], {"mode": "wrap"}, FormatError, "there is none"),
    "an activation too few": (
        "LSTM", [np.zeros((1, 1, 2), np.float32), np.zeros((1, 12, 2), np.float32), np.zeros((1, 12, 3), np.float32)],
        {"activations": ["Tanh"]}, UnsupportedError, "tanh"),
    "an axis before the first": ("Flatten", [BYTES], {"axis": -3}, FormatError, "not there"),
    "negative sizes": ("ConstantOfShape", [np.array([-1])], {}, FormatError, "a negative dimension"),
    "a condition beyond the end": ("Compress", [BYTES, np.ones(4, bool)], {"axis": 0}, FormatError, "within 3"),
    "pads of one dimension": ("Pad", [BYTES, np.array([1, 1])], {}, FormatError, "Pad: .* do not fit"),
    "parts of three": ("DFT", [f32([[1, 2, 3]])], {"axis": 0}, FormatError, "complex ones of 2"),
    "a scale of zero": ("Upsample", [f32(1, 2), f32([0])], {"version": 9}, UnsupportedError, "2 elements to 0"),
    "a cubic norm": ("LpNormalization", [f32(1, 2)], {"p": 3}, UnsupportedError, "p 3"),
    "products of float8": (
        "QLinearMatMul", [BYTES, f32(1), np.uint8(0), BYTES, f32(1), np.uint8(0), f32(1),
                          np.array(0, "float8_e4m3fn")], {}, UnsupportedError, "f8e4m3fn"),
}
# fmt: on


@pytest.mark.parametrize("name", CASES)
def test_edges(name: str) -> None:
    op, given, attributes, expected = CASES[name]
    found = _evaluated(op, given, **attributes)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    op, given, attributes, error, said = REFUSED[name]
    with pytest.raises(error, match=said):
        _evaluated(op, given, **attributes)


def test_both_names_of_the_domain_give_its_version() -> None:
    """Softmax of version 11 runs over everything from axis 1 on, of 13 over the last axis."""
    x = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    for domain in ("", "ai.onnx"):
        assert _evaluated("Softmax", [x], 13, domain).sum(-1) == pytest.approx(np.ones((2, 2)))
