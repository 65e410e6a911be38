"""Rows that transfers scatter, looked at all at once: what is found is what is found of each row by itself."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.checks import alike, kept
from emulator.checks.racecheck import Racecheck
from emulator.checks.row_sets import RowSet, touched_by
from emulator.checks.touched import Cell, Group
from emulator.device import Device
from emulator.dma.rows import Rows, RowsRequest
from emulator.dma.transfer import Limit, Side, Transfer
from emulator.runtime import run
from formats import isa
from formats.dtypes import Dtype
from formats.regions import Region
from neurontools.nki.launch import build_neff
from tests.checks.support import calls_of, drop_wait, waits_of
from tests.checks.test_orderly import Found

ROWS, TALL, W, COLUMNS = 16, 64, 4, 6
Plan = tuple[tuple[Any, ...], ...]


def scatters(x: Any, i: Any, plan: Plan) -> Any:
    """Carry out a plan: ranges and rows of an output stored, rows gathered, on one core or both."""
    out = nl.ndarray((TALL, W), dtype=nl.float32, buffer=nl.shared_hbm)
    other = nl.ndarray((ROWS, W), dtype=nl.float32, buffer=nl.shared_hbm)
    rows, index = (nl.ndarray((ROWS, width), dtype=kind, buffer=nl.sbuf)
                   for width, kind in ((W, nl.float32), (COLUMNS, nl.uint32)))  # fmt: skip
    filled = nl.ndarray((TALL, W), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=rows, src=x)
    nisa.dma_copy(dst=index, src=i)
    for kind, cores, *what in plan:
        if nl.program_id(0) not in cores:
            continue
        if kind == "fill":
            low, high, value = what
            nisa.memset(dst=filled, value=value)
            nisa.dma_copy(dst=out[low:high], src=filled[low:high])
        elif kind == "rows":
            column, more = what
            column = column + nl.program_id(0) if more == "shuffled" else column
            if more == "apart":
                nisa.tensor_scalar(dst=rows, data=rows, op0=nl.add, operand0=float(nl.program_id(0)))
            nisa.dma_copy(dst=out.ap([[W, ROWS], [1, W]], vector_offset=index[:, column : column + 1]), src=rows)
        elif kind == "gather":
            view = out.ap([[W, ROWS], [1, W]], vector_offset=index[:, what[0] : what[0] + 1])
            taken = nl.ndarray((ROWS, W), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=taken, src=view)
            nisa.dma_copy(dst=other, src=taken)
        elif kind == "read":
            taken = nl.ndarray((TALL, W), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=taken[what[0] : what[1]], src=out[what[0] : what[1]])
            nisa.dma_copy(dst=other, src=taken[what[0] : what[0] + ROWS])
        else:
            nisa.core_barrier(out, (0, 1))
    return out, other


def columns_of(numbers: random.Random) -> np.ndarray[Any, Any]:
    """Return indices: columns of the same rows in another order, of others, some of which overlap or come twice."""
    every = numbers.sample(range(TALL), TALL)
    first, second = every[:ROWS], every[ROWS : 2 * ROWS]
    some = numbers.sample(range(TALL), ROWS)
    twice = [numbers.randrange(TALL) for _ in range(ROWS)]
    columns = [first, numbers.sample(first, ROWS), second, second, some, twice]
    return np.array(columns, np.uint32).T.copy()


def random_plan(numbers: random.Random) -> Plan:
    """Return a plan of which most is done by both cores."""
    plan: list[tuple[Any, ...]] = []
    if numbers.random() < 0.8:
        plan.append(("fill", (0, 1), 0, TALL, 0.0))
    for _ in range(numbers.randint(1, 5)):
        cores = numbers.choice(((0, 1), (0, 1), (0, 1), (0,), (1,)))
        kind = numbers.choice(("rows",) * 6 + ("fill", "gather", "read", "barrier"))
        if kind == "rows":
            column = numbers.choice((0, 0, 2, 2, 3, 4, 5))
            more = numbers.choice(("", "", "apart", "shuffled" if column in (0, 2) else ""))
            plan.append((kind, cores, column, more))
        elif kind == "gather":
            plan.append((kind, cores, numbers.choice((0, 2, 4))))
        elif kind == "barrier":
            plan.append((kind, (0, 1)))
        else:
            low = numbers.choice((0, 16, 32))
            plan.append((kind, cores, low, numbers.choice((low + 16, TALL)), *((0.0,) if kind == "fill" else ())))
    return tuple(plan)


def found_by(plan: Plan, index: Any, numbers: random.Random, patch: pytest.MonkeyPatch) -> Found:
    """Return what is found of a plan, of which one wait may be left out."""
    x = np.random.default_rng(1).random((ROWS, W)).astype(np.float32)
    x[::3] = 0.0  # what such a row brings is there already
    neff = build_neff(scatters, (x, index, plan), {}, target="trn2", lnc=2)
    device = Device(neff.target, 2)
    device.load(neff)
    waits = [place for place in waits_of(device) if place.core == 0]
    edit = drop_wait(numbers.choice(waits)) if numbers.random() < 0.5 else None
    return Found(neff, dict(zip((one.name for one in neff.inputs), (x, index), strict=True)), patch, edit)


class Told:
    """How often rows were looked at all at once, and how often one by one."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.at_once = self.singly = 0
        many, single = Racecheck._race_rows, Racecheck._race_one_by_one

        def at_once(check: Racecheck, *arguments: Any) -> Any:
            self.at_once += 1
            return many(check, *arguments)

        def singly(check: Racecheck, *arguments: Any) -> Any:
            self.singly += 1
            return single(check, *arguments)

        patch.setattr(Racecheck, "_race_rows", at_once)
        patch.setattr(Racecheck, "_race_one_by_one", singly)


