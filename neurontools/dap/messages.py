"""Messages of the Debug Adapter Protocol: a header with a length, then JSON."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from formats.errors import FormatError

__all__ = ["Channel", "Inbox", "Message", "Receive"]

Message = dict[str, Any]
Receive = Callable[[int], bytes]  # returns up to so many bytes, none at the end
_LENGTH = re.compile(rb"content-length:\s*(\d{1,9})\s*", re.IGNORECASE)
_LARGEST = 16 << 20  # bytes of one message
_HEADERS = 20
_LINE, _PIECE = 1000, 1 << 16  # bytes of a header, and taken at once


class _Source:
    """Bytes as they come; without a lock, since nobody may wait for a thread that waits for bytes."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._held = b""

    def line(self) -> bytes:
        """Return the bytes up to the end of a line, at most so many; fewer at the end."""
        while b"\n" not in self._held and len(self._held) < _LINE and (more := self._receive(_PIECE)):
            self._held += more
        return self._take(min(self._held.find(b"\n") + 1 or len(self._held), _LINE))

    def read(self, count: int) -> bytes:
        """Return so many bytes; fewer at the end."""
        pieces, have = [self._held], len(self._held)
        while have < count and (more := self._receive(_PIECE)):
            pieces.append(more)
            have += len(more)
        self._held = b"".join(pieces)
        return self._take(count)

    def _take(self, count: int) -> bytes:
        taken, self._held = self._held[:count], self._held[count:]
        return taken


class Channel:
    """Read and write messages; several threads may write, and every message written gets the next number."""

    def __init__(self, receive: Receive, send: Callable[[bytes], object]) -> None:
        self._source, self._send = _Source(receive), send
        self._lock = threading.Lock()
        self._number = 0

    def read(self) -> Message | None:
        """Return the next message, None at the end; FormatError for what is none."""
        length = None
        for _ in range(_HEADERS):
            line = self._source.line()
            if not line:
                return None
            if line in (b"\r\n", b"\n"):
                break
            found = _LENGTH.fullmatch(line)
            # Nothing but this protocol has a place here: what a browser sends is refused at its first line.
            if found is None and not line.lower().startswith(b"content-type:"):
                raise FormatError("header of a message is not Content-Length", got=repr(line[:40]))
            length = length if found is None else int(found[1])
        if length is None or length > _LARGEST:
            raise FormatError("message has no length, or is too large", got=str(length), expected=f"up to {_LARGEST}")
        body = self._source.read(length)
        if len(body) < length:
            return None
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"message is not JSON ({error})") from None
        if not isinstance(message, dict) or not isinstance(message.get("command"), str):
            raise FormatError("message is no request", got=repr(body[:40]))
        return message

    def write(self, kind: str, **content: object) -> None:
        """Send a response or an event."""
        with self._lock:
            self._number += 1
            message = {"seq": self._number, "type": kind, **content}
            body = json.dumps(message, allow_nan=False, default=str).encode()
            self._send(b"Content-Length: %d\r\n\r\n" % len(body) + body)


class Inbox:
    """Requests as a thread reads them, so that a run notices what asks it to pause."""

    def __init__(self, channel: Channel) -> None:
        self._queue: SimpleQueue[Message | FormatError | None] = SimpleQueue()
        self._channel = channel
        # Counted, not flagged: what arrives between a request to go on and its beginning must not be forgotten.
        self._arrived = self._taken = 0
        threading.Thread(target=self._read, name="requests", daemon=True).start()

    def _read(self) -> None:
        while True:
            message: Message | FormatError | None
            try:
                message = self._channel.read()
            except FormatError as error:
                message = error
            except (OSError, ValueError):  # the other side is gone
                message = None
            self._arrived += _stops(message)
            self._queue.put(message)
            if not isinstance(message, dict):
                return

    def take(self) -> Message | FormatError | None:
        """Wait for the next request; None at the end, an error for what is none."""
        message = self._queue.get()
        self._taken += _stops(message)
        return message

    def interrupts(self) -> bool:
        """Return whether a request waits, or the end, for which a run has to stop."""
        return self._arrived > self._taken


def _stops(message: Message | FormatError | None) -> bool:
    return not isinstance(message, dict) or message["command"] in ("pause", "disconnect", "terminate", "restart")
