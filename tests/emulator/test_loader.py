"""The loader: pseudo words become real ones, variables get addresses, and whatever is missing is named."""

from __future__ import annotations

import numpy as np
import pytest

from emulator.arch import arch_of
from emulator.cost import cost_of
from emulator.device import Device
from emulator.errors import LoadError
from emulator.loaded import LoadedModel
from formats import isa
from formats.errors import FormatError
from formats.isa.operand import DmaAddress
from formats.neff import Descriptor, Neff, open_neff
from tests.emulator.dma_programs import PARTITION, direct, gen2, gen3, load_and_store, nbytes, trigger, wait
from tests.formats.neff.support import changed

TENSOR = {"x": ("float32", (128, 64))}
OUT = {"y": ("float32", (128, 64))}
RUN = 256


def _load(neff: Neff) -> tuple[Device, LoadedModel]:
    device = Device(neff.target, cores=len(neff.subgraphs))
    return device, device.load(neff)


def _block(**changes: object) -> Descriptor:
    fields = {
        "source": "x",
        "source_offset": 0,
        "source_sizes": (RUN, 128),
        "source_steps": (1, RUN),
        "target": "SB",
        "target_offset": 0x4000,
        "target_sizes": (RUN, 128),
        "target_steps": (1, PARTITION),
        "source_dtype": "float32",
        "target_dtype": "float32",
    }
    return Descriptor(**{**fields, **changes})


def test_direct_dma_gets_absolute_addresses_and_keeps_tables() -> None:
    neff = load_and_store()
    _, model = _load(neff)
    words = model.cores[0].words["SP"]
    source = neff.subgraphs[0].streams["SP"]
    load, store = words[1].word, words[2].word
    assert (load.NAME, load.raw[0]) == ("DMA_DIRECT2D", 0xB8)
    assert load.src == DmaAddress("table", 0, 0)
    assert load.dst == DmaAddress("absolute", 0, 0x2000004000)
    assert store.src == DmaAddress("absolute", 0, 0x2000004000)
    # Byte 0 and the resolved address differ from the compiler's word, nothing else (isa.md 9).
    assert load.raw[1:40] == source[2].raw[1:40] and load.raw[48:] == source[2].raw[48:]


def test_cc_is_dropped_and_pc_keeps_the_compilers_count() -> None:
    _, model = _load(load_and_store())
    words = model.cores[0].words["SP"]
    assert [word.pc for word in words] == [0, 2, 3, 4]
    assert words[0].word == isa.SetOrderingMode() and words[3].word == isa.Nop(**wait(9))
    assert [word.transfer is not None for word in words] == [False, True, True, False]
    assert [word.pc for word in model.cores[0].words["PE"]] == [0]


def test_variables_by_name_constants_and_scratchpad() -> None:
    def extra(subgraph) -> None:
        subgraph.constant("weights", np.arange(64, dtype=np.float32))
        subgraph.variable("a", "virtual", 512, backing_offset=0)
        subgraph.variable("b", "virtual", 512, backing_offset=4096)
        subgraph.variable("c", "virtual", 4096, backing_offset=4096)
        subgraph.variable("t", "tmp-buf", 128)

    neff = gen3({}, inputs=TENSOR, outputs=OUT, extra=extra, lnc=2, more=[{}])
    device, model = _load(neff)
    first, second = (core.placement for core in model.cores)
    assert first.by_name["x"] is second.by_name["x"] is model.tensors["x"]
    assert first.by_name["t"] is second.by_name["t"]
    assert first.by_name["weights"].address != second.by_name["weights"].address
    assert first.by_name["b"].address == first.by_name["c"].address == first.by_name["a"].address + 4096
    assert first.by_name["a"].address != second.by_name["a"].address
    assert first.table is not None and [entry.name for entry in first.table.entries] == ["x", "y"]
    data = device.hbm.view(first.by_name["weights"].address, 256).view(np.float32)
    assert data.tolist() == list(range(64))
    table = device.hbm.view(first.table.address, 16).view(np.uint64)
    assert table.tolist() == [model.tensors["x"].address, model.tensors["y"].address]
    assert model.tensors["x"].shape == (128, 64) and model.tensors["x"].dtype == "float32"


def test_trigger_becomes_a_doorbell_write_with_prebuilt_descriptors() -> None:
    neff = gen2({5: (9, [_block()])}, [trigger(5, **wait(8, 1))], inputs=TENSOR, outputs=OUT)
    device, model = _load(neff)
    word = model.cores[0].words["SP"][1]
    write = word.word
    assert isinstance(write, isa.Write)
    assert write.wait == isa.Wait(isa.WaitMode.SEM_GE, 8, 1)
    # 128 rows over 16 rings are 8 descriptors, and one for the semaphore (isa.md 9).
    assert (write.data0, write.data1) == (9, 9)
    assert (write.address0, write.address1) == (0xFFFF0021038, 0xFFFF0001038)
    ring = device.dma.rings(0)[3][0]
    assert ring.queue == "qSPIO0" and ring.outstanding == 0
    found = ring.prebuilt_descriptors
    assert len(found) == 9 and found[-1].kind == "semaphore"
    assert found[0].source == model.tensors["x"].address + 24 * RUN and found[0].destination == 24 * PARTITION + 0x4000
    transfer = word.transfer()
    assert (transfer.semaphore, transfer.increment, transfer.prebuilt) == (9, 16, True)


