"""Writing: the same bytes every time, what was put in comes out, and nonsense is refused."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.dtypes import Dtype
from formats.errors import FormatError
from formats.isa import SetOrderingMode, TensorTensorScan
from formats.neff import EXTENDED_FEATURE, Descriptor, NeffWriter, SourceLocation, open_neff
from formats.neff.npy import npy_bytes
from formats.neff.verify_subgraph import SUBGRAPH_CHECKS
from formats.targets import resolve_target
from tools import neff_fixtures

from .support import fixture, sha256

ROOT = Path(__file__).resolve().parents[3]
SIDE = ("a", 0, (4,), (1,))


def small(**options: Any) -> NeffWriter:
    writer = NeffWriter("trn2", **options)
    writer.input("a", Dtype.FLOAT32, (1,))
    writer.output("b", np.dtype("int8"), (4,))
    for index in range(writer.lnc):
        sg = writer.subgraph(index)
        sg.variable("a", "input", 4)
        sg.variable("b", "output", 4)
    return writer


def test_bytes_are_the_same_every_time() -> None:
    assert small(lnc=2).to_bytes() == small(lnc=2).to_bytes()
    one = small()
    assert one.to_bytes() == one.to_bytes()


def test_fixtures_are_what_their_script_makes() -> None:
    readme = (ROOT / "fixtures" / "README.md").read_text()
    assert {p.name for p in (ROOT / "fixtures/neff").iterdir()} == set(neff_fixtures.FIXTURES)
    for name, make in neff_fixtures.FIXTURES.items():
        # Another zlib may compress otherwise; the archive itself is the same everywhere.
        assert neff_fixtures.same(fixture(name), make()), f"{name}: run `python -m tools neff-fixtures`"
        assert sha256(fixture(name)) in readme, f"fixtures/README.md does not give the sha256 of {name}"


@pytest.mark.parametrize("target", ["trn1", "gen2", "trn2", "mariana", resolve_target("trn3")])
@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_every_target_verifies(target: Any, compression: str) -> None:
    neff = NeffWriter(target, "n", compression=compression).build()
    assert neff.target.generation == resolve_target(target).generation
    assert [p.message for p in neff.verify()] == ["the graph has no output"]
    assert neff.archive.compression == compression and neff.header.name == "n"
    names = [m.name for m in neff.members]
    assert names == sorted(names, key=lambda n: (n == "neff.json" and neff.target.generation != "gen2", n))


def test_a_written_file_knows_its_members_as_its_reader_finds_them() -> None:
    writer = small(lnc=2, compression="none")
    writer.member("long/" * 25 + "name", b"x" * 513)
    writer.member("large", bytes(1 << 17))
    data = writer.to_bytes()
    assert writer.checked is not None
    assert writer.checked.archive.index == open_neff(data).archive.index
    assert all(writer.checked.read(one.name) == open_neff(data).read(one.name) for one in writer.checked.members)


def test_tensors_go_in_and_out() -> None:
    neff = small(lnc=2).build()
    assert [(t.name, t.dtype, t.shape) for t in neff.inputs] == [("a", "float32", (1,))]
    assert [(t.name, t.dtype, t.shape) for t in neff.outputs] == [("b", "int8", (4,))]
    assert neff.header.features == ("virtual-core",) and neff.subgraphs[1].definition.features == ("neff_feature_vnc",)
    assert neff.verify() == []


def test_save_leaves_nothing_beside_the_file(tmp_path: Path) -> None:
    small().save(tmp_path / "x.neff")
    assert [p.name for p in tmp_path.iterdir()] == ["x.neff"]
    assert (tmp_path / "x.neff").read_bytes() == small().to_bytes()
    assert (tmp_path / "x.neff").stat().st_mode & 0o600 == 0o600
    with pytest.raises(FormatError, match="cannot be written"):
        small().save(tmp_path / "no" / "x.neff")


def test_descriptor_round_trips_in_every_form() -> None:
    items = [
        Descriptor(*SIDE, *SIDE),
        Descriptor(*SIDE, *SIDE, op="cast", source_dtype="float32", target_dtype="float16"),
        Descriptor(*SIDE, *SIDE, op="fma", scale=2.5, scale_dtype="float32"),
        Descriptor(*SIDE, *SIDE, op="max", constant=1.0, constant_dtype="float32"),
        Descriptor(*SIDE, *SIDE, op="transpose", transpose_shape=(1, 2, 3, 4), transpose_element_size=2),
        Descriptor(*SIDE, *SIDE, num_tiling_dimensions=2, extra={"later": 1}),
    ]
    writer = small()
    sg = writer.subgraph()
    sg.queue("q", "data", "pool", 1, (9,))
    sg.dma_block("q", 3, "Pool", items, semaphore=9, event=4, remote_semaphores=(5,), comment="c")
    block = writer.build().subgraphs[0].dma_blocks["q", 3]
    assert list(block.descriptors) == items
    assert (block.semaphore, block.event, block.remote_semaphores, block.comment, block.engine) == (
        9,
        4,
        (5,),
        "c",
        "Pool",
    )


def test_var_ids_fill_the_gaps() -> None:
    sg = NeffWriter("trn2").subgraph()
    assert [
        sg.variable("p", "virtual", 1, var_id=2, backing_offset=0),
        sg.variable("SB", "state-buffer"),
        sg.variable("q", "virtual", 1, backing_offset=0),
        sg.variable("r", "virtual", 1, backing_offset=0),
    ] == [2, 0, 1, 3]


def test_activation_functions_get_codes_by_name() -> None:
    writer = small()
    codes = writer.subgraph().activation_set("s", ["exp", "gelu"])
    assert codes["exp"] == 7 and codes["gelu"] >= 0x80
    assert writer.subgraph().activation_set("t", {"own": 200}) == {"own": 200}
    graph = writer.build().subgraphs[0]
    assert [(f.name, f.func_id, f.set_name, f.has_table) for f in graph.activation_functions] == [
        ("exp", 7, "s", False),
        ("gelu", codes["gelu"], "s", False),
        ("own", 200, "t", False),
    ]
    assert [s.table_select for s in graph.activation_sets] == [0, 1]


def test_debug_entries_per_instruction_cover_all_slots_of_long_words() -> None:
    scan = TensorTensorScan()
    assert scan.size > 64
    data = SetOrderingMode().encode() + scan.encode() + SetOrderingMode().encode()
    writer = small()
    sg = writer.subgraph()
    sg.feature(EXTENDED_FEATURE)
    sg.stream("DVE", data)
    sg.debug("DVE", [None, ("scan", "k.py", 3), ("end", "k.py", 4)])
    neff = writer.build()
    slots = len(data) // 64
    found = [neff.source_of("DVE", pc) for pc in range(slots)]
    assert found == [None, *[SourceLocation("k.py", 3, "scan")] * (slots - 2), SourceLocation("k.py", 4, "end")]
    assert neff.verify() == []


def test_constant_may_be_given_the_type_that_npy_cannot_name() -> None:
    writer = small()
    sg = writer.subgraph()
    sg.constant("c", npy_bytes("<V2", (2,), bytes(4)))
    sg.tensor("c", Dtype.BFLOAT16, (2,), "constant")
    with pytest.raises(FormatError, match="two tensors"):
        sg.tensor("c", Dtype.BFLOAT16, (2,), "constant")
    graph = writer.build().subgraphs[0]
    assert graph.tensors["c"].dtype == "bfloat16" and graph.constant("c") == bytes(4)


def test_constants_of_every_kind() -> None:
    writer = small()
    sg = writer.subgraph()
    array = np.arange(12, dtype=np.float16).reshape(3, 4).T
    sg.constant("c", array, alignment=64)
    sg.constant("raw", bytearray(b"xyz"))
    graph = writer.build().subgraphs[0]
    assert graph.constant_array("c").tolist() == array.tolist() and graph.constant("raw") == b"xyz"
    assert graph.variables["c"].size == 24 and graph.tensors["c"].shape == (4, 3)


BAD: dict[str, Any] = {
    "lnc": lambda: NeffWriter("trn2", lnc=3),
    "compression": lambda: NeffWriter("trn2", compression="xz"),
    "target": lambda: NeffWriter("cpu"),
    "subgraph": lambda: NeffWriter("trn2").subgraph(1),
    "long name": lambda: NeffWriter("trn2", "n" * 256).to_bytes(),
    "two inputs": lambda: [small().input("a", "int8", (1,))],
    "input without a variable": lambda: _also(small(), lambda w: w.input("z", "int8", (1,))),
    "output of another size": lambda: _also(small(), lambda w: w.output("a2", "int8", (1,))),
    "negative shape": lambda: small().input("n", "int8", (-1,)),
    "no dtype": lambda: small().input("n", 7, (1,)),
    "member twice": lambda: _also(small(), lambda w: w.member("x", b""), lambda w: w.member("x", b"")),
    "member of the writer": lambda: _also(small(), lambda w: w.member("neff.json", b"")),
    "engine": lambda: small().subgraph().stream("CPU", b""),
    "half a word": lambda: small().subgraph().stream("PE", bytes(65)),
    "variable type": lambda: small().subgraph().variable("v", "secret"),
    "variable twice": lambda: small().subgraph().variable("a", "input", 4),
    "var_id twice": lambda: small().subgraph().variable("v", "input", 4, var_id=1),
    "variable without size": lambda: _also(small(), lambda w: w.subgraph().variable("v", "input")),
    "table entry": lambda: _also(small(), lambda w: w.subgraph().variable("t", "dge-table", entries=(9,))),
    "alignment": lambda: _also(small(), lambda w: w.subgraph().variable("v", "input", 4, alignment=3)),
    "constant without content": lambda: _also(
        small(), lambda w: w.subgraph().variable("v", "file", 4, file_name="v.npy")
    ),
    "constant of nothing": lambda: small().subgraph().constant("c", None),
    "queue type": lambda: small().subgraph().queue("q", "magic", "SP"),
    "queue owner": lambda: small().subgraph().queue("q", "in", "cpu"),
    "queue twice": lambda: [(sg := small().subgraph()).queue("q", "in", "SP"), sg.queue("q", "in", "SP")],
    "queue semaphore": lambda: _also(small(), lambda w: w.subgraph().queue("q", "in", "SP", 1, (2,))),
    "rings": lambda: _also(small(), lambda w: w.subgraph().queue("q", "in", "SP", 99)),
    "two owners": lambda: _also(small(), *[lambda w, n=n: w.subgraph().queue(n, "in", "SP", 1, (9,)) for n in "pq"]),
    "block twice": lambda: [(sg := small().subgraph()).dma_block("q", 1, "SP", []), sg.dma_block("q", 1, "Pool", [])],
    "block of no queue": lambda: _also(small(), lambda w: w.subgraph().dma_block("q", 1, "SP", [])),
    "descriptor of no variable": lambda: _also(
        small(),
        lambda w: w.subgraph().queue("q", "in", "SP", 1),
        lambda w: w.subgraph().dma_block("q", 1, "SP", [Descriptor("z", *SIDE[1:], *SIDE)]),
    ),
    "descriptor depth": lambda: (
        small().subgraph().dma_block("q", 1, "SP", [Descriptor("a", 0, (1,) * 5, (1,) * 5, *SIDE)])
    ),
    "descriptor steps": lambda: small().subgraph().dma_block("q", 1, "SP", [Descriptor("a", 0, (1,), (), *SIDE)]),
    "descriptor op": lambda: small().subgraph().dma_block("q", 1, "SP", [Descriptor(*SIDE, *SIDE, op="xor")]),
    "tensor twice": lambda: [
        (sg := small().subgraph()).tensor("t", "int8", (1,), "input"),
        sg.tensor("t", "int8", (1,), ""),
    ],
    "tensor kind": lambda: small().subgraph().tensor("t", "int8", (1,), "thing"),
    "function": lambda: small().subgraph().activation_set("s", ["no_such_function"]),
    "function codes": lambda: small().subgraph().activation_set("s", {"a": 1, "b": 1}),
    "function code": lambda: small().subgraph().activation_set("s", {"a": 256}),
    "set twice": lambda: [(sg := small().subgraph()).activation_set("s", {}), sg.activation_set("s", {})],
    "debug shape": lambda: small().subgraph().debug("PE", [()]),
    "debug count": lambda: _also(small(), lambda w: w.subgraph().debug("PE", [("a", "f", 1)] * 9)),
    "constant that is no npy": lambda: small().subgraph().constant("c", b"\x93NUMPY"),
}


def _also(writer: NeffWriter, *steps: Any) -> None:
    for step in steps:
        step(writer)
    with pytest.raises(FormatError) as handed_over:
        writer.hand_over()
    with pytest.raises(FormatError) as written:
        writer.to_bytes()
    assert str(handed_over.value) == str(written.value)
    raise written.value


@pytest.mark.parametrize("case", BAD)
def test_nonsense_is_refused(case: str) -> None:
    with pytest.raises(FormatError) as error:
        BAD[case]()
    assert "\n" not in str(error.value)


def test_tables_of_the_writer_are_read_back() -> None:
    writer = small()
    rows = [{"func_name": "exp_2p", "func_id": 7, "pwl_control_base_pos": 0}]
    buckets = struct.pack("<5f12x", 1, 2, 3, 4, 5) * 2
    writer.subgraph().activation_set("s", {"exp": 7}, buckets=buckets, controls=bytes(32), profiles=rows)
    (table,) = writer.build().subgraphs[0].activation_sets
    assert len(table.buckets) == 2 and table.buckets[1].x0 == 5.0 and table.functions[0].has_table


def test_reading_loads_neither_numpy_nor_protobuf() -> None:
    code = (
        "import sys; from formats.neff import open_neff; n = open_neff(sys.argv[1]); n.members, n.target, n.inputs;"
        "[g.variables for g in n.subgraphs]; n.source_of('DVE', 2); n.verify();"
        "print([m for m in ('numpy', 'google.protobuf', 'ml_dtypes', 'formats.neff.writer') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, str(ROOT / "fixtures/neff/add_exp.neff")], capture_output=True, text=True, cwd=ROOT
    )
    assert out.stdout.strip() == "[]", out.stdout + out.stderr


def test_header_and_members_need_no_instruction_set() -> None:
    code = (
        "import sys; from formats.neff import open_neff; n = open_neff(sys.argv[1]); n.members, n.target, n.inputs;"
        "print([m for m in ('formats.isa', 'numpy', 'formats.neff.verify') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, str(ROOT / "fixtures/neff/add_exp.neff")], capture_output=True, text=True, cwd=ROOT
    )
    assert out.stdout.strip() == "[]", out.stdout + out.stderr


def test_a_descriptor_outside_is_written_and_told() -> None:
    """A program may be wrong there: the device faults at the trigger, where a check can name the line."""
    writer = small()
    writer.subgraph().queue("q", "in", "SP", 1)
    writer.subgraph().dma_block("q", 1, "SP", [Descriptor("a", 1, (4,), (1,), *SIDE)])
    (subgraph,) = open_neff(writer.to_bytes()).subgraphs
    (problem,) = [one for one in SUBGRAPH_CHECKS["DMA blocks"](subgraph) if one.severity == "error"]
    assert "bytes 1..5 of a" in problem.message