@pytest.mark.parametrize("limit", [4096, 40])
def test_random_scatters(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike, "_MOST", limit)
    told, kinds = Told(monkeypatch), set()
    for seed in range(60):
        numbers = random.Random(seed)
        plan, index = random_plan(numbers), columns_of(numbers)
        found = found_by(plan, index, numbers, monkeypatch)
        assert found.findings == found.without, (seed, plan)
        kinds |= {one.split("kind='")[1].split("'")[0] for one in found.findings}
    assert told.at_once > 20 and kinds >= {"same-bytes", "write-write", "write-read"}
    assert told.singly > 20 or limit == 4096


def both(x: Any, i: Any) -> Any:
    """Zeros, then rows where indices say, on both cores."""
    count = x.shape[0]
    out = nl.ndarray((128, W), dtype=nl.float32, buffer=nl.shared_hbm)
    rows, index = (nl.ndarray((count, width), dtype=kind, buffer=nl.sbuf)
                   for width, kind in ((W, nl.float32), (1, nl.uint32)))  # fmt: skip
    zeros = nl.ndarray((128, W), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=rows, src=x)
    nisa.dma_copy(dst=index, src=i)
    nisa.memset(dst=zeros, value=0.0)
    nisa.dma_copy(dst=out, src=zeros)
    nisa.dma_copy(dst=out.ap([[W, count], [1, W]], vector_offset=index[:, 0:1]), src=rows)
    return out


def test_many_rows_take_no_more_calls_than_few() -> None:
    def calls(count: int) -> int:
        x, index = np.ones((count, W), np.float32), np.arange(count, dtype=np.uint32)[::-1].reshape(count, 1).copy()
        neff = build_neff(both, (x, index), {}, target="trn2", lnc=2)
        inputs = dict(zip((one.name for one in neff.inputs), (x, index), strict=True))
        found = run(neff, inputs, checks="all").findings
        assert [one.count for one in found] == [1, count, count, count]
        kept._FILES.pop(neff, None)
        return calls_of(lambda: run(neff, inputs, checks="all"))

    assert calls(128) - calls(16) < 100


# --- sets of rows ----------------------------------------------------------------------------------------------------


def set_of(numbers: random.Random) -> RowSet:
    """Return rows of device memory, some of which may share bytes with one another."""
    nbytes = numbers.choice((2, 4, 8))
    index = np.array([numbers.randrange(24) for _ in range(numbers.randint(4, 8))], np.int64)
    low = numbers.randrange(16)
    source = Side("SBUF", 0, 0, (), nbytes, Dtype.UINT8)
    target = Side("HBM", numbers.randrange(2), low, (), nbytes, Dtype.UINT8, Limit("y", 0, 256))
    rows = Rows("copy", source, target, 1, index, numbers.choice((4, 8)), 0)
    request = RowsRequest(rows, queue="q", core=0, engine="SP", pc=0, semaphore=0, increment=16, instruction=isa.Nop())
    (found,) = touched_by(Transfer(request), 1 << 16)[1]
    assert isinstance(found, RowSet)
    return found


def test_sets_of_rows_say_what_their_regions_say() -> None:
    numbers = random.Random(3)
    for _ in range(300):
        one, other = set_of(numbers), set_of(numbers)
        mine, others = one.regions(0), other.regions(0)
        assert mine == tuple(map(one.region, range(one.count)))
        assert one.is_apart == all(not a.overlaps(b) for at, a in enumerate(mine) for b in mine[:at])
        assert one.meets(other) == other.meets(one) == any(a.overlaps(b) for a in mine for b in others)
        low = numbers.randrange(240)
        place = Region("HBM", 0, 0, 1, low, numbers.randint(1, 40))
        near = [each for each in mine if each.overlaps(place)]
        assert sorted(one.near(place.byte, place.end)) == sorted(near)
        assert one.meets_range(place.byte, place.end) == bool(near)
        assert (one == other) == (mine == others)


def test_cells_of_rows_know_those_that_share_bytes_with_them() -> None:
    numbers = random.Random(4)
    for _ in range(200):
        cells = []
        for _ in range(numbers.randint(2, 8)):
            place: Any = set_of(numbers)
            if numbers.random() < 0.4:
                place = Region("HBM", 0, 0, 1, numbers.randrange(120), numbers.choice((4, 60)))
            cells.append(Cell(place))
            cells[-1].written, cells[-1].by = numbers.random() < 0.6, None
        cells.sort(key=lambda cell: cell.region[4])
        Group(cells).split()
        for one in cells:
            near = {id(other): covers for other, covers in one.near or ()}
            mine = bytes_in(one)
            for other in cells:
                if other is not one and (one.written or other.written) and mine & bytes_in(other):
                    assert not near.pop(id(other)) or bytes_in(other) <= mine
            assert not near


def bytes_in(cell: Cell) -> set[int]:
    regions = [Region(*cell.region)] if cell.rows is None else cell.rows.regions(0)
    return {byte for region in regions for byte in range(region.byte, region.end)}
