"""Shapes and literals as HLO text."""

from __future__ import annotations

from typing import Any

from formats.errors import FormatError
from formats.hlo.literals import Literal, dtype_of
from formats.hlo.shapes import MOST_DIMENSION, MOST_RANK, Layout, PrimitiveType, ProgramShape, Shape, tuple_of
from formats.hlo.text.lexer import Lexer

__all__ = ["elided", "literal_text", "parse_literal", "parse_program_shape", "parse_shape", "shape_text"]

_TYPES = {each.text: each for each in PrimitiveType if each is not PrimitiveType.INVALID}
_MOST_DEPTH = 100


def shape_text(shape: Shape, *, layout: bool = True) -> str:
    """Return a shape as XLA prints it: f32[3,5]{1,0}."""
    if shape.is_tuple:
        parts = [
            (f"/*index={n}*/" if n and n % 5 == 0 else "") + shape_text(part, layout=layout)
            for n, part in enumerate(shape.tuple_shapes)
        ]
        return f"({', '.join(parts)})"
    return str(shape) + (_layout_text(shape) if layout and shape.is_array else "")


def _layout_text(shape: Shape) -> str:
    stated = shape.layout or Layout(tuple(range(shape.rank - 1, -1, -1)))
    extra = "".join(f"({','.join(map(str, tile))})" for tile in stated.tiles)
    extra = (f"T{extra}" if extra else "") + (f"S({stated.memory_space})" if stated.memory_space else "")
    if not shape.rank and not extra:
        return ""
    return f"{{{','.join(map(str, stated.minor_to_major))}{':' + extra if extra else ''}}}"


def parse_shape(lexer: Lexer, depth: int = 0) -> Shape:
    """Return a shape."""
    if depth > _MOST_DEPTH:
        lexer.fail("tuples nest too deep")
    if lexer.accept("("):
        parts: list[Shape] = []
        while not lexer.accept(")"):
            if parts:
                lexer.need(",")
            parts.append(parse_shape(lexer, depth + 1))
        return tuple_of(*parts)
    word = lexer.name()
    element_type = _TYPES.get(word)
    if element_type is None or element_type is PrimitiveType.TUPLE:
        lexer.fail("unknown element type", expected=f"a type, not {word[:20]!r}")
    lexer.need("[")
    dimensions: list[int] = []
    dynamic: list[bool] = []
    while not lexer.accept("]"):
        if dimensions:
            lexer.need(",")
        if lexer.accept("?"):
            dimensions.append(-1)
            dynamic.append(True)
            continue
        dynamic.append(lexer.accept("<="))
        dimensions.append(lexer.integer(0, MOST_DIMENSION))
    if len(dimensions) > MOST_RANK:
        lexer.fail("impossible number of dimensions")
    layout = _parse_layout(lexer, len(dimensions)) if lexer.touches("{") and element_type.is_array else None
    return Shape(element_type, tuple(dimensions), dynamic=tuple(dynamic) if any(dynamic) else (), layout=layout)


def _parse_layout(lexer: Lexer, rank: int) -> Layout:
    lexer.need("{")
    order: list[int] = []
    while lexer.here.kind == "number":
        order.append(lexer.integer(0, max(rank - 1, 0)))
        if not lexer.accept(","):
            break
    tiles: list[tuple[int, ...]] = []
    space = bits = 0
    if lexer.accept(":"):
        while not lexer.at("}"):
            word = lexer.name()
            if word == "T":
                while lexer.at("("):
                    tiles.append(_numbers(lexer, "(", ")"))
            elif word in ("S", "E"):
                value = _numbers(lexer, "(", ")")
                space, bits = (value[0], bits) if word == "S" and value else (space, value[0] if value else 0)
            else:
                lexer.fail("unknown part of a layout", expected="T, S or E")
    lexer.need("}")
    if sorted(order) != list(range(rank)):
        lexer.fail("the layout names other dimensions than the shape has", expected=f"each of {rank} once")
    return Layout(tuple(order), tuple(tiles), bits, space)


def _numbers(lexer: Lexer, left: str, right: str) -> tuple[int, ...]:
    found: list[int] = []
    lexer.need(left)
    while not lexer.accept(right):
        if found:
            lexer.need(",")
        found.append(lexer.integer())
    return tuple(found)


def parse_program_shape(lexer: Lexer) -> ProgramShape:
    """Return parameters and result: (f32[3])->f32[]."""
    parameters = parse_shape(lexer)
    lexer.need("->")
    return ProgramShape(parameters.tuple_shapes, parse_shape(lexer))


elided = "{...}"


