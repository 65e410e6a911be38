"""Words that write bytes which they read only later are told; those that work in place, or backwards, are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import neurontools
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.checks import Finding
from neurontools.nki.launch import build_neff
from tests.checks.support import assembled, checked

P, W = 128, 64
X = np.ones((P, W), np.float32)


def found_of(body: Any, x: np.ndarray[Any, Any] = X) -> list[Finding]:
    """Return what racecheck finds in a kernel that works on one tile."""

    def kernel(given: Any) -> Any:
        out = nl.ndarray(given.shape, dtype=given.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray(given.shape, dtype=given.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=given)
        body(tile)
        nisa.dma_copy(dst=out, src=tile)
        return out

    neff: Any = build_neff(kernel, (x,), {}, target="trn2")
    found = checked(neff, {neff.inputs[0].name: x}, ("racecheck",))[0]
    for _ in range(2):  # as behind a run in which all is in order, and once more
        again = neurontools.run(neff, {neff.inputs[0].name: x}, checks=("all",)).findings
        assert [one.message for one in again if one.tool == "racecheck"] == [one.message for one in found]
    return found


@pytest.mark.parametrize(
    ("body", "operand"),
    [
        (lambda t: nisa.tensor_copy(t[0:P, 1:W], t[0:P, 0 : W - 1]), "src"),
        (lambda t: nisa.activation(t[0:P, 4:W], nl.exp, t[0:P, 0 : W - 4]), "src"),
        (lambda t: nisa.tensor_tensor(t[0:P, 1:W], t[0:P, 1:W], t[0:P, 0 : W - 1], nl.add), "src1"),
        (lambda t: nisa.tensor_tensor(t, t, t.ap([[W, P], [0, W]]), nl.subtract), "src1"),
        (lambda t: nisa.tensor_copy(t, t.ap([[W, P], [-1, W]], offset=W - 1)), "src"),
        (lambda t: nisa.tensor_copy(t.ap([[W, P], [2, 16]], offset=20), t[0:P, 10:26]), "src"),
    ],
    ids=["by a column", "by four", "sum of neighbours", "a column from all", "turned round", "spread"],
)
def test_a_word_that_writes_what_it_reads_later_is_told(body: Any, operand: str) -> None:
    (found,) = found_of(body)
    assert (found.kind, found.severity, found.site.operand) == ("in-place", "warning", "dst")
    assert found.tensor == "tile" and f"reads later as {operand}:" in found.message
    assert found.site.source.line == body.__code__.co_firstlineno


@pytest.mark.parametrize(
    "body",
    [
        lambda t: nisa.tensor_copy(t[0:P, 0 : W - 1], t[0:P, 1:W]),
        lambda t: nisa.tensor_copy(t[0:P, W // 2 : W], t[0:P, 0 : W // 2]),
        lambda t: nisa.tensor_tensor(t, t, t, nl.add),
        lambda t: nisa.tensor_scalar(t, t, nl.subtract, t[0:P, 0:1]),  # read once, before it streams
        lambda t: nisa.tensor_tensor(t[0:P, 0:1], t[0:P, 0:1], t[0:P, W - 1 : W], nl.add),
        lambda t: nisa.tensor_copy(t.ap([[W, P], [1, 16]]), t.ap([[W, P], [2, 16]])),
        lambda t: nisa.tensor_copy(t[64:P, 1:W], t[0:64, 0 : W - 1]),
        lambda t: nisa.tensor_reduce(t[0:P, 0:1], nl.add, t, 1, keepdims=True),
    ],
    ids=["back", "beside", "in place", "a scalar", "one column", "gathered", "other partitions", "folded"],
)
def test_what_is_read_before_it_is_written_is_quiet(body: Any) -> None:
    assert found_of(body) == []


@pytest.mark.parametrize(("src", "dst", "count"), [("bfloat16", "fp32", 1), ("fp32", "bfloat16", 0)])
def test_elements_of_two_sizes_in_one_place(src: str, dst: str, count: int) -> None:
    """A result that is wider runs ahead of what is read; a narrower one stays behind."""
    neff = assembled(f""".target trn2
.name q
.constant x float32 [128, 64] 1.0
.queue qIn sp 8
.dma qIn 0 8 x+0[1,256][256,128] -> SB+0x4000[1,262144][256,128]
.engine sp
    PSEUDO_DMA_TRIGGER qIn block_id=0
.engine dve
    CAST S[8]>=16 src={src}@0x4000[1,1,1,1][64,1,1,1] dst={dst}@0x4000[1,1,1,1][64,1,1,1] channels=128
""")
    assert [one.kind for one in checked(neff, {}, ("racecheck",))[0]] == ["in-place"] * count
