"""The documented error codes: each is raised by an offending graph, or the table says why not."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import neurontools
from formats.hlo import Module, PrimitiveType, array
from formats.hlo.attributes import (
    ConvolutionDimensionNumbers,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    WindowDimension,
)
from neurontools.compiler.codes import CODES
from neurontools.compiler.errors import CompileError, UnsupportedGraphError
from neurontools.compiler.graph import Graph, Origin, Value
from neurontools.compiler.options import CompileOptions
from neurontools.compiler.rewriting import Builder, scalar_body
from neurontools.compiler.verify import verify
from tests.compiler.support import adder


def _graph(make: Any, *kinds: tuple[str, tuple[int, ...]]) -> Graph:
    graph = Graph("test")
    graph.origin = Origin("op.7", "model.py", 3)
    found = make(Builder(graph), *(graph.parameter(*one) for one in kinds))
    graph.roots = [found] if isinstance(found, Value) else list(found)
    return graph


def _call(target: str, config: bytes, results: list[tuple[str, tuple[int, ...]]]) -> Any:
    def make(b: Builder, *operands: Value) -> list[Value]:
        return list(b.graph.node("custom-call", operands, results, {"target": target, "config": config}).results)

    return make


def _conv(window: WindowDimension) -> Any:
    numbers = ConvolutionDimensionNumbers(0, 2, (1,), 1, 2, (0,), 0, 2, (1,))
    return lambda b, x, w: b.graph.add("convolution", (x, w), "f32", (1, 4, 1), numbers=numbers, window=(window,),
                                       feature_groups=1, batch_groups=1)  # fmt: skip


def _window(window: WindowDimension, many: int = 1) -> Any:
    def make(b: Builder, *x: Value) -> Value:
        return b.graph.add("reduce-window", (*x, *(b.constant(0, "f32") for _ in x)), "f32", (4,), window=(window,),
                           body=scalar_body("add", "f32"))  # fmt: skip

    return make


def _scatter(dtype: str) -> Any:
    numbers = ScatterDimensionNumbers((1,), (0,), (0,), 1)
    return lambda b, t, i, u: b.graph.add("scatter", (t, i, u), dtype, (3, 4), numbers=numbers, unique=False,
                                          body=scalar_body("add", dtype))  # fmt: skip


def _dot(b: Builder, x: Value, y: Value) -> Value:
    return b.graph.add("dot", (x, y), x.dtype, (4, 4), lhs_batch=(), rhs_batch=(), lhs_contracting=(1,),
                       rhs_contracting=(0,), precision=())  # fmt: skip


def _beyond(b: Builder, table: Value) -> Value:
    rows = b.reshape(b.iota("s32", (10,), 0), (10, 1))
    numbers = GatherDimensionNumbers((1,), (0,), (0,), 1)
    return b.graph.add("gather", (table, rows), "f32", (10, 4), numbers=numbers, slice_sizes=(1, 4))


_QUANTIZED = [("u32", (8, 8)), ("u8", (8, 1))]
_FP8 = b'{"dim": -1, "dtype": "float8_e5m2"}'
_MX = [("bf16", (8, 32))]
_SIDES = [("u32", (4, 8)), ("u32", (4, 8)), ("u8", (4, 1)), ("u8", (4, 1))]
_SCALED = "__op$block_scaled_dot"
_F32 = [("f32", (4, 4))]


def _scaled(**numbers: list[int]) -> bytes:
    return json.dumps({"scaled_dot_backend_config": numbers}).encode()


_STRICT = CompileOptions(implicit_integer_downcast="none")
_OFFENDING: list[tuple[str, Any, list[tuple[str, tuple[int, ...]]], CompileOptions]] = [
    ("EHCA005", _call("MyKernel", b"", _F32), _F32, CompileOptions()),
    ("ESFH002", lambda b: b.constant(5_000_000_000, "u64"), [], CompileOptions()),
    ("ESPP004", lambda b, x: x, [("f4e2m1fn", (4,))], CompileOptions()),
    ("ESPP047", lambda b, x: x, [("f8e8m0fnu", (4,))], CompileOptions()),
    ("EVRF001", lambda b, x: b.graph.add("triangular-solve", (x, x), "f32", (4, 4)), _F32, CompileOptions()),
    ("EVRF004", lambda b, x: b.reverse(x, (0,)), [("c128", (4,))], CompileOptions()),
    ("EVRF005", lambda b, x: x, [("f8e4m3fnuz", (4,))], CompileOptions()),
    ("EVRF006", lambda b, s: b.graph.node("rng-bit-generator", (s,), [("u32", (4,)), ("u32", (8,))],
                                          {"algorithm": "rng_philox"}).results, [("u32", (4,))], CompileOptions()),
    ("EVRF010", _conv(WindowDimension(3, 1, 2, 2, 2, 2)), [("f32", (1, 4, 1)), ("f32", (3, 1, 1))], CompileOptions()),
    ("EVRF011", _conv(WindowDimension(3, 2, 2, 2, 1, 2)), [("f32", (1, 4, 1)), ("f32", (3, 1, 1))], CompileOptions()),
    ("EVRF013", lambda b, x: b.graph.node("topk", (x,), [("s32", (2,)), ("s32", (2,))],
                                          {"k": 2, "largest": True}).results, [("s32", (9,))], CompileOptions()),
    ("EVRF016", _scatter("s32"), [("s32", (3, 4)), ("s32", (2, 1)), ("s32", (2, 4))], CompileOptions()),
    ("EVRF017", _window(WindowDimension(2, 1, 0, 0, 1, 2)), [("f32", (4,))], CompileOptions()),
    ("EVRF018", _window(WindowDimension(2, 1, 0, 0, 2, 1)), [("f32", (4,))], CompileOptions()),
    ("EVRF019", _window(WindowDimension(2)), [("f32", (4,)), ("f32", (4,))], CompileOptions()),
    ("EVRF022", lambda b, x: b.op("shift-right-arithmetic", x, x), [("s16", (4,))], CompileOptions()),
    ("EVRF031", lambda b, t, u: _scatter("f32")(b, t, b.reshape(b.iota("s32", (10,), 0), (10, 1)), u),
     [("f32", (3, 4)), ("f32", (10, 4))], CompileOptions()),
    ("EVRF035", _dot, [("s32", (4, 4)), ("s32", (4, 4))], _STRICT),
    ("EVRF036", _call("QuantizeMX", b"{", _QUANTIZED), _MX, CompileOptions()),
    ("EVRF037", _call("QuantizeMX", _FP8, _QUANTIZED), _MX * 2, CompileOptions()),
    ("EVRF038", _call("QuantizeMX", b'{"dim": -3}', _QUANTIZED), _MX, CompileOptions()),
    ("EVRF039", _call("QuantizeMX", b'{"dim": -1, "block_size": 64}', _QUANTIZED), _MX, CompileOptions()),
    ("EVRF040", _call("QuantizeMX", b'{"dim": -1, "scale_method": "MAX"}', _QUANTIZED), _MX, CompileOptions()),
    ("EVRF041", _call("QuantizeMX", _FP8, _QUANTIZED), [("f32", (8, 32))], CompileOptions()),
    ("EVRF042", _call("QuantizeMX", b'{"dim": -1, "dtype": "int8"}', _QUANTIZED), _MX, CompileOptions()),
    ("EVRF043", _call(_SCALED, b"", _F32), _SIDES[:3], CompileOptions()),
    ("EVRF044", _call(_SCALED, b"", _F32), [("s32", (4, 8)), *_SIDES[1:]], CompileOptions()),
    ("EVRF045", _call(_SCALED, b"", [("f16", (4, 4))]), _SIDES, CompileOptions()),
    ("EVRF046", _call(_SCALED, b"", _F32), [("u32", (8,)), *_SIDES[1:]], CompileOptions()),
    ("EVRF047", _call(_SCALED, b"", _F32), [_SIDES[0], ("u32", (8,)), *_SIDES[2:]], CompileOptions()),
    ("EVRF048", _call(_SCALED, _scaled(lhs_batch_dimensions=[0], rhs_batch_dimensions=[0]), _F32),
     [("u32", (2, 4, 8)), ("u32", (3, 4, 8)), *_SIDES[2:]], CompileOptions()),
    ("EVRF049", _call(_SCALED, b"not json", _F32), _SIDES, CompileOptions()),
    ("EVRF050", _call(_SCALED, b"None", _F32), [("u32", (4, 8)), ("u32", (4, 4)), *_SIDES[2:]], CompileOptions()),
    ("EVRF051", lambda b, x: b.op("add", x, x), [("f8e4m3fn", (4,))], CompileOptions()),
    ("EVRF053", _call(_SCALED, _scaled(lhs_batch_dimensions=[1]), _F32), _SIDES, CompileOptions()),
    ("EVRF054", _call(_SCALED, _scaled(lhs_batch_dimensions=[2]), _F32), _SIDES, CompileOptions()),
    ("EVRF055", _call(_SCALED, _scaled(lhs_contracting_dimensions=[5]), _F32), _SIDES, CompileOptions()),
    ("EVRF056", _beyond, [("f32", (3, 4))], CompileOptions()),
    ("EVRF057", _call("QuantizeMX", _FP8, _QUANTIZED[:1]), _MX, CompileOptions()),
    ("EVRF058", _call("QuantizeMX", _FP8, _QUANTIZED), [("bf16", (8, 30))], CompileOptions()),
    ("EVRF059", _call("AwsNeuronCustomNativeKernel", b"/nowhere/of/that/name", _F32), _F32, CompileOptions()),
    ("EVRF065", _call("AwsNeuronCustomNativeKernel", b'{"func_name": "add"}', _F32), _F32, CompileOptions()),
    ("EVRF060", _scatter("s32"), [("s32", (3, 4)), ("s32", (2, 1)), ("s32", (2, 4))], _STRICT),
    ("EVRF061", lambda b, x: b.graph.add("all-reduce", (x,), "s32", (4,)), [("s32", (4,))], _STRICT),
    ("EVRF062", lambda b, x: b.op("power", x, x), [("s64", (4,))], _STRICT),
    ("EVRF063", lambda b, x: b.graph.add("reduce-scatter", (x,), "s32", (4,)), [("s32", (4,))], _STRICT),
]  # fmt: skip


@pytest.mark.parametrize(("code", "make", "kinds", "options"), _OFFENDING, ids=[one[0] for one in _OFFENDING])
def test_offending_graphs_end_with_their_code(code: str, make: Any, kinds: Any, options: CompileOptions) -> None:
    graph = _graph(make, *kinds)
    with pytest.raises((CompileError, UnsupportedGraphError)) as raised:
        verify(graph, options)
    assert raised.value.code == code
    assert f"[NCC_{code}] %op.7: " in str(raised.value)
    assert str(raised.value).endswith("at model.py:3")
    assert CODES[code].raised == "verify"


def test_limits_of_the_other_compiler_can_be_left_out() -> None:
    documented = {one.name for one in CODES.values() if one.documented}
    for code, make, kinds, options in _OFFENDING:
        if code in documented and options is not _STRICT:
            verify(_graph(make, *kinds), options._replace(limits="ours"))


def _shaped(dimensions: tuple[int, ...], *, dynamic: bool = False) -> Module:
    """Return the sum of two tensors of a shape."""
    module = adder()
    for one in module.entry.instructions:
        one.shape = replace(array(PrimitiveType.F32, *dimensions), dynamic=(True,) * (len(dimensions) * dynamic))
    return module


def _contradicting() -> Module:
    module = adder()
    module.entry.root.shape = module.entry.root.shape.with_dimensions((4, 5))
    return module


# Codes of more than a graph that is verified: options, memory, modules as they are read, operations without lowering.
_MODULES: dict[str, tuple[Module, dict[str, Any]]] = {
    "EARG001": (adder(), {"target": "trn1", "lnc": 2}),
    "EMOD025": (_shaped((3, 5), dynamic=True), {}),
    "EOOM001": (_shaped((1 << 20, 1 << 14)), {}),
    "EUOC002": (adder(opcode="custom-call", target="AwsNeuronRmsNorm"), {}),
    "EVRF064": (_contradicting(), {}),
}


@pytest.mark.parametrize("code", _MODULES)
def test_offending_modules_end_with_their_code(code: str) -> None:
    module, options = _MODULES[code]
    with pytest.raises((CompileError, UnsupportedGraphError)) as raised:
        neurontools.compile(module, **options)
    assert raised.value.code == code
    assert str(raised.value).startswith(f"[NCC_{code}] ")
    assert "\n" not in str(raised.value)


def test_each_documented_code_is_raised_here_or_says_why_not() -> None:
    raised = {one[0] for one in _OFFENDING} | set(_MODULES)
    never = {one.name: one.why_never for one in CODES.values() if one.raised == "never"}
    assert len(CODES) == 60
    assert raised | set(never) == set(CODES)
    assert not raised & set(never)
    assert all(never.values())
    assert not any(one.why_never for one in CODES.values() if one.raised != "never")
    for why in never.values():
        assert all(CODES[code].raised != "never" for code in re.findall(r"E[A-Z]{3}\d{3}", why))
    text = " ".join(Path("docs/commands.md").read_text(encoding="utf-8").split())
    assert f"{len(raised)} are raised, and of the other {len(never)} it says why not" in text
