"""A file that this process has just made: its members are there as values, its bytes once somebody asks for them.

Whoever runs a program that it has built needs neither: no JSON is written to be parsed again, debug information is
text once somebody looks, and nothing is hashed or packed.  What it says is what a reader finds in its bytes
(`tests/formats/neff/test_made.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial

from formats.limits import DEFAULT_LIMITS, Limits
from formats.named_tuple import NamedTuple
from formats.neff.archive import Archive, Blob
from formats.neff.fields import Fields
from formats.neff.header import HEADER_SIZE
from formats.neff.reader import Neff
from formats.neff.tar import TarIndex

__all__ = ["Content", "JsonContent", "MadeNeff", "Written", "bytes_of"]


class JsonContent(partial[bytes]):
    """A JSON member that is to be written: a function, and the object that it is given, as a reader would find it."""


Content = bytes | Callable[[], bytes]
"""A member, or what makes it."""


def bytes_of(content: Content) -> bytes:
    """Return a member, made where it is not yet."""
    return content if isinstance(content, bytes) else content()


class Written(NamedTuple):
    """The bytes of a file, and where its members stand."""

    data: bytes
    members: TarIndex


class _MadeBlob(Blob):
    """The bytes of a file that is written when the first of them is read."""

    def __init__(self, write: Callable[[], Written]) -> None:
        super().__init__(b"")
        self._write = write

    @cached_property
    def written(self) -> Written:
        """Return the file, written."""
        return self._write()

    @property
    def size(self) -> int:
        return len(self.written.data)

    def read(self, offset: int, length: int) -> bytes:
        return self.written.data[offset : offset + length]


class _MadeArchive(Archive):
    """The members of a file by their names, in the order of the archive; read from the file once that is written."""

    def __init__(self, blob: _MadeBlob, contents: dict[str, Content], limits: Limits) -> None:
        self._blob, self._limits, self.path = blob, limits, None
        self._made, self._contents = blob, contents
        self._start = HEADER_SIZE

    @property
    def available(self) -> int:
        return self._blob.size - HEADER_SIZE

    @cached_property
    def index(self) -> TarIndex:
        return self._made.written.members

    def __contains__(self, name: object) -> bool:
        return name in self._contents

    def size_of(self, name: str) -> int:
        return len(self.read(name))

    def read(self, name: str) -> bytes:
        content = self._contents.get(name)
        if content is None:
            return super().read(name)  # which says that there is none
        if not isinstance(content, bytes):
            content = self._contents[name] = content()
        return content


class MadeNeff(Neff):
    """A NEFF whose members are at hand; `write` gives its bytes, `name` is as its header gives it back."""

    def __init__(self, contents: dict[str, Content], write: Callable[[], Written], name: str, lnc: int,
                 limits: Limits = DEFAULT_LIMITS) -> None:  # fmt: skip
        self.limits = limits
        self._made = _MadeBlob(write)
        self._blob = self._made
        self.archive = _MadeArchive(self._made, contents, limits)
        self._contents, self._name, self._lnc = contents, name, lnc

    @property
    def name(self) -> str:
        return self._name

    @property
    def lnc(self) -> int:
        return self._lnc

    def to_bytes(self) -> bytes:
        return self._made.written.data

    def parsed_bytes(self, name: str) -> bytes:
        return self.need(name)  # a cap keeps what others made from taking memory; this is there

    def json_fields(self, name: str) -> Fields:
        content = self._contents.get(name)
        if isinstance(content, JsonContent):
            return Fields(content.args[0], name)
        return super().json_fields(name)
