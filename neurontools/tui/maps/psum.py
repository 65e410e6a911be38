"""PSUM by banks, live."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style

from formats.neuron_core import PSUM_BANK_BYTES
from neurontools.tui.contrast import quiet
from neurontools.tui.maps.chip_map import GUTTER, ChipMap

__all__ = ["PsumMap"]


class PsumMap(ChipMap):
    """128 partitions of PSUM; the ruler counts banks."""

    TITLE: ClassVar[str] = "PSUM"
    TWIN: ClassVar[str] = "info map psum tensor"
    SPACE: ClassVar[str] = "PSUM"
    RULED: ClassVar[bool] = True

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._whole = True  # every bank at once
        self.wanted = 4

    def _ruler(self, base: Style) -> tuple[tuple[str, Style], ...]:
        if self.view is None:
            return (("", base),)
        view, line = self.view, ""
        for column in range(view.columns):
            byte = view.byte + column * view.byte_step
            if byte >= view.nbytes:
                break
            if byte % PSUM_BANK_BYTES < view.byte_step:
                line = line[:column].ljust(column) + f"╵bank {byte // PSUM_BANK_BYTES}"
        return ((" " * GUTTER, base), (self._pointed(line), quiet(base)))
