"""What AWS's nki-library asks of the front end, found by running its own tests; each case is the pattern in small."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

import neurontools.nki as nki
import neurontools.nki.language as nl
from tests.nki.support import trace, trace_body

A = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_a_tensor_in_hbm_is_true_as_an_argument_that_was_given() -> None:
    """Mixtures of experts ask `if expert_index:` for an optional argument (`core/mlp/mlp_tkg`)."""

    @nki.jit
    def kernel(x: Any, bias: Any = None) -> Any:
        out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
        tile = nl.load(x)
        nl.store(out, nl.add(tile, nl.load(bias)) if bias else tile)
        return out

    for one, expected in ((None, A), (A[:, ::-1].copy(), A + A[:, ::-1]), (np.zeros((3, 1), np.float32), A)):
        (traced,) = trace(kernel, A, one)
        assert len(traced.trace.inputs) == (1 if one is None else 2)
        np.testing.assert_array_equal(nki.simulate(kernel)(A, one), expected)


@pytest.mark.parametrize("test", ["if p.bias: pass", "assert not p or p.bias.shape", "1 if p and p.bias else 0"])
def test_a_field_that_holds_a_tile_is_true(test: str) -> None:
    """The same question about a tile of SBUF in a dataclass of parameters (`core/moe_block`)."""
    space: dict[str, Any] = {"nl": nl}
    source = (
        f"def kernel(x, p):\n    p.bias = nl.load(x)\n    {test}\n    if p.bias and not p.none:\n        p.seen = 1\n"
    )
    exec(source, space)
    fields = types.SimpleNamespace(none=None, seen=0)
    traced = trace_body(lambda: space["kernel"](nl.ndarray((4, 4), nl.float32, nl.shared_hbm), fields))
    assert fields.seen == 1 and traced.ops