def test_a_queue_between_the_programs_own_memories_has_one_bell_to_ring() -> None:
    """Captures: triggers of kind "data" are a WRITE of one value, 350 of 350; of kind "in" of two, 1,691 of 1,691."""
    neff = gen2({5: (9, [_block()])}, [trigger(5)], inputs=TENSOR, outputs=OUT, queue_kind="data")
    write = _load(neff)[1].cores[0].words["SP"][1].word
    assert isinstance(write, isa.Write) and (write.size1, write.data0) == (0, 9)
    assert write.address0 == 0xFFFF0001038  # the side that reads
    chip = arch_of("trn2")
    both = write.replace(size1=4, address1=0xFFFF0021038, data1=9)
    for engine, one, two in (("SP", 45, 58), ("Pool", 26, 46), ("Activation", 25, 50), ("DVE", 32, 57), ("PE", 25, 75)):
        took = [cost_of(word, engine, chip).latency_ps for word in (write, both)]
        assert took == [one * 1000, two * 1000]


@pytest.mark.parametrize(
    ("neff", "message"),
    [
        (
            lambda: gen3({"SP": [direct(("variable", 77, 0), ("variable", 0, 0), RUN, 128, RUN, PARTITION)]}),
            "sg00/SP pc 2: src names variable 77",
        ),
        (
            lambda: gen3(
                {"SP": [direct(("table", 2, 0), ("variable", 0, 0), RUN, 128, RUN, PARTITION)]}, inputs=TENSOR
            ),
            "entry 2 of 'DGETable0', which has 1",
        ),
        (
            lambda: gen3(
                {"SP": [direct(("table", 0, 0), ("variable", 0, 0), RUN, 128, RUN, PARTITION, semaphore=200)]},
                inputs=TENSOR,
            ),
            "semaphore 200 belongs to no dynamic queue of SP",
        ),
        (
            lambda: gen3(
                {"Activation": [direct(("table", 0, 0), ("variable", 0, 0), RUN, 128, RUN, PARTITION)]}, inputs=TENSOR
            ),
            "Activation owns no dynamic DMA queue",
        ),
        (
            lambda: gen3(
                {"SP": [direct(("table", 0, 0), ("variable", 0, 0), RUN, 128, RUN, PARTITION, dst_run=128)]},
                inputs=TENSOR,
            ),
            "source has 8192 elements and destination 4096",
        ),
        (
            lambda: gen3({"SP": [direct(("table", 0, 0), ("variable", 0, 0), RUN, 0, RUN, PARTITION)]}, inputs=TENSOR),
            "no bytes to move",
        ),
        (
            lambda: gen2({1: (8, [_block()])}, [trigger(2)], inputs=TENSOR, outputs=OUT),
            "no DMA block 2 of queue 'qSPIO0'",
        ),
    ],
)
def test_what_is_missing_is_named(neff, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        _load(neff())


@pytest.mark.parametrize("change", [lambda block: block.pop("desc"), lambda block: block.update(desc=[])])
def test_a_block_without_descriptors_is_a_malformed_file(change) -> None:
    neff = open_neff(changed(sg00__SP_DOT_json=lambda document: change(document["dma"][0])))
    with pytest.raises(FormatError, match="sg00/SP pc 1: DMA block 0 of 'qSPIO0' has no descriptors"):
        _load(neff)


def test_extra_files_of_the_wrong_kind_are_refused() -> None:
    neff = load_and_store()
    with pytest.raises(LoadError, match="device is trn1"):
        Device("trn1").load(neff)
    pair = gen3({}, lnc=2, more=[{}])
    with pytest.raises(LoadError, match="needs 2 cores, the device has 1"):
        Device("trn2", cores=1).load(pair)


def test_a_transfer_reads_the_address_out_of_a_pointer_and_the_scratchpad_in_between() -> None:
    """A pointer variable holds the device address of the variable that it refers to (formats.md 3.5)."""

    def extra(subgraph) -> None:
        target = subgraph.variable("work", "virtual", 4096, backing_offset=8192)
        subgraph.variable("pointer", "pointer", 8, referenced_var_id=target)

    def move(source: str, target: str):
        return _block(source=source, target=target, source_sizes=(8,), source_steps=(1,), target_sizes=(8,),
                      target_steps=(1,), target_offset=0, source_dtype="uint8", target_dtype="uint8")  # fmt: skip

    neff = gen2(
        {1: (8, [move("pointer", "work")]), 2: (9, [move("work", "y")])},
        [trigger(1), trigger(2, **wait(8)), isa.Nop(**wait(9))],
        inputs=TENSOR, outputs={"y": ("uint64", (1,))}, extra=extra,
    )  # fmt: skip
    device, model = _load(neff)
    device.run()
    assert device.fault is None and device.hang is None
    work = model.cores[0].placement.by_name["work"]
    assert device.outputs()["y"].tolist() == [work.address]
    assert work.address == model.cores[0].placement.scratchpad + 8192


def test_extended_dialect_only_when_declared() -> None:
    words = {"SP": [isa.CoreBarrier(semaphore=3)]}
    _, plain = _load(gen3(words))
    _, extended = _load(gen3(words, features=["neurontools_extended"]))
    assert isinstance(plain.cores[0].words["SP"][1].word, isa.Unknown) and not plain.cores[0].extended
    assert isinstance(extended.cores[0].words["SP"][1].word, isa.CoreBarrier) and extended.cores[0].extended


def test_sizes() -> None:
    assert nbytes("bfloat16", (3, 5)) == 30
