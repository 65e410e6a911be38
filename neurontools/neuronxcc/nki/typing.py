"""Annotations of the first generation's kernels: `tensor[128, 512]`, `mutable_tensor`, `scalar`."""

from __future__ import annotations

from typing import Any

__all__ = ["immutable", "mutable", "mutable_tensor", "scalar", "tensor"]


class tensor:
    """Annotate a tensor, with its shape or without."""

    def __class_getitem__(cls, shape: Any) -> type:
        return cls


class mutable_tensor(tensor):
    """Annotate a tensor that the kernel writes."""


class mutable(tensor):
    """Annotate what the kernel may write."""


class immutable(tensor):
    """Annotate what the kernel only reads."""


class scalar:
    """Annotate a number."""
