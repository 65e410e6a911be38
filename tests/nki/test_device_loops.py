"""Loops that run on the device: results, schedules, races, state at the edges, stepping; and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from emulator import runtime
from formats.isa import CompareBranch
from neurontools import nki
from neurontools.debugger import Session
from neurontools.nki import isa as nisa
from neurontools.nki import language as nl
from neurontools.nki.errors import NkiValidationError
from neurontools.nki.launch import build_neff
from tests.nki.support import trace_body

TARGETS = ("trn1", "trn2", "trn3")
RNG = np.random.default_rng(5)
A = RNG.standard_normal((512, 64)).astype(np.float32)
SQUARE = RNG.standard_normal((128, 128)).astype(np.float32)


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", request.param)
    return str(request.param)


def number(value: int) -> np.ndarray[Any, Any]:
    return np.array([[value]], np.int32)


def register(source: Any) -> tuple[Any, Any]:
    """Return a register with the number in HBM, and the tile that holds it."""
    tile = nl.ndarray((1, 1), nl.int32, nl.sbuf)
    nisa.dma_copy(tile, source)
    found = nisa.register_alloc()
    nisa.register_load(found, tile)
    return found, tile


def store(tile: Any) -> Any:
    output = nl.ndarray(tile.shape, tile.dtype, nl.shared_hbm)
    nisa.dma_copy(output, tile)
    return output


@nki.jit
def tiles_in_turn(data: Any, turns: Any, step: Any) -> Any:
    """Add 1 and take exp of as many tiles of 128 rows as the device finds in `turns`."""
    width = data.shape[1]
    output = nl.ndarray(data.shape, data.dtype, nl.shared_hbm)
    zeros = nl.zeros((128, width), data.dtype, nl.sbuf)
    for block in nl.affine_range(data.shape[0] // 128):
        nisa.dma_copy(output[block * 128 : (block + 1) * 128], zeros)
    stop, _ = register(turns)
    row = nl.ndarray((1, 1), nl.int32, nl.sbuf)
    for index in nl.dynamic_range(0, stop, step):
        nisa.register_store(row, index)
        tile = nl.ndarray((128, width), data.dtype, nl.sbuf)
        result = nl.ndarray((128, width), data.dtype, nl.sbuf)
        pattern = [[width, 128], [1, width]]
        nisa.dma_copy(tile, data.ap(pattern, scalar_offset=row, indirect_dim=0))
        nisa.activation(result, op=nl.exp, data=tile)
        nisa.tensor_tensor(result, result, tile, nl.add)
        nisa.dma_copy(output.ap(pattern, scalar_offset=index, indirect_dim=0), result)
    return output


@pytest.mark.parametrize(("rows", "step"), [(0, 128), (1, 128), (128, 128), (384, 128), (512, 128), (512, 256)])
def test_a_trip_count_that_only_the_device_knows(target: str, rows: int, step: int) -> None:
    want = np.zeros_like(A)
    for first in range(0, rows, step):
        want[first : first + 128] = np.exp(A[first : first + 128]) + A[first : first + 128]
    np.testing.assert_array_equal(tiles_in_turn(A, number(rows), step), want)


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_every_schedule_gives_the_same_bits_and_no_race(turns: int) -> None:
    neff = build_neff(tiles_in_turn, (A, number(128 * turns), 128), {})
    results = []
    for seed in (None, 1, 2, 3, 4):
        checks = ("memcheck", "initcheck", "racecheck", "synccheck") if seed in (None, 1) else ()
        ran = runtime.run(neff, {"data": A, "turns": number(128 * turns)}, seed=seed, checks=checks)
        assert ran.fault is None and ran.hang is None and not ran.findings
        results.append(next(iter(ran.outputs.values())))
    assert all(np.array_equal(results[0], one) for one in results[1:])


@nki.jit
def doubled(data: Any, turns: Any) -> Any:
    tile = nl.ndarray(data.shape, data.dtype, nl.sbuf)
    nisa.dma_copy(tile, data)
    left, count = register(turns)
    while left:
        nisa.tensor_scalar(tile, tile, nl.multiply, 2.0)
        nisa.tensor_scalar(count, count, nl.add, -1)
        nisa.register_load(left, count)
    return store(tile)


@nki.jit
def doubled_by_function(data: Any, turns: Any) -> Any:
    tile = nl.ndarray(data.shape, data.dtype, nl.sbuf)
    nisa.dma_copy(tile, data)
    left, count = register(turns)

    def body(value: Any) -> Any:
        nisa.tensor_scalar(tile, tile, nl.multiply, 2.0)
        nisa.tensor_scalar(count, count, nl.add, -1)
        nisa.register_load(value, count)
        return value

    nl.while_loop(left, body)
    return store(tile)


@pytest.mark.parametrize("kernel", [doubled, doubled_by_function])
@pytest.mark.parametrize("turns", [0, 1, 5])
def test_while_a_register_is_not_zero(target: str, kernel: Any, turns: int) -> None:
    np.testing.assert_array_equal(kernel(A[:128], number(turns)), A[:128] * 2.0**turns)


def test_while_counts_a_negative_number_up() -> None:
    @nki.jit
    def kernel(turns: Any) -> Any:
        left, count = register(turns)
        total = nl.zeros((1, 1), nl.int32, nl.sbuf)
        while left:
            nisa.tensor_scalar(total, total, nl.add, 7)
            nisa.tensor_scalar(count, count, nl.add, 1)
            nisa.register_load(left, count)
        return store(total)

    assert kernel(number(-3)) == 21


def test_fori_loop_passes_its_index_by_value() -> None:
    @nki.jit
    def kernel(data: Any, bound: Any) -> Any:
        upper, _ = register(bound)
        total = nl.zeros((1, 1), nl.int32, nl.sbuf)
        now = nl.ndarray((1, 1), nl.int32, nl.sbuf)

        def body(index: Any) -> None:
            nisa.register_store(now, index)
            nisa.tensor_tensor(total, total, now, nl.add)
            nisa.register_move(index, imm=1000)  # has no effect on the loop

        nl.fori_loop(2, upper, body, step=3)
        return store(total)

    assert kernel(A, number(12)) == sum(range(2, 12, 3))


def test_bounds_are_read_once() -> None:
    @nki.jit
    def kernel(bound: Any) -> Any:
        stop, _ = register(bound)
        total = nl.zeros((1, 1), nl.int32, nl.sbuf)
        for _ in nl.dynamic_range(stop):
            nisa.register_move(stop, imm=0)
            nisa.tensor_scalar(total, total, nl.add, 1)
        return store(total)

    assert kernel(number(4)) == 4


@pytest.mark.parametrize("outer", [0, 1, 3])
def test_loops_in_loops_add_in_psum(target: str, outer: int) -> None:
    """The sums of a tile that is older than the loops go on from turn to turn, from zero."""

    @nki.jit
    def kernel(left: Any, right: Any, turns: Any) -> Any:
        stop, _ = register(turns)
        sums = nl.ndarray((128, 128), nl.float32, nl.psum)
        for _ in nl.dynamic_range(stop):
            stationary, moving = (nl.ndarray((128, 128), nl.float32, nl.sbuf) for _ in range(2))
            nisa.dma_copy(stationary, left)
            nisa.dma_copy(moving, right)
            for _ in nl.dynamic_range(2):
                nisa.nc_matmul(sums, stationary, moving)
        result = nl.ndarray((128, 128), nl.float32, nl.sbuf)
        nisa.tensor_copy(result, sums)
        return store(result)

    want = 2 * outer * (SQUARE.T.astype(np.float64) @ SQUARE)
    np.testing.assert_allclose(kernel(SQUARE, SQUARE, number(outer)), want, atol=2e-3)


def test_a_new_psum_tile_each_turn_starts_from_nothing() -> None:
    @nki.jit
    def kernel(data: Any, turns: Any) -> Any:
        stop, _ = register(turns)
        tile, result = (nl.ndarray((128, 128), nl.float32, nl.sbuf) for _ in range(2))
        nisa.dma_copy(tile, data)
        nisa.memset(result, 0.0)
        for _ in nl.dynamic_range(stop):
            sums = nl.ndarray((128, 128), nl.float32, nl.psum)
            nisa.nc_matmul(sums, tile, tile)
            nisa.nc_matmul(sums, tile, tile)
            nisa.tensor_copy(result, sums)
        return store(result)

    want = 2 * (SQUARE.T.astype(np.float64) @ SQUARE)
    np.testing.assert_allclose(kernel(SQUARE, number(3)), want, atol=2e-3)


def test_activation_tables_are_loaded_where_turns_meet() -> None:
    """exp, then sqrt, then exp again in the next turn; and sigmoid behind a loop that may not have run."""

    @nki.jit
    def kernel(data: Any, turns: Any) -> Any:
        stop, _ = register(turns)
        tile = nl.ndarray(data.shape, data.dtype, nl.sbuf)
        nisa.dma_copy(tile, data)
        nisa.activation(tile, op=nl.sigmoid, data=tile)
        for _ in nl.dynamic_range(stop):
            nisa.activation(tile, op=nl.exp, data=tile, scale=0.1)
            nisa.activation(tile, op=nl.sqrt, data=tile)
        nisa.activation(tile, op=nl.sigmoid, data=tile)
        return store(tile)

    def sigmoid(x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    for turns in (0, 1, 4):
        want = sigmoid(A[:128].astype(np.float64))
        for _ in range(turns):
            want = np.sqrt(np.exp(0.1 * want))
        np.testing.assert_allclose(kernel(A[:128], number(turns)), sigmoid(want), rtol=1e-5)


def test_tiles_older_than_a_loop_keep_their_bytes_through_it() -> None:
    """What the end of the body writes is read at its beginning a turn later; nothing else may stand there."""

    @nki.jit
    def kernel(data: Any, turns: Any) -> Any:
        stop, _ = register(turns)
        kept = nl.ndarray((128, 2048), nl.float32, nl.sbuf)
        nisa.memset(kept, 1.0)
        total = nl.zeros((128, 2048), nl.float32, nl.sbuf)
        for _ in nl.dynamic_range(stop):
            nisa.tensor_tensor(total, total, kept, nl.add)
            for _ in nl.affine_range(24):  # enough to come round to every free place
                passing = nl.ndarray((128, 2048), nl.float32, nl.sbuf)
                nisa.memset(passing, 99.0)
            nisa.tensor_scalar(kept, total, nl.add, 1.0)
        return store(total)

    # total and kept: 1 2, 3 4, 7 8, 15 16
    np.testing.assert_array_equal(kernel(A, number(4)), np.full((128, 2048), 15.0, np.float32))


def test_both_cores_loop_and_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn2")

    @nki.jit
    def kernel(data: Any, turns: Any) -> Any:
        me = nl.program_id(0)
        stop, _ = register(turns)
        board = nl.ndarray((2, *data.shape), data.dtype, nl.shared_hbm)
        tile = nl.ndarray(data.shape, data.dtype, nl.sbuf)
        nisa.dma_copy(tile, data)
        nisa.tensor_scalar(tile, tile, nl.add, float(me))
        for _ in nl.dynamic_range(stop):
            nisa.dma_copy(board[me], tile)
            nisa.core_barrier(board, (0, 1))
            other = nl.ndarray(data.shape, data.dtype, nl.sbuf)
            nisa.dma_copy(other, board[1 - me])
            nisa.core_barrier(board, (0, 1))
            nisa.tensor_tensor(tile, tile, other, nl.add)
        output = nl.ndarray((2, *data.shape), data.dtype, nl.shared_hbm)
        nisa.dma_copy(output[me], tile)
        return output

    got = kernel[2](A[:128], number(3))
    mine, peers = A[:128], A[:128] + np.float32(1)
    for _ in range(3):
        mine, peers = mine + peers, peers + mine
    np.testing.assert_array_equal(got, np.stack([mine, peers]))


def test_the_file_does_not_grow_with_the_turns() -> None:
    short, long = (build_neff(tiles_in_turn, (A, number(128 * n), 128), {}) for n in (1, 4))
    for engine, words in short.subgraphs[0].streams.items():
        assert len(words) == len(long.subgraphs[0].streams[engine])
        assert sum(isinstance(word, CompareBranch) for word in words) == 2


def test_stepping_back_through_turns() -> None:
    inputs = {"data": A[:128], "turns": number(2)}
    session = Session(build_neff(doubled, tuple(inputs.values()), {}), inputs)
    line = next(line for line, text in enumerate(_source(), 1) if "tensor_scalar(tile, tile, nl.multiply, 2.0)" in text)
    session.break_at(f"test_device_loops.py:{line}")
    stride = 13
    states = [(session.events, session.device.state_hash())]
    while session.step(stride).completions == stride:
        states.append((session.events, session.device.state_hash()))
    for events, state in reversed(states):
        while session.events > events:
            session.reverse_step()
        assert session.device.state_hash() == state
    stops = 0
    while session.continue_().breakpoints:
        stops += 1
    assert stops == 2, "a breakpoint in the body stops once a turn"


def _source() -> list[str]:
    with open(__file__, encoding="utf-8") as file:
        return file.readlines()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda: next(iter(nl.dynamic_range(nisa.register_alloc(3), None, 0))), "step is 0, must be at least 1"),
        (lambda: nl.dynamic_range(1.5), "stop is 1.5, must be an int or a register"),
        (lambda: nl.dynamic_range(0, 1 << 31), "stop is 2147483648, must fit in 32 bits"),
        (lambda: nl.affine_range(nisa.register_alloc(3)), "nl.dynamic_range takes a register"),
        (lambda: nl.while_loop(3, lambda r: r), "init is 3, must be a register"),
        (lambda: nl.while_loop(nisa.register_alloc(1), lambda r: None), "the body returned None, must be a register"),
        (lambda: _inside_no_reorder(), "cannot stand inside nl.no_reorder"),
    ],
)
def test_what_a_loop_cannot_be(body: Any, message: str) -> None:
    with pytest.raises(NkiValidationError, match=message):
        trace_body(body)


def _inside_no_reorder() -> None:
    with nl.no_reorder():
        for _ in nl.dynamic_range(3):
            pass


def test_a_step_in_a_register_is_an_assertion() -> None:
    with pytest.raises(AssertionError, match="step must be an int"):
        trace_body(lambda: nl.dynamic_range(0, 4, nisa.register_alloc(1)))


def test_leaving_a_loop_by_break_is_refused_with_its_line() -> None:
    @nki.jit
    def kernel(data: Any) -> Any:
        output = nl.ndarray((1, 1), nl.float32, nl.shared_hbm)
        for _ in nl.dynamic_range(3):
            break
        return output

    line = next(
        line
        for line, text in enumerate(_source(), 1)
        if "in nl.dynamic_range(3):" in text and _source()[line].strip() == "break"
    )
    with pytest.raises(NkiValidationError, match=f"left by break or return.*test_device_loops.py:{line}"):
        kernel(A)


def test_python_cannot_decide_on_a_register() -> None:
    def choose() -> None:
        if nisa.register_alloc(1):
            pass

    def both() -> None:
        one = nisa.register_alloc(1)
        while not one:
            pass

    for body in (choose, both):
        with pytest.raises(TypeError, match="not known while the kernel is traced"):
            trace_body(body)


def test_an_edge_that_no_byte_asks_for_is_a_wait() -> None:
    """Sync waits for Vector though the two touch different tiles; without the edge the copy is over long before."""

    def finished(edge: bool) -> tuple[int, int]:
        @nki.jit
        def kernel(data: Any) -> Any:
            slow, other = nl.ndarray((128, 4096), nl.float32, nl.sbuf), nl.ndarray((1, 1), nl.float32, nl.sbuf)
            first = nisa.memset(slow, 1.0)
            last = nisa.tensor_tensor(slow, slow, slow, nl.multiply)
            copy = nisa.dma_copy(other, data)
            if edge:
                assert copy.depends_on(last, first) is copy
            return store(slow)

        session = Session(build_neff(kernel, (A[:1, :1],), {}), {"data": A[:1, :1]})
        times = {step.text.split()[0]: step.time_ps for step in session.step(100).steps}
        loads = [step for step in _all_steps(build_neff(kernel, (A[:1, :1],), {})) if step.kind == "dma"]
        return times["TENSOR_TENSOR"], loads[0].issued_ps

    product, copy = finished(edge=True)
    assert copy > product
    product, copy = finished(edge=False)
    assert copy < product


def _all_steps(neff: Any) -> Any:
    return Session(neff, {"data": A[:1, :1]}).step(1000).steps


@pytest.mark.parametrize("inside", [True, False])
def test_edges_do_not_leave_loops(inside: bool) -> None:
    def body() -> None:
        tile = nl.ndarray((1, 1), nl.int32, nl.sbuf)
        before = nisa.memset(tile, 1)
        for _ in nl.dynamic_range(2):
            one = nisa.memset(tile, 2)
            two = nisa.memset(tile, 3).depends_on(one, before)
            if inside:
                with pytest.raises(NkiValidationError, match="does not stand before"):
                    one.depends_on(two)
        after = nisa.memset(tile, 4)
        with pytest.raises(NkiValidationError, match="in a loop on the device that the other is not in"):
            after.depends_on(one)
        with pytest.raises(NkiValidationError, match="is no instruction"):
            after.depends_on(3)

    trace_body(body)


CONSTANTS: dict[str, Any] = {
    "column": lambda tile: nl.power(tile, 2.0),
    "ones": lambda tile: nl.broadcast_to(tile[0:1], tile.shape),
    "identity": lambda tile: nl.copy(nl.transpose(nl.transpose(tile))),
    "shared identity": lambda tile: nl.multiply(tile, nl.shared_identity_matrix(8, nl.float32)),
}


@pytest.mark.parametrize("which", CONSTANTS)
@pytest.mark.parametrize("turns", [0, 2])
def test_constants_that_a_loop_makes_first_are_there_behind_one_without_turns(which: str, turns: int) -> None:
    use = CONSTANTS[which]

    def kernel(count: Any, x: Any) -> Any:
        tile = nl.load(x)
        for _ in nl.dynamic_range(nisa.register_alloc(count)):
            use(tile)
        return store(use(tile))

    x = A[:8, :8]
    want = {"column": x**2, "ones": np.broadcast_to(x[:1], x.shape), "identity": x, "shared identity": x * np.eye(8)}
    np.testing.assert_allclose(nki.jit(kernel)(number(turns), x), want[which], rtol=1e-6)


@pytest.mark.parametrize("turns", [0, 1])
def test_a_fill_of_hbm_behind_a_loop_without_turns(turns: int) -> None:
    def kernel(count: Any) -> Any:
        first, second = (nl.ndarray((128, 32), nl.float32, nl.shared_hbm) for _ in range(2))
        first[...] = 1.0
        for _ in nl.dynamic_range(nisa.register_alloc(count)):
            first[...] = 2.0
        second[...] = 2.0
        return first, second

    first, second = nki.jit(kernel)(number(turns))
    assert (first == 1 + turns).all() and (second == 2).all()
