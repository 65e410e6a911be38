"""What each chip is made of: sizes, counts and clocks, every number a fact with its source."""

from __future__ import annotations

from formats.errors import UnsupportedError
from formats.named_tuple import NamedTuple
from formats.neuron_core import (
    DMA_ENGINES,
    DMA_RINGS,
    MOVING_COLUMNS,
    PARTITIONS,
    PSUM_BANK_BYTES,
    PSUM_BYTES,
    PSUM_FP32,
    SBUF_BYTES,
    SYNC_COUNT,
)
from formats.targets import Target, resolve_target

__all__ = ["ARCHS", "Arch", "Fact", "arch_of"]


class Fact(NamedTuple):
    """One number, its unit, how it is known and where it is written."""

    value: float
    unit: str
    provenance: str
    cite: str

    @property
    def whole(self) -> int:
        """Return the value as an integer."""
        return int(self.value)


class Arch(NamedTuple):
    """One chip as the emulator builds it; sizes are per core and, for memories, per partition."""

    target: str
    generation: str
    partitions: Fact
    sbuf_bytes: Fact
    psum_bytes: Fact
    psum_bank: Fact
    matmul_banks: Fact
    semaphores: Fact
    events: Fact
    registers: Fact
    clock_pe: Fact
    clock_vector: Fact
    clock_scalar: Fact
    clock_gpsimd: Fact
    dma_engines: Fact
    dma_rings: Fact
    cores: Fact
    hbm_stacks: Fact
    hbm_bytes: Fact
    lnc: Fact

    @property
    def facts(self) -> dict[str, Fact]:
        """Return every fact by name."""
        return {name: value for name, value in self._asdict().items() if isinstance(value, Fact)}

    def clock_ghz(self, engine: str) -> float:
        """Return the clock of an engine in GHz; the Sync engine runs with the Scalar engine's."""
        clocks = {"PE": self.clock_pe, "DVE": self.clock_vector, "Pool": self.clock_gpsimd}
        return clocks.get(engine, self.clock_scalar).value


_GIB = 1 << 30
_DOC = "documented"


def _arch(
    target: str,
    generation: str,
    *,
    clocks: tuple[float, float, float, float],
    cores: int,
    stacks: int,
    hbm: int,
    lnc: int,
) -> Arch:
    """Return one chip from what differs between chips."""
    pe, vector, scalar, gpsimd = (Fact(clock, "GHz", _DOC, "hardware.md 3.1") for clock in clocks)
    return Arch(
        target=target,
        generation=generation,
        partitions=Fact(PARTITIONS, "partitions", _DOC, "hardware.md 2.1"),
        sbuf_bytes=Fact(SBUF_BYTES[generation], "bytes per partition", _DOC, "hardware.md 2.1"),
        psum_bytes=Fact(PSUM_BYTES, "bytes per partition", _DOC, "hardware.md 2.1"),
        psum_bank=Fact(PSUM_BANK_BYTES, "bytes per partition", _DOC, "hardware.md 2.1"),
        matmul_banks=Fact(
            MOVING_COLUMNS[generation] // PSUM_FP32, "banks one matmul may span", _DOC, "hardware.md 2.1"
        ),
        semaphores=Fact(SYNC_COUNT, "per core", _DOC, "formats.md 7.2"),
        events=Fact(SYNC_COUNT, "per core", _DOC, "formats.md 7.2"),
        # Programs get 64; loader words use R130 and R131, so the index space of words is larger (isa.md 15).
        registers=Fact(256, "32-bit registers per engine", "inferred", "isa.md 3, 15"),
        clock_pe=pe,
        clock_vector=vector,
        clock_scalar=scalar,
        clock_gpsimd=gpsimd,
        dma_engines=Fact(DMA_ENGINES, "per core", _DOC, "hardware.md 4.1"),
        dma_rings=Fact(DMA_RINGS, "per engine", _DOC, "hardware.md 4.1"),
        cores=Fact(cores, "per chip", _DOC, "hardware.md 1.1"),
        hbm_stacks=Fact(stacks, "per chip", _DOC, "hardware.md 1.1"),
        hbm_bytes=Fact(hbm, "bytes per stack", _DOC, "hardware.md 1.1"),
        lnc=Fact(lnc, "physical cores a logical core can have", _DOC, "hardware.md 1.5"),
    )


# Clocks: Tensor, Vector, Scalar, GpSimd.
_V2, _V3, _V4 = (2.8, 1.12, 1.4, 1.4), (2.4, 0.96, 1.2, 1.2), (2.4, 1.2, 1.2, 1.2)

ARCHS: dict[str, Arch] = {
    "trn1": _arch("trn1", "gen2", clocks=_V2, cores=2, stacks=2, hbm=16 * _GIB, lnc=1),
    "inf2": _arch("inf2", "gen2", clocks=_V2, cores=2, stacks=2, hbm=16 * _GIB, lnc=1),
    "trn2": _arch("trn2", "gen3", clocks=_V3, cores=8, stacks=4, hbm=24 * _GIB, lnc=2),
    "trn3": _arch("trn3", "gen4", clocks=_V4, cores=8, stacks=4, hbm=36 * _GIB, lnc=2),
}


def arch_of(target: str | Target) -> Arch:
    """Return the chip that a target names; UnsupportedError for one that is described but not emulated."""
    resolved = resolve_target(target)
    try:
        return ARCHS[resolved.name]
    except KeyError:
        raise UnsupportedError(f"{resolved.name} is described, not emulated") from None
