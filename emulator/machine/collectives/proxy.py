"""The host's part between nodes: a proxy of each rank that posts transfers to the network and answers by semaphores.

As documented (collectives.md 8): for every fold the device sets an index of the host to -1, "ready"; the proxy sets it
to 0 and raises the handshake semaphore.  A sender raises the index for each transfer; the proxy raises send_complete by
the transfers that are through, on the other side recv_complete.  Credits of a sender are its handshake and
send_complete, the receive count of a receiver its handshake and recv_complete.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

__all__ = ["OUTSTANDING", "Proxy"]

OUTSTANDING = 128  # requests of one proxy on the network (collectives.md 7)


@dataclass
class Proxy:
    """One rank's proxy for one collective; `index` is -1 from "ready" until the proxy has seen it."""

    rank: int
    index: int = -1
    handshake: int = 0
    send_complete: int = 0
    recv_complete: int = 0
    posted: int = 0
    waiting: deque[int] = field(default_factory=deque)
    failed: bool = False

    def shake(self) -> None:
        """Answer "device ready": the index becomes 0, the handshake semaphore rises."""
        if self.index == -1:
            self.index = 0
            self.handshake += 1

    def post(self, transfer: int) -> list[int]:
        """Take a transfer that the device has posted; return those that go to the network now."""
        self.index += 1
        self.waiting.append(transfer)
        return self._flush()

    def sent(self) -> list[int]:
        """Note that a transfer is through; return those that go to the network now."""
        self.send_complete += 1
        return self._flush()

    def received(self) -> None:
        """Note that a transfer came in."""
        self.recv_complete += 1

    def _flush(self) -> list[int]:
        found = []
        while self.waiting and not self.failed and self.posted - self.send_complete < OUTSTANDING:
            found.append(self.waiting.popleft())
            self.posted += 1
        return found
