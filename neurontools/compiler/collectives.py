"""Lowering of what ranks do together: one collective of the machine each, from and to dense arrays in device memory."""

from __future__ import annotations

import numpy as np

from formats.dtypes import Dtype
from formats.isa import CollectiveKind
from neurontools.compiler.graph import Node
from neurontools.compiler.lowering import Lowering, lowers

__all__: list[str] = []


@lowers("rank-collective")
def _collective(self: Lowering, node: Node) -> None:
    """Lower a collective; a rank that no pair of a permutation sends to gets zeros."""
    attrs, e = node.attrs, self.emitter
    src = self.array(node.operands[0])
    # CC-cores read and write tensors of the program; an input or output may be someone else's memory.
    if not src.dense or src.allocation.kind != "private":
        copy = self.new(node.operands[0].dtype, src.shape)
        self.copy(copy, src)
        src = copy
    dst = self.new(node.result.dtype, node.result.shape)
    self.values[node.result] = dst
    if not dst.size:
        return
    if attrs["kind"] == CollectiveKind.PERMUTE:
        zero = e.constant(np.zeros((), dst.dtype.numpy_name), dst.dtype)
        self.copy(dst, zero._replace(shape=dst.shape, strides=(0,) * len(dst.shape)))
    e.collective(attrs["kind"], dst, src, attrs["groups"], attrs.get("reduce"), attrs.get("stream", 0))


@lowers("partition-id", "replica-id")
def _rank(self: Lowering, node: Node) -> None:
    """Lower the number of the rank, which a collective of its own gives."""
    e = self.emitter
    tile = e.tile(Dtype.INT32, 1)
    e.rank(tile)
    e.copy(self.result(node), tile)
