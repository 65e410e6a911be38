"""Rules of shapes: each is broken once, beside modules that keep them all."""

from __future__ import annotations

import pytest

from formats.errors import FormatError
from formats.hlo.attributes import AliasEntry
from formats.hlo.infer import RULES
from formats.hlo.module import Instruction
from formats.hlo.opcodes import OPCODES
from formats.hlo.text import parse_module
from formats.hlo.verify import need_valid, verify
from tests.formats.hlo.build import F32, mlp
from tests.hlo_interpreter.cases import CASES


@pytest.mark.parametrize("text", [each.text for each in CASES], ids=[each.name for each in CASES])
def test_what_keeps_the_rules_is_clean(text: str) -> None:
    assert verify(parse_module(text)) == []


def test_rules_are_for_opcodes_that_are_there() -> None:
    assert set(RULES) <= set(OPCODES)


_P = "  a = f32[3,4]{1,0} parameter(0)\n  b = f32[4,5]{1,0} parameter(1)\n  z = f32[] constant(0)\n"
_ADD = "add {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT r = f32[] add(x, y)\n}\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("f32[3,4] add(a, b)", "different dimensions"),
        ("f32[3,4] add(a)", "takes 2 operands"),
        ("f32[3,4] frobnicate(a)", "unknown opcode"),
        ("f32[4,3] negate(a)", "states f32[4,3], its operands give f32[3,4]"),
        ("s32[3,4] negate(a)", "states s32[3,4]"),
        ("pred[3,4] not(a)", "not of f32"),
        ("f32[3,4] shift-left(a, a)", "shift-left of f32"),
        ("pred[3,4] compare(a, a), direction=UP", "direction"),
        ("f32[3,4] select(a, a, a)", "no predicate"),
        ("f32[3,4] clamp(b, a, z)", "bounds of other dimensions"),
        ("f32[2,3,4] broadcast(a), dimensions={0,1}", "does not fit"),
        ("f32[3,4] broadcast(z), dimensions={0}", "names other dimensions"),
        ("f32[13] reshape(a)", "reshape of 12 elements to 13"),
        ("f32[4,3] transpose(a), dimensions={0,0}", "no permutation"),
        ("f32[3,4] reverse(a), dimensions={2}", "not within"),
        ("f32[3,4] iota(), iota_dimension=2", "not there"),
        ("f32[3,9] concatenate(a, b), dimensions={1}", "concatenate"),
        ("f32[3,3] slice(a), slice={[0:3], [2:5]}", "slice [2:5:1] of 4"),
        ("f32[9,9] dynamic-slice(a, z, z), dynamic_slice_sizes={9,9}", "no integers"),
        ("f32[3,4] pad(a, z), padding=-2_-2x0_0", "takes away more"),
        ("f32[] get-tuple-element(a), index=0", "no element 0"),
        ("f32[3,5] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}", "contracting dimensions"),
        ("f32[3,5] dot(a, b), lhs_contracting_dims={7}, rhs_contracting_dims={0}", "left side"),
        ("f32[3] reduce(a, z), dimensions={1}", "calls 1 computations, found 0"),
        ("f32[3] reduce(a, z), dimensions={1,1}, to_apply=add", "dimensions [1, 1]"),
        ("f32[4] reduce(a, z), dimensions={1}, to_apply=add", "states f32[4]"),
        ("f32[2,4] reduce-window(a, z), window={size=2x1x1}, to_apply=add", "3 dimensions over 2"),
        ("f32[3,4] reduce-window(a, z), window={size=2x1}, to_apply=add", "its operands give f32[2,4]"),
        ("f32[3,4] while(a), condition=add, body=add", "condition %add does not take"),
        ("f32[3,4] call(a), to_apply=add", "does not take"),
        ("f32[3,4] sort(a), dimensions={0}, to_apply=add", "gives no predicate"),
        ("(f32[3,9], s32[3,9]) topk(a), k=9, largest=true", "the 9 largest"),
        ("c64[3,3] fft(a), fft_type=RFFT, fft_length={5}", "another length"),
        ("f32[3,4] cholesky(a), lower=true", "a factor of"),
        ("f32[6,4] all-gather(a), replica_groups={{0,1,2}}, dimensions={0}", "its operands give f32[9,4]"),
        ("f32[3,4] reduce-scatter(a), replica_groups={{0,1}}, dimensions={0}, to_apply=add", "3 elements among 2"),
        ("f32[3,4] convolution(a, b), window={size=3}, dim_labels=bf0_oi0->bf0", "labels"),
    ],
)
def test_a_broken_rule_is_found(line: str, said: str) -> None:
    module = parse_module(f"HloModule m\n{_ADD}\nENTRY e {{\n{_P}  ROOT r = {line}\n}}\n")
    found = verify(module)
    assert len(found) == 1 and found[0].instruction == "r" and said in found[0].what, found
    with pytest.raises(FormatError, match="%e: %r: "):
        need_valid(module)


def test_a_gather_and_a_scatter_that_do_not_fit() -> None:
    for line, said in (
        ("f32[2,1] gather(a, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0,1}, "
         "index_vector_dim=1, slice_sizes={1,1}", "index vectors of 1"),
        ("f32[2,9] gather(a, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
         "index_vector_dim=1, slice_sizes={1,9}", "slices [1, 9]"),
        ("f32[3,4] scatter(a, i, u), update_window_dims={1}, inserted_window_dims={0}, "
         "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add", "larger than"),
    ):  # fmt: skip
        text = (f"HloModule m\n{_ADD}\nENTRY e {{\n{_P}  i = s32[2,1] constant({{{{0}},{{1}}}})\n"
                f"  u = f32[2,9] parameter(2)\n  ROOT r = {line}\n}}\n")  # fmt: skip
        assert said in verify(parse_module(text))[0].what


def test_references_between_computations() -> None:
    module = mlp()
    module.entry.instructions[3].operands[0] = module.computations[0].root
    assert "does not come before it" in verify(module)[0].what
    module = mlp()
    module.computations.reverse()
    assert "called computation does not come before" in verify(module)[0].what
    module = mlp()
    module.entry.root = Instruction("x", "tuple", module.entry.root.shape)
    assert "root is not among" in verify(module)[0].what
    module = mlp()
    module.entry.instructions[1].parameter_number = 5
    assert "numbered [0, 5]" in verify(module)[0].what
    module = mlp()
    module.entry.instructions[4].name = "dot.1"
    assert "second instruction of this name" in verify(module)[0].what
    module = mlp()
    module.aliases = (AliasEntry((0,), 0, ()),)
    assert "an alias of f32[3,2] with f32[3,5]" in verify(module)[0].what
    module.aliases = (AliasEntry((7,), 0, ()),)
    assert "names what is not there" in verify(module)[0].what


def test_a_finding_names_the_line_of_the_model() -> None:
    module = mlp()
    dot = module.entry.instructions[3]
    dot.shape = dot.shape.with_dimensions((9, 9))
    assert str(verify(module)[0]).startswith("%main: %dot.1: states f32[9,9]") and F32
    assert str(verify(module)[0]).endswith("(model.py:42)")
