"""Memory that nothing has written: NaN in floats, 4 in integers, in every space, forward and back in time."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.device_memory import DeviceMemory
from emulator.fresh import fill_fresh, fresh_pattern
from emulator.memory import ChipMemory
from emulator.runtime import run
from formats.dtypes import DTYPES, Dtype
from formats.errors import FormatError
from formats.targets import resolve_target
from neurontools.builder.allocate import Life
from neurontools.builder.fresh import fresh_map
from neurontools.builder.tiles import Tiles
from neurontools.builder.trace import Allocation, LoopEndOp, Space, Trace
from neurontools.debugger import Session
from neurontools.nki.launch import build_neff

ENTRY = '[{"dtype": "int32", "space": "SBUF", "partition": %d, "partitions": %d, "offset": 0, "nbytes": %d}]'
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
FLOATS = ("float32", "bfloat16", "float16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2")


def reads_fresh_memory(dtype: Any) -> Any:
    """Copy a tile of which only the first row was written, a private tensor, and return an output nobody wrote."""
    never = nl.ndarray((4, 6), dtype, nl.shared_hbm)
    from_tile, from_hbm = nl.ndarray((4, 6), dtype, nl.shared_hbm), nl.ndarray((4, 6), dtype, nl.shared_hbm)
    tile = nl.ndarray((4, 6), dtype, nl.sbuf)
    nisa.memset(tile[0:1], 1)
    nisa.dma_copy(from_tile, tile)
    nisa.dma_copy(from_hbm, nl.ndarray((4, 6), dtype, nl.private_hbm))
    return never, from_tile, from_hbm


@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS])
def test_outputs_tiles_and_private_tensors(name: str) -> None:
    never, from_tile, from_hbm = (one.astype(np.float32) for one in nki.simulate(reads_fresh_memory)(getattr(nl, name)))
    fresh = np.full((4, 6), 4 if name in INTEGERS else np.nan, np.float32)
    np.testing.assert_array_equal(never, fresh)
    np.testing.assert_array_equal(from_hbm, fresh)
    fresh[0] = 1
    np.testing.assert_array_equal(from_tile, fresh)


def test_truth_values_of_fresh_memory_are_true() -> None:
    (never, *_) = nki.simulate(reads_fresh_memory)(nl.bool_)
    assert never.dtype == np.bool_ and (never.view(np.uint8) == 1).all()


def test_psum_registers_and_results_of_what_was_never_written() -> None:
    def kernel() -> Any:
        out = nl.ndarray((8, 3), nl.int32, nl.shared_hbm)
        psum = nl.ndarray((8, 2), nl.int32, nl.psum)
        tile = nl.ndarray((8, 3), nl.int32, nl.sbuf)
        nisa.tensor_scalar(tile[:, 0:2], psum, nl.multiply, 3)
        nisa.tensor_copy(tile[:, 2:3], psum[:, 0:1])
        nisa.dma_copy(out, tile)
        return out

    np.testing.assert_array_equal(nki.simulate(kernel)(), [[12, 12, 4]] * 8)


def test_two_cores_have_fresh_memories_of_their_own() -> None:
    def kernel() -> Any:
        out = nl.ndarray((2, 5), nl.int16, nl.shared_hbm)
        rank = nl.program_id(0)
        tile = nl.ndarray((2, 5), nl.int16, nl.sbuf)
        nisa.memset(tile[0:1, 0 : 2 + rank], -1)
        nisa.dma_copy(out[rank : rank + 1], tile[0:1])
        return out

    np.testing.assert_array_equal(nki.simulate(kernel)[2](), [[-1, -1, 4, 4, 4], [-1, -1, -1, 4, 4]])


def test_bytes_that_an_earlier_tile_used_keep_what_it_left() -> None:
    def kernel() -> Any:
        out = nl.ndarray((2, 4), nl.int32, nl.shared_hbm)
        before = nl.ndarray((2, 4), nl.int32, nl.sbuf, address=(0, 0))
        nisa.memset(before, 9)
        again = nl.ndarray((2, 8), nl.int32, nl.sbuf, address=(0, 0))
        nisa.dma_copy(out, again[:, 0:4])
        return out

    np.testing.assert_array_equal(nki.simulate(kernel)(), np.full((2, 4), 9))


def test_reading_it_is_still_found() -> None:
    def findings(dtype: Any) -> list[tuple[str, str, int]]:
        result = run(build_neff(reads_fresh_memory, (dtype,), {}), {}, checks=["init"])
        return [(one.tool, one.kind, one.count) for one in result.findings]

    assert findings(nl.int32) and findings(nl.int32) == findings(nl.float32)


def test_going_back_brings_fresh_memory_back() -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray((4, 6), nl.int32, nl.shared_hbm)
        tile = nl.ndarray((4, 6), nl.int32, nl.sbuf)
        nisa.tensor_scalar(tile[:, 0:2], nl.load(x)[:, 0:2], nl.add, 1)
        nisa.dma_copy(out[0:2], tile[0:2])
        return out

    x = np.arange(100, 124, dtype=np.int32).reshape(4, 6)
    session = Session(build_neff(kernel, (x,), {}), {"x": x})
    assert (session.device.cores[0].sbuf.view(np.int32) == 4).sum() == 24
    hashes = [session.device.state_hash()]
    while session.step().completions:
        hashes.append(session.device.state_hash())
    assert (session.device.cores[0].sbuf.view(np.int32) == 4).sum() == 16
    for want in reversed(hashes[:-1]):
        session.reverse_step()
        assert session.device.state_hash() == want
    assert (session.device.cores[0].sbuf.view(np.int32) == 4).sum() == 24


def test_running_again_from_a_checkpoint_brings_fresh_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray((4, 6), nl.int32, nl.shared_hbm)
        tile = nl.ndarray((4, 6), nl.int32, nl.sbuf)
        for column in range(5):
            nisa.tensor_scalar(tile[:, column : column + 1], nl.load(x)[:, 0:1], nl.add, column)
        nisa.dma_copy(out[0:2], tile[0:2])
        return out

    monkeypatch.setattr("emulator.journal.journal._MOST", 10)
    x = np.full((4, 6), 100, np.int32)
    session = Session(build_neff(kernel, (x,), {}), {"x": x}, journal_bytes=100_000_000)
    hashes = [session.device.state_hash()]
    while session.step().completions:
        hashes.append(session.device.state_hash())
    assert session.when().checkpoints >= 1
    for want in reversed(hashes[:-1]):
        session.journal._records.clear()  # as if the budget had been small
        session.reverse_step()
        assert session.device.state_hash() == want


def test_a_look_at_untouched_memory_sees_it_too() -> None:
    session = Session(build_neff(reads_fresh_memory, (nl.int32,), {}))
    name = session.device.model.outputs[0].name
    assert (session.tensor(name).array == 4).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("{}", "is not a list"),
        ("[" * 100_000, "nested too deeply"),
        ("[1]", "entry 0: no object with a dtype"),
        ('[{"dtype": "int32", "variable": "nowhere"}]', "no such variable"),
        ('[{"dtype": "int32", "space": "HBM"}]', "expected SBUF or PSUM"),
        ('[{"dtype": "int32", "space": "SBUF", "partition": -1}]', "entry 0.partition: no such number"),
        (ENTRY % (1, 128, 4), "outside"),
        (ENTRY % (0, 1, 6), "whole elem"),
        ('[{"dtype": "int99", "space": "SBUF"}]', "int99"),
    ],
)
def test_a_malformed_list_is_one_error(text: str, message: str) -> None:
    class Graph:
        def has(self, name: str) -> bool:
            return name == "fresh.json"

        def member(self, name: str) -> str:
            return f"sg00/{name}"

        def parsed_bytes(self, name: str) -> bytes:
            return text.encode()

    with pytest.raises(FormatError, match=message):
        fill_fresh(Graph(), {}, ChipMemory(0, 128, 64, 64, 64), DeviceMemory(((0, 1 << 24),)))  # type: ignore[arg-type]


def test_only_what_may_be_read_is_listed() -> None:
    def whole(x: Any) -> Any:
        out = nl.ndarray((4, 6), nl.int32, nl.shared_hbm)
        nl.store(out, nl.add(nl.load(x), nl.load(x)))
        return out

    x = np.ones((4, 6), np.int32)
    assert not build_neff(whole, (x,), {}).subgraphs[0].has("fresh.json")
    listed = json.loads(build_neff(reads_fresh_memory, (nl.int8,), {}).subgraphs[0].read("fresh.json"))
    assert [sorted(one)[1] for one in listed] == ["variable", "nbytes"]
    assert {one["dtype"] for one in listed} == {"int8"}


def test_patterns() -> None:
    assert [fresh_pattern(name) for name in ("int32", "uint8")] == [b"\4\0\0\0", b"\4"]
    assert [fresh_pattern(name) for name in ("bfloat16", "float32", "")] == [b"\xff"] * 3


RECTANGLES = st.lists(
    st.tuples(st.sampled_from([Space.SBUF, Space.PSUM]), st.integers(0, 5), st.integers(1, 4), st.integers(0, 40),
              st.integers(1, 12), st.integers(0, 9)),
    min_size=1, max_size=24,
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(RECTANGLES)
def test_a_tile_on_bytes_of_an_older_one_is_not_listed(rectangles: list[tuple[Space, int, int, int, int, int]]) -> None:
    nowhere = ("kernel.py", 1)
    trace = Trace(resolve_target("trn2"))
    trace.ops = [LoopEndOp(nowhere)] * 10  # an operation that writes none of the tiles
    lives, places, taken = [], {}, {}
    for number, (space, partition, partitions, byte, width, first) in enumerate(rectangles):
        tile = Allocation(number, space, f"tile_{number}", Dtype.INT8, (partitions, width))
        lives.append(Life(tile, first, 9, nowhere))
        places[number] = (partition, byte)
        taken[number] = {(space, row, column) for row in range(partition, partition + partitions)
                         for column in range(byte, byte + width)}  # fmt: skip
    want = [
        (mine.allocation.space.name, *places[mine.allocation.id], *mine.allocation.shape)
        for mine in lives
        if not any(other.first < mine.first and taken[other.allocation.id] & taken[mine.allocation.id]
                   for other in lives)
    ]  # fmt: skip
    keys = ("space", "partition", "offset", "partitions", "nbytes")
    listed = json.loads(fresh_map(trace, Tiles(lives, places, {}), {}, frozenset()) or b"[]")
    assert [tuple(one[key] for key in keys) for one in listed] == want


def test_whole_numbers_are_those_that_numpy_calls_so() -> None:
    found = {dtype.spelling for dtype in DTYPES if dtype.is_int}
    assert found == {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
