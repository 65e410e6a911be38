"""The DMA cost table against the published measurements it comes from (hardware.md 4.2, 8.2)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from emulator.cost.dma import FIGURES, UNIT, dma_costs
from emulator.device import Device
from emulator.dma.rings import share_out
from formats.errors import UnsupportedError
from formats.neff import Descriptor
from tests.emulator.dma_programs import PARTITION, gen2, trigger

# hardware.md 4.2: bytes per partition (128 partitions), throughput relative to 32 KiB.
CURVE = [
    (32, 0.014),
    (64, 0.026),
    (128, 0.050),
    (256, 0.103),
    (512, 0.207),
    (1024, 0.422),
    (2048, 0.813),
    (4096, 0.966),
    (8192, 0.983),
    (16384, 0.990),
    (32768, 1.000),
]


def _throughput(nbytes: int) -> float:
    """Return bytes per picosecond of many transfers of 128 rows on one queue."""
    costs = dma_costs("trn2")
    shares = share_out(128, costs.rows_per_engine)
    data = max(costs.data_ps(last - first, (last - first) * nbytes, False) for first, last in shares)
    return 128 * nbytes / max(costs.trigger_ps(), data)


@pytest.mark.parametrize(("nbytes", "relative"), CURVE)
def test_throughput_curve(nbytes: int, relative: float) -> None:
    assert _throughput(nbytes) / _throughput(32768) == pytest.approx(relative, rel=0.10)


def _consumer_ns(
    trigger: float,
    engines: int,
    descriptors: int,
    nbytes: int,
    maker: str,
    writes: bool = False,
) -> float:
    """Return the time from a trigger word's start until a consumer starts: word, transfer, 36 ns to the engine."""
    costs = dma_costs("trn2")
    data = costs.data_ps(descriptors, nbytes, writes) + (0 if writes else costs.fill_ps)
    span = (engines - 1) * costs.stagger_ps(writes) + data
    return trigger + (costs.start_ps(writes, maker) + span + costs.completion_ps(engines)) / 1000 + 36


def test_one_engine_load_and_store_of_32_kib() -> None:
    # B-1: [4, 4096] bfloat16 on one engine, triggers of 86 ns on Sync and 8 ns on GpSimd.
    costs = dma_costs("trn2")
    for word, writes, published in ((86, False, 764), (8, True, 768)):
        assert word + costs.start_ps(writes, "prebuilt") / 1000 == pytest.approx(published, rel=0.10)
    assert (costs.data_ps(4, 32768, False) + costs.fill_ps) / 1000 == pytest.approx(1416, rel=0.03)
    assert costs.data_ps(4, 32768, True) / 1000 == pytest.approx(1222, rel=0.03)
    assert costs.completion_ps(1) / 1000 + 36 == pytest.approx(319, rel=0.10)
    assert _consumer_ns(86, 1, 4, 32768, "prebuilt") == pytest.approx(2741, rel=0.10)


def test_sixteen_engines_of_2_kib() -> None:
    # B-2: [128, 128] bfloat16, 8 descriptors of 256 bytes on each engine, trigger of 8 ns on GpSimd.
    costs = dma_costs("trn2")
    data = costs.data_ps(8, 2048, False)
    assert 81 <= data / 1000 <= 164
    assert (data + costs.fill_ps + 15 * costs.stagger_ps()) / 1000 == pytest.approx(468, rel=0.10)
    assert (costs.data_ps(8, 2048, True) + 15 * costs.stagger_ps(True)) / 1000 == pytest.approx(239, rel=0.10)
    assert 8 + costs.start_ps(False, "software") / 1000 == pytest.approx(737, rel=0.10)
    assert _consumer_ns(8, 16, 8, 2048, "software") == pytest.approx(1500, rel=0.10)
    assert _consumer_ns(8, 16, 8, 2048, "software", True) == pytest.approx(38649 - 37421, rel=0.10)


