"""HLO text: what is printed is read again, what is malformed is one error with line and column."""

from __future__ import annotations

import numpy as np
import pytest

from formats.errors import FormatError
from formats.hlo import PrimitiveType, Shape, array, read_hlo, scalar, tuple_of
from formats.hlo.attributes import DeviceList, Metadata, OutputAlias, Sharding
from formats.hlo.literals import dtype_of, literal_of
from formats.hlo.module import Computation, Instruction, Module
from formats.hlo.text import parse_module, print_instruction, print_module
from formats.hlo.text.attributes import ATTRIBUTES
from formats.hlo.text.codecs import codecs
from formats.hlo.text.lexer import Lexer
from formats.hlo.text.values import literal_text, parse_literal, parse_shape, shape_text
from formats.hlo.writer import module_bytes
from tests.formats.hlo.build import mlp


def test_a_module_as_text() -> None:
    text = print_module(mlp())
    assert "ENTRY main {" in text and "to_apply=add_f32" in text and "window={size=1x2 stride=1x2}" in text
    assert 'metadata={op_name="jit(f)/dot" source_file="model.py" source_line=42}' in text
    again = parse_module(text)
    assert print_module(again) == text
    assert [each.name for each in again.computations] == ["add_f32", "main"]
    # Shapes and attributes are those of the protos too; only numbers are new.
    assert print_module(read_hlo(module_bytes(again))) == text


def test_text_of_another_printer_is_read() -> None:
    """Percent signs, operand shapes, program shapes, comments, sections and unknown parts of the header."""
    text = """HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[3]{0})->f32[3]{0}}, num_partitions=2,
    input_output_alias={ {}: (0, {}, may-alias) }, frontend_attributes={a="b"}

FileNames
1 "model.py"
FunctionNames
1 "f"
FileLocations
1 {file_name_id=1 function_name_id=1 line=42 end_line=42 column=3 end_column=9}
StackFrames
1 {file_location_id=1}

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0) // the first
  %y = f32[] parameter(1)
  ROOT %r = f32[] add(f32[] %x, f32[] %y)
}

ENTRY %main.5 (p: f32[3]) -> f32[3] {
  %p = f32[3]{0} parameter(0), sharding={devices=[2]<=[2]}
  ROOT %all = f32[3]{0:T(8,128)S(1)} all-reduce(f32[3]{0} %p), channel_id=1, replica_groups=[1,2]<=[2],
      use_global_device_ids=true, to_apply=%add, metadata={op_name="psum" stack_frame_id=1}, control-predecessors={%p}
}
"""
    module = parse_module(text)
    root = module.entry.root
    assert root.replica_groups == ((0, 1),) and root.to_apply.name == "add" and root.control_predecessors[0].name == "p"
    assert str(module.source(root)) == "model.py:42" and module.aliases[0].kind == 1
    assert root.shape.layout is not None and root.shape.layout.tiles == ((8, 128),)
    assert module.frontend_attributes == {"a": "b"}
    assert print_module(parse_module(print_module(module))) == print_module(module)


@pytest.mark.parametrize(
    "shape",
    [scalar(PrimitiveType.PRED), array(PrimitiveType.BF16, 3, 0, 7), tuple_of(), Shape(PrimitiveType.TOKEN),
     tuple_of(*(scalar(PrimitiveType.S32) for _ in range(12)), tuple_of(array(PrimitiveType.C64, 2))),
     Shape(PrimitiveType.F32, (4, -1), dynamic=(True, True)), Shape(PrimitiveType.OPAQUE)],
)  # fmt: skip
def test_shapes_go_out_and_come_back(shape: Shape) -> None:
    assert parse_shape(Lexer(shape_text(shape))) == shape


@pytest.mark.parametrize("element_type", [each for each in PrimitiveType if each.is_array])
def test_literals_keep_every_value(element_type: PrimitiveType) -> None:
    kind = dtype_of(element_type)
    rng = np.random.default_rng(3)
    if element_type.bits >= 8 and not element_type.is_complex and element_type is not PrimitiveType.PRED:
        values = np.frombuffer(rng.bytes(64 * kind.itemsize), kind).reshape(4, 16)
        if element_type.is_float:  # the payload of a NaN is not text
            values = np.where(np.isnan(values.astype(np.float64)), np.zeros((), kind), values)
    else:
        values = (rng.standard_normal((4, 16)) * 1.7).astype(np.complex64 if element_type.is_complex else np.float32)
        values = np.abs(values).astype(np.int64).astype(kind) if element_type.is_unsigned else values.astype(kind)
    literal = literal_of(values)
    again = parse_literal(Lexer(literal_text(literal)), literal.shape)
    np.testing.assert_array_equal(again.array().astype(complex), literal.array().astype(complex))


def test_special_numbers_and_elided_ones() -> None:
    literal = literal_of(np.array([np.nan, -np.inf, -0.0, 1e-45, 3.4e38], np.float32))
    text = literal_text(literal)
    again = parse_literal(Lexer(text), literal.shape).array()
    assert np.signbit(again[2]) and again[3] == np.float32(1e-45)
    np.testing.assert_array_equal(again, literal.array())
    assert literal_text(literal, most=4) == "{...}"
    text = "HloModule m\nENTRY e {\n  ROOT c = f32[5]{0} constant({...})\n}"
    with pytest.raises(FormatError, match=r"line 3, column 31: .*left out"):
        parse_module(text)


