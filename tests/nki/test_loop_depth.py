"""Loops of the device in loops: several registers, queues of every kind, both cores, sums by columns, many turns."""

from __future__ import annotations

import gc
import inspect
import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator import runtime
from emulator.checks import make_checks
from emulator.device import Device
from neurontools.nki.launch import build_neff

Array = np.ndarray[Any, Any]
A = (np.arange(128 * 16, dtype=np.float32) % 61).reshape(128, 16)
CHECKS = ("memcheck", "initcheck", "racecheck", "synccheck")


def number(value: int) -> Array:
    return np.array([[value]], np.int32)


def register(value: Any) -> tuple[Any, Any]:
    """Load a 1 x 1 tensor into a tile and a register."""
    tile, result = nl.ndarray((1, 1), nl.int32), nisa.register_alloc()
    nisa.dma_copy(tile, value)
    nisa.register_load(result, tile)
    return result, tile


def store(tile: Any) -> Any:
    output = nl.ndarray(tile.shape, tile.dtype, nl.shared_hbm)
    nisa.dma_copy(output, tile)
    return output


def run(kernel: Any, *arguments: Array, target: str = "trn2", lnc: int | None = None) -> Array:
    """Return the output: the same bits, and no finding, for two schedules."""
    neff = build_neff(kernel, arguments, {}, target=target, lnc=lnc)
    inputs = dict(zip(inspect.signature(kernel).parameters, arguments, strict=True))
    found = []
    for seed in (None, 7):
        ran = runtime.run(neff, inputs, seed=seed, checks=CHECKS)
        assert ran.fault is None and ran.hang is None and not ran.findings
        (output,) = ran.outputs.values()
        found.append(np.asarray(output))
    np.testing.assert_array_equal(found[0], found[1])
    return found[0]


@nki.jit
def collatz(start: Any) -> Any:
    """Count steps of 3 n + 1 and n / 2 until n is 1: a loop in a loop, each with its own registers."""
    more, value = register(start)
    even = nisa.register_alloc(0)
    steps, odd, left = (nl.zeros((1, 1), nl.int32) for _ in range(3))
    nisa.tensor_scalar(left, value, nl.subtract, 1)
    nisa.register_load(more, left)
    while more:
        nisa.tensor_scalar(odd, value, nl.bitwise_and, 1)
        nisa.tensor_scalar(left, odd, nl.bitwise_xor, 1)
        nisa.register_load(even, left)
        while even:  # halve as often as it goes
            nisa.tensor_scalar(value, value, nl.right_shift, 1)
            nisa.tensor_scalar(steps, steps, nl.add, 1)
            nisa.tensor_scalar(odd, value, nl.bitwise_and, 1)
            nisa.tensor_scalar(left, odd, nl.bitwise_xor, 1)
            nisa.register_load(even, left)
        nisa.tensor_scalar(left, value, nl.subtract, 1)
        nisa.register_load(more, left)
        again = nisa.register_alloc(0)
        nisa.tensor_scalar(odd, left, nl.not_equal, 0)
        nisa.register_load(again, odd)
        while again:  # at most once: an `if`
            nisa.tensor_scalar(value, value, nl.multiply, 3, op1=nl.add, operand1=1)
            nisa.tensor_scalar(steps, steps, nl.add, 1)
            nisa.register_move(again, imm=0)
    return store(steps)


@pytest.mark.parametrize(("start", "steps"), [(1, 0), (8, 3), (7, 16), (27, 111)])
def test_while_loops_with_several_registers(start: int, steps: int) -> None:
    assert run(collatz, number(start)) == steps


@nki.jit
def queues_of_every_kind(data: Any, rows: Any, columns: Any) -> Any:
    """Rows in an outer loop, columns in an inner one; direct, listed, indirect and adding transfers in both."""
    height, width = data.shape
    board = nl.ndarray((height, width), data.dtype, nl.shared_hbm)
    output = nl.ndarray((height, width), data.dtype, nl.shared_hbm)
    whole = nl.zeros((height, width), data.dtype)
    nisa.dma_copy(board, whole)
    last_row, _ = register(rows)
    last_column, _ = register(columns)
    for row in nl.dynamic_range(last_row):
        line = nl.ndarray((1, width), data.dtype)
        nisa.dma_copy(line, data.ap([[width, 1], [1, width]], scalar_offset=row, indirect_dim=0))
        nisa.tensor_scalar(line, line, nl.add, 1.0)
        for column in nl.dynamic_range(last_column):
            one = nl.ndarray((1, 1), data.dtype)
            nisa.dma_copy(one, data.ap([[width, 1], [1, 1]], scalar_offset=column, indirect_dim=1))
            nisa.tensor_scalar(line, line, nl.add, one)
        nisa.dma_copy(board.ap([[width, 1], [1, width]], scalar_offset=row, indirect_dim=0), line)
        nisa.dma_copy(whole[:, 0 : width // 2], board[:, 0 : width // 2])
    total = nl.ndarray((height, width), data.dtype, nl.shared_hbm)
    nisa.dma_compute(total, [board, data], nl.add)
    nisa.dma_copy(output, total)
    return output


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (3, 0), (4, 5)])
def test_queues_of_every_kind(target: str, rows: int, columns: int) -> None:
    expected = A.copy()
    for row in range(rows):
        expected[row] += A[row] + 1 + A[0, :columns].sum()
    found = run(queues_of_every_kind, A, number(rows), number(columns), target=target)
    np.testing.assert_array_equal(found, expected)


