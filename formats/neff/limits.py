"""How much of a NEFF is believed: the caps that keep a hostile file from eating memory or disk."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DEFAULT_LIMITS", "Limits"]


class Limits(NamedTuple):
    """Caps of one open file; sizes in bytes, ratios to the bytes of the file.

    The archive may inflate to `ratio` times its compressed bytes, or to `floor` where that is more, and never beyond
    `inflated`. Real files inflate 5 to 11 times; a file of constants that are mostly zero needs a larger `ratio`.
    Members that become values (JSON, debug info) take up to 40 times their size in memory, so each has a lower cap of
    the same form: `parsed_ratio`, `parsed_floor`, `parsed`.
    """

    inflated: int = 8 << 30
    ratio: int = 256
    floor: int = 64 << 20
    members: int = 65_536
    member_size: int = 4 << 30
    parsed: int = 512 << 20
    parsed_ratio: int = 64
    parsed_floor: int = 8 << 20

    def inflated_from(self, compressed: int) -> int:
        """Return the cap for an archive of that many compressed bytes."""
        return min(self.inflated, max(self.floor, self.ratio * compressed))

    def parsed_from(self, size: int) -> int:
        """Return the cap for one JSON or debug info member of a file of that size."""
        return min(self.parsed, max(self.parsed_floor, self.parsed_ratio * size))


DEFAULT_LIMITS = Limits()
