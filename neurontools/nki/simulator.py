"""`nki.simulator`: the entry point that serving packages call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neurontools.nki.kernel import simulate

__all__ = ["simulate_kernel"]


def simulate_kernel(func: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None, _lnc: int = 1) -> Any:
    """Run `func` on the emulator with `_lnc` cores and return its results."""
    kernel = simulate(func)
    return (kernel if _lnc == 1 else kernel[_lnc])(*args, **(kwargs or {}))
