"""Files of debug stream events, header and payload of each one behind another. Source: runtime.md 15; ours."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from formats.debug_events import HEADER_SIZE, DebugEvent, decode_event, encode_event
from formats.errors import FormatError

__all__ = ["EventReader", "read_events", "write_events"]

_LARGEST = 1 << 30  # bytes of one event


class EventReader:
    """Take bytes as they come, and give the events that are complete."""

    def __init__(self, path: str | None = None) -> None:
        self._path = path
        self._data = bytearray()
        self.offset = 0  # of the first byte that is not part of an event yet

    @property
    def waiting(self) -> int:
        """Return the bytes of an event that has begun."""
        return len(self._data)

    def feed(self, data: bytes) -> Iterator[DebugEvent]:
        """Yield the events that are whole now; FormatError with its offset where one is none."""
        self._data += data
        at = 0
        try:
            while len(self._data) - at >= HEADER_SIZE:
                (size,) = struct.unpack_from("<Q", self._data, at)
                if size > _LARGEST:
                    raise FormatError("event too large", field="data_size", expected=f"at most {_LARGEST}", got=size)
                end = at + HEADER_SIZE + size
                if len(self._data) < end:
                    # A header whose type is unknown is wrong however long one waits for the rest.
                    if struct.unpack_from("<I", self._data, at + 8)[0] != 1:
                        decode_event(bytes(self._data[at : at + HEADER_SIZE]), b"")
                    break
                found = decode_event(
                    bytes(self._data[at : at + HEADER_SIZE]), bytes(self._data[at + HEADER_SIZE : end])
                )
                at = end
                yield found
        except FormatError as error:
            raise error.at(self._path, self.offset + at) from None
        finally:
            del self._data[:at]
            self.offset += at


def read_events(data: bytes, path: str | None = None) -> Iterator[DebugEvent]:
    """Yield the events of a whole file; FormatError where the last one is cut."""
    reader = EventReader(path)
    yield from reader.feed(data)
    if reader.waiting:
        raise FormatError("the last event is cut", path=path, offset=reader.offset, got=f"{reader.waiting} bytes of it")


def write_events(events: Iterable[DebugEvent]) -> Iterator[bytes]:
    """Yield the bytes of events."""
    for event in events:
        yield from encode_event(event)
