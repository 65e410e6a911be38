"""From an HLO module to the compiler's graph: tuples taken apart, calls written out, attributes by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from formats.hlo import Computation, Instruction, Module, Shape, dtype_of
from neurontools.compiler.errors import UnsupportedGraphError, failed
from neurontools.compiler.graph import Graph, Named, Origin, Value
from neurontools.hlo.tokens.threading import stream_of

__all__ = ["IMPORTED", "import_module"]

Tree = Value | list["Tree"]
_MOST_DEPTH = 64


def import_module(module: Module, path: str = "") -> Graph:
    """Return the graph of a module's entry; `path` stands for the source of what names none."""
    return _Importer(module, path).graph(module.entry, module.name)


def _kind(shape: Shape, origin: Origin | None = None) -> tuple[str, tuple[int, ...]]:
    if shape.is_dynamic:
        raise failed("EMOD025", f"dynamic shape {shape}; all dimensions must be static", origin)
    return shape.element_type.text, tuple(shape.dimensions)


def _leaves(tree: Tree) -> list[Value]:
    if isinstance(tree, Value):
        return [tree]
    return [leaf for branch in tree for leaf in _leaves(branch)]


def _rebuilt(shape: Shape, leaves: Sequence[Value]) -> Tree:
    """Return values as the tree that a shape is."""
    rest = iter(leaves)

    def build(one: Shape) -> Tree:
        return [build(part) for part in one.tuple_shapes] if one.is_tuple else next(rest)

    return build(shape)


class _Importer:
    def __init__(self, module: Module, path: str) -> None:
        self.module, self.path = module, path
        self.depth = 0
        self.around: list[str] = []  # names of the calls, loops and branches that are being imported

    def origin(self, instruction: Instruction) -> Origin:
        source = self.module.source(instruction)
        if source is None or not source.file:
            return Origin(instruction.name, self.path or self.module.name, 0)
        return Origin(instruction.name, source.file, source.line)

    def graph(self, computation: Computation, name: str = "") -> Graph:
        graph = Graph(name or computation.name)
        trees: list[Tree] = []
        for one in computation.parameters:
            graph.origin = self.origin(one)
            trees.append(_rebuilt(one.shape, [
                graph.parameter(*_kind(leaf, graph.origin), name=one.name) for _, leaf in one.shape.leaves()
            ]))  # fmt: skip
        graph.roots = _leaves(self.inline(graph, computation, trees))
        return graph

    def inline(self, graph: Graph, computation: Computation, parameters: Sequence[Tree]) -> Tree:
        """Append a computation's instructions to a graph; return the value of its root."""
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            raise failed("EVRF064", f"computations call each other more than {_MOST_DEPTH} deep")
        trees: dict[Instruction, Tree] = {}
        needed = _needed(computation)
        for one in computation.in_order():
            if one in needed:
                origin = graph.origin = self.origin(one)
                self.around.append(one.name)
                trees[one] = tree = self.instruction(graph, one, [trees[each] for each in one.operands], parameters)
                self.around.pop()
                if one.opcode not in _UNNAMED:
                    graph.named.append(Named("/".join(self.around), one.opcode, origin, tuple(_leaves(tree))))
        self.depth -= 1
        return trees[computation.root]

    def instruction(self, graph: Graph, one: Instruction, operands: list[Tree], parameters: Sequence[Tree]) -> Tree:
        opcode = one.opcode
        if opcode == "parameter":
            return parameters[one.parameter_number]
        if opcode == "tuple":
            return list(operands)
        if opcode == "get-tuple-element":
            return operands[0][one.tuple_index]  # type: ignore[index]
        if opcode == "after-all":
            return []
        if opcode in ("call", "fusion") and one.called:
            return self.inline(graph, one.to_apply, operands)
        if opcode in ("copy", "optimization-barrier", "domain", "opt-barrier", "all-reduce-done", "async-update"):
            return operands[0]
        if opcode in _APART:
            return self.apart(graph, one, operands)
        return self.node(graph, one, opcode, one.shape, operands)

    def apart(self, graph: Graph, one: Instruction, operands: list[Tree]) -> Tree:
        """Append what begins and ends apart where it begins; a start gives operands, results and contexts.

        Verification has made sure that each end follows its start.
        """
        opcode = one.opcode
        if opcode == "copy-done":
            return operands[0][0]  # type: ignore[index]
        if opcode.endswith("-done"):
            return operands[0][1]  # type: ignore[index]
        given: Tree = operands[0] if len(operands) == 1 and opcode != "async-start" else list(operands)
        if opcode == "async-start":
            found = self.inline(graph, one.to_apply, operands)
        elif opcode == "copy-start":
            found = given
        elif opcode == "all-reduce-start":
            return self.node(graph, one, "all-reduce", one.shape, operands)
        else:
            found = self.node(graph, one, opcode.removesuffix("-start"), one.shape.tuple_shapes[1], operands)
        contexts: list[Tree] = [
            graph.add(
                "constant", (), *_kind(part, graph.origin), data=np.zeros(part.dimensions, dtype_of(part.element_type))
            )
            if part.is_array
            else []
            for part in one.shape.tuple_shapes[2:]
        ]
        return [given, found, *contexts]

    def node(self, graph: Graph, one: Instruction, opcode: str, shape: Shape, operands: list[Tree]) -> Tree:
        """Append a node of an opcode, with results of a shape; return them."""
        if opcode == "custom-call" and any(isinstance(tree, list) for tree in operands):
            what = f"custom call {one.custom_call_target} of tuples is not supported"
            raise UnsupportedGraphError("EUOC002", what, graph.origin)
        leaves = [leaf for tree in operands for leaf in _leaves(tree)]
        kinds = [_kind(leaf, graph.origin) for _, leaf in shape.leaves()]
        if opcode == "select":
            return _rebuilt(shape, list(_selected(graph, leaves)))
        attrs = _ATTRIBUTES.get(opcode, _nothing)(one)
        if opcode == "while":
            attrs = {"body": self.graph(one.body), "condition": self.graph(one.condition)}
        elif opcode == "conditional":
            attrs = {"branches": [self.graph(each) for each in one.called], "counts": [
                len(_leaves(tree)) for tree in operands[1:]
            ]}  # fmt: skip
        elif opcode == "select-and-scatter":
            attrs |= {"select": self.graph(one.select), "scatter": self.graph(one.scatter_body)}
        elif one.called and opcode in _BODIES:
            attrs |= {"body": self.graph(one.to_apply)}
        node = graph.node(opcode, leaves, kinds, attrs)
        return _rebuilt(shape, node.results)


