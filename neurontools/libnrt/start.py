"""Where the compiled library enters Python: `start` is called once, before the first function does anything."""

from __future__ import annotations

import threading
from typing import Any

from neurontools.libnrt import calls_async, calls_sendrecv, calls_session, calls_tensors, calls_traces
from neurontools.libnrt.calls import CALLS
from neurontools.libnrt.library import Library

__all__ = ["PARTS", "start"]

# The modules whose import fills `CALLS`.
PARTS = (calls_session, calls_tensors, calls_async, calls_sendrecv, calls_traces)


# What was started in this process. First calls may come from several threads at once, and a second binding would leave
# the first one's session and handles behind.
_started: list[Library] = []
_starting = threading.Lock()


def start(ffi: Any, lib: Any) -> Library:
    """Bind every function of the library to its Python side, once."""
    with _starting:
        known = next((one for one in _started if one.lib is lib), None)
        if known is None:
            known = Library(ffi, lib, CALLS)
            known.bind()
            _started.append(known)
        return known
