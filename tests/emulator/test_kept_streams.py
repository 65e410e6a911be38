"""A file that is loaded again has the same words where it lies in the same places, and nothing of it stays behind."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from emulator import kept_streams
from emulator.device import Device
from emulator.kept_places import _FILES as PLACES
from formats import isa
from formats.neff import Neff
from tests.emulator.dma_programs import gen2, gen3, load_and_store, trigger, wait
from tests.emulator.test_loader import OUT, TENSOR, _block
from tests.identity.table import programs


def loaded(neff: Neff, before: int = 0) -> Device:
    """Return a device with a program behind so many bytes of device memory."""
    device = Device(neff.target, len(neff.subgraphs))
    if before:
        device.hbm.allocate(before, "before")
    device.load(neff)
    return device


def block() -> Neff:
    """Return a file whose transfers have descriptors from load time."""
    there = _block()
    back = there._replace(
        source=there.target, source_offset=there.target_offset, source_steps=there.target_steps,
        target="y", target_offset=0, target_steps=there.source_steps,
    )  # fmt: skip
    blocks = {0: (8, [there]), 1: (9, [back])}
    return gen2(blocks, [trigger(0), trigger(1, **wait(8)), isa.Nop(**wait(9))], inputs=TENSOR, outputs=OUT)


def words_of(device: Device) -> list[Any]:
    return [
        [(each.word.raw, each.pc, each.slot, each.queue, each.raises) for each in engine.words]
        for core in device.cores
        for engine in core.engines.values()
    ]


def transfers_of(device: Device) -> list[Any]:
    found = []
    for core in device.cores:
        for engine in core.engines.values():
            for each in engine.words:
                if each.transfer is not None:
                    made = each.transfer()
                    found.append((made.queue, made.parts, made.semaphore, made.increment, made.remote, made.prebuilt,
                                  made.instruction, made.facts))  # fmt: skip
    return found


@pytest.mark.parametrize("make", [load_and_store, block])
def test_a_file_loaded_again_is_what_a_file_opened_again_is(make: Any) -> None:
    neff = make()
    first, again, other = loaded(neff), loaded(neff), loaded(make())
    assert words_of(again) == words_of(other) and transfers_of(again) == transfers_of(other)
    assert transfers_of(again)
    assert again.cores[0].engines["SP"].words[0] is first.cores[0].engines["SP"].words[0]
    made = [
        [(len(queue.made), [(transfer.parts, shares) for transfer, shares in queue.made]) for queue in device.queues]
        for device in (first, again, other)
    ]
    assert made[0] == made[1] == made[2]
    # What happens to the words of one device is nothing to the next.
    again.cores[0].loaded.words["SP"].clear()  # type: ignore[union-attr]
    assert words_of(loaded(neff)) == words_of(other)


@pytest.mark.parametrize("make", [load_and_store, block])
def test_elsewhere_it_is_translated_anew(make: Any) -> None:
    neff = make()
    loaded(neff)
    moved = loaded(neff, before=1 << 16)
    assert transfers_of(moved) == transfers_of(loaded(make(), before=1 << 16)) != transfers_of(loaded(neff))
    assert {id(each) for each in moved.cores[0].engines["SP"].words}.isdisjoint(
        id(each) for each in loaded(neff).cores[0].engines["SP"].words
    )


def test_words_that_ask_a_device_are_translated_for_each() -> None:
    index = isa.DmaIndirect(
        semaphore=9, src=isa.DmaAddress("table", 0, 0), dst=isa.DmaAddress("variable", 0, 0x5000), src_dtype=10,
        dst_dtype=10, src_element_size=16, dst_element_size=16, src_pattern=((1,) * 4, (1,) * 4),
        dst_pattern=((1,) * 4, (1,) * 4), index=isa.AccessPattern(0x4000, (1,) * 5, (1,) * 5), index_dtype=8,
        channels=1, rows=1, index_step=16, row_step=0x40000,
    )  # fmt: skip
    neff = gen3({"SP": [index]}, inputs=TENSOR, outputs=OUT, features=["neurontools_extended"])
    first, second = loaded(neff), loaded(neff)
    ours, others = (device.cores[0].engines["SP"].words[-1] for device in (first, second))
    assert ours.transfer is not None and ours.transfer is not others.transfer
    assert neff.subgraphs[0] not in kept_streams._FILES


def test_neither_devices_nor_files_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    neff = load_and_store()
    device = loaded(neff)
    held, alive = weakref.ref(neff), weakref.ref(device)
    assert neff.subgraphs[0] in kept_streams._FILES
    device.release()
    del device
    gc.collect()
    assert alive() is None
    del neff
    gc.collect()
    assert held() is None
    # The latest are kept, as far as there is room.
    files = [load_and_store() for _ in range(5)]
    for each in files:
        size = sum(len(engine.words) for core in loaded(each).cores for engine in core.engines.values())
    monkeypatch.setattr(kept_streams, "_MOST", 3 * size)
    loaded(load_and_store())
    assert [each.subgraphs[0] in kept_streams._FILES for each in files] == [False] * 3 + [True] * 2


def laid_out(device: Device) -> list[Any]:
    """Return all that there is in device memory, and where the file says that it is."""
    hbm, model = device.hbm, device.model
    assert model is not None
    held = [
        (address, each.address, each.nbytes, each.name, each.set_apart, each.whole, each.touched,
         each.data.tobytes() if each.touched else b"", each.fresh()[:64].tobytes())
        for address, each in hbm.allocations.items()
    ]  # fmt: skip
    found = [hbm.find(address + nbytes // 2) for address, _, nbytes, *_ in held]
    return [held, [each and each.name for each in found], hbm.room, hbm.paged, model.tensors,
            [core.placement for core in model.cores]]  # fmt: skip


@pytest.mark.usefixtures("fresh_workspaces")
def test_every_file_lies_where_it_lay() -> None:
    """Whoever changes what lies there, or has something else there, changes nothing for the next."""
    kept = 0
    every = [each for each in programs() if not each[0].startswith("insns")]
    every += [each for each in programs() if each[0].startswith("insns")][::8]
    for name, opener in every:
        neff, _ = opener()
        first = loaded(neff)
        wanted = laid_out(first)
        kept += neff in PLACES
        again = loaded(neff)
        assert laid_out(again) == wanted, name
        for each in again.hbm.allocations.values():
            each.set_apart.clear()
            each.data[...] = 7
        again.hbm.allocate(64, "more")
        again.model.tensors.clear()  # type: ignore[union-attr]
        assert laid_out(loaded(neff)) == wanted, name
        behind = loaded(neff, before=1 << 13)
        assert laid_out(behind) != wanted and behind.hbm.allocations[min(behind.hbm.allocations)].name == "before"
        assert laid_out(loaded(neff)) == wanted, name
        for device in (first, again, behind):
            device.release()
    assert kept > 30


def test_what_lies_where_is_gone_with_the_file() -> None:
    neff = load_and_store()
    loaded(neff)
    assert neff in PLACES
    held = weakref.ref(neff)
    del neff
    gc.collect()
    assert held() is None
