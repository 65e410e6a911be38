"""Matrix products and transposes."""

from __future__ import annotations

from typing import Any

import numpy as np

from neurontools.neuronxcc.nki.isa import constants
from neurontools.neuronxcc.nki.isa.operands import in_sbuf
from neurontools.neuronxcc.nki.masks import Box, is_empty, masked_box, product_boxes, squares, whole_box
from neurontools.neuronxcc.nki.partitions import operand
from neurontools.neuronxcc.nki.refusals import refuse_unknown, unsupported
from neurontools.neuronxcc.nki.tile import Cut, Product, Tile, boxed
from neurontools.nki import isa
from neurontools.nki import language as nl
from neurontools.nki.dtype import dtype_of
from neurontools.nki.isa import tensor_engine, unknown_engine, vector_engine
from neurontools.nki.tracer import tracer

__all__ = ["nc_matmul", "nc_transpose"]

_PERF_MODES = {
    "none": constants.matmul_perf_mode.none,
    "double_row": constants.matmul_perf_mode.double_row,
    # what kernels of this generation call the same mode
    "double_row_gen3": constants.matmul_perf_mode.double_row,
}


_NOTHING: Box = (0, 0), (0, 0)


def nc_matmul(
    stationary: Tile,
    moving: Tile,
    *,
    is_stationary_onezero: bool = False,
    is_moving_onezero: bool = False,
    is_transpose: bool = False,
    tile_position: Any = (),
    tile_size: Any = (),
    mask: Any = None,
    perf_mode: Any = None,
    **unused: Any,
) -> Product:
    """Return stationary.T @ moving."""
    mode = getattr(perf_mode, "value", perf_mode) or "none"
    if mode not in _PERF_MODES:
        raise unsupported(f"nc_matmul with perf_mode={perf_mode!r}")
    (whole_left, mine), (whole_right, theirs) = _cut(stationary), _cut(moving)
    left, right = in_sbuf(whole_left).tensor, in_sbuf(whole_right).tensor
    rows = 1 if _PERF_MODES[mode] is constants.matmul_perf_mode.none else 2
    columns, width = int(np.prod(left.shape[1:])) // rows, int(np.prod(right.shape[1:])) // rows
    mine, theirs = product_boxes(mask, (mine, theirs), left.shape, right.shape)
    valid: Box | None = None
    if is_empty(mine) or is_empty(theirs):
        valid = _NOTHING
    elif mine != whole_box(left.shape) or theirs != whole_box(right.shape):
        if rows > 1 or len(left.shape) > 2 or len(right.shape) > 2:
            raise unsupported("nc_matmul of a part of more than two dimensions")
        valid = mine[1], theirs[1]
        left, right = boxed(left, mine, left.shape), boxed(right, theirs, right.shape)

    def emit(dst: Any, accumulate: bool | None) -> None:
        if valid is not None and is_empty(valid):
            return
        if valid is not None and dst.shape != (columns, width):
            raise unsupported(f"a part of a product of {(columns, width)} in a tile of {dst.shape}")
        isa.nc_matmul(
            boxed(dst, valid, dst.shape),
            operand(left),
            operand(right),
            is_stationary_onezero,
            is_moving_onezero,
            is_transpose,
            accumulate,
            tile_position,
            tile_size,
            _PERF_MODES[mode],
        )

    exact = is_transpose and tracer().limits.transpose_exact
    product = Product(
        (columns, width), emit, left.dtype if exact else nl.float32, () if valid == _NOTHING else (left, right)
    )
    product.valid = None if valid is None else () if is_empty(valid) else (valid,)
    return product


def _cut(operand: Tile) -> tuple[Tile, Box]:
    """Return an operand of a product, and the box of it that takes part."""
    if isinstance(operand, Cut):
        return operand.whole, operand.box
    return operand, whole_box(operand.shape)


def nc_transpose(
    data: Tile, *, engine: Any = unknown_engine, dtype: Any = None, mask: Any = None, **unused: Any
) -> Tile:
    """Return a 2-D tile transposed: in PSUM by the Tensor engine, in SBUF by the Vector engine."""
    tensor = data.tensor
    rows, columns = tensor.shape[0], int(np.prod(tensor.shape[1:]))
    vector = engine is vector_engine or (engine is unknown_engine and max(rows, columns) <= 32)
    where = nl.sbuf if vector else nl.psum
    wanted = dtype_of(dtype) if dtype is not None else tensor.dtype
    direct = wanted is tensor.dtype or (wanted is nl.float32 and tensor.dtype.is_float and not vector)
    dst = nl.ndarray((columns, rows), wanted if direct else tensor.dtype, where)
    box = masked_box(mask, tensor.shape)
    if box is None or all(high > low for low, high in box):
        part = boxed(dst, None if box is None else (box[1], box[0]), dst.shape)
        source = operand(boxed(tensor, box, tensor.shape))
        for into, piece in squares(part, source) if vector else ((part, source),):
            isa.nc_transpose(into, piece, engine=vector_engine if vector else tensor_engine)
        if not direct:  # the engine keeps the type: a copy casts
            whole, dst = dst, nl.ndarray((columns, rows), wanted, where)
            isa.tensor_copy(
                boxed(dst, None if box is None else (box[1], box[0]), dst.shape), whole if box is None else part
            )
    turned = Tile(dst)
    turned.valid = None if box is None else ((box[1], box[0]),)
    return turned


refuse_unknown(globals())
