"""`neurontools dap` as a process: its port, and what is no message; requests are tried in tests/dap."""

from __future__ import annotations

import socket

import pytest

from tests.dap.client import ROOT, Client, start


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"Content-Length: 99999999\r\n\r\n",
                                  b"Content-Length: 3\r\n\r\n{}x", b"Content-Length: 2\r\n\r\n[]", b"\r\n",
                                  b"\xff" * 5000])  # fmt: skip
def test_what_is_no_message_ends_it(data: bytes) -> None:
    with start() as process:
        _, error = process.communicate(data, timeout=60)
        assert process.returncode == 0 and b"Traceback" not in error


def test_a_port_of_this_machine() -> None:
    with start("--port", "0") as process:
        assert process.stderr is not None
        line = process.stderr.readline().decode()
        assert "127.0.0.1:" in line
        with socket.create_connection(("127.0.0.1", int(line.rsplit(":", 1)[1]))) as connection:
            client = Client(connection.makefile("rb"), connection.makefile("wb"))
            client.launch(ROOT / "examples" / "deadlock.s", stopOnEntry=True)
            assert client.go()["reason"] == "entry"
            client.request("disconnect")
        assert process.wait(60) == 0
