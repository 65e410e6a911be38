"""Modules of the right form and the wrong content: each class ends with a code or an error of one line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from formats.errors import FormatError, NeuronError, UnsupportedError
from formats.hlo import dtype_of
from formats.hlo.text import parse_module
from neurontools.compiler.errors import CompileError, UnsupportedGraphError
from neurontools.compiler.pipeline import compile_module
from neurontools.hlo_interpreter import evaluate
from tests.compiler.support import OURS, run

_MALFORMED = {
    "all-to-all with another result": """ENTRY main {
  s = u32[6] parameter(0)
  ROOT r = (u32[6], u8[3,8]) all-to-all(s), replica_groups={{0}}
}""",
    "all-gather with more results": """ENTRY main {
  s = u32[6] parameter(0)
  ROOT r = (u32[6], u32[6]) all-gather(s), replica_groups={{0}}, dimensions={0}
}""",
    "a token that is a number": """ENTRY main {
  x = f32[] parameter(0)
  ROOT r = f32[] after-all(x)
}""",
    "more right sides than groups": """ENTRY main {
  a = f32[5,3] parameter(0)
  b = f32[5,3,4] parameter(1)
  g = s32[2] constant({2, 2})
  ROOT r = f32[5,4] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0},
    rhs_group_dims={0}
}""",
    "random bits of another shape": """ENTRY main {
  x = f32[3,4] parameter(0)
  b = u32[3,7] parameter(1)
  ROOT r = s32[3,4] stochastic-convert(x, b)
}""",
}


def _arguments(module: Any) -> list[Any]:
    return [np.zeros(one.shape.dimensions, dtype_of(one.shape.element_type)) for one in module.entry.parameters]


@pytest.mark.parametrize("name", _MALFORMED)
def test_shapes_that_break_a_rule(name: str) -> None:
    module = parse_module(f"HloModule m\n\n{_MALFORMED[name]}\n")
    with pytest.raises(FormatError) as raised:
        evaluate(module, _arguments(module))
    assert "\n" not in str(raised.value)
    with pytest.raises(CompileError, match="NCC_EVRF064"):
        compile_module(module, OURS)


def test_a_custom_call_of_a_tuple() -> None:
    module = parse_module("""HloModule m

ENTRY main {
  a = f32[2,6] parameter(0)
  b = (f32[2,2], u32[2,2]) custom-call(a), custom_call_target="AwsNeuronTopK", backend_config="2"
  ROOT r = f32[2,2] custom-call(b), custom_call_target="AwsNeuronErf"
}
""")
    with pytest.raises(UnsupportedError, match="a custom call of tuples"):
        evaluate(module, _arguments(module))
    with pytest.raises(NeuronError):
        compile_module(module, OURS)


def test_a_body_of_scalars_that_moves_them() -> None:
    module = parse_module(
        """HloModule m

both { x = f32[] parameter(0) y = f32[] parameter(1) ROOT r = f32[] pad(x, y), padding= }

ENTRY main {
  a = f32[3] parameter(0)
  b = f32[3] parameter(1)
  ROOT r = f32[3] map(a, b), dimensions={0}, to_apply=both
}
""".replace(", padding=", "")
    )
    with pytest.raises(UnsupportedGraphError, match="pad in a body of scalars"):
        compile_module(module, OURS)


def test_products_whose_result_alone_is_complex() -> None:
    module = parse_module("""HloModule m

ENTRY main {
  a = f32[4,3] parameter(0)
  b = f32[3,2] parameter(1)
  ROOT r = c64[4,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
""")
    a, b = np.arange(12, dtype=np.float32).reshape(4, 3), np.arange(6, dtype=np.float32).reshape(3, 2)
    (found,) = run(compile_module(module, OURS), a, b)
    np.testing.assert_array_equal(found.view(np.complex64)[..., 0], a @ b)
