"""Tensors sent between logical cores of programs (nrt_async_sendrecv.h): a connection of TCP for each communicator.

Each logical core listens on the bootstrap port plus its number, so that programs of one machine find each other. How
many communicators and requests there may be is ours; no page says it. Source: runtime.md 11.3.
"""

from __future__ import annotations

import queue
import socket
import struct
import threading
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

from emulator.runtime.errors import StatusError
from emulator.runtime.tensor import Tensor
from formats.nrt.status import NrtStatus
from formats.numerals import parse_decimal

__all__ = ["MOST_COMMUNICATORS", "MOST_PENDING", "Communicator", "Exchange", "Request"]

MOST_COMMUNICATORS, MOST_PENDING = 64, 128
ENABLED, PORT = "NEURON_RT_ASYNC_SENDRECV_EXPERIMENTAL_ENABLED", "NEURON_RT_ASYNC_SENDRECV_BOOTSTRAP_PORT"
_HELLO, _LENGTH = struct.Struct("<8sII"), struct.Struct("<Q")
_MAGIC, _MET = b"ntsendrv", b"+"
_SECONDS = 60.0  # of a connection, and of a transfer that has begun
_PAUSE = 0.02


def _failed(message: str, status: NrtStatus = NrtStatus.NRT_FAILURE) -> StatusError:
    return StatusError(status, message)


class Request:
    """One transfer of a communicator."""

    def __init__(self, data: Any) -> None:
        self.data, self.size = data, 0
        self.error: StatusError | None = None
        self.done = threading.Event()

    def test(self) -> bool:
        """Return whether it is done; raises the status of one that failed."""
        if self.done.is_set() and self.error is not None:
            raise self.error
        return self.done.is_set()


class Communicator:
    """One direction between two logical cores; connected by a thread of its own, which then moves its tensors."""

    def __init__(self, sends: bool, core: int, peer: tuple[str, int]) -> None:
        self.sends, self.core, self.peer = sends, core, peer
        self.connected = threading.Event()
        self.error: StatusError | None = None
        self._requests: queue.Queue[Request | None] = queue.Queue()
        self._pending = 0
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._closed = False

    def test(self) -> bool:
        """Return whether the other side is there; raises NRT_TIMEOUT where it does not come."""
        if self.error is not None:
            raise self.error
        return self.connected.is_set()

    @property
    def pending(self) -> int:
        """Return how many requests are under way."""
        return self._pending

    def post(self, tensor: Tensor, offset: int, length: int) -> Request:
        """Begin a transfer of some bytes of a tensor; NRT_RESOURCE where too many are under way."""
        if not self.test():
            raise _failed("the communicator is not connected yet")
        request = Request(tensor.span(offset, length))
        with self._lock:
            if self._pending >= MOST_PENDING:
                raise _failed(f"{MOST_PENDING} requests are under way", NrtStatus.NRT_RESOURCE)
            self._pending += 1
        self._requests.put(request)
        return request

    def begin(self, port: int) -> None:
        """Connect to the core that receives, in the background."""
        threading.Thread(target=self._reach, args=(port,), daemon=True).start()

    def _reach(self, port: int) -> None:
        host, core = self.peer
        until = monotonic() + _SECONDS
        while not self._closed and monotonic() < until:
            link: socket.socket | None = None
            try:
                link = socket.create_connection((host, port + core), 1.0)
                link.settimeout(max(0.1, until - monotonic()))
                link.sendall(_HELLO.pack(_MAGIC, self.core, core))
                if link.recv(1) == _MET:
                    self.meet(link)
                    return
            except (OSError, OverflowError):
                pass
            if link is not None:
                link.close()
            sleep(_PAUSE)
        self.error = _failed(f"nc{core} of {host} does not answer", NrtStatus.NRT_TIMEOUT)

    def meet(self, link: socket.socket) -> None:
        """Take a connection, and begin to move what is posted."""
        link.settimeout(None)
        with suppress(OSError):
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = link
        self.connected.set()
        threading.Thread(target=self._move, args=(link,), daemon=True).start()

    def _move(self, link: socket.socket) -> None:
        while (request := self._requests.get()) is not None:
            try:
                request.size = _send(link, request.data) if self.sends else _receive(link, request.data)
            except StatusError as error:
                request.error = error
            except OSError as error:
                request.error = _failed(f"connection closed by remote peer: {error}")
            with self._lock:
                self._pending -= 1
            request.done.set()

    def close(self) -> None:
        """End it; what is under way fails."""
        self._closed = True
        self._requests.put(None)
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()


def _send(link: socket.socket, data: Any) -> int:
    link.sendall(_LENGTH.pack(len(data)))
    link.sendall(memoryview(data))
    return len(data)


def _receive(link: socket.socket, data: Any) -> int:
    (length,) = _LENGTH.unpack(_exactly(link, memoryview(bytearray(_LENGTH.size))))
    if length > len(data):
        link.close()
        raise _failed(f"{length} bytes were sent, {len(data)} are expected")
    _exactly(link, memoryview(data)[:length])
    return int(length)


