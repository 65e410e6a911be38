"""From abstract operations of the compute engines to instruction words."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from formats.dtypes import Dtype
from formats.isa import (
    Activate,
    ActivationExtended,
    Bits,
    Instruction,
    Memset,
    ReduceCommand,
    ReduceDims,
    TensorReduce,
    TensorTensorScan,
)
from formats.isa.field import Immediate
from formats.isa.operand import Pattern, Pointer
from formats.named_tuple import NamedTuple
from neurontools.builder.areas import Access, access_to
from neurontools.builder.dims import Dims, Limit, Piece, common, elements, merge, split
from neurontools.builder.errors import BuildError
from neurontools.builder.templates import Spot, Template, keep, template_of
from neurontools.builder.trace import ComputeOp, View

__all__ = ["Encoder", "Place", "Plan", "limit_of", "pad", "refuse"]


class Place(NamedTuple):
    """Where an allocation stands on chip: engine address of its first byte, and bytes between partitions."""

    address: int
    stride: int

    def of(self, view: View) -> int:
        """Return the engine address of a view's first element."""
        return self.address + view.partition * self.stride + view.offset


class _Operand(NamedTuple):
    """What encoding one operand takes: fields that it sets, place of its address, `fixed` type of a pointer."""

    name: str
    offset: int
    pointer: bool
    dtype: str | None
    fixed: Dtype | None
    partitions: str
    limit: Limit


_NARROW = (1 << 16) - 1, -(1 << 15), (1 << 15) - 1
_WIDE = (1 << 32) - 1, -(1 << 31), (1 << 31) - 1
_FORM = itemgetter(*map(View._fields.index, ("dtype", "partitions", "dims")))
_plans: dict[type[Instruction], dict[str, _Operand]] = {}
_encoded: dict[Any, Plan] = {}  # by what it depends on: the key of its operations, the code of their function


def limit_of(field: Pattern) -> Limit:
    """Return what a pattern operand can hold."""
    return Limit(field.dims, *(_WIDE if field.wide else _NARROW))


def _plan(cls: type[Instruction]) -> dict[str, _Operand]:
    plan = _plans.get(cls)
    if plan is None:
        plan = _plans[cls] = {}
        for name, field in cls.OPERANDS.items():
            fixed = field.dtype if isinstance(field.dtype, Dtype) else None
            dtype = None if fixed is not None else str(field.dtype)
            limit = limit_of(field) if isinstance(field, Pattern) else Limit(0, 0, 0, 0)
            pointer = isinstance(field, Pointer)
            plan[name] = _Operand(name, field.offset, pointer, dtype, fixed, field.partitions, limit)
    return plan


