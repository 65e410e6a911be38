"""The four levels of memory of a core: sizes, rates, who reaches them (machine.md 7)."""

from __future__ import annotations

from emulator.arch import Fact, arch_of
from emulator.machine.chips import chip_of
from emulator.machine.facts import GB, documented, inferred
from formats.named_tuple import NamedTuple
from formats.targets import Target

__all__ = ["Level", "Roof", "levels", "roof"]

_HOST_RATE = 16.0 * GB
_ON_CHIP_RATE = 10_000.0 * GB


class Level(NamedTuple):
    """One memory as a core sees it."""

    name: str
    form: str
    size: Fact
    rate: Fact
    reach: str


class Roof(NamedTuple):
    """What bounds a core: peak operations and bytes of HBM per second, and the intensity at which the two meet."""

    flops: Fact
    bandwidth: Fact

    @property
    def ridge(self) -> float:
        """Return the operations per byte from which the Tensor engine is the bound."""
        return self.flops.value / self.bandwidth.value

    def bound(self, intensity: float) -> float:
        """Return the operations per second that an intensity allows."""
        return min(self.flops.value, intensity * self.bandwidth.value)


def levels(target: str | Target) -> tuple[Level, ...]:
    """Return the memories of one physical core, nearest first; UnsupportedError for a chip that is only described."""
    arch, chip = arch_of(target), chip_of(target)
    share = chip.hbm_bandwidth.value / chip.cores.value
    rows = arch.partitions.whole
    return (
        Level("PSUM", f"{rows} partitions, banks of {arch.psum_bank.whole} bytes",
              documented(rows * arch.psum_bytes.value, "bytes per core", "hardware.md 2.1"),
              documented(_ON_CHIP_RATE, "bytes/s per core, about", "machine.md 7"),
              "written by Tensor; read and written by Vector, Scalar, GpSimd"),
        Level("SBUF", f"{rows} partitions of {arch.sbuf_bytes.whole} bytes",
              documented(rows * arch.sbuf_bytes.value, "bytes per core", "hardware.md 2.1"),
              documented(_ON_CHIP_RATE, "bytes/s per core, about", "machine.md 7"), "every engine, DMA"),
        Level("HBM", "linear", chip.hbm_bytes,
              inferred(share, "bytes/s per core, the chip's shared", "machine.md 2"), "DMA"),
        Level("host", "linear", documented(1 << 40, "bytes per instance, about", "machine.md 7"),
              documented(_HOST_RATE, "bytes/s", "machine.md 7"), "DMA of the host"),
    )  # fmt: skip


def roof(target: str | Target, dtype: str) -> Roof:
    """Return the roofline of a physical core for bf16, fp32 or fp8."""
    arch_of(target)
    chip = chip_of(target)
    peaks = {"bf16": chip.bf16_tflops, "fp32": chip.fp32_tflops, "fp8": chip.fp8_tflops}
    peak, cores = peaks[dtype], chip.cores.value
    assert peak is not None  # every chip that is emulated has all three
    return Roof(inferred(peak.value * 1e12 / cores, "FLOP/s per core", "machine.md 2"),
                inferred(chip.hbm_bandwidth.value / cores, "bytes/s per core", "machine.md 2"))  # fmt: skip
