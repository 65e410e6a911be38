"""What the front end says to a kernel that means something else than it writes: names, calls, values, call chains."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from formats.errors import UnsupportedError
from neurontools.neuronxcc import nki as old_nki
from neurontools.neuronxcc.nki import isa as old_isa
from neurontools.neuronxcc.nki import language as old_language
from neurontools.nki.errors import NkiValidationError
from neurontools.nki.unknown import FIRST_GENERATION, METHODS

X = np.ones((128, 64), np.float32)


def said(body: Any, kind: type[Exception] = NkiValidationError) -> str:
    """Return the one line that a kernel's error is; the body gets a tile and the input."""

    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        body(tile, x)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, tile)
        return out

    with pytest.raises(kind) as raised:
        nki.jit(kernel)(X)
    text = str(raised.value)
    assert "\n" not in text and "test_hints.py:" in text
    return text


@pytest.mark.parametrize(("ask", "words"), [
    (lambda t: nl.sofmax(t, 1), "nki.language has no sofmax; did you mean softmax?"),
    (lambda t: nisa.tensor_tenser(t, t, t, nl.add), "nki.isa has no tensor_tenser; did you mean tensor_tensor"),
    (lambda t: nl.Add(t, t), "did you mean add?"),
    (lambda t: nl.arange(128), "of the first generation (neuronxcc.nki.language); write slices"),
    (lambda t: nl.loop_reduce, "of the first generation (neuronxcc.nki.language)"),
    (lambda t: nl.qwertyuiop, "nki.language has no qwertyuiop, at "),
    (lambda t: t.reshap((128, 64)), "an NKI tensor has no reshap; did you mean reshape"),
    (lambda t: t.astype(nl.bfloat16), "an NKI tensor has no astype; write nl.copy(tile, dtype=...)"),
    (lambda t: t.T, "write nl.transpose(tile)"),
    (lambda t: nki.simulte(t), "nki has no simulte; did you mean simulate"),
    (lambda t: nki.benchmark(t), "nki has no benchmark, which is of the first generation (neuronxcc.nki); write nki"),
    (lambda t: old_nki.simulate(t), "of the present generation (nki)"),
    (lambda t: old_isa.quantize_mx(t), "neuronxcc.nki.isa has no quantize_mx in this toolkit, which is of the present"),
    (lambda t: old_language.sofmax(t), "neuronxcc.nki.language has no sofmax in this toolkit; did you mean softmax?"),
])  # fmt: skip
def test_unknown_names_say_what_may_be_meant(ask: Any, words: str) -> None:
    assert words in said(lambda tile, x: ask(tile))


def test_what_a_tensor_lacks_is_told_with_tensor_and_callers_and_kernels_may_ask_first() -> None:
    def ask(tile: Any) -> Any:
        assert not hasattr(tile, "reshap") and getattr(tile, "tile", None) is None
        return tile.reshap((128, 64))

    text = said(lambda tile, x: ask(tile), AttributeError)
    first = ask.__code__.co_firstlineno
    file = ask.__code__.co_filename
    assert re.fullmatch(
        rf"tile: an NKI tensor has no reshap; did you mean reshape or shape\?, at {re.escape(file)}:{first + 2}, "
        rf"called from {re.escape(file)}:{first + 4}, from {re.escape(file)}:\d+", text
    )  # fmt: skip
    assert "AttributeError: an NKI tensor has no _offset, on trn3" in said(lambda tile, x: tile._offset)


@pytest.mark.parametrize(("old", "new"), [(old_isa, nisa), (old_language, nl), (old_nki, nki)])
def test_every_name_of_the_first_generation_only_is_known_as_such(old: ModuleType, new: ModuleType) -> None:
    import_module("neurontools.nki.compiler")  # both generations have it, once somebody imports it
    listed = FIRST_GENERATION[new.__name__.removeprefix("neurontools.")]
    assert all(hasattr(old, name) and not hasattr(new, name) for name in listed)
    helpers = {"copy_into", "prod_"}
    public = {name for name, one in vars(old).items() if inspect.isfunction(one) and one.__module__ == old.__name__}
    public = {name for name in {*public, *old.__all__} - helpers if not name.startswith("_") and not hasattr(new, name)}
    assert public <= listed, sorted(public - listed)


