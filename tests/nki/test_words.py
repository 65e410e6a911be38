"""`sbuf`, `psum` and `hbm` as words: among the builtins for kernels that may say one, and for no others."""

import builtins
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

from neurontools import nki
from neurontools.nki import isa as nisa
from neurontools.nki import language as nl
from neurontools.nki import words
from neurontools.nki.launch import trace_kernel

X = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
WORDS = ("sbuf", "psum", "hbm")


def module(text: str, **names: Any) -> ModuleType:
    """Return a module made of text."""
    made = ModuleType("kernels_of_words")
    vars(made).update(names)
    exec(compile(text, "kernels_of_words.py", "exec"), vars(made))
    return made


def are_there() -> bool:
    return all(word in vars(builtins) for word in WORDS)


def copied(make: Any, seen: list[bool]) -> Any:
    def kernel(x: Any) -> Any:
        seen.append(are_there())
        tile = make(x)
        nisa.dma_copy(tile, x)
        out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
        nisa.dma_copy(out, tile)
        return out

    return kernel  # one of several with this code: what is told of it goes by what it has from around it, too


SAYS = "def make(x):\n    return sbuf.view(x.dtype, x.shape)\n"


def test_a_kernel_that_says_none_has_none() -> None:
    seen: list[bool] = []
    kernel = copied(lambda x: nl.sbuf.view(x.dtype, x.shape), seen)
    for _ in range(2):
        trace_kernel(kernel, (X,))
    assert seen == [False, False] and not are_there()


@pytest.mark.parametrize("behind", ["itself", "function", "class", "module", "kernel", "partial"])
def test_what_a_kernel_calls_may_say_one(behind: str) -> None:
    said = module(SAYS, nl=nl)
    reached: dict[str, Any] = {
        "itself": said.make,
        "function": module("def make(x):\n    return other(x)\n", nl=nl, other=said.make).make,
        "class": module(
            "class Maker:\n    @classmethod\n    def make(cls, x):\n        return sbuf.view(x.dtype, x.shape)\n", nl=nl
        ).Maker.make,
        "module": module("def make(x):\n    return other.make(x)\n", nl=nl, other=said).make,
        "kernel": module("def make(x):\n    return other(x)\n", nl=nl, other=nki.jit(said.make)).make,
        "partial": module(
            "from functools import partial\ndef make(x):\n    return other(x)\nother = partial(said)\n",
            nl=nl, said=said.make,
        ).make,
    }  # fmt: skip
    seen: list[bool] = []
    trace_kernel(copied(reached[behind], seen), (X,))
    assert seen == [True] and not are_there()


def test_a_word_that_nobody_saw_is_heard() -> None:
    make = FunctionType(compile(SAYS, "elsewhere.py", "exec").co_consts[0], {"__builtins__": builtins})
    seen: list[bool] = []
    hidden = [make]
    kernel = copied(lambda x: hidden[0](x), seen)
    np.testing.assert_array_equal(nki.jit(kernel)(X), X)
    assert seen == [False, True] and not are_there()
    np.testing.assert_array_equal(nki.jit(kernel)(X), X)
    assert seen == [False, True, True]


def test_other_names_are_errors() -> None:
    seen: list[bool] = []
    with pytest.raises(NameError, match="dram"):
        trace_kernel(copied(lambda x: dram.view(x.dtype, x.shape), seen), (X,))  # type: ignore[name-defined]  # noqa: F821
    assert seen == [False] and not are_there()


def test_a_word_that_is_missing_in_spite_of_it() -> None:
    """A NameError of somebody who takes the word away is an error, not a reason to trace for ever."""

    def kernel(x: Any) -> Any:
        raise NameError("name 'sbuf' is not defined", name="sbuf")

    with pytest.raises(NameError, match="sbuf"):
        trace_kernel(kernel, (X,))


def test_names_of_somebody_else_stay_his() -> None:
    vars(builtins)["sbuf"] = mine = object()
    try:
        with words.named(True):
            assert vars(builtins)["sbuf"] is mine and are_there()
        assert vars(builtins)["sbuf"] is mine
    finally:
        del vars(builtins)["sbuf"]
    assert not are_there()


def test_a_word_behind_many_names() -> None:
    many = "\n".join(f"    name_{number}" for number in range(300))
    text = f"def make(x):\n{many}\n    psum\n"
    assert words._says(module(text).make.__code__)
    assert not words._says(module(text.replace("psum", "x.psum")).make.__code__)
