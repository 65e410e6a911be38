"""Make an HLO module of an ONNX model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from formats.errors import FormatError, NeuronError, UnsupportedError
from formats.hlo import Computation, Module, Shape, type_of
from formats.named_tuple import NamedTuple
from neurontools.onnx_import import elements, indices, loops, matrices, norms, recurrent, reductions, resize, shapes
from neurontools.onnx_import.builder import Builder, NeedsValueError, Tensor
from neurontools.onnx_import.registry import OPERATORS, Node, number_of

__all__ = ["Imported", "import_model"]

# Their operators are in the table by being imported.
_ = (elements, indices, loops, matrices, norms, recurrent, reductions, resize, shapes)
_MOST_DEPTH = 20  # of bodies and functions within each other; without a bound a model could end Python's stack


class Imported(NamedTuple):
    """A module, the inputs that are its parameters, in order, and those whose values it was made for."""

    module: Module
    parameters: tuple[str, ...]
    fixed: tuple[str, ...]


def import_model(model: Any, inputs: dict[str, np.ndarray[Any, Any]]) -> Imported:
    """Return the module of a model for inputs of these shapes.

    Inputs whose values decide shapes (the shape of a Reshape, the axes of a sum) become constants; all others are
    parameters. Raises UnsupportedError for operators, types and shapes that have no HLO.
    """
    fixed: set[str] = set()
    while True:  # ends: each turn makes one more input a constant
        lowering = _Lowering(model, inputs, fixed)
        try:
            return lowering.module()
        except NeedsValueError as need:
            name = lowering.parameters[need.parameter]
            fixed.add(name)


class _Lowering:
    def __init__(self, model: Any, inputs: dict[str, np.ndarray[Any, Any]], fixed: set[str]) -> None:
        self.model, self.inputs, self.fixed = model, inputs, fixed
        self.to = Builder()
        self.parameters: list[str] = []
        self.versions = {_domain(each): each.version for each in model.opset_import}

    def module(self) -> Imported:
        graph = self.model.graph
        known: dict[str, Tensor | None] = {"": None}
        self._initialisers(graph, known)
        for each in graph.input:
            if each.name in self.inputs:
                known[each.name] = self._input(each.name, self.inputs[each.name])
            elif each.name not in known:
                raise UnsupportedError(f"input {each.name!r} is no tensor")
        self.run(graph.node, known, 0)
        results = [_found(known, each.name) for each in graph.output]
        root = results[0] if len(results) == 1 else self.to.emit("tuple", results)
        entry = Computation("main", self.to.instructions, root.at)
        name = "".join(c if c.isalnum() else "_" for c in graph.name) or "model"
        module = Module(name if not name[0].isdigit() else f"_{name}", [*self.to.bodies.values(), entry], entry)
        return Imported(module, tuple(self.parameters), tuple(sorted(self.fixed)))

    def _input(self, name: str, values: np.ndarray[Any, Any]) -> Tensor:
        array = _array(values)
        if name in self.fixed:
            return self.to.constant(array)
        self.parameters.append(name)
        return self.to.parameter(len(self.parameters) - 1, Shape(type_of(array.dtype.name), array.shape), name)

    def run(self, nodes: Sequence[Any], known: dict[str, Tensor | None], depth: int) -> None:
        """Lower nodes in order; `known` gets their outputs."""
        if depth > _MOST_DEPTH:
            raise UnsupportedError(f"functions call each other more than {_MOST_DEPTH} deep")
        for node in nodes:
            inputs = [_found(known, name) if name else None for name in node.input]
            outputs = self._node(node, inputs, known, depth)
            for name, value in zip(node.output, outputs, strict=False):
                if name:
                    known[name] = value

    def _node(
        self, node: Any, inputs: list[Tensor | None], known: dict[str, Tensor | None], depth: int
    ) -> list[Tensor]:
        attributes = {each.name: _attribute(each) for each in node.attribute}
        lowering = OPERATORS.get(node.op_type) if not _domain(node) else None
        if lowering is None:
            return self._function(node, inputs, depth)

        def run(graph: Any, given: Sequence[Tensor | None]) -> list[Tensor]:
            if len(graph.input) != len(given):
                raise FormatError("a body takes other inputs than it is given", expected=len(given),
                                  got=len(graph.input), field=node.op_type)  # fmt: skip
            # A body sees the values around it (ONNX's IR.md, names within a graph).
            inner = {**known, **dict(zip((each.name for each in graph.input), given, strict=True))}
            self._initialisers(graph, inner)
            self.run(graph.node, inner, depth + 1)
            return [_found(inner, each.name) for each in graph.output]

        version = self.versions.get("", 1)
        try:
            found = lowering(Node(self.to, node.op_type, version, inputs, attributes, len(node.output), run))
        except (NeuronError, NeedsValueError):
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # Lowerings trust what ONNX's checker would have checked: so many strides, no empty list.
            raise FormatError(f"inputs or attributes that do not fit ({error})", field=node.op_type) from error
        return list(found) if isinstance(found, tuple) else [found]

    def _initialisers(self, graph: Any, known: dict[str, Tensor | None]) -> None:
        from onnx import numpy_helper  # deferred: optional onnx

        for each in graph.initializer:
            known[each.name] = self.to.constant(_array(numpy_helper.to_array(each)))

    def _function(self, node: Any, inputs: list[Tensor | None], depth: int) -> list[Tensor]:
        """Lower an operator by the function that ONNX itself defines it by."""
        from onnx import AttributeProto, FunctionProto, NodeProto, TypeProto, defs  # deferred: optional onnx

        version = self.versions.get(_domain(node), 1)
        try:
            schema = defs.get_schema(node.op_type, version, node.domain)
        except defs.SchemaError:
            raise UnsupportedError(f"ONNX operator {node.op_type} is not known") from None
        function = FunctionProto()
        if schema.has_context_dependent_function:
            types = []
            for each in inputs:
                kind = TypeProto()
                if each is not None:
                    kind.tensor_type.elem_type = number_of(each.kind)
                    for size in each.shape:
                        kind.tensor_type.shape.dim.add().dim_value = size
                types.append(kind.SerializeToString())
            # A function is written for one operator set: the newest that the model's own contains.
            usable = [v for v in schema.context_dependent_function_opset_versions if v <= version]
            if not usable:
                raise UnsupportedError(f"ONNX operator {node.op_type} is not modelled")
            raw = schema.get_context_dependent_function_with_opset_version(
                max(usable), node.SerializeToString(), types
            )  # fmt: skip
            function.ParseFromString(raw)
        elif schema.has_function:
            usable = [v for v in schema.function_opset_versions if v <= version]
            raw = schema.get_function_with_opset_version(max(usable)) if usable else b""
            function.ParseFromString(raw)
        if not function.node:
            raise UnsupportedError(f"ONNX operator {node.op_type} is not modelled")
        known: dict[str, Tensor | None] = {"": None}
        known |= dict.fromkeys(function.input)
        known |= dict(zip(function.input, inputs, strict=False))
        # What the node says comes before the function's defaults, and those before the schema's.
        stated = {each.name: each for each in node.attribute}
        stated |= {each.name: each for each in function.attribute_proto if each.name not in stated}
        stated |= {
            name: each.default_value for name, each in schema.attributes.items()
            if name not in stated and each.default_value.type != AttributeProto.UNDEFINED
        }  # fmt: skip
        nodes = []
        for each in function.node:
            copy = NodeProto()
            copy.CopyFrom(each)
            _bind(copy, stated)
            nodes.append(copy)
        # A function's nodes are of the operator sets that it names, whatever the model's are.
        versions, self.versions = self.versions, self.versions | {
            _domain(each): each.version for each in function.opset_import
        }  # fmt: skip
        self.run(nodes, known, depth + 1)
        self.versions = versions
        wanted = zip(function.output, node.output, strict=False)
        # What the node leaves out may be what the function does not compute: anything holds its place.
        return [_found(known, name) if given else self.to.constant(False) for name, given in wanted]


def _bind(node: Any, stated: dict[str, Any]) -> None:
    """Put the caller's attributes in the place of references to them; one that nobody states goes."""
    kept = []
    for each in node.attribute:
        if each.ref_attr_name:
            value = stated.get(each.ref_attr_name)
            if value is None:
                continue
            name = each.name
            each.CopyFrom(value)
            each.name = name
        for inner in [each.g] if each.HasField("g") else []:
            for child in inner.node:
                _bind(child, stated)
        kept.append(each)
    if len(kept) != len(node.attribute):
        copies = [type(each)() for each in kept]
        for copy, each in zip(copies, kept, strict=True):
            copy.CopyFrom(each)
        del node.attribute[:]
        node.attribute.extend(copies)


def _domain(of: Any) -> str:
    """Return the domain of a node or an operator set; ONNX's own has two names."""
    return "" if of.domain == "ai.onnx" else str(of.domain)


def _found(known: dict[str, Tensor | None], name: str) -> Tensor:
    value = known.get(name)
    if value is None:
        raise FormatError("a value that no node gives", field=name)
    return value


def _attribute(attribute: Any) -> Any:
    """Return an attribute as a Python value; tensors as arrays."""
    from onnx import AttributeProto, helper, numpy_helper  # deferred: optional onnx

    if attribute.type == AttributeProto.TENSOR:
        return _array(numpy_helper.to_array(attribute.t))
    if attribute.type in (AttributeProto.SPARSE_TENSOR, AttributeProto.TYPE_PROTO):
        raise UnsupportedError(f"attribute {attribute.name!r} is not modelled")
    value = helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else value


def _array(values: Any) -> np.ndarray[Any, Any]:
    array = np.asarray(values)
    if array.dtype.kind in "OSU":
        raise UnsupportedError("texts have no HLO")
    return array