def test_unknown_names_are_attribute_errors_outside_kernels_too() -> None:
    for module in (nl, nisa):
        assert not hasattr(module, "no_such_name") and not hasattr(module, "__wrapped__")
        assert getattr(module, "no_such_name", None) is None
    assert not set(METHODS) & set(dir(nl.NkiTensor))


@pytest.mark.parametrize(("call", "words"), [
    (lambda t: nisa.tensor_tensor(t, t, op=nl.add),
     "nisa.tensor_tensor() missing 1 required positional argument: 'data2'; it is "
     "nisa.tensor_tensor(dst, data1, data2, op, engine=, name=); it writes into dst and returns no tile"),
    (lambda t: nisa.tensor_copy(t), "it writes into dst and returns no tile"),
    (lambda t: nisa.activation(op=nl.exp, data=t), "it writes into dst and returns no tile"),
    (lambda t: nisa.tensor_copy(t, t, mask=None), "mask= is of the first generation (neuronxcc.nki): take slices"),
    (lambda t: nisa.reciprocal(t, t, dtype=nl.float32), "the result has the type of dst"),
    (lambda t: nisa.tensor_reduce(dst=t, op=nl.add, data=t, axes=1), "did you mean axis?"),
    (lambda t: nl.add(t, t, dtpye=nl.float32), "nl.add() got an unexpected keyword argument 'dtpye'; it is "
     "nl.add(x, y, dtype=); did you mean dtype?"),
    (lambda t: nl.add(t, t, mask=None), "mask= is of the first generation (neuronxcc.nki): take slices"),
    (lambda t: nl.exp(), "nl.exp() missing 1 required positional argument: 'x'; it is nl.exp(x, dtype=)"),
    (lambda t: nl.add(t, t, t, t), "nl.add() takes from 2 to 3 positional arguments but 4 were given"),
    (lambda t: nl.load(), "nl.load() missing 1 required positional argument: 'src'; it is nl.load(src, dtype=)"),
    (lambda t: nisa.tensor_scalar(t, nl.add, 1.0, nl.multiply, 2.0), "return a tile, here dst comes first"),
    (lambda t: nisa.tensor_reduce(nl.add, t, t, axis=1), "return a tile, here dst comes first"),
    (lambda t: nisa.memset((128, 64), 0.0), "return a tile, here dst comes first"),
    (lambda t: nl.add(nisa.tensor_copy(t, t), t), "which is no tile: its result is in dst"),
    (lambda t: nisa.tensor_copy(t, nisa.tensor_copy(t, t)), "which is no tile: its result is in dst"),
])  # fmt: skip
def test_calls_in_the_old_style_say_how_they_are_written(call: Any, words: str) -> None:
    assert words in said(lambda tile, x: call(tile))


def test_misfitting_calls_stay_type_errors_and_others_are_left_alone() -> None:
    assert "nisa.tensor_copy" in said(lambda tile, x: nisa.tensor_copy(tile), TypeError)

    def helper(a: Any) -> None: ...

    def kernel(x: Any) -> None:
        helper()  # type: ignore[call-arg]

    with pytest.raises(TypeError, match=r"helper\(\) missing 1 required positional argument") as raised:
        nki.jit(kernel)(X)
    assert type(raised.value) is TypeError


def test_values_are_not_there_while_a_kernel_is_traced(capsys: pytest.CaptureFixture[str]) -> None:
    for read in (np.asarray, np.array, lambda t: np.sum(np.asarray(t))):
        text = said(lambda tile, x, read=read: read(tile))
        assert "has no values while the kernel is traced" in text and "nl.device_print(prefix, tensor)" in text

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        print(tile)
        nl.store(out, np.float32(2) * tile)
        return out

    np.testing.assert_array_equal(nki.jit(kernel)(X), 2 * X)
    printed = capsys.readouterr().out
    assert "<NkiTensor 'tile' sbuf float32 (128, 64)>" in printed and "nl.device_print(prefix, tensor)" in printed


