"""SBUF, live."""

from __future__ import annotations

from typing import ClassVar

from neurontools.tui.maps.chip_map import ChipMap

__all__ = ["SbufMap"]


class SbufMap(ChipMap):
    """128 partitions of SBUF."""

    TITLE: ClassVar[str] = "SBUF"
    TWIN: ClassVar[str] = "info map sbuf tensor"
    SPACE: ClassVar[str] = "SBUF"
    WEIGHT: ClassVar[float] = 1.4
