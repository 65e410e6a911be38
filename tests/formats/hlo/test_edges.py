"""Modules at their edges: escapes of bytes, digits, literals that do not fit, calls of calls, what acts in a loop."""

from __future__ import annotations

import time

import pytest

from formats.errors import FormatError
from formats.hlo import Module, module_bytes, read_hlo
from formats.hlo.compare import differences, same
from formats.hlo.text import parse_module, print_module
from formats.hlo.verify import verify
from neurontools.hlo.cost import Costs


def module(body: str, bodies: str = "") -> Module:
    return parse_module(f"HloModule m\n\n{bodies}\nENTRY main {{\n{body}\n}}\n")


@pytest.mark.parametrize("config", [b"\xff\x00binary\xe9", "é ♥".encode(), b'"quoted\\"\n', b"plain"])
def test_configurations_come_back_byte_by_byte(config: bytes) -> None:
    """XLA escapes bytes; read as characters, each beyond ASCII became two."""
    made = module('  ROOT r = f32[] custom-call(), custom_call_target="t"')
    made.entry.root.backend_config = config
    assert parse_module(print_module(made)).entry.root.backend_config == config
    escaped = "".join(f"\\{byte:03o}" for byte in config)
    text = f'  ROOT r = f32[] custom-call(), custom_call_target="t", backend_config="{escaped}"'
    assert module(text).entry.root.backend_config == config


def test_names_that_xla_escapes_are_read_as_they_were() -> None:
    text = '  ROOT r = f32[] constant(1), metadata={op_name="caf\\303\\251" source_file="\\377"}'
    metadata = module(text).entry.root.metadata
    assert metadata.op_name == "café" and metadata.source_file == "\\xff"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("  ROOT r = f32[٣] iota(), iota_dimension=0", "no word of HLO text"),
        ("  ROOT r = s4[2] constant({1, 100})", "does not fit"),
        ("  ROOT r = u2[1] constant({-1})", "does not fit"),
        ("  ROOT r = f32[1] constant({1e39})", "does not fit"),
        ("  ROOT r = f8e4m3fn[1] constant({1000})", "does not fit"),
        (f"  ROOT r = f32[{','.join(['1'] * 300)}] parameter(0)", "impossible number of dimensions"),
        ("  /* no end", "a comment that does not end"),
    ],
)
def test_what_is_no_module(body: str, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        module(body)


def test_floats_that_fit_are_read() -> None:
    made = module("  ROOT r = f8e5m2[4] constant({57344, -inf, nan, 1e-30})")
    assert [str(one) for one in made.entry.root.value().array()] == ["57344", "-inf", "nan", "0"]


def test_more_dimensions_than_arrays_have() -> None:
    made = module(f"  ROOT r = f32[{','.join(['1'] * 70)}] constant({'{' * 70}1{'}' * 70})")
    with pytest.raises(FormatError, match="more dimensions than an array can have"):
        made.entry.root.value().array()


def test_comments_without_end_take_no_time() -> None:
    """Each of many was looked for to the end of the text."""
    begun = time.process_time()
    with pytest.raises(FormatError):
        parse_module("HloModule m, x={" + "/*" * 100_000)
    assert time.process_time() - begun < 10


def _nested(depth: int, calls: int, operation: str = "add") -> Module:
    bodies = [f"c0 {{ a = f32[] parameter(0)\n ROOT r = f32[] {operation}(a, a)\n}}\n"]
    for number in range(1, depth):
        lines = [f" v{k} = f32[] call({f'v{k - 1}' if k else 'a'}), to_apply=c{number - 1}" for k in range(calls)]
        bodies.append(f"c{number} {{ a = f32[] parameter(0)\n" + "\n".join(lines) + "\n}\n")
    return module(f"  a = f32[] parameter(0)\n  ROOT r = f32[] call(a), to_apply=c{depth - 1}", "\n".join(bodies))


def test_calls_of_calls_are_counted_once_each() -> None:
    """Sixty computations that call the one before twice took for ever, three thousand in a row too deep a recursion."""
    assert Costs(_nested(60, 2)).total.flops == 2**59
    assert Costs(_nested(3000, 1)).total.flops == 1


def test_long_chains_of_calls_are_compared() -> None:
    one, other, third = _nested(3000, 1), _nested(3000, 1), _nested(3000, 1, "multiply")
    assert same(one, other) and not same(one, third)
    assert differences(one, third)


def test_layouts_of_results_make_no_difference() -> None:
    one, other = (module(f"  p = f32[2,3] parameter(0)\n  ROOT r = f32[2,3]{layout} negate(p)")
                  for layout in ("{1,0}", "{0,1}"))  # fmt: skip
    assert same(one, other) and not differences(one, other)


_LOOP = """\
body { s = (s32[], f32[]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 x = f32[] get-tuple-element(s), index=1
 t = token[] after-all()
 %s
 ROOT t2 = (s32[], f32[]) tuple(i, x)
}
condition { s = (s32[], f32[]) parameter(0)
 ROOT no = pred[] constant(false)
}
"""


def test_a_loop_that_acts_is_compared_though_nothing_reads_it() -> None:
    entry = """\
  p = f32[] parameter(0)
  z = s32[] constant(0)
  s = (s32[], f32[]) tuple(z, p)
  w = (s32[], f32[]) while(s), condition=condition, body=body
  ROOT r = f32[] negate(p)"""
    out = "o = token[] outfeed(x, t), outfeed_shape=f32[]"
    one, other = module(entry, _LOOP % out), module(entry, _LOOP % "")
    assert same(one, module(entry, _LOOP % out)) and not same(one, other)


@pytest.mark.parametrize(
    ("bodies", "said"),
    [
        ("sum { a = f32[] parameter(0)\n ROOT b = f32[] negate(a)\n}\n", "scatter %sum does not take"),
        ("sum { a = f32[2] parameter(0)\n b = f32[2] parameter(1)\n ROOT c = f32[2] add(a, b)\n}\n", "does not take"),
    ],
)
def test_bodies_of_select_and_scatter_are_checked(bodies: str, said: str) -> None:
    ge = "ge { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=GE\n}\n"
    made = module(
        "  p = f32[4] parameter(0)\n  q = f32[2] parameter(1)\n  c = f32[] constant(0)\n"
        "  ROOT r = f32[4] select-and-scatter(p, q, c), window={size=2 stride=2}, select=ge, scatter=sum",
        ge + bodies,
    )
    assert said in str(verify(made)[0])


def test_transposes_of_a_triangular_matrix_are_three() -> None:
    made = module(
        "  p = f32[2,2] parameter(0)\n  ROOT r = f32[2,2] triangular-solve(p, p), left_side=true, lower=true, "
        "transpose_a=ADJOINT"
    )
    assert verify(made) == []
    raw = module_bytes(made)
    root = read_hlo(raw).entry.root
    assert root.triangular_solve.transpose_a == 3
    made.entry.root.triangular_solve = type(root.triangular_solve)(left_side=True, lower=True, transpose_a=7)
    assert "no such transpose" in str(verify(read_hlo(module_bytes(made)))[0])
