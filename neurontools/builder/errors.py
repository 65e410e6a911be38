"""What can be wrong with a trace."""

from __future__ import annotations

from formats.errors import NeuronError

__all__ = ["AllocationError", "BuildError"]


class BuildError(NeuronError, ValueError):
    """Tell that a trace holds an operation that no instruction word can express; names the kernel line."""


class AllocationError(NeuronError, ValueError):
    """Tell that the tiles which live at one point do not fit on chip; lists them."""
