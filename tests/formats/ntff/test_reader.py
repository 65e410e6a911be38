"""A capture made here is read back: metadata, streams, maps, records."""

from __future__ import annotations

from pathlib import Path

import pytest

import neurontools
from formats import isa
from formats.errors import FormatError, NotFoundError, UnsupportedError
from formats.ntff import LAYOUT, Edit, PcMap, open_ntff
from tests.formats.ntff import made

NOP, END = isa.Nop().raw, isa.EventSemaphore().raw
PROGRAM = [isa.SetOrderingMode().raw, isa.MatMul().raw, isa.LoadWeights().raw]
# Three inserted words, the second word of the compiler left out, two inserted behind.
STREAM = NOP * 3 + PROGRAM[0] + PROGRAM[1] + PROGRAM[2] + END * 2
EDITS = [(0, 3, False), (4 * 64, 1, True), (6 * 64, 2, False)]
LOADED_TO_COMPILER = [None, None, None, 0, 2, 3, None, None]


def spec(**records: bytes) -> made.CoreSpec:
    return made.CoreSpec("sg00", 4, {"PE": STREAM, "SP": NOP}, {"PE": EDITS}, [(64, 0, "qPoolDynamic")],
                         {"pe": 512, "spill": 0}, records)  # fmt: skip


def test_metadata_and_buffers() -> None:
    ntff = neurontools.open_ntff(made.capture([spec()], "kernel.neff"))
    assert (ntff.version, ntff.name, ntff.uuid) == (6, "kernel.neff", bytes(range(16)).hex())
    meta = ntff.metadata
    assert (meta.runtime, meta.driver, meta.collectives) == ("2.30.51 (0123abcd)", "2.26.0", "")
    assert (meta.instance_type, meta.origin_ps, ntff.target.name) == ("trn2.48xlarge", made.ORIGIN, "trn2")
    assert ("3", 10001) in meta.unknown
    (core,) = ntff.cores
    assert [(one.category, one.nbytes) for one in core.memory] == [("pe", 512), ("spill", 0)]
    buffer = ntff.buffer(4, "PE")
    assert buffer.data == STREAM and buffer.address == made.address_of(4, "PE")
    assert [word.name for word in buffer.words] == [isa.decode(STREAM[i : i + 64]).name for i in range(0, 512, 64)]
    assert [buffer.compiler_pc(pc) for pc in range(8)] == LOADED_TO_COMPILER
    assert (buffer.map.inserted, buffer.map.deleted, buffer.map.loaded_words(4)) == (5, 1, 8)
    assert [one.engine for one in ntff.buffers(4)] == ["PE", "SP"]
    assert ntff.buffer(4, "SP").compiler_pc(0) == 0  # no edits: the words are the compiler's


def test_map_counts_from_positions_not_from_order() -> None:
    edits = (Edit(0, 1, "inserted"), Edit(128, 1, "deleted"), Edit(192, 1, "inserted"))
    assert [PcMap("PE", edits).compiler_pc(pc) for pc in range(6)] == [None, 0, 2, None, 3, 4]


def test_executions_pair_begins_with_ends() -> None:
    rows = [
        made.begin(4, "PE", 4, 1000, waited=1200), made.begin(4, "PE", 5, 2000), made.end(4, "PE", 4, 5000),
        made.begin(4, "PE", 4, 6000), made.end(4, "PE", 5, 7000), made.begin(4, "PE", 77, 8000),
        made.begin(4, "DVE", 0, 9000), made.end(4, "SP", 0, 9500),
    ]  # fmt: skip
    found = open_ntff(made.capture([spec(trace=b"".join(rows))])).executed(4)
    # Words outside the buffer, engines without one, and ends without a begin are of nothing that is known.
    assert [(one.pc, one.start_ps, one.end_ps) for one in found] == [(4, 1000, 5000), (5, 2000, 7000), (4, 6000, None)]
    assert found[0].waited_ps == 1_000_000 and found[0].duration_ps == 4000 and found[2].duration_ps == 0


def test_a_taken_branch_is_the_same_word() -> None:
    taken = bytearray(made.begin(4, "PE", 4, 1000))
    taken[2] |= 0x20
    assert [one.pc for one in open_ntff(made.capture([spec(trace=bytes(taken))])).executed(4)] == [4]


