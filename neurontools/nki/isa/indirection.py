"""Operands of engines whose addresses depend on data: columns at a tile of indices, dynamic selects of tiles in SBUF.

On the device an operand carries its indices itself, in words whose encoding is not public. Here the columns of tensor
indirection (gen4, `NkiTensor.indirect`) are gathered into a tile of their own before the instruction, on its engine,
and scattered from one behind it; what a dynamic select picks of a tile in SBUF comes and goes by DMA.
Source: `NkiTensor.indirect` of the nki.language pages, "Tensor indirection" of the nki.isa pages.
"""

from __future__ import annotations

from typing import Any

from formats import isa as words
from formats.named_tuple import NamedTuple
from formats.neuron_core import QUADRANT
from neurontools.builder.trace import ComputeOp, MatmulOp, Space, View
from neurontools.nki.isa.constants import oob_mode
from neurontools.nki.isa.indirect_copy import indirect_copy
from neurontools.nki.isa.refusals import reject
from neurontools.nki.storage import new_tensor
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer

__all__ = ["IndirectOperand", "check_product", "first_partition", "operand"]

# partitions that take their indices from one another's rows
_GROUP, _TENSOR_ENGINE_GROUP = 16, 32
_VECTOR, _SCALAR = ("DVE",), ("Activation",)
_PRODUCT_DTYPES = ("float16", "bfloat16", "float8_e4m3", "float8_e5m2", "float8_e4m3fn")


class _Rule(NamedTuple):
    """What an instruction documents: the inputs that may be indirect, the first in charge, and its engines then."""

    inputs: tuple[str, ...]
    engines: tuple[str, ...]


_MX = ("stationary", "moving", "stationary_scale", "moving_scale")
RULES = {
    "tensor_copy": _Rule(("src",), ("DVE", "Activation")),
    "tensor_copy_predicated": _Rule(("predicate",), _VECTOR),
    "nc_matmul": _Rule(("stationary", "moving"), ("PE",)),
    "nc_matmul_mx": _Rule(_MX, ("PE",)),
    "tensor_tensor": _Rule(("data1",), ("DVE", "Pool")),
    "tensor_scalar": _Rule(("data",), ("DVE", "Activation", "Pool")),
    "tensor_reduce": _Rule(("data",), _VECTOR),
    "tensor_scalar_cumulative": _Rule(("src",), _VECTOR),
    "activation": _Rule(("data",), _SCALAR),
    "activation_reduce": _Rule(("data",), _SCALAR),
    "activate2": _Rule(("data",), _SCALAR),
    "exponential": _Rule(("src",), _VECTOR),
    "tensor_scalar_reduce": _Rule(("data",), _VECTOR),
}


class SelectedResult(NamedTuple):
    """A result at a number of the device: the view, and the tile that stands for it until DMA carries it there."""

    instruction: str
    target: NkiTensor
    tile: NkiTensor


class IndirectOperand(NamedTuple):
    """An operand of the instruction that is being noted: its tile, its indices, and the columns that stand for it."""

    instruction: str
    argument: str
    base: View
    indices: View
    columns: View


def operand(t: Tracer, instruction: str, argument: str, value: NkiTensor) -> View:
    """Return the view of a tile that stands for an indirect operand; whoever notes the instruction moves the data."""
    if value.indirection is not None and value.indirection.base is None:
        return _selected(t, instruction, argument, value)
    rule = RULES.get(instruction)
    if rule is None or (argument != "dst" and argument not in rule.inputs):
        raise reject(t, instruction, argument, f"an indirect view of {value.name}", "this operand cannot be indirect")
    found = value.indirection
    assert found is not None and found.base is not None
    base, indices = found.base.view_of_storage, found.indices.view_of_storage
    group = _TENSOR_ENGINE_GROUP if rule.engines == ("PE",) else _GROUP
    partitions, count = value.shape
    if partitions % group:
        raise reject(t, instruction, f"partition count of {argument}", partitions, f"must be a multiple of {group}")
    room = group * indices.elements // indices.partitions
    if count > room:
        limit = f"the {found.indices.shape} indices hold at most {room} for each {group} partitions (num_elem says how "
        raise reject(t, instruction, f"elements per partition of {argument}", count, limit + "many are in use)")
    if first_partition(indices) % QUADRANT:
        raise reject(t, instruction, f"index of {argument}", f"from partition {first_partition(indices)}",
                       "must start on a multiple of 32")  # fmt: skip
    if argument != "dst" and not argument.endswith("_scale"):
        _same_start(t, instruction, argument, base, f"index of {argument}", indices)
    allocation = t.allocate(base.allocation.space, base.dtype, (partitions, count), name=f"{value.name}_columns")
    columns = View(allocation, base.dtype, 0, partitions, 0, ((1, count),))
    _around(t).operands.append(IndirectOperand(instruction, argument, base, indices, columns))
    return columns


