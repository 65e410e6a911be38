"""Where the compiled library enters Python: `start` is called once, before the first function does anything."""

from __future__ import annotations

from typing import Any

from neurontools.libnrt import calls_async, calls_sendrecv, calls_session, calls_tensors, calls_traces
from neurontools.libnrt.calls import CALLS
from neurontools.libnrt.library import Library

__all__ = ["PARTS", "start"]

# The modules whose import fills `CALLS`.
PARTS = (calls_session, calls_tensors, calls_async, calls_sendrecv, calls_traces)


def start(ffi: Any, lib: Any) -> Library:
    """Bind every function of the library to its Python side."""
    library = Library(ffi, lib, CALLS)
    library.bind()
    return library
