"""Indirect DMA words: indices from SBUF when the transfer starts, bounds per run, what does not fit refused at load."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from emulator.device import Device
from emulator.errors import LoadError
from formats import isa
from tests.emulator.dma_programs import PARTITION, direct, gen3

ROWS, WIDTH = 6, 4
ONES = (1, 1, 1, 1)
INDEX = 0x4000
TILE = 0x5000
POINT = ((1, 1, 1, 1), ONES)


def wait(semaphore: int, value: int = 16) -> dict[str, Any]:
    return {"wait_mode": isa.WaitMode.SEM_GE, "wait_index": semaphore, "wait_value": value}


def indirect(**fields: Any) -> isa.DmaIndirect:
    """Return a gather of rows of table entry 0 into the tile."""
    base: dict[str, Any] = {
        "semaphore": 9,
        "src": isa.DmaAddress("table", 0, 0),
        "dst": isa.DmaAddress("variable", 0, TILE),
        "src_dtype": 10,
        "dst_dtype": 10,
        "src_element_size": 4 * WIDTH,
        "dst_element_size": 4 * WIDTH,
        "src_pattern": POINT,
        "dst_pattern": POINT,
        "index": isa.AccessPattern(INDEX, (1,) * 5, (1,) * 5),
        "channels": ROWS,
        "rows": ROWS,
        "index_step": 4 * WIDTH,
        "row_step": PARTITION,
    }
    return isa.DmaIndirect(**(base | fields))


def run(word: isa.DmaIndirect, data: Any, indices: Any, out: tuple[int, ...] = (ROWS, WIDTH)) -> Device:
    words = [
        direct(("table", 1, 0), ("variable", 0, INDEX), 4, ROWS, 4, PARTITION, dtypes=(8, 8)),
        isa.DmaIndirect.from_raw(word.raw[:4] + isa.Nop(**wait(8)).raw[4:12] + word.raw[12:]),
        direct(("variable", 0, TILE), ("table", 2, 0), 4 * WIDTH, ROWS, PARTITION, 4 * WIDTH, semaphore=10, **wait(9)),
        isa.Nop(**wait(10)),
    ]
    inputs = {"x": ("float32", data.shape), "i": ("int32", indices.shape)}
    neff = gen3({"SP": words}, inputs=inputs, outputs={"y": ("float32", out)}, features=["neurontools_extended"])
    device = Device("trn2")
    device.load(neff)
    device.set_inputs({"x": data, "i": indices})
    device.run()
    return device


DATA = np.arange(40, dtype=np.float32).reshape(10, 4)


def test_rows_come_from_where_the_indices_say() -> None:
    indices = np.array([[9], [0], [3], [3], [7], [1]], np.int32)
    device = run(indirect(), DATA, indices)
    assert device.fault is None and device.hang is None
    assert (device.outputs()["y"] == DATA[indices[:, 0]]).all()


def test_a_run_out_of_bounds_is_a_fault_or_left_out() -> None:
    indices = np.array([[9], [0], [10], [3], [-1], [1]], np.int32)
    fault = run(indirect(), DATA, indices).fault
    assert fault is not None and fault.kind == "oob" and "DMA_INDIRECT" in fault.instruction_text
    found = run(indirect(skip=1), DATA, indices).outputs()["y"]
    good = [0, 1, 3, 5]
    assert (found[good] == DATA[indices[good, 0]]).all() and not (found[[2, 4]] == DATA[[9, 0]]).all()


def test_a_row_that_is_half_outside_loses_its_outer_runs_only() -> None:
    one = {"rows": 1, "channels": 1, "src_element_size": 16, "dst_element_size": 16, "skip": 1}
    pattern = {"src_pattern": ((16, 1, 1, 1), (ROWS, 1, 1, 1)), "dst_pattern": ((PARTITION, 1, 1, 1), (ROWS, 1, 1, 1))}
    indices = np.array([[7]] + [[0]] * 5, np.int32)
    found = run(indirect(**one, **pattern), DATA, indices).outputs()["y"]
    assert (found[:3] == DATA[7:]).all() and not (found[3:] < 1e9).any()


def test_words_that_do_not_fit_are_refused_at_load() -> None:
    indices = np.zeros((ROWS, 1), np.int32)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"rows": 7}, "7 rows and 6 indices"),
        ({"dst_element_size": 8}, "elements"),
        ({"src_pattern": ((16, 1, 1, 1), (2, 1, 1, 1)), "src_element_size": 8}, "different counts"),
        ({"src": isa.DmaAddress("table", 9, 0)}, "entry 9"),
        ({"semaphore": 60}, "belongs to no dynamic queue"),
    ]
    for fields, message in cases:
        with pytest.raises(LoadError, match=message):
            run(indirect(**fields), DATA, indices)