def pad(address: int, dims: Dims, length: int, filler: int) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Return a pattern, innermost first, filled up with dimensions of one element."""
    steps = [step for step, _ in dims]
    counts = [count for _, count in dims]
    steps.reverse()
    counts.reverse()
    if len(dims) < length:
        missing = length - len(dims)
        steps += [filler] * missing
        counts += [1] * missing
    return address, tuple(steps), tuple(counts)


class Plan(NamedTuple):
    """All that operations of one shape share: words, usually one, and what they read, then what they write."""

    templates: tuple[Template, ...]
    accesses: tuple[Access, ...]
    writes: tuple[int, ...]


class Encoder:
    """Encode the compute operations of one program; operations of one shape share their work."""

    def __init__(self, functions: dict[str, int]) -> None:
        self.functions = functions
        self._known: dict[Any, Plan] = {}

    def encode(self, op: ComputeOp) -> Plan:
        """Return the words of an operation without addresses; operands are numbered as the operation has them.

        Raises BuildError, with the kernel line, for what no word can hold.
        """
        fields, operands = op.fields, op.operands
        values = fields.values()
        # Types too, since 1 and 1.0 are equal and their bits are not.
        parts: list[object] = [op.instruction, op.engine, *fields, *operands, *values, *map(type, values),
                               *map(_FORM, operands.values())]  # fmt: skip
        if 0.0 in values:  # the two zeros are equal as well
            parts += [value.hex() for value in values if isinstance(value, float)]
        key = tuple(parts)
        try:
            plan = self._known.get(key)
        except TypeError:  # a list among the fields
            key = tuple([tuple(part) if isinstance(part, list) else part for part in parts])
            plan = self._known.get(key)
        if plan is None:
            code = self.functions[str(fields["function"])] if "function" in fields else None
            plan = _encoded.get((key, code))
            if plan is None:
                plan = _plan_of(op, self.functions)
                keep(_encoded, (key, code), plan)
            self._known[key] = plan
        return plan


def _plan_of(op: ComputeOp, functions: dict[str, int]) -> Plan:
    if op.engine not in op.instruction.ENGINES:
        raise refuse(op, f"does not run on {op.engine}")
    views = list(op.operands.values())
    roles = [op.instruction.OPERANDS[name].role for name in op.operands if name in op.instruction.OPERANDS]
    return Plan(
        tuple(_templates(op, functions)),
        tuple(
            [
                access_to(number, views[number].dims, views[number].dtype.size, write)
                for write in (False, True)
                for number, role in enumerate(roles)
                if role != ("read" if write else "write")
            ]
        ),
        tuple(number for number, role in enumerate(roles) if role != "read"),
    )


def _templates(op: ComputeOp, functions: dict[str, int]) -> Iterator[Template]:
    cls = op.instruction
    plan = _plan(cls)
    values: dict[str, Any] = {}
    patterns: list[tuple[_Operand, View]] = []
    pointers: list[Spot] = []
    numbers = {name: number for number, name in enumerate(op.operands)}
    for name, view in op.operands.items():
        operand = plan.get(name)
        if operand is None:
            raise refuse(op, f"has no operand {name}")
        _describe(op, operand, view, values)
        if operand.pointer:
            if elements(view.dims) != 1:
                raise refuse(op, f"operand {name} has {elements(view.dims)} values per partition, needs one")
            values[name] = 0
            pointers.append((operand.offset, numbers[name], 0))
        else:
            patterns.append((operand, view))
    _fields(op, cls, values, functions)
    for number, piece in enumerate(_pieces(op, cls, patterns, values)):
        spots = list(pointers)
        for (operand, view), offset, dims in zip(patterns, piece.offsets, piece.dims, strict=True):
            values[operand.name] = pad(0, dims, operand.limit.dims, 1)
            spots.append((operand.offset, numbers[operand.name], offset * view.dtype.size))
        if cls is Memset:
            values["count"] = elements(piece.dims[0])
        # only the first word of several may reset the accumulators
        elif number == 1 and values.get("reduce_command") == ReduceCommand.RESET_REDUCE:
            values["reduce_command"] = ReduceCommand.REDUCE
        yield template_of(cls(**values).raw, spots)


def _describe(op: ComputeOp, operand: _Operand, view: View, values: dict[str, Any]) -> None:
    """Set an operand's element type and partitions; operands that share a field have to agree."""
    name = operand.name
    if values.setdefault(operand.partitions, view.partitions) != view.partitions:
        wanted = values[operand.partitions]
        raise refuse(op, f"operands differ in partitions ({wanted} and {view.partitions} in {name})")
    if operand.dtype is not None:
        if values.setdefault(operand.dtype, view.dtype) is not view.dtype:
            raise refuse(op, f"operand {name} is {view.dtype.spelling}, needs {values[operand.dtype].spelling}")
    elif operand.fixed is not None and view.dtype is not operand.fixed:
        raise refuse(op, f"operand {name} is {view.dtype.spelling}, needs {operand.fixed.spelling}")


