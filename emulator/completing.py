"""Whose completion an event of a device is: of an engine's word, or of a queue's transfer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from emulator.dma.queues import DmaQueue
from emulator.sequencer import Sequencer

__all__ = ["completing"]


def completing(callback: Callable[[int], object]) -> Sequencer | DmaQueue | None:
    """Return whose completion a callback is, None where it is something else."""
    if getattr(callback, "__func__", None) is Sequencer.complete:
        return callback.__self__  # type: ignore[attr-defined, no-any-return]
    if isinstance(callback, partial) and callback.args and isinstance(callback.args[0], DmaQueue):
        return callback.args[0]
    return None
