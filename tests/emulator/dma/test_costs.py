"""The DMA cost table against the published measurements it comes from (hardware.md 4.2, 8.2)."""

from __future__ import annotations

import pytest

from emulator.cost.dma import FIGURES, UNIT, dma_costs
from emulator.dma.rings import share_out
from formats.errors import UnsupportedError

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
    return 128 * nbytes / max(costs.trigger_ps(False), data)


@pytest.mark.parametrize(("nbytes", "relative"), CURVE)
def test_throughput_curve(nbytes: int, relative: float) -> None:
    assert _throughput(nbytes) / _throughput(32768) == pytest.approx(relative, rel=0.10)


def _consumer_ns(trigger: float, engines: int, descriptors: int, nbytes: int, writes: bool = False) -> float:
    """Return the time from a trigger word's start until a consumer starts: word, transfer, 20 ns to the engine."""
    costs = dma_costs("trn2")
    span = (engines - 1) * costs.stagger_ps(writes) + costs.data_ps(descriptors, nbytes, writes)
    return trigger + (costs.start_ps(writes) + span + costs.completion_ps(engines)) / 1000 + 20


def test_one_engine_load_and_store_of_32_kib() -> None:
    # B-1: [4, 4096] bfloat16 on one engine, triggers of 86 ns on Sync and 8 ns on GpSimd.
    costs = dma_costs("trn2")
    assert (costs.start_ps() / 1000, costs.start_ps(True) / 1000) == pytest.approx((764, 768), rel=0.10)
    assert costs.data_ps(4, 32768, False) / 1000 == pytest.approx(1416, rel=0.03)
    assert costs.data_ps(4, 32768, True) / 1000 == pytest.approx(1222, rel=0.03)
    assert costs.completion_ps(1) / 1000 + 20 == pytest.approx(319, rel=0.10)
    assert _consumer_ns(86, 1, 4, 32768) == pytest.approx(2741, rel=0.10)


def test_sixteen_engines_of_2_kib() -> None:
    # B-2: [128, 128] bfloat16, 8 descriptors of 256 bytes on each engine, trigger of 8 ns on GpSimd.
    costs = dma_costs("trn2")
    for writes, span in ((False, 468), (True, 239)):
        data = costs.data_ps(8, 2048, writes)
        assert 81 <= data / 1000 <= 164
        assert (data + 15 * costs.stagger_ps(writes)) / 1000 == pytest.approx(span, rel=0.10)
    assert costs.start_ps() / 1000 == pytest.approx(737, rel=0.10)
    assert _consumer_ns(8, 16, 8, 2048) == pytest.approx(1500, rel=0.10)
    assert _consumer_ns(8, 16, 8, 2048, True) == pytest.approx(38649 - 37421, rel=0.10)


def test_descriptors_of_4_kib_in_public_profiles() -> None:
    # Profiles of formats.md 1.1, [128, 1024] float32: end of the trigger to the last semaphore write, stores on Scalar
    # 2,055 ns, loads on Sync 2,775 to 2,815.
    costs = dma_costs("trn2")
    for writes, published in ((True, 2055), (False, 2790)):
        last = costs.start_ps(writes) + 15 * costs.stagger_ps(writes) + costs.data_ps(8, 32768, writes)
        assert last / 1000 == pytest.approx(published, rel=0.10)


def test_trn1_engine() -> None:
    # B-6: 32 KiB on one engine in 1,810 ns.
    assert dma_costs("trn1").data_ps(1, 32768, False) / 1000 == pytest.approx(1810, rel=0.01)


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
    assert sum(steps) + UNIT.trigger_ps(False) == 1


@pytest.mark.parametrize(("pieces", "engines"), [(4, 1), (8, 1), (9, 2), (128, 16), (512, 16), (1, 1), (1000, 16)])
def test_pieces_are_shared_out(pieces: int, engines: int) -> None:
    shares = share_out(pieces, 8)
    assert len(shares) == engines
    assert [p for first, last in shares for p in range(first, last)] == list(range(pieces))
