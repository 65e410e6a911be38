"""Writing NEFFs: strict, deterministic, and checked with the reader's own rules before a byte leaves."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Sequence
from functools import cache, partial

from formats.errors import FormatError, NotFoundError
from formats.indented import indented_json
from formats.neff.compilers import OWN_COMPILER
from formats.neff.fields import printable
from formats.neff.graph import TensorInfo
from formats.neff.gzipstream import DeflateParameters, gzip_member
from formats.neff.hashing import HASH_VARIANTS, hash_field
from formats.neff.header import HEADER_SIZE, Header, header_name
from formats.neff.made import Content, Contents, JsonContent, MadeNeff, Said, Written, bytes_of
from formats.neff.problem import collect
from formats.neff.reader import Neff, open_neff
from formats.neff.tar import BLOCK, BLOCKING, SHORT_NAME, TarEntry, TarIndex, member_header, padding
from formats.neff.verify import graph_problems
from formats.neff.verify_subgraph import TABLE_CHECKS
from formats.neff.writer_kept import kept_names, once_in_order
from formats.neff.writer_said import tensors_as_read
from formats.neff.writer_subgraph import SubgraphWriter
from formats.neff.writer_values import dtype_name, shape_tuple
from formats.targets import Target, resolve_target

__all__ = ["NeffWriter"]

# entries of `num_tpb_per_node`, as many as the header has bytes for it (formats.md 2.1, 3.1)
_NODE_SLOTS = 64
_VIRTUAL_CORE = 1 << 10
# What is larger is written as it is made: members would be held as values and as bytes.
_LARGE, _MANY = 8 << 20, 1 << 12
_SMALL = 1 << 16  # bytes of members that are copied once more, to be hashed with their neighbours
# flags 0, mtime 0 (the same input gives the same bytes), XFL 4 "fastest", OS 3: as the compiler, but for the time
_GZIP_HEADER = bytes.fromhex("1f8b0800000000000403")


class NeffWriter:
    """Collect what goes into a NEFF, then write it.

    The bytes depend on what was put in and on nothing else: no clock, no random numbers, no machine names. `target` is
    any name that resolve_target knows; `lnc` is the number of physical cores and so of subgraphs (1 or 2).
    `compression` is "gzip" or "none" (a bare tar, which loads faster).
    """

    def __init__(
        self, target: str | Target, name: str = "file.neff", lnc: int = 1, *, compression: str = "gzip"
    ) -> None:
        self.checked: Neff | None = None  # a file without compression, opened to be checked
        if lnc not in (1, 2):
            raise FormatError("lnc is impossible", expected="1 or 2", got=lnc)
        if compression not in ("gzip", "none"):
            raise FormatError("unknown compression", expected="gzip or none", got=repr(compression))
        self.target = resolve_target(target)
        self.name, self.lnc, self.compression = name, lnc, compression
        self._subgraphs: dict[int, SubgraphWriter] = {}
        self._inputs: dict[str, TensorInfo] = {}
        self._outputs: dict[str, TensorInfo] = {}
        self._members: dict[str, Content] = {}

    def subgraph(self, index: int = 0) -> SubgraphWriter:
        """Return the writer of one physical core's part."""
        if not 0 <= index < self.lnc:
            raise FormatError("no such subgraph", expected=f"0 to {self.lnc - 1}", got=index)
        found = self._subgraphs.get(index)
        if found is None:
            found = self._subgraphs[index] = SubgraphWriter(self.target, index, self.lnc)
        return found

    def input(self, name: str, dtype: object, shape: Sequence[int]) -> None:
        """Add an input of the whole file; a subgraph has a variable of that name, kind and size."""
        self._tensor(self._inputs, name, dtype, shape, "input")

    def output(self, name: str, dtype: object, shape: Sequence[int]) -> None:
        """Add an output of the whole file; all subgraphs write parts of the same one.

        An output named like an input is that input updated in place; its variable stays of type `input`.
        """
        self._tensor(self._outputs, name, dtype, shape, "output")

    def member(self, name: str, content: Content) -> None:
        """Add a member of any other name, such as `metrics.json`, or what makes it once somebody reads it."""
        if name in self._members:
            raise FormatError("two members of one name", field=name)
        self._members[name] = content if callable(content) else bytes(content)

    def _tensor(self, table: dict[str, TensorInfo], name: str, dtype: object, shape: Sequence[int], kind: str) -> None:
        if name in table or (kind == "input" and name in self._outputs):
            raise FormatError("two tensors of one name", field=name)
        info = TensorInfo(name, dtype_name(dtype), shape_tuple(shape), kind)
        twin = self._inputs.get(name)
        if twin is not None and (twin.dtype, twin.shape) != (info.dtype, info.shape):
            raise FormatError(
                "updated input has another type or shape",
                field=name,
                expected=f"{twin.dtype}{list(twin.shape)}",
                got=f"{info.dtype}{list(info.shape)}",
            )
        table[name] = info

    def to_bytes(self) -> bytes:
        """Return the file.

        Raises FormatError when what was put in does not fit together: unresolved variables, inputs without a variable,
        constants of another size than theirs, semaphores of two owners.
        """
        (whole, index), identity = self._whole(self._in_order(self._files()))
        # checked as a bare tar, so that nothing has to be inflated for it
        neff = open_neff(whole)
        sizes = [entry.size for entry in index.entries]
        if len(sizes) <= neff.limits.members and max(sizes) <= neff.limits.member_size:
            neff.archive.index = index  # what the reader would find, header by header
        _check(neff)
        if self.compression == "none":
            self.checked = neff
            return whole
        return self._packed(whole, identity)

    def hand_over(self, *, understood: bool = False) -> Neff:
        """Return the file as values, checked, whose bytes, those of `to_bytes`, are made once somebody asks for them.

        Raises what `to_bytes` does. JSON holds plain values only, and members that are yet to be made cannot fail; with
        `understood` nothing is in the file but what this toolkit understands.
        """
        parts = [self.subgraph(index) for index in range(self.lnc)]
        key = (*map(SubgraphWriter.members_key, parts), *self._members)
        make: Callable[[], dict[str, Content]] | None = None
        if None in key:  # what makes a member may refuse what it was given, and does so now
            ready = self._files()
            names = _sound_names(ready)
            size = 0
        else:
            ready, make = {**self._members}, self._files
            names = kept_names(key, lambda: _sound_names(self._files()))
            for part in parts:
                ready |= part.words()
            size = sum([part.bytes_at_hand() for part in parts])
        size += sum([len(content) for content in ready.values() if content.__class__ is bytes])
        if size > _LARGE or len(names) > _MANY:
            return self.build()
        contents = Contents(names, ready, make)
        said = Said(
            header_name(self.name),
            _target_as_read(self.target.arch_code),
            tensors_as_read(self._inputs.values()),
            tensors_as_read(self._outputs.values()),
            tuple([part.said() for part in parts]),
        )
        neff = MadeNeff(contents, partial(self._written, contents), said)
        if understood:
            neff.not_understood = None
        tables = tuple([part.tables() for part in parts])
        once_in_order(tables, said, partial(_check, neff))
        return neff

    def build(self) -> Neff:
        """Return the file opened from memory."""
        data = self.to_bytes()
        return self.checked or open_neff(data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file; it appears whole or not at all."""
        from formats.whole_files import write_beside  # deferred: start-up

        write_beside(path, self.to_bytes())

    def _whole(self, contents: dict[str, Content]) -> tuple[Written, bytes]:
        """Return the file with a bare archive, and the digest of that."""
        parts, index = _tar(contents)
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part)
        identity = digest.digest()
        # Files can be large: there is one copy of the members and one of the whole.
        return Written(b"".join((self._header(parts, identity).encode(), *parts)), index), identity

    def _written(self, contents: Contents) -> Written:
        """Return the file, packed as it is to be."""
        (whole, index), identity = self._whole(self._in_order(contents.whole()))
        return Written(whole if self.compression == "none" else self._packed(whole, identity), index)

    def _packed(self, whole: bytes, identity: bytes) -> bytes:
        """Return a file with its archive compressed."""
        data = gzip_member(_GZIP_HEADER, whole[HEADER_SIZE:], DeflateParameters(1))
        data += bytes(-len(data) % BLOCKING)
        return self._header([data], identity).encode() + data

    def _header(self, parts: Sequence[bytes], identity: bytes) -> Header:
        """Return the header of a file made of these parts; `identity` is the digest of its archive."""
        return Header(
            pkg_version=2,
            header_size=HEADER_SIZE,
            data_size=sum(map(len, parts)),
            neff_version_major=1 if self.target.generation == "gen2" else 2,
            neff_version_minor=0,
            neff_build_version=OWN_COMPILER,
            num_tpb=1,
            hash=hash_field(HASH_VARIANTS[0], parts),
            # The digest of the uncompressed archive, so a file has the same identity however it is packed.
            uuid=identity[:16],
            name=self.name,
            requested_tpb_count=1,
            tpb_per_node=(1,),
            feature_bits=_VIRTUAL_CORE if self.lnc > 1 else 0,
            lnc_size=self.lnc,
        )

    def _files(self) -> dict[str, Content]:
        """Return the members by their names."""
        files: dict[str, Content] = {
            "info.json": JsonContent(_json, self._info),
            "kelf-0.json": JsonContent(_json, self._kelf),
            "neff.json": JsonContent(_json, self._graph),
        }
        for index in range(self.lnc):
            files |= self.subgraph(index).files()
        if not files.keys().isdisjoint(self._members):
            raise FormatError("two members of one name", field=next(name for name in files if name in self._members))
        files |= self._members
        return files

    def _in_order(self, files: dict[str, Content]) -> dict[str, Content]:
        """Return the members in the order of the archive."""
        order = sorted(files)
        if self.target.generation != "gen2":  # the newer compiler writes the graph last
            order.sort(key="neff.json".__eq__)
        return {name: files[name] for name in order}

    def _info(self) -> dict[str, object]:
        return {
            "tool_version": OWN_COMPILER,
            "kelp_version": "Dynamic",
            "name": self.name,
            "num_tpb": 1,
            "num_tpb_requested": 1,
            "num_tpb_per_node": [1] + [0] * (_NODE_SLOTS - 1),
        }

    def _kelf(self) -> dict[str, object]:
        names = [self.subgraph(index).name for index in range(self.lnc)]
        return {
            "graphs": [{"definition": f"{name}/def.json", "name": name} for name in names],
            "version": "0.5",
            "target": self.target.arch_code,
        }

    def _graph(self) -> dict[str, object]:
        """Return `neff.json`: with LNC 2 every output stands once per subgraph. Source: formats.md 3.3."""
        inputs = list(self._inputs.values())
        outputs = [tensor for tensor in self._outputs.values() for _ in range(self.lnc)]
        tensors = inputs + outputs
        nodes: list[dict[str, object]] = [
            {"op": "null", "name": t.name, "inputs": [], "output_names": [t.name], "is_param": "0"} for t in inputs
        ]
        nodes.append(
            {
                "op": "tvm_op",
                "name": "sg_coreV10",
                "attrs": {
                    "func_name": "__kelf",
                    "flatten_data": "0",
                    "num_inputs": str(len(inputs)),
                    "kelf": "kelf-0.json",
                    "num_outputs": str(len(outputs)),
                },
                "inputs": [[index, 0, 0] for index in range(len(inputs))],
                "output_names": [t.name for t in outputs],
            }
        )
        signature = {t.name: {"id": index, "dtype": t.dtype, "shape": list(t.shape)} for index, t in enumerate(inputs)}
        return {
            "nodes": nodes,
            "arg_nodes": list(range(len(inputs))),
            "heads": [[len(inputs), index, 0] for index in range(len(outputs))],
            "attrs": {
                "shape": ["list_shape", [list(t.shape) for t in tensors]],
                "storage_id": ["list_int", list(range(len(tensors)))],
                "dltype": ["list_str", [t.dtype for t in tensors]],
            },
            "node_row_ptr": [*range(len(inputs) + 1), len(tensors)],
            "metadata": {"signatures": {"default": {"inputs": signature, "outputs": {}}}},
        }


def _sound_names(names: Collection[str]) -> frozenset[str]:
    """Return the names of members; those that no archive can have are refused."""
    if max(map(len, names)) > SHORT_NAME or not "".join(names).isascii():
        for name in names:
            member_header(name, 0)  # which refuses it
    return frozenset(names)


@cache
def _target_as_read(code: str) -> Target:
    """Return the target that a reader finds, who is not told of which chip of the kind; there are a few."""
    return resolve_target(code)


def _check(neff: Neff) -> bool:
    """Return whether no rule finds anything; raise the first that is broken.

    Rules about single words would take seconds, and are the builder's to check.
    """
    if _is_in_order(neff):
        return True
    problems = list(collect("neff.json", graph_problems(neff, neff.subgraphs)))
    for subgraph in neff.subgraphs:
        for check in TABLE_CHECKS:
            problems += collect(subgraph.name, check(subgraph))
    for problem in problems:
        if problem.severity == "error":
            raise FormatError(problem.message, path=problem.where)
    return False


def _is_in_order(neff: Neff) -> bool:
    """Return whether no rule finds anything, as nearly always; else all of them are asked what they find."""
    try:
        for _ in graph_problems(neff, neff.subgraphs):
            return False
        for subgraph in neff.subgraphs:
            for check in TABLE_CHECKS:
                for _ in check(subgraph):
                    return False
    except (FormatError, NotFoundError):
        return False  # which is a finding too
    return True


def _tar(files: dict[str, Content]) -> tuple[list[bytes], TarIndex]:
    """Return the archive in parts, small members together, and where its members stand."""
    parts: list[bytes] = []
    small: list[bytes] = []
    entries = []
    at = 0
    for name, made in files.items():
        content = bytes_of(made)
        size = len(content)
        entries.append(TarEntry(printable(name), size, "file", at, at + BLOCK))
        at += BLOCK + size + padding(size)
        small.append(member_header(name, size))
        if size > _SMALL:
            parts += (b"".join(small), content)
            small = []
        else:
            small.append(content)
        small.append(bytes(padding(size)))
    return [*parts, b"".join((*small, bytes(2 * BLOCK)))], TarIndex(tuple(entries), at, True)


def _json(value: dict[str, object]) -> bytes:
    return indented_json(value, 4).encode() + b"\n"
