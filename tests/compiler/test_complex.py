"""Complex numbers as two parts: functions, movements, folds, loops and transforms against NumPy's complex128."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from formats.hlo.text import parse_module
from neurontools.compiler.complex_numbers import COMPLEX, DOCUMENTED_COMPLEX, without_complex
from neurontools.compiler.errors import CompileError, UnsupportedGraphError
from neurontools.compiler.graph import Graph, Value
from neurontools.compiler.options import CompileOptions
from neurontools.compiler.pipeline import compile_module
from neurontools.compiler.rewriting import Builder
from neurontools.compiler.verify import verify
from tests.compiler.support import OURS, floats, parts, run, run_graph
from tests.compiler.test_codes import _graph

Array = np.ndarray[Any, Any]


def numbers(*shape: int, seed: int = 0) -> Array:
    """Return complex numbers of both signs in both parts."""
    return (floats(*shape, seed=seed) + 1j * floats(*shape, seed=seed + 100)).astype(np.complex64)


def joined(got: Array) -> Array:
    """Return two parts as complex numbers."""
    return np.ascontiguousarray(got).view(np.complex64)[..., 0]


_EDGES = np.array([0, 1, -1, 1j, -1j, 3 - 4j, 1e-4 + 1e-4j, -1e-4j, 5 - 0j, -5 + 0j, 1e-20 + 1e-20j], np.complex64)
_LARGE = np.array([1e30 + 1e30j, -1e30 + 2e25j, 3e38j, -3e38 + 0j], np.complex64)
_UNARY = {
    "cosine": np.cos,
    "exponential": np.exp,
    "exponential-minus-one": np.expm1,
    "log-plus-one": np.log1p,
    "logistic": lambda z: 1 / (1 + np.exp(-z)),
    "negate": np.negative,
    "sign": lambda z: np.where(z == 0, 0, z / np.where(z == 0, 1, abs(z))),
    "sine": np.sin,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
    "tan": np.tan,
}
_OF_LARGE = ("sqrt", "sign", "negate")  # functions whose results are numbers still


@pytest.mark.parametrize("opcode", _UNARY)
def test_a_function_of_one_number(opcode: str) -> None:
    z = np.concatenate([numbers(90), _EDGES, *([_LARGE] if opcode in _OF_LARGE else [])])
    (got,) = run_graph(lambda b, z: b.op(opcode, z), z)
    with np.errstate(all="ignore"):
        want = _UNARY[opcode](z.astype(np.complex128))
    np.testing.assert_allclose(joined(got), want, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize(("opcode", "function"), [("log", np.log), ("rsqrt", lambda z: 1 / np.sqrt(z))])
def test_a_function_of_what_is_not_zero(opcode: str, function: Any) -> None:
    z = np.concatenate([numbers(90), _EDGES[1:-1], _LARGE])
    (got,) = run_graph(lambda b, z: b.op(opcode, z), z)
    np.testing.assert_allclose(joined(got), function(z.astype(np.complex128)), rtol=1e-5, atol=2e-6)


def test_magnitudes_overflow_no_sooner_than_they_must() -> None:
    z = np.concatenate(
        [numbers(40), _EDGES, _LARGE[:2], np.array([complex(np.inf, 1), complex(1, -np.inf)], np.complex64)]
    )
    (got,) = run_graph(lambda b, z: b.op("abs", z, dtype="f32"), z)
    np.testing.assert_allclose(got, np.abs(z.astype(np.complex128)), rtol=1e-6)


@pytest.mark.parametrize(
    ("opcode", "function"),
    [("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("divide", np.divide), ("power", np.power)],
)
def test_a_function_of_two_numbers(opcode: str, function: Any) -> None:
    z, w = np.concatenate([numbers(60), _EDGES]), np.concatenate([numbers(60, seed=7), np.roll(_EDGES, 3)])
    w[w == 0] = 2 - 1j
    if opcode == "power":
        w[np.abs(w) < 1e-10] = 2
    if opcode == "divide":  # squares of these would overflow, or vanish
        z = np.concatenate([z, np.array([1e30 + 1e30j, 1e-30 - 1e-30j], np.complex64)])
        w = np.concatenate([w, np.array([2e30 - 1e30j, 3e-30 + 1e-30j], np.complex64)])
    (got,) = run_graph(lambda b, z, w: b.op(opcode, z, w), z, w)
    with np.errstate(all="ignore"):
        want = function(z.astype(np.complex128), w.astype(np.complex128))
    np.testing.assert_allclose(joined(got), want, rtol=2e-5, atol=1e-6)


def test_parts_comparisons_and_types() -> None:
    z, w, x = numbers(5, 6), numbers(5, 6, seed=3), floats(5, 6, seed=5)
    w[::2] = z[::2]

    def make(b: Builder, z: Value, w: Value, x: Value) -> list[Value]:
        same = b.compare("EQ", z, w)
        built = b.graph.add("complex", (x, b.op("imag", z, dtype="f32")), "c64", x.shape)
        counted = b.graph.add("iota", (), "c64", (3, 4), dimension=1)
        return [same, b.compare("NE", z, w), b.op("select", same, z, built), b.op("real", w, dtype="f32"),
                b.convert(x, "c64"), b.convert(z, "s32"), counted]  # fmt: skip

    got = run_graph(make, z, w, x)
    np.testing.assert_array_equal(got[0], z == w)
    np.testing.assert_array_equal(got[1], z != w)
    np.testing.assert_array_equal(joined(got[2]), np.where(z == w, z, x + 1j * z.imag))
    np.testing.assert_array_equal(got[3], w.real)
    np.testing.assert_array_equal(joined(got[4]), x.astype(np.complex64))
    np.testing.assert_array_equal(got[5], z.real.astype(np.int32))
    np.testing.assert_array_equal(joined(got[6]), np.broadcast_to(np.arange(4), (3, 4)))


def test_movements_keep_both_parts() -> None:
    z = numbers(4, 6)

    def make(b: Builder, z: Value) -> Value:
        padded = b.pad(z, b.graph.add("constant", (), "c64", (), data=np.complex64(2 - 3j)), [(1, 0, 0), (0, 2, 1)])
        turned = b.transpose(b.reverse(padded, (1,)), (1, 0))
        return b.concatenate([b.part(turned, 0, 1, 5), b.part(turned, 0, 0, 2)], 0)

    padded = np.full((5, 13), 2 - 3j, np.complex64)
    padded[1:, :11:2] = z
    turned = padded[:, ::-1].T
    (got,) = run_graph(make, z)
    np.testing.assert_array_equal(joined(got), np.concatenate([turned[1:6], turned[:2]]))


def test_products_of_matrices() -> None:
    z, w, x = numbers(9, 20), numbers(20, 7, seed=1), floats(20, 7, seed=2)

    def dot(b: Builder, left: Value, right: Value) -> Value:
        return b.graph.add("dot", (left, right), "c64", (9, 7), lhs_batch=(), rhs_batch=(), lhs_contracting=(1,),
                           rhs_contracting=(0,), precision=())  # fmt: skip

    both, one = run_graph(lambda b, z, w, x: [dot(b, z, w), dot(b, z, x)], z, w, x)
    np.testing.assert_allclose(joined(both), z @ w, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(joined(one), z @ x, rtol=1e-4, atol=1e-5)


_BODIES = """HloModule m

