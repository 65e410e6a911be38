"""Debug streams: what programs print, as events that one client of each logical core reads. Source: runtime.md 15."""

from __future__ import annotations

import os
import threading
from collections import deque

from emulator.runtime.errors import StatusError, invalid
from formats.debug_events import DebugEvent, encode_event
from formats.nrt.status import NrtStatus

__all__ = ["DebugStreams"]


class _Client:
    def __init__(self, core: int, most: int) -> None:
        self.core, self.most = core, most
        self.events: deque[tuple[bytes, bytes]] = deque()
        self.dropped = 0
        self.file = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK | os.EFD_SEMAPHORE)


class DebugStreams:
    """The streams of a session; what is printed before a client is there, or does not fit, is dropped."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._clients: dict[int, _Client] = {}
        self._lock = threading.Lock()

    def connect(self, core: int) -> int:
        """Return a file descriptor that can be polled; NRT_INVALID where a client is there already."""
        with self._lock:
            if core in self._clients:
                raise invalid(f"core {core} has a client of its debug stream")
            client = self._clients[core] = _Client(core, self._most)
            return client.file

    def listens(self, core: int) -> bool:
        """Return whether anybody reads the stream of a core."""
        return core in self._clients

    def push(self, event: DebugEvent) -> bool:
        """Add an event to its core's stream; return whether it was kept."""
        with self._lock:
            client = self._clients.get(event.core)
            if client is None:
                return False
            if len(client.events) >= client.most:
                client.dropped += 1
                return False
            client.events.append(encode_event(event))
            os.eventfd_write(client.file, 1)
            return True

    def _of(self, file: int) -> _Client:
        found = next((client for client in self._clients.values() if client.file == file), None)
        if found is None:
            raise StatusError(NrtStatus.NRT_INVALID_HANDLE, f"{file} is no debug stream")
        return found

    def read(self, file: int) -> tuple[bytes, bytes]:
        """Return header and payload of the oldest event; NRT_QUEUE_EMPTY where there is none."""
        with self._lock:
            client = self._of(file)
            if not client.events:
                raise StatusError(NrtStatus.NRT_QUEUE_EMPTY, f"core {client.core} has printed nothing more")
            os.eventfd_read(client.file)
            return client.events.popleft()

    def close(self, file: int) -> None:
        """End a connection."""
        with self._lock:
            client = self._of(file)
            del self._clients[client.core]
            os.close(client.file)

    def close_all(self) -> None:
        """End all connections."""
        for client in list(self._clients.values()):
            self.close(client.file)
