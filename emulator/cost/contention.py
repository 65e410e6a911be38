"""What else the time of a word depends on: shared memory ports, the Tensor engine's clock, whether weights are there.

Engines that want one port at the same time take turns, first come first served. A load of weights that could issue
behind the matmul before it runs in the background; a matmul waits for what is left. Source: hardware.md 2.4, 3.3, and
the profiles named in `figures`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar, NamedTuple

from emulator.cost.figures import figure
from emulator.cost.model import Chip, Cost
from formats.errors import UnsupportedError

__all__ = ["PARTS", "Claim", "Contention", "ContentionState", "Grant"]

PARTS = ("ports", "throttle")
"""What can be left out, by name: sharing of memory ports, the clock of the Tensor engine."""

_BANKS = 8
_SBUF = _BANKS  # the port of SBUF that Vector and GpSimd share, behind those of PSUM's banks
_LIMITED_GHZ = 1.2  # the unit of `throttle_window`


class Claim(NamedTuple):
    """What a word needs: `ports` for `work_ps`, or the array of the Tensor engine; `weights` loads it."""

    ports: tuple[int, ...]
    work_ps: int
    array: bool
    weights: bool = False

    def scaled(self, interval: int, of: int) -> Claim | None:
        """Return the claim of a word that another cost makes take `interval` instead of `of`; None without work."""
        work = self.work_ps * interval // of if of else self.work_ps
        return self._replace(work_ps=work) if work or (self.weights and interval) else None


class Grant(NamedTuple):
    """When the last word that asked for ports had them, for whoever looks for causes."""

    ports: tuple[int, ...]
    start_ps: int
    end_ps: int


class ContentionState(NamedTuple):
    """The state of a core's contention; fields as in `Contention`."""

    free: tuple[int, ...]
    weights: int
    pe_begun: int
    pe_free: int
    window_end: int
    used: int
    slow: bool


class Contention:
    """Who holds what in one core, and how fast the Tensor engine runs; integers in picoseconds throughout."""

    __slots__ = (
        "_factor",
        "_free",
        "_head",
        "_late",
        "_needed",
        "_pe_begun",
        "_pe_free",
        "_slow",
        "_used",
        "_weights",
        "_window",
        "_window_end",
        "generation",
        "granted",
        "ports",
        "throttle",
    )
    NOT_STATE: ClassVar = {
        **dict.fromkeys(("_factor", "_head", "_late", "_needed", "_window", "generation"), "a figure of the chip"),
        **dict.fromkeys(("ports", "throttle"), "which parts of the model are on"),
        "granted": "told to the observers of the word that asked",
    }

    def __init__(self, chip: Chip, without: Collection[str] = ()) -> None:
        self.generation = chip.generation
        self.ports = "ports" not in without
        self._free = [0] * (_SBUF + 1)
        self.granted: Grant | None = None
        self._window = self._window_end = self._needed = self._late = self._used = 0
        self._factor, self._slow = 1.0, False
        # When the weights loaded last are in the array, when the last matmul began and when the next can.
        self._weights = self._pe_begun = self._pe_free = 0
        self._head = round(figure("matmul_head", chip.target) * 1000)
        self.throttle = chip.generation != "gen2" and "throttle" not in without
        if self.throttle:
            self._window = round(figure("throttle_window", chip.target) / _LIMITED_GHZ * 1000)
            self._window_end = round(self._window * figure("throttle_phase", chip.target))
            self._needed = round(self._window * figure("throttle_share", chip.target))
            self._factor = figure("throttle_factor", chip.target)
            self._late = round(figure("throttle_latency", chip.target) * 1000)
            self._slow = True

    def claim(self, engine: str, cost: Cost, banks: Collection[int], sbuf: bool) -> Claim | None:
        """Return what a word of an engine needs, None where it shares nothing; `banks` are those of PSUM it touches."""
        if engine == "PE":
            return Claim((), cost.work_ps, True, cost.weights) if cost.work_ps or cost.weights else None
        if not self.ports or not cost.work_ps:
            return None
        needed: list[int] = []
        if banks and engine in ("DVE", "Activation"):
            # The whole of PSUM is one port on v2, every bank one on later chips.
            needed += range(_BANKS) if self.generation == "gen2" else sorted(banks)
        if sbuf and (engine == "Pool" or (engine == "DVE" and (cost.fast or self.generation == "gen2"))):
            needed.append(_SBUF)
        return Claim(tuple(needed), cost.work_ps, False) if needed else None

    def take(self, claim: Claim, now: int, interval: int, latency: int) -> tuple[int, int]:
        """Grant an issuing word what it needs; return its interval and latency, waiting included."""
        if claim.weights:
            begun = now if now > self._pe_free else self._pe_begun
            self._weights = begun + latency
            self._pe_free = now + interval
            return interval, latency
        if claim.array:
            return self._multiply(claim.work_ps, now, interval, latency)
        free = self._free
        wait = 0
        for port in claim.ports:
            if free[port] - now > wait:
                wait = free[port] - now
        until = now + wait + claim.work_ps
        for port in claim.ports:
            free[port] = until
        self.granted = Grant(claim.ports, now + wait, until)
        return interval + wait, latency + wait

    def _multiply(self, work: int, now: int, interval: int, latency: int) -> tuple[int, int]:
        """Let a matmul wait for its weights, then run at the clock of the moment."""
        wait = max(self._weights - now - self._head, 0)
        if self.throttle:
            interval, latency = self._run(work, now, interval, latency)
        self._pe_begun = now + wait
        self._pe_free = now + wait + interval
        return interval + wait, latency + wait

    def _run(self, work: int, now: int, interval: int, latency: int) -> tuple[int, int]:
        """Account for work of the Tensor engine, at the clock that the use of the window before allows."""
        if now >= self._window_end:
            passed = (now - self._window_end) // self._window
            self._slow = passed > 0 or self._used < self._needed
            self._window_end += (passed + 1) * self._window
            self._used = 0
        self._used += work
        if not self._slow:
            return interval, latency
        more = round(work * (self._factor - 1))
        return interval + more, latency + more + self._late if work else latency

    def snapshot(self) -> ContentionState:
        """Return the state as a value, for `restore`."""
        return ContentionState(
            tuple(self._free), self._weights, self._pe_begun, self._pe_free, self._window_end, self._used, self._slow
        )

    def restore(self, state: ContentionState) -> None:
        """Return to a state that `snapshot` gave."""
        (self._free[:], self._weights, self._pe_begun, self._pe_free, self._window_end, self._used, self._slow) = state


def check_parts(without: Collection[str]) -> frozenset[str]:
    """Return the parts of the model to leave out; an unknown name is an UnsupportedError."""
    for name in without:
        if name not in PARTS:
            raise UnsupportedError(f"no part of the time model is called {name!r}; there are {', '.join(PARTS)}")
    return frozenset(without)
