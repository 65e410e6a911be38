"""Tensors of the runtime: storage that slices share, and sets of tensors by name. Source: runtime.md 4."""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.buffers import blank
from emulator.runtime.errors import StatusError, invalid
from emulator.runtime.memory import Allocation
from formats.named_tuple import NamedTuple
from formats.nrt.status import NrtStatus

__all__ = ["DeviceRange", "Placement", "Storage", "Tensor", "TensorSet", "zeros"]

Bytes = npt.NDArray[np.uint8]
_counting = threading.Lock()


class Placement(IntEnum):
    """Where a tensor's bytes are, as nrt.h numbers it."""

    DEVICE = 0
    HOST = 1
    VIRTUAL = 2


class DeviceRange(NamedTuple):
    """Where a tensor is on the device: address, bytes that it takes there, HBM stack."""

    address: int
    size: int
    hbm: int


class Storage:
    """Bytes that tensors share; given back when the last of them is freed."""

    def __init__(
        self, data: Bytes, placement: Placement, core: int, allocation: Allocation | None, give: Callable[[], object]
    ) -> None:
        self.data, self.placement, self.core, self.allocation = data, placement, core, allocation
        self._give = give
        self._users = 1

    def share(self) -> Storage:
        """Count one more tensor; NRT_INVALID_HANDLE where the last one is gone."""
        with _counting:
            if not self._users:
                raise StatusError(NrtStatus.NRT_INVALID_HANDLE, "the storage was given back")
            self._users += 1
        return self

    def drop(self) -> None:
        """Count one tensor less; the last one gives the bytes back."""
        with _counting:
            self._users -= 1
            last = not self._users
        if last:
            self._give()


