"""Random bits by a stated algorithm: the device's words against the interpreter's, which are XLA's."""

from __future__ import annotations

import numpy as np
import pytest

from formats.hlo.text import parse_module
from neurontools.compiler.errors import CompileError
from neurontools.compiler.options import CompileOptions
from neurontools.compiler.pipeline import compile_module
from neurontools.hlo_interpreter import evaluate
from tests.compiler.support import OURS, run

_STATES = {4: [0x243F6A88, 0x85A308D3, 0xFFFFFFF0, 0xFFFFFFFF], 6: [1, 2, 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFF, 7]}


def _text(algorithm: str, kind: str, words: int, state: str = "u32") -> str:
    return f"""HloModule bits

ENTRY main {{
  s = {state}[{words}] parameter(0)
  ROOT r = ({state}[{words}], {kind}) rng-bit-generator(s), algorithm={algorithm}
}}
"""


@pytest.mark.parametrize("words", [4, 6])
@pytest.mark.parametrize("kind", ["u32[5,6]", "u32[7,3]", "u32[]", "s32[130]", "u8[3,4,5]", "s16[9]"])
@pytest.mark.parametrize("algorithm", ["rng_three_fry", "rng_philox"])
def test_the_same_words_as_the_interpreter(algorithm: str, kind: str, words: int) -> None:
    """Counters overflow from word to word here."""
    state = np.array(_STATES[words], np.uint32)
    module = parse_module(_text(algorithm, kind, words))
    following, bits = evaluate(module, [state])
    found = run(compile_module(module, OURS), state)
    np.testing.assert_array_equal(found[0], following)
    np.testing.assert_array_equal(found[1].reshape(bits.shape), bits)


def test_a_state_of_64_bits_that_was_made_of_words() -> None:
    text = """HloModule bits

ENTRY main {
  s = u32[4] parameter(0)
  pairs = u32[2,2] reshape(s)
  state = u64[2] bitcast-convert(pairs)
  r = (u64[2], u32[6,2]) rng-bit-generator(state), algorithm=rng_philox
  next = u64[2] get-tuple-element(r), index=0
  words = u32[2,2] bitcast-convert(next)
  bits = u32[6,2] get-tuple-element(r), index=1
  ROOT both = (u32[2,2], u32[6,2]) tuple(words, bits)
}
"""
    state = np.array(_STATES[4], np.uint32)
    module = parse_module(text)
    for got, want in zip(run(compile_module(module, OURS), state), evaluate(module, [state]), strict=True):
        np.testing.assert_array_equal(got, want)


def test_what_is_no_state_of_words_is_refused() -> None:
    for text in (_text("rng_philox", "u32[4]", 2, "u64"), _text("rng_three_fry", "u64[4]", 4)):
        with pytest.raises(CompileError, match="NCC_EVRF006"):
            compile_module(parse_module(text), OURS)
    with pytest.raises(CompileError, match="NCC_EVRF006"):
        compile_module(parse_module(_text("rng_philox", "u32[4]", 4)), CompileOptions())
