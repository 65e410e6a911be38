"""What counts as 100 % of a core's memory bandwidth; every number with its source."""

from __future__ import annotations

from emulator.arch import Fact, arch_of

__all__ = ["HBM", "dma_peak", "hbm_peak"]

HBM: dict[str, Fact] = {
    "trn1": Fact(410.0, "GB/s per core", "observed", "hardware.md 2.1: 130.46 GB/s shown as 31.82 %"),
    "inf2": Fact(410.0, "GB/s per core", "inferred", "hardware.md 2.1 for trn1"),
    "trn2": Fact(716.0, "GB/s per core", "observed", "hardware.md 2.1: peak_flops_bw_ratio 109.837"),
    "trn3": Fact(612.5, "GB/s per core", "inferred", "runtime.md 1.1: 4.9 TB/s over eight cores"),
}
# The bandwidth guide's bytes per nanosecond of one of a core's DMA engines.
_ENGINE: dict[str, Fact] = {
    "trn1": Fact(17.0, "B/ns", "documented", "hardware.md 4.1"),
    "inf2": Fact(17.0, "B/ns", "inferred", "hardware.md 4.1 for trn1"),
    "trn2": Fact(23.0, "B/ns", "documented", "hardware.md 4.1"),
    "trn3": Fact(33.0, "B/ns", "documented", "hardware.md 4.1"),
}


def hbm_peak(target: str) -> float:
    """Return the GB/s of device memory that count as 100 % for one core."""
    return HBM[target].value


def dma_peak(target: str, cores: int) -> float:
    """Return the GB/s that the DMA engines of so many cores move together."""
    return arch_of(target).dma_engines.value * cores * _ENGINE[target].value
