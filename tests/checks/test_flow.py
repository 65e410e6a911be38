"""Where undefined bytes go: the words that move them exactly, and those that let none through."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.access import Operand
from emulator.checks import Finding
from emulator.checks.flow import Flow, outputs_of
from emulator.checks.mark_rows import folded
from formats import isa
from neurontools.nki.launch import build_neff
from tests.checks.support import checked, serious

LIVE = 20


def run(body: Any, rows: int = 32, columns: int = 32, stored: tuple[int, int] | None = None) -> list[Finding]:
    """Load `LIVE` rows of a tile, let `body` make another from it, store some of that."""

    def kernel(x: Any) -> Any:
        part = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=part[0:LIVE, 0:columns], src=x[0:LIVE, 0:columns])
        result = body(part)
        size = stored or tuple(result.shape)
        out = nl.ndarray(size, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=result[0 : size[0], 0 : size[1]])
        return out

    x = np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32)
    neff: Any = build_neff(kernel, (x,), {}, target="trn2")
    found, device = checked(neff, {neff.inputs[0].name: x}, ("initcheck",))
    assert device.outcome == "finished", device.fault
    # The truth: what is undefined is NaN here, and nothing that these kernels compute is.
    nans = int(np.isnan(next(iter(device.outputs().values()))).sum())
    bytes_ = sum(int(finding.details["bytes"]) for finding in serious(found))
    assert bytes_ == 4 * nans
    return serious(found)


def tile(shape: tuple[int, int], buffer: Any = None) -> Any:
    return nl.ndarray(shape, dtype=nl.float32, buffer=buffer or nl.sbuf)


def transposed(part: Any) -> Any:
    turned = tile((part.shape[1], part.shape[0]))
    nisa.nc_transpose(dst=turned, data=part, engine=nisa.vector_engine)
    return turned


def transposed_by_pe(part: Any) -> Any:
    turned = tile((part.shape[1], part.shape[0]), nl.psum)
    nisa.nc_transpose(dst=turned, data=part, engine=nisa.tensor_engine)
    result = tile((part.shape[1], part.shape[0]))
    nisa.tensor_copy(dst=result, src=turned)
    return result


def reduced(part: Any) -> Any:
    total = tile((part.shape[0], 1))
    nisa.tensor_reduce(dst=total, op=nl.add, data=part, axis=1, keepdims=True)
    return total


def overwritten(part: Any) -> Any:
    result = tile(tuple(part.shape))
    nisa.tensor_copy(dst=result, src=part)
    nisa.memset(dst=result, value=1.0)
    return result


def in_place(part: Any) -> Any:
    nisa.tensor_scalar(dst=part, data=part, op0=nl.add, operand0=1.0)
    nisa.activation(dst=part, op=nl.tanh, data=part)
    return part


def product(part: Any) -> Any:
    """The undefined rows are summed over: every element depends on them."""
    total = tile((part.shape[1], part.shape[1]), nl.psum)
    nisa.nc_matmul(dst=total, stationary=part, moving=part)
    result = tile((part.shape[1], part.shape[1]))
    nisa.tensor_copy(dst=result, src=total)
    return result


def live_product(part: Any) -> Any:
    total = tile((part.shape[1], part.shape[1]), nl.psum)
    live = part[0:LIVE, 0 : part.shape[1]]
    nisa.nc_matmul(dst=total, stationary=live, moving=live)
    result = tile((part.shape[1], part.shape[1]))
    nisa.tensor_copy(dst=result, src=total)
    return result


@pytest.mark.parametrize("body", [transposed, transposed_by_pe, reduced, in_place, product])
def test_undefined_rows_are_followed(body: Any) -> None:
    (finding, *_) = run(body)
    assert finding.kind == "undefined-output" and finding.site.source is not None
    assert finding.tensor == "part" and finding.region is not None and finding.region.space == "SBUF"


@pytest.mark.parametrize(
    ("body", "stored"),
    [
        (transposed, (32, LIVE)),
        (transposed_by_pe, (32, LIVE)),
        (reduced, (LIVE, 1)),
        (in_place, (LIVE, 32)),
        (overwritten, (32, 32)),
        (live_product, (32, 32)),
    ],
)
def test_defined_parts_are_clean(body: Any, stored: tuple[int, int]) -> None:
    assert run(body, stored=stored) == []


def test_a_choice_takes_what_it_chose() -> None:
    """The undefined rows are not chosen where the predicate is zero."""

    def chosen(part: Any) -> Any:
        mask = nl.ndarray(part.shape, dtype=nl.uint32, buffer=nl.sbuf)
        nisa.memset(dst=mask, value=0)
        nisa.memset(dst=mask[0:32, 0:8], value=1)
        result = tile(tuple(part.shape))
        nisa.memset(dst=result, value=5.0)
        nisa.tensor_copy_predicated(dst=result, src=part, predicate=mask)
        return result

    (finding,) = run(chosen)
    assert finding.details["bytes"] == (32 - LIVE) * 8 * 4
    assert run(chosen, stored=(LIVE, 32)) == []


def test_a_scaled_product_that_adds_keeps_what_was_undefined() -> None:
    before = folded(np.ones((32, 4), np.int16))
    outputs = {"dst": Operand("dst", np.zeros((32, 4), np.float32), (), ())}
    core: Any = None
    for adds in (1, 0):
        word = isa.MatMulMx(accumulate=adds)
        marks = outputs_of(Flow(), word, "PE", {"src": None, "dst": before}, outputs, core)["dst"]
        assert word.adds == bool(adds) == (marks is not None and bool(marks.rows.all()))


def stored(kernel: Any, *shapes: tuple[int, int]) -> list[Finding]:
    """Run a kernel, and return what initcheck says, notes too."""
    arrays = [np.random.default_rng(0).standard_normal(shape).astype(np.float32) for shape in shapes]
    neff: Any = build_neff(kernel, tuple(arrays), {}, target="trn2")
    return checked(neff, {one.name: array for one, array in zip(neff.inputs, arrays, strict=True)}, ("initcheck",))[0]


def lines_of(found: list[Finding]) -> list[int]:
    return sorted(getattr(one.site.source, "line", 0) for one in found)


def test_the_first_of_two_reads_of_one_tile_is_named() -> None:
    """A running maximum that nothing began is read twice in a turn; what comes of both reads meets again."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((32, 1), dtype=x.dtype, buffer=nl.shared_hbm)
        part, top, most, apart = tile((32, 32)), tile((32, 1)), tile((32, 1)), tile((32, 1))
        nisa.dma_copy(dst=part, src=x)
        nisa.tensor_reduce(dst=top, op=nl.maximum, data=part, axis=1)
        nisa.tensor_tensor(top, top, most, nl.maximum)  # first
        nisa.tensor_tensor(apart, most, top, nl.subtract)
        nisa.dma_copy(dst=out, src=apart)
        return out

    (found,) = stored(kernel, (32, 32))
    assert found.kind == "undefined-output" and found.site.text.startswith("TENSOR_TENSOR")
    assert "op=MAX" in found.site.text and found.details["bytes"] == 128