# Instructions that leave parts of what they write as it is.
_KEEPING = ("tensor_copy_predicated", "nc_stream_shuffle")


def _selected(t: Tracer, instruction: str, argument: str, value: NkiTensor) -> View:
    """Return the view of a tile for a dynamic select in SBUF; an input is there already, a result is yet to go."""
    scalar = value.indirection is not None and value.indirection.kind == "scalar"
    if value.allocation.space is not Space.SBUF or not scalar or instruction == "sendrecv":
        return value.view_of_storage if value.on_chip else value.base_view
    copy = new_tensor(t, value.shape, value.dtype, name=f"{value.name}_selected")
    if argument != "dst" or instruction in _KEEPING:
        indirect_copy(t, instruction, copy, value, "SP", oob_mode.error, None)
    if argument == "dst":
        _around(t).results.append(SelectedResult(instruction, value, copy))
    return copy.view_of_storage


def _store_selected(t: Tracer, results: list[SelectedResult], name: str | None) -> None:
    for one in results:
        indirect_copy(t, one.instruction, one.target, one.tile, "SP", oob_mode.error, name and f"{name}-dst")


def first_partition(view: View) -> int:
    """Return where a view begins: a tile at an address of the kernel's does not begin at partition 0."""
    address = view.allocation.address
    return view.partition if address is None else view.partition + address[0]


def _same_start(t: Tracer, instruction: str, name: str, view: View, other: str, its: View) -> None:
    """Refuse operands that the kernel placed on different partitions; others the compiler would place to fit."""
    placed = view.allocation.address is not None and its.allocation.address is not None
    if placed and first_partition(view) != first_partition(its):
        raise reject(t, instruction, name, f"from partition {first_partition(view)}",
                       f"must start where the {other} does, at partition {first_partition(its)}")  # fmt: skip


def _check(t: Tracer, engine: str, inputs: list[IndirectOperand], result: IndirectOperand | None, first: View) -> None:
    """Refuse an engine without indirection, and a result that does not lie where its input makes it."""
    instruction = (result or inputs[0]).instruction
    engines = RULES[instruction].engines
    if engine not in engines:
        raise reject(t, instruction, "engine", engine, f"with an indirect operand it is {' or '.join(engines)}")
    if result is None:
        return
    if engine == "Activation" and result.base.allocation.space is Space.PSUM:
        raise reject(t, instruction, "dst", "an indirect view in PSUM", "the Scalar engine scatters to SBUF only")
    name = RULES[instruction].inputs[0]
    leading = next((one for one in inputs if one.argument == name), None)
    source = leading.base if leading is not None else first
    if source.allocation.space is Space.SBUF:
        _same_start(t, instruction, "index of dst", result.indices, name, source)
    elif leading is not None:
        _same_start(t, instruction, "index of dst", result.indices, f"index of {name}", leading.indices)


def _gather(t: Tracer, inputs: list[IndirectOperand], engine: str, group: int, name: str | None) -> None:
    done: set[View] = set()
    for one in inputs:
        # an operand that stands for two arguments is gathered once
        if one.columns not in done:
            done.add(one.columns)
            operands = {"src": one.base, "indices": one.indices, "dst": one.columns}
            t.compute(words.IndirectRead, engine, operands, {"group": group}, name and f"{name}-{one.argument}")


def _scatter(
    t: Tracer, result: IndirectOperand, engine: str, name: str | None, fields: dict[str, object], **more: View
) -> ComputeOp:
    operands = {"src": result.columns, "indices": result.indices, **more, "dst": result.base}
    return t.compute(words.IndirectWrite, engine, operands, fields, name and f"{name}-dst")


