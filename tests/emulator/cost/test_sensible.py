"""Every word class on every engine and chip, measured or not: more work never costs less, narrower data never more."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from emulator.arch import ARCHS, arch_of
from emulator.cost import Cost, cost_of, dma_costs
from formats import isa
from formats.dtypes import Dtype
from formats.errors import UnsupportedError
from formats.isa import AccessPattern, Pattern
from formats.neuron_core import PARTITIONS

F32, BF16, FP8 = Dtype.FLOAT32, Dtype.BFLOAT16, Dtype.FLOAT8E4
COUNTS = (1, 2, 3, 4, 7, 8, 16, 63, 64, 65, 128, 512, 1000, 2048)
# Steps of elements: neighbours, near ones, and as far apart as the documents call slow.
STEPS = (1, 2, 40)
# Documented or measured to be faster with 16 bits than with 8: modes of four elements a cycle, fills with zero.
WIDE16_ONLY = ("COPY", "CAST", "TENSOR_SCALAR", "MEMSET")


def word(
    cls: type[isa.Instruction],
    count: int,
    dtype: Dtype = F32,
    read: int = 1,
    write: int = 1,
    channels: int = PARTITIONS,
) -> isa.Instruction:
    """Return a word all of whose operands have so many elements of a type, and steps."""
    fields: dict[str, object] = {}
    for at, (name, operand) in enumerate(cls.OPERANDS.items()):
        if isinstance(operand, Pattern):
            more = operand.dims - 1
            step = read if operand.role == "read" else write
            fields[name] = AccessPattern(0x4000 * at, (step,) + (1,) * more, (count,) + (1,) * more)
            if isinstance(operand.dtype, str) and operand.dtype in cls.FIELDS:
                fields[operand.dtype] = dtype
            if isinstance(operand.partitions, str) and operand.partitions in cls.FIELDS:
                fields[operand.partitions] = channels
    return cls(**fields)


def cases() -> Iterator[tuple[type[isa.Instruction], str, str]]:
    for cls in isa.CLASSES:
        if any(isinstance(operand, Pattern) for operand in cls.OPERANDS.values()):
            for target in ARCHS:
                for engine in cls.ENGINES:
                    try:
                        cost_of(word(cls, 64), engine, arch_of(target))
                    except UnsupportedError:
                        continue  # the chip has no such word
                    yield cls, engine, target


CASES = list(cases())
IDS = [f"{cls.NAME} {engine} {target}" for cls, engine, target in CASES]
every = pytest.mark.parametrize(("cls", "engine", "target"), CASES, ids=IDS)


def no_more(one: Cost, other: Cost, what: str) -> None:
    for name in ("interval_ps", "latency_ps", "work_ps"):
        assert getattr(one, name) <= getattr(other, name) + 2, f"{name}: {what}"


def test_there_are_cases() -> None:
    assert len(CASES) > 150 and {target for _, _, target in CASES} == set(ARCHS)


@every
def test_more_elements_never_cost_less(cls: type[isa.Instruction], engine: str, target: str) -> None:
    for dtype in (F32, BF16, FP8):
        for read, write in ((1, 1), (40, 1), (1, 40)):
            found = [cost_of(word(cls, count, dtype, read, write), engine, arch_of(target)) for count in COUNTS]
            for count, (less, more) in zip(COUNTS, pairwise(found), strict=False):
                no_more(less, more, f"{count} elements of {dtype.name}, steps of {read} and {write}")
                assert less.work_ps <= less.latency_ps and less.interval_ps > 0


@every
def test_half_of_the_partitions_cost_no_more(cls: type[isa.Instruction], engine: str, target: str) -> None:
    half, whole = (
        cost_of(word(cls, 128, channels=channels), engine, arch_of(target))
        for channels in (PARTITIONS // 2, PARTITIONS)
    )
    no_more(half, whole, "half of the partitions")


@every
def test_narrower_elements_never_cost_more(cls: type[isa.Instruction], engine: str, target: str) -> None:
    for count in (4, 128, 1000):
        wide, half, quarter = (cost_of(word(cls, count, dtype), engine, arch_of(target)) for dtype in (F32, BF16, FP8))
        no_more(half, wide, f"{count} of bf16 beside fp32")
        no_more(quarter, wide, f"{count} of fp8 beside fp32")
        if cls.NAME not in WIDE16_ONLY:
            no_more(quarter, half, f"{count} of fp8 beside bf16")


@every
def test_elements_farther_apart_never_cost_less(cls: type[isa.Instruction], engine: str, target: str) -> None:
    for count in (4, 128, 1000):
        for dtype in (F32, BF16, FP8):
            for along in ("read", "write"):
                found = [cost_of(word(cls, count, dtype, **{along: step}), engine, arch_of(target)) for step in STEPS]
                for less, more in pairwise(found):
                    assert less.latency_ps <= more.latency_ps + 2, f"{along} {count} of {dtype.name}"
                no_more(found[0], found[-1], f"{along} {count} of {dtype.name}")


def test_casts_to_and_from_16_bits_take_no_more_than_fp32_copies() -> None:
    """Captured outside the corpus: 444 from fp32 to fp16 in SBUF take 388 ns; a strided fold of 444 takes 616."""
    chip = arch_of("trn2")
    cast = word(isa.Cast, 444)
    for src, dst in ((F32, Dtype.FLOAT16), (Dtype.FLOAT16, F32), (BF16, F32)):
        mixed = cost_of(cast.replace(src_dtype=src, dst_dtype=dst), "DVE", chip)
        assert mixed.latency_ps / 1000 == pytest.approx(388, rel=0.01)
    fold = word(isa.TensorReduce, 444, Dtype.FLOAT16, read=20)
    assert cost_of(fold, "DVE", chip).latency_ps / 1000 == pytest.approx(616, rel=0.01)


@pytest.mark.parametrize("target", list(ARCHS))
def test_longer_descriptors_and_more_of_them_never_cost_less(target: str) -> None:
    costs = dma_costs(target)
    sizes = [1, 2, 3, 4, 8, 18, 32, 36, 64, 96, 128, 256, 512, 1024, 2048, 4096, 16384, 65536]
    for reads, writes in ((True, False), (False, True), (False, False)):
        took = [costs.data_ps(64, 64 * size, writes, reads_hbm=reads) for size in sizes]
        if costs.short_row:  # rows under it move at a lower rate, as documented of the first generation
            took = took[: sizes.index(1024)]
        assert took == sorted(took)
        for size in sizes:
            took = [costs.data_ps(many, many * size, writes, reads_hbm=reads) for many in (1, 8, 16, 64, 128)]
            assert took == sorted(took)
    # Between device memories whole bursts are faster than parts of them; within each, more never costs less.
    copies = [costs.data_ps(64, 64 * size, True, reads_hbm=True) for size in sizes]
    whole = sizes.index(costs.short_run)
    assert copies[3:whole] == sorted(copies[3:whole]) and copies[0] >= copies[3]


def test_words_slower_than_the_memory_lose_nothing_to_strides() -> None:
    """A reciprocal takes six cycles an element, a strided write of fp32 under two; a fold of bf16 half of one."""
    chip = arch_of("trn2")
    plain, apart = (cost_of(word(isa.Reciprocal, 512, F32, 1, step), "DVE", chip) for step in (1, 40))
    assert plain == apart
    fold = word(isa.TensorReduce, 512, BF16).replace(op=isa.AluOp.ADD)
    near = cost_of(fold, "DVE", chip)
    far = cost_of(fold.replace(src=AccessPattern(0, (40, 1, 1, 1), (512, 1, 1, 1))), "DVE", chip)
    assert near.work_ps < far.work_ps < 2 * near.work_ps
