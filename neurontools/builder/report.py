"""Figures about a build: what was emitted, how it is ordered, what it occupies."""

from __future__ import annotations

from formats.named_tuple import NamedTuple

__all__ = ["CoreReport", "Report"]


class CoreReport(NamedTuple):
    """One core. Bytes are per partition for `sbuf_bytes` and `psum_bytes` (high water marks), else totals.

    `waits` counts conditions, `wait_words` the extra words that carry them, `instructions` the words that do something.
    """

    words: dict[str, int]
    instructions: int
    waits: int
    wait_words: int
    sbuf_bytes: int
    psum_bytes: int
    hbm_bytes: dict[str, int]
    transfers: int
    transfer_bytes: int


class Report(NamedTuple):
    """What the builder did, per core."""

    name: str
    target: str
    extended: bool
    cores: tuple[CoreReport, ...]
