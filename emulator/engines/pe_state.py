"""State of the Tensor engine between words: latched stationary tiles, and LOW products that wait for their HIGH."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np

from emulator.dtypes import Array
from formats.isa import Fp32Pass
from formats.named_tuple import NamedTuple
from formats.neuron_core import PARTITIONS
from formats.regions import Pattern, RegionParts, share_bytes

__all__ = [
    "Form",
    "Latch",
    "LatchState",
    "PeFlow",
    "PeSnapshot",
    "PeState",
    "Pending",
    "Place",
    "keep_high",
    "keep_low",
]

# What HIGH keeps of an fp32: all but 12 mantissa bits. The split is a model, the real one is not public (isa.md 11).
_HIGH_BITS = np.uint32(0xFFFFF000)


class Place(NamedTuple):
    """Where an operand lies on the engine's core: `formats.regions.Region` without the core."""

    space: str
    first: int
    partitions: int
    byte: int
    nbytes: int
    pattern: Pattern | None

    def boxes_meet(self, other: Place) -> bool:
        """Return whether the byte ranges of two places in one memory meet, whatever their patterns leave out."""
        return (
            self.first < other.first + other.partitions
            and other.first < self.first + self.partitions
            and self.byte < other.byte + other.nbytes
            and other.byte < self.byte + self.nbytes
        )

    def meets(self, parts: RegionParts) -> bool:
        """Return whether a region of the same core has a byte of the place."""
        space, _, first, partitions, byte, nbytes, pattern = parts
        return (
            space == self.space
            and first < self.first + self.partitions
            and self.first < first + partitions
            and share_bytes(self.byte, self.nbytes, self.pattern, byte, nbytes, pattern)
        )


def keep_high(values: Array, out: Array) -> None:
    """Write the HIGH half of fp32 `values` into `out`; infinities and NaNs stay as they are."""
    kept = (values.view(np.uint32) & _HIGH_BITS).view(np.float32)
    np.copyto(out, np.where(np.isfinite(values), kept, values))


def keep_low(values: Array, out: Array) -> None:
    """Write what `keep_high` leaves of fp32 `values` into `out`: nothing of infinities and NaNs."""
    keep_high(values, out)
    np.subtract(values, out, out)
    np.copyto(out, 0.0, where=~np.isfinite(values))


Form = tuple[int, int, int, int, bool]
"""Rows, columns, row groups, column groups, transposed: what weights and the words that use them agree in."""


Facts = tuple[Form, int, int, tuple[Any, ...]]
"""What a latch knows of its tile besides the values: form, element type, pass and source."""


class LatchState(NamedTuple):
    """The contents of a latch."""

    weights: Array
    bits: Array
    form: Form
    dtype: int
    fp32_pass: int
    source: tuple[Any, ...]


class Latch:
    """One loaded stationary tile: W[k, j] in fp32, or its bits where it was loaded to be transposed.

    `source` is what the loading word read (pattern, element type, size): a LOW and a HIGH load of one source are the
    two halves of one tile.
    """

    __slots__ = ("bits", "dtype", "form", "fp32_pass", "has_bits", "has_weights", "source", "weights")
    NOT_STATE: ClassVar[dict[str, str]] = dict.fromkeys(("has_bits", "has_weights"), "what `renew` has to fill again")

    def __init__(self) -> None:
        self.weights = np.full((PARTITIONS, PARTITIONS), np.nan, np.float32)
        # Read by columns: rows that lie a power of two of bytes apart would push each other out of the cache.
        self.bits = np.zeros((PARTITIONS, PARTITIONS + 16), np.uint32)[:, :PARTITIONS]
        self.has_weights = self.has_bits = False  # whether anything was ever latched in them
        self.form: Form = (PARTITIONS, PARTITIONS, 0x0F, 0x0F, False)
        self.dtype = 0
        self.fp32_pass = int(Fp32Pass.NONE)
        self.source: tuple[Any, ...] = ()

    def renew(self) -> None:
        """Hold no tile, as at the start."""
        if self.has_weights:
            self.weights.fill(np.nan)
        if self.has_bits:
            self.bits.fill(0)
        self.has_weights = self.has_bits = False
        self.form = (PARTITIONS, PARTITIONS, 0x0F, 0x0F, False)
        self.dtype, self.fp32_pass, self.source = 0, int(Fp32Pass.NONE), ()

    def snapshot(self) -> LatchState:
        """Return an independent copy of the contents."""
        return LatchState(self.weights.copy(), self.bits.copy(), *self.facts())

    def facts(self) -> Facts:
        """Return what is known of the tile besides its values."""
        return self.form, self.dtype, self.fp32_pass, self.source

    def restore(self, state: LatchState) -> None:
        """Take over contents that `snapshot` gave; the arrays stay the same objects, since words are bound to them."""
        weights, bits, *_ = state
        self.has_weights = self.has_bits = True
        np.copyto(self.weights, weights)
        np.copyto(self.bits, bits)
        self.restore_facts(state[2:])

    def restore_facts(self, facts: Facts) -> None:
        """Take over what `facts` gave."""
        self.form, self.dtype, self.fp32_pass, self.source = facts


