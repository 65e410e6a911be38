"""ONNX models as HLO: what decides shapes becomes a constant, what has no HLO is refused, every operator is used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from formats.errors import FormatError, UnsupportedError
from formats.hlo.verify import verify
from neurontools.hlo_interpreter import evaluate

onnx = pytest.importorskip("onnx", reason="onnx is not installed")


def _model(nodes: list[Any], inputs: dict[str, Any], outputs: list[str], version: int = 21) -> Any:
    helper = onnx.helper
    given = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(each.dtype), each.shape)
             for name, each in inputs.items()]  # fmt: skip
    results = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(nodes, "g", given, results)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])


def _run(model: Any, inputs: dict[str, Any]) -> tuple[Any, Any]:
    from neurontools.onnx_import import import_model

    made = import_model(model, inputs)
    assert verify(made.module) == []
    return made, evaluate(made.module, [inputs[name] for name in made.parameters])


def test_what_decides_a_shape_becomes_a_constant() -> None:
    inputs = {"x": np.arange(6, dtype=np.float32), "shape": np.array([2, -1], np.int64)}
    made, value = _run(_model([onnx.helper.make_node("Reshape", ["x", "shape"], ["y"])], inputs, ["y"]), inputs)
    assert made.fixed == ("shape",) and made.parameters == ("x",) and value.shape == (2, 3)


def test_shapes_are_computed_as_the_model_does() -> None:
    nodes = [
        onnx.helper.make_node("Shape", ["x"], ["s"]),
        onnx.helper.make_node("ReduceProd", ["s"], ["n"], keepdims=0),
        onnx.helper.make_node("Unsqueeze", ["n", "axis"], ["flat"]),
        onnx.helper.make_node("Reshape", ["x", "flat"], ["y"]),
    ]
    inputs = {"x": np.ones((2, 3, 4), np.float32), "axis": np.array([0], np.int64)}
    made, value = _run(_model(nodes, inputs, ["y"]), inputs)
    assert value.shape == (24,) and made.parameters == ("x",)


def test_a_function_of_onnx_is_lowered_by_its_body() -> None:
    rng = np.random.default_rng(1)
    inputs = {name: rng.standard_normal((1, 2, 3, 4)).astype(np.float32) for name in "qkv"}
    made, value = _run(_model([onnx.helper.make_node("Attention", ["q", "k", "v"], ["y"])], inputs, ["y"], 23), inputs)
    scores = inputs["q"] @ inputs["k"].transpose(0, 1, 3, 2) / 2
    shares = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    np.testing.assert_allclose(value, shares @ inputs["v"], rtol=1e-5)
    assert "dot" in {each.opcode for each in made.module.entry.instructions}


@pytest.mark.parametrize(
    ("node", "said"),
    [(("NoSuchThing", ["x"], ["y"]), "NoSuchThing is not known"), (("ImageDecoder", ["x"], ["y"]), "not modelled")],
)
def test_what_has_no_hlo_is_refused(node: Any, said: str) -> None:
    inputs = {"x": np.ones(3, np.float32)}
    with pytest.raises(UnsupportedError, match=said):
        _run(_model([onnx.helper.make_node(*node)], inputs, ["y"]), inputs)


def test_shapes_that_do_not_fit_are_refused() -> None:
    inputs = {"x": np.ones((2, 3), np.float32), "y": np.ones((2, 3), np.float32)}
    with pytest.raises(FormatError, match="contracting dimensions"):
        _run(_model([onnx.helper.make_node("MatMul", ["x", "y"], ["z"])], inputs, ["z"]), inputs)


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    inputs = {"x": np.ones((2, 3), np.float32), "y": np.ones((2, 4), np.float32)}
    with pytest.raises(FormatError, match="do not broadcast"):
        _run(_model([onnx.helper.make_node("Add", ["x", "y"], ["z"])], inputs, ["z"]), inputs)


def test_every_operator_is_one_that_the_node_tests_use() -> None:
    from neurontools.onnx_import import OPERATORS
    from neurontools.selftest.onnx_suite import _cases

    used = {node.op_type for case in _cases() for node in case.model.graph.node}
    assert set(OPERATORS) - used == {"GlobalLpPool"}
