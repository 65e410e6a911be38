"""What tensors, operators and regions ask of modules above them, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["OPERATIONS"]

OPERATIONS: dict[str, Callable[..., Any]] = {}
"""Functions of tiles (`add`, `assign`, `ndarray`, ...); the modules that define them fill them in when imported."""
