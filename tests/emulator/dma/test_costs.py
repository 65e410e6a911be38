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


def test_one_engine_load_and_store_of_32_kib() -> None:
    # B-1: [4, 4096] bfloat16, load 1,416 ns and store 1,222 ns of data; trigger to semaphore 2,723 ns.
    costs = dma_costs("trn2")
    assert costs.data_ps(4, 32768, False) / 1000 == pytest.approx(1416, rel=0.03)
    assert costs.data_ps(4, 32768, True) / 1000 == pytest.approx(1222, rel=0.03)
    whole = costs.start_ps + costs.first_byte_ps() + costs.data_ps(4, 32768, False) + costs.completion_ps(1)
    assert whole / 1000 == pytest.approx(2723, rel=0.10)


def test_sixteen_engines_of_2_kib() -> None:
    # B-2: [128, 128] bfloat16, trigger 33,302, last semaphore 34,782; one engine is busy 81 to 164 ns.
    costs = dma_costs("trn2")
    data = costs.data_ps(8, 2048, False)
    assert 81 <= data / 1000 <= 164
    whole = costs.start_ps + costs.first_byte_ps() + data + costs.completion_ps(16)
    assert whole / 1000 == pytest.approx(34782 - 33302, rel=0.10)
    # The store of the same tile: trigger 37,421, last semaphore 38,649.
    data = costs.data_ps(8, 2048, True)
    whole = costs.start_ps + costs.first_byte_ps(True) + data + costs.completion_ps(16)
    assert whole / 1000 == pytest.approx(38649 - 37421, rel=0.10)


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
    assert UNIT.start_ps + UNIT.data_ps(9, 1 << 20, True) + UNIT.completion_ps(16) + UNIT.trigger_ps(False) == 1


@pytest.mark.parametrize(("pieces", "engines"), [(4, 1), (8, 1), (9, 2), (128, 16), (512, 16), (1, 1), (1000, 16)])
def test_pieces_are_shared_out(pieces: int, engines: int) -> None:
    shares = share_out(pieces, 8)
    assert len(shares) == engines
    assert [p for first, last in shares for p in range(first, last)] == list(range(pieces))