def _copy_predicated(
    t: Tracer, result: IndirectOperand, operands: dict[str, View], fields: dict[str, object], name: str | None
) -> ComputeOp:
    """Append a scatter under a predicate, so that what is not copied is not touched either."""
    source = operands.get("src")
    if source is None:
        t.compute(words.Memset, "DVE", {"dst": result.columns}, {"value": fields["value"]}, name and f"{name}-value")
    else:
        result = result._replace(columns=source)
    more = {"group": _GROUP, "reverse": fields["reverse"]}
    return _scatter(t, result, "DVE", name, more, predicate=operands["predicate"])


class Moves:
    """The indirect operands of the instruction that is being noted, moved before and behind it."""

    __slots__ = ("operands", "results")

    def __init__(self) -> None:
        self.operands: list[IndirectOperand] = []
        self.results: list[SelectedResult] = []

    def compute(
        self,
        t: Tracer,
        instruction: type[Any],
        engine: str,
        operands: dict[str, View],
        fields: dict[str, object],
        name: str | None,
    ) -> ComputeOp:
        """Append an instruction with indirect operands; return its operation."""
        if self.results:
            selected, self.results = self.results, []
            t.indirect = self if self.operands else None
            op = t.compute(instruction, engine, operands, fields, name)
            _store_selected(t, selected, name)
            return op
        inputs, result = self._take(t)
        # the operand in charge of where a result lies, by the names that words give theirs
        leading = next(name for name in ("predicate", "stationary", "src0", "src") if name in operands)
        _check(t, engine, inputs, result, operands[leading])
        mover, group = ("DVE", _TENSOR_ENGINE_GROUP) if engine == "PE" else (engine, _GROUP)
        _gather(t, inputs, mover, group, name)
        if instruction is words.CopyPredicated and result is not None:
            return _copy_predicated(t, result, operands, fields, name)
        more: dict[str, object] = {"group": group}
        if result is not None and "accumulate" in fields:
            # the product lands in a tile of its own and must not add there: the scatter adds to what is in PSUM
            more["accumulate"], fields = fields["accumulate"], {**fields, "accumulate": 0}
        op = t.compute(instruction, engine, operands, fields, name)
        if result is not None:
            _scatter(t, result, mover, name, more)
        return op

    def matmul(
        self,
        t: Tracer,
        dst: View,
        stationary: View,
        moving: View,
        accumulate: bool | None,
        is_transpose: bool,
        name: str | None,
    ) -> MatmulOp:
        """Append a product with indirect operands; return its operation."""
        inputs, result = self._take(t)
        _check(t, "PE", inputs, result, stationary)
        _gather(t, inputs, "DVE", _TENSOR_ENGINE_GROUP, name)
        op = t.matmul(dst, stationary, moving, accumulate if result is None else False, is_transpose, name)
        if result is not None:
            keep = None if accumulate is None else int(accumulate)
            _scatter(t, result, "DVE", name, {"group": _TENSOR_ENGINE_GROUP, "accumulate": keep})
        return op

    def _take(self, t: Tracer) -> tuple[list[IndirectOperand], IndirectOperand | None]:
        """Return the indirect inputs and the indirect result of the instruction, which are no longer awaited."""
        t.indirect = None
        results = [one for one in self.operands if one.argument == "dst"]
        return [one for one in self.operands if one.argument != "dst"], results[0] if results else None


def _around(t: Tracer) -> Moves:
    """Return the moves around the instruction that is being noted, begun where it has none yet."""
    found = t.indirect
    if not isinstance(found, Moves):
        found = t.indirect = Moves()
    return found


def check_product(t: Tracer, instruction: str, position: Any, is_transpose: bool = False, **tensors: NkiTensor) -> None:
    """Refuse what the Tensor engine does not do with indirect operands."""
    if position is not None and tuple(position) not in ((), (0, 0)):
        raise reject(t, instruction, "tile_position", position, "must be (0, 0) with indirect operands")
    for argument, one in tensors.items():
        if one.indirection is None:
            continue
        if is_transpose and argument == "moving":
            raise reject(t, instruction, argument, "an indirect view", "cannot be indirect with is_transpose")
        if instruction == "nc_matmul" and one.dtype not in _PRODUCT_DTYPES:
            allowed = " or ".join(_PRODUCT_DTYPES)
            raise reject(t, instruction, argument, f"an indirect view of {one.dtype}", f"must be {allowed}")
