"""Rings of the ledger against the descriptors that the emulator's loader builds, queue by queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.runtime import new_device
from emulator.settings import Settings
from formats.neff import open_neff
from formats.neff.memory import ring_uses

FILES = (
    "fixtures/neff/add_exp.neff",
    "corpus/asst4-trainium2/part1/stream_256k_fd1k.neff",
    "corpus/asst4-trainium2/part1/transpose_1024.neff",
    "corpus/cs149-pa4/part1/transpose_1024_0.neff",
)
_ENTRY = 2 * 16 * 16  # bytes: both ends, sixteen engines, sixteen bytes a descriptor
_LEAST = 64


@pytest.mark.parametrize("name", FILES)
def test_what_is_built_fits_and_little_more_is_taken(name: str, root: Path, request: pytest.FixtureRequest) -> None:
    place, _, rest = name.partition("/")
    path = request.getfixturevalue("corpus") / rest if place == "corpus" else root / name
    neff = open_neff(path)
    device = new_device(neff, Settings())
    device.load(neff)
    device.run()
    built: dict[tuple[int, str], int] = {}
    for core in range(len(neff.subgraphs)):
        for engine in device.dma.rings(core):
            for ring in engine:
                if ring.queue is not None:
                    key = core, ring.queue
                    built[key] = max(built.get(key, 0), len(ring.prebuilt_descriptors))
    queues = {(core, queue): nbytes for core, graph in enumerate(neff.subgraphs)
              for queue, (_, nbytes) in ring_uses(graph).items()}  # fmt: skip
    assert set(queues) == {key for key, number in built.items() if number}
    for key, nbytes in queues.items():
        entries = nbytes // _ENTRY
        assert built[key] <= entries
        assert entries == _LEAST or entries <= 1.05 * built[key] + 16, (key, entries, built[key])
