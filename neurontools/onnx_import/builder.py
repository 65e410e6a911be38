"""Build HLO as NumPy code reads: tensors with operators, broadcasting, and shapes that are inferred."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from formats.errors import FormatError, UnsupportedError
from formats.hlo import Computation, Instruction, PrimitiveType, Shape, dtype_of, literal_of
from formats.hlo.attributes import DotDimensionNumbers, PaddingDimension, SliceDimension
from formats.hlo.infer import MismatchError, inferred
from neurontools.hlo_interpreter import Interpreter
from neurontools.hlo_interpreter.registry import OPERATIONS

__all__ = ["Builder", "NeedsValueError", "Tensor", "axis_of", "common", "integer_range", "neutral"]

Number = int | float | bool


def common(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that NumPy broadcasts these to.  Raises FormatError where there is none."""
    try:
        return np.broadcast_shapes(*(tuple(shape) for shape in shapes))
    except ValueError:
        raise FormatError("shapes do not broadcast", got=" and ".join(str(list(each)) for each in shapes)) from None


def axis_of(axis: int, rank: int) -> int:
    """Return an axis counted from the front.  Raises FormatError where there is none."""
    if not -rank <= axis < rank:
        raise FormatError("an axis that is not there", expected=f"within {rank}", got=axis)
    return axis % rank


class NeedsValueError(Exception):
    """Say that a shape depends on a parameter: the module must be made for one value of it."""

    def __init__(self, parameter: int) -> None:
        self.parameter = parameter
        super().__init__(parameter)


