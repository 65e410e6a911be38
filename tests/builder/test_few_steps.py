"""What the builder does in few steps, against the plain way of doing it."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from formats.dtypes import Dtype
from formats.engines import ENGINES
from formats.isa import ActivationFunction, Nop, PseudoDmaDirect2d, Unknown, lookup
from formats.neuron_core import WORD
from formats.targets import resolve_target
from neurontools.builder import build, indirect
from neurontools.builder.built import _ours
from neurontools.builder.chip import CHIPS, PROGRESS
from neurontools.builder.emitted import Emitted
from neurontools.builder.encode import Place as TilePlace
from neurontools.builder.hazards import Needs
from neurontools.builder.indirect import indirect_words
from neurontools.builder.streams import Origin, Stream, Streams
from neurontools.builder.templates import Spot, template_of
from neurontools.builder.trace import Allocation, BarrierOp, DmaOp, IndirectDmaOp, Place, Space, Trace, View
from neurontools.builder.transfers import Side, TransferEncoder, direct_word
from neurontools.builder.vector_clocks import VectorClocks
from tests.builder.maker import Maker
from tests.counting import counted

WORDS = json.loads((Path(__file__).resolve().parents[1] / "formats/isa/words.json").read_text())["words"]
RAW = [bytes.fromhex(one["hex"]) for one in WORDS]


@given(st.lists(st.sampled_from(RAW), max_size=6), st.integers(0, 5), st.integers(0, WORD - 1), st.integers(0, 255))
def test_words_of_ours_are_found_among_others(words: list[bytes], number: int, offset: int, code: int) -> None:
    if number < len(words) and offset:
        changed = bytearray(words[number])
        changed[offset] = code
        words[number] = bytes(changed)
    # what a reader of AWS's files finds no meaning in, opcodes that nobody knows among it
    assert _ours(bytearray(b"".join(words))) == any(lookup(word, extended=False) is Unknown for word in words)


def test_every_code_of_ours_is_found() -> None:
    """In each byte of each word, with no other word beside it."""
    for word in {raw[0]: raw for raw in RAW if len(raw) == WORD}.values():
        for offset in range(1, WORD):
            for code in (0x40, 0x80, int(ActivationFunction.RELU), 0xC0, 0xFF):
                changed = word[:offset] + bytes((code,)) + word[offset + 1 :]
                assert _ours(bytearray(changed)) == (lookup(changed, extended=False) is Unknown)


@given(st.lists(st.tuples(st.integers(0, 4), st.lists(st.integers(0, 5), max_size=4),
                          st.lists(st.sampled_from(["", "longer", "waits", "elsewhere"]), min_size=1, max_size=3),
                          st.integers(-1, 2), st.sampled_from([None, "op"])), max_size=20))  # fmt: skip
def test_words_and_the_operations_they_come_from(
    program: list[tuple[int, list[int], list[str], int, str | None]],
) -> None:
    """`program` has, per operation, an engine, the tiles it touches, its words, its visit and its name."""
    width = 2 * len(ENGINES)
    trace, touched = Trace(resolve_target("trn2")), list[int]()
    trace.ops = [BarrierOp(Place("k.py", number, visit), name=name) for number, (*_, visit, name) in enumerate(program)]
    emitted, streams = Emitted(trace, 6, touched), [Stream(engine, Nop().raw) for engine in range(len(ENGINES))]
    origins: list[list[Origin | None]] = [[None] for _ in ENGINES]
    visits: list[list[int]] = [[] for _ in ENGINES]
    pcs, counts = [-1] * (6 * width), [1] * len(ENGINES)
    for number, (engine, tiles, words, visit, name) in enumerate(program):
        begin, stream, own = len(touched), streams[engine], name or f"I-{number}"
        touched += [tile * width for tile in tiles]
        if visits[engine][-1:] != [visit]:
            visits[engine] += (counts[engine], visit)
        for tile in tiles:
            at = tile * width + 2 * engine
            pcs[at] = counts[engine] if pcs[at] < 0 else pcs[at]
            pcs[at + 1] = counts[engine] + len(words) - 1
        counts[engine] += len(words)
        for kind in words:
            known: dict[str, Origin | str] = {"waits": "-wait-0", "elsewhere": ("other", "f.py", 7)}
            stream.append(bytes(2 * WORD if kind == "longer" else WORD), known.get(kind))
            origin = {"waits": (f"{own}-wait-0", "k.py", number), "elsewhere": ("other", "f.py", 7)}.get(kind)
            origins[engine] += [origin or (own, "k.py", number)] * (2 if kind == "longer" else 1)
        assert stream.count == counts[engine]
        emitted.notes += (number, engine, stream.seen, len(stream.raw), begin, len(touched))
        stream.seen = len(stream.raw)
    for stream, found in zip(streams, origins, strict=True):
        stream.append(Nop().raw, ("end", "", 0))
        found.append(("end", "", 0))
    emitted.close(streams)
    assert [emitted.origins(engine) for engine in range(len(ENGINES))] == origins
    assert emitted.visits() == {
        name: [*pairs, counts[engine], -1] for engine, (name, pairs) in enumerate(zip(ENGINES, visits, strict=True))
        if pairs
    }  # fmt: skip
    assert emitted.pcs().tolist() == pcs


steps = st.lists(st.tuples(st.booleans(), st.integers(0, 4), st.integers(0, 6), st.integers(0, 30)), max_size=60)


@settings(max_examples=300)
@given(steps)
def test_an_engine_that_waits_knows_what_the_other_knew(program: list[tuple[bool, int, int, int]]) -> None:
    clocks = VectorClocks()
    queues = [clocks.actor(), clocks.actor()]
    actors = len(ENGINES) + len(queues)
    known = [[-1] * actors for _ in ENGINES]
    units: list[list[list[int]]] = [[] for _ in range(actors)]
    for waits, engine, actor, unit in program:
        if not waits:
            mine = actor if actor in queues else engine
            units[mine].append(list(known[engine]))
            clocks.unit(engine, mine)
        elif units[actor]:
            unit %= len(units[actor])
            known[engine] = [max(pair) for pair in zip(known[engine], units[actor][unit], strict=True)]
            known[engine][actor] = max(known[engine][actor], unit)
            clocks.wait(engine, actor, unit)
        assert clocks.known == known


events = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 20)), max_size=40)


@given(events)
def test_waits_and_signals_are_written(program: list[tuple[int, int, int]]) -> None:
    """A word waits for a unit of another engine by the number of units up to it that anybody waits for."""
    streams = Streams(CHIPS["gen3"])
    names, units = list(ENGINES), [0] * len(ENGINES)
    waits: list[tuple[int, int, int, int]] = []  # engine, place, whom it waits for, which unit of that
    ends: list[list[int]] = [[] for _ in ENGINES]
    for engine, other, unit in program:
        needs: Needs = {}
        if other != engine and units[other]:
            needs[other] = unit % units[other]
        stream = streams.of[names[engine]]
        told = streams.clocks.known[engine][other]
        place = streams.add(stream, Nop().raw, needs)
        if needs and told < needs[other]:
            waits.append((engine, place, other, needs[other]))
        streams.complete(stream)
        ends[engine].append(place)
        units[engine] += 1
    streams.seal()
    awaited = {(other, unit) for _, _, other, unit in waits}
    for engine, places in enumerate(ends):
        raw, count = bytes(streams.of[names[engine]].raw), 0
        for unit, place in enumerate(places):
            word = Nop.from_raw(raw[place : place + WORD])
            count += (engine, unit) in awaited
            signal = (PROGRESS[names[engine]], 1) if (engine, unit) in awaited else (0, 0)
            assert (word.update_index, int(word.update_mode != 0)) == signal
            mine = [(other, its) for one, at, other, its in waits if (one, at) == (engine, place)]
            value = [sum((other, before) in awaited for before in range(its + 1)) for other, its in mine]
            assert [word.wait_value] == (value or [0])
            assert word.wait_index == (PROGRESS[names[mine[0][0]]] if mine else 0)


spots = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 3), st.integers(0, 1 << 16)), max_size=5)


@given(st.sampled_from(RAW), spots, st.lists(st.integers(0, 1 << 30), min_size=4, max_size=4))
def test_addresses_are_put_into_a_word(word: bytes, places: list[Spot], addresses: list[int]) -> None:
    """In one step, for any number of them and wherever they stand, as one after the other."""
    wanted = bytearray(word)
    for offset, operand, delta in places:
        wanted[offset : offset + 4] = (addresses[operand] + delta).to_bytes(4, "little")
    raw, kept, make = template_of(word, places)
    assert (raw, kept, make(addresses)) == (word, tuple(places), wanted)


@given(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 255))
def test_a_direct_word_says_where_it_goes(columns: int, start: int, end: int, semaphore: int) -> None:
    tensor, tile = (
        Allocation(number, space, "a", Dtype.FLOAT32, (8, 16))
        for number, space in enumerate((Space.HBM, Space.SBUF))
    )  # fmt: skip
    op = DmaOp(View(tile, Dtype.FLOAT32, 0, 8, 0, ((1, columns),)),
               View(tensor, Dtype.FLOAT32, 0, 1, 0, ((16, 8), (1, columns))), None, False, ("k.py", 1))  # fmt: skip
    (direct,) = TransferEncoder(True).encode(op).direct or ()
    found = direct_word(direct, Side(start, 7, "x"), Side(end, 9, "SB"), semaphore)
    wanted = bytearray(direct.raw)
    fields = PseudoDmaDirect2d.FIELDS
    for name, value, size in (("src", start | 7 << 32, 8), ("dst", end | 9 << 32, 8), ("semaphore", semaphore, 1)):
        wanted[fields[name].offset : fields[name].offset + size] = value.to_bytes(size, "little")
    assert found == wanted


def _copy(scatter: bool, rows: int, offset: int, row: int) -> tuple[IndirectDmaOp, Side, Side, TilePlace]:
    tensor = Allocation(0, Space.HBM, "x", Dtype.FLOAT32, (64, 16), "input")
    tile = Allocation(1, Space.SBUF, "t", Dtype.FLOAT32, (8, 16))
    numbers = Allocation(2, Space.SBUF, "i", Dtype.INT32, (8, 1))
    far = View(tensor, Dtype.FLOAT32, 0, 1, offset, ((16, rows), (1, 16)))
    near = View(tile, Dtype.FLOAT32, 0, rows, 4 * row, ((1, 16),))
    index = View(numbers, Dtype.INT32, 0, rows, 0, ((1, 1),))
    op = IndirectDmaOp(far if scatter else near, near if scatter else far, index, 64, rows, "Pool", ("k.py", 3),
                       scatter=scatter)  # fmt: skip
    sides = Side(4096 * row + offset, 7, "x"), Side(8192 * row, 9, "SB")
    return op, *(sides[::-1] if scatter else sides), TilePlace(256 * row, 1 << 18)


@given(
    st.booleans(), st.integers(1, 8), st.lists(st.tuples(st.integers(0, 64), st.integers(0, 9)), min_size=2, max_size=3)
)
def test_indirect_copies_of_one_shape(scatter: bool, rows: int, places: list[tuple[int, int]]) -> None:
    """They share their words, each with its own addresses: as if no other had come before."""
    indirect._encoded.clear()
    shared = [indirect_words(*_copy(scatter, rows, *place)) for place in places]
    assert len(indirect._encoded) == 1
    for place, words in zip(places, shared, strict=True):
        indirect._encoded.clear()
        assert indirect_words(*_copy(scatter, rows, *place)) == words


def test_a_small_program_costs_little() -> None:
    """A load, four words and a store: what is made once a file is most of it."""
    m = Maker()
    given_, result = m.input("x", (128, 64)), m.output("y", (128, 64))
    tiles = [m.sbuf((128, 64)) for _ in range(5)]
    m.dma(tiles[0], given_)
    for one, other in pairwise(tiles):
        m.add(other, one, one)
    m.dma(result, tiles[-1])
    build([m.trace], "small")  # shapes of words are worked out once a process
    calls, _ = counted(lambda: build([m.trace], "small"), builtins=True)
    assert calls < 1000
