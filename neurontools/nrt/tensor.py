"""Tensors of nrtpy: device memory with an element type and a shape, freed with the object."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.runtime.tensor import Placement, Tensor
from neurontools.nrt.errors import NrtpyError, failing
from neurontools.nrt.singleton import NrtpyRuntime, get_nrtpy_singleton

__all__ = ["NrtTensor", "NrtpyTensor"]


class NrtTensor:
    """A tensor of the runtime, without a type: what NrtpyTensor refers to."""

    def __init__(self, runtime: NrtpyRuntime, tensor: Tensor, core_id: int) -> None:
        self.runtime, self.tensor, self.core_id = runtime, tensor, core_id
        self._end = weakref.finalize(self, _free, weakref.ref(runtime), tensor)
        # The session's end frees what is left; at the interpreter's end there may be none.
        self._end.atexit = False

    @property
    def size(self) -> int:
        """Return its bytes."""
        return self.tensor.size

    @classmethod
    def allocate(cls, size: int, name: str = "", core_id: int = 0) -> NrtTensor:
        """Return a new tensor of zeros."""
        runtime = get_nrtpy_singleton()
        with failing("Failed to allocate tensor"):
            return cls(runtime, runtime.session.allocate(Placement.DEVICE, core_id, size, name), core_id)


def _free(runtime: weakref.ref[NrtpyRuntime], tensor: Tensor) -> None:
    owner = runtime()
    if owner is not None and not owner.closed and not tensor.freed:
        owner.session.free(tensor)


class NrtpyTensor:
    """A tensor in device memory with NumPy's view of it."""

    def __init__(
        self, tensor_ref: NrtTensor, shape: tuple[int, ...] | int, dtype: npt.DTypeLike, name: str | None = None
    ) -> None:
        self.tensor_ref = tensor_ref
        self.shape: tuple[int, ...] = (shape,) if isinstance(shape, int) else tuple(shape)
        self.dtype = np.dtype(dtype)
        self.name = tensor_ref.tensor.name if name is None else name

    def need(self) -> Tensor:
        """Return the runtime's tensor; NrtpyError for one that is freed."""
        if self.tensor_ref.tensor.freed:
            raise NrtpyError(f"Tensor '{self.name}' is freed. Please check the lifetime of the tensor.")
        return self.tensor_ref.tensor

    @classmethod
    def from_numpy(cls, array: npt.NDArray[Any], name: str | None = None, core_id: int = 0) -> NrtpyTensor:
        """Return a new tensor with the contents of an array."""
        given = np.ascontiguousarray(array)
        made = cls(NrtTensor.allocate(given.nbytes, name or "", core_id), np.shape(array), given.dtype, name)
        made.write_from_numpy(given)
        return made

    def write_from_numpy(self, array: npt.NDArray[Any]) -> None:
        """Store the contents of an array of as many bytes; ValueError for another size."""
        tensor = self.need()
        given = np.ascontiguousarray(array)
        if given.nbytes != tensor.size:
            raise ValueError(f"array has {given.nbytes} bytes, tensor '{self.name}' has {tensor.size}")
        with failing("Failed to write tensor"):
            tensor.write(given.reshape(-1).view(np.uint8))

    def numpy(self) -> npt.NDArray[Any]:
        """Return the contents as a new array."""
        tensor = self.need()
        array = np.empty(self.shape, self.dtype)
        with failing("Failed to read tensor"):
            tensor.read(array.reshape(-1).view(np.uint8))
        return array

    def __repr__(self) -> str:
        return f"NrtpyTensor(name={self.name!r}, shape={self.shape}, dtype={self.dtype})"
