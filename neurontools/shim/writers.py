"""The parts of a shim folder, each with the function that writes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from formats.named_tuple import NamedTuple

__all__ = ["WRITERS", "Writer"]


class Writer(NamedTuple):
    """One part: its name, the file that it is, what it stands in for, and what writes it into a folder.

    `write` returns notes for people; it raises UnsupportedError for what is missing on this machine.
    """

    name: str
    file: str
    summary: str
    write: Callable[[Path], list[str]]


def _libnrt(folder: Path) -> list[str]:
    from neurontools.libnrt.build import build  # deferred: start-up

    return build(folder)


def _compiler(folder: Path) -> list[str]:
    from neurontools.compiler.shim import write_compiler  # deferred: start-up

    return write_compiler(folder)


WRITERS: tuple[Writer, ...] = (
    Writer("neuronx-cc", "neuronx-cc", "The compiler's command, which compiles with neurontools.", _compiler),
    Writer("libnrt", "libnrt.so.1", "The Neuron runtime's library, over the emulator.", _libnrt),
)