mul { a = c64[] parameter(0) b = c64[] parameter(1) ROOT r = c64[] multiply(a, b) }

sum { a = c64[] parameter(0) b = c64[] parameter(1) ROOT r = c64[] add(a, b) }

before {
  a = c64[] parameter(0)
  b = c64[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  x = f32[] imag(a)
  y = f32[] imag(b)
  ROOT less = pred[] compare(x, y), direction=LT
}

turn {
  state = (s32[], c64[4,6]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  z = c64[4,6] get-tuple-element(state), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  grown = c64[4,6] multiply(z, z)
  ROOT both = (s32[], c64[4,6]) tuple(next, grown)
}

more {
  state = (s32[], c64[4,6]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  three = s32[] constant(3)
  ROOT less = pred[] compare(i, three), direction=LT
}

ENTRY main {
  z = c64[4,6] parameter(0)
  start = c64[] constant((1, 1))
  product = c64[4] reduce(z, start), dimensions={1}, to_apply=mul
  total = c64[6] reduce(z, start), dimensions={0}, to_apply=sum
  zero = s32[] constant(0)
  state = (s32[], c64[4,6]) tuple(zero, z)
  loop = (s32[], c64[4,6]) while(state), condition=more, body=turn
  grown = c64[4,6] get-tuple-element(loop), index=1
  places = s32[4,6] iota(), iota_dimension=1
  sorted = (c64[4,6], s32[4,6]) sort(z, places), dimensions={1}, to_apply=before
  ordered = c64[4,6] get-tuple-element(sorted), index=0
  whence = s32[4,6] get-tuple-element(sorted), index=1
  ROOT all = (c64[4], c64[6], c64[4,6], c64[4,6], s32[4,6]) tuple(product, total, grown, ordered, whence)
}
"""


def test_bodies_take_both_parts() -> None:
    z = numbers(4, 6)
    made = compile_module(parse_module(_BODIES), OURS)
    assert [kind for kind, _ in made.results] == ["c64", "c64", "c64", "c64", "s32"]
    product, total, grown, ordered, whence = run(made, z)
    wide, order = z.astype(np.complex128), np.argsort(z.imag, 1)
    np.testing.assert_allclose(joined(product), (1 + 1j) * wide.prod(1), rtol=1e-5)
    np.testing.assert_allclose(joined(total), 1 + 1j + wide.sum(0), rtol=1e-5)
    np.testing.assert_allclose(joined(grown), wide**8, rtol=1e-4)
    np.testing.assert_array_equal(joined(ordered), np.take_along_axis(z, order, 1))
    np.testing.assert_array_equal(whence, order)


def _transform(kind: str, lengths: tuple[int, ...], dtype: str, shape: tuple[int, ...]) -> Any:
    return lambda b, x: b.graph.add("fft", (x,), dtype, shape, kind=kind, lengths=lengths)


def test_fourier_transforms() -> None:
    x, z = floats(3, 4, 15), numbers(3, 4, 15)
    half = np.fft.rfftn(x, axes=(1, 2)).astype(np.complex64)
    for kind, given, want in (
        ("FFT", z, np.fft.fftn(z, axes=(1, 2))),
        ("IFFT", z, np.fft.ifftn(z, axes=(1, 2))),
        ("RFFT", x, np.fft.rfftn(x, axes=(1, 2))),
        ("IRFFT", half, x),
    ):
        dtype = "f32" if kind == "IRFFT" else "c64"
        (got,) = run_graph(_transform(kind, (4, 15), dtype, want.shape), given)
        np.testing.assert_allclose(joined(got) if dtype == "c64" else got, want, rtol=1e-4, atol=2e-5)
    even = np.fft.rfft(floats(2, 8)).astype(np.complex64)
    (got,) = run_graph(_transform("IRFFT", (8,), "f32", (2, 8)), even)
    np.testing.assert_allclose(got, floats(2, 8), rtol=1e-4, atol=1e-5)


def test_what_has_no_complex_form_is_refused() -> None:
    def refused(make: Any, options: CompileOptions, *kinds: Any) -> str:
        with pytest.raises((CompileError, UnsupportedGraphError)) as raised:
            verify(_graph(make, *kinds), options)
        return str(raised.value)

    documented, z = CompileOptions(), ("c64", (4,))
    assert "[NCC_EVRF004] %op.7: cbrt of complex type c64" in refused(lambda b, z: b.op("cbrt", z), OURS, z)
    assert "EVRF004" in refused(lambda b, z: b.convert(z, "f32"), documented, z)
    assert "EVRF004" in refused(lambda b, z: b.graph.add("bitcast-convert", (z,), "f32", (4, 2)), OURS, z)
    assert "EVRF001" in refused(_transform("FFT", (4,), "c64", (4,)), documented, z)
    assert "of more than 1024 elements" in refused(_transform("FFT", (2000,), "c64", (2000,)), OURS, ("c64", (2000,)))
    assert DOCUMENTED_COMPLEX <= COMPLEX
    verify(_graph(lambda b, z: b.op("tanh", z), z), documented)


def test_the_pass_leaves_real_graphs_alone_and_no_complex_type_behind() -> None:
    real = _graph(lambda b, x: b.op("tanh", x), ("f32", (4,)))
    assert without_complex(real) is real
    split = without_complex(_graph(lambda b, z: b.op("tanh", z), ("c64", (3, 4))))
    kinds = {one.dtype for node in split.nodes for one in node.results}
    assert kinds <= {"f32", "pred"}
    assert [one.shape for one in split.parameters] == [one.shape for one in split.roots] == [(3, 4, 2)]
    assert isinstance(split, Graph)


def test_a_graph_of_complex_numbers_is_compared_with_the_interpreter(tmp_path: Any) -> None:
    from neurontools.debugger import Session
    from neurontools.divergence.graph_run import compare_graph

    text = """HloModule m

ENTRY main {
  z = c64[5,3] parameter(0)
  w = c64[5,3] parameter(1)
  e = c64[5,3] exponential(z)
  ROOT size = f32[5,3] abs(e)
}
"""
    z = numbers(5, 3)
    made = compile_module(parse_module(text), OURS)
    session = Session(made.neff, {"input0": parts(z), "input1": parts(z)}, timing=False)
    found = compare_graph(session)
    assert found.same
    assert found.compared == 1
    assert {one.name for one in found.untried} == {"e"}
