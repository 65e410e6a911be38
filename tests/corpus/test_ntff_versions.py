"""Every public capture against the NEFF it is of: words, records, transfers, and the runtime's memory records."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from formats.isa import DmaDirect2d, Write
from formats.neff import Neff, open_neff
from formats.neff.memory import device_memory
from formats.ntff import Ntff, open_ntff
from neurontools.neff.captured_memory import captured_memory, runtime_version
from tests.corpus import files

PAIRS = [(capture, neff) for capture, neff, _ in files.CAPTURES] + [
    (capture, capture.removesuffix(".ntff") + ".neff") for capture in files.EARLIER_CAPTURES
]
# The rings of these have more or fewer descriptors than the rule says: within this share.
RING_SHARE = {"DMA Rings IO": 0.01, "DMA Rings Spill": 0.13}


class Pair(NamedTuple):
    ntff: Ntff
    neff: Neff


@pytest.fixture(scope="module", params=PAIRS, ids=lambda names: names[0].split("/", 1)[-1])
def pair(request: pytest.FixtureRequest, corpus: Path) -> Pair:
    capture, neff = (files.find(corpus, name) for name in request.param)
    return Pair(open_ntff(capture), open_neff(neff))


def test_there_are_35() -> None:
    assert len(set(PAIRS)) == 35


def test_every_word_of_the_compiler_was_loaded_and_ran(pair: Pair) -> None:
    """Words are the compiler's byte for byte, but those that start a transfer."""
    assert pair.neff.header.uuid.hex().startswith(pair.ntff.uuid)
    for core, subgraph in zip(pair.ntff.cores, pair.neff.subgraphs, strict=True):
        ran = {(one.engine, one.pc) for one in pair.ntff.executed(core.core)}
        for buffer in pair.ntff.buffers(core.core):
            stream = subgraph.streams[buffer.engine]
            assert len(buffer.words) == buffer.map.loaded_words(len(stream))
            found = {pc: to for pc in range(len(buffer.words)) if (to := buffer.compiler_pc(pc)) is not None}
            assert sorted(found.values()) == [pc for pc in range(len(stream)) if stream[pc].name != "OPCODE_CC"]
            for pc, to in found.items():
                assert (buffer.engine, pc) in ran
                assert buffer.words[pc].raw == stream[to].raw or isinstance(buffer.words[pc], (Write, DmaDirect2d))


def test_every_record_is_decoded(pair: Pair) -> None:
    """What lies outside of buffers is the same in every capture of a version; one word of the runtime has no end."""
    for core in pair.ntff.cores:
        ran = pair.ntff.executed(core.core)
        records = sum(one.nbytes // 16 for one in pair.ntff.sections if (one.kind, one.core) == ("trace", core.core))
        outside = pair.ntff.outside(core.core)
        assert outside == (156 if pair.ntff.version == 5 else 0)
        assert records == outside + 2 * len(ran) - 1
        assert [one.engine for one in ran if one.end_ps is None] == ["PE"]
        packets = pair.ntff.packets(core.core)
        assert packets and all(one.end_ps is not None and one.end_ps >= one.start_ps for one in packets)
        assert all("ring " not in pair.ntff.queue_name(core.core, one.engine, one.ring) for one in packets)
        pair.ntff.signals(core.core)
        pair.ntff.clock_changes(core.core)


def test_signals_follow_what_they_signal(pair: Pair) -> None:
    """The clocks of one core agree: the last packet of DMA ends shortly before the last signal of DMA."""
    for core in pair.ntff.cores:
        own = [one for one in pair.ntff.packets(core.core)
               if pair.ntff.queue_name(core.core, one.engine, one.ring).startswith("q")]  # fmt: skip
        ends = [one.end_ps for one in own if one.end_ps is not None]
        signals = [one.time_ps for one in pair.ntff.signals(core.core) if one.cause == "dma"]
        if core.core in (0, 4) and ends:
            assert -5_000 < max(signals) - max(ends) < 2_000_000


def test_every_word_and_transfer_is_beside_the_emulators(pair: Pair) -> None:
    from emulator.timeline.measure import measure
    from neurontools.ntff.residuals import matched

    found = matched(pair.ntff, None, pair.neff, measure(pair.neff, {}, data=False))
    assert (found.captured_only, found.emulated_only) == (0, 0)
    assert found.rows and all(one.captured_ps >= 0 and one.emulated_ps >= 0 for one in found.rows)


def test_no_category_is_documented_that_a_capture_contradicts(pair: Pair) -> None:
    """The ledger is the capture's to a thousandth; rings are as near as the rule says."""
    captured = captured_memory(pair.ntff)
    for one in device_memory(pair.neff, runtime_version(pair.ntff)):
        real = captured.pop(one.name, 0)
        if one.provenance == "documented":
            assert one.bytes == real, one.name
        assert abs(one.bytes - real) <= RING_SHARE.get(one.name, 0.001) * real, one.name
    assert set(captured) <= {"Profiler Buffers"}
