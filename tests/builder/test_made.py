"""What a build hands over is what a reader finds in its bytes: every part, in the same order, and nothing unknown."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any
from weakref import ref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.engines import ENGINES
from formats.errors import FormatError
from formats.neff import Descriptor, Neff, NeffWriter, SubgraphWriter, open_neff
from formats.neff.activation import Buckets, Controls
from formats.neff.made import MadeNeff
from formats.neff.visits import read_visits
from neurontools import nki
from neurontools.assembly.assemble_neff import to_neff, to_open_neff
from neurontools.assembly.assembler import parse_program
from neurontools.builder import build
from neurontools.nki import isa as nisa
from neurontools.nki import language as nl
from neurontools.nki.launch import build_neff
from tests.builder.test_order import random_trace
from tests.formats.neff.test_writer import small
from tests.nki.test_tutorials import KERNELS, load

ROOT = Path(__file__).resolve().parents[2]
PLAIN = Descriptor("a", 0, (4,), (1,), "b", 0, (4,), (1,))
# Names that are printed another way, and what a file holds in another form than the writer was given.
ODD: dict[str, Callable[[SubgraphWriter], object]] = {
    "variable": lambda core: core.variable("a\x07", "virtual", 8, backing_offset=0),
    "entries of no table": lambda core: core.variable("v", "virtual", 8, backing_offset=0, entries=(1,)),
    "fabric path": lambda core: core.variable("v", "virtual", 8, backing_offset=0, fabric_path="b\x1b"),
    "queue": lambda core: core.queue("q\x07", "data", "sp", 1, (9,)),
    "scratch": lambda core: core.queue("r", "dynamic", "sp", 1, (9,), scratch_offset=8),
    "feature": lambda core: core.feature("f\x07"),
    "set of functions": lambda core: core.activation_set("s\x07", ["exp"]),
    "comment": lambda core: core.dma_block("q", 0, "SP", [PLAIN], comment="c\x07"),
    "sum": lambda core: core.dma_block("q", 0, "SP", [PLAIN._replace(op="fma", scale=2.0)]),
    "scale of a copy": lambda core: core.dma_block("q", 0, "SP", [PLAIN._replace(scale=2.0)]),
    "lists for tuples": lambda core: core.dma_block("q", 0, "SP", [PLAIN._replace(source_sizes=[4])]),  # type: ignore[arg-type]
    "type": lambda core: core.dma_block("q", 0, "SP", [PLAIN._replace(source_dtype="uint8\x07")]),
    "reservation": lambda core: core.reserve("t", 0, 64),
}
CORE_PARTS = ("definition", "dialect", "variables", "queues", "variables_by_id", "dge_table", "engine_files",
              "dma_blocks", "tensors", "activation_info", "activation_sets", "operations")  # fmt: skip
FILE_PARTS = ("name", "lnc", "path", "target", "info", "graph", "kelfs", "kelf_members", "inputs", "outputs")


def ordered(value: Any, name: str = "") -> Any:
    """Return a part whose objects of JSON, as they were read, are in the order of their keys: nobody goes by it."""
    loose = name if name in ("raw", "profile") else ""
    if isinstance(value, Mapping):
        pairs = [(key, ordered(each, loose)) for key, each in value.items()]
        return sorted(pairs, key=itemgetter(0)) if loose else pairs
    if isinstance(value, list | tuple):
        names = getattr(value, "_fields", ("",) * len(value))
        return [ordered(each, loose or at) for each, at in zip(value, names, strict=True)]
    if isinstance(value, Buckets | Controls):
        return value.where, value.data
    return value


def parts(neff: Neff) -> dict[str, Any]:
    """Return all that is read of a file without its bytes; order counts, which `==` of mappings leaves out."""
    found = {part: repr(getattr(neff, part)) for part in FILE_PARTS}
    for core in neff.subgraphs:
        found |= {f"{core.name} {part}": repr(ordered(getattr(core, part))) for part in CORE_PARTS}
        for engine in ENGINES:
            asm = core.debug(engine)
            found[f"{core.name} {engine}"] = (
                core.stream_bytes(engine),
                None if asm is None else [core.source_of(engine, pc) for pc in range(len(asm))],
            )
        constants = [one for one in core.variables.values() if one.file_name is not None]
        found[f"{core.name} constants"] = [core.constant(one) for one in constants]
        found[f"{core.name} has"] = [core.has(name) for name in ("tiles.json", "visits.json", "fresh.json", "none")]
    return found


def need_agreement(made: Neff, *, understood: bool = True) -> None:
    """Require a file that was handed over to say what its bytes say."""
    assert isinstance(made, MadeNeff)
    said = parts(made)
    data = made.to_bytes()
    read = open_neff(data)
    assert said == parts(read)
    assert parts(made) == said  # behind the writing, too
    assert (made.header, made.size, made.header_bytes) == (read.header, read.size, read.header_bytes)
    assert made.members == read.members and made.archive.index == read.archive.index
    assert made.archive.data() == read.archive.data() and made.archive.beyond() == b""
    for member in read.members:
        assert made.read(member.name) == read.read(member.name)
        assert made.archive.size_of(member.name) == member.size
        assert made.json(member.name) == read.json(member.name) if member.name.endswith(("def.json", "f.json")) else 1
    assert made.verify() == read.verify()
    if understood:
        assert made.not_understood is None and read.not_understood is None
    assert made.to_bytes() is data


@settings(max_examples=25, deadline=None)
@given(st.data(), st.sampled_from(["trn1", "trn2", "trn3"]))
def test_random_programs(data: st.DataObject, target: str) -> None:
    trace = random_trace(data, target, addresses=data.draw(st.booleans())).trace
    built = build([trace], "random")
    need_agreement(built.open())
    assert built.to_bytes() == built.open().to_bytes()


@pytest.fixture
def _kernels() -> Iterator[None]:
    nki.install()
    yield
    nki.uninstall()


@pytest.mark.usefixtures("_kernels")
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_kernels_of_tutorials(corpus: Path, name: str) -> None:
    file, function, given_arrays, _ = KERNELS[name]
    arrays = [np.ones(one, np.float32) if isinstance(one, tuple) else one for one in given_arrays]
    path = corpus / "aws-neuron-sdk" / "nki" / "examples" / file
    if not path.exists():
        pytest.skip(f"no {path.name} in the corpus")
    made = build_neff(load(path, function), tuple(arrays), {}, target="trn2")
    need_agreement(made)
    assert read_visits(made.subgraphs[0]) is not None


def test_a_writer_hands_over_what_it_writes() -> None:
    writer = small(lnc=2, name="n\x07", compression="none")
    for index in range(2):
        core = writer.subgraph(index)
        core.queue("z", "data", "pool", 1, (9,))
        core.queue("q", "dynamic", "sp", 1, (8,), scratch_size=4)
        core.constant("c", np.arange(3, dtype=np.int16))
        core.constant("bytes", b"xyz")
        core.activation_set("s", ["exp"])
        core.tensor("t", "float32", (2, 3), "")
    writer.member("sg00/x.json", lambda: b"{}")
    before = writer.to_bytes()
    made = writer.hand_over()
    need_agreement(made, understood=False)
    assert made.to_bytes() == before


@pytest.mark.parametrize("cores", [1, 2])
def test_a_file_that_nobody_has_is_gone(cores: int) -> None:
    """Without a cycle it goes with its last use; else all that was traced for it would wait until Python looks."""

    def kernel(x: Any) -> Any:
        tile = nl.ndarray((64, 32), nl.float32, nl.sbuf)
        nisa.dma_copy(tile, x)
        out = nl.ndarray((64, 32), nl.float32, nl.shared_hbm)
        nisa.dma_copy(out, tile)
        return out

    gc.collect()
    gc.disable()
    try:
        neff = build_neff(kernel, (np.ones((64, 32), np.float32),), {}, lnc=cores)
        core, streams = neff.subgraphs[-1], neff.subgraphs[0].streams
        assert streams["SP"] is neff.subgraphs[0].streams["SP"]
        gone = ref(neff)
        del neff
        assert gone() is None
        # what somebody has of it is whole without the rest
        assert core.stream_bytes("SP") and core.definition.variables and core.neff.target.generation == "gen4"
        assert len(core.streams["SP"]) and [*streams] == [*ENGINES] and len(streams["DVE"])
        gone_core = ref(core)
        del core, streams
        assert gone_core() is None
    finally:
        gc.enable()


def test_what_does_not_fit_is_refused_as_it_is_handed_over() -> None:
    def with_block() -> NeffWriter:
        writer = small(compression="none")
        writer.subgraph().dma_block("none", 0, "SP", [])
        return writer

    def with_long_name() -> NeffWriter:
        writer = small(compression="none")
        writer.member("x" * 101, b"")
        return writer

    def with_entries() -> NeffWriter:
        writer = small(compression="none")
        writer.subgraph().debug("SP", [("a", "b", 1)] * 9)
        return writer

    def with_output() -> NeffWriter:
        writer = small(compression="none")
        writer.output("none", "float32", (1,))
        return writer

    def with_truth() -> NeffWriter:
        writer = small(compression="none")
        writer.subgraph().variable("v", "virtual", True, backing_offset=0)
        return writer

    for make in (
        with_block,
        with_truth,
        with_long_name,
        with_entries,
        with_output,
        lambda: small(name="n" * 300, compression="none"),
    ):
        with pytest.raises(FormatError) as handed:
            make().hand_over()
        with pytest.raises(FormatError) as written:
            make().to_bytes()
        assert str(handed.value) == str(written.value)


@pytest.mark.parametrize("path", sorted([*ROOT.glob("examples/*.s"), *ROOT.glob("tests/golden/**/*.s")]), ids=str)
def test_assembled_programs(path: Path) -> None:
    """They are compressed, and hold words of every class; nothing in them is unknown to a reader."""
    program = parse_program(path.read_text(), path.name)
    made = to_open_neff(program)
    need_agreement(made)
    assert made.to_bytes() == to_neff(program)


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("what", sorted(ODD))
def test_what_is_not_read_as_it_was_given(what: str, compression: str) -> None:
    def make() -> NeffWriter:
        writer = small(compression=compression)
        core = writer.subgraph()
        core.queue("q", "data", "sp", 1, (8,))
        ODD[what](core)
        return writer

    made = make().hand_over()
    need_agreement(made, understood=False)
    assert made.to_bytes() == make().to_bytes()


def test_what_is_large_is_written_at_once() -> None:
    large = small(compression="none")
    large.member("large", bytes(9 << 20))
    assert not isinstance(large.hand_over(), MadeNeff)