@nki.jit
def exchanged(data: Any, turns: Any) -> Any:
    """Both cores exchange and add their tiles turn by turn, for as long as the device says."""
    me = nl.program_id(0)
    tile, other = nl.ndarray(data.shape, data.dtype), nl.ndarray(data.shape, data.dtype)
    nisa.dma_copy(tile, data)
    nisa.tensor_scalar(tile, tile, nl.add, float(me))
    stop, _ = register(turns)
    for _ in nl.dynamic_range(stop):
        for _ in nl.dynamic_range(2):
            nisa.sendrecv(tile, other, 1 - me, 1 - me, pipe_id=0)
            nisa.tensor_tensor(tile, tile, other, nl.add)
            nisa.tensor_scalar(tile, tile, nl.multiply, 0.5)
    output = nl.ndarray((2, *data.shape), data.dtype, nl.shared_hbm)
    nisa.dma_copy(output[me], tile)
    return output


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_two_cores_exchange_in_nested_loops(turns: int) -> None:
    found = run(exchanged, A, number(turns), lnc=2)
    np.testing.assert_array_equal(found, np.stack([A + 0.5] * 2 if turns else [A, A + 1]))


@nki.jit
def columns_in_turn(left: Any, right: Any, places: Any, turns: Any) -> Any:
    """Add a product to columns of one PSUM tile, turn by turn."""
    a, b, index = nl.load(left), nl.load(right), nl.load(places)
    sums = nl.ndarray((32, 64), nl.float32, nl.psum)
    stop, _ = register(turns)
    for _ in nl.dynamic_range(stop):
        nisa.nc_matmul(sums.indirect(index), a, b)
    result = nl.ndarray((32, 64), nl.float32)
    nisa.tensor_copy(result, sums)
    return store(result)


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_columns_take_sums_from_turn_to_turn(turns: int) -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-3, 4, (32, 32)).astype(ml_dtypes.bfloat16) for _ in range(2))
    columns = rng.permutation(64)[:32]
    expected = np.zeros((32, 64), np.float32)
    expected[:, columns] = turns * (a.astype(np.float32).T @ b.astype(np.float32))
    places = columns.reshape(32, 1).astype(np.uint16)
    found = run(columns_in_turn, a, b, places, number(turns), target="trn3")
    np.testing.assert_array_equal(found, expected)


@nki.jit
def counted(data: Any, turns: Any) -> Any:
    tile = nl.ndarray(data.shape, data.dtype)
    nisa.dma_copy(tile, data)
    stop, _ = register(turns)
    for _ in nl.dynamic_range(stop):
        nisa.tensor_scalar(tile, tile, nl.add, 1.0)
    return store(tile)


def test_two_thousand_turns() -> None:
    data = np.zeros((1, 1), np.float32)
    neff = build_neff(counted, (data, number(2000)), {}, target="trn2")
    ran = runtime.run(neff, {"data": data, "turns": number(2000)}, timing=False)
    assert ran.ok and [float(one[0, 0]) for one in ran.outputs.values()] == [2000.0]


def test_what_racecheck_keeps_does_not_grow_with_the_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emulator.checks.clocks._SIGNALS", 64)
    monkeypatch.setattr("emulator.extents._MOST", 64)
    data = np.zeros((1, 1), np.float32)
    neff = build_neff(counted, (data, number(0)), {}, target="trn2")

    def kept(turns: int) -> int:
        device = Device(neff.target, 1, timing=False)
        device.load(neff)
        device.set_inputs({"data": data, "turns": number(turns)})
        for one in make_checks(("race",)):
            one.attach(device)
            device.observers.append(one)
        tracemalloc.start()
        device.run()
        gc.collect()  # garbage that waits to be found is not kept
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert device.outcome == "finished"
        return held

    kept(600)  # what runs of a process share is there from then on
    few, many = kept(150), kept(600)
    assert many < few * 1.1
