"""Figures about a build: what was emitted, how it is ordered, what it occupies."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["CoreReport", "Report"]


@dataclass(frozen=True)
class CoreReport:
    """One core. Bytes are per partition for `sbuf_bytes` and `psum_bytes` (high water marks), else totals.

    `waits` counts conditions, `wait_words` the extra words that carry them, `instructions` the words that do something.
    """

    words: dict[str, int] = field(default_factory=dict)
    instructions: int = 0
    waits: int = 0
    wait_words: int = 0
    sbuf_bytes: int = 0
    psum_bytes: int = 0
    hbm_bytes: dict[str, int] = field(default_factory=dict)
    transfers: int = 0
    transfer_bytes: int = 0


@dataclass(frozen=True)
class Report:
    """What the builder did, per core."""

    name: str
    target: str
    extended: bool
    cores: tuple[CoreReport, ...] = ()
