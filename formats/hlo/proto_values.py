"""Protos to values and back: shapes, literals, attributes.  What a field holds is checked where it enters."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from formats.errors import FormatError
from formats.hlo.literals import Literal, dtype_of
from formats.hlo.shapes import MOST_DIMENSION, MOST_RANK, Layout, PrimitiveType, ProgramShape, Shape

__all__ = [
    "has_unknown_fields",
    "literal_from",
    "literal_into",
    "program_shape_from",
    "program_shape_into",
    "shape_from",
    "shape_into",
    "value_from",
    "value_into",
]

_UNBOUNDED = -(1 << 63)  # how the protos write a dimension without an upper bound
# fmt: off
_VARINTS = {PrimitiveType.S32: "s32s", PrimitiveType.S64: "s64s", PrimitiveType.U32: "u32s", PrimitiveType.U64: "u64s"}
_CHUNKS = {PrimitiveType.PRED: "preds", PrimitiveType.F32: "f32s", PrimitiveType.F64: "f64s",
           PrimitiveType.C64: "c64s", PrimitiveType.C128: "c128s"}
# fmt: on

T = TypeVar("T")


def value_from(kind: type[T], message: Any) -> T:
    """Return a message as a value whose fields have the names of the message's."""
    values = []
    for field in _names(kind):
        value = getattr(message, field)
        values.append(value if isinstance(value, int | bool | str) else tuple(value))
    return kind(*values)


def value_into(value: Any, message: Any) -> None:
    """Set the fields of a message from a value of the same names; what is nought stays unset."""
    for field in _names(type(value)):
        stated = getattr(value, field)
        if isinstance(stated, tuple):
            getattr(message, field).extend(stated)
        elif stated:
            setattr(message, field, stated)


_NAMES: dict[type, tuple[str, ...]] = {}


def _names(kind: type) -> tuple[str, ...]:
    if kind not in _NAMES:
        _NAMES[kind] = getattr(kind, "_fields", ()) or tuple(field.name for field in dataclasses.fields(kind))
    return _NAMES[kind]


def has_unknown_fields(message: Any) -> bool:
    """Return whether a message has fields that are not declared."""
    from google.protobuf.unknown_fields import UnknownFieldSet  # deferred: start-up

    return bool(len(UnknownFieldSet(message)))


def shape_from(message: Any, where: str) -> Shape:
    """Return a shape.  Raises FormatError for an unknown element type and impossible dimensions."""
    try:
        element_type = PrimitiveType(message.element_type)
    except ValueError:
        raise FormatError("unknown element type", field=where, got=message.element_type) from None
    if element_type is PrimitiveType.INVALID:
        raise FormatError("the shape has no element type", field=where)
    if element_type is PrimitiveType.TUPLE:
        return Shape(element_type, tuple_shapes=tuple(shape_from(part, where) for part in message.tuple_shapes))
    dimensions = tuple(message.dimensions)
    dynamic = tuple(message.is_dynamic_dimension) if any(message.is_dynamic_dimension) else ()
    if len(dimensions) > MOST_RANK or (dynamic and len(dynamic) != len(dimensions)):
        raise FormatError("impossible number of dimensions", field=where, got=len(dimensions))
    if dynamic:
        dimensions = tuple(
            -1 if free and size == _UNBOUNDED else size for size, free in zip(dimensions, dynamic, strict=True)
        )
    for size, free in zip(dimensions, dynamic or (False,) * len(dimensions), strict=True):
        if not (0 <= size <= MOST_DIMENSION or (free and size == -1)):
            raise FormatError("impossible dimension", field=where, expected=f"0 to {MOST_DIMENSION}", got=size)
    return Shape(element_type, dimensions, dynamic=dynamic, layout=_layout_from(message, len(dimensions), where))


def _layout_from(message: Any, rank: int, where: str) -> Layout | None:
    if not message.HasField("layout"):
        return None
    layout = message.layout
    order = tuple(layout.minor_to_major)
    if sorted(order) != list(range(rank)) and order:
        raise FormatError("the layout names other dimensions than the shape has", field=where, got=list(order)[:8])
    tiles = tuple(tuple(tile.dimensions) for tile in layout.tiles)
    return Layout(order, tiles, layout.element_size_in_bits, layout.memory_space)


def shape_into(shape: Shape, message: Any) -> None:
    """Set a message to a shape; arrays without a stated layout get the default one, as XLA writes it."""
    message.element_type = int(shape.element_type)
    if shape.is_tuple:
        for part in shape.tuple_shapes:
            shape_into(part, message.tuple_shapes.add())
        return
    if not shape.is_array:
        return
    message.dimensions.extend(_UNBOUNDED if size < 0 else size for size in shape.dimensions)
    message.is_dynamic_dimension.extend(shape.dynamic or (False,) * shape.rank)
    layout = shape.layout or Layout(tuple(range(shape.rank - 1, -1, -1)))
    message.layout.SetInParent()
    message.layout.minor_to_major.extend(layout.minor_to_major)
    for tile in layout.tiles:
        message.layout.tiles.add().dimensions.extend(tile)
    if layout.element_size_in_bits:
        message.layout.element_size_in_bits = layout.element_size_in_bits
    if layout.memory_space:
        message.layout.memory_space = layout.memory_space


