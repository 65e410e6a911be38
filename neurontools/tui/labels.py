"""The names of engines and queues on the screen."""

from __future__ import annotations

from neurontools.debugger.names import is_engine, short_engine

__all__ = ["label"]


def label(name: str) -> str:
    """Return the short name of an engine in capitals, the name of a queue as it is."""
    return short_engine(name).upper() if is_engine(name) else name