@pytest.mark.parametrize(("ask", "words"), [
    (lambda t: t < 1, "does not take <; write nl.less(a, b)"), (lambda t: t > 1, "write nl.greater(a, b)"),
    (lambda t: t >= t, "write nl.greater_equal(a, b)"), (lambda t: t % 2, "write nl.mod(a, b)"),
    (lambda t: 2 // t, "write nl.floor(nl.divide(a, b))"), (lambda t: t @ t, "write nl.matmul(a, b)"),
    (lambda t: ~t, "write nl.invert(a)"), (lambda t: abs(t), "write nl.abs(a)"), (lambda t: round(t), "nl.floor"),
    (lambda t: t == 0, "compares no elements of an NKI tensor; write nl.equal(a, b)"),
    (lambda t: t != t, "write nl.not_equal(a, b)"), (lambda t: np.float32(3) == t, "write nl.equal(a, b)"),
    (lambda t: 3 in t, "write nl.equal(a, b)"), (lambda t: max(t, 0), "write nl."),
    (lambda t: float(t), "there is no float() of it"), (lambda t: int(t), "there is no int() of it"),
    (lambda t: range(t), "there is no integer of it"), (lambda t: f"{t:.2f}", "there is no '.2f' of it"),
    (lambda t: np.exp(t), "np.exp takes none"), (lambda t: np.add.reduce(t), "np.add takes none"),
    (lambda t: np.ones((128, 64)) * t, "np.multiply takes none"),
])  # fmt: skip
def test_operators_that_tensors_lack_say_what_to_write(ask: Any, words: str) -> None:
    assert words in said(lambda tile, x: ask(tile))
    with pytest.raises(TypeError):
        nki.jit(lambda x: ask(nl.load(x)))(X)


def test_tensors_are_told_apart_as_objects() -> None:
    def kernel(x: Any) -> Any:
        tile, other = nl.load(x), nl.load(x)
        assert tile is not None and tile != None and tile != "x"  # noqa: E711
        assert tile in [other, tile][1:] and len({tile, other, tile}) == 2 and len(tile) == 128
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, np.float32(2) * tile + np.int32(1) - np.float32(3) / (np.float64(1) + other))
        return out

    np.testing.assert_allclose(nki.jit(kernel)(X), 2 * X + 1 - 3 / (1 + X), rtol=1e-5)


def test_a_kernel_that_returns_nothing_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    def lost(x: Any) -> None:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load(x))

    def in_place(x: Any) -> None:
        nl.store(x, nl.load(x))

    def shown(x: Any) -> None:
        nl.device_print("x", nl.load(x))

    assert nki.jit(lost)(X) is None
    assert "kernel lost returns nothing and writes none of its arguments" in capsys.readouterr().err
    nki.jit(in_place)(X.copy()), nki.jit(shown)(X)
    assert "returns nothing" not in capsys.readouterr().err


def inner(tile: Any) -> None:
    nisa.tensor_copy(tile, tile[:, 0:7])


def middle(tile: Any) -> None:
    inner(tile)


def deep(tile: Any, depth: int) -> None:
    if depth:
        deep(tile, depth - 1)
    else:
        tile.permute((1, 0))


def line_of(function: Any, offset: int) -> str:
    return f"test_hints.py:{function.__code__.co_firstlineno + offset}"


def test_errors_in_helpers_show_the_chain_of_calls() -> None:
    text = said(lambda tile, x: middle(tile))
    at, _, callers = text.rpartition(" at ")[2].partition(", called from ")
    first, second, kernel = callers.split(", from ")[0], callers.split(", from ")[1], callers.split(", from ")[-1]
    assert at.endswith(line_of(inner, 1)) and first.endswith(line_of(middle, 1))
    assert "test_hints.py:" in second and "test_hints.py:" in kernel and "pytest" not in text
    assert len(callers.split(", from ")) == 3  # middle, the lambda, the kernel


def test_the_middle_of_a_long_chain_is_left_out() -> None:
    text = said(lambda tile, x: deep(tile, 50))
    assert text.count("test_hints.py:") == 8 and ", from 46 more, from " in text


def test_the_chain_passes_kernels_that_are_called_by_kernels() -> None:
    assert said(lambda tile, x: nki.jit(middle)(tile)).count("test_hints.py:") == 4


def test_a_misfitting_call_in_a_helper_shows_the_chain() -> None:
    def copy(tile: Any) -> None:
        nisa.tensor_copy(tile)

    text = said(lambda tile, x: copy(tile))
    assert line_of(copy, 1) in text and text.count("test_hints.py:") == 3


