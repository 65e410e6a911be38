"""Rows of what engines and queues did, in a capture and in a run of the emulator."""

from __future__ import annotations

from formats.named_tuple import NamedTuple

__all__ = ["Activity", "Comparison", "CoreActivity", "EngineActivity", "EngineRatio", "QueueActivity"]


class EngineActivity(NamedTuple):
    """The compiler's words that one engine ran, and the time it was active."""

    engine: str
    words: int
    active_ns: float
    active_percent: float


class QueueActivity(NamedTuple):
    """What one DMA queue moved, and the time it was active."""

    queue: str
    packets: int
    bytes: int
    active_ns: float


class CoreActivity(NamedTuple):
    """One core: its program from the first word's begin to the last word's end."""

    core: int
    name: str
    begin_ps: int
    end_ps: int
    program_ns: float
    engines: list[EngineActivity]
    queues: list[QueueActivity]


class Activity(NamedTuple):
    """All cores of a capture or a run, and the time from the first to the last."""

    program_ns: float
    cores: list[CoreActivity]


class EngineRatio(NamedTuple):
    """One engine's active time on both sides; no ratio where it did next to nothing in the capture."""

    core: str
    engine: str
    captured_ns: float
    emulated_ns: float
    ratio: float | None


class Comparison(NamedTuple):
    """The emulator's run beside a capture; ratios are emulated over captured time."""

    outcome: str
    captured_ns: float
    emulated_ns: float
    ratio: float | None
    engines: list[EngineRatio]
    cores: list[CoreActivity]