def test_signals_packets_and_clock() -> None:
    notify = made.signal(24, 16, 6, 100) + made.signal(5, 3, 1, 200) + made.signal(7, 0, 3, 300, kind=0, operation=7)
    dma = made.packet(0, 0, 4096, 0xBEEF, 100, 400) + made.packet(1, 14, 0, 1, 200, 300)
    clock = made.record(bytes((0xCC, 0, 8, 0x9E, 4, 1, 0, 0)), 700)
    ntff = open_ntff(made.capture([spec(notify=notify, trace_dma=dma, throttle=clock)]))
    assert [(one.kind, one.number, one.operation, one.value, one.cause) for one in ntff.signals(4)] == [
        ("semaphore", 24, "increment", 16, "dma"), ("semaphore", 5, "increment", 3, "PE"),
        ("event", 7, "clear", 0, "Pool")]  # fmt: skip
    first, second = ntff.packets(4)
    assert (first.engine, first.ring, first.nbytes, first.checksum, first.start_ps, first.end_ps) == (
        64, 0, 4096, 0xBEEF, 100, 400)  # fmt: skip
    assert (second.engine, second.ring, second.nbytes) == (65, 14, 65536)  # 0 is 64 KiB
    assert ntff.queue_name(4, 64, 0) == "qPoolDynamic" and ntff.queue_name(4, 65, 14) == "instruction fetch"
    assert [(one.k, one.n, one.kind, one.time_ps) for one in ntff.clock_changes(4)] == [(4, 8, 1, 700)]


@pytest.mark.parametrize("version", [4, 5])
def test_earlier_versions_keep_words_and_sections_with_each_core(version: int) -> None:
    rows = made.begin(4, "PE", 4, 1000) + made.end(4, "PE", 4, 5000) + made.begin(4, "PE", 77, 6000)
    data = made.capture([spec(trace=rows, trace_dma=made.packet(0, 0, 64, 1, 10, 20))], version=version,
                        uuid=b"\7\6\0" + bytes(13))  # fmt: skip
    ntff = open_ntff(data)
    assert (ntff.version, ntff.uuid, ntff.metadata.origin_ps) == (version, "0706", 0)  # cut at its first zero byte
    assert ntff.buffer(4, "PE").data == STREAM and [one.kind for one in ntff.sections] == ["trace", "trace_dma"]
    assert [(one.pc, one.start_ps, one.end_ps) for one in ntff.executed(4)] == [(4, 1000, 5000)]
    assert ntff.outside(4) == 1
    assert [one.engine for one in ntff.packets(4)] == [0 if version == 4 else 64]


def test_version_4_numbers_the_categories_of_memory() -> None:
    core = made.CoreSpec("sg00", 0, memory={"": 64, " ": 32, "  ": 16, "   ": 8})
    (found,) = open_ntff(made.capture([core], version=4)).cores
    assert [(one.category, one.nbytes) for one in found.memory] == [("pe", 64), ("act", 32), ("pool", 16),
                                                                    ("category 4", 8)]  # fmt: skip


def test_records_of_each_clock_become_picoseconds() -> None:
    core = spec(trace=made.begin(4, "PE", 4, 1100) + made.begin(4, "SP", 0, 1000),
                notify=made.signal(1, 1, 1, 700), trace_dma=made.packet(1, 0, 64, 1, 10, 20))  # fmt: skip
    core.clocks = {1: [(100, 1, 1)], 5: [(200, 2, 1)], 6: [(500, 1, 1)], 8: [(0, 1, 1), (5, 1024, 1_204_672)]}
    ntff = open_ntff(made.capture([core]))
    assert [(one.engine, one.start_ps) for one in ntff.executed(4)] == [("SP", 400), ("PE", 1000)]
    assert [one.time_ps for one in ntff.signals(4)] == [200]
    assert [(one.start_ps, one.end_ps) for one in ntff.packets(4)] == [(5882, 17646)]  # 5 and 15 cycles of 0.85 GHz
    assert not ntff.cores[0].clocks.one


def test_a_clock_that_stands_is_damage() -> None:
    core = spec()
    core.clocks = {1: [(0, 1, 1)]}
    data = made.capture([core])
    assert data.count(b"\x0a\x04\x10\x01\x18\x01") == 1
    with pytest.raises(FormatError, match="a number above 0"):
        open_ntff(data.replace(b"\x0a\x04\x10\x01\x18\x01", b"\x0a\x04\x10\x00\x18\x01"))


