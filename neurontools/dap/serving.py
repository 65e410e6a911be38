"""Where the adapter's messages go: standard input and output, or one connection to a port of this machine."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from functools import partial

from neurontools.command.output import note
from neurontools.dap.adapter import Adapter, Opener
from neurontools.dap.messages import Channel

__all__ = ["serve_port", "serve_streams"]


def serve_streams(opener: Opener) -> None:
    """Serve the editor at standard input and output; what programs print goes to standard error."""
    source, target = os.dup(0), os.dup(1)
    # Not even a C library may write between two messages, nor a script take one away.
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    Adapter(Channel(partial(os.read, source), partial(_write, target)), opener).run()


def _write(target: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(target, data) :]
        except OSError:  # the editor is gone; that its requests end says so too
            return


def serve_port(opener: Opener, host: str, port: int) -> None:
    """Serve one editor that connects to a port."""
    with socket.create_server((host, port), backlog=1) as server:
        note(f"listening on {host}:{server.getsockname()[1]}")
        connection, _ = server.accept()
    with connection:
        Adapter(Channel(connection.recv, partial(_send, connection)), opener).run()
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def _send(connection: socket.socket, data: bytes) -> None:
    with suppress(OSError):
        connection.sendall(data)
