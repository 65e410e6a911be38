"""Debug info of files of ours: the same chain that the compiler writes, asm → backend → penguin."""

from __future__ import annotations

from typing import NamedTuple

from formats.neff.debuginfo import ENGINE_IDS
from formats.neff.wire import packed, varint, write_bytes, write_varint

__all__ = ["DebugEntry", "DebugWriter"]

_PENGUIN = "debug_info_penguin.dbg"
_REGULAR = 1


class DebugEntry(NamedTuple):
    """Where one instruction comes from; `tensor` is the text of what it computes."""

    name: str
    file: str | None = None
    line: int | None = None
    tensor: str | None = None


class DebugWriter:
    """Collect the engines of one subgraph; `local` are members of its folder, `shared` those of `debug_info/`.

    Instruction ids run over all engines. Equal entries share one backend instruction.
    """

    def __init__(self, subgraph: int) -> None:
        self.engines: list[str] = []
        self.local: dict[str, bytes] = {}
        self._subgraph = subgraph
        self._next = 1
        self._origins: dict[tuple[str | None, int | None, str | None], int] = {}

    def engine(self, engine: str, entries: list[DebugEntry | None]) -> None:
        """Add one engine, one entry per 64-byte slot."""
        numbers: dict[DebugEntry, int] = {}
        strings: dict[str, int] = {}
        tails: dict[tuple[str | None, int | None, str | None], bytes] = {}
        backend, asm = bytearray(), bytearray()
        nothing = write_bytes(3, b"")
        before: DebugEntry | None = None
        reference = nothing
        for entry in entries:
            if entry is None:
                asm += nothing
                continue
            if entry is before:
                asm += reference
                continue
            before = entry
            known = numbers.get(entry)
            if known is None:
                known = numbers[entry] = self._next
                self._next += 1
                place = (entry.file, entry.line, entry.tensor)
                tail = tails.get(place)
                if tail is None:
                    if entry.file is not None:
                        strings.setdefault(entry.file, len(strings))
                    tail = tails[place] = _tail([self._origin(entry)], entry, strings)
                backend += write_bytes(3, _head(known, entry.name) + tail)
            reference = write_bytes(3, write_bytes(3, varint(known)))
            asm += reference
        number = write_varint(4, ENGINE_IDS[engine])
        self.local[f"debug_info_asm_{engine}.dbg"] = (
            write_bytes(1, "Words of one engine in stream order, written by neurontools.")
            + write_bytes(2, f"debug_info_backend_{engine}.dbg")
            + asm
            + number
        )
        self.local[f"debug_info_backend_{engine}.dbg"] = (
            write_bytes(1, "Instructions of one engine, written by neurontools.")
            + write_bytes(2, _PENGUIN)
            + backend
            + number
            + _strings(strings)
        )
        self.engines.append(engine)

    @property
    def shared(self) -> dict[str, bytes]:
        """Return the members outside the subgraph's folder."""
        if not self.engines:
            return {}
        files = dict.fromkeys(file for file, _, _ in self._origins if file is not None)
        strings = {file: number for number, file in enumerate(files)}
        body = b"".join(
            write_bytes(3, _head(number, tensor or "") + _tail([], DebugEntry("", file, line), strings))
            for (file, line, tensor), number in self._origins.items()
        )
        return {
            f"debug_info/{_PENGUIN}_sg{self._subgraph:06d}": write_bytes(
                1, "Statements of the kernel, written by neurontools."
            )
            + body
            + _strings(strings)
        }

    def _origin(self, entry: DebugEntry) -> int:
        return self._origins.setdefault((entry.file, entry.line, entry.tensor), len(self._origins) + 1)


def _head(number: int, name: str) -> bytes:
    """Return what is an instruction's own: its number and name."""
    return write_varint(1, number) + (write_bytes(2, name) if name else b"")


def _tail(parents: list[int], entry: DebugEntry, strings: dict[str, int]) -> bytes:
    """Return what all instructions of one kernel line share."""
    out = packed(3, parents) + write_varint(6, _REGULAR)
    if entry.file is not None and entry.line is not None:
        for key, value in (("kernel_file", strings[entry.file]), ("kernel_line", entry.line)):
            out += write_bytes(7, write_bytes(1, key) + write_bytes(2, str(value)))
    return out


def _strings(strings: dict[str, int]) -> bytes:
    return b"".join(write_bytes(5, text) for text in strings)
