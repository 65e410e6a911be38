"""Small NEFFs for loader, DMA and runtime tests: a stream per engine, variables and queues as real files name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from formats import isa
from formats.isa.operand import DmaAddress, DmaPattern
from formats.neff import Descriptor, Neff, NeffWriter

PRELUDE_GEN2 = (isa.SetOrderingMode(),)
PRELUDE_GEN3 = (isa.SetOrderingMode(), isa.OpcodeCC())
SP_QUEUE, SP_SEMAPHORES = "qSPDynamicHW", tuple(range(8, 24))
POOL_QUEUE, POOL_SEMAPHORES = "qPoolDynamic", tuple(range(24, 40))
SB = "SB"
PARTITION = 0x40000


def stream(words: Sequence[isa.Instruction], gen2: bool = False) -> bytes:
    """Return a stream with its prelude in front."""
    return b"".join(word.raw for word in (*(PRELUDE_GEN2 if gen2 else PRELUDE_GEN3), *words))


def direct(
    src: tuple[str, int, int],
    dst: tuple[str, int, int],
    run: int,
    rows: int,
    src_step: int,
    dst_step: int,
    *,
    semaphore: int = 8,
    dtypes: tuple[int, int] = (10, 10),
    dst_run: int | None = None,
    outer: tuple[int, int, int] | None = None,
    **header: int,
) -> isa.PseudoDmaDirect2d:
    """Return a direct DMA of `rows` runs; addresses are (form, index, offset), `outer` adds (steps, count)."""
    src_outer, dst_outer, count = outer or (1, 1, 1)
    return isa.PseudoDmaDirect2d(
        src=DmaAddress(*src),
        src_pattern=DmaPattern((src_step, src_outer), (rows, count)),
        src_element_size=run,
        dst=DmaAddress(*dst),
        dst_pattern=DmaPattern((dst_step, dst_outer), (rows, count)),
        dst_element_size=run if dst_run is None else dst_run,
        src_dtype=dtypes[0],
        dst_dtype=dtypes[1],
        semaphore=semaphore,
        semaphore_increment=16,
        **header,
    )


def load_and_store(rows: int = 128, columns: int = 64, dtype: str = "float32") -> Neff:
    """Return a gen3 file that copies input "x" through SBUF to output "y" by table references."""
    size = {"float32": 4, "bfloat16": 2, "float16": 2}[dtype]
    code = {"float32": 10, "bfloat16": 6, "float16": 7}[dtype]
    run = columns * size
    words = [
        direct(("table", 0, 0), ("variable", 0, 0x4000), run, rows, run, PARTITION, dtypes=(code, code)),
        direct(
            ("variable", 0, 0x4000),
            ("table", 1, 0),
            run,
            rows,
            PARTITION,
            run,
            semaphore=9,
            dtypes=(code, code),
            wait_mode=isa.WaitMode.SEM_GE,
            wait_index=8,
            wait_value=16,
        ),
        isa.Nop(wait_mode=isa.WaitMode.SEM_GE, wait_index=9, wait_value=16),
    ]
    return gen3({"SP": words}, inputs={"x": (dtype, (rows, columns))}, outputs={"y": (dtype, (rows, columns))})


def gen3(
    words: Mapping[str, Sequence[isa.Instruction]],
    *,
    inputs: Mapping[str, tuple[str, tuple[int, ...]]] = {},
    outputs: Mapping[str, tuple[str, tuple[int, ...]]] = {},
    target: str = "trn2",
    lnc: int = 1,
    extra: object = None,
    features: Sequence[str] = (),
    more: Sequence[Mapping[str, Sequence[isa.Instruction]]] = (),
) -> Neff:
    """Return a gen3 file: SB is variable 0, inputs and outputs follow in a table; `extra(subgraph)` may add more."""
    writer = NeffWriter(target, "test.neff", lnc)
    for name, (dtype, shape) in inputs.items():
        writer.input(name, dtype, shape)
    for name, (dtype, shape) in outputs.items():
        writer.output(name, dtype, shape)
    for index, streams in enumerate((words, *more)):
        subgraph = writer.subgraph(index)
        subgraph.variable(SB, "state-buffer")
        ids = []
        for kind, tensors in (("input", inputs), ("output", outputs)):
            for name, (dtype, shape) in tensors.items():
                ids.append(subgraph.variable(name, kind, nbytes(dtype, shape)))
                subgraph.tensor(name, dtype, shape, kind)
        if callable(extra):
            extra(subgraph)
        subgraph.variable("DGETable0", "dge-table", entries=ids)
        subgraph.queue(SP_QUEUE, "dynamic", "sp", semaphores=SP_SEMAPHORES)
        subgraph.queue(POOL_QUEUE, "dynamic", "pool", semaphores=POOL_SEMAPHORES)
        for feature in features:
            subgraph.feature(feature)
        for engine, items in streams.items():
            subgraph.stream(engine, stream(items))
    return writer.build()


def nbytes(dtype: str, shape: Sequence[int]) -> int:
    """Return the bytes of a tensor."""
    from formats.dtypes import Dtype

    total = Dtype.from_numpy_name(dtype).size
    for length in shape:
        total *= length
    return total


def gen2(
    descriptors: Mapping[int, tuple[int, Sequence[Descriptor]]],
    words: Sequence[isa.Instruction],
    *,
    inputs: Mapping[str, tuple[str, tuple[int, ...]]],
    outputs: Mapping[str, tuple[str, tuple[int, ...]]],
    extra: object = None,
    remote: Sequence[int] = (),
    queue_kind: str = "in",
    target: str = "trn1",
) -> Neff:
    """Return a file whose SP triggers blocks {id: (semaphore, descriptors)} of queue qSPIO0, made at load time."""
    writer = NeffWriter(target, "test.neff", 1)
    subgraph = writer.subgraph(0)
    subgraph.variable(SB, "state-buffer")
    for kind, tensors in (("input", inputs), ("output", outputs)):
        for name, (dtype, shape) in tensors.items():
            (writer.input if kind == "input" else writer.output)(name, dtype, shape)
            subgraph.variable(name, kind, nbytes(dtype, shape))
            subgraph.tensor(name, dtype, shape, kind)
    if callable(extra):
        extra(subgraph)
    subgraph.queue("qSPIO0", queue_kind, "sp", semaphores=SP_SEMAPHORES)
    for block_id, (semaphore, items) in descriptors.items():
        subgraph.dma_block("qSPIO0", block_id, "SP", items, semaphore=semaphore, remote_semaphores=remote)
    subgraph.stream("SP", stream(words, gen2=target == "trn1"))
    return writer.build()


def trigger(block_id: int, **header: int) -> isa.PseudoDmaTrigger:
    """Return the word that starts a block of qSPIO0."""
    return isa.PseudoDmaTrigger(queue="qSPIO0", block_id=block_id, **header)


def wait(semaphore: int, value: int = 16) -> dict[str, int]:
    """Return the header fields of `S[semaphore] >= value`."""
    return {"wait_mode": isa.WaitMode.SEM_GE, "wait_index": semaphore, "wait_value": value}
