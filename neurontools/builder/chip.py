"""What the builder has to know about each generation, as data with its source."""

from __future__ import annotations

from typing import NamedTuple

from formats.errors import UnsupportedError
from formats.targets import Target

__all__ = ["CHIPS", "COLLECTIVE", "CORE_BARRIER", "INDIRECT", "PROGRESS", "RECEIVED", "SENT", "Chip", "QueueFacts",
           "chip_of"]  # fmt: skip

# Progress semaphore of each engine. Source: isa.md 3 (4, 5, 6 observed; 3 and 7 by the order of the names: inferred).
PROGRESS: dict[str, int] = {"PE": 5, "Activation": 4, "Pool": 3, "DVE": 6, "SP": 7}

# Semaphores of the exchange between the two cores; ours, beyond every queue's set.
CORE_BARRIER, SENT, RECEIVED = 104, 105, 106

# Semaphore of the first stream of collectives, those of the other three behind it; ours too.
COLLECTIVE = 107


class QueueFacts(NamedTuple):
    """One queue set that an engine owns; a transfer raises one of its semaphores by one per ring."""

    name: str
    kind: str
    engine: str
    owner: str
    first_semaphore: int
    scratch: tuple[int, int] | None = None

    @property
    def semaphores(self) -> tuple[int, ...]:
        """Return the queue's semaphores, one per ring."""
        return tuple(range(self.first_semaphore, self.first_semaphore + RINGS))


# one on each of the 16 DMA engines: a transfer raises its semaphore by 16 (isa.md 3)
RINGS = 16
# what def.json of gen3 gives `qPoolDynamic` of each partition, from byte 0 (formats.md 3.5)
DGE_SCRATCH = (0, 16384)


class Chip(NamedTuple):
    """One generation. Bytes are per partition; `direct`, `listed`: queues of d4 and of c1 words by engine."""

    generation: str
    sbuf_first: int
    sbuf_end: int
    sbuf_bytes: int
    psum_bytes: int
    psum_bank: int
    marker: bool
    transpose_mode: bool
    direct: dict[str, QueueFacts]
    listed: dict[str, QueueFacts]
    cite: str
    provenance: str


# Source: formats.md 3.5 (names, owners, semaphore sets, scratch). The sets of the listed queues of gen3 are ours: its
# public files hold no c1 word. qActIO0 stands by analogy: no public gen2 file lets ACT start a transfer.
_DIRECT = {
    "SP": QueueFacts("qSPDynamicHW", "dynamic", "SP", "sp", 8),
    "Pool": QueueFacts("qPoolDynamic", "dynamic", "Pool", "pool", 24, DGE_SCRATCH),
    "Activation": QueueFacts("qActDynamicHW", "dynamic", "Activation", "act", 40),
}


def _listed(first: int) -> dict[str, QueueFacts]:
    names = (("SP", "qSPIO0", "sp"), ("Pool", "qPoolIO0", "pool"), ("Activation", "qActIO0", "act"))
    return {
        engine: QueueFacts(name, "in", engine, owner, first + RINGS * i)
        for i, (engine, name, owner) in enumerate(names)
    }


# Where gen2 has no direct words, indirect ones still need a queue of their own; ours.
INDIRECT = QueueFacts("qPoolDynamic", "dynamic", "Pool", "pool", 56, DGE_SCRATCH)

# sbuf_first: no engine word of a public file touches the first 16 KiB; sbuf_end: gen3 reserves the last 8 bytes
# (runtime_statebuffer_reservation); gen4 keeps both by analogy.
CHIPS: dict[str, Chip] = {
    "gen2": Chip(
        "gen2",
        0x4000,
        0x30000,
        0x30000,
        0x4000,
        0x800,
        False,
        False,
        {},
        _listed(8),
        "isa.md 4; hardware.md 2.1",
        "observed",
    ),
    "gen3": Chip(
        "gen3",
        0x4000,
        0x37FF8,
        0x38000,
        0x4000,
        0x800,
        True,
        True,
        _DIRECT,
        _listed(56),
        "isa.md 4; hardware.md 2.1",
        "observed",
    ),
    "gen4": Chip(
        "gen4",
        0x4000,
        0x3FFF8,
        0x40000,
        0x4000,
        0x800,
        True,
        True,
        _DIRECT,
        _listed(56),
        "hardware.md 2.1, the rest as gen3",
        "inferred",
    ),
}


def chip_of(target: Target) -> Chip:
    """Return the facts of a target's generation; one that is not emulated is an UnsupportedError."""
    try:
        return CHIPS[target.generation]
    except KeyError:
        raise UnsupportedError(f"the builder has no layout for {target.name} ({target.generation})") from None
