"""New tensors, and the constant tiles that a trace makes at most once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from formats.dtypes import Dtype
from formats.neuron_core import PARTITIONS
from neurontools.builder.trace import Space, View
from neurontools.nki.dtype import DType, dtype_of
from neurontools.nki.kinds import WHOLES, whole
from neurontools.nki.regions import MemoryRegion
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import Tracer

__all__ = ["constant_tensor", "identity_tile", "load_constant", "new_tensor"]

# Python 3.11 takes as long to find a member of an enumeration in its class as for a dozen calls.
_HBM, _SHARED = Space.HBM, MemoryRegion.shared_hbm
_new: Callable[[type], Any] = object.__new__
# What `View(...)` does, without the function of the named tuple around it.
_view_of: Callable[[tuple[Any, ...]], View] = partial(tuple.__new__, View)


def new_tensor(
    t: Tracer,
    shape: tuple[int, ...],
    dtype: DType,
    region: MemoryRegion = MemoryRegion.sbuf,
    name: str = "",
    address: tuple[int, int] | None = None,
    kind: str | None = None,
    data: np.ndarray[Any, Any] | None = None,
) -> NkiTensor:
    """Allocate and return a tensor; with NKI_PRECISE_FP=0 narrow floats on chip are stored as fp32."""
    space, code = region.space, dtype.code
    if not t.precise and space is not _HBM and dtype.is_float and dtype.itemsize < 4:
        code = Dtype.FLOAT32
    if kind is None:
        kind = "tile" if space is not _HBM else "shared" if region is _SHARED else "private"
    key = shape, dtype, code, id(space), 0 if address is None else address[0]
    its = WHOLES.get(key) or whole(shape, dtype, code, space, address)
    allocation = t.allocate(space, code, shape, kind, name, address, data, its)
    if allocation.address is not address:  # the builder is to find another
        its = whole(shape, dtype, code, space, None)
    # what `NkiTensor(...)` does for arguments in their final form, without its function
    new: NkiTensor = _new(NkiTensor)
    new.shape = shape
    new.strides = its.strides
    new.offset = 0
    new.dtype = dtype
    new.allocation = allocation
    new.buffer = region
    new.name = name or allocation.name
    new.code = code
    new.itemsize = code.size
    new._row = its.row
    new._kind = its
    dims = its.dims
    # nearly every tile is an operand as it is
    new._view = None if dims is None else _view_of((allocation, code, 0, its.partitions, 0, dims))
    new._indirection = None
    new._unchecked = False
    return new


def constant_tensor(t: Tracer, data: np.ndarray[Any, Any], name: str, dtype: DType | None = None) -> NkiTensor:
    """Return an HBM tensor that holds `data` from load time on."""
    data = np.ascontiguousarray(data)  # which has a dimension at least, as tensors of NKI must
    return new_tensor(
        t, data.shape, dtype or dtype_of(data.dtype), MemoryRegion.shared_hbm, name, kind="constant", data=data
    )


def load_constant(t: Tracer, data: np.ndarray[Any, Any], name: str, dtype: DType) -> NkiTensor:
    """Return an SBUF tile filled from a constant by one DMA."""
    source = constant_tensor(t, data, name, dtype)
    result = new_tensor(t, data.shape, dtype, name=name + "_sbuf")
    t.dma(result.view_of_storage, source.view_of_storage, "SP")
    return result


def identity_tile(t: Tracer, code: Dtype) -> NkiTensor:
    """Return the 128 x 128 identity in SBUF, one per element type and trace."""
    key = ("identity", code)
    found: NkiTensor | None = t.cache.get(key)
    if found is None:
        dtype = dtype_of(code)
        found = load_constant(t, np.eye(PARTITIONS, dtype=dtype.numpy), f"identity_{dtype}", dtype)
        t.cache[key] = found
    return found
