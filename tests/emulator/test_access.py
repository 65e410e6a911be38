"""Operands in memory: views, regions, bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.access import Operand, Resolver, plan_of
from emulator.arch import arch_of
from emulator.faults import Fault, FaultError
from emulator.memory import ChipMemory
from formats import isa
from formats.isa import AccessPattern
from formats.neuron_core import PSUM_BASE
from formats.nrt.status import NrtStatus

ARCH = arch_of("trn2")
WIDTH = ARCH.sbuf_bytes.whole
MEMORY = ChipMemory(0, 128, WIDTH, ARCH.psum_bytes.whole, ARCH.psum_bank.whole)
MEMORY.sbuf[:] = np.random.default_rng(1).integers(0, 256, MEMORY.sbuf.shape, np.uint8)


def resolve(word: isa.Instruction, name: str, engine: str = "DVE", target: str = "trn2") -> Operand | None:
    resolver = Resolver(MEMORY, arch_of(target))
    plan = next(plan for plan in plan_of(type(word)) if plan.name == name)
    return resolver.resolve(word, plan, engine)


def copy(pattern: AccessPattern, dtype: int = 10, channels: int = 128) -> isa.Copy:
    return isa.Copy(
        src=pattern,
        dst=AccessPattern(0, (1, 1, 1, 1), (1, 1, 1, 1)),
        src_dtype=dtype,
        dst_dtype=dtype,
        channels=channels,
    )


def fault_of(word: isa.Instruction, name: str, engine: str = "DVE", target: str = "trn2") -> Fault:
    with pytest.raises(FaultError) as caught:
        resolve(word, name, engine, target)
    return caught.value.fault


@given(
    address=st.integers(0, 4000),
    steps=st.tuples(*[st.integers(-40, 40)] * 4),
    counts=st.tuples(*[st.integers(1, 4)] * 4),
    first=st.integers(0, 100),
    partitions=st.integers(1, 28),
    code=st.sampled_from((3, 6, 10)),
)
def test_a_view_walks_as_the_pattern_says(
    address: int, steps: tuple[int, ...], counts: tuple[int, ...], first: int, partitions: int, code: int
) -> None:
    size = {3: 1, 6: 2, 10: 4}[code]
    byte = 40000 + address * size
    pattern = AccessPattern(first * 0x40000 + byte, steps, counts)
    operand = resolve(copy(pattern, code, partitions), "src")
    assert operand is not None
    assert operand.view.shape == (partitions, *reversed(counts))
    wanted = [
        byte + size * sum(i * s for i, s in zip(index, reversed(steps), strict=True))
        for index in np.ndindex(*reversed(counts))
    ]
    raw = MEMORY.sbuf[first + partitions - 1]
    expected = b"".join(raw[at : at + size].tobytes() for at in wanted)
    assert operand.view[-1].tobytes() == expected
    touched = {at + i for at in wanted for i in range(size)}
    (region,) = operand.regions
    assert (region.first, region.partitions, region.space) == (first, partitions, "SBUF")
    assert (region.byte, region.byte + region.nbytes) == (min(touched), max(touched) + 1)
    if region.pattern is None:
        assert len(touched) == region.nbytes
    else:
        dims, run = region.pattern
        assert touched == {
            region.byte + sum(i * step for i, (step, _) in zip(index, dims, strict=True)) + k
            for index in np.ndindex(*(count for _, count in dims))
            for k in range(run)
        }


def test_backwards_weights_are_one_contiguous_region() -> None:
    word = isa.LoadWeights(src=AccessPattern(0x37CFE, (-1, 0, -32), (32, 1, 4)), dtype=7)
    operand = resolve(word, "src", "PE")
    assert operand is not None
    assert operand.regions[0].text == "nc0 SBUF[0:128, 0x37c00:0x37d00]"


def test_an_unused_pointer_is_no_operand() -> None:
    word = isa.TensorScalar(
        src=AccessPattern(0, (1, 1, 1), (4, 1, 1)),
        dst=AccessPattern(64, (1, 1, 1), (4, 1, 1)),
        src_dtype=10,
        dst_dtype=10,
        immediate0=1.0,
    )
    assert resolve(word, "immediate0_pointer") is None
    pointed = word.replace(immediate0_pointer=0x6840)
    operand = resolve(pointed, "immediate0_pointer")
    assert operand is not None and operand.view.shape == (128, 1) and operand.regions[0].byte == 0x6840


@pytest.mark.parametrize(
    ("address", "count", "channels", "kind"),
    [
        (WIDTH - 12, 4, 128, "oob"),  # one byte range past the end of the partition
        (PSUM_BASE + 0x4000 * 127 + 0x3FF8, 4, 1, "oob"),
        (0x40000 * 100, 4, 29, "partitions"),
        (0x40000 * 127, 4, 2, "partitions"),
        (PSUM_BASE + 0x4000 * 128, 4, 1, "partitions"),
    ],
)
def test_what_leaves_a_memory_is_a_fault(address: int, count: int, channels: int, kind: str) -> None:
    fault = fault_of(copy(AccessPattern(address, (1, 1, 1, 1), (count, 1, 1, 1)), channels=channels), "src")
    assert (fault.kind, fault.status, fault.operand) == (kind, NrtStatus.NRT_EXEC_OOB, "src")
    assert fault.address is not None and fault.expected and fault.got


def test_the_last_bytes_are_in_bounds() -> None:
    assert resolve(copy(AccessPattern(WIDTH - 16, (1, 1, 1, 1), (4, 1, 1, 1))), "src") is not None


def test_negative_steps_below_zero_are_a_fault() -> None:
    fault = fault_of(copy(AccessPattern(8, (-1, 1, 1, 1), (4, 1, 1, 1))), "src")
    assert fault.kind == "oob" and fault.got == "partitions 0 to 127, bytes -0x4 to 0xb"


def test_an_address_off_the_element_grid_is_a_fault() -> None:
    assert fault_of(copy(AccessPattern(2, (1, 1, 1, 1), (4, 1, 1, 1))), "src").kind == "alignment"
    assert resolve(copy(AccessPattern(2, (1, 1, 1, 1), (4, 1, 1, 1)), 6), "src") is not None


def matmul(src: int, dst: int, count: int) -> isa.MatMul:
    steps, counts = (1, 0, 0), (count, 1, 1)
    return isa.MatMul(
        src=AccessPattern(src, steps, counts), dst=AccessPattern(dst, steps, counts), dtype=6, acc_flags=3
    )


def test_a_matmul_stays_in_its_bank_before_gen4() -> None:
    word = matmul(0x4000, PSUM_BASE + 0x400, 512)
    fault = fault_of(word, "dst", "PE")
    assert (fault.kind, fault.got) == ("bank", "banks 0 to 1")
    assert resolve(word, "dst", "PE", "trn3") is not None
    assert resolve(matmul(0x4000, PSUM_BASE + 0x800, 512), "dst", "PE") is not None


def test_engines_reach_only_their_memories() -> None:
    assert fault_of(matmul(PSUM_BASE, PSUM_BASE, 8), "src", "PE").kind == "access"
    assert fault_of(matmul(0, 0, 8), "dst", "PE").kind == "access"
    in_psum = copy(AccessPattern(PSUM_BASE, (1, 1, 1, 1), (4, 1, 1, 1)))
    assert fault_of(in_psum, "src", "Pool").message == "src: Pool cannot read PSUM"
    assert resolve(in_psum, "src", "Activation") is not None


def test_psum_results_default_to_fp32_and_to_the_source_type_in_transposes() -> None:
    word = matmul(0, PSUM_BASE, 8)
    plain, transposed = resolve(word, "dst", "PE"), resolve(word.replace(transpose_mode=1), "dst", "PE")
    assert plain is not None and plain.view.dtype == np.float32
    assert transposed is not None and transposed.view.itemsize == 2


def test_partitions_that_a_shuffle_leaves_alone_are_not_written() -> None:
    wide = AccessPattern(0, (1,) * 5, (4, 1, 1, 1, 1))
    mask = tuple(255 if i in (0, 7) else i for i in range(32))
    word = isa.StreamShuffle(src=wide, dst=wide, mask=mask, src_dtype=10, dst_dtype=10, channels=64, dst_channels=64)
    operand = resolve(word, "dst")
    assert operand is not None
    assert [(r.first, r.partitions) for r in operand.regions] == [(1, 6), (8, 24), (33, 6), (40, 24)]


def test_words_that_touch_some_partitions_only_have_regions_of_those() -> None:
    flat = AccessPattern(0, (1, 1, 1, 1, 1), (4, 1, 1, 1, 1))
    sparse = isa.NonzeroWithCount(src=flat, dst=flat._replace(address=64), src_dtype=10, dst_dtype=8, channels=40)
    for name in ("src", "dst"):
        found = resolve(sparse, name, "Pool")
        assert found is not None and found.view.shape[0] == 40
        assert [(region.first, region.partitions) for region in found.regions] == [(0, 1), (16, 1), (32, 1)]
    scaled = isa.QuantizeMx(
        src=flat,
        dst=flat._replace(address=64),
        scale=flat._replace(address=0x100080),
        src_dtype=6,
        dst_dtype=0x83,
        scale_dtype=3,
        channels=64,
        scale_channels=36,
    )
    found = resolve(scaled, "scale", "DVE", "trn3")
    assert found is not None and [(r.first, r.partitions) for r in found.regions] == [(4, 4), (36, 4)]
    whole = resolve(scaled, "dst", "DVE", "trn3")
    assert whole is not None and [(r.first, r.partitions) for r in whole.regions] == [(0, 64)]
