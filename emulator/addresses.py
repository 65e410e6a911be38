"""Device addresses: where cores, their memories, semaphores and DMA doorbells stand in the address space of a chip."""

from __future__ import annotations

from dataclasses import dataclass

from emulator.arch import ARCHS
from emulator.errors import LoadError
from formats.named_tuple import NamedTuple
from formats.neuron_core import (
    DMA_ENGINES,
    DMA_RINGS,
    PARTITIONS,
    PSUM_BASE,
    PSUM_PARTITION_STRIDE,
    SBUF_PARTITION_STRIDE,
    SYNC_COUNT,
)

__all__ = ["ADDRESS_MAPS", "AddressMap", "Location", "address_map"]

_WINDOW_SIZE = 0x4000000  # of one core on gen2; gen3 windows are larger and hold the same 64 MiB at their start

# Offsets in the core's synchronisation window, 4 bytes per number. Source: formats.md 7.1.
_EVENTS = 0x2700000
_SEMAPHORES = {"read": 0x2701000, "set": 0x2701400, "increment": 0x2701800, "decrement": 0x2701C00}

# UDMA registers of one engine. Source: formats.md 8.2.
_S2M = 0x20000
_FIRST_RING, _RING_STRIDE, _TAIL_INCREMENT = 0x1000, 0x1000, 0x38
_UDMA_SIZE = 0x40000


@dataclass(frozen=True, slots=True)
class Location:
    """What a device address names.

    `kind` is "hbm" (index: stack, offset), "sbuf" or "psum" (index: partition, offset: byte), "semaphore" (index,
    action), "event" (index), "doorbell" (index: engine * 16 + ring, action "m2s" or "s2m"), "register" or "none".
    """

    kind: str
    core: int = 0
    index: int = 0
    offset: int = 0
    action: str = ""


