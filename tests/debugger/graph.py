"""A small model in HLO text, compiled: what the tests of graphs debug."""

from __future__ import annotations

from functools import cache

import numpy as np

from formats.hlo.text import parse_module
from formats.neff import Neff, open_neff
from neurontools.compiler.options import CompileOptions
from neurontools.compiler.pipeline import compile_module

__all__ = ["INPUTS", "MODEL", "model"]

MODEL = """HloModule model, entry_computation_layout={(f32[211,16]{1,0}, f32[16,24]{1,0}, f32[24]{0})->f32[211,24]{1,0}}

shifted {
  p.1 = f32[211,24]{1,0} parameter(0)
  c.1 = f32[] constant(0.5)
  cs.1 = f32[211,24]{1,0} broadcast(c.1), dimensions={}
  ROOT shift.1 = f32[211,24]{1,0} add(p.1, cs.1), metadata={op_name="shift" source_file="model.py" source_line=12}
}

ENTRY main {
  x.1 = f32[211,16]{1,0} parameter(0)
  w.1 = f32[16,24]{1,0} parameter(1)
  b.1 = f32[24]{0} parameter(2)
  dot.1 = f32[211,24]{1,0} dot(x.1, w.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="dot" source_file="model.py" source_line=4}
  bb.1 = f32[211,24]{1,0} broadcast(b.1), dimensions={1}, metadata={op_name="add" source_file="model.py" source_line=5}
  add.1 = f32[211,24]{1,0} add(dot.1, bb.1), metadata={op_name="add" source_file="model.py" source_line=5}
  tanh.1 = f32[211,24]{1,0} tanh(add.1), metadata={op_name="tanh" source_file="model.py" source_line=6}
  square.1 = f32[211,24]{1,0} multiply(tanh.1, tanh.1), metadata={op_name="square" source_file="model.py" source_line=7}
  call.1 = f32[211,24]{1,0} call(square.1), to_apply=shifted
  call.2 = f32[211,24]{1,0} call(call.1), to_apply=shifted
  ROOT out.1 = f32[211,24]{1,0} multiply(call.2, add.1), metadata={op_name="out" source_file="model.py" source_line=9}
}
"""  # noqa: E501  as XLA prints it
_RNG = np.random.default_rng(7)
INPUTS = {
    "input0": _RNG.standard_normal((211, 16), np.float32),
    "input1": _RNG.standard_normal((16, 24), np.float32),
    "input2": _RNG.standard_normal(24, np.float32),
}


@cache
def model(lnc: int = 1, text: str = MODEL) -> Neff:
    """Return a compiled model."""
    return open_neff(compile_module(parse_module(text), CompileOptions(lnc=lnc, limits="ours")).neff)
