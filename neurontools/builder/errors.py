"""What can be wrong with a trace."""

from __future__ import annotations

from formats.errors import NeuronError

__all__ = ["AllocationError", "BuildError"]


class BuildError(NeuronError, ValueError):
    """An operation of a trace that no instruction word can express; the message names the kernel line."""


class AllocationError(NeuronError, ValueError):
    """Tiles that live at one point and do not fit on chip; the message lists them."""