def program_shape_from(message: Any, where: str) -> ProgramShape:
    """Return the shapes of parameters and result."""
    parameters = tuple(shape_from(each, where) for each in message.parameters)
    return ProgramShape(parameters, shape_from(message.result, where), tuple(message.parameter_names))


def program_shape_into(shape: ProgramShape, message: Any) -> None:
    """Set a message to the shapes of parameters and result."""
    for parameter in shape.parameters:
        shape_into(parameter, message.parameters.add())
    shape_into(shape.result, message.result)
    message.parameter_names.extend(shape.parameter_names)


def literal_from(message: Any, where: str) -> Literal:
    """Return a literal, its elements brought to row-major order.  Raises FormatError where they are too few or many."""
    shape = shape_from(message.shape, where)
    if shape.is_tuple:
        if len(message.tuple_literals) != len(shape.tuple_shapes):
            raise FormatError("a tuple has other parts than its shape", field=where, expected=len(shape.tuple_shapes),
                              got=len(message.tuple_literals))  # fmt: skip
        return Literal(shape, parts=tuple(literal_from(part, where) for part in message.tuple_literals))
    if not shape.is_array:
        return Literal(shape)
    if shape.is_dynamic:
        raise FormatError("a literal has a dynamic dimension", field=where)
    if (element_type := shape.element_type) in _VARINTS:
        data = _whole_numbers(getattr(message, _VARINTS[element_type]), shape, where)
    elif element_type in _CHUNKS:
        data = b"".join(getattr(message, _CHUNKS[element_type]))
    else:
        data = getattr(message, f"{element_type.text}s")
    if element_type.bits < 8:
        data = _unpacked(data, shape, where)
    need = shape.size * max(element_type.bits // 8, 1)
    if len(data) != need:
        raise FormatError("a literal has other bytes than its shape", field=where, expected=need, got=len(data))
    if element_type is PrimitiveType.PRED and data.translate(None, b"\x00\x01"):
        raise FormatError("a predicate is neither 0 nor 1", field=where)
    return Literal(shape, _turned(data, shape, row_major=True))


def _whole_numbers(numbers: Any, shape: Shape, where: str) -> bytes:
    import numpy as np  # deferred: start-up

    if len(numbers) != shape.size:
        raise FormatError("a literal has other elements than its shape", field=where, expected=shape.size,
                          got=len(numbers))  # fmt: skip
    return np.array(numbers, dtype_of(shape.element_type)).tobytes()


def _unpacked(data: bytes, shape: Shape, where: str) -> bytes:
    """Return types below eight bits with one byte an element, the sign extended.  The first is in the low bits."""
    import numpy as np  # deferred: start-up

    bits = shape.element_type.bits
    if len(data) != shape.nbytes:
        raise FormatError("a literal has other bytes than its shape", field=where, expected=shape.nbytes, got=len(data))
    each = np.frombuffer(data, np.uint8)[:, None] >> np.arange(0, 8, bits, dtype=np.uint8) & ((1 << bits) - 1)
    values = each.reshape(-1)[: shape.size].astype(np.uint8)
    if shape.element_type.is_signed:
        values = np.where(values >> (bits - 1), values | (0xFF << bits & 0xFF), values).astype(np.uint8)
    return values.tobytes()


def _packed(data: bytes, shape: Shape) -> bytes:
    import numpy as np  # deferred: start-up

    bits = shape.element_type.bits
    values = np.frombuffer(data, np.uint8) & ((1 << bits) - 1)
    values = np.concatenate([values, np.zeros(-len(values) % (8 // bits), np.uint8)]).reshape(-1, 8 // bits)
    packed = np.bitwise_or.reduce(values << np.arange(0, 8, bits, dtype=np.uint8), axis=1)
    return bytes(packed.astype(np.uint8).tobytes())


def _turned(data: bytes, shape: Shape, *, row_major: bool) -> bytes:
    """Return elements that lie as the layout says in row-major order, or the other way round."""
    if shape.layout is None or not shape.layout.minor_to_major or shape.rank < 2 or shape.layout.is_default:
        return data
    import numpy as np  # deferred: start-up

    order = shape.layout.minor_to_major[::-1]  # slowest first
    whole = np.frombuffer(data, np.dtype((np.void, max(shape.element_type.bits // 8, 1))))
    if row_major:
        back = [order.index(dim) for dim in range(shape.rank)]
        return whole.reshape([shape.dimensions[dim] for dim in order]).transpose(back).tobytes()
    return whole.reshape(shape.dimensions).transpose(order).tobytes()


def literal_into(literal: Literal, message: Any) -> None:
    """Set a message to a literal."""
    shape = literal.shape
    shape_into(shape, message.shape)
    for part in literal.parts:
        literal_into(part, message.tuple_literals.add())
    if not shape.is_array:
        return
    data = _turned(literal.data, shape, row_major=False)
    if shape.element_type in _VARINTS:
        import numpy as np  # deferred: start-up

        numbers = np.frombuffer(data, dtype_of(shape.element_type)).tolist()
        getattr(message, _VARINTS[shape.element_type]).extend(numbers)
    elif shape.element_type in _CHUNKS:
        if data:
            getattr(message, _CHUNKS[shape.element_type]).append(data)
    else:
        packed = _packed(data, shape) if shape.element_type.bits < 8 else data
        setattr(message, f"{shape.element_type.text}s", packed)
