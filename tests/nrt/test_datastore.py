"""The driver's data store: every counter at an offset of its own, both ways, damage refused."""

from __future__ import annotations

import random
import struct

import pytest

from formats.errors import FormatError
from formats.nrt.datastore import CORE_COUNTERS, CORES, DEVICE_COUNTERS, SIZE, Datastore, decode, encode


def test_offsets_by_the_header() -> None:
    """Worked out by hand from the definitions: runtime.md 12.1."""
    assert SIZE == 67_200 and len(DEVICE_COUNTERS) == 13 and len(CORE_COUNTERS) == 41
    for core, name, offset in ((0, "TIME_IN_USE", 256), (1, "TIME_IN_USE", 504), (3, "OOB", 256 + (3 * 31 + 30) * 8),
                               (0, "HW_ERR_COLLECTIVES", 55_936), (2, "HW_ERR_HBM_UE", 55_936 + (2 * 64 + 1) * 8),
                               (4, "TIME_IN_USE", 57_984),
                               (15, "HW_ERR_REPAIRABLE_HBM_UE", 57_984 + (11 * 96 + 40) * 8)):  # fmt: skip
        data = encode(Datastore(1, {}, {core: {name: 77}}))
        assert struct.unpack_from("<Q", data, offset) == (77,), (core, name)
        assert data.count(b"\x4d") == 1 and data[:8] == b"nds\0\x01\0\0\0"
    assert struct.unpack_from("<Q", encode(Datastore(0, {"DEVICE_CLUSTER_ID": 9}, {})), 8 + 12 * 8) == (9,)


def test_random_stores_come_back() -> None:
    rng = random.Random(1)
    for _ in range(30):
        store = Datastore(
            rng.randrange(99), {name: rng.randrange(1, 1 << 64) for name in rng.sample(DEVICE_COUNTERS, 4)},
            {core: {name: rng.randrange(1, 1 << 64) for name in rng.sample(CORE_COUNTERS, 9)}
             for core in sorted(rng.sample(range(CORES), 5))}, bytes([1, 2, 3]))  # fmt: skip
        again = decode(encode(store))
        assert again.device == store.device and again.cores == store.cores and again.objects == store.objects
        assert encode(again) == encode(store)


def test_no_two_counters_share_a_byte() -> None:
    everything = Datastore(
        0, dict.fromkeys(DEVICE_COUNTERS, 1), {core: dict.fromkeys(CORE_COUNTERS, 1) for core in range(CORES)}
    )
    assert decode(encode(everything)) == everything
    assert encode(everything)[8:].count(b"\x01") == len(DEVICE_COUNTERS) + CORES * len(CORE_COUNTERS)


@pytest.mark.parametrize(
    "store",
    [Datastore(0, {"X": 1}, {}), Datastore(0, {}, {0: {"X": 1}}), Datastore(0, {}, {16: {"OOB": 1}}),
     Datastore(0, {}, {0: {"OOB": -1}}), Datastore(0, {}, {0: {"OOB": 1 << 64}})],
)  # fmt: skip
def test_what_has_no_place(store: Datastore) -> None:
    with pytest.raises(FormatError):
        encode(store)


@pytest.mark.parametrize("data", [b"", bytes(SIZE), b"nds\0" + bytes(100), bytes(SIZE - 1)])
def test_damage(data: bytes) -> None:
    with pytest.raises(FormatError, match="store"):
        decode(data, "x")


def test_objects_that_have_no_room_are_refused() -> None:
    """They pushed what stands behind them out of its place."""
    with pytest.raises(FormatError, match="too many bytes of objects"):
        encode(Datastore(2, {}, {}, bytes(1 << 20)))
