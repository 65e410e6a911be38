"""What transfers overwrote in device memory, so that who looks at a run when it is over finds it as it was then."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from emulator.checks.inside import bytes_of
from emulator.device import Device
from emulator.dma.transfer import Side, Transfer

__all__ = ["Before", "Stores", "before_of"]

Bytes = npt.NDArray[np.uint8]
Before = list[tuple[Side, Bytes]]


def before_of(device: Device, transfer: Transfer) -> Before:
    """Return the bytes of device memory that a transfer is about to overwrite."""
    return [(side, bytes_of(device, side).copy()) for side in transfer.writes if side.space == "HBM"]


class Stores:
    """The stores of a run, in order; `rewind` takes them back, and `redo` carries out one after the other again."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._stores: list[tuple[Transfer, Before]] = []
        self._behind: list[list[Bytes]] = []  # what each brought, from the last one back, once they are taken back
        self._next = 0

    def keep(self, transfer: Transfer) -> None:
        """Keep what a transfer is about to overwrite."""
        before = before_of(self._device, transfer)
        if before:
            self._stores.append((transfer, before))

    @property
    def moving(self) -> Before | None:
        """Return what the transfer under way overwrites; None where the last store is over."""
        return self._stores[-1][1] if self._stores and self._stores[-1][0].state != "done" else None

    def rewind(self) -> None:
        """Have the bytes of device memory be as before all stores."""
        device = self._device
        for _, before in reversed(self._stores):
            self._behind.append([bytes_of(device, side).copy() for side, _ in before])
            for side, held in before:
                bytes_of(device, side)[...] = held
        self._next = 0

    def redo(self, transfer: Transfer) -> Before:
        """Carry out the next store where it is that of a transfer, and return what it overwrites."""
        if self._next >= len(self._stores) or self._stores[self._next][0] is not transfer:
            return []
        before, behind = self._stores[self._next][1], self._behind.pop()
        self._next += 1
        for (side, _), held in zip(before, behind, strict=True):
            bytes_of(self._device, side)[...] = held
        return before

    def redo_all(self) -> None:
        """Carry out what is left: the bytes are as the run has left them."""
        for transfer, _ in self._stores[self._next :]:
            self.redo(transfer)
