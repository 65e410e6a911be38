"""Tensors between sessions: bytes arrive in order and whole; what is wrong has the documented status."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pytest

from emulator.runtime.errors import StatusError
from emulator.runtime.sendrecv import MOST_COMMUNICATORS, MOST_PENDING, Communicator, Request
from formats.nrt.status import NrtStatus as S
from tests.runtime.support import Session, free_port

Pair = tuple[Session, Session]


def _until(test: object) -> bool:
    assert callable(test)
    for _ in range(3000):
        if test():
            return True
        time.sleep(0.005)
    return False


@pytest.fixture
def pair() -> Iterator[Pair]:
    port = free_port(2)
    environ = {"NEURON_RT_ASYNC_SENDRECV_EXPERIMENTAL_ENABLED": "1", "NEURON_RT_NUM_CORES": "2",
               "NEURON_RT_ASYNC_SENDRECV_BOOTSTRAP_PORT": str(port)}  # fmt: skip
    sessions = Session(environ), Session(environ)
    for core, session in enumerate(sessions):
        session.runtime.exchange.init(core)
    yield sessions
    for session in sessions:
        session.runtime.close()


def _connected(pair: Pair) -> tuple[Communicator, Communicator]:
    sender = pair[0].runtime.exchange.communicator(True, "127.0.0.1", 1, 0)
    receiver = pair[1].runtime.exchange.communicator(False, "127.0.0.1", 0, 1)
    assert _until(sender.test) and _until(receiver.test)
    return sender, receiver


def _refused(status: S, work: object, *arguments: object) -> None:
    assert callable(work)
    with pytest.raises(StatusError) as caught:
        work(*arguments)
    assert caught.value.status is status


def test_bytes_arrive_whole_and_in_order(pair: Pair) -> None:
    sender, receiver = _connected(pair)
    rng = np.random.default_rng(1)
    sizes = (0, 1, 4096, 3 << 20)
    data = [rng.integers(0, 256, max(1, size), np.uint8) for size in sizes]
    sources = [pair[0].tensor(each) for each in data]
    targets = [pair[1].tensor(np.zeros_like(each)) for each in data]
    received = [receiver.post(each, 0, each.size) for each in targets]
    sent = [sender.post(each, 0, size) for each, size in zip(sources, sizes, strict=True)]
    assert all(_until(each.test) for each in (*sent, *received))
    assert [each.size for each in sent] == [each.size for each in received] == list(sizes)
    for target, each, size in zip(targets, data, sizes, strict=True):
        assert target.get(0, size) == each.tobytes()[:size]
    part = receiver.post(targets[2], 96, 1000)
    sender.post(sources[2], 8, 40)
    assert _until(part.test) and part.size == 40
    assert targets[2].get(96, 40) == data[2].tobytes()[8:48]
    for core, session in enumerate(pair):
        session.runtime.exchange.flush(core)
        session.runtime.exchange.close(core)
        session.runtime.exchange.init(core)


def test_a_sender_that_went_away_before_it_was_met_is_not_the_last(pair: Pair) -> None:
    exchange = pair[1].runtime.exchange
    endpoint = exchange._of(1)
    link = socket.create_connection(("127.0.0.1", endpoint._server.getsockname()[1]))
    link.sendall(struct.pack("<8sII", b"ntsendrv", 0, 1))
    assert _until(lambda: endpoint._came)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing it is a reset
    link.close()
    time.sleep(0.05)
    receiver = exchange.communicator(False, "127.0.0.1", 0, 1)
    sender = pair[0].runtime.exchange.communicator(True, "127.0.0.1", 1, 0)
    assert _until(sender.test) and _until(receiver.test)


def test_several_communicators_of_two_cores_do_not_mix(pair: Pair) -> None:
    ways = [_connected(pair) for _ in range(4)]
    targets = [pair[1].tensor(np.zeros(8, np.uint8)) for _ in ways]
    received = [way[1].post(target, 0, 8) for way, target in zip(ways, targets, strict=True)]
    for number, way in reversed(list(enumerate(ways))):
        way[0].post(pair[0].tensor(np.full(8, number, np.uint8)), 0, 8)
    assert all(_until(each.test) for each in received)
    # Whose connection came first is taken first; each has one sender of its own.
    assert sorted(target.get(0, 8) for target in targets) == [bytes([number]) * 8 for number in range(4)]


def test_what_is_refused(pair: Pair) -> None:
    exchange = pair[0].runtime.exchange
    _refused(S.NRT_FAILURE, Session().runtime.exchange.init, 0)
    _refused(S.NRT_FAILURE, exchange.init, 0)
    _refused(S.NRT_FAILURE, exchange.communicator, True, "127.0.0.1", 1, 7)
    _refused(S.NRT_FAILURE, exchange.communicator, True, "", 1, 0)
    _refused(S.NRT_FAILURE, exchange.flush, 7)
    sender, receiver = _connected(pair)
    tensor = pair[1].tensor(np.zeros(64, np.uint8))
    _refused(S.NRT_INVALID, receiver.post, tensor, 60, 8)
    requests = [receiver.post(tensor, 0, 8) for _ in range(MOST_PENDING)]
    _refused(S.NRT_RESOURCE, receiver.post, tensor, 0, 8)
    # More is sent than is expected: that request fails, and the connection with it.
    sender.post(pair[0].tensor(np.zeros(64, np.uint8)), 0, 64)
    assert _until(requests[1].done.is_set)
    _refused(S.NRT_FAILURE, requests[0].test)
    _refused(S.NRT_FAILURE, requests[1].test)
    waiting = exchange.communicator(False, "127.0.0.1", 1, 0)
    _refused(S.NRT_FAILURE, waiting.post, tensor, 0, 8)
    _refused(S.NRT_FAILURE, exchange.close, 0)  # it was not connected
    _refused(S.NRT_FAILURE, exchange.init, 0)  # and nothing goes on behind that
    other = pair[1].runtime.exchange
    for _ in range(MOST_COMMUNICATORS - 1):
        other.communicator(False, "127.0.0.1", 0, 1)
    _refused(S.NRT_RESOURCE, other.communicator, False, "127.0.0.1", 0, 1)


def test_strangers_are_sent_away(pair: Pair) -> None:
    port = int(pair[0].environ["NEURON_RT_ASYNC_SENDRECV_BOOTSTRAP_PORT"])
    for said in (b"GET / HTTP/1.1\r\n\r\n", struct.pack("<8sII", b"ntsendrv", 1, 99)):
        with socket.create_connection(("127.0.0.1", port), 5) as link:
            link.sendall(said)
            link.settimeout(5)
            with suppress(ConnectionResetError):  # it did not read all that was said
                assert link.recv(1) == b""
    _connected(pair)


def test_a_peer_that_goes_fails_what_is_under_way(pair: Pair) -> None:
    _, receiver = _connected(pair)
    request: Request = receiver.post(pair[1].tensor(np.zeros(8, np.uint8)), 0, 8)
    threading.Timer(0.05, pair[0].runtime.exchange.close, [0]).start()
    assert _until(request.done.is_set)
    _refused(S.NRT_FAILURE, request.test)
