"""Importing NumPy whole: a Ctrl-C inside its C parts would come out as a broken installation."""

from __future__ import annotations

import signal

__all__ = ["import_numpy"]


def import_numpy() -> None:
    """Import NumPy with Ctrl-C held back; one that was pressed meanwhile is delivered at the end."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows has no masks
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        import emulator  # deferred: start-up  # noqa: F401, I001  settles NumPy's threads, which must be done before its import
        import ml_dtypes  # noqa: F401
        import numpy  # noqa: F401
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