def test_every_attribute_goes_out_and_comes_back() -> None:
    """An instruction that has one value of each kind, under an opcode that does not name it already."""
    values = {
        "sharding": Sharding(2, tuple_shardings=(Sharding(1, tile_assignment_devices=(3,)), Sharding(4),
            Sharding(3, (2, 2), (0, 2, 1, 3), last_tile_dims=(4,), replicate_on_last_tile_dim=True),
            Sharding(3, (4, 2), iota_reshape_dims=(2, 4), iota_transpose_perm=(1, 0), is_shard_group=True,
                     shard_group_id=7))),
        "metadata": Metadata("t", 'a "name"\n', "f.py", 3, 4, 5, 6), "frontend_attributes": {"k": 'v"\\'},
        "devices": DeviceList(((0, 1), (2, 3))), "source_target_pairs": ((0, 1), (1, 0)),
        "operand_shapes_with_layout": (array(PrimitiveType.F32, 2, 3),), "outfeed_shape": scalar(PrimitiveType.S32),
        "output_aliasing": (OutputAlias((0,), 1, ()),), "backend_config": b'{"a": [1, "x"]}', "infeed_config": b"raw",
        "operand_precision": ("high", "highest"), "epsilon": 0.5,
    }  # fmt: skip
    a = Instruction("a", "parameter", array(PrimitiveType.F32, 2, 3))
    call = Instruction("c", "custom-call", a.shape, [a], custom_call_target="x", feature_group_count=2, channel_id=9)
    for name, value in values.items():
        setattr(call, name, value)
    module = Module("m", [], Computation("e", [a, call], call))
    module.computations = [module.entry]
    root = parse_module(print_module(module)).entry.root
    for name, value in values.items():
        assert getattr(root, name) == value, name
    assert root.feature_group_count == 2 and root.channel_id == 9 and root.constrain_layout


def test_every_attribute_has_a_codec() -> None:
    assert {each.codec for each in ATTRIBUTES} == set(codecs)


_GOOD = "HloModule m\nENTRY e {\n  a = f32[2]{0} parameter(0)\n  ROOT r = f32[2]{0} negate(a)\n}\n"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("HloModule", "Module", "HloModule"),
        ("negate(a)", "negate(b)", "line 4, column 29: an operand is not there"),
        ("a = f32", "r = f32", "two instructions have one name"),
        ("f32[2]{0} parameter", "f33[2]{0} parameter", "unknown element type"),
        ("{0} parameter", "{1} parameter", "line 3"),
        ("negate(a)", "negate(a), colour=3", "unknown attribute"),
        ("negate(a)", "negate(a), operand_precision={high,most}", "unknown operand_precision"),
        ("negate(a)", "negate(a), algorithm=rng_best", "unknown algorithm"),
        ("negate(a)", "negate(a), fft_type=FAST", "unknown fft_type"),
        ("negate(a)", "negate(a), to_apply=z", "a called computation is not there"),
        ("negate(a)", "negate(a), to_apply=e", "a computation calls itself"),
        ("negate(a)", "negate(a), window={size=2x2 stride=1}", "different numbers of dimensions"),
        ("negate(a)", "negate(a), dim_labels=bb0_oi0->bf0", "twice"),
        ("negate(a)", "negate(a), replica_groups=[2,2]<=[3]", "do not fill"),
        ("negate(a)", "negate(a), sharding={devices=[9]<=[99999999]}", "impossible number of devices"),
        ("negate(a)", "negate(a), metadata={stack_frame_id=4}", "stack frame"),
        ("negate(a)", "constant({1,2,3})", "line 4"),
        ("negate(a)", "constant({1,x})", "expected a number"),
        ("ROOT r = f32[2]{0} negate(a)", "ROOT r = s8[1] constant({400})", "does not fit"),
        ("ROOT r = f32[2]{0} negate(a)", "ROOT r = s8[1] constant({1.5})", "fraction"),
        ("ROOT r = f32[2]{0} negate(a)", "ROOT r = f32[999999999] constant({1})", "other elements"),
        ("}\n", "", "line 5"),
        ("negate(a)", 'negate(a), frontend_attributes={a="b}', "no word of HLO text"),
        ("negate(a)", "negate(a), direction=((", "unexpected word"),
        ("ENTRY e {", "ENTRY e { }\nENTRY f {", "no instructions"),
        ("parameter(0)", "parameter(99999999999999999999)", "whole number"),
    ],
)
def test_malformed_text_is_one_error(old: str, new: str, said: str) -> None:
    assert old in _GOOD
    with pytest.raises(FormatError, match=said):
        parse_module(_GOOD.replace(old, new))


def test_nesting_is_bounded() -> None:
    with pytest.raises(FormatError, match="too deep"):
        parse_shape(Lexer("(" * 5000))
    with pytest.raises(FormatError):
        parse_module("HloModule m, x=" + "{" * 100_000)
    with pytest.raises(FormatError, match="too deep"):
        parse_module(_GOOD.replace("negate(a)", "negate(a), sharding=" + "{" * 5000))


def test_texts_of_xla_and_ours_are_one() -> None:
    """XLA reads what is printed here and prints the same; what it prints is read here."""
    hlo = pytest.importorskip("jaxlib._hlo", reason="jaxlib is not installed")
    options = hlo.HloPrintOptions()
    options.print_metadata = False
    options.print_large_constants = True
    from tests.hlo_interpreter.cases import CASES

    for case in CASES:
        module = parse_module(case.text)
        theirs = hlo.hlo_module_from_text(print_module(module, metadata=False))
        assert hlo.XlaComputation(module_bytes(module)).get_hlo_module().to_string(options) == theirs.to_string(options)
        again = parse_module(theirs.to_string(options))
        assert sorted(print_instruction(each).split(" = ")[1].split("(")[0] for each in again.instructions()) == sorted(
            print_instruction(each).split(" = ")[1].split("(")[0] for each in module.instructions()
        )
