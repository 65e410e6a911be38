"""A step of three layers whose weights and gradients are shared out over four ranks, as text of HLO."""

from __future__ import annotations

__all__ = ["LAYERS"]

_ALL = "replica_groups={{0,1,2,3}}, use_global_device_ids=true, channel_id=1"
_SCATTER = f"dimensions={{0}}, {_ALL}, to_apply=sum"

LAYERS = f"""HloModule layers

sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}

ENTRY main {{
  x = f32[8,64]{{1,0}} parameter(0)
  w1 = f32[16,64]{{1,0}} parameter(1)
  w2 = bf16[16,64]{{1,0}} parameter(2)
  w3 = f32[16,64]{{1,0}} parameter(3)
  g1 = f32[64,64]{{1,0}} all-gather(w1), dimensions={{0}}, {_ALL}
  d1 = f32[8,64]{{1,0}} dot(x, g1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  t1 = f32[8,64]{{1,0}} tanh(d1)
  c2 = f32[16,64]{{1,0}} convert(w2)
  g2 = f32[64,64]{{1,0}} all-gather(c2), dimensions={{0}}, {_ALL}
  d2 = f32[8,64]{{1,0}} dot(t1, g2), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  m2 = f32[8,64]{{1,0}} all-reduce(d2), {_ALL}, to_apply=sum
  t2 = f32[8,64]{{1,0}} tanh(m2)
  g3 = f32[64,64]{{1,0}} all-gather(w3), dimensions={{0}}, {_ALL}
  d3 = f32[8,64]{{1,0}} dot(t2, g3), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  u2 = f32[64,64]{{1,0}} dot(t1, d3), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  s2 = f32[16,64]{{1,0}} reduce-scatter(u2), {_SCATTER}
  u1 = f32[64,64]{{1,0}} dot(x, t1), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  s1 = f32[16,64]{{1,0}} reduce-scatter(u1), {_SCATTER}
  n1 = f32[16,64]{{1,0}} subtract(w1, s1)
  n2 = f32[16,64]{{1,0}} subtract(c2, s2)
  ROOT r = (f32[8,64]{{1,0}}, f32[16,64]{{1,0}}, f32[16,64]{{1,0}}) tuple(d3, n1, n2)
}}
"""