def test_a_dma_engine_without_a_clock_is_refused() -> None:
    core = spec(trace_dma=made.packet(1, 0, 64, 1, 10, 20), throttle=made.record(bytes((0, 0, 8, 0, 4, 1, 0, 0)), 1))
    core.clocks = {8: [(5, 1, 1)]}
    ntff = open_ntff(made.capture([core]))
    with pytest.raises(UnsupportedError, match="no clock of DMA engine 1; there are 1"):
        ntff.packets(4)
    with pytest.raises(UnsupportedError, match="not established"):
        ntff.clock_changes(4)


def test_records_of_no_known_meaning_are_refused() -> None:
    engine = bytearray(made.begin(4, "PE", 4, 1000))
    engine[3] = 0x80 | 7 << 2
    with pytest.raises(UnsupportedError, match="trace record names engine 7"):
        open_ntff(made.capture([spec(trace=bytes(engine))])).executed(4)
    step = bytearray(made.packet(0, 0, 64, 1, 10, 20))
    step[4] = 0x07
    with pytest.raises(UnsupportedError, match="has the step 7"):
        open_ntff(made.capture([spec(trace_dma=bytes(step))])).packets(4)


def test_instance_types_name_chips() -> None:
    names = {"trn1.32xlarge": "trn1", "inf2.xlarge": "inf2", "trn2.3xlarge": "trn2", "trn2u.48xlarge": "trn2"}
    for instance, chip in (*names.items(), ("", "trn2")):
        assert open_ntff(made.capture([spec()], instance=instance)).target.name == chip


def test_every_field_says_how_it_is_known() -> None:
    assert {one.provenance for one in LAYOUT} <= {"documented", "observed", "inferred", "ours"}
    assert all(one.cite and one.meaning for one in LAYOUT)
    assert {one.section for one in LAYOUT} == {"all", "trace", "notify", "trace_dma", "throttle"}


def test_what_is_not_there() -> None:
    ntff = open_ntff(made.capture([spec()]))
    with pytest.raises(NotFoundError, match="no core 7; there are 4"):
        ntff.buffer(7, "PE")
    with pytest.raises(NotFoundError, match="no instruction buffer of 'DVE'; there are PE, SP"):
        ntff.buffer(4, "DVE")


def test_the_fixture_is_an_emulated_run(root: Path) -> None:
    ntff = open_ntff(root / "fixtures" / "ntff" / "double.ntff")
    words = ntff.buffer(0, "DVE").words
    assert [words[one.pc].name for one in ntff.executed(0) if one.engine == "DVE"] == [
        "SET_ORDERING_MODE", "EVENT_SEMAPHORE", "TENSOR_TENSOR"]  # fmt: skip
    assert sum(one.nbytes for one in ntff.packets(0)) == 2 * 128 * 64 * 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data[:100], "too short"),
        (lambda data: b"\7" + data[1:], "expected 4 or 5 or 6, found 7"),
        (lambda data: data[:200], "metadata is cut off"),
        (lambda data: data[:1] + b"\xff" * 7 + data[8:], "metadata is cut off"),
        (lambda data: data[:128] + b"\xff" * 40 + data[168:], "capture metadata is damaged"),
    ],
)
def test_damage_is_told(change: object, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        open_ntff(change(made.capture([spec()])))  # type: ignore[operator]


def test_a_cut_data_area_is_told_where_it_matters() -> None:
    data = made.capture([spec()])
    ntff = open_ntff(data[:-64])
    assert ntff.buffer(4, "PE").data == STREAM
    with pytest.raises(FormatError, match="instruction buffer of SP is cut off"):
        ntff.buffer(4, "SP")


def test_edits_of_an_unknown_kind_are_refused() -> None:
    data = made.capture([made.CoreSpec("s", 0, {"PE": NOP}, {"PE": [(0, 1, True)]})])
    assert data.count(b"\x18\x02") == 1
    with pytest.raises(FormatError, match=r"0 \(inserted\) or 2 \(deleted\), found 3"):
        open_ntff(data.replace(b"\x18\x02", b"\x18\x03"))
