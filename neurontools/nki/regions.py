"""Memory regions that kernels name, and what the formats call them."""

from __future__ import annotations

import builtins
from enum import Enum
from typing import Any

from neurontools.builder.trace import Space
from neurontools.nki.errors import NkiValidationError
from neurontools.nki.operations import OPERATIONS

__all__ = ["MemoryRegion", "is_hbm", "is_on_chip", "is_psum", "is_sbuf", "named", "region_of"]


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
_WORDS = {"sbuf": MemoryRegion.sbuf, "psum": MemoryRegion.psum, "hbm": MemoryRegion.private_hbm}
_BY_NAME = {region.value: region for region in MemoryRegion} | {"hbm": MemoryRegion.private_hbm}


class named:
    """Let kernels say `sbuf`, `psum` and `hbm` without an import: to the second beta they are words of the language."""

    __slots__ = ("_added",)

    _added: dict[str, MemoryRegion]

    def __enter__(self) -> None:
        names = vars(builtins)
        if names.keys().isdisjoint(_WORDS):
            names.update(_WORDS)
            self._added = _WORDS
        else:  # a name that somebody has put into builtins stays his
            self._added = {name: word for name, word in _WORDS.items() if name not in names}
            names.update(self._added)

    def __exit__(self, *raised: object) -> None:
        names = vars(builtins)
        for name in self._added:
            names.pop(name, None)


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
