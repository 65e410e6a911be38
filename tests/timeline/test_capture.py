"""Captures of emulated runs: what the writer writes, the reader gives back; beside the emulator nothing is off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.device import Device
from emulator.timeline.capture import Capture
from formats.engines import ENGINES
from formats.neff import Neff, open_neff
from formats.ntff import DmaPacket, Ntff, SignalChange, open_ntff
from formats.ntff.metadata import DmaRing
from formats.ntff.pcmap import DELETED, Edit
from formats.ntff.writer import (
    CoreContents,
    Origin,
    begin_record,
    end_record,
    packet_records,
    signal_record,
    write_ntff,
)
from neurontools.ntff.compared import compare_capture
from tests.runtime.support import X, copying, hanging, out_of_bounds

ORIGIN = Origin("a.neff", bytes(range(16)), "trn2.48xlarge", "i-0", (2, 0, 0), "test")
BASE = 0x8005C0400000


def _captured(neff: Neff, inputs: dict[str, Any], first: int = 0) -> tuple[Ntff, Device]:
    device = Device(neff.target, len(neff.subgraphs))
    device.load(neff)
    device.set_inputs(inputs)
    capture = Capture()
    device.observers.append(capture)
    capture.attach(device)
    device.run()
    contents = capture.cores(first, lambda core, engine: BASE + (core * 5 + ENGINES.index(engine)) * 0x10000, {0: {}})
    return open_ntff(write_ntff(ORIGIN, contents)), device


FILES = sorted(Path(__file__).parents[2].joinpath("fixtures", "neff").glob("*.neff"))


def _programs() -> Iterator[tuple[str, bytes, dict[str, Any]]]:
    yield "copy", copying(), {"x": X}
    for path in FILES:
        neff = open_neff(path)
        yield path.name, path.read_bytes(), {one.name: np.zeros(one.shape, one.dtype) for one in neff.inputs}


@pytest.mark.parametrize(("name", "data", "inputs"), list(_programs()), ids=lambda one: one if type(one) is str else "")
def test_a_capture_beside_the_emulator_is_the_same_to_the_picosecond(
    name: str, data: bytes, inputs: dict[str, Any]
) -> None:
    neff = open_neff(data)
    ntff, _ = _captured(neff, inputs)
    found, rows = compare_capture(ntff, None, neff, "zeros")
    assert found.words + found.waits == sum(len(ntff.executed(core.core)) for core in ntff.cores)
    assert found.words and not found.captured_only and not found.emulated_only
    assert all(one.captured_ps == one.emulated_ps and one.captured_start_ps == one.emulated_start_ps for one in rows)


def test_packets_have_the_bytes_of_their_transfers_and_signals_those_that_were_made() -> None:
    ntff, device = _captured(open_neff(copying()), {"x": X}, first=5)
    packets = ntff.packets(5)
    # 128 rows of 256 bytes, there and back, and four bytes of signal on each of 16 rings.
    assert sum(one.nbytes for one in packets) == 2 * (128 * 256 + 16 * 4)
    assert {one.engine for one in packets} == set(range(80, 96))
    assert {ntff.queue_name(5, one.engine, one.ring) for one in packets} == {"qSPDynamicHW"}
    assert all(one.end_ps is not None and one.start_ps <= one.end_ps <= device.now_ps for one in packets)
    changes = ntff.signals(5)
    assert [(one.kind, one.number, one.cause) for one in changes] == [("semaphore", 8, "dma"), ("semaphore", 9, "dma")]
    assert [one.time_ps for one in changes] == sorted(one.time_ps for one in changes)


@pytest.mark.parametrize("data", [hanging(), out_of_bounds()])
def test_a_run_that_stops_leaves_what_it_did(data: bytes) -> None:
    neff = open_neff(data)
    ntff, device = _captured(neff, {one.name: X for one in neff.inputs})
    assert device.outcome != "finished"
    executed = ntff.executed(0)
    assert sum(one.end_ps is not None for one in executed) == sum(
        engine.completed for engine in device.cores[0].engines.values()
    )


TIMES = st.integers(0, 1 << 62)


@given(st.data())
def test_what_is_written_is_read(data: st.DataObject) -> None:
    engine = data.draw(st.sampled_from(ENGINES))
    count = data.draw(st.integers(1, 6))
    address = data.draw(st.integers(0, 1 << 40)) * 64
    places = data.draw(st.dictionaries(st.integers(0, count), st.integers(1, 9), max_size=3))
    edits = tuple(Edit(at * 64, words, DELETED) for at, words in sorted(places.items()))
    begins = sorted(data.draw(st.lists(st.tuples(TIMES, st.integers(0, 50_000_000)), min_size=count, max_size=count)))
    trace = b"".join(
        begin_record(engine, address + pc * 64, at, waited) + end_record(engine, address + pc * 64, at + 1000)
        for pc, (at, waited) in enumerate(begins)
    )
    moved = data.draw(st.lists(st.tuples(st.integers(0, 63), st.integers(0, 15), st.integers(1, 1 << 16), TIMES),
                               max_size=5))  # fmt: skip
    instance = data.draw(st.integers(0, 1))
    kinds, causes = st.sampled_from(("semaphore", "event")), st.sampled_from((None, *ENGINES))
    done = st.sampled_from(("set", "increment", "decrement", "add", "clear", "write"))
    values = st.integers(-(1 << 31), (1 << 31) - 1)
    changes = st.tuples(kinds, st.integers(0, 255), done, values, causes, TIMES)
    signals = data.draw(st.lists(changes, max_size=5))
    core = data.draw(st.integers(0, 7))
    records = {
        ("trace", 0): trace,
        ("notify", 0): b"".join(signal_record(*one) for one in signals),
        ("trace_dma", instance): b"".join(packet_records(e, r, n, at, at + 9) for e, r, n, at in moved),
    }
    streams, memory = {engine: (address, bytes(64 * count))}, {"pe": 64, "io": 0}
    contents = CoreContents("sg00", core, streams, {engine: edits}, [DmaRing(3, 4, "q")], memory, records)
    ntff = open_ntff(write_ntff(ORIGIN, [contents]))
    assert (ntff.version, ntff.name, ntff.uuid, ntff.metadata.runtime) == (
        6,
        "a.neff",
        ORIGIN.uuid.hex(),
        "2.0.0 (test)",
    )
    assert (ntff.metadata.instance_type, ntff.metadata.instance_id) == ("trn2.48xlarge", "i-0")
    (capture,) = ntff.cores
    assert capture.core == core and capture.clocks.one and capture.rings == (DmaRing(3, 4, "q"),)
    assert [(one.category, one.nbytes) for one in capture.memory] == [("pe", 64), ("io", 0)]
    assert ntff.buffer(core, engine).map.edits == edits
    ran = ntff.executed(core)
    assert [(one.engine, one.pc, one.start_ps, one.end_ps) for one in ran] == [
        (engine, pc, at, at + 1000) for pc, (at, _) in enumerate(begins)
    ]
    # Sixteen bits of cycles of 1.2 GHz.
    for one, (_, waited) in zip(ran, begins, strict=True):
        assert 0 <= waited - one.waited_ps < 834
    assert [(one.kind, one.number, one.operation, one.value, one.cause, one.time_ps) for one in ntff.signals(core)] == [
        (kind, number, operation, value, cause or "dma", at) for kind, number, operation, value, cause, at in signals
    ]
    assert sorted(ntff.packets(core)) == sorted(
        DmaPacket(core, e + 64 * instance, r, n, at, at + 9, 0) for e, r, n, at in moved
    )


def test_a_signal_of_another_engine_is_none_of_dma() -> None:
    raw = signal_record("event", 3, "set", 1, "PE", 7)
    contents = CoreContents("sg00", 0, {}, {}, [], {}, {("notify", 0): raw})
    assert open_ntff(write_ntff(ORIGIN, [contents])).signals(0) == (SignalChange(0, "event", 3, "set", 1, "PE", 7),)
