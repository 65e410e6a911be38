"""The NEFF fixtures: `python -m tools neff-fixtures`.

Every file is a program of ours: nothing in them comes from AWS's compiler.
"""

from __future__ import annotations

import struct

from formats.dtypes import Dtype
from formats.isa import (
    AccessPattern,
    Activate,
    ActTableLoad,
    EventSemaphore,
    Instruction,
    OpcodeCC,
    PseudoDmaTrigger,
    SetOrderingMode,
    TensorTensor,
)
from formats.neff import Descriptor, NeffWriter, open_neff
from formats.neff.npy import npy_bytes

__all__ = ["FIXTURES", "files", "same"]

SOURCE = "kernels/add_exp.py"
ROWS, COLUMNS = 128, 4
BYTES = ROWS * COLUMNS * 4


def _whole(variable: str, offset: int = 0) -> tuple[str, int, tuple[int, ...], tuple[int, ...]]:
    """Return one side of a descriptor that covers a 128 by 4 float32 tensor."""
    row = COLUMNS * 4
    return variable, offset, (row, ROWS), (1, 0x40000 if variable == "SB" else row)


def build_add_exp() -> bytes:
    """Return out = exp(a + b) for 128 by 4 float32 as a gen2 file: DMA blocks, triggers, constants, tables.

    It is there to be read: the one table piece is no exponential, and nothing fills the bias.
    """
    writer = NeffWriter("trn1", "add_exp.neff", 1)
    sg = writer.subgraph(0)
    for name in ("a", "b"):
        writer.input(name, "float32", (ROWS, COLUMNS))
    writer.output("out", "float32", (ROWS, COLUMNS))
    sg.variable("SB", "state-buffer")
    for name, kind in (("a", "input"), ("b", "input"), ("out", "output")):
        sg.variable(name, kind, BYTES)
        sg.tensor(name, "float32", (ROWS, COLUMNS), kind)
    sg.constant("table", npy_bytes("<f4", (COLUMNS,), struct.pack("<4f", 0.5, 1.0, 1.5, 2.0)))
    sg.constant("raw", b"raw bytes")
    sg.variable("spill", "virtual", BYTES, backing_offset=0, alignment=64)
    sg.variable("tables", "dge-table", entries=(1, 2, 3))
    sg.queue("qSPIO0", "in", "SP", 16, range(8, 24))
    sg.queue("qSPOut0", "out", "SP", 16, range(24, 40))
    words: list[Instruction] = [SetOrderingMode()]
    for number, (name, offset) in enumerate((("a", 0x4000), ("b", 0x4010))):
        sg.dma_block("qSPIO0", number, "SP", [Descriptor(*_whole(name), *_whole("SB", offset))], semaphore=8 + number)
        words.append(PseudoDmaTrigger(queue="qSPIO0", block_id=number))
    sg.dma_block("qSPOut0", 7, "SP", [Descriptor(*_whole("SB", 0x4020), *_whole("out"))], semaphore=24, comment="store")
    words.append(PseudoDmaTrigger(queue="qSPOut0", block_id=7, wait_mode=5, wait_index=4, wait_value=1))
    words.append(EventSemaphore(wait_mode=5, wait_index=24, wait_value=16))
    sg.stream("SP", b"".join(word.encode() for word in words))
    tile = [AccessPattern(address, (1, 1, 1), (COLUMNS, 1, 1)) for address in (0x4000, 0x4010, 0x4020)]
    types = {"src0_dtype": Dtype.FLOAT32, "src1_dtype": Dtype.FLOAT32, "dst_dtype": Dtype.FLOAT32}
    vector = TensorTensor(
        src0=tile[0],
        src1=tile[1],
        dst=tile[2],
        op=4,
        wait_mode=5,
        wait_index=9,
        wait_value=16,
        update_mode=0x13,
        update_index=6,
        channels=ROWS,
        **types,
    )
    wait = EventSemaphore(wait_mode=5, wait_index=8, wait_value=16)
    sg.stream("DVE", b"".join(word.encode() for word in (SetOrderingMode(), wait, vector)))
    codes = sg.activation_set(
        "exp_and_more",
        {"exp": 7, "identity": 1},
        buckets=struct.pack("<5f12x", 1, 1, 0.5, 0.25, 0),
        controls=struct.pack("<I28x", 23 << 11),
        profiles=[
            {"func_name": "exp_1p", "func_id": 7, "pwl_control_base_pos": 0},
            {"func_name": "identity_0p", "func_id": 1},
        ],
    )
    scalar = Activate(
        src=tile[2],
        dst=tile[2],
        src_dtype=Dtype.FLOAT32,
        dst_dtype=Dtype.FLOAT32,
        channels=ROWS,
        function=codes["exp"],
        scale=1.0,
        wait_mode=5,
        wait_index=6,
        wait_value=1,
        update_mode=0x13,
        update_index=4,
    )
    sg.stream(
        "Activation", b"".join(word.encode() for word in (SetOrderingMode(), ActTableLoad(table_select=0), scalar))
    )
    sg.debug(
        "SP",
        [
            None,
            ("load-a", SOURCE, 11, "float32<128 x 4> a"),
            ("load-b", SOURCE, 12),
            ("store", SOURCE, 15),
            ("store-wait", SOURCE, 15),
        ],
    )
    sg.debug("DVE", [None, ("add-wait", SOURCE, 13), ("add", SOURCE, 13, "float32<128 x 4> sum")])
    sg.debug("Activation", [None, ("load-table", SOURCE, 14), ("exp", SOURCE, 14)])
    return writer.to_bytes()


def build_pair() -> bytes:
    """Return an LNC-2 gen3 file in which neither core does anything: the smallest pair of subgraphs."""
    writer = NeffWriter("trn2", "idle.neff", 2)
    writer.input("x", "bfloat16", (128, 2))
    writer.output("y", "bfloat16", (128, 2))
    for index in (0, 1):
        sg = writer.subgraph(index)
        sg.variable("SB", "state-buffer")
        sg.variable("x", "input", 512)
        sg.variable("y", "output", 512)
        sg.variable("DGETable0", "dge-table", entries=(1, 2))
        sg.queue("qSPDynamicHW", "dynamic", "sp", 16, range(8, 24))
        sg.queue("qPoolDynamic", "dynamic", "pool", 16, range(24, 40), scratch_offset=0, scratch_size=16384)
        sg.feature("neurontools_extended")
        sg.stream("PE", SetOrderingMode().encode() + OpcodeCC().encode())
    return writer.to_bytes()


FIXTURES = {"add_exp.neff": build_add_exp, "idle_pair.neff": build_pair}


def files() -> dict[str, bytes]:
    """Return every NEFF by its path."""
    return {f"fixtures/neff/{name}": make() for name, make in FIXTURES.items()}


def same(one: bytes, other: bytes) -> bool:
    """Return whether two files hold the same archive, whatever zlib compressed it."""
    first, second = open_neff(one), open_neff(other)
    return bool(first.archive.tar.read(0, 1 << 30) == second.archive.tar.read(0, 1 << 30))