def _selected(graph: Graph, leaves: Sequence[Value]) -> Iterator[Value]:
    """Append a select for each leaf of two tuples, or of one of each; one predicate may decide all elements."""
    where, rest = leaves[0], leaves[1:]
    for one, other in zip(rest[: len(rest) // 2], rest[len(rest) // 2 :], strict=True):
        each = where
        if where.shape != one.shape:
            each = graph.add("broadcast", (where,), where.dtype, one.shape, dimensions=())
        yield graph.add("select", (each, one, other), one.dtype, one.shape)


# Opcodes that begin or end what runs apart; then all that leave no node of their own.
_APART = frozenset({"all-gather-done", "all-gather-start", "all-reduce-start", "async-done", "async-start",
                    "collective-permute-done", "collective-permute-start", "copy-done", "copy-start"})  # fmt: skip
_UNNAMED = frozenset({"after-all", "tuple"})
IMPORTED = _APART | {"after-all", "all-reduce-done", "async-update", "call", "copy", "fusion", "get-tuple-element",
                     "optimization-barrier", "tuple"}  # fmt: skip
_BODIES = frozenset({"map", "reduce", "reduce-window", "scatter", "sort", "all-reduce", "reduce-scatter"})


def _needed(computation: Computation) -> set[Instruction]:
    """Return what the root depends on; nothing else has an effect."""
    needed, rest = set(), [computation.root]
    while rest:
        one = rest.pop()
        if one not in needed:
            needed.add(one)
            rest += one.operands
    needed.update(computation.parameters)
    return needed


def _nothing(one: Instruction) -> dict[str, Any]:
    return {}


def _dot(one: Instruction) -> dict[str, Any]:
    numbers = one.dot
    return {
        "lhs_contracting": numbers.lhs_contracting_dimensions,
        "rhs_contracting": numbers.rhs_contracting_dimensions,
        "lhs_batch": numbers.lhs_batch_dimensions,
        "rhs_batch": numbers.rhs_batch_dimensions,
        "precision": one.operand_precision,
    }


def _slice(one: Instruction) -> dict[str, Any]:
    return {"starts": tuple(each.start for each in one.slices), "strides": tuple(each.stride for each in one.slices)}


def _pad(one: Instruction) -> dict[str, Any]:
    return {"padding": tuple(
        (each.edge_padding_low, each.edge_padding_high, each.interior_padding) for each in one.padding
    )}  # fmt: skip


def _gather(one: Instruction) -> dict[str, Any]:
    return {"numbers": one.gather, "slice_sizes": one.gather_slice_sizes}


def _scatter(one: Instruction) -> dict[str, Any]:
    return {"numbers": one.scatter, "unique": one.unique_indices}


def _window(one: Instruction) -> dict[str, Any]:
    return {"window": one.window}


def _convolution(one: Instruction) -> dict[str, Any]:
    return {
        "window": one.window,
        "numbers": one.convolution,
        "feature_groups": one.feature_group_count,
        "batch_groups": one.batch_group_count,
    }


def _custom(one: Instruction) -> dict[str, Any]:
    found: dict[str, Any] = {"target": one.custom_call_target, "config": one.backend_config}
    if one.output_aliasing:
        found["aliases"] = {each.operand_index: (each.output_shape_index or (0,))[0] for each in one.output_aliasing}
    return found


def _collective(one: Instruction) -> dict[str, Any]:
    dimension = one.dimensions[0] if one.dimensions else None
    # Global numbers of devices are those of partitions, which all run this module.
    return {"groups": one.replica_groups, "pairs": one.source_target_pairs, "dimension": dimension,
            "one_program": one.use_global_device_ids, "stream": stream_of(one)}  # fmt: skip


def _solve(one: Instruction) -> dict[str, Any]:
    given = one.triangular_solve
    return {"left": given.left_side, "lower": given.lower, "unit": given.unit_diagonal, "transpose": given.transpose_a}


_ATTRIBUTES: dict[str, Callable[[Instruction], dict[str, Any]]] = {
    "all-gather": _collective,
    "all-reduce": _collective,
    "all-to-all": _collective,
    "batch-norm-grad": lambda one: {"epsilon": one.epsilon, "feature": one.feature_index},
    "batch-norm-inference": lambda one: {"epsilon": one.epsilon, "feature": one.feature_index},
    "batch-norm-training": lambda one: {"epsilon": one.epsilon, "feature": one.feature_index},
    "broadcast": lambda one: {"dimensions": one.dimensions},
    "cholesky": lambda one: {"lower": one.cholesky_lower},
    "collective-broadcast": _collective,
    "collective-permute": _collective,
    "compare": lambda one: {"direction": one.comparison_direction, "type": one.comparison_type},
    "concatenate": lambda one: {"dimension": one.dimensions[0]},
    "constant": lambda one: {"data": one.value().array()},
    "convolution": _convolution,
    "custom-call": _custom,
    "dot": _dot,
    "dynamic-slice": lambda one: {"sizes": one.dynamic_slice_sizes},
    "fft": lambda one: {"kind": one.fft_type, "lengths": one.fft_length},
    "gather": _gather,
    "iota": lambda one: {"dimension": one.dimensions[0]},
    "pad": _pad,
    "reduce": lambda one: {"dimensions": one.dimensions},
    "reduce-precision": lambda one: {"exponent_bits": one.exponent_bits, "mantissa_bits": one.mantissa_bits},
    "reduce-scatter": _collective,
    "reduce-window": _window,
    "reverse": lambda one: {"dimensions": one.dimensions},
    "rng-bit-generator": lambda one: {"algorithm": one.rng_algorithm},
    "scatter": _scatter,
    "select-and-scatter": _window,
    "slice": _slice,
    "sort": lambda one: {"dimension": one.dimensions[0], "stable": one.is_stable},
    "topk": lambda one: {"k": one.k, "largest": one.largest},
    "transpose": lambda one: {"permutation": one.dimensions},
    "triangular-solve": _solve,
}
