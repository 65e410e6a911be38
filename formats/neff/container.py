"""What a NEFF is as one file: header, members, node graph and debug info; each is read when it is asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property

from formats.errors import FormatError, NotFoundError
from formats.limits import DEFAULT_LIMITS, Limits
from formats.neff.archive import Archive, Member, open_blob
from formats.neff.debuginfo import DebugFile
from formats.neff.fields import Fields, load
from formats.neff.graph import Graph, Info, Kelf, TensorInfo, parse_graph, parse_info, parse_kelf
from formats.neff.header import HEADER_SIZE, Header
from formats.targets import Target, resolve_target

__all__ = ["Container", "Readable"]

Readable = str | os.PathLike[str] | bytes | bytearray | memoryview


class Container:
    """The file that subgraphs lie in, read-only and lazy.

    Sizes are bytes. The archive is inflated once, on first need, and kept; memory stays under what `limits` says.
    """

    def __init__(self, source: Readable, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self._blob = open_blob(source)
        if self.header.header_size > self._blob.size:
            raise FormatError(
                "NEFF header is cut off",
                path=self._blob.path,
                expected=f"{self.header.header_size} bytes",
                got=self._blob.size,
            )
        self.archive = Archive(self._blob, self.header, limits)

    @cached_property
    def header(self) -> Header:
        """Return the header; a damaged one is refused as the file is opened."""
        return Header.parse(self._blob.read(0, HEADER_SIZE), self._blob.path)

    @property
    def name(self) -> str:
        """Return the name that the header gives the file."""
        return self.header.name

    @property
    def path(self) -> str | None:
        """Return the file's path; None for bytes in memory."""
        return self._blob.path

    @property
    def size(self) -> int:
        """Return the bytes of the whole file."""
        return self._blob.size

    @property
    def header_bytes(self) -> bytes:
        """Return the header as it stands in the file."""
        return self._blob.read(0, self.header.header_size)

    def to_bytes(self) -> bytes:
        """Return the whole file."""
        return self._blob.read(0, self._blob.size)

    @property
    def lnc(self) -> int:
        """Return the physical cores of the logical core; files that say 0 mean 1."""
        return max(1, self.header.lnc_size)

    @property
    def members(self) -> tuple[Member, ...]:
        """Return the archive's members in archive order."""
        return self.archive.members

    def read(self, name: str) -> bytes:
        """Return a member's content.

        Raises NotFoundError when there is none of that name.
        """
        return self.archive.read(name)

    def need(self, name: str) -> bytes:
        """Return a member that another member names.

        Raises FormatError when it is missing: then the file is not whole.
        """
        try:
            return self.archive.read(name)
        except NotFoundError:
            raise FormatError("member is missing", path=self.path, field=name) from None

    def parsed_bytes(self, name: str) -> bytes:
        """Return a member that is going to be parsed; its values take many times its size, so it has a lower cap."""
        cap = self.limits.parsed_from(self.size)
        if name in self.archive and self.archive.size_of(name) > cap:
            raise FormatError("member is over the size limit", path=name, expected=f"at most {cap} bytes")
        return self.need(name)

    def json_fields(self, name: str) -> Fields:
        """Return a JSON member whose keys are checked as they are read."""
        return load(self.parsed_bytes(name), name)

    def json(self, name: str) -> Mapping[str, object] | None:
        """Return a JSON member such as `hlo_stats.json` as plain data, or None where there is none."""
        return self.json_fields(name).raw if name in self.archive else None

    @cached_property
    def info(self) -> Info | None:
        """Return what `info.json` says, or None where there is none."""
        return parse_info(self.json_fields("info.json")) if "info.json" in self.archive else None

    @cached_property
    def graph(self) -> Graph:
        """Return the node graph of `neff.json`."""
        return parse_graph(self.json_fields("neff.json"))

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """Return the inputs in call order; all subgraphs share them."""
        return self.graph.inputs

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """Return the outputs in call order, each once: with LNC 2 all subgraphs write parts of the same ones."""
        return self.graph.outputs

    @property
    def kelf_members(self) -> tuple[str, ...]:
        """Return the members of compiled nodes: those that `neff.json` names, else every `kelf-*.json`."""
        names: list[str] = []
        if "neff.json" in self.archive:
            names = [node.kelf for node in self.graph.nodes if node.kelf is not None]
        if not names:
            names = [m.name for m in self.members if m.name.startswith("kelf-") and m.name.endswith(".json")]
        return tuple(dict.fromkeys(names))

    @cached_property
    def kelfs(self) -> tuple[Kelf, ...]:
        """Return the compiled nodes."""
        names = self.kelf_members
        if not names:
            raise FormatError("no compiled node: neither neff.json nor a kelf member names one", path=self.path)
        return tuple(parse_kelf(self.json_fields(name)) for name in names)

    @cached_property
    def target(self) -> Target:
        """Return the target of the compiled nodes; sunda gives trn1: the file does not say whether it means inf2."""
        codes = {kelf.target for kelf in self.kelfs}
        if len(codes) != 1:
            raise FormatError("compiled nodes are for different targets", path=self.path, got=" ".join(sorted(codes)))
        return resolve_target(codes.pop())

    @cached_property
    def _debug_files(self) -> dict[str, DebugFile]:
        return {}

    def debug_file(self, name: str) -> DebugFile:
        """Return a debug info member."""
        if name not in self._debug_files:
            self._debug_files[name] = DebugFile(self.parsed_bytes(name), name)
        return self._debug_files[name]

    def debug_parent(self, level: DebugFile, folder: str, index: int) -> DebugFile | None:
        """Return the debug info one level up, or None where the archive does not hold it.

        It lies in the folder of the subgraph or in `debug_info/`, there with the number of the subgraph it was made
        for; cores of one logical core share the first.
        """
        parent = level.parent
        if parent is None:
            return None
        own, shared = f"{folder}/{parent}" if folder else parent, f"debug_info/{parent}"
        for name in (own, f"{shared}_sg{index:06d}", shared, f"{shared}_sg000000"):
            if name in self.archive:
                return self.debug_file(name)
        return None
