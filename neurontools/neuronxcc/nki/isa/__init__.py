"""`nisa` of the first generation: calls that return tiles, with `mask=` and `dtype=`."""

# ruff: noqa: F403
# A star import takes what the `__all__` of a module lists.

from __future__ import annotations

from typing import Any

from neurontools.neuronxcc.nki.isa import arithmetic, constants, copies, folds, products, selection
from neurontools.neuronxcc.nki.isa.arithmetic import *
from neurontools.neuronxcc.nki.isa.copies import *
from neurontools.neuronxcc.nki.isa.folds import *
from neurontools.neuronxcc.nki.isa.products import *
from neurontools.neuronxcc.nki.isa.selection import *
from neurontools.neuronxcc.nki.refusals import unknown
from neurontools.neuronxcc.nki.tile import copy_into
from neurontools.nki import isa
from neurontools.nki.isa.constants import dge_mode, engine, oob_mode, reduce_cmd

tensor_engine, vector_engine, scalar_engine, gpsimd_engine, unknown_engine = (
    isa.tensor_engine, isa.vector_engine, isa.scalar_engine, isa.gpsimd_engine, isa.unknown_engine)  # fmt: skip
get_nc_version, nc_version = isa.get_nc_version, isa.nc_version

__all__ = [  # noqa: PLE0604
    *arithmetic.__all__, *copies.__all__, *folds.__all__, *products.__all__, *selection.__all__,
    "constants", "copy_into", "dge_mode", "engine", "oob_mode", "reduce_cmd",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise unknown("neuronxcc.nki.isa", name, globals(), isa)
