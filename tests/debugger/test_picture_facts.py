"""What the maps' pictures tell beside cells: how often blocks were written, who reads bytes, where a NaN is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.regions import Region
from neurontools.debugger.last_writes import BLOCK, blocks_of
from neurontools.debugger.opening import open_session
from neurontools.debugger.touched import touched
from neurontools.debugger.window import Window
from neurontools.program.configuration import RunConfiguration


@pytest.fixture(scope="module")
def session(root: Path) -> Any:
    """Return a session on the attention example, in the order of the program."""
    return open_session(root / "examples" / "attention.py", RunConfiguration(timing=False))


def counted(session: Any, space: str) -> np.ndarray:
    """Return the writes into every block, counted event by event."""
    rows, width = session.device.cores[0].memory.array(space).shape
    found = np.zeros((rows, width // BLOCK), np.int64)
    for entry in session.journal.log:
        for region in entry.regions:
            if region.space == space:
                found[region.first : region.behind, blocks_of(*region[4:])] += 1
    return found


@pytest.mark.parametrize("space", ["SBUF", "PSUM"])
def test_traffic_counts_writes_forwards_and_back(session: Any, space: str) -> None:
    rows, width = session.inspector.maps.size(space, 0)
    window = Window(space, 0, 0, 0, rows, width // BLOCK, 1, BLOCK)
    for place in ("#10", "#50", "#30", "end", "start", "#40"):
        session.goto(place)
        found = session.inspector.maps.cells(window, "traffic")
        np.testing.assert_array_equal(found.cells, counted(session, space))
        coarse = session.inspector.maps.cells(Window(space, 0, 0, 0, rows // 8, 8, 8, width // 8), "traffic").cells
        np.testing.assert_array_equal(coarse, counted(session, space).reshape(rows // 8, 8, 8, -1).max(axis=(1, 3)))


def test_readers_are_those_of_a_search_of_all_words(session: Any) -> None:
    chance = np.random.default_rng(0)
    for place in ("#8", "#40", "end"):
        session.goto(place)
        engines = session.device.cores[0].engines
        reads = {(name, at): touched(session.device, 0, name, word.pc)[0]
                 for name, own in engines.items() for at, word in enumerate(own.words)}  # fmt: skip
        for _ in range(40):
            byte = 0x4000 + int(chance.integers(0, 0x2800)) // 4 * 4
            region = Region("SBUF", 0, int(chance.integers(0, 128)), 1, byte, 4)
            hits = [(engines[name].position - at, name, engines[name].words[at].pc)
                    for (name, at), found in reads.items()
                    if any(each.overlaps(region) for each in found)]  # fmt: skip
            ahead = [-away for away, _, _ in hits if away <= 0]
            behind = [away for away, _, _ in hits if away > 0]
            found = session.inspector.reader(region)
            if found is None:
                assert not hits
                continue
            away = next(abs(away) for away, name, pc in hits if (name, pc) == (found.engine, found.pc))
            assert found.ahead == bool(ahead) and away == min(ahead or behind)


def test_tensors_with_nan_are_named(root: Path) -> None:
    session = open_session(root / "examples" / "attention.py", RunConfiguration(timing=False))
    session.goto("end")
    assert session.inspector.not_numbers("SBUF", 0) == session.inspector.not_numbers("HBM", 0) == frozenset()
    tile = next(tile for tile in session.execution.tensors.tiles(0) if tile.name == "powers")
    memory = session.device.cores[0].memory.array("SBUF")
    memory[tile.partition, tile.offset : tile.offset + 4] = np.array([np.nan], np.float32).view(np.uint8)
    assert session.inspector.not_numbers("SBUF", 0) == {"powers"}
    assert session.inspector.not_numbers("PSUM", 0) == frozenset()


def test_no_memory_is_looked_through_for_findings_before_the_end(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    session = open_session(root / "examples" / "attention.py", RunConfiguration(timing=False))
    monkeypatch.setattr(
        type(session.inspector), "not_numbers", lambda _, space, core: looks.append(space) or frozenset()
    )
    session.goto("#40")
    assert session.nan_findings() == () and looks == []
    session.goto("end")
    assert session.nan_findings() == () and looks == ["HBM"]


def test_what_nobody_touched_is_not_made_to_be_looked_at(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_session(root / "examples" / "attention.py", RunConfiguration(timing=False))
    looked: list[str] = []
    tensors, before = type(session.execution.tensors), type(session.execution.tensors).elements
    monkeypatch.setattr(tensors, "elements", lambda self, name, core: looked.append(name) or before(self, name, core))
    outputs = {tensor.name for tensor in session.device.tensors.values() if tensor.kind == "output"}
    session.inspector.not_numbers("HBM", 0)
    assert looked and outputs and outputs.isdisjoint(looked)
    session.goto("end")
    session.inspector.not_numbers("HBM", 0)
    assert outputs <= set(looked)
