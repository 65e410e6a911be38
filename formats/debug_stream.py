"""Tensors that a program prints while it runs: how its file names them.

The runtime's own way, a debug stream with events of 1,024 bytes and data (formats.md 9), begins in instructions whose
encoding is not public. Here a printed tensor is an output with a name of its own, which carries the prefix; ours.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

__all__ = ["is_printed", "prefix_of", "tensor_name"]

_MARK = "device_print."


def tensor_name(number: int, prefix: str) -> str:
    """Return the name of the n-th printed tensor of a program."""
    return f"{_MARK}{number}.{quote(prefix, safe='')}"


def is_printed(name: str) -> bool:
    """Return whether a tensor is one that the program prints."""
    return name.startswith(_MARK)


def prefix_of(name: str) -> str:
    """Return the prefix that stands before the values of a printed tensor."""
    return unquote(name.removeprefix(_MARK).partition(".")[2])
