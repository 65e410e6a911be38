"""Debug info of files of ours: the same chain that the compiler writes, asm → backend → penguin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any

from formats.named_tuple import NamedTuple
from formats.neff.debuginfo import ENGINE_IDS
from formats.neff.wire import packed, varint, write_bytes, write_varint

__all__ = ["DebugEntry", "DebugFiles", "DebugWriter", "Entries", "EntryFields", "EntryMaker"]

_PENGUIN = "debug_info_penguin.dbg"
# an instruction's kind: neither a transpose nor anything else that has a number (formats.md 3.9)
_REGULAR = 1


class DebugEntry(NamedTuple):
    """Where one instruction comes from; `tensor` is the text of what it computes. Shorter tuples serve as well."""

    name: str
    file: str | None = None
    line: int | None = None
    tensor: str | None = None


EntryFields = tuple[Any, ...]
EntryMaker = Callable[[], Sequence[EntryFields | None]]
Entries = list[EntryFields | None] | EntryMaker
_Place = tuple[Any, ...]  # file and line, and the text where there is one


class DebugWriter:
    """Collect the engines of one subgraph; `local` are members of its folder, `shared` those of `debug_info/`.

    Instruction ids run over all engines. Equal entries share one backend instruction.
    """

    def __init__(self, subgraph: int) -> None:
        self.engines: list[str] = []
        self.local: dict[str, bytes] = {}
        self._subgraph = subgraph
        self._next = 1
        self._origins: dict[_Place, int] = {}

    def engine(self, engine: str, entries: Sequence[EntryFields | None]) -> None:
        """Add one engine, one entry per 64-byte slot."""
        references: dict[EntryFields, bytes] = {}
        strings: dict[str, int] = {}
        tails: dict[_Place, bytes] = {}
        backend, asm = bytearray(), bytearray()
        before: EntryFields | None = None
        reference = nothing = write_bytes(3, b"")
        for entry in entries:
            if entry is not before:  # the words of one operation share theirs
                before = entry
                if entry is None:
                    reference = nothing
                else:
                    if len(entry) != 3:
                        entry = _usual(entry)
                    known = references.get(entry)
                    if known is None:
                        place = entry[1:]
                        tail = tails.get(place)
                        if tail is None:
                            tail = tails[place] = _tail([self._origin(place)], place, strings)
                        number = varint(self._next)
                        self._next += 1
                        backend += _instruction(number, entry[0], tail)
                        # Field 3, an entry of the file, that holds field 3, the packed ids of its parents, of which
                        # there is one. Lengths are single bytes: a varint has ten at most.
                        size = len(number)
                        known = references[entry] = b"\x1a%c\x1a%c%b" % (size + 2, size, number)
                    reference = known
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
        strings: dict[str, int] = {}
        body = b"".join(
            _instruction(varint(number), place[2] if len(place) > 2 else "", _tail([], place, strings))
            for place, number in self._origins.items()
        )
        return {
            _shared_name(self._subgraph): write_bytes(1, "Statements of the kernel, written by neurontools.")
            + body
            + _strings(strings)
        }

    def _origin(self, place: _Place) -> int:
        return self._origins.setdefault(place, len(self._origins) + 1)


class DebugFiles:
    """The members of one subgraph's debug info, by their names in the archive, written when the first is asked for."""

    def __init__(self, subgraph: int, folder: str, engines: Mapping[str, Entries]) -> None:
        self._subgraph, self._folder, self._engines = subgraph, folder, engines

    def members(self) -> dict[str, Callable[[], bytes]]:
        """Return what makes each member."""
        names = _names(self._subgraph, self._folder, tuple(self._engines))
        return {name: partial(self._member, name) for name in names}

    @cached_property
    def _written(self) -> dict[str, bytes]:
        writer = DebugWriter(self._subgraph)
        for engine, entries in self._engines.items():
            writer.engine(engine, entries() if callable(entries) else entries)
        return {f"{self._folder}/{name}": content for name, content in writer.local.items()} | writer.shared

    def _member(self, name: str) -> bytes:
        return self._written[name]


@lru_cache(maxsize=1 << 6)
def _names(subgraph: int, folder: str, engines: tuple[str, ...]) -> tuple[str, ...]:
    """Return the members of a subgraph whose `engines` have debug info."""
    own = [f"{folder}/debug_info_{level}_{engine}.dbg" for engine in engines for level in ("asm", "backend")]
    return (*own, _shared_name(subgraph)) if own else ()


def _shared_name(subgraph: int) -> str:
    return f"debug_info/{_PENGUIN}_sg{subgraph:06d}"


def _usual(entry: EntryFields) -> EntryFields:
    """Return an entry with file and line, and with the text only where there is one: equal entries are the same."""
    name, file, line, tensor = (*entry, None, None, None)[:4]
    return (name, file, line) if tensor is None else (name, file, line, tensor)


def _instruction(number: bytes, name: str, tail: bytes) -> bytes:
    """Return one instruction: its number as a varint and its name, which are its own, and what its line shares."""
    raw = name.encode("utf-8", "backslashreplace")
    length = len(raw)
    size = len(number) + length + len(tail) + 3
    if length and size < 0x80:
        # field 1, the id, and field 2, the name; written out because a program has an entry for every word
        return b"\x1a%c\x08%b\x12%c%b%b" % (size, number, length, raw, tail)
    return write_bytes(3, b"\x08%b%b%b" % (number, write_bytes(2, raw) if raw else b"", tail))


def _tail(parents: list[int], place: _Place, strings: dict[str, int]) -> bytes:
    """Return what all instructions of one kernel line share; files get their numbers in the order they come."""
    out = packed(3, parents) + write_varint(6, _REGULAR)
    file, line = place[:2]
    if file is not None:
        strings.setdefault(file, len(strings))
    if file is not None and line is not None:
        for key, value in (("kernel_file", strings[file]), ("kernel_line", line)):
            out += write_bytes(7, write_bytes(1, key) + write_bytes(2, str(value)))
    return out


def _strings(strings: dict[str, int]) -> bytes:
    return b"".join(write_bytes(5, text) for text in strings)