class Builder:
    """Instructions of one computation, in order, and the bodies they call."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.bodies: dict[str, Computation] = {}
        self._values: dict[Instruction, Any] = {}

    def emit(self, opcode: str, operands: Sequence[Tensor] = (), shape: Shape | None = None, **fields: Any) -> Tensor:
        """Add an instruction; its shape is inferred where none is given, and checked either way."""
        found = Instruction(f"{opcode}.{len(self.instructions) + 1}", opcode, shape or Shape(PrimitiveType.TOKEN),
                            [each.at for each in operands])  # fmt: skip
        for field, value in fields.items():
            setattr(found, field, value)
        try:
            rule = inferred(found)
        except MismatchError as error:
            raise FormatError(f"{opcode}: {error}") from None
        if shape is None:
            if rule is None:
                raise UnsupportedError(f"{opcode}: its shape must be given")
            found.shape = rule
        elif rule is not None and rule != shape:
            raise FormatError(f"{opcode}: {rule} where {shape} is wanted")
        self.instructions.append(found)
        return Tensor(self, found)

    def parameter(self, number: int, shape: Shape, name: str) -> Tensor:
        """Add a parameter."""
        return self.emit("parameter", (), shape, parameter_number=number, frontend_attributes={"onnx_name": name})

    def constant(self, values: Any, element_type: PrimitiveType | None = None) -> Tensor:
        """Add a constant."""
        array = np.asarray(values)
        if element_type is not None:
            # A factor of 0.5 beside integers (the alpha of a Gemm) would become 0.
            if element_type.is_integral and isinstance(values, float) and not values.is_integer():
                raise UnsupportedError(f"{values} beside {element_type.text} is not modelled")
            array = array.astype(dtype_of(element_type))
        literal = literal_of(array)
        return self.emit("constant", (), literal.shape, literal=literal)

    def iota(self, element_type: PrimitiveType, dimensions: Sequence[int], along: int) -> Tensor:
        """Count along one dimension."""
        return self.emit("iota", (), Shape(element_type, tuple(dimensions)), dimensions=(along,))

    def body(self, opcode: str, element_type: PrimitiveType) -> Computation:
        """Return a computation of one operation of two scalars."""
        name = f"{opcode}_{element_type.text}"
        if name not in self.bodies:
            scalar = Shape(element_type)
            a = Instruction(f"{name}.a", "parameter", scalar)
            b = Instruction(f"{name}.b", "parameter", scalar, parameter_number=1)
            root = b if opcode == "second" else Instruction(f"{name}.r", opcode, scalar, [a, b])
            self.bodies[name] = Computation(name, [a, b] if root is b else [a, b, root], root)
        return self.bodies[name]

    def static(self, tensor: Tensor) -> np.ndarray[Any, Any]:
        """Return a value that no parameter decides.  Raises NeedsValueError with the parameter that does."""
        # A stack of its own: chains of shape arithmetic in real models are deeper than Python's recursion.
        stack = [tensor.at]
        while stack:
            each = stack[-1]
            if each.opcode == "parameter":
                raise NeedsValueError(each.parameter_number)
            missing = [operand for operand in each.operands if operand not in self._values]
            if missing:
                stack += missing
                continue
            stack.pop()
            if each not in self._values:
                operands = [self._values[operand] for operand in each.operands]
                with np.errstate(all="ignore"):
                    self._values[each] = OPERATIONS[each.opcode](each, operands, Interpreter())
        return np.asarray(self._values[tensor.at])


class Tensor:
    """A value under construction."""

    __slots__ = ("at", "to")

    def __init__(self, to: Builder, at: Instruction) -> None:
        self.to, self.at = to, at

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the dimensions."""
        return self.at.shape.dimensions

    @property
    def rank(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    @property
    def kind(self) -> PrimitiveType:
        """Return the element type."""
        return self.at.shape.element_type

    def axis(self, axis: int) -> int:
        """Return an axis counted from the front.  Raises FormatError where there is none."""
        return axis_of(axis, self.rank)

    # Elements ------------------------------------------------------------------------------------------------------

    def unary(self, opcode: str) -> Tensor:
        """Apply an operation to each element."""
        return self.to.emit(opcode, [self])

    def _pair(self, other: Tensor | Number) -> tuple[Tensor, Tensor]:
        if not isinstance(other, Tensor):
            other = self.to.constant(other, self.kind)
        shape = common(self.shape, other.shape)
        return self.expand(shape), other.expand(shape)

    def binary(self, opcode: str, other: Tensor | Number) -> Tensor:
        """Apply an operation to pairs of elements, broadcast as NumPy does."""
        return self.to.emit(opcode, self._pair(other))

    def compare(self, direction: str, other: Tensor | Number) -> Tensor:
        """Compare pairs of elements."""
        return self.to.emit("compare", self._pair(other), comparison_direction=direction)

    def __add__(self, other: Tensor | Number) -> Tensor:
        return self.binary("add", other)

    def __sub__(self, other: Tensor | Number) -> Tensor:
        return self.binary("subtract", other)

    def __mul__(self, other: Tensor | Number) -> Tensor:
        return self.binary("multiply", other)

    def __truediv__(self, other: Tensor | Number) -> Tensor:
        return self.binary("divide", other)

    def __neg__(self) -> Tensor:
        return self.unary("negate")

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: Number) -> Tensor:
        return self.to.constant(other, self.kind).expand(self.shape) - self

    def __rtruediv__(self, other: Number) -> Tensor:
        return self.to.constant(other, self.kind).expand(self.shape) / self

    def __and__(self, other: Tensor) -> Tensor:
        return self.binary("and", other)

    def __or__(self, other: Tensor) -> Tensor:
        return self.binary("or", other)

    def __lt__(self, other: Tensor | Number) -> Tensor:
        return self.compare("LT", other)

    def __le__(self, other: Tensor | Number) -> Tensor:
        return self.compare("LE", other)

    def __gt__(self, other: Tensor | Number) -> Tensor:
        return self.compare("GT", other)

    def __ge__(self, other: Tensor | Number) -> Tensor:
        return self.compare("GE", other)

    def equals(self, other: Tensor | Number) -> Tensor:
        """Compare for equality."""
        return self.compare("EQ", other)

    def maximum(self, other: Tensor | Number) -> Tensor:
        """Return the larger of pairs."""
        return self.binary("maximum", other)

    def minimum(self, other: Tensor | Number) -> Tensor:
        """Return the smaller of pairs."""
        return self.binary("minimum", other)

    def where(self, yes: Tensor | Number, no: Tensor | Number) -> Tensor:
        """Choose elements by this predicate."""
        known = yes if isinstance(yes, Tensor) else no
        if not isinstance(known, Tensor):
            raise FormatError("a choice between two numbers has no type")
        yes = yes if isinstance(yes, Tensor) else self.to.constant(yes, known.kind)
        no = no if isinstance(no, Tensor) else self.to.constant(no, known.kind)
        shape = common(self.shape, yes.shape, no.shape)
        return self.to.emit("select", [self.expand(shape), yes.expand(shape), no.expand(shape)])

    def cast(self, kind: PrimitiveType) -> Tensor:
        """Convert elements."""
        if kind is self.kind:
            return self
        return self.to.emit("convert", [self], Shape(kind, self.shape))

    # Shapes --------------------------------------------------------------------------------------------------------

    def reshape(self, shape: Sequence[int]) -> Tensor:
        """Take the elements as another shape."""
        if tuple(shape) == self.shape:
            return self
        return self.to.emit("reshape", [self], Shape(self.kind, tuple(int(size) for size in shape)))

    def transpose(self, order: Sequence[int]) -> Tensor:
        """Reorder dimensions."""
        if list(order) == list(range(self.rank)):
            return self
        return self.to.emit("transpose", [self], dimensions=tuple(int(dim) for dim in order))

    def move(self, source: int, target: int) -> Tensor:
        """Move one dimension elsewhere."""
        order = [dim for dim in range(self.rank) if dim != self.axis(source)]
        order.insert(target % self.rank, self.axis(source))
        return self.transpose(order)

    def expand(self, shape: Sequence[int]) -> Tensor:
        """Repeat to a larger shape, as NumPy broadcasts."""
        shape = tuple(int(size) for size in shape)
        if shape == self.shape:
            return self
        # HLO's broadcast repeats along new dimensions only: those of one element that grow are taken out first.
        kept = [dim for dim, size in enumerate(self.shape) if size != 1 or shape[len(shape) - self.rank + dim] == 1]
        core = self.reshape([self.shape[dim] for dim in kept])
        at = tuple(len(shape) - self.rank + dim for dim in kept)
        return self.to.emit("broadcast", [core], Shape(self.kind, shape), dimensions=at)

    def put(self, shape: Sequence[int], at: Sequence[int]) -> Tensor:
        """Repeat along the dimensions of a shape that `at` does not name."""
        return self.to.emit("broadcast", [self], Shape(self.kind, tuple(shape)), dimensions=tuple(at))

    def unsqueeze(self, axis: int) -> Tensor:
        """Put in a dimension of one element."""
        at = axis_of(axis, self.rank + 1)
        return self.reshape((*self.shape[:at], 1, *self.shape[at:]))

    def slice(self, axis: int, start: int, limit: int, stride: int = 1) -> Tensor:
        """Take a part of one dimension."""
        axis = self.axis(axis)
        parts = [SliceDimension(0, size, 1) for size in self.shape]
        parts[axis] = SliceDimension(start, max(start, limit), stride)
        return self.to.emit("slice", [self], slices=tuple(parts))

    def pad(self, amounts: Sequence[tuple[int, int]], value: Tensor | Number = 0, between: int = 0) -> Tensor:
        """Put a value around elements."""
        fill = value if isinstance(value, Tensor) else self.to.constant(value, self.kind)
        rows = tuple(PaddingDimension(low, high, between) for low, high in amounts)
        return self.to.emit("pad", [self, fill], padding=rows)

    def concatenate(self, others: Sequence[Tensor], axis: int) -> Tensor:
        """Put tensors behind this one."""
        if not others:
            return self
        return self.to.emit("concatenate", [self, *others], dimensions=(self.axis(axis),))

    def reverse(self, axis: int) -> Tensor:
        """Turn one dimension round."""
        return self.to.emit("reverse", [self], dimensions=(self.axis(axis),))

    # Sums ----------------------------------------------------------------------------------------------------------

    def reduce(self, opcode: str, axes: Sequence[int], *, keep: bool = False) -> Tensor:
        """Fold dimensions by add, multiply, maximum, minimum, and, or."""
        dims = tuple(sorted({self.axis(axis) for axis in axes}))
        initial = self.to.constant(neutral(opcode, self.kind), self.kind)
        called = [self.to.body(opcode, self.kind)]
        found = self.to.emit("reduce", [self, initial], dimensions=dims, called=called)
        return found.reshape([1 if dim in dims else size for dim, size in enumerate(self.shape)]) if keep else found

    def sum(self, axes: Sequence[int], *, keep: bool = False) -> Tensor:
        """Add up dimensions."""
        return self.reduce("add", axes, keep=keep)

    def mean(self, axes: Sequence[int], *, keep: bool = False) -> Tensor:
        """Return the mean over dimensions."""
        count = int(np.prod([self.shape[self.axis(axis)] for axis in axes], dtype=np.int64))
        return self.sum(axes, keep=keep) / count

    def dot(self, other: Tensor, result: PrimitiveType | None = None) -> Tensor:
        """Multiply matrices, batches broadcast as NumPy's matmul does."""
        left = self.unsqueeze(0) if self.rank == 1 else self
        right = other.unsqueeze(1) if other.rank == 1 else other
        batch = common(left.shape[:-2], right.shape[:-2])
        left, right = left.expand((*batch, *left.shape[-2:])), right.expand((*batch, *right.shape[-2:]))
        dims = tuple(range(len(batch)))
        numbers = DotDimensionNumbers((left.rank - 1,), (right.rank - 2,), dims, dims)
        shape = Shape(result or self.kind, (*batch, left.shape[-2], right.shape[-1]))
        found = self.to.emit("dot", [left, right], shape, dot=numbers)
        size = list(found.shape)
        if other.rank == 1:
            size.pop()
        if self.rank == 1:
            size.pop(-1 if other.rank == 1 else -2)
        return found.reshape(size)

    def element(self, number: int) -> Tensor:
        """Take one part of a tuple."""
        return self.to.emit("get-tuple-element", [self], tuple_index=number)


def integer_range(kind: PrimitiveType) -> tuple[int, int]:
    """Return the least and the largest number of an integer type."""
    sign = int(kind.is_signed)
    return -(sign << (kind.bits - 1)), (1 << (kind.bits - sign)) - 1


def neutral(opcode: str, kind: PrimitiveType) -> Any:
    """Return what a fold begins with."""
    if opcode in ("add", "or"):
        return 0
    if opcode in ("multiply", "and"):
        return 1
    if kind is PrimitiveType.PRED:
        return opcode == "minimum"
    if kind.is_float:
        return -np.inf if opcode == "maximum" else np.inf
    return integer_range(kind)[opcode == "minimum"]
