"""A file that this process has just made: its members are there as values, its bytes once somebody asks for them.

Whoever runs a program that it has built needs neither: no JSON is written to be parsed again, debug information is
text once somebody looks, and nothing is hashed or packed.  What it says is what a reader finds in its bytes
(`tests/builder/test_made.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import Any

from formats.limits import DEFAULT_LIMITS, Limits
from formats.named_tuple import NamedTuple
from formats.neff.archive import Archive, Blob
from formats.neff.container import Container
from formats.neff.definition import Definition
from formats.neff.fields import Fields
from formats.neff.graph import TensorInfo
from formats.neff.header import HEADER_SIZE
from formats.neff.reader import Neff
from formats.neff.subgraph import Subgraph
from formats.neff.tar import TarIndex
from formats.neff.transfers import EngineFile
from formats.targets import Target

__all__ = ["Content", "Contents", "JsonContent", "MadeNeff", "Said", "SaidCore", "Written", "bytes_of"]


class JsonContent(Mapping[str, object]):
    """A JSON member that is to be written: the object that a reader would find, and its bytes; made when asked for."""

    def __init__(self, write: Callable[[dict[str, Any]], bytes], make: Callable[[], dict[str, Any]]) -> None:
        self._write, self._make = write, make

    @cached_property
    def value(self) -> dict[str, Any]:
        """Return the object."""
        return self._make()

    def __call__(self) -> bytes:
        return self._write(self.value)

    def __getitem__(self, key: str) -> object:
        return self.value[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.value)

    def __len__(self) -> int:
        return len(self.value)


Content = bytes | Callable[[], bytes]
"""A member, or what makes it."""


def bytes_of(content: Content) -> bytes:
    """Return a member, made where it is not yet."""
    return content if isinstance(content, bytes) else content()


class Contents:
    """The members of a file by their names: what is at hand, and what makes all of them, once.

    Whoever runs a program reads its words, and asks of a few other members whether they are there.
    """

    __slots__ = ("_make", "_ready", "names")

    def __init__(
        self, names: Collection[str], ready: dict[str, Content], make: Callable[[], Mapping[str, Content]] | None
    ) -> None:
        self.names, self._ready, self._make = names, ready, make

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def get(self, name: str) -> Content | None:
        """Return a member, or what makes it; None where there is none of that name."""
        found = self._ready.get(name)
        return self.whole().get(name) if found is None and name in self.names else found

    def put(self, name: str, content: bytes) -> None:
        """Keep a member that was made."""
        self._ready[name] = content

    def whole(self) -> dict[str, Content]:
        """Return all members."""
        make = self._make
        if make is not None:
            self._ready = {**make(), **self._ready}
            self._make = None  # behind it, for whoever reads the same file at the same time
        return self._ready


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

    def __init__(self, blob: _MadeBlob, contents: Contents, limits: Limits) -> None:
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
            content = content()
            self._contents.put(name, content)
        return content


class SaidCore(NamedTuple):
    """What a reader finds of a subgraph: its name, the member of its definition, what that and the engines' files say.

    None is what has to be read, since it is not taken as it was given.
    """

    name: str
    member: str
    definition: Definition | None
    engine_files: Mapping[str, EngineFile] | None


class Said(NamedTuple):
    """What a reader finds of a file, as its writer has it; `name` is as the header gives it back."""

    name: str
    target: Target
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    cores: tuple[SaidCore, ...]


class _Members(Container):
    """A file whose members are at hand, as its subgraphs know it.

    They do not know the file that has them: that would be a cycle, and all that was traced for it would stay until
    Python looks for those.
    """

    def __init__(self, blob: _MadeBlob, archive: _MadeArchive, contents: Contents, target: Target,
                 limits: Limits) -> None:  # fmt: skip
        self.limits = limits
        self._blob = blob
        self.archive = archive
        self._contents = contents
        self.target = target

    def parsed_bytes(self, name: str) -> bytes:
        return self.need(name)  # a cap keeps what others made from taking memory; this is there

    def json_fields(self, name: str) -> Fields:
        content = self._contents.get(name)
        if isinstance(content, JsonContent):
            return Fields(content.value, name)
        return super().json_fields(name)


class MadeNeff(_Members, Neff):
    """A NEFF whose members are at hand; `write` gives its bytes, `said` is what is read of them most."""

    def __init__(self, contents: Contents, write: Callable[[], Written], said: Said,
                 limits: Limits = DEFAULT_LIMITS) -> None:  # fmt: skip
        blob = self._made = _MadeBlob(write)
        parts = blob, _MadeArchive(blob, contents, limits), contents, said.target, limits
        super().__init__(*parts)
        self._said = said
        members = _Members(*parts)
        subgraphs = []
        for index, core in enumerate(said.cores):
            subgraph = Subgraph(members, index, core.name, core.member)
            if core.definition is not None:
                subgraph.definition = core.definition
            if core.engine_files is not None:
                subgraph.engine_files = core.engine_files
            subgraphs.append(subgraph)
        self.subgraphs = tuple(subgraphs)

    @property
    def name(self) -> str:
        return self._said.name

    @property
    def lnc(self) -> int:
        return len(self._said.cores)

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        return self._said.inputs

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        return self._said.outputs

    def to_bytes(self) -> bytes:
        return self._made.written.data