class Pending(NamedTuple):
    """A LOW product that has not reached PSUM: `add(weights)` adds weightsᵀ·X, X being what lies at `moving`.

    The `first` of several finds zeros in its `output`.
    """

    first: bool
    place: Place
    moving: Place
    add: Callable[[Array], None]
    output: Array


class PeFlow(NamedTuple):
    """Which latch was loaded last, "low" or "high", and the products that wait for their HIGH."""

    current: str
    pending: tuple[tuple[tuple[Any, ...], Pending], ...]


class PeSnapshot(NamedTuple):
    """The state of a Tensor engine."""

    low: LatchState
    high: LatchState
    flow: PeFlow


class PeState:
    """Stationary tiles and pending LOW products of one Tensor engine.

    LOW loads go to `low`, all others to `high`, so that both halves of an fp32 tile are at hand; `current` is the last.
    `pending` maps the operands of a LOW MATMUL to its product, in program order; `products` keeps bound operands.
    While nobody looks at PSUM (`defer`), zeros are written when a product is added: one whose HIGH comes needs none.
    """

    __slots__ = ("current", "deferring", "half", "high", "low", "pending", "products", "scratch")
    NOT_STATE: ClassVar = {
        "half": "scratch", "scratch": "scratch", "products": "a cache", "deferring": "nobody looks meanwhile",
    }  # fmt: skip

    def __init__(self) -> None:
        self.low, self.high = Latch(), Latch()
        self.current = self.high
        self.products: dict[tuple[Any, ...], Any] = {}
        self.pending: dict[tuple[Any, ...], Pending] = {}
        self.deferring = False
        self.scratch = np.empty((PARTITIONS, PARTITIONS), np.float32)
        self.half = np.empty((PARTITIONS, PARTITIONS), np.float32)

    def renew(self) -> None:
        """Be as at the start; operands that are bound stay so."""
        self.low.renew()
        self.high.renew()
        self.current = self.high
        self.pending = {}

    def flush(self, place: Place | None = None) -> None:
        """Add the LOW half of pending products to PSUM: of all, or of those whose place meets another."""
        self._add([key for key, entry in self.pending.items() if place is None or entry.place.boxes_meet(place)])

    def settle(self, reads: Iterable[RegionParts], writes: Iterable[RegionParts]) -> bool:
        """Add what others are about to see, or could no longer be added behind them: a LOW word has completed.

        Others read or write bytes of the product, or overwrite its moving operand. Else what they find would depend on
        how far the Tensor engine has come since. Return whether there was anything to add.
        """
        chosen = self.met(reads, writes)
        if chosen:
            with np.errstate(all="ignore"):
                self._add(chosen)
        return bool(chosen)

    def met(self, reads: Iterable[RegionParts], writes: Iterable[RegionParts]) -> list[tuple[Any, ...]]:
        """Return the pending products that `settle` adds."""
        reads, writes = tuple(reads), tuple(writes)
        return [
            key
            for key, entry in self.pending.items()
            if any(entry.place.meets(each) for each in reads)
            or any(entry.place.meets(each) or entry.moving.meets(each) for each in writes)
        ]

    def _add(self, chosen: list[tuple[Any, ...]]) -> None:
        if not chosen:
            return
        keep_low(self.low.weights, self.scratch)
        for key in chosen:
            product = self.pending.pop(key)
            if self.deferring and product.first:
                product.output.fill(0)
            product.add(self.scratch)

    def defer(self, yes: bool) -> None:
        """Begin to write no zeros before they are needed, or have all of them written."""
        self.deferring = yes
        if not yes:
            for product in self.pending.values():
                if product.first:
                    product.output.fill(0)

    def snapshot(self) -> PeSnapshot:
        """Return an independent copy of the state, for `restore`."""
        return PeSnapshot(self.low.snapshot(), self.high.snapshot(), self.flow())

    def restore(self, state: PeSnapshot) -> None:
        """Return to a state that `snapshot` of the same engine gave."""
        self.low.restore(state.low)
        self.high.restore(state.high)
        self.restore_flow(state.flow)

    def flow(self) -> PeFlow:
        """Return the state without the tiles."""
        return PeFlow("low" if self.current is self.low else "high", tuple(self.pending.items()))

    def restore_flow(self, flow: PeFlow) -> None:
        """Return to a state, the tiles left as they are."""
        self.current = self.low if flow.current == "low" else self.high
        self.pending = dict(flow.pending)

    def fingerprint(self) -> bytes:
        """Return bytes that differ where states do."""
        latches = (self.low, self.high)
        facts = (
            self.current is self.low,
            [(key, entry.first) for key, entry in self.pending.items()],
            [(latch.form, latch.dtype, latch.fp32_pass, latch.source) for latch in latches],
        )
        return b"".join(latch.weights.tobytes() + latch.bits.tobytes() for latch in latches) + repr(facts).encode()
