"""Tensors of the program on a device, as arrays: inputs go in, copies of any come out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from emulator.device_memory import DeviceMemory
from emulator.dtypes import numpy_dtype
from emulator.errors import InputError
from formats.dtypes import Dtype

if TYPE_CHECKING:
    from emulator.placement import DeviceTensor

__all__ = ["read_tensor", "write_tensors"]


def write_tensors(
    tensors: Mapping[str, DeviceTensor],
    memory: DeviceMemory,
    arrays: Mapping[str, npt.NDArray[Any]],
    borrowed: bool = False,
) -> None:
    """Store arrays by the names of their tensors; InputError for a name or a size that the program does not have.

    Where they are `borrowed`, they are not copied: nobody changes them as long as the memory is in use.
    """
    for name, array in arrays.items():
        tensor = _named(tensors, name)
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        if data.size != tensor.nbytes:
            raise InputError(f"tensor {name!r} has {tensor.nbytes} bytes, the array {data.size}")
        if borrowed:
            memory.borrow(tensor.address, data)
        else:
            memory.write(tensor.address, data)


def read_tensor(
    tensors: Mapping[str, DeviceTensor], memory: DeviceMemory, name: str, last: bool = False
) -> npt.NDArray[Any]:
    """Return a copy of a tensor as it is now: by element type and shape where the file gives them, else bytes.

    `last` says that nobody looks at the tensor any more: its bytes need not be copied then.
    """
    tensor = _named(tensors, name)
    data = memory.part_with(tensor.address, tensor.nbytes) if last else None
    if data is None:
        data = memory.view(tensor.address, tensor.nbytes).copy() if tensor.nbytes else np.zeros(0, np.uint8)
    if not tensor.dtype:
        return data
    return data.view(numpy_dtype(Dtype.from_numpy_name(tensor.dtype))).reshape(tensor.shape)


def _named(tensors: Mapping[str, DeviceTensor], name: str) -> DeviceTensor:
    tensor = tensors.get(name)
    if tensor is None:
        raise InputError(f"no tensor {name!r}; there are {', '.join(tensors) or 'none'}")
    return tensor