def test_what_is_unsupported_shows_the_chain_too() -> None:
    def helper(tile: Any) -> None:
        nisa.tensor_scalar(tile, tile, nl.add, nisa.register_alloc(0))

    source, _ = inspect.getsourcelines(helper)
    assert source
    with pytest.raises((UnsupportedError, NkiValidationError), match="called from"):
        nki.jit(lambda x: helper(nl.load(x)))(X)


@pytest.mark.parametrize(("call", "words"), [
    (lambda t: nisa.tensor_reduce(t[:, 0:1], nl.add, t, axis=np.array([1.0, 2.0])),
     "nisa.tensor_reduce does not take axis=an array of shape (2,) (ValueError: The truth value"),
    (lambda t: nisa.dma_transpose(t, t, axes=3), "nisa.dma_transpose does not take axes=3 (TypeError: 'int' object"),
    (lambda t: nisa.memset(t, 10**400), "nisa.memset does not take value=1000"),
    (lambda t: nl.broadcast_to(t, None), "nl.broadcast_to does not take shape=None (TypeError"),
    (lambda t: nl.expand_dims(t, "x"), "nl.expand_dims does not take axis='x'"),
    (lambda t: nl.empty_like(3.0), "nl.empty_like does not take x=3.0 (AttributeError"),
    (lambda t: nisa.tensor_scalar(t, t, nl.add, 1.0, nl.add), "reverse0 is nl.add, must be True or False"),
    (lambda t: nl.sum(t, 1, None, t), "nl.sum: keepdims is <NkiTensor"),
    (lambda t: nisa.tensor_copy(t, t, name=3), "name is 3, must be text"),
    (lambda t: nl.ndarray((4, 4), nl.float32, name={}.keys), "must be text"),
    (lambda t: nisa.register_move(nisa.register_alloc(1), 2, imm=3), "imm is 3, must be None where src is given"),
    (lambda t: nisa.tensor_copy_predicated(t.view(nl.int32), 1.5, t.view(nl.uint32)), "src is 1.5, must be a whole"),
])  # fmt: skip
def test_arguments_of_other_kinds_are_named(call: Any, words: str) -> None:
    assert words in said(lambda tile, x: call(tile))


def test_arrays_of_numpy_among_operands_say_how_they_become_tensors() -> None:
    for call in (lambda t: nisa.tensor_scalar(t, t, nl.add, X[:, :1]), lambda t: nisa.dma_copy(t, X),
                 lambda t: t.__setitem__(..., X)):  # fmt: skip
        text = said(lambda tile, x, call=call: call(tile))
        assert "a NumPy array of shape (128, " in text and "nl.shared_constant(array)" in text


@pytest.mark.parametrize("jit", [nki.jit, old_nki.jit])
@pytest.mark.parametrize("given", [[1, 2], 3, "x", 1.5])
def test_arguments_that_are_no_arrays_are_named(given: Any, jit: Any) -> None:
    def kernel(weights: Any, x: Any) -> Any:
        return nl.ndarray(weights.shape, nl.float32, buffer=nl.shared_hbm)

    what = rf"argument weights is of type {type(given).__name__}, no array: for a tensor pass .*test_hints\.py:"
    with pytest.raises(NkiValidationError, match=what):
        jit(kernel)(given, X)


def test_the_line_is_the_kernels_where_numpy_asks_a_tensor() -> None:
    text = said(lambda tile, x: np.sum(tile))
    assert "np.add takes none" in text and "site-packages" not in text


@pytest.mark.parametrize("fails", [
    lambda t: np.ones(3) @ np.ones(4), lambda t: [0][int(t.ndim)], lambda t: 1 / 0, lambda t: int("x"),
    lambda t: nl.fori_loop(0, 2, lambda i: {}["missing"]),
])  # fmt: skip
def test_errors_of_the_kernels_own_code_stay_what_they_are(fails: Any) -> None:
    def kernel(x: Any) -> Any:
        fails(nl.load(x))

    with pytest.raises((ValueError, IndexError, ArithmeticError, KeyError)) as raised:
        nki.jit(kernel)(X)
    assert not isinstance(raised.value, NkiValidationError)
