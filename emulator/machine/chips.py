"""What each chip has outside its cores: memory, DMA engines, CC-cores, links, peaks, every number with its source.

`emulator.arch` holds what a core is made of; a chip that is described and not emulated (Inferentia) is only here.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from emulator.arch import ARCHS, Fact
from emulator.machine.facts import GB, GIB, documented, inferred
from formats.errors import UnsupportedError
from formats.neuron_core import DMA_RINGS, SYNC_COUNT
from formats.targets import Target, resolve_target

__all__ = ["CHIPS", "Chip", "chip_of", "executable"]


@dataclass(frozen=True)
class Chip:
    """One chip as instances carry it; None is what has not been published or what the chip does not have."""

    target: str
    title: str
    core: str
    cores: Fact
    hbm_stacks: Fact
    hbm_bytes: Fact
    hbm_bandwidth: Fact
    dma_engines: Fact
    host_dma_engines: Fact | None
    dma_rings: Fact
    dma_bandwidth: Fact | None
    cc_cores: Fact | None
    cc_cores_per_core: Fact | None
    semaphores: Fact
    events: Fact
    link_generation: Fact
    links: Fact | None
    link_bandwidth: Fact | None
    lnc: Fact
    bf16_tflops: Fact
    fp32_tflops: Fact | None
    fp8_tflops: Fact | None
    int8_tops: Fact | None

    @property
    def facts(self) -> dict[str, Fact]:
        """Return every fact that is known, by name."""
        return {f.name: value for f in fields(self) if isinstance(value := getattr(self, f.name), Fact)}

    @property
    def emulated(self) -> bool:
        """Return whether its cores are emulated, and not only described."""
        return self.target in ARCHS


_CITE = "machine.md 2"


def _n(value: float, unit: str = "per chip") -> Fact:
    return documented(value, unit, _CITE)


def _tera(value: float, unit: str = "TFLOPS") -> Fact:
    return documented(value, unit, _CITE)


def _inside(target: str) -> dict[str, Fact]:
    """Return what `emulator.arch` has of a chip, which the pages about machines say as well."""
    own = ARCHS[target]
    alike = "cores", "hbm_stacks", "hbm_bytes", "dma_rings", "semaphores", "events", "lnc"
    found = {name: documented(own.facts[name].value, own.facts[name].unit, _CITE) for name in alike}
    return {**found, "dma_engines": _n(own.cores.value * own.dma_engines.value)}


def _v2(target: str, title: str, links: int, link_bandwidth: float) -> Chip:
    """Return a chip of NeuronCore-v2; Inferentia2 and Trainium differ in their links."""
    return Chip(
        target=target, title=title, core="NeuronCore-v2", **_inside(target),
        hbm_bandwidth=_n(820 * GIB, "bytes/s per chip"),
        host_dma_engines=_n(2), dma_bandwidth=_n(1000 * GB, "bytes/s per chip"), cc_cores=_n(6), cc_cores_per_core=None,
        link_generation=_n(2, "NeuronLink version"),
        links=_n(links), link_bandwidth=_n(link_bandwidth * GIB, "bytes/s per chip"),
        bf16_tflops=_tera(190), fp32_tflops=_tera(47.5),
        fp8_tflops=_tera(190), int8_tops=_tera(380, "TOPS"),
    )  # fmt: skip


def _v34(
    target: str, title: str, core: str, *, hbm: float, dma: float, link: int, links: int | None,
    link_bandwidth: float, bf16: float, fp32: float, fp8: float,
) -> Chip:  # fmt: skip
    """Return a chip of eight cores and four stacks: Trainium2, Trainium3."""
    return Chip(
        target=target, title=title, core=core, **_inside(target), hbm_bandwidth=_n(hbm * GB, "bytes/s per chip"),
        host_dma_engines=_n(4),
        dma_bandwidth=_n(dma * GB, "bytes/s per chip"), cc_cores=_n(16), cc_cores_per_core=_n(2, "per physical core"),
        link_generation=_n(link, "NeuronLink version"), links=None if links is None else _n(links),
        link_bandwidth=_n(link_bandwidth * GB, "bytes/s per chip"),
        bf16_tflops=_tera(bf16), fp32_tflops=_tera(fp32),
        fp8_tflops=_tera(fp8), int8_tops=None,
    )  # fmt: skip


_INF1 = Chip(
    target="inf1", title="Inferentia", core="NeuronCore-v1", cores=_n(4), hbm_stacks=_n(2),
    hbm_bytes=inferred(4 * GIB, "bytes of DRAM per region", _CITE), hbm_bandwidth=_n(50 * GIB, "bytes/s per chip"),
    dma_engines=_n(12), host_dma_engines=None, dma_rings=_n(DMA_RINGS, "per engine"), dma_bandwidth=None, cc_cores=None,
    cc_cores_per_core=None, semaphores=_n(32, "per core"), events=_n(SYNC_COUNT, "per core"),
    link_generation=_n(1, "NeuronLink version"), links=None, link_bandwidth=_n(32 * GIB, "bytes/s per chip"),
    lnc=_n(1, "physical cores a logical core can have"), bf16_tflops=_tera(64), fp32_tflops=None, fp8_tflops=None,
    int8_tops=_tera(128, "TOPS"),
)  # fmt: skip

CHIPS: dict[str, Chip] = {
    "inf1": _INF1,
    "inf2": _v2("inf2", "Inferentia2", 2, 192),
    "trn1": _v2("trn1", "Trainium", 4, 384),
    "trn2": _v34("trn2", "Trainium2", "NeuronCore-v3", hbm=2900, dma=3500, link=3, links=4,
                 link_bandwidth=1280, bf16=667, fp32=181, fp8=1299),
    "trn3": _v34("trn3", "Trainium3", "NeuronCore-v4", hbm=4900, dma=4900, link=4, links=None,
                 link_bandwidth=2560, bf16=671, fp32=183, fp8=2517),
}  # fmt: skip


def chip_of(target: str | Target) -> Chip:
    """Return the chip that a target names; FormatError for an unknown name."""
    return CHIPS[resolve_target(target).name]


def executable(target: str | Target) -> Chip:
    """Return a chip whose cores are emulated; UnsupportedError for one that is only described."""
    chip = chip_of(target)
    if not chip.emulated:
        raise UnsupportedError(
            f"{chip.title} ({chip.core}) is described, not executed: its instructions have no public description"
        )
    return chip
