"""What initcheck follows by the notes of a run is what it finds where it watches, byte by byte and by the memories."""

from __future__ import annotations

import random
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import emulator.device
from emulator.access import Operand
from emulator.checks import again, courses
from emulator.checks.initcheck import Initcheck
from emulator.checks.mark_rows import Stencil, folded, larger, transposed, with_stencil
from emulator.checks.undefined import BandedPlanes
from emulator.checks.unwritten import Unwritten
from emulator.checks.written import Written
from emulator.device import Device
from formats.isa.operand import AccessPattern
from formats.neff import Neff
from formats.neuron_core import PARTITIONS, SBUF_PARTITION_STRIDE
from formats.regions import Region
from tests.checks.plain_marks import plainly
from tests.checks.support import assembled
from tests.checks.test_marks import MASKS, TYPES, random_side
from tests.checks.test_orderly import Program
from tests.emulator.test_golden import NAMES, program_of

TILES = [0x4000 + 512 * at for at in range(7)]
PSUM = 0x2000000
WIDE = 0x6000  # columns that are compared
HEAD = """.target trn2
.dialect extended
.name random
.constant a float32 [128, 128] 1.0
.output y float32 [128, 128]
.output z float32 [128, 128]
.queue qIn sp 8
.queue qOut act 24
"""


