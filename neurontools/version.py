"""The version of this project: the one place that says it."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
