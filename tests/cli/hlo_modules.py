"""Modules that the tests of `neurontools hlo` read."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from formats.hlo import module_bytes
from tests.formats.hlo.build import mlp

COLLECTIVES = """HloModule m
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] add(x, y)
}
ENTRY main {
  a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  one = f32[4] all-reduce(a), replica_groups={{0}}, to_apply=add
  two = f32[4] all-gather(b), replica_groups={{0}}, dimensions={0}, frontend_attributes={stream_id="1"}
  three = f32[4] all-reduce(b), replica_groups={{0}}, to_apply=add
  four = f32[4] reduce-scatter(two), replica_groups={{0}}, dimensions={0}, to_apply=add,
    frontend_attributes={stream_id="1"}
  ROOT t = (f32[4], f32[4], f32[4]) tuple(one, three, four)
}
"""


def model(folder: Path) -> Path:
    """Write a small model as a proto."""
    path = folder / "model.hlo.pb"
    path.write_bytes(module_bytes(mlp()))
    return path


def collectives(folder: Path) -> Path:
    """Write a module with collectives as text."""
    path = folder / "collectives.hlo"
    path.write_text(COLLECTIVES)
    return path


def arguments() -> list[np.ndarray]:
    """Return arguments of the module with collectives."""
    return [np.arange(4, dtype=np.float32), np.ones(4, np.float32)]
