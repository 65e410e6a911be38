"""How much of a file is believed: the caps that keep a hostile one from eating time, memory or disk.

Time and memory of every reader are linear in the bytes of its file: what parts claim is added up before it is read,
two parts never share a byte, and what is packed inflates to a stated multiple at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from formats.errors import FormatError
from formats.named_tuple import NamedTuple

__all__ = ["DEFAULT_LIMITS", "MAX_RANKS", "Limits", "Span", "need_apart", "need_few", "overlapping"]


class Limits(NamedTuple):
    """Caps of one open file; sizes in bytes, ratios to the bytes of the file.

    What is packed may inflate to `ratio` times its bytes, or to `floor` where that is more, and never beyond
    `inflated`. Real NEFFs inflate 5 to 11 times; a file of constants that are mostly zero needs a larger `ratio`.
    Members that become values (JSON, debug info) take up to 40 times their size in memory, so each has a lower cap of
    the same form: `parsed_ratio`, `parsed_floor`, `parsed`. A core dump leaves out what nothing wrote: what it shows is
    at most `stored_ratio` times its bytes, or `stored_floor`. Arrays in ZIP files are often all zeros, and take their
    size once as a member and once as values: `arrays_ratio`, `arrays_floor`.
    """

    inflated: int = 8 << 30
    ratio: int = 256
    floor: int = 64 << 20
    members: int = 65_536
    member_size: int = 4 << 30
    parsed: int = 512 << 20
    parsed_ratio: int = 16
    parsed_floor: int = 8 << 20
    stored_ratio: int = 64
    stored_floor: int = 32 << 20
    arrays_ratio: int = 64
    arrays_floor: int = 192 << 20

    def inflated_from(self, compressed: int) -> int:
        """Return the cap for an archive of that many compressed bytes."""
        return min(self.inflated, max(self.floor, self.ratio * compressed))

    def parsed_from(self, size: int) -> int:
        """Return the cap for one JSON or debug info member of a file of that size."""
        return min(self.parsed, max(self.parsed_floor, self.parsed_ratio * size))

    def stored_from(self, size: int) -> int:
        """Return the cap for one allocation, or for all files that are made of a dump of that size."""
        return max(self.stored_floor, self.stored_ratio * size)

    def arrays_from(self, size: int) -> int:
        """Return the cap for all arrays in a ZIP file of that size."""
        return max(self.arrays_floor, self.arrays_ratio * size)


DEFAULT_LIMITS = Limits()

MAX_RANKS = 1 << 14  # that are emulated, and that groups of a program may name; ours


class Span(NamedTuple):
    """Bytes of a file that one part of it claims; `what` names the part."""

    offset: int
    nbytes: int
    what: str = ""


def overlapping(spans: Sequence[Span]) -> set[int]:
    """Return the numbers of the spans that share a byte with one that begins earlier and is kept."""
    found: set[int] = set()
    end = 0
    for number in sorted(range(len(spans)), key=lambda each: spans[each].offset):
        span = spans[number]
        if not span.nbytes:
            continue
        if span.offset < end:
            found.add(number)
        else:
            end = span.offset + span.nbytes
    return found


def need_apart(spans: Iterable[Span], where: str | None) -> None:
    """Raise FormatError where two spans share a byte of the file."""
    every = list(spans)
    bad = overlapping(every)
    if bad:
        span = every[min(bad)]
        raise FormatError(f"{span.what} shares bytes with another part", path=where, offset=span.offset,
                          expected="parts that lie apart", got=f"{span.nbytes} bytes")  # fmt: skip


def need_few(count: int, most: int, what: str, where: str | None) -> None:
    """Raise FormatError for more parts of a kind than any file has."""
    if count > most:
        raise FormatError(f"too many {what}", path=where, expected=f"at most {most:,}", got=f"{count:,}")