def test_two_tiles_that_meet_are_both_named() -> None:
    """Of a scale and a shift that nothing wrote, mending one would leave the other: neither is a note."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((32, 32), dtype=x.dtype, buffer=nl.shared_hbm)
        part, scale, shift = tile((32, 32)), tile((32, 1)), tile((32, 1))
        nisa.dma_copy(dst=part, src=x)
        nisa.tensor_scalar(part, part, nl.multiply, scale)
        nisa.tensor_scalar(part, part, nl.add, shift)
        nisa.dma_copy(dst=out, src=part)
        return out

    first, second = stored(kernel, (32, 32))
    assert [one.kind for one in (first, second)] == ["undefined-output"] * 2 and {first.tensor, second.tensor} == {
        "scale",
        "shift",
    }
    assert lines_of([second]) == [lines_of([first])[0] + 1]
    assert "together with those of DVE" in second.message and second.others[0].pc == first.site.pc
    assert (first.details["bytes"], second.details["bytes"]) == (32 * 32 * 4, 0)


def test_what_no_output_takes_stays_a_note() -> None:
    """Beside a fault, a read that leads nowhere is not counted to it."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((32, 32), dtype=x.dtype, buffer=nl.shared_hbm)
        part, scale, other, work = tile((32, 32)), tile((32, 1)), tile((32, 32)), tile((32, 32))
        nisa.dma_copy(dst=part, src=x)
        nisa.tensor_copy(dst=work, src=other)
        nisa.tensor_scalar(part, part, nl.multiply, scale)
        nisa.dma_copy(dst=out, src=part)
        return out

    assert [one.kind for one in stored(kernel, (32, 32))] == ["undefined-output", "unwritten-read"]
