"""What a NEFF says, as values: the fixture in full, every optional key, and every wrong kind."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest

from formats.engines import ENGINES
from formats.errors import FormatError, NotFoundError
from formats.neff import DmaBlock, SourceLocation, TensorInfo, open_neff
from formats.neff.definition import parse_definition
from formats.neff.fields import Fields, load
from formats.neff.graph import parse_graph, parse_tensor_map
from formats.neff.transfers import extent, parse_engine_file

from .support import bare, changed, contents, fixture, plain_tar, wrapped


def test_file_as_a_whole(tmp_path: Any) -> None:
    path = tmp_path / "x.neff"
    path.write_bytes(fixture())
    for neff in (open_neff(fixture()), open_neff(path), open_neff(str(path)), open_neff(memoryview(bare()))):
        assert neff.target.name == "trn1" and neff.lnc == 1
        assert neff.inputs == (
            TensorInfo("a", "float32", (128, 4), "input"),
            TensorInfo("b", "float32", (128, 4), "input"),
        )
        assert neff.outputs == (TensorInfo("out", "float32", (128, 4), "output"),)
        assert neff.inputs[0].nbytes == 2048
        assert [graph.name for graph in neff.subgraphs] == ["sg00"]
        assert neff.info is not None and neff.info.tool_version == "neurontools"
        assert neff.verify() == []
    assert open_neff(path).to_bytes() == fixture()
    open_neff(fixture()).save(tmp_path / "copy.neff")
    assert (tmp_path / "copy.neff").read_bytes() == fixture()


def test_missing_file_and_folder_are_format_errors(tmp_path: Any) -> None:
    with pytest.raises(FormatError, match=r"none\.neff: cannot be read"):
        open_neff(tmp_path / "none.neff")
    with pytest.raises(FormatError, match="cannot be read"):
        open_neff(tmp_path)


def test_subgraph_values() -> None:
    graph = open_neff(fixture()).subgraphs[0]
    assert graph.dialect == "neuron"
    assert list(graph.streams) == list(ENGINES) and len(graph.streams) == 5
    assert [word.NAME for word in graph.streams["SP"]] == [
        "SET_ORDERING_MODE",
        "PSEUDO_DMA_TRIGGER",
        "PSEUDO_DMA_TRIGGER",
        "PSEUDO_DMA_TRIGGER",
        "EVENT_SEMAPHORE",
    ]
    assert len(graph.stream_bytes("SP")) == 5 * 64
    with pytest.raises(KeyError):
        graph.streams["CPU"]
    with pytest.raises(NotFoundError):
        graph.stream_bytes("CPU")
    variables = graph.variables
    assert {n: (v.kind, v.var_id, v.size) for n, v in variables.items()} == {
        "SB": ("state-buffer", 0, None),
        "a": ("input", 1, 2048),
        "b": ("input", 2, 2048),
        "out": ("output", 3, 2048),
        "table": ("file", 4, 16),
        "raw": ("file", 5, 9),
        "spill": ("virtual", 6, 2048),
        "tables": ("dge-table", 7, None),
    }
    assert (variables["spill"].backing_offset, variables["spill"].alignment) == (0, 64)
    assert variables["tables"].entries == (1, 2, 3) and graph.dge_table is variables["tables"]
    queue = graph.queues["qSPIO0"]
    assert (queue.kind, queue.owner, queue.engine, queue.num_queues) == ("in", "sp", "SP", 16)
    assert queue.semaphores == tuple(range(8, 24))
    block = graph.dma_blocks["qSPOut0", 7]
    assert (block.engine, block.semaphore, block.comment) == ("SP", 24, "store")
    assert block.descriptors[0].source == "SB" and block.descriptors[0].target_steps == (1, 16)
    assert graph.tensors["table"] == TensorInfo("table", "float32", (4,), "constant")


def test_constants() -> None:
    graph = open_neff(fixture()).subgraphs[0]
    assert graph.constant("table") == struct.pack("<4f", 0.5, 1, 1.5, 2)
    assert graph.constant_array(graph.variables["table"]).tolist() == [0.5, 1, 1.5, 2]
    assert graph.constant("raw") == b"raw bytes" and graph.constant_array("raw").dtype == np.uint8
    with pytest.raises(NotFoundError, match="no variable"):
        graph.constant("nothing")
    with pytest.raises(NotFoundError, match="has no file"):
        graph.constant("a")


def test_sources_of_words() -> None:
    neff = open_neff(fixture())
    source = "kernels/add_exp.py"
    assert neff.source_of("DVE", 0) is None
    assert neff.source_of("DVE", 1) == SourceLocation(source, 13, "add-wait")
    assert neff.source_of("DVE", 2) == SourceLocation(source, 13, "add", "float32<128 x 4> sum")
    assert neff.source_of("DVE", 99) is None and neff.source_of("PE", 0) is None
    with pytest.raises(NotFoundError):
        neff.source_of("DVE", 0, subgraph=1)
    with pytest.raises(NotFoundError):
        neff.source_of("CPU", 0)


def test_activation_tables() -> None:
    graph = open_neff(fixture()).subgraphs[0]
    (table,) = graph.activation_sets
    assert (table.name, table.table_select) == ("exp_and_more", 0)
    assert [(f.func_id, f.name, f.pieces, f.has_table) for f in graph.activation_functions] == [
        (7, "exp", 1, True),
        (1, "identity", 0, False),
    ]
    assert table.buckets[0] == (1.0, 1.0, 0.5, 0.25, 0.0) and table.buckets[:] == (table.buckets[0],)
    assert table.controls[0] == (0, 23, 0) and table.controls[-1:] == (table.controls[0],)
    assert table.buckets.array().shape == (1, 5) and list(table.controls) == [(0, 23, 0)]
    with pytest.raises(IndexError):
        table.buckets[1]
    info = graph.activation_info
    assert info is not None and info.find("exp_and_more") == info.sets[0] and info.find("nothing") is None


def test_lnc_2_shares_inputs_and_outputs() -> None:
    neff = open_neff(fixture("idle_pair.neff"))
    assert (
        neff.lnc == 2
        and [g.name for g in neff.subgraphs] == ["sg00", "sg01"]
        and [g.index for g in neff.subgraphs] == [0, 1]
    )
    assert [t.name for t in neff.outputs] == ["y"] and neff.outputs[0].dtype == "bfloat16"
    assert len(neff.graph.nodes[-1].output_names) == 2
    for graph in neff.subgraphs:
        assert graph.dialect == "extended"
        assert graph.queues["qPoolDynamic"].scratch_size == 16384
        assert graph.definition.reservations[0][1:] == (0, 128, 229368, 8)
    assert neff.verify() == []


def test_every_key_of_a_queue_and_a_variable() -> None:
    text = {
        "dma_queue": {
            "q": {
                "type": "data",
                "num_queues": 2,
                "owner": "act",
                "pinned": True,
                "queue_instances": ["i0"],
                "semaphore_set": [9, 10],
                "semaphore": 11,
                "fabric_path": "alt",
                "new": 1,
            }
        },
        "var": {
            "p": {
                "type": "pointer",
                "var_id": 4,
                "size": 8,
                "referenced_var_id": 4,
                "fabric_path": "main",
                "ops": [],
                "other": [1],
            }
        },
        "neff_features": ["f"],
        "fp8_conversion_config": {"ocp_sat": True},
        "#rank_world_size": 2,
        "cc_streams": {"num_streams": 3},
        "pe": "PE.json",
        "pe_instr": "PE.bin",
        "pe_asm_dbg": ["x"],
        "dma_dbg": ["d"],
    }
    definition = parse_definition(Fields(text, "def.json"))
    queue = definition.queues["q"]
    assert (queue.pinned, queue.queue_instances, queue.fabric_path, queue.extra) == (True, ("i0",), "alt", {"new": 1})
    assert queue.engine == "Activation" and queue.all_semaphores == (9, 10, 11)
    variable = definition.variables["p"]
    assert (variable.referenced_var_id, variable.fabric_path, variable.extra) == (4, "main", {"other": [1]})
    assert (definition.cc_streams, definition.rank_world_size, definition.dma_debug) == (3, 2, ("d",))
    assert definition.engines["PE"].asm_debug == ("x",) and definition.engines["SP"].json is None


def test_every_key_of_a_descriptor() -> None:
    side = {
        "from_off": 0,
        "from_sizes": [4],
        "from_steps": [1],
        "to": "b",
        "to_off": 4,
        "to_sizes": [4],
        "to_steps": [1],
    }
    source = {"from": "s", "from_off": 8, "from_sizes": [2], "from_steps": [1], "from_dtype": "float16"}
    text = {
        "dma": [
            {
                "id": 1,
                "instance_name": "i",
                "event": 3,
                "remote_semaphores": [4],
                "section_start_desc": 1,
                "desc": [
                    {"from": "a", **side, "op": "fma", "scale": 2, "scale_dtype": "float32", "from_dtype": "float32"},
                    {**side, "from_arr": [source, source], "op": "add"},
                    {"from": "a", **side, "op": "max", "constant": 1.5, "constant_dtype": "float32"},
                    {
                        "from": "a",
                        **side,
                        "op": "transpose",
                        "transpose_shape": [1, 2, 3, 4],
                        "transpose_element_size": 2,
                        "later": 0,
                    },
                ],
            }
        ]
    }
    file = parse_engine_file("Pool", Fields(text, "Pool.json"))
    (block,) = file.dma
    assert isinstance(block, DmaBlock) and (block.queue, block.event, block.remote_semaphores) == ("i", 3, (4,))
    assert block.extra == {"section_start_desc": 1}
    fma, add, largest, transpose = block.descriptors
    assert (fma.op, fma.scale, fma.scale_dtype, fma.source_dtype, fma.target_dtype) == (
        "fma",
        2.0,
        "float32",
        "float32",
        "uint8",
    )
    assert [s.variable for s in add.sources] == ["s", "s"] and add.source == "s" and add.source_offset == 8
    assert largest.constant == 1.5
    assert (transpose.transpose_shape, transpose.transpose_element_size, transpose.extra) == (
        (1, 2, 3, 4),
        2,
        {"later": 0},
    )


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ((5, (4,), (1,)), (5, 9)),
        ((0, (16, 128), (1, 262144)), (0, 127 * 262144 + 16)),
        ((100, (4, 3), (1, -10)), (80, 104)),
        ((7, (4, 0), (1, 1)), (7, 7)),
        ((7, (), ()), (7, 7)),
    ],
)
def test_extent(pattern: Any, expected: tuple[int, int]) -> None:
    assert extent(*pattern) == expected


WRONG: list[dict[str, Any]] = [
    {"sg00__def_DOT_json": b"\xff"},
    {"sg00__def_DOT_json": b"[]"},
    {"sg00__def_DOT_json": b"[" * 100_000},
    {"sg00__def_DOT_json": b'{"x": ' + b"9" * 5000 + b"}"},
    {"sg00__def_DOT_json": None},
    {"sg00__SP_DOT_bin": None},
    {"sg00__def_DOT_json": lambda d: d["var"]["a"].update(var_id="1")},
    {"sg00__def_DOT_json": lambda d: d["var"]["a"].update(var_id=True)},
    {"sg00__def_DOT_json": lambda d: d["var"]["a"].update(var_id=2)},
    {"sg00__def_DOT_json": lambda d: d["var"].update(a=[])},
    {"sg00__def_DOT_json": lambda d: d["dma_queue"]["qSPIO0"].update(semaphore_set=[1.5])},
    {"sg00__def_DOT_json": lambda d: d["dma_queue"]["qSPIO0"].update(pinned="no")},
    {"sg00__def_DOT_json": lambda d: d.update(sp_instr=None)},
    {"sg00__def_DOT_json": lambda d: d.update(neff_features="x")},
    {"sg00__SP_DOT_json": lambda d: d["dma"][0].pop("queue")},
    {"sg00__SP_DOT_json": lambda d: d["dma"].append(d["dma"][0])},
    {"sg00__PE_DOT_json": lambda d: d.update(dma=json.loads(contents(fixture())["sg00/SP.json"])["dma"])},
    {"sg00__SP_DOT_json": lambda d: d["dma"][0]["desc"][0].update(to_steps=[1])},
    {"sg00__exp_and_more_DOT_json": lambda d: d.update(bkt_entry_cnt=2)},
    {"sg00__exp_and_more_DOT_json": lambda d: d["profile_meta_data"][1].update(func_id=7)},
    {"sg00__exp_and_more_bkt_DOT_bin": bytes(31)},
    {"sg00__value_table_DOT_npy": b"\x93NUMPY"},
    {"neff_DOT_json": lambda d: d.update(heads=[[9, 0, 0]])},
    {"neff_DOT_json": lambda d: d.update(heads=[3])},
    {"neff_DOT_json": lambda d: d["attrs"].update(shape=["list_shape"])},
    {"neff_DOT_json": lambda d: d["attrs"]["dltype"][1].clear()},
    {"neff_DOT_json": lambda d: d["attrs"]["shape"][1].__setitem__(0, [-1])},
    {"kelf-0_DOT_json": lambda d: d.update(target="pentium")},
    {"kelf-0_DOT_json": lambda d: d["graphs"][0].update(definition=7)},
    {"sg00__tensor_map_DOT_json": lambda d: d["a"].pop("dtype")},
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_contents_are_format_errors_and_findings(number: int) -> None:
    from .support import values

    neff = open_neff(changed(**WRONG[number]))
    with pytest.raises(FormatError) as error:
        values(neff)
    assert "\n" not in str(error.value)
    if "tensor_map" not in str(WRONG[number]):
        assert any(problem.severity == "error" for problem in open_neff(changed(**WRONG[number])).verify())


def test_lone_surrogates_can_be_printed() -> None:
    fields = load(b'{"a": "\\ud800", "\\ud801": {"dtype": "x"}}', "x.json")
    fields.text("a").encode()
    with pytest.raises(FormatError) as error:
        parse_tensor_map(fields)
    str(error.value).encode()


def test_file_without_optional_members() -> None:
    files = contents(fixture())
    for name in ("info.json", "sg00/tensor_map.json", "sg00/act_info.json", "neff.json"):
        del files[name]
    neff = open_neff(wrapped(plain_tar(files)))
    assert neff.info is None and neff.json("hlo_stats.json") is None
    assert neff.subgraphs[0].tensors == {} and neff.subgraphs[0].activation_info is None
    assert [f.name for f in neff.subgraphs[0].activation_functions] == ["exp", "identity"]
    with pytest.raises(FormatError, match="member is missing"):
        list(neff.inputs)


def test_graph_with_nothing_in_it() -> None:
    graph = parse_graph(
        Fields({"nodes": [], "attrs": {"shape": ["list_shape", []], "dltype": ["list_str", []]}}, "neff.json")
    )
    assert graph.inputs == graph.outputs == ()
