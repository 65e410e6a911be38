"""Small modules to test with, made by hand."""

from __future__ import annotations

import numpy as np

from formats.hlo import Computation, Instruction, Literal, Module, PrimitiveType, Shape, array, scalar, tuple_of
from formats.hlo.attributes import DotDimensionNumbers, Metadata, WindowDimension
from formats.hlo.literals import literal_of

F32 = PrimitiveType.F32


def parameter(number: int, shape: Shape, name: str = "") -> Instruction:
    return Instruction(name or f"p.{number}", "parameter", shape, parameter_number=number)


def constant(values: object, dtype: object = np.float32, name: str = "c") -> Instruction:
    literal: Literal = literal_of(np.array(values, dtype))
    return Instruction(name, "constant", literal.shape, literal=literal)


def adder(name: str = "add_f32") -> Computation:
    a, b = parameter(0, scalar(F32), f"{name}.a"), parameter(1, scalar(F32), f"{name}.b")
    total = Instruction(f"{name}.sum", "add", scalar(F32), [a, b])
    return Computation(name, [a, b, total], total)


def mlp() -> Module:
    """A dot, a sum over a window, a reduction and a tuple: references, called computations, attributes."""
    add = adder()
    x, w = parameter(0, array(F32, 3, 5)), parameter(1, array(F32, 5, 4))
    zero = constant(0.0, name="zero")
    dot = Instruction("dot.1", "dot", array(F32, 3, 4), [x, w], dot=DotDimensionNumbers((1,), (0,)))
    dot.metadata = Metadata(op_name="jit(f)/dot", source_file="model.py", source_line=42)
    window = (WindowDimension(), WindowDimension(size=2, stride=2))
    pool = Instruction("pool.1", "reduce-window", array(F32, 3, 2), [dot, zero], [add], window=window)
    total = Instruction("sum.1", "reduce", array(F32, 3), [pool, zero], [add], dimensions=(1,))
    root = Instruction("root.1", "tuple", tuple_of(pool.shape, total.shape), [pool, total])
    entry = Computation("main", [x, w, zero, dot, pool, total, root], root)
    return Module("mlp", [add, entry], entry)
