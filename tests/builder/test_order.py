"""Every pair of conflicting accesses is ordered, and no more than that: proved on traces of random views."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator import runtime
from formats import isa
from formats.neff import open_neff
from neurontools.builder import build
from neurontools.builder.trace import Allocation, View
from tests.builder.maker import BF16, F32, Maker, interpret
from tests.builder.order import unordered

SIZE = 16


def box(data: st.DataObject, m: Maker, one: Allocation, rows: int, columns: int) -> View:
    """Return a random view of `rows` x `columns`, sometimes with gaps between its columns."""
    chip = one.space.value != "hbm"
    top = data.draw(
        st.sampled_from([r for r in (0, 8) if r + rows <= one.shape[0]] if chip else range(one.shape[0] - rows + 1))
    )
    step = data.draw(st.integers(1, max(1, min(3, (one.shape[1] - 1) // max(columns - 1, 1)))))
    reach = (columns - 1) * step + 1
    left = data.draw(st.integers(0, one.shape[1] - reach))
    return m.view(one, slice(top, top + rows), slice(left, left + reach, step))


def random_trace(data: st.DataObject, target: str, *, addresses: bool) -> Maker:
    """Return a trace of random copies, sums, products and transfers over a few tensors that overlap in time.

    With `addresses` tiles share bytes by the kernel's own choice; without, no operation reads what it writes elsewhere.
    """
    m = Maker(target)
    tensors = [m.input("x", (SIZE, SIZE)), m.output("y", (SIZE, SIZE)), m.hbm("scratch", (SIZE, SIZE))]
    for source in tensors[1:]:
        m.dma(source, tensors[0])
    tiles: list[Allocation] = []
    for _ in range(data.draw(st.integers(4, 18))):
        for _ in range(max(3 - len(tiles), data.draw(st.integers(0, 1)))):
            # Few places, so that tiles take over the bytes of others.
            address = (
                (0, 0x4000 + 32 * data.draw(st.integers(0, 3))) if addresses and data.draw(st.booleans()) else None
            )
            tile = m.sbuf((SIZE, SIZE), F32, address)
            m.dma(tile, tensors[0])
            tiles = [*tiles[-3:], tile]
        kind = data.draw(st.sampled_from(["copy", "add", "load", "store", "matmul", "hbm"]))
        rows, columns = data.draw(st.sampled_from([4, 8])), data.draw(st.integers(1, 6))
        if addresses:
            chosen = [data.draw(st.sampled_from(tiles)) for _ in range(3)]
        else:
            chosen = data.draw(st.permutations(tiles))[:3]
        a, b, c = (box(data, m, one, rows, columns) for one in chosen)
        engine = data.draw(st.sampled_from(["DVE", "Pool", "Activation"]))
        if kind == "copy":
            m.copy(a, b, "DVE" if target == "trn1" and engine == "Activation" else engine)
        elif kind == "add":
            m.add(a, b, c, "Pool" if engine == "Pool" else "DVE")
        elif kind == "load":
            m.dma(a, box(data, m, data.draw(st.sampled_from(tensors)), rows, columns))
        elif kind == "store":
            m.dma(
                box(data, m, data.draw(st.sampled_from(tensors[1:])), rows, columns),
                a,
                data.draw(st.sampled_from([None, "SP"])),
            )
        elif kind == "hbm":
            one, other = (box(data, m, data.draw(st.sampled_from(tensors[1:])), rows, columns) for _ in range(2))
            if not overlapping(one, other):
                m.dma(one, other)
        else:
            result = m.psum((8, SIZE))
            part = m.view(result, slice(0, columns), slice(0, columns))
            m.matmul(part, b, c)
            m.matmul(part, c, b)
            m.copy(
                box(data, m, chosen[0], columns if columns in (4, 8) else 4, 1),
                m.view(result, slice(0, columns if columns in (4, 8) else 4), slice(0, 1)),
            )
    m.dma(tensors[1], tiles[-1], "SP")
    return m


def overlapping(a: View, b: View) -> bool:
    """Tell whether two HBM views share a byte: what such a copy does is nobody's to say."""

    def cells(view: View) -> set[int]:
        places = {view.offset // 4}
        for step, count in view.dims:
            places = {place + step * i for place in places for i in range(count)}
        return places

    return a.allocation is b.allocation and bool(cells(a) & cells(b))


@settings(max_examples=60)
@given(st.data(), st.sampled_from(["trn1", "trn2"]))
def test_random_traces_are_ordered(data: st.DataObject, target: str) -> None:
    m = random_trace(data, target, addresses=True)
    neff = open_neff(build([m.trace], "random").to_bytes())
    assert neff.verify() == []
    assert unordered(neff) == []


@settings(max_examples=80)
@given(st.data(), st.sampled_from(["trn1", "trn2", "trn3"]), st.integers(0, 3))
def test_random_traces_compute_what_their_order_says(data: st.DataObject, target: str, seed: int) -> None:
    """Run the words under random schedules; NumPy runs the operations one after the other."""
    m = random_trace(data, target, addresses=False)
    x = np.random.default_rng(seed).integers(-2, 3, (SIZE, SIZE)).astype(np.float32)
    expected = interpret(m.trace, {"x": x})["y"]
    result = runtime.run(build([m.trace], "random").to_bytes(), {"x": x}, seed=seed)
    assert result.fault is None and result.hang is None
    np.testing.assert_allclose(result.outputs["y"], expected, rtol=1e-5)


def test_the_checker_sees_a_missing_wait() -> None:
    """Losing any one wait of a small program leaves a pair unordered, so nothing here waits for nothing."""
    m = Maker()
    x, y = m.input("x", (128, 32)), m.output("y", (128, 32))
    a, b = m.sbuf((128, 32)), m.sbuf((128, 32))
    for _ in range(3):
        m.dma(a, x)
        m.copy(b, a)
        m.dma(y, b)
    neff = open_neff(build([m.trace], "small").to_bytes())
    assert unordered(neff) == []
    words = {engine: list(neff.subgraphs[0].streams[engine]) for engine in isa.ENGINES}
    lost = 0
    for engine, stream in words.items():
        for index, word in enumerate(stream):
            if not word.wait or isinstance(word, isa.Nop):
                continue
            changed = [*stream[:index], word.replace(wait_mode=0, wait_index=0, wait_value=0), *stream[index + 1 :]]
            neff.subgraphs[0].streams._streams[engine] = changed  # type: ignore[assignment]
            assert unordered(neff), f"{engine} {index} {word.asm} is not needed"
            neff.subgraphs[0].streams._streams[engine] = stream  # type: ignore[assignment]
            lost += 1
    assert lost >= 7


def test_tiles_of_one_output_are_not_ordered_with_each_other() -> None:
    """Stores to different columns of a tensor need no waits between them."""
    m = Maker()
    y = m.output("y", (128, 64))
    tile = m.sbuf((128, 64))
    m.memset(tile, 1.0)
    for column in range(0, 64, 8):
        m.dma(
            m.view(y, slice(None), slice(column, column + 8)),
            m.view(tile, slice(None), slice(column, column + 8)),
            "SP" if column % 16 else "Pool",
        )
    report = build([m.trace], "stores").report.cores[0]
    # One wait per queue for the fill, two for the end.
    assert report.waits == 4


def test_reuse_of_an_address_is_ordered() -> None:
    m = Maker()
    x, y = m.input("x", (2, 16000)), m.output("y", (2, 16000))
    for _ in range(5):
        tile = m.sbuf((2, 16000))
        m.dma(tile, x)
        m.dma(y, tile)
    neff = open_neff(build([m.trace], "reuse").to_bytes())
    assert unordered(neff) == []
    loads = [
        word
        for engine in ("SP", "Activation")
        for word in neff.subgraphs[0].streams[engine]
        if isinstance(word, isa.PseudoDmaDirect2d)
    ]
    assert sum(bool(word.wait) for word in loads) == 2


@pytest.mark.parametrize("dtype", [F32, BF16])
def test_weights_that_stay_loaded_are_ordered(dtype: object) -> None:
    m = Maker()
    x, y = m.input("x", (128, 128), dtype), m.output("y", (128, 64))  # type: ignore[arg-type]
    left, right = m.sbuf((128, 128), dtype), m.sbuf((128, 64), dtype)  # type: ignore[arg-type]
    m.memset(right, 1.0)
    for _ in range(2):
        m.dma(left, x)
        for _ in range(3):
            result, out = m.psum((128, 64)), m.sbuf((128, 64))
            m.matmul(result, left, right)
            m.copy(out, result)
            m.dma(y, out)
    assert unordered(open_neff(build([m.trace], "weights").to_bytes())) == []