@pytest.mark.parametrize(("nbytes", "spacing"), [(256, 14.05), (512, 24.2), (2048, 82.8), (4096, 164.4)])
def test_packets_follow_each_other_as_in_public_profiles(nbytes: int, spacing: float) -> None:
    # Profiles of formats.md 1.1: start to start of a load's packets on one engine behind others, on average.
    assert dma_costs("trn2").descriptor_ps(nbytes) / 1000 == pytest.approx(spacing, rel=0.01)


def test_stores_of_4_kib_in_public_profiles() -> None:
    # [128, 1024] float32 on Scalar: from the end of the trigger 662 to 670 ns to the first data, 1,240 on each engine,
    # 2,055 to the last semaphore write.
    costs = dma_costs("trn2")
    data = costs.data_ps(8, 32768, True)
    assert data / 1000 == pytest.approx(1240, rel=0.01)
    assert (costs.start_ps(True) + 15 * costs.stagger_ps(True) + data) / 1000 == pytest.approx(2055, rel=0.01)


def test_trn1_engine() -> None:
    # C-2: rows of 1 KiB come at 100 GB/s.
    assert 8192 * 16 / (dma_costs("trn1").data_ps(8, 8192, False) / 1000) == pytest.approx(100, rel=0.05)


def test_every_chip_has_every_figure_once_with_a_source() -> None:
    names = {figure.name for figure in FIGURES}
    for target in ("trn1", "inf2", "trn2", "trn3"):
        found = [figure.name for figure in FIGURES if target in figure.targets]
        assert sorted(found) == sorted(names)
    assert all(
        figure.cite and figure.provenance in ("documented", "observed", "inferred", "ours") for figure in FIGURES
    )


def test_a_chip_without_figures_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="inf1"):
        dma_costs("inf1")


def test_unit_costs_only_order() -> None:
    steps = (UNIT.start_ps(), UNIT.stagger_ps(), UNIT.data_ps(9, 1 << 20, True), UNIT.completion_ps(16))
    assert sum(steps) + UNIT.trigger_ps("prebuilt") == 1


@pytest.mark.parametrize(("pieces", "engines"), [(4, 1), (8, 1), (9, 2), (128, 16), (512, 16), (1, 1), (1000, 16)])
def test_pieces_are_shared_out(pieces: int, engines: int) -> None:
    shares = share_out(pieces, 8)
    assert len(shares) == engines
    assert [p for first, last in shares for p in range(first, last)] == list(range(pieces))


def test_semaphores_take_the_writes_of_engines_one_by_one() -> None:
    """Captures: transfers of 96 bytes a row, 16 on their way, end every 200 to 215 ns, whatever engines could do."""
    block = Descriptor(
        source="x", source_offset=0, source_sizes=(96, 128), source_steps=(1, 96),
        target="SB", target_offset=0, target_sizes=(96, 128), target_steps=(1, PARTITION),
        source_dtype="float32", target_dtype="float32",
    )  # fmt: skip
    count = 48
    tensor = {"x": ("float32", (128, 24))}
    blocks = {number: (8 + number % 16, [block]) for number in range(count)}
    words = [trigger(number) for number in range(count)]
    neff = gen2(blocks, words, inputs=tensor, outputs={}, target="trn2")
    device = Device("trn2")
    device.load(neff)
    device.set_inputs({"x": np.ones((128, 24), np.float32)})
    ends, taken = [], None
    while (event := device.step()) is not None:
        if event.kind == "dma":
            ends.append(event.time_ps)
            if len(ends) == 20:
                taken = device.snapshot()
    each = dma_costs("trn2").signal_interval_ps * 16
    assert [later - before for before, later in pairwise(ends[8:])] == [each] * (count - 9)
    assert ends == sorted(ends) and ends[0] < 3_000_000
    assert taken is not None
    device.restore(taken)
    again = ends[:20]
    while (event := device.step()) is not None:
        if event.kind == "dma":
            again.append(event.time_ps)
    assert again == ends
