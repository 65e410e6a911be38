"""The events that a session remembers: a journal's, or the last ones that a core dump keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from emulator.journal import Entry
    from emulator.machine_view import MachineView
    from formats.regions import Region

__all__ = ["EventLog"]


class EventLog(Protocol):
    """Events in order, and the last one that wrote somewhere."""

    @property
    def device(self) -> MachineView:
        """Return the device whose events these are."""

    @property
    def log(self) -> Sequence[Entry]:
        """Return the events that are kept."""

    def count_before(self, number: int) -> int:
        """Return how many of the kept events have a lower number."""

    def last_write(self, regions: tuple[Region, ...], before: int | None = None) -> Entry | None:  # fmt: skip
        """Return the last of the first `before` events that wrote into one of some regions, None where none did."""