def _exactly(link: socket.socket, room: memoryview) -> memoryview:
    at = 0
    while at < len(room):
        got = link.recv_into(room[at:])
        if not got:
            raise ConnectionResetError("nothing comes any more")
        at += got
    return room


class _Endpoint:
    """One logical core: where it listens, its communicators, who came and was not asked for yet."""

    def __init__(self, core: int, port: int) -> None:
        self.core, self.communicators = core, list[Communicator]()
        self._waiting: list[Communicator] = []
        self._came: list[tuple[socket.socket, str, int]] = []
        self._lock = threading.Lock()
        try:
            self._server = socket.create_server(("", port + core))
        except (OSError, OverflowError) as error:
            raise _failed(f"nc{core} cannot listen on port {port + core}: {error}") from None
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                link, address = self._server.accept()
                # Whoever says nothing keeps nobody else waiting.
                threading.Thread(target=self._greet, args=(link, address[0]), daemon=True).start()

    def _greet(self, link: socket.socket, source: str) -> None:
        try:
            link.settimeout(5.0)
            magic, core, mine = _HELLO.unpack(_exactly(link, memoryview(bytearray(_HELLO.size))))
        except OSError:
            link.close()
            return
        if magic != _MAGIC or mine != self.core:
            link.close()
            return
        with self._lock:
            self._came.append((link, source, core))
        self._match()

    def expect(self, communicator: Communicator) -> None:
        """Wait for a core to connect."""
        with self._lock:
            self._waiting.append(communicator)
        self._match()

    def _match(self) -> None:
        with self._lock:
            for one in list(self._waiting):
                host, core = one.peer
                found = next((each for each in self._came if each[2] == core and _same(each[1], host)), None)
                if found is not None:
                    self._came.remove(found)
                    try:
                        found[0].sendall(_MET)
                    except OSError:  # gone meanwhile: it connects again, and is waited for until then
                        found[0].close()
                        continue
                    self._waiting.remove(one)
                    one.meet(found[0])

    def close(self) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for each in self.communicators:
            each.close()
        for link, _, _ in self._came:
            link.close()


def _same(source: str, host: str) -> bool:
    """Return whether a connection is from a host; names of this machine are all one."""
    local = ("127.", "localhost")
    return source == host or source.startswith(local) or host.startswith(local)


class Exchange:
    """What a session sends and receives, by logical core."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        text = environ.get(PORT, "").strip()
        port = parse_decimal(text) or 0
        self._port = port if 0 < port < 1 << 16 else None
        self._enabled = environ.get(ENABLED, "").strip().lower() in ("1", "true")
        self._endpoints: dict[int, _Endpoint] = {}
        self._broken: set[int] = set()
        self._lock = threading.Lock()

    def init(self, core: int) -> None:
        """Begin on a logical core; NRT_FAILURE where variables do not allow it, or its last end failed."""
        if not self._enabled or self._port is None:
            raise _failed(f"set {ENABLED}=1 and {PORT} to a port")
        with self._lock:
            if core in self._endpoints or core in self._broken:
                how = "is initialized already" if core in self._endpoints else "did not end well"
                raise _failed(f"nc{core} {how}")
            self._endpoints[core] = _Endpoint(core, self._port)

    def _of(self, core: int) -> _Endpoint:
        found = self._endpoints.get(core)
        if found is None:
            raise _failed(f"nrt_async_sendrecv_init was not called for nc{core}")
        return found

    def communicator(self, sends: bool, host: str, peer: int, core: int) -> Communicator:
        """Return a new communicator, which connects in the background; NRT_RESOURCE where there are too many."""
        endpoint = self._of(core)
        if not host or peer < 0 or self._port is None:
            raise _failed(f"no peer: {host!r} nc{peer}")
        with self._lock:
            if len(endpoint.communicators) >= MOST_COMMUNICATORS:
                raise _failed(f"nc{core} has {MOST_COMMUNICATORS} communicators", NrtStatus.NRT_RESOURCE)
            made = Communicator(sends, core, (host, peer))
            endpoint.communicators.append(made)
        if sends:
            made.begin(self._port)
        else:
            endpoint.expect(made)
        return made

    def flush(self, core: int) -> None:
        """Do nothing: what a receive has reported is in the tensor."""
        self._of(core)

    def close(self, core: int) -> None:
        """End on a logical core; NRT_FAILURE where something is not connected or under way, which ends all the same."""
        endpoint = self._of(core)
        with self._lock:
            del self._endpoints[core]
        bad = [each for each in endpoint.communicators if not each.connected.is_set() or each.pending]
        endpoint.close()
        if bad:
            self._broken.add(core)
            raise _failed(f"nc{core}: {len(bad)} communicators were not connected, or had requests under way")

    def close_all(self) -> None:
        """End everywhere."""
        for core in list(self._endpoints):
            with suppress(StatusError):
                self.close(core)
