"""Marks of undefined bytes by bands and kinds of rows, against a mark for each byte."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.access import Operand
from emulator.checks import flow
from emulator.checks.bands import Band, Bands
from emulator.checks.initcheck import Initcheck
from emulator.checks.mark_rows import (
    _SPOTS,
    _STENCILS,
    MarkRows,
    common,
    distinct,
    folded,
    larger,
    of_lanes,
    stencil_of,
    transposed,
    used,
)
from emulator.checks.undefined import BandedPlanes
from emulator.checks.unwritten import Unwritten
from emulator.device import Device
from emulator.dma.transfer import Side
from emulator.events import Event
from formats.dtypes import Dtype
from formats.isa import Dataflow
from formats.isa.operand import AccessPattern
from formats.neff import Neff
from formats.neuron_core import PARTITIONS, SBUF_PARTITION_STRIDE
from formats.regions import Region
from neurontools.nki.launch import build_neff
from tests.checks import plain_flow
from tests.checks.plain_marks import PlainPlanes, PlainUnwritten, marks_of, plainly
from tests.checks.support import assembled, checked, serious
from tests.checks.test_orderly import Program
from tests.emulator.test_golden import NAMES, program_of

WIDTH = 96  # columns in which accesses meet
TYPES = (Dtype.UINT8, Dtype.BFLOAT16, Dtype.FLOAT32, Dtype.INT64)
MASKS = tuple(tuple(lane if (lane // n) % 2 else 255 for lane in range(32)) for n in (1, 2, 8))


# --- rows by kind ----------------------------------------------------------------------------------------------------


def random_marks(chance: random.Random, partitions: int, elements: int) -> Any:
    """Return marks of a few kinds of rows, of one number or several."""
    kinds = chance.choice((1, 1, 2, 3, partitions))
    numbers = chance.choice(([7], [7, 9], [5, 7, 9, 11]))
    made = np.random.default_rng(chance.randrange(1 << 30))
    rows = made.choice([0, *numbers], (kinds, elements)).astype(np.int16)
    if chance.random() < 0.3:
        rows[:] = rows[:, :1]
    return rows[made.integers(0, kinds, partitions)]


def test_what_is_made_of_kinds_of_rows_is_what_is_made_of_all_rows() -> None:
    for seed in range(300):
        chance = random.Random(seed)
        partitions, elements = chance.choice((1, 5, 32, 128)), chance.choice((1, 4, 33))
        one, other = (random_marks(chance, partitions, elements) for _ in range(2))
        mine, its = (folded(each)._replace(number=_only(each)) for each in (one, other))
        assert len({row.tobytes() for row in mine.rows}) == len(mine.rows)
        for found, plain in (
            (mine, one),
            (larger(mine, its), np.maximum(one, other)),
            (transposed(mine), one.T),
            (of_lanes(one.max(1)), one.max(1)[:, None]),
            (MarkRows(*distinct(*mine[:2])), one),
        ):
            assert (found.spread() == plain).all()
            assert set(found.which.tolist()) == set(range(len(found.rows)))
            assert not found.number or set(np.unique(plain)) <= {0, found.number}
        assert (mine.lanes() == one.max(1)).all()
        left = chance.randrange(partitions)
        part = used(mine.which[left:], mine.rows, mine.number)
        assert (part.spread() == one[left:]).all() and set(part.which.tolist()) == set(range(len(part.rows)))


def _only(marks: Any) -> int:
    numbers = set(np.unique(marks).tolist()) - {0}
    return numbers.pop() if len(numbers) == 1 else 0


def test_what_is_kept_of_partitions_is_that_of_these_partitions() -> None:
    """More kinds than are kept: each answer is that of its own question, and none is changed by who has it."""
    made = np.random.default_rng(3)
    for _ in range(1500):
        one, other = (made.integers(0, 4, 8) for _ in range(2))
        which, (first, second) = common(((one, 4), (other, 4)))
        assert (first[which] == one).all() and (second[which] == other).all()
        again, _ = common(((one, 4), (other, 4)))
        assert (again == which).all()


# --- bands -----------------------------------------------------------------------------------------------------------


def test_a_band_is_cut_and_joined() -> None:
    bands = Bands(4)
    plain = np.zeros((4, WIDTH), np.int16)
    chance = random.Random(5)
    for _ in range(600):
        unit = chance.choice((1, 2, 4))
        low = chance.randrange(WIDTH - 8)
        count = chance.randint(1, (WIDTH - low) // unit)
        high = low + count * unit
        if chance.random() < 0.3:
            bands.replace(low, high, None)
            plain[:, low:high] = 0
        else:
            rows = random_marks(chance, 4, count)
            bands.replace(low, high, Band(*folded(rows)[:2], unit=unit, number=_only(rows)))
            plain[:, low:high] = np.repeat(rows, unit, 1)
        low = chance.randrange(WIDTH - 1)
        high = chance.randint(low + 1, WIDTH)
        if chance.random() < 0.5:
            assert (bands.spread(low, high) == plain[:, low:high]).all()
        first, behind = sorted(chance.sample(range(5), 2))
        if plain[first:behind, low:high].any():
            assert bands.meet(low, high, first, behind - first)
        band = bands.between(low, high)
        assert (band is not None) >= bool(plain[:, low:high].any())
        if band is not None and band.number:
            assert set(np.unique(plain[:, low:high])) <= {0, band.number}
    assert bands


# --- words -----------------------------------------------------------------------------------------------------------


def test_words_do_with_kinds_of_rows_what_they_do_with_rows() -> None:
    for seed in range(400):
        chance = random.Random(seed)
        partitions, elements = chance.choice(((32, 4), (128, 6), (64, 1), (128, 128)))
        one, other = (random_marks(chance, partitions, elements) for _ in range(2))
        mine, its = (folded(each)._replace(number=_only(each)) for each in (one, other))
        mask = [chance.choice((255, *range(32))) for _ in range(32)]
        word: Any = SimpleNamespace(
            DATAFLOW=chance.choice([each for each in Dataflow if each.name not in ("GATHER", "SCATTER", "CHOICE")]),
            mask=mask, channels=partitions, columns=elements, cols=elements, adds=chance.random() < 0.5,
            transpose_mode=int(chance.random() < 0.5), fp32_mode=0,
        )  # fmt: skip
        shape = partitions, elements
        for source, before in ((mine, its), (mine, None), (None, its)):
            given = [None if each is None else each.spread() for each in (source, before)]
            found = flow._shuffled(word, source, before, shape)
            assert (found.spread() == plain_flow._shuffled(word, *given, shape)).all()
            assert not found.number or set(np.unique(found.rows)) <= {0, found.number}
        for size in (elements, 1, 2 * elements):
            for rows in (partitions, 16):
                spread = flow._spread(word, mine, (rows, size))
                assert (spread.spread() == plain_flow._spread(word, one, (rows, size))).all()
        assert (flow._grouped(mine).spread() == plain_flow._grouped(one)).all()
        assert (flow._turned(word, mine).spread() == one.T).all()
        flows: Any = flow.Flow(), plain_flow.Flow()
        for each, marks in zip(flows, (mine, one), strict=True):
            each.load(word, marks)
        moving = random_marks(chance, partitions, 8)
        size = min(partitions, 8) if word.transpose_mode else 8
        old = random_marks(chance, elements, size)
        product = flows[0].product(word, folded(moving), folded(old), size)
        assert (product.spread() == flows[1].product(word, moving, old, size)).all()


# --- memories --------------------------------------------------------------------------------------------------------


def random_operand(chance: random.Random, device: Device) -> Operand:
    """Return an operand with steps up or down, gaps, repeated elements, or partitions left out."""
    resolver = device.cores[0].resolver
    code = chance.choice(TYPES)
    size = Dtype(code).size
    first = chance.choice((0, 0, 0, 32, 64, 3))
    partitions = chance.choice((PARTITIONS - first, 32, 1))
    inner, outer = chance.choice(((1, 1), (1, 1), (2, 1), (-1, 1), (1, 3), (0, 1))), chance.randint(1, 3)
    counts = (chance.randint(1, WIDTH // size // 8), outer)
    steps = (inner[0], counts[0] * max(abs(inner[0]), 1) + inner[1] - 1)
    start = (counts[0] - 1) * -min(inner[0], 0)
    low = (start + chance.randrange(WIDTH // size // 4 or 1)) * size
    pattern = AccessPattern(first * SBUF_PARTITION_STRIDE + low, steps, counts)
    found = resolver._place("x", pattern, code, partitions, False, "DVE")
    if partitions == PARTITIONS and chance.random() < 0.3:
        found = resolver._masked(found, chance.choice(MASKS))
    return found


def random_side(chance: random.Random) -> Side:
    """Return a side of a transfer: rows of partitions, pieces of one, every other one, or a diagonal."""
    first, byte, run = chance.choice((0, 0, 16)), chance.randrange(WIDTH // 2), chance.randint(1, 12)
    dims = chance.choice(
        (
            (),
            ((SBUF_PARTITION_STRIDE, 8),),
            ((SBUF_PARTITION_STRIDE, PARTITIONS - first),),
            ((2 * SBUF_PARTITION_STRIDE, 5), (16, 3)),
            ((-SBUF_PARTITION_STRIDE, first + 1), (20, 2)),
            ((SBUF_PARTITION_STRIDE + 4, 3),),
        )
    )
    return Side("SBUF", 0, first * SBUF_PARTITION_STRIDE + byte, dims, run, Dtype.UINT8)


def test_marks_of_memory_are_those_of_its_bytes() -> None:
    diagonals = lacking = 0
    for seed in range(10):
        chance = random.Random(seed)
        device = Device("trn2", 1)
        core = device.cores[0]
        plain, banded = PlainPlanes(device), BandedPlanes(device)
        for _ in range(80):
            operand = random_operand(chance, device)
            shape = operand.view.shape[0], operand.view.size // operand.view.shape[0]
            match chance.randrange(6):
                case 0 | 1:
                    marks = folded(random_marks(chance, *shape)) if chance.random() < 0.8 else None
                    if marks is not None:
                        marks = marks._replace(number=_only(marks.rows))
                    plain.put(core, operand, marks)
                    banded.put(core, operand, marks)
                case 2:
                    side = random_side(chance)
                    given = random_marks(chance, 1, side.nbytes)[0] if chance.random() < 0.7 else None
                    diagonals += any(step == SBUF_PARTITION_STRIDE + 4 for step, _ in side.dims)
                    plain.write_side(side, given)
                    banded.write_side(side, given)
                case 3:
                    space, _, first, partitions, low, nbytes, _ = operand.regions[0]
                    core.memory.mark_written(space, first, first + partitions, low, low + nbytes)
            missing = any(extent.missing() for extent in operand.extents)
            lacking += missing
            unwritten = Unwritten(core, operand)
            fresh = unwritten.marks(99) if missing else None
            same(plain.look(core, operand, fresh), banded.look(core, operand, fresh))
            side = random_side(chance)
            mine, its = plain.read_side(side, 99), banded.read_side(side, 99)
            assert (its is None) == (mine is None) and (its is None or (its == mine).all())
            if banded.is_defined(side):
                assert mine is None
            box = operand.regions[0]
            marked = plain.look(core, operand)
            if marked is not None and marked.rows.any():
                assert any(banded.may_have(0, region) for region in operand.regions)
                assert not banded.are_blank
            if missing and len(operand.regions) == 1:
                assert box.overlaps(unwritten.boxes()[0][0])
        whole = Region("SBUF", 0, 0, PARTITIONS, 0, 2 * WIDTH)
        assert banded.may_have(0, whole) >= bool(plain._chip and next(iter(plain._chip.values())).any())
        device.release()
    assert diagonals > 10 and lacking > 100


def test_rows_of_a_stencil_are_read_forwards_and_backwards_and_in_part() -> None:
    chance, stencils = random.Random(8), 0
    device = Device("trn2", 1)
    core = device.cores[0]
    for _ in range(60):
        plain, banded = PlainPlanes(device), BandedPlanes(device)
        code, count = chance.choice(TYPES), chance.choice((1, 7, 24))
        size = Dtype(code).size

        def operand(low: int, elements: int, step: int) -> Operand:
            begin = low + (elements - 1 if step < 0 else 0)
            pattern = AccessPattern(begin * size, (step,), (elements,))  # noqa: B023  (asked for in this turn alone)
            return core.resolver._place("x", pattern, code, PARTITIONS, False, "DVE")  # noqa: B023

        marks = folded(random_marks(chance, PARTITIONS, count) != 0)
        marks = stencil_of(marks.which, marks.rows.astype(np.int16)).marks(chance.choice((3, 29999)))
        whole = operand(0, count, 1)
        plain.put(core, whole, marks)
        banded.put(core, whole, marks)
        for _ in range(8):
            low = chance.choice((0, 0, chance.randrange(count)))
            elements = chance.choice((count - low, chance.randint(1, count - low)))
            reading = operand(low, elements, chance.choice((1, -1)))
            found = banded.look(core, reading)
            same(plain.look(core, reading), found)
            if found is not None and found.stencil is not None:
                stencils += elements > 1
                assert (found.stencil.spots * found.number == found.rows).all()
                assert (found.stencil.which == found.which).all()
    assert stencils > 100


def test_what_nothing_wrote_of_a_tile_is_told_in_either_direction() -> None:
    chance, known = random.Random(9), 0
    for _ in range(40):
        device = Device("trn2", 1)
        core = device.cores[0]
        for _ in range(chance.randint(1, 5)):
            first, low = chance.choice((0, 0, 8, 64)), chance.randrange(60)
            core.memory.mark_written(
                "SBUF", first, chance.choice((first + 3, PARTITIONS)), low, low + chance.randint(1, 30)
            )
        for _ in range(10):
            code, lanes = chance.choice(TYPES), chance.choice((PARTITIONS, 5))
            size = Dtype(code).size
            elements, first, step = chance.choice((1, 3, WIDTH // size)), chance.choice((0, 60)), chance.choice((1, -1))
            begin = first * SBUF_PARTITION_STRIDE + (elements - 1 if step < 0 else 0) * size
            pattern = AccessPattern(begin, (step,), (elements,))
            operand = core.resolver._place("x", pattern, code, min(lanes, PARTITIONS - first), False, "DVE")
            if lanes == PARTITIONS and not first and chance.random() < 0.4:
                operand = core.resolver._masked(operand, chance.choice(MASKS))
            unwritten, plain = Unwritten(core, operand), PlainUnwritten(core, operand)
            missing = any(extent.missing() for extent in operand.extents)
            assert not unwritten.is_any or missing
            assert unwritten.boxes() == plain.boxes()
            if missing:
                expected = PlainPlanes(device).read(core, operand, 77)
                found = BandedPlanes(device).look(core, operand, unwritten.marks(77))
                assert (found.spread() == expected).all()
            known += unwritten.is_any
        device.release()
    assert known > 50


def test_stencils_are_kept_by_all_that_they_depend_on_and_forgotten() -> None:
    which, spots = np.array([0, 1, 0, 1]), np.array([[1, 0, 0, 1], [0, 0, 1, 1]], np.int16)
    one = stencil_of(which, spots)
    assert stencil_of(which.copy(), spots.copy()) is one
    others = (which[::-1], spots), (which, spots[:, ::-1]), (which[:2], spots), (which, spots.reshape(4, 2)[[0, 1]])
    for other in others:
        assert stencil_of(*other) is not one
        assert (stencil_of(*other).spots == other[1]).all() and (stencil_of(*other).which == other[0]).all()
    assert one.turned.turned.marks(5).spread().tolist() == one.marks(5).spread().tolist()
    assert (one.backwards.spots == spots[:, ::-1]).all() and one.backwards.backwards is one
    for number in range(_STENCILS):
        stencil_of(which, np.full((2, 3 + number), 1, np.int16))
    again = stencil_of(which, spots)
    assert again is not one and (again.spots == one.spots).all()
    wide = np.ones((1, _SPOTS + 1), np.int16)
    assert stencil_of(np.zeros(4, np.intp), wide) is not stencil_of(np.zeros(4, np.intp), wide)


def same(one: MarkRows | None, other: MarkRows | None) -> None:
    """See to it that two marks are the same; where there is a number, it is the only one."""
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert (one.spread() == other.spread()).all()
        assert not other.number or set(np.unique(other.rows)) <= {0, other.number}
        assert set(other.which.tolist()) == set(range(len(other.rows)))


# --- programs --------------------------------------------------------------------------------------------------------


class Holes:
    """Makes bytes that were written, or lie beside such, unwritten as a run goes on: rows, columns, single bytes."""

    def __init__(self, seed: int, device: Device) -> None:
        self.random, self.device = random.Random(seed), device

    def on_event(self, event: Event) -> None:
        """Make some of what a word or transfer wrote unwritten."""
        for region in event.writes:
            if region.space != "HBM" and self.random.random() < 0.8:
                memory = self.device.cores[region.core].memory
                plane = memory.written(region.space)[region.first : region.behind, region.byte : region.end]
                rows, columns = (
                    slice(self.random.randrange(min(n, 20)), None, self.random.choice((1, 2, 16))) for n in plane.shape
                )
                hole = self.random.choice(((rows, slice(None)), (slice(None), columns), (rows, columns)))
                plane[hole] = False
                memory.forget()


def with_holes(neff: Neff, seed: int, inputs: Any = None) -> tuple[list[Any], Any, tuple[int, Any]]:
    """Return what initcheck finds in a program whose bytes are made unwritten again, and the marks at its end."""
    device = Device(neff.target, len(neff.subgraphs), max_steps=2000)
    device.load(neff)
    device.set_inputs(inputs or {})
    check = Initcheck()
    device.observers += [check, Holes(seed, device)]
    check.attach(device)
    device.run()
    check.finish()
    marks = marks_of(check)
    device.release()
    return check.findings, marks, (len(check._origins), check._origins._mixed)


def compared(neff: Neff, seed: int) -> tuple[int, set[str]]:
    """Compare both ways on a program with holes; return how many reads met unwritten bytes, and kinds of findings."""
    findings, marks, reads = with_holes(neff, seed)
    with plainly():
        plain_findings, plain, plain_reads = with_holes(neff, seed)
    assert findings == plain_findings and reads == plain_reads
    assert marks == plain
    return reads[0], {finding.kind for finding in findings}


@pytest.mark.parametrize("part", range(8))
def test_every_word_does_the_same_with_holes_in_its_operands(part: int) -> None:
    """Golden programs have every instruction."""
    met = 0
    for name in NAMES[part::8]:
        for seed in range(4):
            met += compared(program_of(name)[1], seed)[0] > 0
    assert met > len(NAMES[part::8])


def test_random_programs_find_the_same_with_holes() -> None:
    kinds: set[str] = set()
    for seed in range(30):
        _, found = compared(assembled(Program(seed, 0.0).text), seed)
        kinds |= found
    assert kinds >= {"undefined-output", "unwritten-read"}


# --- kernels ---------------------------------------------------------------------------------------------------------


def tiles_by_rows(x: Any, loaded: int, wrong: bool) -> Any:
    """Every 16th partition is loaded; a tile is turned twice, its pieces are put together, added and copied."""
    part = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
    if not wrong:
        nisa.memset(dst=part, value=0.0)
    for row in range(0, 128, loaded):
        nisa.dma_copy(dst=part[row : row + 1, 0:512], src=x[row : row + 1, 0:512])
    turned = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
    for at in range(0, 512, 128):
        flat = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_transpose(dst=flat, data=part[0:128, at : at + 128], engine=nisa.tensor_engine)
        nisa.tensor_copy(dst=turned[0:128, at : at + 128], src=flat)
    back = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
    for at in range(0, 512, 128):
        flat = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_transpose(dst=flat, data=turned[0:128, at : at + 128], engine=nisa.tensor_engine)
        nisa.tensor_copy(dst=back[0:128, at : at + 128], src=flat)
    nisa.tensor_scalar(dst=back, data=back, op0=nl.add, operand0=1.0)
    out = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=back)
    return out


@pytest.mark.parametrize("loaded", [2, 16])
def test_rows_that_were_not_loaded_reach_the_output_and_loaded_ones_do_not(loaded: int) -> None:
    x = np.random.default_rng(0).standard_normal((128, 512)).astype(np.float32)
    for wrong in (False, True):
        neff: Any = build_neff(tiles_by_rows, (x, loaded, wrong), {}, target="trn2")
        inputs = {neff.inputs[0].name: x}
        findings, device = checked(neff, inputs, ("initcheck",))
        with plainly():
            assert findings == checked(neff, inputs, ("initcheck",))[0]
        undefined = int(np.isnan(next(iter(device.outputs().values()))).sum())
        assert sum(int(finding.details["bytes"]) for finding in serious(findings)) == 4 * undefined
        assert undefined == (512 * (128 - 128 // loaded) if wrong else 0)


def two_in_one(x: Any, wrong: bool) -> Any:
    """A tile is put together of two that were loaded in part, and added up by rows."""
    whole = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
    for half in range(2):
        part = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf, name=f"part{half}")
        if not wrong:
            nisa.memset(dst=part, value=0.0)
        nisa.dma_copy(dst=part[0:20, 0:64], src=x[0:20, 0:64])
        nisa.tensor_copy(dst=whole[0:128, 64 * half : 64 * half + 64], src=part)
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=total, op=nl.add, data=whole, axis=1, keepdims=True)
    out = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=total)
    return out


def test_a_read_that_is_mixed_into_another_is_told_of() -> None:
    x = np.random.default_rng(0).standard_normal((128, 64)).astype(np.float32)
    for wrong in (False, True):
        neff: Any = build_neff(two_in_one, (x, wrong), {}, target="trn2")
        inputs = {neff.inputs[0].name: x}
        findings, _ = checked(neff, inputs, ("initcheck",))
        with plainly():
            assert findings == checked(neff, inputs, ("initcheck",))[0]
        tiles = {finding.tensor for finding in serious(findings)}
        assert tiles == ({"part0", "part1"} if wrong else set())
