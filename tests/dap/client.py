"""The other side of the adapter, as small as it goes: frames messages, waits for answers and events."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Queue
from typing import Any, BinaryIO

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 25  # seconds


class RefusedError(Exception):
    """A request that the adapter refused."""


class Client:
    """Sends requests one at a time, and keeps the events that come meanwhile."""

    def __init__(self, source: BinaryIO, target: BinaryIO) -> None:
        self._target = target
        self._answers: Queue[dict[str, Any] | None] = Queue()
        self._events: Queue[dict[str, Any] | None] = Queue()
        self.output: list[str] = []
        self._number = 0
        threading.Thread(target=self._read, args=(source,), daemon=True).start()

    def _read(self, source: BinaryIO) -> None:
        for message in messages(source):
            if message["type"] == "response":
                self._answers.put(message)
            elif message["event"] == "output":
                self.output.append(message["body"]["output"])
            else:
                self._events.put(message)
        self._answers.put(None)
        self._events.put(None)

    def send(self, command: str, **arguments: Any) -> None:
        """Send a request without waiting."""
        self._number += 1
        body = json.dumps({"seq": self._number, "type": "request", "command": command, "arguments": arguments}).encode()
        self.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def raw(self, data: bytes) -> None:
        """Send bytes."""
        self._target.write(data)
        self._target.flush()

    def request(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a request and return the body of its answer; RefusedError with the message where it failed."""
        self.send(command, **arguments)
        answer = self._answers.get(timeout=PATIENCE)
        assert answer is not None, "the adapter has gone"
        assert answer["command"] == command and answer["request_seq"] == self._number
        if not answer["success"]:
            assert answer["body"]["error"]["format"]
            raise RefusedError(answer["message"])
        found: dict[str, Any] = answer.get("body", {})
        return found

    def event(self, name: str) -> dict[str, Any]:
        """Return the body of the next event, which has this name."""
        event = self._events.get(timeout=PATIENCE)
        assert event is not None and event["event"] == name, event
        found: dict[str, Any] = event.get("body", {})
        return found

    def quiet(self) -> bool:
        """Return whether no event waits."""
        try:
            self._events.get(timeout=0.05)
        except Empty:
            return True
        return False

    def launch(self, program: Path | str, **arguments: Any) -> None:
        """Open a program."""
        self.request("initialize", adapterID="neurontools", linesStartAt1=True)
        self.request("launch", program=str(program), **arguments)
        self.event("initialized")

    def go(self, command: str = "configurationDone", **arguments: Any) -> dict[str, Any]:
        """Send a request that moves the program; return where it stopped."""
        self.request(command, **arguments)
        return self.event("stopped")


def messages(source: BinaryIO) -> Iterator[dict[str, Any]]:
    """Yield messages until the end."""
    while line := source.readline():
        assert line.lower().startswith(b"content-length:"), line
        assert source.readline() == b"\r\n"
        yield json.loads(source.read(int(line.split(b":")[1])))


def start(*options: str) -> subprocess.Popen[bytes]:
    """Start the adapter."""
    return subprocess.Popen(
        [sys.executable, "-m", "neurontools", "dap", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