def _fields(op: ComputeOp, cls: type[Instruction], values: dict[str, Any], functions: dict[str, int]) -> None:
    for name, value in op.fields.items():
        if name == "function":
            values[name] = functions[str(value)]
            continue
        field = cls.FIELDS.get(name)
        if field is None:
            raise refuse(op, f"has no field {name}")
        if isinstance(field, Immediate) and isinstance(value, int):
            # A zero has the same bits in every type; a filled word without our flag is one that real files hold too.
            if value or cls is not Memset:
                values[name] = Bits(value)
        elif value is not None:
            values[name] = value
    if cls is Activate and "bias_pointer" not in op.operands:
        values["no_bias"] = 1


def _pieces(
    op: ComputeOp, cls: type[Instruction], patterns: list[tuple[_Operand, View]], values: dict[str, Any]
) -> list[Piece]:
    limits = [operand.limit for operand, _ in patterns]
    if cls is TensorReduce:
        return _reduction(op, patterns, values)
    if not cls.CUTS:
        return _alone(op, patterns, limits)
    shared = common([view.dims for _, view in patterns])
    if shared is None:
        if len({elements(view.dims) for _, view in patterns}) > 1:
            counts = " and ".join(str(elements(view.dims)) for _, view in patterns)
            raise refuse(op, f"operands differ in elements per partition ({counts})")
        return _alone(op, patterns, limits)
    pieces = split(shared, limits)
    if len(pieces) > 1 and cls is TensorTensorScan:
        raise refuse(op, "needs more dimensions than its word has, and a scan cannot be cut")
    if len(pieces) > 1 and cls is ActivationExtended and values.get("reduce_command") == ReduceCommand.LOAD_REDUCE:
        raise refuse(op, "needs more dimensions than its word has")
    return pieces


def _alone(op: ComputeOp, patterns: list[tuple[_Operand, View]], limits: list[Limit]) -> list[Piece]:
    """Return one piece with every pattern for itself; the engine walks them side by side."""
    dims = tuple(merge(view.dims) for _, view in patterns)
    if any(len(split([one], [limit])) > 1 for one, limit in zip(dims, limits, strict=True)):
        raise refuse(op, "needs more dimensions than its word has")
    return [Piece((0,) * len(dims), dims)]


def _reduction(op: ComputeOp, patterns: list[tuple[_Operand, View]], values: dict[str, Any]) -> list[Piece]:
    """Return pieces that cut the kept dimensions only; sets `dims` to the folded dimensions left after merging."""
    order = [operand.name for operand, _ in patterns]
    if sorted(order) != ["dst", "src"]:
        raise refuse(op, "needs src and dst")
    source, target = patterns[order.index("src")], patterns[order.index("dst")]
    folding = int(values.get("dims", ReduceDims.X)) - ReduceDims.X + 1
    view = source[1]
    folded = merge(view.dims[len(view.dims) - folding :])
    kept = view.dims[: max(len(view.dims) - folding, 0)]
    shared = common([kept, target[1].dims])
    if shared is None:
        raise refuse(op, f"keeps {elements(kept)} elements per partition, dst has {elements(target[1].dims)}")
    wide = source[0].limit
    if (len(folded) >= wide.dims and elements(kept) > 1) or len(split([folded], [wide])) > 1:
        raise refuse(op, "folds more dimensions than its word has")
    values["dims"] = ReduceDims(ReduceDims.X + len(folded) - 1)
    room = wide._replace(dims=max(wide.dims - len(folded), 1))
    pieces = []
    for piece in split(shared, [room, target[0].limit]):
        own = piece.dims[0] if elements(piece.dims[0]) > 1 else ()
        both = {"src": (piece.offsets[0], own + folded), "dst": (piece.offsets[1], piece.dims[1])}
        pieces.append(Piece(tuple(both[name][0] for name in order), tuple(both[name][1] for name in order)))
    return pieces


def refuse(op: Any, what: str) -> BuildError:
    """Return the error for an operation that no word can hold."""
    label = op.instruction.NAME if isinstance(op, ComputeOp) else type(op).__name__
    return BuildError(f"{op.source[0]}:{op.source[1]}: {label} {what}")
