"""Programs that fit in another order only: reads move forward, results stay, and nothing passes what it depends on."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator import runtime
from formats import isa
from formats.isa import ReduceCommand, extension_random
from formats.isa.registry import CLASSES
from formats.neff import open_neff
from neurontools.builder import AllocationError, build
from neurontools.builder.allocate import allocate
from neurontools.builder.chip import CHIPS
from neurontools.builder.dependencies import accesses_of, hidden_state, predecessors
from neurontools.builder.sinking import hoist_last_uses, ordered_by_bytes
from neurontools.builder.tiles import lives_of, place_tiles
from neurontools.builder.trace import Allocation, ComputeOp, LoopEndOp, LoopOp, Trace, View
from tests.builder.maker import I32, Maker, interpret
from tests.builder.order import unordered
from tests.builder.test_allocate import check

CHIP = CHIPS["gen3"]
SIZE = 16
SMALL = CHIP._replace(sbuf_end=CHIP.sbuf_first + 7 * 64, psum_bytes=2 * 0x800)


def rows_of_psum(read_at_once: bool, rows: int = 12) -> Maker:
    """Return a kernel that sums into `rows` whole banks of PSUM, and reads each behind its sum, or all at the end."""
    m = Maker()
    x, y = m.input("x", (SIZE, SIZE)), m.output("y", (rows * SIZE, 512))
    weights, ones = m.sbuf((SIZE, SIZE)), m.sbuf((SIZE, 512))
    m.dma(weights, x)
    m.memset(ones, 2.0)

    def read(row: int, tile: Allocation) -> None:
        out = m.sbuf((SIZE, 512))
        m.copy(out, tile)
        m.dma(m.view(y, slice(row * SIZE, row * SIZE + SIZE)), out)

    tiles = []
    for row in range(rows):
        tiles.append(m.psum((SIZE, 512)))
        m.matmul(tiles[-1], weights, ones)
        m.matmul(tiles[-1], weights, ones)
        if read_at_once:
            read(row, tiles[-1])
    if not read_at_once:
        for row, tile in enumerate(tiles):
            read(row, tile)
    return m


def copies(trace: Trace) -> list[int]:
    """Return the numbers of the reads of PSUM."""
    return [number for number, op in enumerate(trace.ops) if isinstance(op, ComputeOp) and op.instruction is isa.Copy]


def test_reads_move_between_fills_that_do_not_fit_together() -> None:
    m = rows_of_psum(read_at_once=False)
    with pytest.raises(AllocationError, match="PSUM is full"):
        allocate(lives_of(m.trace), CHIP)
    x = np.random.default_rng(0).integers(-3, 4, (SIZE, SIZE)).astype(np.float32)
    data = build([m.trace], "rows").to_bytes()
    assert unordered(open_neff(data)) == []
    result = runtime.run(data, {"x": x})
    np.testing.assert_array_equal(result.outputs["y"], interpret(m.trace, {"x": x})["y"])


def test_a_program_that_fits_stays_as_written() -> None:
    m = rows_of_psum(read_at_once=True)
    assert place_tiles(m.trace, CHIP)[0] is m.trace


def test_both_orders_of_a_kernel_give_the_same_bits() -> None:
    x = np.random.default_rng(1).standard_normal((SIZE, SIZE)).astype(np.float32)
    late, early = (
        runtime.run(build([rows_of_psum(at_once).trace], "rows").to_bytes(), {"x": x}).outputs["y"]
        for at_once in (False, True)
    )
    np.testing.assert_array_equal(late, early)


def test_no_more_moves_than_needed() -> None:
    """Nine banks are wanted where there are eight: one read goes forward, with its copy, and nothing else moves."""
    m = rows_of_psum(read_at_once=False, rows=9)
    lives = lives_of(m.trace)
    moved = hoist_last_uses(m.trace, lives, CHIP)
    assert moved is not None
    ops = m.trace.ops
    read = copies(m.trace)[0]
    assert [ops.index(op) for op in moved[0].ops] == [
        *range(read - 2),
        read,
        read - 2,
        read - 1,
        *range(read + 1, len(ops)),
    ]


def test_nothing_passes_a_loop() -> None:
    """A loop stands between the fills and the reads: the overflow is reported as the kernel has it."""
    m = Maker()
    x, y = m.input("x", (SIZE, 512)), m.output("y", (9 * SIZE, 512))
    count = m.sbuf((1, 1), I32)
    m.memset(count, 1)
    source = m.sbuf((SIZE, 512))
    m.dma(source, x)
    tiles = [m.psum((SIZE, 512)) for _ in range(9)]
    for tile in tiles:
        m.copy(tile, source)
    m.trace.ops.append(LoopOp(m.view(count), True, ("kernel.py", 90)))
    m.add(count, count, count)
    m.trace.ops.append(LoopEndOp(("kernel.py", 92)))
    for row, tile in enumerate(tiles):
        out = m.sbuf((SIZE, 512))
        m.copy(out, tile)
        m.dma(m.view(y, slice(row * SIZE, row * SIZE + SIZE)), out)
    with pytest.raises(AllocationError, match=r"PSUM is full: p12 needs 2048 bytes .* 8 live tensors"):
        build([m.trace], "loop")


def test_a_tile_older_than_a_loop_keeps_its_place_through_it() -> None:
    """Inside the loop the reads move forward; what lives around the loop keeps its bytes, touched there or not."""
    m = Maker()
    x, y = m.input("x", (SIZE, 512)), m.output("y", (7 * SIZE, 512))
    count, source, around = m.sbuf((1, 1), I32), m.sbuf((SIZE, 512)), m.psum((SIZE, 512))
    m.memset(count, 1)
    m.dma(source, x)
    m.copy(around, source)
    m.trace.ops.append(LoopOp(m.view(count), True, ("kernel.py", 90)))
    tiles = [m.psum((SIZE, 512)) for _ in range(7)]
    other = m.psum((SIZE, 512))
    m.copy(other, around)
    for tile in tiles:
        m.copy(tile, source)
    for row, tile in enumerate(tiles):
        out = m.sbuf((SIZE, 512))
        m.copy(out, tile)
        m.dma(m.view(y, slice(row * SIZE, row * SIZE + SIZE)), out)
    m.copy(source, other)
    m.trace.ops.append(LoopEndOp(("kernel.py", 92)))
    moved, tiles_of = place_tiles(m.trace, CHIP)
    assert moved is not m.trace
    check(tiles_of.lives, tiles_of.places)
    assert [type(op) for op in moved.ops].index(LoopOp) == 3 and isinstance(moved.ops[-1], LoopEndOp)


def test_what_the_kernel_orders_stays_ordered() -> None:
    """`depends_on` keeps a read behind an operation that shares no byte with it, even where that leaves no room."""
    m = rows_of_psum(read_at_once=False, rows=9)
    reads = copies(m.trace)
    last_fill = reads[0] - 1
    m.trace.after = {number: {last_fill} for number in reads}
    with pytest.raises(AllocationError, match="PSUM is full"):
        build([m.trace], "after")
    m.trace.after = {number: {last_fill} for number in reads[1:]}
    moved, _ = place_tiles(m.trace, CHIP)
    place = {id(op): number for number, op in enumerate(moved.ops)}
    fill, *others = (place[id(m.trace.ops[number])] for number in (last_fill, *reads[1:]))
    assert moved.after == {number: {fill} for number in others}
    assert place[id(m.trace.ops[reads[0]])] < fill < min(others)


def test_room_is_kept_for_what_ends_lives() -> None:
    """As with the gates of `bwmm_shard_on_block.py`: to end the life of a tile takes one more, and nothing is left."""
    m = Maker()
    x, y = m.input("x", (SIZE, 32)), m.output("y", (12 * SIZE, SIZE))
    base = m.sbuf((SIZE, 32))
    m.dma(base, x)
    pairs = [[m.sbuf((SIZE, 32)) for _ in range(12)] for _ in range(2)]
    for tile in [*pairs[0], *pairs[1]]:
        m.add(tile, base, base)
    halves = []
    for gate, up in zip(*pairs, strict=True):
        half, result = m.sbuf((SIZE, SIZE)), m.sbuf((SIZE, SIZE))
        m.copy(half, m.view(gate, slice(None), slice(0, SIZE)))
        m.add(result, half, m.view(up, slice(None), slice(SIZE, 32)))
        halves.append(result)
    for row, result in enumerate(halves):
        m.dma(m.view(y, slice(row * SIZE, row * SIZE + SIZE)), result)
    chip = CHIP._replace(sbuf_end=CHIP.sbuf_first + 16 * 128)
    lives = lives_of(m.trace)
    assert hoist_last_uses(m.trace, lives, chip) is None
    moved, tiles = place_tiles(m.trace, chip)
    assert conflicts(moved) == conflicts(m.trace)
    with patch("tests.builder.test_allocate.CHIP", chip):
        check(tiles.lives, tiles.places)
    data = np.random.default_rng(2).integers(-3, 4, (SIZE, 32)).astype(np.float32)
    with patch("neurontools.builder.built.chip_of", lambda _: chip):
        built = build([m.trace], "halves").to_bytes()
    assert unordered(open_neff(built)) == []
    np.testing.assert_array_equal(runtime.run(built, {"x": data}).outputs["y"], interpret(m.trace, {"x": data})["y"])
    # Where the kernel has placed tiles itself there is no counting.
    lives[0].allocation.address = 0, CHIP.sbuf_first
    assert list(ordered_by_bytes(m.trace, lives, chip)) == []


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: str(cls.NAME))
def test_state_besides_operands_is_known(cls: type[Any]) -> None:
    """Every word that has a reduce command, reads the accumulators or draws random numbers is chained to its engine."""
    source = "kernel.py", 1
    engine = cls.ENGINES[0] if cls.ENGINES else "DVE"
    keeps = cls.NAME in {getattr(extension_random, name).NAME for name in extension_random.__all__}
    folds = "reduce_command" in cls.FIELDS
    found = hidden_state(ComputeOp(cls, engine, {}, {}, source))
    if keeps or cls is isa.ActivationReadAccumulator:
        assert found == engine
    if folds:
        for command in (ReduceCommand.RESET, ReduceCommand.REDUCE, ReduceCommand.RESET_REDUCE):
            assert hidden_state(ComputeOp(cls, engine, {}, {"reduce_command": command}, source)) == engine
    if not keeps and not folds and cls is not isa.ActivationReadAccumulator:
        assert found is None


def test_random_numbers_are_drawn_in_order() -> None:
    m = Maker()
    for engine in ("DVE", "Pool", "DVE", "Pool"):
        m.compute(isa.Rng, engine, {"dst": m.sbuf((SIZE, 8), I32)})
    assert predecessors(m.trace) == [(), (), (0,), (1,)]


def cells(view: View) -> set[tuple[object, ...]]:
    """Return every byte of a view, one by one; tiles at addresses of the kernel by where they lie."""
    one, size = view.allocation, view.dtype.size
    places = {view.offset}
    for step, count in view.dims:
        places = {place + step * size * i for place in places for i in range(count)}
    partition, byte = one.address or (0, 0)
    owner = one.id if one.address is None else one.space
    return {(owner, partition + view.partition + row, byte + place + i)
            for place in places for row in range(view.partitions) for i in range(size)}  # fmt: skip


def conflicts(trace: Trace) -> set[tuple[int, int]]:
    """Return the ids of every two operations, in order, that touch a common byte which one of them writes."""
    touched = []
    for op in trace.ops:
        reads: set[tuple[object, ...]] = set()
        writes: set[tuple[object, ...]] = set()
        for view, write in accesses_of(op):
            (writes if write else reads).update(cells(view))
        touched.append((op, reads, writes))
    return {
        (id(first), id(second))
        for number, (first, reads, writes) in enumerate(touched)
        for second, more, others in touched[number + 1 :]
        if writes & (more | others) or reads & others
    }


def crowded(data: st.DataObject) -> Maker:
    """Return a trace that fills a few tiles more than fit, mixes them, and reads them in any order."""
    m = Maker()
    x, y = m.input("x", (SIZE, SIZE)), m.output("y", (8 * SIZE, SIZE))
    base, extra = m.sbuf((SIZE, SIZE)), m.sbuf((SIZE, SIZE))
    m.dma(base, x)
    m.memset(extra, 1.0)
    for turn in range(data.draw(st.integers(1, 2))):
        rows = data.draw(st.integers(2, 4))
        psum = data.draw(st.booleans())
        tiles = [m.psum((SIZE, 512)) if psum else m.sbuf((SIZE, SIZE)) for _ in range(rows)]
        parts = [m.view(tile, slice(None), slice(0, SIZE)) for tile in tiles]
        for part in parts:
            kind = data.draw(st.sampled_from(["copy", "product", "memset"] if psum else ["copy", "load", "memset"]))
            if kind == "copy":
                m.copy(part, base)
            elif kind == "load":
                m.dma(part, x)
            elif kind == "memset":
                m.memset(part, float(data.draw(st.integers(0, 3))))
            else:
                m.matmul(part, base, base)
            if data.draw(st.booleans()):  # what is behind it has to stay there
                one, other = data.draw(st.sampled_from(parts[: parts.index(part) + 1])), part
                if data.draw(st.booleans()):
                    m.add(one, one, other)
                else:
                    m.add(base, base, other)
        for row in data.draw(st.permutations(range(rows))):
            out = m.sbuf((SIZE, SIZE))
            if data.draw(st.booleans()):
                m.copy(out, parts[row], data.draw(st.sampled_from(["DVE", "Activation"])))
            else:  # a read that moves takes along what made the other summand
                m.add(out, parts[row], extra)
                m.add(extra, extra, extra)
            at = (4 * turn + row) * SIZE
            m.dma(m.view(y, slice(at, at + SIZE)), out)
    return m


def test_a_fill_whose_sinking_leaves_no_way_out_stays() -> None:
    """Sunk to the first read, the fill finds both banks taken by tiles whose reads come behind that one."""
    m = Maker()
    x, y = m.input("x", (SIZE, SIZE)), m.output("y", (3 * SIZE, SIZE))
    base, extra = m.sbuf((SIZE, SIZE)), m.sbuf((SIZE, SIZE))
    m.dma(base, x)
    m.memset(extra, 1.0)
    parts = [m.view(m.psum((SIZE, 512)), slice(None), slice(0, SIZE)) for _ in range(3)]
    m.copy(parts[0], base)
    m.memset(parts[1], 0.0)
    m.copy(parts[2], base)
    for row in (1, 0, 2):
        out = m.sbuf((SIZE, SIZE))
        m.add(out, parts[row], extra)
        m.add(extra, extra, extra)
        m.dma(m.view(y, slice(row * SIZE, (row + 1) * SIZE)), out)
    with patch("neurontools.builder.built.chip_of", lambda _: SMALL):
        built = build([m.trace], "stays").to_bytes()
    data = np.arange(SIZE * SIZE, dtype=np.float32).reshape(SIZE, SIZE)
    result = runtime.run(built, {"x": data})
    np.testing.assert_array_equal(result.outputs["y"], interpret(m.trace, {"x": data})["y"])


def test_random_programs_keep_their_results() -> None:
    """On a core of seven tiles and two banks: conflicting operations keep their order, and so the words' results."""
    seen: Counter[str] = Counter()

    @settings(max_examples=150)
    @given(st.data(), st.integers(0, 3))
    def one(data: st.DataObject, seed: int) -> None:
        m = crowded(data)
        lives = lives_of(m.trace)
        try:
            allocate(lives, SMALL)
            seen["fits"] += 1
            return
        except AllocationError:
            moved = hoist_last_uses(m.trace, lives, SMALL)
        seen["moved" if moved else "full"] += 1
        for order in ordered_by_bytes(m.trace, lives, SMALL):
            seen["counted"] += 1
            assert Counter(map(id, order.ops)) == Counter(map(id, m.trace.ops))
            assert conflicts(order) == conflicts(m.trace)
        if moved is None:
            return
        other, places = moved
        assert Counter(map(id, other.ops)) == Counter(map(id, m.trace.ops))
        assert conflicts(other) == conflicts(m.trace)
        with patch("tests.builder.test_allocate.CHIP", SMALL):
            check(lives_of(other), places)
        x = np.random.default_rng(seed).integers(-2, 3, (SIZE, SIZE)).astype(np.float32)
        with patch("neurontools.builder.built.chip_of", lambda _: SMALL):
            built = build([m.trace], "random").to_bytes()
        assert unordered(open_neff(built)) == []
        result = runtime.run(built, {"x": x}, seed=seed)
        np.testing.assert_array_equal(result.outputs["y"], interpret(m.trace, {"x": x})["y"])

    one()
    # It is worth something only where programs had to be rearranged.
    assert seen["moved"] >= 30 and seen["fits"] >= 10 and seen["counted"] >= 30, seen
