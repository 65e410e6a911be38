"""`neuronxcc.nki.language.constants`: what kernels of the first generation take from there."""

from __future__ import annotations

from typing import Any

from neurontools.nki.dtype import dtype_of

__all__ = ["sizeinbytes"]


def sizeinbytes(dtype: Any) -> int:
    """Return the bytes of an element."""
    return dtype_of(dtype).itemsize
