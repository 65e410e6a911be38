"""What the builder has to know about each generation, as data with its source."""

from __future__ import annotations

from functools import cache

from formats.errors import UnsupportedError
from formats.named_tuple import NamedTuple
from formats.neuron_core import DMA_ENGINES, PSUM_BANK_BYTES, PSUM_BYTES, SBUF_BYTES, SBUF_TAKEN
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
        return _rings_from(self.first_semaphore)


@cache
def _rings_from(first: int) -> tuple[int, ...]:
    return tuple(range(first, first + DMA_ENGINES))


# what def.json of gen3 gives `qPoolDynamic` of each partition, from byte 0 (formats.md 3.5)
DGE_SCRATCH = (0, 16384)


class Chip(NamedTuple):
    """One generation. Bytes are per partition; `direct`, `listed`: queues of d4 and of c1 words by engine."""

    generation: str
    sbuf_first: int
    sbuf_end: int
    sbuf_bytes: int
    marker: bool
    transpose_mode: bool
    direct: dict[str, QueueFacts]
    listed: dict[str, QueueFacts]
    psum_bytes: int = PSUM_BYTES
    psum_bank: int = PSUM_BANK_BYTES


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
        engine: QueueFacts(name, "in", engine, owner, first + DMA_ENGINES * i)
        for i, (engine, name, owner) in enumerate(names)
    }


# Where gen2 has no direct words, indirect ones still need a queue of their own; ours.
INDIRECT = QueueFacts("qPoolDynamic", "dynamic", "Pool", "pool", 56, DGE_SCRATCH)


def _chip(generation: str, direct: dict[str, QueueFacts], first_listed: int) -> Chip:
    size, (before, behind) = SBUF_BYTES[generation], SBUF_TAKEN[generation]
    # Word 1 of a stream is cc (isa.md 1), and PE transposes as such (isa.md 11), on gen3; gen4 by analogy.
    newer = generation != "gen2"
    return Chip(generation, before, size - behind, size, newer, newer, direct, _listed(first_listed))


CHIPS: dict[str, Chip] = {
    "gen2": _chip("gen2", {}, 8),
    "gen3": _chip("gen3", _DIRECT, 56),
    "gen4": _chip("gen4", _DIRECT, 56),
}


def chip_of(target: Target) -> Chip:
    """Return the facts of a target's generation; one that is not emulated is an UnsupportedError."""
    try:
        return CHIPS[target.generation]
    except KeyError:
        raise UnsupportedError(f"the builder has no layout for {target.name} ({target.generation})") from None
