"""Tensors between programs: nrt_async_sendrecv.h."""

from __future__ import annotations

from typing import Any

from emulator.runtime.errors import invalid
from emulator.runtime.sendrecv import MOST_COMMUNICATORS, MOST_PENDING, Communicator, Request
from neurontools.libnrt.calls import does
from neurontools.libnrt.calls_tensors import tensor_of
from neurontools.libnrt.library import Library

__all__: list[str] = []


@does("nrt_async_sendrecv_get_max_num_communicators_per_lnc")
def most_communicators(library: Library, into: Any) -> None:
    """Give how many communicators a logical core may have."""
    library.need(into)
    into[0] = MOST_COMMUNICATORS


@does("nrt_async_sendrecv_get_max_num_pending_request")
def most_pending(library: Library, into: Any) -> None:
    """Give how many requests of a communicator may be under way."""
    library.need(into)
    into[0] = MOST_PENDING


@does("nrt_async_sendrecv_init")
def init(library: Library, core: int) -> None:
    """Begin on a logical core, by its number on the instance."""
    if not 0 <= core < library.total_cores():
        raise invalid(f"there are {library.total_cores()} logical cores, not {core}")
    library.runtime.exchange.init(core)


@does("nrt_async_sendrecv_close")
def close(library: Library, core: int) -> None:
    """End on a logical core."""
    library.runtime.exchange.close(core)


def _communicator(library: Library, sends: bool, host: Any, peer: int, core: int, into: Any) -> None:
    library.need(host, into)
    made = library.runtime.exchange.communicator(sends, library.text(host), peer, core)
    library.give(into, made, "nrt_async_sendrecv_comm_t *")


@does("nrt_async_sendrecv_connect")
def connect(library: Library, host: Any, peer: int, core: int, into: Any) -> None:
    """Make a communicator that sends."""
    _communicator(library, True, host, peer, core, into)


@does("nrt_async_sendrecv_accept")
def accept(library: Library, host: Any, peer: int, core: int, into: Any) -> None:
    """Make a communicator that receives."""
    _communicator(library, False, host, peer, core, into)


def _of(library: Library, pointer: Any) -> Communicator:
    return library.handles.get(library.number(pointer), Communicator)


@does("nrt_async_sendrecv_test_comm")
def test_communicator(library: Library, communicator: Any, into: Any) -> None:
    """Give whether the other side is there."""
    library.need(into)
    into[0] = _of(library, communicator).test()


def _post(library: Library, sends: bool, tensor: Any, offset: int, length: int, pointer: Any, into: Any) -> None:
    library.need(into)
    communicator = _of(library, pointer)
    if communicator.sends is not sends:
        raise invalid(f"the communicator {'sends' if communicator.sends else 'receives'}")
    made = communicator.post(tensor_of(library, tensor), offset, length)
    library.give(into, made, "nrt_async_sendrecv_request_t *")


@does("nrt_async_sendrecv_send_tensor")
def send(library: Library, tensor: Any, offset: int, length: int, communicator: Any, into: Any) -> None:
    """Begin to send bytes of a tensor."""
    _post(library, True, tensor, offset, length, communicator, into)


@does("nrt_async_sendrecv_recv_tensor")
def receive(library: Library, tensor: Any, offset: int, length: int, communicator: Any, into: Any) -> None:
    """Begin to receive bytes into a tensor."""
    _post(library, False, tensor, offset, length, communicator, into)


@does("nrt_async_sendrecv_test_request")
def test_request(library: Library, pointer: Any, into: Any, size: Any) -> None:
    """Give whether a transfer is done, and how many bytes it had; a request that is done is forgotten."""
    library.need(into, size)
    number = library.number(pointer)
    request = library.handles.get(number, Request)
    into[0] = request.test()
    if into[0]:
        size[0] = request.size
        library.handles.take(number, Request)


@does("nrt_async_sendrecv_flush")
def flush(library: Library, core: int) -> None:
    """Wait for what was received: nothing to wait for."""
    library.runtime.exchange.flush(core)
