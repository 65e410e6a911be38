"""One pass over the notes of a run tells whether all is in order, as the checks tell that look themselves."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.checks import again, kept, touched
from emulator.checks import tiles as tiles_of_a_program
from emulator.checks.knowledge import UnknownError
from emulator.checks.orderly import Order, _Look, order_of
from emulator.checks.place import Names
from emulator.checks.synccheck import _needs
from emulator.checks.tiles import Tiles
from emulator.checks.touched import OWNER, SINCE, UNTIL, Cell, Group
from emulator.device import Device
from emulator.runtime import run
from formats.neff import Neff, open_neff
from formats.neff.tiles import Tile
from formats.regions import Region
from neurontools.nki.launch import build_neff
from neurontools.program.configuration import USUAL
from neurontools.program.opening import open_program
from tests.checks.support import assembled, calls_of, drop_wait, waits_of, worked_out
from tests.checks.test_alike import fenced_columns, filled_first
from tests.checks.test_groups import rows
from tests.checks.test_loops import counts

ROOT = Path(__file__).resolve().parents[2]
X = np.linspace(0.0, 1.0, 128 * 64, dtype=np.float32).reshape(128, 64)


class Found:
    """What checks found behind a run, by way of an order and without one."""

    def __init__(
        self, neff: Neff, inputs: dict[str, Any], patch: pytest.MonkeyPatch, edit: Any = None, **limits: int
    ) -> None:
        self.order: Order | None = None
        self.outcome = ""

        def asked(*arguments: Any) -> Order | None:
            self.order = order_of(*arguments)
            return self.order

        patch.setattr(again, "order_of", asked)
        self.findings = self._run(neff, inputs, edit, limits)
        patch.setattr(again, "order_of", lambda *_: None)
        self.without = self._run(neff, inputs, edit, limits)

    def _run(self, neff: Neff, inputs: dict[str, Any], edit: Any, limits: dict[str, int]) -> list[str]:
        device = Device(neff.target, len(neff.subgraphs), max_steps=limits.get("max_steps"))
        device.load(neff)
        device.set_inputs(inputs)
        if edit is not None:
            edit(device)
        found = again.Again("all")
        found.attach(device)
        device.run()
        found.finish()
        self.outcome = device.outcome
        return [repr(one) for one in found.findings]

    @property
    def way(self) -> str:
        """Return how much the pass could tell."""
        return "nothing" if self.order is None else "all" if self.order.rest is None else "a part"


# --- random programs -------------------------------------------------------------------------------------------------

_ENGINES = {"act": 40, "pool": 41, "dve": 42}
_QUEUES = {"qIn": ("sp", 8), "qAct": ("act", 24)}


class Program:
    """Words and transfers in a random order; each waits for those whose bytes it touches, but for some waits."""

    def __init__(self, seed: int, forgets: float) -> None:
        self.random, self.forgets = random.Random(seed), forgets
        self.lines: dict[str, list[str]] = {name: [] for name in ("sp", *_ENGINES)}
        self.blocks: list[str] = []
        self.raised = dict.fromkeys((*_ENGINES, *_QUEUES), 0)
        # Bytes read and written, who did, and the wait that puts something behind it.
        self.done: list[tuple[set[int], set[int], str, str]] = []
        for _ in range(self.random.randint(6, 18)):
            self._transfer() if self.random.random() < 0.4 else self._word()
        self._end()

    def _piece(self) -> tuple[int, int, int, set[int]]:
        """Return a place, a step in elements, a count, and the bytes."""
        step, count = self.random.choice(((1, 8), (1, 16), (2, 8), (4, 4)))
        low = 0x4000 + 4 * self.random.randrange(40)
        return low, step, count, {low + 4 * step * i + b for i in range(count) for b in range(4)}

    def _behind(self, engine: str, reads: set[int], writes: set[int]) -> None:
        """Let an engine wait for what touches the same bytes."""
        for read, wrote, who, wait in self.done:
            if who != engine and (wrote & (reads | writes) or read & writes) and self.random.random() >= self.forgets:
                self.lines[engine].append(f"NOP {wait} cycle=0")

    def _word(self) -> None:
        engine = self.random.choice(list(_ENGINES))
        (source, step, count, reads), (target, hop, _, _) = self._piece(), self._piece()
        writes = {target + 4 * hop * i + b for i in range(count) for b in range(4)}
        self._behind(engine, reads, writes)
        number = _ENGINES[engine]
        self.raised[engine] += 1
        self.lines[engine].append(
            f"COPY S[{number}]++@complete src=fp32@{source:#x}[{step},1,1,1][{count},1,1,1] "
            f"dst=fp32@{target:#x}[{hop},1,1,1][{count},1,1,1] channels=128"
        )
        self.done.append((reads, writes, engine, f"S[{number}]>={self.raised[engine]}"))

    def _transfer(self) -> None:
        queue = self.random.choice(list(_QUEUES))
        engine, number = _QUEUES[queue]
        low, _, count, _ = self._piece()
        on_chip = {low + b for b in range(4 * count)}
        stores = self.random.random() < 0.4
        row = 256 * self.random.randrange(2)
        there = {1 << 20 | row + b for b in range(4 * count)}
        reads, writes = (on_chip, there) if stores else (set(), on_chip)
        self._behind(engine, reads, writes)
        sides = [f"{'y' if stores else 'a'}+{row}[1,512][{4 * count},128]", f"SB+{low:#x}[1,262144][{4 * count},128]"]
        source, target = reversed(sides) if stores else sides
        block = self.raised[queue] // 16
        self.blocks.append(f".dma {queue} {block} {number} {source} -> {target}")
        self.raised[queue] += 16
        self.lines[engine].append(f"PSEUDO_DMA_TRIGGER {queue} block_id={block}")
        self.done.append((reads, writes, queue, f"S[{number}]>={self.raised[queue]}"))

    def _end(self) -> None:
        if self.random.random() >= self.forgets:
            for queue, (_, number) in _QUEUES.items():
                if self.raised[queue]:
                    self.lines["sp"].append(f"NOP S[{number}]>={self.raised[queue]} cycle=0")

    @property
    def text(self) -> str:
        """Return the program."""
        queues = [f".queue {name} {engine} {number}" for name, (engine, number) in _QUEUES.items()]
        head = [".target trn2", ".name random", ".constant a float32 [128, 128] 1.0", ".output y float32 [128, 128]"]
        words = [line for name, lines in self.lines.items() for line in (f".engine {name}", *lines, "")]
        return "\n".join([*head, *queues, *self.blocks, "", *words]) + "\n"


@pytest.mark.parametrize(("forgets", "beside"), [(0.0, 32), (0.15, 32), (0.5, 32), (0.15, -1)])
def test_random_programs(forgets: float, beside: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(touched, "_BESIDE", beside)  # whether accesses are looked for by cells from the first on
    ways = dict.fromkeys(("all", "a part", "nothing"), 0)
    kinds = set()
    for seed in range(60):
        program = Program(seed, forgets)
        found = Found(assembled(program.text), {}, monkeypatch)
        assert found.findings == found.without, program.text
        ways[found.way] += 1
        kinds |= {one.split("kind='")[1].split("'")[0] for one in found.findings if "tool='racecheck'" in one}
    if not forgets:
        assert ways["all"] > 25 and not kinds - {"output-not-awaited", "in-place"}
    else:
        assert ways["a part"] > 10 and kinds >= {"write-read", "read-write", "write-write"}


def broken(program: Program, seed: int) -> str:
    """Return the text of a program with a signal or a transfer less, or a wait for more than there is."""
    chance, lines = random.Random(seed), program.text.splitlines()
    for _ in range(2):
        number = chance.randrange(len(lines))
        line = lines[number]
        if "++@complete" in line:
            lines[number] = "    " + line.split("++@complete ")[0].split("S[")[0] + line.split("++@complete ")[1]
        elif line.startswith("NOP S["):
            lines[number] = line.replace(" cycle", "8 cycle")
        elif "PSEUDO_DMA" in line:
            lines[number] = "NOP cycle=0"
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("forgets", [0.0, 0.2])
def test_random_programs_that_hang(forgets: float, monkeypatch: pytest.MonkeyPatch) -> None:
    ways = dict.fromkeys(("all", "a part", "nothing"), 0)
    kinds = set()
    for seed in range(80):
        text = broken(Program(seed, forgets), seed)
        limits = {"max_steps": seed // 2} if seed % 3 == 0 else {}
        found = Found(assembled(text), {}, monkeypatch, **limits)
        assert found.findings == found.without, text
        if found.outcome == "hang":
            ways[found.way] += 1
            kinds |= {one.split("kind='")[1].split("'")[0] for one in found.findings}
    assert ways["all"] > 10 and not ways["a part"]  # what races is looked at by each check
    assert kinds >= {"deadlock", "never-met"}


def test_the_largest_waits_are_those_that_the_words_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(40):
        text = Program(seed, 0.0).text.replace(".engine sp\n", ".engine sp\nNOP S[200]>=0 cycle=0\n")
        neff = assembled(text)
        device = Device(neff.target, 1)
        device.load(neff)
        needs, _ = _needs(device)
        order = Found(neff, {}, monkeypatch).order
        assert order is not None and order.needs == needs and needs[0, "semaphore", 200] == 0


@pytest.mark.parametrize("near", [0, 1, 4], ids=["among all", "the nearest", "nearby"])
def test_a_region_is_at_home_for_the_words_for_which_a_tile_holds_it(
    near: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles_of_a_program, "_NEAR", near)
    program = open_program(ROOT / "examples" / "attention.py", USUAL)
    device = Device(program.neff.target, 1)
    device.load(program.neff)
    names, chance = Names(device), random.Random(3)
    tiles, every = Tiles(device, lambda *_: None, names), names.tiles(0)
    found = dict.fromkeys(("held", "lost", "none"), 0)
    for _ in range(4000):
        tile, other = chance.choice(every), chance.choice(every)
        owner = chance.choice([*tile.pcs, *other.pcs])
        pc = chance.randrange(max(last for one in every for _, last in one.pcs.values()) + 1)
        low = tile.offset + chance.choice((0, 0, 4))
        partition = tile.partition + chance.choice((0, 0, 1))
        region = Region(tile.space, 0, partition, chance.randint(1, tile.partitions), low,
                        chance.choice((4, tile.partition_bytes)))  # fmt: skip
        used = [one for one in every if owner in one.pcs and one.pcs[owner][0] <= pc <= one.pcs[owner][1]]

        def holds(one: Tile, region: Region = region) -> bool:
            room = Region(one.space, 0, one.partition, one.partitions, one.offset, one.partition_bytes)
            return room.covers(region)

        home = tiles.home_of(region, owner, pc)
        if not any(map(holds, used)):
            assert home == ((pc, pc, {}) if not used else None)
            found["none" if home else "lost"] += 1
        else:
            assert home is not None and home[0] <= pc <= home[1]
            assert any(holds(one) and one.pcs[owner] == home[:2] and one.pcs is home[2] for one in used)
            found["held"] += 1
    assert min(found.values()) > 50, found


def test_a_place_is_at_home_where_a_tile_in_use_holds_it_whoever_touched_it_before() -> None:
    program = open_program(ROOT / "examples" / "attention.py", USUAL)
    device = Device(program.neff.target, 1)
    device.load(program.neff)
    names, chance = Names(device), random.Random(5)
    every = names.tiles(0)
    look: Any = object.__new__(_Look)
    look._tiles = Tiles(device, lambda *_: None, names)
    asked = dict.fromkeys(("held", "lost"), 0)
    for _ in range(600):
        tile = chance.choice(every)
        low, nbytes = chance.choice(((0, tile.partition_bytes), (0, 4), (tile.partition_bytes - 4, 4)))
        place = Region(tile.space, 0, tile.partition, tile.partitions, tile.offset + low, nbytes)
        last = None
        for _ in range(12):
            owner, (first, behind) = chance.choice(list(tile.pcs.items()))
            pc = chance.randint(max(first - 1, 0), behind + 1)
            used = [one for one in every if owner in one.pcs and one.pcs[owner][0] <= pc <= one.pcs[owner][1]]
            rooms = [Region(one.space, 0, one.partition, one.partitions, one.offset, one.partition_bytes)
                     for one in used]  # fmt: skip
            if used and not any(room.covers(place) for room in rooms):
                with pytest.raises(UnknownError):
                    look._first(place, None, 0, owner, pc) if last is None else look._go_home(last, place, owner, pc)
                asked["lost"] += 1
                continue
            if last is None:
                last = look._first(place, None, 0, owner, pc)
            else:
                look._go_home(last, place, owner, pc)
            assert last[OWNER] == owner and last[SINCE] <= pc <= last[UNTIL]
            span = last[SINCE], last[UNTIL]
            assert any(one.pcs[owner] == span for one in used) or (not used and span == (pc, pc))
            asked["held"] += 1
    assert min(asked.values()) > 100, asked


_RINGS = """
.target trn2
.name rings
.constant a float32 [128, 128] 1.0
.output y float32 [128, 128]
.output z float32 [128, 128]
.queue qIn sp 8
.dma qIn 0 8 a+0[1,512][256,128] -> SB+0x4000[1,262144][256,128]
.dma qIn 1 8 SB+0x4000[1,262144,64][64,128,4] -> y+0[1,512,64][64,128,4]
.dma qIn 2 8 SB+0x4000[1,262144][256,128] -> z+0[1,512][256,128]
.dma qIn 3 8 a+256[1,512][256,128] -> SB+0x4000[1,262144][256,128]

