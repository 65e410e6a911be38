"""The memories in a core dump: segments by address, what is there, what was written, what is absent."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from formats.core.elf import PF_X, PT_LOAD, PT_WRITTEN, ProgramHeader
from formats.core.records import Window
from formats.core.stored_bytes import StoredBytes
from formats.limits import Span, overlapping
from formats.named_tuple import NamedTuple

__all__ = ["Bytes", "Segment", "Segments"]

_MOST = 1 << 40  # bytes of one segment beyond which a header is damaged


class Segment(NamedTuple):
    """A stored range of addresses.

    `size` are the bytes that are in the file, which is less than `memory_size` where the file is cut off. `space`,
    `core`, `engine`, `partition` and `byte` say which memory that is, as far as the map tells.
    """

    address: int
    size: int
    memory_size: int
    offset: int
    flags: int
    written: ProgramHeader | None = None
    space: str = ""
    core: int = 0
    engine: str = ""
    partition: int = 0
    byte: int = 0

    @property
    def executable(self) -> bool:
        """Return whether the segment holds instructions."""
        return bool(self.flags & PF_X)


class Bytes(NamedTuple):
    """Bytes of a memory: `present` and `written` hold one 0 or 1 per byte; what is not present reads as the fill."""

    data: bytes
    present: bytes
    written: bytes

    @property
    def missing(self) -> int:
        """Return how many bytes the dump does not hold."""
        return self.present.count(0)

    @property
    def unwritten(self) -> int:
        """Return how many bytes nothing wrote."""
        return self.written.count(0)


class Segments(Sequence[Segment]):
    """The loadable segments of a file, by address."""

    def __init__(self, data: StoredBytes, headers: Sequence[ProgramHeader], windows: Sequence[Window],
                 warnings: list[str]) -> None:  # fmt: skip
        self._data = data
        planes = {header.address: header for header in headers if header.type == PT_WRITTEN}
        found, cut = [], 0
        for header in headers:
            if header.type != PT_LOAD or not header.size:
                continue
            here = max(0, min(header.size, data.size - header.offset))
            cut += here < header.size
            if header.size > _MOST or not here:
                continue
            found.append(Segment(header.address, here, header.size, header.offset, header.flags,
                                 planes.get(header.address)))  # fmt: skip
        if cut:
            warnings.append(f"{cut} of {sum(h.type == PT_LOAD for h in headers)} segments are cut off or missing")
        # A look at an address goes to one segment: which of two would be meant, nothing tells.
        bad = overlapping([Span(segment.address, segment.size) for segment in found])
        if bad:
            warnings.append(f"{len(bad)} of {len(found)} segments have addresses that others have: left out")
        found = [segment for number, segment in enumerate(found) if number not in bad]
        found.sort(key=lambda segment: segment.address)
        named = [window for window in windows if window.row_bytes > 0 and window.rows > 0]
        named.sort(key=lambda window: window.base)
        bases = [window.base for window in named]
        self._all = [self._place(segment, named, bases) for segment in found]
        self._starts = [segment.address for segment in self._all]

    @staticmethod
    def _place(segment: Segment, windows: Sequence[Window], bases: Sequence[int]) -> Segment:
        """Return a segment with its place in the last memory that begins at or before it, if it lies there."""
        index = bisect_right(bases, segment.address) - 1
        if index < 0:
            return segment
        window = windows[index]
        row, byte = divmod(segment.address - window.base, window.stride or window.row_bytes)
        if not 0 <= row < window.rows or not 0 <= byte < window.row_bytes:
            return segment
        return segment._replace(space=window.space, core=window.core, engine=window.engine, partition=row,
                                byte=segment.address if window.space == "HBM" else byte)  # fmt: skip

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, index: int) -> Segment:  # type: ignore[override]
        return self._all[index]

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._all)

    def data(self, segment: Segment) -> bytes | memoryview:
        """Return the bytes of a segment."""
        return self._data.part(segment.offset, segment.offset + segment.size)

    def plane(self, segment: Segment) -> bytes | None:
        """Return one bit per byte of a segment that tells what was written, None where all of it was."""
        return None if segment.written is None else self._bits(segment.written, 0, -(-segment.size // 8))

    def _bits(self, plane: ProgramHeader, first: int, behind: int) -> bytes:
        """Return some of the bytes of a plane."""
        return bytes(self._data.part(plane.offset + first, plane.offset + min(behind, plane.size)))

    def within(self, first: int, behind: int) -> Iterator[Segment]:
        """Yield the segments that have bytes from an address to another."""
        index = max(bisect_right(self._starts, first) - 1, 0)
        while index < len(self._all) and self._all[index].address < behind:
            if self._all[index].address + self._all[index].size > first:
                yield self._all[index]
            index += 1

    def read(self, address: int, nbytes: int, fill: int = 0xFF) -> Bytes:
        """Return bytes at an address."""
        data = bytearray([fill & 0xFF]) * nbytes
        present, written = bytearray(nbytes), bytearray(nbytes)
        for segment in self.within(address, address + nbytes):
            low, high = max(address, segment.address), min(address + nbytes, segment.address + segment.size)
            start, at = low - segment.address, low - address
            offset = segment.offset + start
            data[at : at + high - low] = self._data.part(offset, offset + high - low)
            present[at : at + high - low] = b"\1" * (high - low)
            written[at : at + high - low] = self.written(segment, start, high - low)
        return Bytes(bytes(data), bytes(present), bytes(written))

    def written(self, segment: Segment, start: int, nbytes: int) -> bytes:
        """Return a 0 or 1 for each byte of a range of a segment."""
        if segment.written is None:
            return b"\1" * nbytes
        plane = self._bits(segment.written, start >> 3, (start + nbytes + 7) >> 3)
        bits = int.from_bytes(plane, "little") >> (start & 7)
        # A leading 1 keeps the zeros at the end of the range; behind "0b1" the digits are backwards.
        return bin(bits & ((1 << nbytes) - 1) | 1 << nbytes)[:2:-1].encode().translate(_BITS)


_BITS = bytes.maketrans(b"01", b"\0\1")