class Words:
    """A program that reads what nothing wrote: tiles and parts of them, in one order over all of its engines."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: dict[str, list[str]] = {name: [] for name in ("sp", "act", "dve", "pool", "pe")}
        self.blocks: list[str] = []
        self.count = 0
        self.moved = {"qIn": 0, "qOut": 0}
        kinds = (self.fill, self.copy, self.copy, self.copy, self.cast, self.cast, self.add, self.product,
                 self.select, self.choose, self.shuffle, self.load, self.store, self.reduce, self.again)  # fmt: skip
        for _ in range(self.random.randint(10, 26)):
            self.random.choice(kinds)()
        self.store()

    def word(self, engine: str, text: str) -> None:
        """Add a word behind all others."""
        name, rest = text.split(" ", 1)
        wait = f"S[60]>={self.count} " if self.count else ""
        self.lines[engine].append(f"{name} {wait}S[60]++@complete {rest}")
        self.count += 1

    def rows(self) -> tuple[int, int]:
        """Return where partitions begin, and how many they are."""
        first = self.random.choice((0, 0, 0, 0, 32, 64))
        return first * SBUF_PARTITION_STRIDE, self.random.choice((128, 32, 3, 1)) if first else 128

    def piece(self, size: int = 4) -> tuple[int, int, int]:
        """Return place, step and count of elements: a whole tile as a rule."""
        low = self.random.choice(TILES)
        if self.random.random() < 0.6:
            return low, 1, 128
        step = self.random.choice((1, 1, 2, 4, -1))
        start = 127 if step < 0 else self.random.randrange(32)
        return low + size * start, step, 24

    def pair(self, size: int = 4) -> tuple[tuple[int, int], tuple[int, int], int]:
        """Return place and step of two pieces of as many elements."""
        (source, step, count), (target, hop, other) = self.piece(), self.piece(size)
        if count != other:
            hop, count = (1, 24) if hop > 0 else (-1, 24)
            step = step if step != 1 else 1
        return (source, step), (target, hop), count

    def fill(self) -> None:
        """Write numbers."""
        low, step, count = self.piece()
        rows, channels = self.rows()
        channels = min(channels, 128 - rows // SBUF_PARTITION_STRIDE)
        self.word(
            "dve", f"MEMSET dst=fp32@{low + rows:#x}[{step},1,1,1][{count},1,1,1] count={count} channels={channels}"
        )

    def unary(self, name: str, source_type: str, target_type: str, size: int) -> None:
        """Have a word write a piece of another one."""
        (source, step), (target, hop), count = self.pair(size)
        rows, channels = self.rows()
        channels = min(channels, 128 - rows // SBUF_PARTITION_STRIDE)
        self.word(
            "dve",
            f"{name} src={source_type}@{source + rows:#x}[{step},1,1,1][{count},1,1,1] "
            f"dst={target_type}@{target + rows:#x}[{hop},1,1,1][{count},1,1,1] channels={channels}",
        )

    def copy(self) -> None:
        """Copy a piece."""
        self.unary("COPY", "fp32", "fp32", 4)

    def cast(self) -> None:
        """Write a piece in another type."""
        self.unary("CAST", "fp32", self.random.choice(("fp32", "int32", "bfloat16")), 4)

    def again(self) -> None:
        """Copy whole tiles of the same kind, one behind the other."""
        for _ in range(self.random.randint(2, 5)):
            source, target = self.random.sample(TILES, 2)
            self.word("dve", f"CAST src=fp32@{source:#x}[1,1,1,1][128,1,1,1] dst=int32@{target:#x}[1,1,1,1][128,1,1,1] "
                             "channels=128")  # fmt: skip

    def add(self) -> None:
        """Add two tiles."""
        one, other, target = (self.random.choice(TILES) for _ in range(3))
        tile = "[1,1,1][128,1,1]"
        self.word("dve", f"TENSOR_TENSOR op=ADD src0=fp32@{one:#x}{tile} src1=fp32@{other:#x}{tile} "
                         f"dst=fp32@{target:#x}{tile} channels=128")  # fmt: skip

    def reduce(self) -> None:
        """Add up each partition of a tile."""
        source, target = self.random.choice(TILES), self.random.choice(TILES)
        self.word("dve", f"TENSOR_REDUCE op=ADD dim=X src=fp32@{source:#x}[1,1,1,1][128,1,1,1] "
                         f"dst=fp32@{target + 40:#x}[1,1,1,1][1,1,1,1] channels=128")  # fmt: skip

    def product(self) -> None:
        """Multiply tiles, or exchange partitions and columns of one; bring what comes of it to SBUF."""
        weights, moving, target = (self.random.choice(TILES) for _ in range(3))
        mode = self.random.choice(("ENABLED", "ENABLED", "DISABLED"))
        last, how = 127 * 4 + weights, " {transpose_mode=1}" if mode == "ENABLED" else ""
        for _ in range(self.random.randint(1, 2)):
            self.word(
                "pe", f"LDWEIGHTS fp32_mode=LOW transpose_mode={mode} src=fp32@{last:#x}[-1,0,0][128,1,1] 128*128"
            )
            self.word("pe", f"MATMUL acc_flags=3 fp32_mode=LOW_HIGH src=fp32@{moving:#x}[1,0,0][128,1,1] "
                            f"dst={PSUM:#x}[1,0,0][128,1,1] 128*128{how}")  # fmt: skip
            self.word("dve", f"CAST src=fp32@{PSUM:#x}[1,1,1,1][128,1,1,1] dst=fp32@{target:#x}[1,1,1,1][128,1,1,1] "
                             "channels=128")  # fmt: skip

    def select(self) -> None:
        """Fill a part of a tile up: data tell which."""
        source, target = self.random.choice(TILES), self.random.choice(TILES)
        self.word("pool", "AFFINE_SELECT op=GREATER_EQUAL offset=0 channel_multiplier=1 "
                          "step0=-1 step1=0 step2=0 step3=0 count0=128 count1=1 count2=1 count3=1 on_false=-9.0 "
                          f"src=fp32@{source:#x}[1,1,1,1,1][128,1,1,1,1] dst=fp32@{target:#x}[1,1,1,1,1][128,1,1,1,1] "
                          "channels=128")  # fmt: skip

    def choose(self) -> None:
        """Overwrite what a predicate, which may be undefined itself, chooses."""
        source, target, predicate = (self.random.choice(TILES) for _ in range(3))
        self.word("dve", f"COPY_PREDICATED src=fp32@{source:#x}[1,1,1,1,1][24,1,1,1,1] value=0.0 "
                         f"predicate=uint8@{predicate:#x}[1,1,1,1,1][24,1,1,1,1] "
                         f"dst=fp32@{target:#x}[1,1,1,1,1][24,1,1,1,1] channels=128")  # fmt: skip

    def shuffle(self) -> None:
        """Bring rows to other partitions, and leave some as they are."""
        source, target = self.random.choice(TILES), self.random.choice(TILES)
        mask = ",".join(str(self.random.choice((255, self.random.randrange(32)))) for _ in range(32))
        self.word("dve", f"STREAM_SHUFFLE mask={mask} src=fp32@{source:#x}[1,1,1,1,1][128,1,1,1,1] "
                         f"dst=fp32@{target:#x}[1,1,1,1,1][128,1,1,1,1] channels=128 dst_channels=128")  # fmt: skip

    def move(self, queue: str, engine: str, number: int, source: str, target: str) -> None:
        """Move bytes behind all words so far, and wait for that."""
        self.blocks.append(f".dma {queue} {self.moved[queue]} {number} {source} -> {target}")
        wait = f"S[60]>={self.count} " if self.count else ""
        self.lines[engine].append(f"PSEUDO_DMA_TRIGGER {wait}{queue} block_id={self.moved[queue]}")
        self.moved[queue] += 1
        self.lines[engine].append(f"NOP S[{number}]>={16 * self.moved[queue]} S[60]++@complete cycle=0")
        self.count += 1

    def load(self) -> None:
        """Load a part of a tile, sometimes one of an output that may not have been stored."""
        low, rows = self.random.choice(TILES), self.random.choice((128, 128, 16))
        source = self.random.choice(("a", "a", "y", "z"))
        nbytes = self.random.choice((512, 64))
        self.move("qIn", "sp", 8, f"{source}+0[1,512][{nbytes},{rows}]", f"SB+{low:#x}[1,262144][{nbytes},{rows}]")

    def store(self) -> None:
        """Store a part of a tile."""
        low, nbytes = self.random.choice(TILES), self.random.choice((512, 512, 64))
        target = self.random.choice("yz")
        self.move("qOut", "act", 24, f"SB+{low:#x}[1,262144][{nbytes},128]", f"{target}+0[1,512][{nbytes},128]")

    @property
    def text(self) -> str:
        """Return the program."""
        words = [line for name, lines in self.lines.items() for line in (f".engine {name}", *lines, "")]
        return "\n".join([HEAD, *self.blocks, "", *words]) + "\n"


def by_notes(neff: Neff, inputs: Any = None, tools: tuple[str, ...] = ("initcheck",)) -> tuple[Any, ...]:
    """Return what is found by the notes of a run, the marks at its end, reads, and whether notes were followed."""
    device = Device(neff.target, len(neff.subgraphs), max_steps=2000)
    device.load(neff)
    device.set_inputs(inputs or {})
    check = again.Again(tools)
    check.attach(device)
    device.run()
    check.finish()
    seen = check._initcheck
    found = [repr(one) for one in check.findings if one.tool == "initcheck"], *_state(seen), check._pursuit is not None
    device.release()
    return found


def watching(neff: Neff, plain: bool, inputs: Any = None) -> tuple[Any, ...]:
    """Return the same of a check that watches and asks the memories; `plain`: with a mark for each byte."""
    device = Device(neff.target, len(neff.subgraphs), max_steps=2000)
    device.load(neff)
    device.set_inputs(inputs or {})
    with plainly() if plain else nullcontext():
        check = Initcheck()
        device.observers.append(check)
        check.attach(device)
        device.run()
        check.finish()
    found = [repr(one) for one in check.findings], *_state(check)
    device.release()
    return found


def _state(check: Initcheck | None) -> tuple[Any, Any]:
    if check is None:
        return {}, (0, {})
    found: dict[Any, Any] = {}
    for key, flat in check._planes._hbm.items():
        found[key] = flat.tobytes()
    planes = check._planes
    for core in planes._device.cores:
        for space in ("SBUF", "PSUM"):
            dense = np.zeros((PARTITIONS, WIDE), np.int16)
            if isinstance(planes, BandedPlanes):
                bands = planes._bands.get((core.index, space))
                for low, high in () if bands is None else zip(bands._lows, bands._highs, strict=True):
                    dense[:, low:high] = bands.spread(low, high)[:, : WIDE - low]
            elif (core.index, space) in planes._chip:
                plane = planes._chip[core.index, space][:, :WIDE]
                dense[:, : plane.shape[1]] = plane
            if dense.any():
                found[core.index, space] = dense.tobytes()
    return found, (len(check._origins), check._origins._mixed)


@pytest.mark.parametrize("part", range(4))
def test_golden_programs_find_the_same_by_their_notes(part: int) -> None:
    for name in NAMES[part::4]:
        neff = program_of(name)[1]
        found = by_notes(neff)[:3]
        assert found == watching(neff, False) and found == watching(neff, True), name


@pytest.mark.parametrize("part", range(4))
def test_random_programs_find_the_same_by_their_notes(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bool] = []
    take = courses.Courses.take
    monkeypatch.setattr(courses.Courses, "take", lambda *given: taken.append(take(*given)) or taken[-1])
    pursued, alike, kinds = 0, 0, set()
    for seed in range(part, 24, 4):
        # A device says which words read what nothing wrote up to so many warnings.
        monkeypatch.setattr(emulator.device, "WARNINGS", 100 if seed % 8 < 4 else 3)
        for program in (Words(seed), Program(seed, 0.0)):
            neff = assembled(program.text)
            *found, by = by_notes(neff)
            assert tuple(found) == watching(neff, False), seed
            pursued += by
            kinds |= {word for word in ("undefined-output", "unwritten-read") if word in str(found[0])}
            # What a word keeps is read only where something undefined is near it, which bytes tell in larger blocks.
            plain = watching(neff, True)
            if plain[2][0] == found[2][0]:
                alike += 1
                assert tuple(found) == plain, seed
    assert pursued > 8 and alike > 8 and len(kinds) == 2
    assert any(taken) and not all(taken)


def test_who_has_followed_notes_watches_where_these_become_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    left = 0
    for seed in range(8):
        neff = assembled(Words(seed).text)
        expected = watching(neff, False)
        monkeypatch.setattr(again, "_MOST_NOTES", 24)
        *found, by = by_notes(neff, tools=("racecheck", "initcheck"))
        assert tuple(found) == expected, seed
        left += not by
    assert left > 2


def test_bytes_that_were_written_before_the_run_are_watched() -> None:
    neff = assembled(Words(1).text)
    device = Device(neff.target, len(neff.subgraphs))
    device.load(neff)
    device.cores[0].memory.mark_written("SBUF", 0, PARTITIONS, TILES[0], TILES[3])
    check = again.Again(("initcheck",))
    check.attach(device)
    device.run()
    check.finish()
    other = Device(neff.target, len(neff.subgraphs))
    other.load(neff)
    other.cores[0].memory.mark_written("SBUF", 0, PARTITIONS, TILES[0], TILES[3])
    watches = Initcheck()
    other.observers.append(watches)
    watches.attach(other)
    other.run()
    watches.finish()
    assert check._pursuit is None and check._initcheck is not None
    assert check.findings and [repr(one) for one in check.findings] == [repr(one) for one in watches.findings]


# --- what was written ------------------------------------------------------------------------------------------------


def test_what_notes_say_was_written_is_what_the_memory_says() -> None:
    lacking = walks = 0
    for seed in range(12):
        chance = random.Random(seed)
        device = Device("trn2", 1)
        core = device.cores[0]
        written = Written(device)
        planes = BandedPlanes(device)
        plain = BandedPlanes(device)
        planes.written = written
        for _ in range(60):
            if chance.random() < 0.3:
                side = random_side(chance)
                plain._written(side)[...] = True
                core.memory.forget()
                written.mark_side(side)
                walks += 1
            operand = _operand(chance, device)
            if operand.regions and chance.random() < 0.5:
                for extent in operand.extents:
                    extent.mark()
                    written.mark(extent)
            asked = _operand(chance, device)
            for extent in asked.extents:
                assert written.lacks(extent) == bool(extent.missing())
            mine, its = Unwritten(core, asked, written), Unwritten(core, asked)
            lanes = np.zeros(asked.view.shape[0], np.bool_)
            for region in asked.regions:
                lanes[region.first - asked.regions[0].first :][: region.partitions] = True
                assert planes.missing_in(region) == plain.missing_in(region)
            given, expected = planes.look(core, asked, mine.marks(7)), plain.look(core, asked, its.marks(7))
            assert given is not None and expected is not None
            assert (given.spread() == expected.spread()).all()
            assert mine.boxes() == its.boxes()
            assert not (mine.is_none and its.is_any) and not (mine.is_any and its.is_none)
            lacking += bool(mine.boxes())
            side = random_side(chance)
            found, wanted = planes.read_side(side, 5), plain.read_side(side, 5)
            assert (found is None) == (wanted is None) and (found is None or bool((found == wanted).all()))
            assert not planes.is_defined(side) or found is None
        whole = Region("SBUF", 0, 0, PARTITIONS, 0, 600)
        which, rows = written.rows(0, "SBUF", 0, PARTITIONS, 0, 600)
        core.memory.notes.settle()
        assert (rows[which] == core.memory.plane("SBUF")[:, :600]).all()
        assert written.box(whole) == plain.missing_in(whole)
        device.release()
    assert lacking > 100 and walks > 100


def _operand(chance: random.Random, device: Device) -> Operand:
    resolver, code = device.cores[0].resolver, chance.choice(TYPES)
    first = chance.choice((0, 0, 0, 32, 64, 3))
    step, count = chance.choice(((1, 16), (1, 5), (-1, 9), (3, 4))), chance.randint(1, 3)
    start = (first * SBUF_PARTITION_STRIDE) + 64 * chance.randrange(3) + 128
    pattern = AccessPattern(start, (step[0], 17), (step[1], count))
    found = resolver._place("x", pattern, code, chance.choice((PARTITIONS - first, 16, 1)), False, "DVE")
    if found.view.shape[0] == PARTITIONS and chance.random() < 0.3:
        found = resolver._masked(found, chance.choice(MASKS))
    return found


# --- stencils of several numbers -------------------------------------------------------------------------------------


def test_stencils_of_several_numbers_are_marks_as_any() -> None:
    chance, kept = np.random.default_rng(3), 0
    for _ in range(300):
        rows, columns = int(chance.integers(1, 4)), int(chance.integers(1, 12))
        numbers = chance.choice([3, 9, 40, 29999], 3)
        one, other = (
            folded(chance.choice([0, 0, *numbers], (rows, columns)).astype(np.int16)[chance.integers(0, rows, 8)])
            for _ in range(2)
        )
        mine, its = (with_stencil(each.which, each.rows) for each in (one, other))
        for made, given in ((mine, one), (its, other)):
            assert (made.spread() == given.spread()).all() and made.stencil is not None
            assert made.numbers == tuple(sorted(set(given.rows.ravel().tolist()) - {0}))
            assert all(made.has(number) == bool((given.rows == number).any()) for number in (0x3FFF, *numbers))
            assert (transposed(made).spread() == given.spread().T).all()
            assert (made.stencil.backwards.marks(*made.numbers).spread() == given.spread()[:, ::-1]).all()
            assert made.number in (0, *made.numbers) and (not made.number or len(made.numbers) == 1)
        for _ in range(2):  # the second time it is known
            both = larger(mine, its)
            expected = np.maximum(one.spread(), other.spread())
            assert (both.spread() == expected).all()
            assert both.numbers == tuple(sorted(set(expected.ravel().tolist()) - {0}))
            assert set(both.which.tolist()) == set(range(len(both.rows)))
        kept += mine.stencil is its.stencil
        assert isinstance(both.stencil, Stencil)
    assert kept < 300