.engine act
NOP S[8]>=16 cycle=0
COPY S[40]++@complete src=fp32@0x4000[1,1,1,1][8,1,1,1] dst=fp32@0x8000[1,1,1,1][8,1,1,1] channels=128

.engine sp
PSEUDO_DMA_TRIGGER qIn block_id=0
NOP S[8]>=16 cycle=0
NOP S[40]>=1 cycle=0
PSEUDO_DMA_TRIGGER qIn block_id=1
PSEUDO_DMA_TRIGGER qIn block_id=2
PSEUDO_DMA_TRIGGER qIn block_id=3
NOP S[8]>=64 cycle=0
"""


def test_each_transfer_of_a_queue_that_read_the_same_bytes_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store overtakes the first of two that read its bytes, which other DMA engines carry, and not the second."""
    found = Found(assembled(_RINGS), {}, monkeypatch)
    (race,) = [one for one in found.findings if "tool='racecheck'" in one]
    assert "nc0 qIn pc 5 writes what nc0 qIn pc 3 may still be reading" in race
    assert found.way == "a part" and found.findings == found.without


_PARTITIONS = """
.target trn2
.name rings
.constant a float32 [128, 128] 1.0
.output y float32 [128, 128]
.output z float32 [128, 128]
.queue qIn sp 8
.queue qOut act 24
.dma qIn 0 8 a+0[1,512][512,128] -> SB+0x4000[1,262144][512,128]
.dma qOut 1 24 SB+0x4000[1,524288][64,2] -> y+0[1,64][64,2]
.dma qOut 2 24 SB+0x4100[1,262144][64,1] -> z+0[1,64][64,1]
.dma qIn 2 8 a+256[1,512][32,1] -> SB+0x4000[1,262144][32,1]

.engine act
NOP S[8]>=16 cycle=0
PSEUDO_DMA_TRIGGER qOut block_id=1
PSEUDO_DMA_TRIGGER qOut block_id=2
NOP S[24]>=32 cycle=0

.engine sp
PSEUDO_DMA_TRIGGER qIn block_id=0
NOP S[8]>=16 cycle=0
PSEUDO_DMA_TRIGGER qIn block_id=2
NOP S[8]>=32 cycle=0
"""


