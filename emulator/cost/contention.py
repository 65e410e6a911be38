"""What else the time of a word depends on: shared memory ports, the Tensor engine's array, what was done before.

Engines that want one port at the same time take turns, first come first served. Source: hardware.md 2.4, 3.3, and the
profiles named in `figures`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from emulator.cost.cold import GENERATE, Cold, ColdState, Part
from emulator.cost.model import Chip, Cost
from emulator.cost.tensor_array import TensorArray, TensorArrayState
from formats.errors import UnsupportedError
from formats.named_tuple import NamedTuple

__all__ = ["PARTS", "Claim", "Contention", "ContentionState", "Grant"]

PARTS = ("ports", "throttle")
"""What can be left out, by name: sharing of memory ports, the clock of the Tensor engine."""

# banks of PSUM (hardware.md 2.1)
_BANKS = 8
_SBUF = _BANKS  # the port of SBUF that Vector and GpSimd share, behind those of PSUM's banks


class Claim:
    """What a word needs: `ports` for `work_ps`, or the array of the Tensor engine; `weights` loads it.

    `read_ps` is how long strided weights take to read; `cold` is what takes longer the first times: `always` tells
    whether the word needs something later on, too, and `generates` which engine's generator that is.
    """

    __slots__ = ("always", "array", "cold", "generates", "ports", "read_ps", "weights", "work_ps")

    def __init__(
        self,
        ports: tuple[int, ...],
        work_ps: int,
        array: bool,
        weights: bool = False,
        read_ps: int = 0,
        cold: tuple[Part, ...] = (),
    ) -> None:
        self.ports, self.work_ps, self.array = ports, work_ps, array
        self.weights, self.read_ps, self.cold = weights, read_ps, cold
        # How long generators take depends on what was generated before.
        self.generates = next((engine for engine, name in cold if name == GENERATE), "")
        self.always = not cold or bool(self.generates)

    def scaled(self, interval: int, of: int) -> Claim | None:
        """Return the claim of a word that another cost makes take `interval` instead of `of`; None without work."""
        work, read = (each * interval // of if of else each for each in (self.work_ps, self.read_ps))
        if not work and not ((self.weights or self.cold) and interval):
            return None
        return Claim(self.ports, work, self.array, self.weights, read, self.cold)


Grant = tuple[tuple[int, ...], int, int]
"""Ports, and from when until when the last word that asked for some had them, for whoever looks for causes."""


class ContentionState(NamedTuple):
    """The state of a core's contention; fields as in `Contention`."""

    free: tuple[int, ...]
    array: TensorArrayState
    cold: ColdState = ColdState()


class Contention:
    """Who holds what in one core; integers in picoseconds throughout."""

    __slots__ = ("_free", "array", "cold", "generation", "granted", "own_end_ps", "ports")
    NOT_STATE: ClassVar = {
        "generation": "a figure of the chip",
        "ports": "which parts of the model are on",
        "granted": "told to the observers of the word that asked",
        "own_end_ps": "told to the observers of the word that is cold",
    }

    def __init__(self, chip: Chip, without: Collection[str] = ()) -> None:
        self.generation = chip.generation
        self.ports = "ports" not in without
        self._free = [0] * (_SBUF + 1)
        self.granted: Grant | None = None
        self.cold = Cold(chip)
        self.own_end_ps: int | None = None  # of a word that is cold, as profiles show it
        self.array = TensorArray(chip, chip.generation != "gen2" and "throttle" not in without)

    def claim(self, engine: str, cost: Cost, banks: Collection[int], sbuf: bool) -> Claim | None:
        """Return what a word of an engine needs, None where it shares nothing; `banks` are those of PSUM it touches."""
        if engine == "PE":
            if not cost.work_ps and not cost.weights:
                return None
            return Claim((), cost.work_ps, True, cost.weights, cost.read_ps)
        if not cost.work_ps:
            cold = self.cold.parts(engine, cost.cold)
            return Claim((), 0, False, cold=cold) if cold else None
        # Only Vector and Scalar are charged for PSUM: the Tensor engine's writes are a part of its array's time, GpSimd
        # has no path there (hardware.md 2.4).
        needed: list[int] = []
        if self.ports:
            if banks and engine in ("DVE", "Activation"):
                # The whole of PSUM is one port on v2, every bank one on later chips.
                needed += range(_BANKS) if self.generation == "gen2" else sorted(banks)
            if sbuf and (engine == "Pool" or (engine == "DVE" and (cost.fast or self.generation == "gen2"))):
                needed.append(_SBUF)
        return Claim(tuple(needed), cost.work_ps, False) if needed else None

    def take(self, claim: Claim, now: int, interval: int, latency: int, queues_next: bool = False) -> tuple[int, int]:
        """Grant an issuing word what it needs; return its interval and latency, waiting included.

        `queues_next` tells of a matmul that another follows, which waits for its turn.
        """
        if claim.array:
            if claim.weights:
                return self.array.load(claim.work_ps, claim.read_ps, now)
            return self.array.multiply(claim.work_ps, now, queues_next)
        if claim.cold:
            if claim.generates and self.cold.left.isdisjoint(claim.cold):
                longer, shown = self.cold.generate(claim.generates, now, interval)
            else:
                longer, shown = self.cold.take(claim.cold, now, interval)
            if shown is not None:
                self.own_end_ps = now + shown
            elif longer:
                self.own_end_ps = now + latency + longer
            return interval + longer, latency + longer
        start, ports, free = now, claim.ports, self._free
        for port in ports:
            if free[port] > start:
                start = free[port]
        until = start + claim.work_ps
        for port in ports:
            free[port] = until
        self.granted = ports, start, until
        return interval + start - now, latency + start - now

    def snapshot(self) -> ContentionState:
        """Return the state as a value, for `restore`."""
        return ContentionState(tuple(self._free), self.array.snapshot(), self.cold.snapshot())

    def restore(self, state: ContentionState) -> None:
        """Return to a state that `snapshot` gave."""
        self._free[:] = state.free
        self.array.restore(state.array)
        self.cold.restore(state.cold)


def check_parts(without: Collection[str]) -> frozenset[str]:
    """Return the parts of the model to leave out; an unknown name is an UnsupportedError."""
    for name in without:
        if name not in PARTS:
            raise UnsupportedError(f"no part of the time model is called {name!r}; there are {', '.join(PARTS)}")
    return frozenset(without)
