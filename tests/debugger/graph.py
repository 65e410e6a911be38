"""A small model in HLO text, compiled: what the tests of graphs debug."""

from __future__ import annotations

from functools import cache

import numpy as np

from formats.hlo import module_bytes
from formats.hlo.text import parse_module
from formats.neff import Neff, open_neff
from formats.neff.operations import GRAPH
from neurontools.compiler.importing import import_module
from neurontools.compiler.options import CompileOptions
from neurontools.compiler.pipeline import compile_graph, compile_module
from neurontools.compiler.signature import names_of

__all__ = ["INPUTS", "LOOP", "MODEL", "mistaken", "model", "shared"]

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


LOOP = """HloModule loop

cond {
  s.1 = (s32[], f32[8,4]) parameter(0)
  n.1 = s32[] get-tuple-element(s.1), index=0
  five.1 = s32[] constant(5)
  ROOT less.1 = pred[] compare(n.1, five.1), direction=LT
}

body {
  s.2 = (s32[], f32[8,4]) parameter(0)
  n.2 = s32[] get-tuple-element(s.2), index=0
  v.2 = f32[8,4] get-tuple-element(s.2), index=1
  one.2 = s32[] constant(1)
  next.2 = s32[] add(n.2, one.2), metadata={source_file="loop.py" source_line=3}
  part.2 = f32[8,4] cosine(v.2), metadata={source_file="loop.py" source_line=4}
  grown.2 = f32[8,4] add(part.2, v.2), metadata={source_file="loop.py" source_line=5}
  ROOT out.2 = (s32[], f32[8,4]) tuple(next.2, grown.2)
}

ENTRY main {
  x.3 = f32[8,4] parameter(0)
  zero.3 = s32[] constant(0)
  start.3 = (s32[], f32[8,4]) tuple(zero.3, x.3)
  while.3 = (s32[], f32[8,4]) while(start.3), condition=cond, body=body
  ROOT result.3 = f32[8,4] get-tuple-element(while.3), index=1
}
"""


def mistaken(old: str, new: str, text: str = MODEL) -> Neff:
    """Return what a compiler with a mistake makes: it takes one operation for another, and keeps the right graph."""
    assert old in text
    right, wrong = parse_module(text), parse_module(text.replace(old, new))
    graph = import_module(wrong)
    options = CompileOptions(lnc=1, limits="ours")
    made = compile_graph(graph, names_of(wrong, graph), options, members={GRAPH: module_bytes(right)})
    return open_neff(made.neff)


@cache
def shared() -> tuple[Neff, dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]]:
    """Return the model with rows enough for two cores to share its element-wise work, and inputs."""
    rng = np.random.default_rng(3)
    rows = 8000
    inputs = {
        name: rng.standard_normal((rows, 16) if name == "input0" else one.shape, np.float32)
        for name, one in INPUTS.items()
    }
    return model(2, MODEL.replace("211", str(rows))), inputs