def literal_text(literal: Literal, most: int | None = None) -> str:
    """Return the elements as XLA prints them; `{...}` where there are more than `most`."""
    shape = literal.shape
    if shape.is_tuple:
        parts = [literal_text(part, most) for part in literal.parts]
        return f"({', '.join(parts)})"
    if not shape.is_array:
        return ""
    if most is not None and shape.size > most:
        return elided
    values = literal.array()
    if shape.element_type is PrimitiveType.PRED and shape.rank:
        values = values.astype("int8")
    return _nested(values)


def _nested(values: Any) -> str:
    if values.ndim == 0:
        return _element(values[()])
    if values.ndim == 1:
        return f"{{{', '.join(_element(each) for each in values)}}}"
    return f"{{ {', '.join(_nested(each) for each in values)} }}"


def _element(value: Any) -> str:
    name = type(value).__name__
    if name == "bool":
        return "true" if value else "false"
    if "complex" in name:
        return f"({_element(value.real)}, {_element(value.imag)})"
    if "int" in name:
        return str(int(value))
    import numpy as np  # deferred: start-up

    number = value if name in ("float64", "float32", "float16") else np.float32(value)
    if np.isnan(number):
        return "-nan" if np.signbit(number) else "nan"
    return str(number).removesuffix(".0").replace("e+", "e")


def parse_literal(lexer: Lexer, shape: Shape, depth: int = 0) -> Literal:
    """Return a literal of a shape that is known."""
    import numpy as np  # deferred: start-up

    if shape.is_tuple:
        lexer.need("(")
        parts = []
        for number, part in enumerate(shape.tuple_shapes):
            if number:
                lexer.need(",")
            parts.append(parse_literal(lexer, part, depth + 1))
        lexer.need(")")
        return Literal(shape, parts=tuple(parts))
    if not shape.is_array:
        return Literal(shape)
    if shape.is_dynamic:
        lexer.fail("a literal has a dynamic dimension")
    start = lexer.here.offset
    values: list[complex | int | float] = []
    if shape.size <= len(lexer.text):  # each element takes a character at least
        _elements(lexer, shape, 0, values)
    if len(values) != shape.size:
        lexer.fail_at(start, "a literal has other elements than its shape", expected=str(shape.size))
    kind = dtype_of(shape.element_type)
    if shape.element_type.is_integral and not all(isinstance(each, int) for each in values):
        lexer.fail_at(start, "a fraction in a literal of integers")
    try:
        with np.errstate(all="ignore"):
            given = np.array(values, _carrier(shape.element_type))
            whole = given.astype(kind)
        fits = _fits(shape.element_type, given, whole)
    except (OverflowError, ValueError):
        fits = False
    if not fits:
        raise FormatError("a literal's element does not fit its type", field=shape.element_type.text)
    return Literal(shape, whole.tobytes())


def _fits(kind: PrimitiveType, given: Any, whole: Any) -> bool:
    """Return whether no element wrapped, or became infinite or no number.  A float may lose digits."""
    import numpy as np  # deferred: start-up

    if kind.is_integral and kind.bits < 8:
        return bool(np.array_equal(whole.astype(np.int8), given))
    if kind.is_float and kind is not PrimitiveType.F8E8M0FNU:  # which has no sign and no zero
        return bool(np.isfinite(whole[np.isfinite(given)].astype(np.float64)).all())
    return True


def _carrier(element_type: PrimitiveType) -> str:
    if element_type.is_complex:
        return "complex128"
    if element_type.is_integral and element_type.bits >= 8:
        return element_type.numpy_name
    return "int8" if element_type.is_integral else "float64" if element_type.is_float else "bool"


def _elements(lexer: Lexer, shape: Shape, dim: int, values: list[complex | int | float]) -> None:
    if dim == shape.rank:
        values.append(_number(lexer, shape.element_type))
        return
    lexer.need("{")
    for number in range(shape.dimensions[dim]):
        if number:
            lexer.need(",")
        _elements(lexer, shape, dim + 1, values)
    lexer.need("}")


def _number(lexer: Lexer, element_type: PrimitiveType) -> complex | int | float:
    if lexer.at("true", "false"):
        return int(lexer.boolean())
    if element_type.is_complex and lexer.accept("("):
        real = _number(lexer, PrimitiveType.F64)
        lexer.need(",")
        imaginary = _number(lexer, PrimitiveType.F64)
        lexer.need(")")
        return complex(real, imaginary)
    text = lexer.kind("number", "a number")
    if element_type.is_integral or element_type is PrimitiveType.PRED:
        try:
            return int(text)
        except ValueError:
            return float(text)
    text = text.split("(")[0]
    return float(int(text, 16)) if "0x" in text else float(text)