def test_each_region_of_a_transfer_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store goes over a part of the first of two partitions that a transfer of another queue may still be reading."""
    found = Found(assembled(_PARTITIONS), {}, monkeypatch)
    (race,) = [one for one in found.findings if "tool='racecheck'" in one]
    assert "nc0 qIn pc 2 writes what nc0 qOut pc 1 may still be reading" in race
    assert found.way == "a part" and found.findings == found.without


def test_nobody_is_told_of_neighbours_where_all_is_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    told = 0
    split = Group.split

    def counted(group: Group) -> None:
        nonlocal told
        told += 1
        split(group)

    monkeypatch.setattr(Group, "split", counted)
    ways = [Found(assembled(Program(seed, 0.0).text), {}, monkeypatch).way for seed in range(10)]
    assert ways.count("all") > 3 and not told


# --- kernels ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["attention", "rmsnorm", "softmax", "tiled_matmul", "vector_add"])
def test_all_is_in_order_in_ordinary_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = open_program(ROOT / "examples" / f"{name}.py", USUAL)
    found = Found(program.neff, program.inputs, monkeypatch)
    assert found.way == "all" and found.findings == found.without == []


def test_what_runs_without_a_word_of_any_check_takes_few_calls() -> None:
    """A checked run of a file that was not checked before: Python and C functions called beyond a run, a word."""
    program = open_program(ROOT / "examples" / "tiled_matmul.py", USUAL)

    def counted(**options: Any) -> int:
        return calls_of(lambda: run(program.neff, program.inputs, **options))

    words = 48
    with worked_out():
        run(program.neff, program.inputs, checks="all")
        kept._FILES.pop(program.neff, None)
        assert (counted(checks="all") - counted()) / words < 35


@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize("kernel", [filled_first, fenced_columns])
def test_two_cores(kernel: Any, wrong: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).random((128, 16)).astype(np.float32)
    # A file of its own: a kernel that is built again may be the same open file.
    neff = open_neff(build_neff(kernel, (x, wrong), {}, target="trn2", lnc=2).to_bytes())
    found = Found(neff, {neff.inputs[0].name: x}, monkeypatch)
    assert found.findings and found.findings == found.without
    assert found.way == "a part"


@pytest.mark.parametrize("filled", [False, True])
def test_groups_in_psum(filled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).random((128, 64)).astype(np.float32)
    neff = build_neff(rows, (x, filled), {}, target="trn2")
    found = Found(neff, {neff.inputs[0].name: x}, monkeypatch)
    assert found.findings == found.without
    assert any("psum-group" in one for one in found.findings) != filled and found.way == (
        "all" if filled else "nothing"
    )


def piece_by_piece(x: Any) -> Any:
    """A store of all, then many of a piece each, which lie beside more regions than are kept without a look."""
    out = nl.ndarray((128, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    part, zeros = (nl.ndarray((128, 16), dtype=nl.float32, buffer=nl.sbuf) for _ in range(2))
    nisa.dma_copy(dst=part, src=x)
    nisa.memset(dst=zeros, value=0.0)
    nisa.dma_copy(dst=out, src=zeros)
    for row in range(0, 128, 4):
        nisa.dma_copy(dst=out[row : row + 4], src=part[row : row + 4])
    nisa.dma_copy(dst=part[0:124], src=out[0:124])
    nisa.dma_copy(dst=out[0:120], src=part[0:120])
    return out


def test_what_is_still_to_come_is_not_taken_to_know_of_all_that_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).random((128, 16)).astype(np.float32)
    neff = build_neff(piece_by_piece, (x,), {}, target="trn2", lnc=2)
    found = Found(neff, {neff.inputs[0].name: x}, monkeypatch)
    assert found.way == "a part" and len(found.findings) > 64
    assert found.findings == found.without


def test_a_loop_sets_its_semaphores_back(monkeypatch: pytest.MonkeyPatch) -> None:
    given = np.array([[3]], np.int32)
    neff = build_neff(counts, (X[:, :16], given, -1), {}, target="trn2")
    inputs = dict(zip((one.name for one in neff.inputs), (X[:, :16], given), strict=True))
    found = Found(neff, inputs, monkeypatch)
    assert found.way == "all" and found.findings == found.without == []
    device = Device(neff.target, 1)
    device.load(neff)
    told = 0
    for place in list(waits_of(device)):

        def edit(device: Device, place: Any = place) -> None:
            drop_wait(place)(device)
            device.max_steps = 4000

        found = Found(neff, inputs, monkeypatch, edit)
        assert found.findings == found.without, place
        told += found.way != "all"
    assert told > 5


# --- groups ----------------------------------------------------------------------------------------------------------


def test_cells_of_a_group_know_those_that_share_bytes_with_them() -> None:
    numbers = random.Random(7)
    for _ in range(200):
        cells = []
        for _ in range(numbers.randint(2, 12)):
            pattern = None
            low, nbytes = numbers.randrange(64), numbers.choice((4, 8, 24))
            if numbers.random() < 0.4:
                step, count = numbers.choice(((8, 3), (6, 2), (12, 4)))
                pattern, nbytes = (((step, count),), 4), step * (count - 1) + 4
            region = Region("SBUF", 0, numbers.randrange(4), numbers.randint(1, 3), low, nbytes, pattern)
            cells.append(Cell(region, written=numbers.random() < 0.6))
        cells.sort(key=lambda cell: cell.region[4])
        Group(cells).split()
        for one in cells:
            near = {id(other): covers for other, covers in one.near or ()}
            for other in cells:
                mine, its = Region(*one.region), Region(*other.region)
                if other is not one and (one.written or other.written) and mine.overlaps(its):
                    assert near.pop(id(other)) == mine.covers(its)
            assert not near


def test_too_many_regions_between_one_another_are_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [Cell(Region("SBUF", 0, number % 128, 1, 0, 64), written=True) for number in range(300)]
    with pytest.raises(LookupError):
        Group(cells).split()
