"""Loops and branches of the device: state in device memory, the condition in a register of every engine."""

from __future__ import annotations

from collections.abc import Sequence

from formats.dtypes import Dtype
from formats.isa import AluOp
from neurontools.builder.trace import View
from neurontools.compiler.arrays import Array
from neurontools.compiler.element_types import element_type
from neurontools.compiler.graph import Graph, Node, Value
from neurontools.compiler.lowering import Lowering, lowers
from neurontools.compiler.tile_math import constant_like

__all__: list[str] = []

_S32 = Dtype.INT32


def _inline(self: Lowering, graph: Graph, arguments: Sequence[Array]) -> list[Array]:
    """Lower a body with its parameters where the arguments lie."""
    for value, array in zip(graph.parameters, arguments, strict=True):
        self.values[value] = array
    origin = self.emitter.origin  # the body's nodes set their own
    results = self.run(graph)
    self.emitter.origin = origin
    return results


def _test(self: Lowering, condition: Array, tile: View) -> None:
    """Load a truth value into a 32-bit tile."""
    e = self.emitter
    small = e.tile(condition.dtype, 1)
    e.copy(small, condition._replace(shape=(1,), strides=(1,)))
    e.cast(tile, small)


def _separate(self: Lowering, results: Sequence[Array], state: Sequence[Array]) -> list[Array]:
    """Return results with those copied that lie in the state they are about to become another part of."""
    own = {one.allocation.id: number for number, one in enumerate(state)}
    out = []
    for number, result in enumerate(results):
        place = own.get(result.allocation.id)
        if place is not None and result != state[number] and result.size:
            copy = self.emitter.tensor(result.dtype, result.shape)
            self.copy(copy, result)
            result = copy
        out.append(result)
    return out


@lowers("while")
def _while(self: Lowering, node: Node) -> None:
    """Lower a loop: the state is one tensor a value, which each turn overwrites."""
    e = self.emitter
    body, condition = node.attrs["body"], node.attrs["condition"]
    state = []
    for number, operand in enumerate(node.operands):
        out = self.result(node, number)
        self.copy(out, self.array(operand))
        state.append(out)
    turn = e.tile(_S32, 1)
    # The condition is lowered twice, before the loop and at its end: the device tests at the top of a turn only.
    _test(self, _inline(self, condition, state)[0], turn)
    e.loop(turn)
    results = _separate(self, _inline(self, body, state), state)
    for out, result in zip(state, results, strict=True):
        if result != out:
            self.copy(out, result)
    _test(self, _inline(self, condition, state)[0], turn)
    e.loop_end()


@lowers("conditional")
def _conditional(self: Lowering, node: Node) -> None:
    """Lower branches one after the other, each as a loop of at most one turn."""
    e = self.emitter
    selector = node.operands[0]
    branches: list[Graph] = node.attrs["branches"]
    outs = [self.result(node, number) for number in range(len(node.results))]
    number = _branch_number(self, selector, len(branches))
    begin = 1
    for index, (branch, count) in enumerate(zip(branches, node.attrs["counts"], strict=True)):
        arguments = [self.array(one) for one in node.operands[begin : begin + count]]
        begin += count
        chosen = e.tile(_S32, 1)
        e.tensor_scalar(chosen, number, AluOp.EQUAL, float(index))
        e.loop(chosen)
        for out, result in zip(outs, _inline(self, branch, arguments), strict=True):
            self.copy(out, result)
        e.fill(chosen, 0)  # so that the loop ends behind its one turn
        e.loop_end()


def _branch_number(self: Lowering, selector: Value, branches: int) -> View:
    """Return which branch is taken: of a truth value the first for true; out of range the last."""
    e = self.emitter
    array = self.array(selector)
    given, number = e.tile(array.dtype, 1), e.tile(_S32, 1)
    e.copy(given, array._replace(shape=(1,), strides=(1,)))
    if element_type(selector.dtype).kind == "pred":
        e.tensor_scalar(number, given, AluOp.EQUAL, 0.0)
        return number
    # HLO: a number out of range, negative ones too, takes the last branch.
    outside, large = e.tile(_S32, 1), e.tile(_S32, 1)
    e.tensor_tensor(outside, given, constant_like(e, given, _S32, 0), AluOp.LESS, "Pool")
    e.tensor_tensor(large, given, constant_like(e, given, _S32, branches - 1), AluOp.GREATER, "Pool")
    e.tensor_tensor(outside, outside, large, AluOp.BITWISE_OR)
    e.cast(number, given)
    e.choose(number, outside, constant_like(e, given, _S32, branches - 1))
    return number