class Tensor:
    """A named range of a storage; one that is empty has none until a buffer is attached."""

    def __init__(self, name: str, storage: Storage | None, offset: int = 0, size: int = 0) -> None:
        self.name = name
        self.offset, self.size = offset, size
        self._storage = storage
        self.freed = False
        self._completions = 0
        self._completed = threading.Condition()

    @property
    def storage(self) -> Storage:
        """Return the storage; NRT_INVALID_HANDLE of a freed tensor, NRT_INVALID of an empty one."""
        if self.freed:
            raise StatusError(NrtStatus.NRT_INVALID_HANDLE, f"tensor {self.name!r} is freed")
        if self._storage is None:
            raise invalid(f"tensor {self.name!r} has no storage")
        return self._storage

    @property
    def empty(self) -> bool:
        """Return whether no storage is attached."""
        return self._storage is None

    @property
    def placement(self) -> Placement:
        """Return where the bytes are."""
        return self.storage.placement

    @property
    def data(self) -> Bytes:
        """Return the bytes themselves."""
        return self.storage.data[self.offset : self.offset + self.size]

    def span(self, offset: int, size: int) -> Bytes:
        """Return some of the bytes; NRT_INVALID where the tensor has no such."""
        if offset < 0 or size < 0 or offset + size > self.size:
            raise invalid(f"tensor {self.name!r} has {self.size} bytes, not {offset} to {offset + size}")
        start = self.offset + offset
        return self.storage.data[start : start + size]

    def write(self, source: Any, offset: int = 0) -> None:
        """Store bytes: anything that has a buffer."""
        array = np.frombuffer(source, np.uint8)
        self.span(offset, array.size)[...] = array

    def read(self, into: Any, offset: int = 0) -> None:
        """Copy bytes into a buffer, as many as it has."""
        array = np.frombuffer(into, np.uint8)
        array[...] = self.span(offset, array.size)

    def get(self, offset: int = 0, size: int | None = None) -> bytes:
        """Return bytes."""
        return self.span(offset, self.size - offset if size is None else size).tobytes()

    def copy_to(self, target: Tensor, size: int, offset: int = 0, target_offset: int = 0) -> None:
        """Copy bytes to another tensor; two on devices must be on one core.

        nrt.h says core where a page says HBM stack (runtime.md 20: 20).
        """
        mine, theirs = self.storage, target.storage
        if mine.placement == theirs.placement == Placement.DEVICE and mine.core != theirs.core:
            raise invalid(f"tensors {self.name!r} and {target.name!r} are on cores {mine.core} and {theirs.core}")
        source = self.span(offset, size)
        into = target.span(target_offset, size)
        # A slice may overlap what it is copied to.
        into[...] = source.copy() if mine is theirs else source

    def fill(self, value: int, offset: int, size: int) -> None:
        """Set bytes to a value."""
        self.span(offset, size)[...] = value & 0xFF

    def attach(self, data: Bytes) -> None:
        """Take a buffer of the caller for storage, in the place of what there was."""
        if self.freed:
            raise StatusError(NrtStatus.NRT_INVALID_HANDLE, f"tensor {self.name!r} is freed")
        before = self._storage
        self._storage = Storage(data, Placement.VIRTUAL, -1, None, lambda: None)
        self.offset, self.size = 0, data.size
        if before is not None:
            before.drop()

    def slice(self, name: str, offset: int, size: int) -> Tensor:
        """Return a tensor over some of the same bytes, which stay until both are freed."""
        self.span(offset, size)
        return Tensor(name, self.storage.share(), self.offset + offset, size)

    def free(self) -> None:
        """Give the tensor up; a second time is NRT_INVALID_HANDLE."""
        with _counting:
            if self.freed:
                raise StatusError(NrtStatus.NRT_INVALID_HANDLE, f"tensor {self.name!r} is freed")
            self.freed = True
            storage, self._storage = self._storage, None
        if storage is not None:
            storage.drop()

    @property
    def address(self) -> int:
        """Return where the bytes are in this process."""
        return int(self.storage.data.ctypes.data) + self.offset

    def device_range(self) -> DeviceRange:
        """Return where the bytes are on the device; NRT_INVALID for a tensor of the host."""
        allocation = self.storage.allocation
        if allocation is None:
            raise invalid(f"tensor {self.name!r} is not on a device")
        return DeviceRange(allocation.address + self.offset, allocation.size, allocation.stack.hbm)

    # --- completion of executions that write the tensor ------------------------------------------------------------

    def complete(self) -> None:
        """Count an execution that has written the tensor."""
        with self._completed:
            self._completions += 1
            self._completed.notify_all()

    def reset_completions(self) -> None:
        """Count from zero again."""
        with self._completed:
            self._completions = 0

    def wait_for(self, completions: int, timeout_us: int, slow: Callable[[], object] = lambda: None) -> None:
        """Wait until so many executions have written the tensor; NRT_TIMEOUT after a time, no end where it is negative.

        `slow` is called once when a wait without an end has taken 30 s.
        """
        with self._completed:

            def there() -> bool:
                return self._completions >= completions

            if timeout_us >= 0:
                if not self._completed.wait_for(there, timeout_us / 1e6):
                    have = self._completions
                    raise StatusError(
                        NrtStatus.NRT_TIMEOUT, f"tensor {self.name!r}: {have} of {completions} completions"
                    )
            elif not self._completed.wait_for(there, 30):
                slow()
                self._completed.wait_for(there)


class TensorSet:
    """Tensors by name; a name that is added again is another tensor from there on."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}

    def add(self, name: str, tensor: Tensor) -> None:
        """Add a tensor or replace the one of that name."""
        if tensor.freed:
            raise StatusError(NrtStatus.NRT_INVALID_HANDLE, f"tensor {tensor.name!r} is freed")
        self.tensors[name] = tensor

    def get(self, name: str) -> Tensor:
        """Return a tensor by name; NRT_INVALID where the set has none."""
        found = self.tensors.get(name)
        if found is None:
            raise invalid(f"the set has no tensor {name!r}")
        return found


def zeros(nbytes: int) -> Bytes:
    """Return bytes of a fresh tensor: zeros, as the guide's program relies on (runtime.md 11.4)."""
    return blank(nbytes)
