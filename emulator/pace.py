"""The state of this process while words are carried out: what NumPy warns of, and how often garbage is looked for."""

from __future__ import annotations

import gc
from threading import Lock

import numpy as np

__all__ = ["at_pace", "seldom_collected"]

# A run makes many objects that live until its end, and the program is many more: to walk through all of them over and
# over takes as long as the run itself.  The young ones are still looked through, when they are so many: notes of a run
# that is checked, and what the checks make of them, stay as well, a hundred thousand of six thousand words.
_YOUNG = 500_000
# Elements of NumPy's buffers.  Where rows of operands lie apart, as those of every tile do, it copies as many rows as
# fit into buffers of its own before it computes, though nothing is to be converted; rows as long as a buffer stay where
# they are, which takes half as long.  Shorter buffers would make conversions slower.
_BUFFERED = 1024
_NEVER = 1 << 30
_lock = Lock()
_inside: list[tuple[int, int, int]] = []  # what the thresholds were before each of those that are under way


class seldom_collected:  # noqa: N801  (a context manager, as np.errstate is: made for each run, however short)
    """Make many objects that stay: no collection of all garbage starts by itself."""

    def __enter__(self) -> None:
        with _lock:
            found = gc.get_threshold()
            _inside.append(found)
            if len(_inside) == 1 and found[0] > 0:
                gc.set_threshold(max(found[0], _YOUNG), found[1], _NEVER)

    def __exit__(self, *error: object) -> None:
        with _lock:
            if len(_inside) == 1:
                gc.set_threshold(*_inside[0])
            # Runs of several threads end in any order: the oldest thresholds are those of the process.
            _inside.pop()


class at_pace(seldom_collected):  # noqa: N801  (as above)
    """Carry out words: overflow and NaN are results, and no collection of all garbage starts by itself."""

    def __enter__(self) -> None:
        super().__enter__()
        self._ignored = np.errstate(all="ignore")
        self._ignored.__enter__()
        self._buffered = np.setbufsize(_BUFFERED)

    def __exit__(self, *error: object) -> None:
        np.setbufsize(self._buffered)
        self._ignored.__exit__(None, None, None)
        super().__exit__()