class AddressMap(NamedTuple):
    """Bases of one generation. `sync_offset` leads from a core's base to its semaphore window. Source: formats.md 7."""

    generation: str
    hbm: tuple[tuple[int, int], ...]
    cores: tuple[int, ...]
    cores_per_hbm: int
    sync_offset: int
    dma: tuple[int, ...]
    dma_stride: int
    dma_cores: int
    provenance: str
    cite: str

    def core_base(self, core: int) -> int:
        """Return the base of a core's window.

        Raises LoadError where the chip has no such core.
        """
        if not 0 <= core < len(self.cores):
            raise LoadError(f"{self.generation} has no core {core} on one device (0 to {len(self.cores) - 1})")
        return self.cores[core]

    def hbm_of(self, core: int) -> int:
        """Return the stack that a core's tensors live in."""
        return min(core // self.cores_per_hbm, len(self.hbm) - 1)

    def sbuf(self, core: int, partition: int = 0, byte: int = 0) -> int:
        """Return the device address of a byte of SBUF."""
        return self.core_base(core) + partition * SBUF_PARTITION_STRIDE + byte

    def semaphore(self, core: int, index: int, action: str = "increment") -> int:
        """Return the address of a semaphore's register; `action` is read, set, increment or decrement."""
        return self.core_base(core) + self.sync_offset + _SEMAPHORES[action] + 4 * index

    def event(self, core: int, index: int) -> int:
        """Return the address of an event's register."""
        return self.core_base(core) + self.sync_offset + _EVENTS + 4 * index

    def doorbell(self, core: int, engine: int, ring: int, side: str = "m2s") -> int:
        """Return the tail increment register of a ring; side "m2s" reads memory, "s2m" writes it."""
        base = self.dma[core // self.dma_cores] + (core % self.dma_cores * DMA_ENGINES + engine) * self.dma_stride
        return base + (_S2M if side == "s2m" else 0) + _FIRST_RING + ring * _RING_STRIDE + _TAIL_INCREMENT

    def locate(self, address: int) -> Location:
        """Return what stands at a device address."""
        for core, base in enumerate(self.cores):
            if base <= address < base + _WINDOW_SIZE:
                found = self._in_core(core, address - base)
                if found.kind != "none":
                    return found
            if self.sync_offset and base + self.sync_offset <= address < base + self.sync_offset + _WINDOW_SIZE:
                return self._in_sync(core, address - base - self.sync_offset)
        for stack, (base, size) in enumerate(self.hbm):
            if base <= address < base + size:
                return Location("hbm", index=stack, offset=address - base)
        return self._in_dma(address)

    def _in_core(self, core: int, offset: int) -> Location:
        if offset < PSUM_BASE:
            return Location("sbuf", core, offset // SBUF_PARTITION_STRIDE, offset % SBUF_PARTITION_STRIDE)
        if offset < PSUM_BASE + PARTITIONS * PSUM_PARTITION_STRIDE:
            partition, byte = divmod(offset - PSUM_BASE, PSUM_PARTITION_STRIDE)
            return Location("psum", core, partition, byte)
        return self._in_sync(core, offset) if not self.sync_offset else Location("none")

    @staticmethod
    def _in_sync(core: int, offset: int) -> Location:
        if _EVENTS <= offset < _EVENTS + 4 * SYNC_COUNT:
            return Location("event", core, (offset - _EVENTS) // 4)
        for action, start in _SEMAPHORES.items():
            if start <= offset < start + 4 * SYNC_COUNT:
                return Location("semaphore", core, (offset - start) // 4, action=action)
        return Location("register", core, offset=offset)

    def _in_dma(self, address: int) -> Location:
        for group, base in enumerate(self.dma):
            number, offset = divmod(address - base, self.dma_stride)
            if not 0 <= number < self.dma_cores * DMA_ENGINES or not 0 <= offset < _UDMA_SIZE:
                continue
            core = group * self.dma_cores + number // DMA_ENGINES
            side, within = ("s2m", offset - _S2M) if offset >= _S2M else ("m2s", offset)
            ring, register = divmod(within - _FIRST_RING, _RING_STRIDE)
            if 0 <= ring < DMA_RINGS and register == _TAIL_INCREMENT:
                return Location("doorbell", core, number % DMA_ENGINES * DMA_RINGS + ring, action=side)
            return Location("register", core, number % DMA_ENGINES, offset)
        return Location("none")


def _hbm(target: str, *bases: int) -> tuple[tuple[int, int], ...]:
    return tuple((base, ARCHS[target].hbm_bytes.whole) for base in bases)


_GEN3_HBM = 0x0, 0x4000000000, 0x800000000000, 0x804000000000
_GEN3_CORES = (
    0x2000000000,
    0x3000000000,
    0x6000000000,
    0x7000000000,
    0x802000000000,
    0x803000000000,
    0x806000000000,
    0x807000000000,
)
_GEN3_DMA = (0x1002000000, 0x5004000000, 0x801002000000, 0x805004000000)

# Which DMA engines belong to which core: gen2 has one group of 16 per core; on gen3 a doorbell of core 4 names engine 5
# of group 2, one of core 5 names engine 21 of it (isa.md 10.3), so a group holds two cores.
ADDRESS_MAPS: dict[str, AddressMap] = {
    "gen2": AddressMap(
        "gen2",
        _hbm("trn1", 0x0, 0x1000000000),
        (0xFFFC0000000, 0xFFFC4000000),
        1,
        0,
        (0xFFFF0000000, 0xFFFF0700000),
        0x40000,
        1,
        "documented",
        "formats.md 7.2 (V2)",
    ),
    "gen3": AddressMap(
        "gen3",
        _hbm("trn2", *_GEN3_HBM),
        _GEN3_CORES,
        2,
        0x800000000,
        _GEN3_DMA,
        0x100000,
        2,
        "documented",
        "formats.md 7.1, 7.2 (V3); cross-checked with loaded words",
    ),
    # The gen4 driver keeps the structure of gen3; its addresses are not published here, so gen3's stand in, with
    # stacks of its own size.
    "gen4": AddressMap(
        "gen4",
        _hbm("trn3", *_GEN3_HBM),
        _GEN3_CORES,
        2,
        0x800000000,
        _GEN3_DMA,
        0x100000,
        2,
        "inferred",
        "formats.md 7.2: V4 keeps V3's structure",
    ),
}


def address_map(generation: str) -> AddressMap:
    """Return the map of a generation ("gen2", "gen3", "gen4").

    Raises LoadError for one that is not emulated.
    """
    try:
        return ADDRESS_MAPS[generation]
    except KeyError:
        raise LoadError(f"no device address map for {generation}") from None
