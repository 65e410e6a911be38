"""How much of a NEFF is believed: the caps that keep a hostile file from eating memory or disk."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DEFAULT_LIMITS", "Limits"]


class Limits(NamedTuple):
    """Caps of one open file; sizes in bytes.

    The archive may inflate to `ratio` times the compressed bytes, or to `floor` where that is more, and never beyond
    `inflated`. Real files inflate 5 to 11 times; a file of constants that are mostly zero needs a larger `ratio`.
    """

    inflated: int = 8 << 30
    ratio: int = 256
    floor: int = 64 << 20
    members: int = 65_536
    member_size: int = 4 << 30
    json_size: int = 256 << 20

    def inflated_from(self, compressed: int) -> int:
        """Return the cap for an archive of that many compressed bytes."""
        return min(self.inflated, max(self.floor, self.ratio * compressed))


DEFAULT_LIMITS = Limits()
