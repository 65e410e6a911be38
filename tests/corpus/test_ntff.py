"""Public captures against the profiles that AWS's profiler printed of them, and against the NEFFs they are of."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from formats.isa import DmaDirect2d, EventSemaphore
from formats.neff import Neff, open_neff
from formats.ntff import Ntff, open_ntff
from tests.corpus import files

LABELS = {"Tensor": "PE", "TensorMatrix": "PE", "Scalar": "Activation", "GpSimd": "Pool", "Vector": "DVE",
          "Sync": "SP"}  # fmt: skip


class Pair(NamedTuple):
    ntff: Ntff
    neff: Neff
    profile: dict[str, list[dict[str, Any]]]

    def since(self, time_ps: int) -> int:
        """Return a time as the profile has it: whole nanoseconds from its own zero, rounded down."""
        return (time_ps - self.ntff.metadata.origin_ps) // 1000

    @property
    def window(self) -> dict[str, tuple[int, int]]:
        """Return the times of the first and the last instruction that the profile has, by subgraph."""
        found: dict[str, list[int]] = defaultdict(list)
        for row in self.profile["instruction"]:
            found[row["subgraph"]].append(row["timestamp"])
        return {name: (min(times), max(times)) for name, times in found.items()}

    @property
    def cores(self) -> dict[str, int]:
        return {each.name: each.core for each in self.ntff.cores}


@pytest.fixture(scope="module", params=files.CAPTURES, ids=lambda names: names[0].split("/")[-2])
def pair(request: pytest.FixtureRequest, corpus: Path) -> Pair:
    capture, neff, profile = (files.find(corpus, name) for name in request.param)
    return Pair(open_ntff(capture), open_neff(neff), json.loads(profile.read_text()))


def test_metadata_is_the_profiles(pair: Pair) -> None:
    header, summary = pair.profile["neff_header"][0], pair.profile["summary"][0]
    assert pair.ntff.uuid == header["uuid"] == pair.neff.header.uuid.hex()
    assert pair.ntff.name == header["network_name"]
    assert pair.ntff.version == pair.profile["metadata"][0]["ntff_version"]
    assert pair.ntff.metadata.instance_type == summary["instance_type"]
    for mine, name in (("runtime", "runtime_version"), ("driver", "driver_version"),
                       ("collectives", "collectives_version")):  # fmt: skip
        assert getattr(pair.ntff.metadata, mine).split()[0] == summary[name].split()[0]


def test_memory_is_the_profiles(pair: Pair) -> None:
    theirs = defaultdict(list)
    for row in pair.profile["nc_mem_usage"]:
        if row["usage_type"] != "Total":
            theirs[row["nc"]].append(row["amount_bytes"])
    for core in pair.ntff.cores:
        assert sorted(one.nbytes for one in core.memory) == sorted(theirs[core.core])


def test_streams_are_the_compilers_with_insertions(pair: Pair) -> None:
    mapped = 0
    for core, subgraph in zip(pair.ntff.cores, pair.neff.subgraphs, strict=True):
        assert core.name == subgraph.name
        for buffer in pair.ntff.buffers(core.core):
            stream = subgraph.streams[buffer.engine]
            assert len(buffer.data) // 64 == buffer.map.loaded_words(len(stream))
            for pc, word in enumerate(buffer.words):
                compiler_pc = buffer.compiler_pc(pc)
                if compiler_pc is None:
                    continue
                mapped += 1
                theirs = stream[compiler_pc]
                if isinstance(word, DmaDirect2d):
                    # The runtime translates addresses; waits, signals and patterns stay.
                    assert word.raw[1:16] == theirs.raw[1:16] and word.raw[24:40] == theirs.raw[24:40]
                else:
                    assert word.raw == theirs.raw
    assert mapped == sum(len(s.streams[e]) - 1 for s in pair.neff.subgraphs for e in s.streams)


def test_executions_are_the_profiles(pair: Pair) -> None:
    mine = {
        (name, each.engine, each.pc, pair.since(each.start_ps)): each
        for name, core in pair.cores.items() for each in pair.ntff.executed(core)
    }  # fmt: skip
    assert pair.profile["instruction"]
    for row in pair.profile["instruction"]:
        engine = LABELS[row["label"]]
        found = mine[row["subgraph"], engine, row["pc"], row["timestamp"]]
        assert found.end_ps is not None and abs(found.duration_ps / 1000 - row["duration"]) < 1.001
        assert abs(found.waited_ps / 1000 - row["evt_wait_time"]) <= 1.001
        buffer = pair.ntff.buffer(found.core, engine)
        assert buffer.words[found.pc].name == row["opcode"]
        assert row.get("compiler_pc", None) in (None, buffer.compiler_pc(found.pc))


def test_active_time_is_the_profiles(pair: Pair) -> None:
    """An engine is active while a word other than EVENT_SEMAPHORE runs."""
    theirs: Counter[tuple[str, str]] = Counter()
    for row in pair.profile["active_time"]:
        theirs[row["subgraph"], row["engine"]] += row["duration_ns"]
    names = {"tensor": "PE", "scalar": "Activation", "gpsimd": "Pool", "vector": "DVE", "sync": "SP"}
    for name, core in pair.cores.items():
        words = {buffer.engine: buffer.words for buffer in pair.ntff.buffers(core)}
        spans = defaultdict(list)
        for each in pair.ntff.executed(core):
            counts = each.end_ps is not None and not isinstance(words[each.engine][each.pc], EventSemaphore)
            if counts and pair.window[name][0] <= pair.since(each.start_ps) <= pair.window[name][1]:
                spans[each.engine].append((each.start_ps, each.end_ps))
        for label, engine in names.items():
            assert abs(covered(spans[engine]) / 1000 - theirs[name, label]) <= 0.02 * theirs[name, label] + 20


def covered(spans: Iterable[tuple[int, int]]) -> int:
    total = last = 0
    for start, end in sorted(spans):
        if end > last:
            total, last = total + end - max(start, last), end
    return total


def test_semaphores_are_the_profiles(pair: Pair) -> None:
    mine = {
        (name, each.number, each.value, pair.since(each.time_ps))
        for name, core in pair.cores.items() for each in pair.ntff.signals(core) if each.kind == "semaphore"
    }  # fmt: skip
    for row in pair.profile["semaphore_update"]:
        number = int(row["id"].removeprefix("S[").split("]")[0])
        assert (row["subgraph"], number, row["value"], row["timestamp"]) in mine, row


def test_packets_are_the_profiles(pair: Pair) -> None:
    mine = Counter(
        (name, each.engine, each.ring, each.nbytes, each.checksum, pair.since(each.start_ps))
        for name, core in pair.cores.items() for each in pair.ntff.packets(core)
    )  # fmt: skip
    theirs = Counter(
        (row["subgraph"], int(row["dma_engine"]), int(row["dma_queue"]), row["transfer_size"], row["crc"],
         row["timestamp"])
        for row in pair.profile["dma"]
    )  # fmt: skip
    assert theirs and not theirs - mine


def test_clock_changes_are_the_profiles(pair: Pair) -> None:
    for name, core in pair.cores.items():
        mine = [(each.kind, each.k, each.n, pair.since(each.time_ps)) for each in pair.ntff.clock_changes(core)]
        assert mine == [(row["type"], row["k"], row["n"], row["timestamp"])
                        for row in pair.profile["ham"] if row["subgraph"] == name]  # fmt: skip


def test_the_emulator_beside_the_capture(pair: Pair) -> None:
    from neurontools.ntff.activity import captured, compared

    capture = captured(pair.ntff, None)
    beside = compared(capture, pair.neff, None)
    assert beside.outcome == "finished"
    assert beside.captured_ns > 10_000 and beside.ratio is not None and 0.5 < beside.ratio < 2
    words = {(one.name, row.engine): row.words for one in capture.cores for row in one.engines}
    for one in beside.cores:
        for row in one.engines:
            assert row.words == words[one.name, row.engine]
