"""Device addresses against the ones that public profiles and documents print."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.addresses import ADDRESS_MAPS, Location, address_map
from emulator.errors import LoadError

GEN3, GEN2 = ADDRESS_MAPS["gen3"], ADDRESS_MAPS["gen2"]


def test_published_gen3_addresses() -> None:
    # formats.md 7.1: SBUF of core 4, semaphore 1 of cores 4 and 5; isa.md 10.3: doorbells of both.
    assert GEN3.sbuf(4, 0, 0x26400) == 0x802000026400
    assert GEN3.semaphore(4, 1) == 0x802802701804
    assert GEN3.semaphore(5, 1) == 0x803802701804
    assert GEN3.doorbell(4, 5, 14, "m2s") == 0x80100250F038
    assert GEN3.doorbell(4, 5, 14, "s2m") == 0x80100252F038
    assert GEN3.doorbell(5, 5, 14, "m2s") >> 20 == 0x8010035


def test_published_gen2_doorbell() -> None:
    assert GEN2.doorbell(0, 9, 14, "s2m") == 0xFFFF026F038
    assert GEN2.doorbell(0, 9, 14, "m2s") == 0xFFFF024F038


@given(
    generation=st.sampled_from(sorted(ADDRESS_MAPS)),
    core=st.integers(0, 1),
    engine=st.integers(0, 15),
    ring=st.integers(0, 15),
    side=st.sampled_from(["m2s", "s2m"]),
    partition=st.integers(0, 127),
    byte=st.integers(0, 0x3FFFF),
    index=st.integers(0, 255),
    action=st.sampled_from(["read", "set", "increment", "decrement"]),
)
def test_locate_inverts(
    generation: str, core: int, engine: int, ring: int, side: str, partition: int, byte: int, index: int, action: str
) -> None:
    addresses = address_map(generation)
    assert addresses.locate(addresses.doorbell(core, engine, ring, side)) == Location(
        "doorbell", core, engine * 16 + ring, 0, side
    )
    assert addresses.locate(addresses.sbuf(core, partition, byte)) == Location("sbuf", core, partition, byte)
    assert addresses.locate(addresses.semaphore(core, index, action)) == Location("semaphore", core, index, 0, action)
    assert addresses.locate(addresses.event(core, index)) == Location("event", core, index)


def test_hbm_and_nothing() -> None:
    assert GEN3.locate(0x4000000010) == Location("hbm", 0, 1, 0x10)
    assert GEN3.locate(0x2002000000 + 0x4000 * 3 + 5) == Location("psum", 0, 3, 5)
    assert GEN3.locate(0x400000000000).kind == "none"
    assert [GEN3.hbm_of(core) for core in range(8)] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_unknown_generation_and_core() -> None:
    with pytest.raises(LoadError, match="gen1"):
        address_map("gen1")
    with pytest.raises(LoadError, match="no core 8"):
        GEN3.sbuf(8)
