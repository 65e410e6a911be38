"""Captures of devices that the time model is checked against, and which of them are held out of calibration."""

from __future__ import annotations

import hashlib

__all__ = ["RULE", "held_out"]

RULE = (
    "A capture is held out when the first byte of the SHA-256 of its path, from the name of its repository on,"
    " is a multiple of 3."
)


def held_out(path: str) -> bool:
    """Return whether a capture only tests the model; `path` is `repository/folder/name.ntff`, with slashes."""
    return hashlib.sha256(path.encode()).digest()[0] % 3 == 0
