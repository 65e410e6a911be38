"""Graphs written in tests: built from arrays, compiled, run on the emulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import numpy as np

import neurontools
from emulator import placement
from formats.hlo import Computation, Instruction, Module, PrimitiveType, array
from formats.hlo.attributes import Metadata
from neurontools.compiler.graph import Graph, Origin, Value
from neurontools.compiler.options import CompileOptions
from neurontools.compiler.pipeline import Compiled, compile_graph
from neurontools.compiler.rewriting import Builder
from neurontools.compiler.signature import Names

__all__ = ["adder", "compiled", "floats", "integers", "parts", "run", "run_graph", "run_shared"]

Make = Callable[..., Value | Sequence[Value]]
_TYPES = {
    "bool": "pred", "int8": "s8", "uint8": "u8", "int16": "s16", "uint16": "u16", "int32": "s32", "uint32": "u32",
    "int64": "s64", "uint64": "u64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "complex64": "c64",
}  # fmt: skip
OURS = CompileOptions(limits="ours", lnc=1)


def floats(*shape: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """Return normally distributed numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def integers(*shape: int, seed: int = 0, dtype: Any = np.int32) -> np.ndarray[Any, Any]:
    """Return integers over the whole range of a type, its limits among them."""
    info = np.iinfo(dtype)
    values = np.random.default_rng(seed).integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    flat = values.reshape(-1)
    flat[: min(4, flat.size)] = np.array([info.min, info.max, 0, 1], dtype)[: min(4, flat.size)]
    return values


def compiled(make: Make, *inputs: np.ndarray[Any, Any], options: CompileOptions = OURS) -> Compiled:
    """Compile the graph that `make(builder, *parameters)` returns the results of."""
    graph = Graph("test")
    graph.origin = Origin("test", "model.py", 42)
    parameters = [graph.parameter(_TYPES[one.dtype.name], one.shape) for one in inputs]
    results = make(Builder(graph), *parameters)
    graph.roots = [results] if isinstance(results, Value) else list(results)
    names = Names(tuple(f"input{i}" for i in range(len(inputs))), tuple(f"output{i}" for i in range(len(graph.roots))))
    return compile_graph(graph, names, options, name="test")


def run(made: Compiled, *inputs: np.ndarray[Any, Any], seed: int | None = None) -> list[np.ndarray[Any, Any]]:
    """Run a compiled graph; a fault or a hang fails the test."""
    given = {
        name: parts(one)
        if one.dtype == np.complex64
        else np.ascontiguousarray(one).reshape(one.shape or (1,)).view(np.uint8 if one.dtype == bool else one.dtype)
        for name, one in zip(made.names.inputs, inputs, strict=True)
        if one.size
    }
    result = neurontools.run(neurontools.open_neff(made.neff), given, timing=False, seed=seed)
    assert result.fault is None, result.fault
    assert result.hang is None, result.hang
    return [np.asarray(result.outputs[name]) for name in made.names.outputs if name in result.outputs]


def parts(one: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return complex numbers as fp32 with one more dimension."""
    return np.ascontiguousarray(one).reshape(-1).view(np.float32).reshape(*one.shape, 2)


def run_shared(made: Compiled, inputs: Sequence[np.ndarray[Any, Any]], number: int) -> list[np.ndarray[Any, Any]]:
    """Run a compiled graph whose first output lies in the memory of one of its inputs."""
    real = placement._place_variable

    def place(subgraph: Any, variable: Any, size: int, hbm: Any, shared: dict[str, Any], *rest: Any) -> Any:
        if variable.name == "output0":
            shared["output0"] = shared[f"input{number}"]._replace(name="output0", kind="output")
        return real(subgraph, variable, size, hbm, shared, *rest)

    with mock.patch.object(placement, "_place_variable", place):
        return run(made, *inputs)


def run_graph(make: Make, *inputs: np.ndarray[Any, Any], options: CompileOptions = OURS) -> list[np.ndarray[Any, Any]]:
    """Compile and run in one."""
    return run(compiled(make, *inputs, options=options), *inputs)


def adder(dtype: PrimitiveType = PrimitiveType.F32, opcode: str = "add", target: str = "") -> Module:
    """Return a module that adds two arrays at model.py:42."""
    shape = array(dtype, 3, 5)
    a = Instruction("a", "parameter", shape, frontend_attributes={"neff_input_names": "x"})
    b = Instruction("b", "parameter", shape, parameter_number=1)
    root = Instruction("add.5", opcode, shape, [a, b], custom_call_target=target,
                       metadata=Metadata(source_file="model.py", source_line=42),
                       frontend_attributes={"neff_output_names": "sum"})  # fmt: skip
    main = Computation("main", [a, b, root], root)
    return Module("adder", [main], main)
