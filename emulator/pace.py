"""The state of this process while words are carried out: what NumPy warns of, and how often garbage is looked for."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import numpy as np

__all__ = ["at_pace", "seldom_collected"]

# A run makes many objects that live until its end, and the program is many more: to walk through all of them over and
# over takes as long as the run itself.  The young ones are still looked through.
_YOUNG = 20_000
_NEVER = 1 << 30
_lock = Lock()
_inside: list[tuple[int, int, int]] = []  # what the thresholds were before each of those that are under way


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Make many objects that stay: no collection of all garbage starts by itself."""
    with _lock:
        found = gc.get_threshold()
        _inside.append(found)
        if len(_inside) == 1 and found[0] > 0:
            gc.set_threshold(max(found[0], _YOUNG), found[1], _NEVER)
    try:
        yield
    finally:
        with _lock:
            if len(_inside) == 1:
                gc.set_threshold(*_inside[0])
            # Runs of several threads end in any order: the oldest thresholds are those of the process.
            _inside.pop()


@contextmanager
def at_pace() -> Iterator[None]:
    """Carry out words: overflow and NaN are results, and no collection of all garbage starts by itself."""
    with seldom_collected(), np.errstate(all="ignore"):
        yield
