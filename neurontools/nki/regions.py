"""Memory regions that kernels name, and what the formats call them."""

from __future__ import annotations

from enum import Enum
from typing import Any

from neurontools.builder.trace import Space
from neurontools.nki.errors import NkiValidationError
from neurontools.nki.operations import OPERATIONS

__all__ = ["MemoryRegion", "is_hbm", "is_on_chip", "is_psum", "is_sbuf", "region_of"]


class MemoryRegion(Enum):
    """Memory region of an NKI tensor."""

    sbuf = "sbuf"
    psum = "psum"
    private_hbm = "private_hbm"
    shared_hbm = "shared_hbm"

    space: Space
    """Physical memory; an attribute that each member gets below."""

    def view(self, dtype: Any, shape: Any, name: str = "") -> Any:
        """Allocate a tensor here, as kernels of the second beta write it: `sbuf.view(dtype=..., shape=...)`."""
        return OPERATIONS["ndarray"](shape, dtype, self, name)


for _region in MemoryRegion:
    _region.space = Space(_region.value.removeprefix("private_").removeprefix("shared_"))
_BY_NAME = {region.value: region for region in MemoryRegion} | {"hbm": MemoryRegion.private_hbm}


def region_of(buffer: Any) -> MemoryRegion:
    """Return the region for a member of MemoryRegion or its name; `hbm` means private_hbm."""
    if buffer.__class__ is MemoryRegion:
        return buffer
    found = _BY_NAME.get(buffer) if isinstance(buffer, str) else None
    if found is None:
        raise NkiValidationError(f"buffer {buffer!r} is none of {', '.join(_BY_NAME)}")
    return found


def is_hbm(buffer: Any) -> bool:
    """Return whether `buffer` is in HBM, shared or private."""
    return region_of(buffer).space is Space.HBM


def is_sbuf(buffer: Any) -> bool:
    """Return whether `buffer` is the state buffer."""
    return region_of(buffer) is MemoryRegion.sbuf


def is_psum(buffer: Any) -> bool:
    """Return whether `buffer` is PSUM."""
    return region_of(buffer) is MemoryRegion.psum


def is_on_chip(buffer: Any) -> bool:
    """Return whether `buffer` is SBUF or PSUM."""
    return region_of(buffer).space is not Space.HBM
