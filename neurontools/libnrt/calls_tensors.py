"""Tensors and sets of them: nrt.h."""

from __future__ import annotations

from typing import Any

import numpy as np

from emulator.runtime.errors import StatusError, invalid
from emulator.runtime.tensor import Placement, Tensor, TensorSet
from formats.nrt.status import NrtStatus
from neurontools.libnrt.calls import does
from neurontools.libnrt.calls_session import set_of
from neurontools.libnrt.library import Library

__all__ = ["tensor_of"]

_LARGEST = (1 << 63) - 1


def tensor_of(library: Library, pointer: Any) -> Tensor:
    """Return the tensor of a handle."""
    return library.handles.get(library.number(pointer), Tensor)


@does("nrt_allocate_tensor_set")
def allocate_set(library: Library, into: Any) -> None:
    """Make a set."""
    library.give(into, TensorSet(), "void *")


@does("nrt_destroy_tensor_set")
def destroy_set(library: Library, pointer: Any) -> None:
    """Forget a set, and clear the caller's pointer to it."""
    library.need(pointer)
    library.handles.take(library.number(pointer[0]), TensorSet)
    pointer[0] = library.ffi.NULL


@does("nrt_add_tensor_to_tensor_set")
def add_to_set(library: Library, tensors: Any, name: Any, tensor: Any) -> None:
    """Add or replace a tensor."""
    library.need(name)
    set_of(library, tensors).add(library.text(name), tensor_of(library, tensor))


@does("nrt_get_tensor_from_tensor_set")
def get_from_set(library: Library, tensors: Any, name: Any, into: Any) -> None:
    """Give the handle of a tensor of a set."""
    library.need(name, into)
    found = library.handles.find(set_of(library, tensors).get(library.text(name)))
    if not found:
        raise StatusError(NrtStatus.NRT_INVALID_HANDLE, "the tensor was freed")
    into[0] = library.ffi.cast("nrt_tensor_t *", found)


@does("nrt_tensor_allocate")
def allocate(library: Library, placement: int, core: int, size: int, name: Any, into: Any) -> None:
    """Make a tensor of zeros."""
    library.need(into)
    try:
        where = Placement(placement)
    except ValueError:
        raise invalid(f"placement {placement}") from None
    library.give(into, library.runtime.allocate(where, core, size, library.text(name)), "nrt_tensor_t *")


@does("nrt_tensor_allocate_empty")
def allocate_empty(library: Library, name: Any, into: Any) -> None:
    """Make a tensor without storage."""
    library.need(into)
    library.give(into, library.runtime.allocate_empty(library.text(name)), "nrt_tensor_t *")


@does("nrt_tensor_attach_buffer")
def attach(library: Library, tensor: Any, buffer: Any, size: int) -> None:
    """Let a tensor's bytes be the caller's."""
    found = tensor_of(library, tensor)
    if not 0 < size <= _LARGEST:
        raise invalid(f"a buffer of {size} bytes")
    found.attach(np.frombuffer(library.bytes_at(buffer, size), np.uint8))


@does("nrt_tensor_allocate_slice")
def allocate_slice(library: Library, source: Any, offset: int, size: int, name: Any, into: Any) -> None:
    """Make a tensor over some bytes of another one."""
    library.need(into)
    made = library.runtime.slice(tensor_of(library, source), offset, size, library.text(name))
    library.give(into, made, "nrt_tensor_t *")


@does("nrt_tensor_free")
def free(library: Library, pointer: Any) -> None:
    """Free a tensor, and clear the caller's pointer to it."""
    library.need(pointer)
    library.runtime.free(library.handles.take(library.number(pointer[0]), Tensor))
    pointer[0] = library.ffi.NULL


@does("nrt_tensor_read")
def read(library: Library, tensor: Any, buffer: Any, offset: int, size: int) -> None:
    """Copy bytes to the caller."""
    source = tensor_of(library, tensor).span(offset, size)
    library.need(buffer)
    library.ffi.memmove(buffer, source.data, size)
    _noted(library, tensor, "nrt_tensor_read", size)


@does("nrt_tensor_write")
def write(library: Library, tensor: Any, buffer: Any, offset: int, size: int) -> None:
    """Copy bytes from the caller."""
    into = tensor_of(library, tensor).span(offset, size)
    library.need(buffer)
    library.ffi.memmove(into.data, buffer, size)
    _noted(library, tensor, "nrt_tensor_write", size)


def _noted(library: Library, tensor: Any, kind: str, size: int) -> None:
    watching = library.runtime.watching
    if watching.tracing:
        watching.note(max(0, tensor_of(library, tensor).storage.core), kind, size=size)


def _batch(library: Library, batches: Any, count: int, write_them: bool) -> None:
    """Carry out operations on several tensors; all of them are looked at before the first byte moves."""
    library.need(batches)
    planned = []
    for index in range(count):
        batch = batches[index]
        tensor = tensor_of(library, batch.tensor)
        if batch.num_ops:
            library.need(batch.ops)
        for number in range(batch.num_ops):
            op = batch.ops[number]
            planned.append((tensor.span(op.offset, op.size), op.buffer, op.size))
            library.need(op.buffer)
    for span, buffer, size in planned:
        if write_them:
            library.ffi.memmove(span.data, buffer, size)
        else:
            library.ffi.memmove(buffer, span.data, size)


@does("nrt_tensor_read_batch")
def read_batch(library: Library, batches: Any, count: int, unsafe: bool) -> None:
    """Copy bytes of several tensors to the caller."""
    _batch(library, batches, count, False)


@does("nrt_tensor_write_batch")
def write_batch(library: Library, batches: Any, count: int, unsafe: bool) -> None:
    """Copy bytes of the caller to several tensors."""
    _batch(library, batches, count, True)


@does("nrt_tensor_copy")
def copy(library: Library, source: Any, source_offset: int, target: Any, target_offset: int, size: int) -> None:
    """Copy bytes between tensors of one core."""
    tensor_of(library, source).copy_to(tensor_of(library, target), size, source_offset, target_offset)


@does("nrt_tensor_get_size")
def size_of(library: Library, tensor: Any) -> int:
    """Return the bytes of a tensor; 0 where there is none."""
    return tensor_of(library, tensor).size


@does("nrt_tensor_memset")
def memset(library: Library, tensor: Any, offset: int, value: int, size: int) -> None:
    """Set bytes to a value."""
    tensor_of(library, tensor).fill(value, offset, size)


@does("nrt_tensor_get_va")
def virtual_address(library: Library, tensor: Any) -> Any:
    """Return where the bytes are in this process; NULL where there are none."""
    return library.ffi.cast("void *", tensor_of(library, tensor).address)


@does("nrt_memcpy_to_device")
def memcpy(library: Library, target: Any, source: Any, size: int) -> None:
    """Copy to an address that `nrt_tensor_get_va` gave; NRT_INVALID where no tensor has all of the bytes."""
    library.need(target, source)
    address = library.number(target)
    for tensor in list(library.runtime.tensors):
        if not tensor.empty and tensor.address <= address and address + size <= tensor.address + tensor.size:
            library.ffi.memmove(target, source, size)
            return
    raise invalid(f"no tensor has {size} bytes at {address:#x}")


@does("nrt_tensor_get_device_allocation_info")
def device_allocation(library: Library, tensor: Any, into: Any) -> None:
    """Fill in where a tensor is on its device."""
    library.need(into)
    found = tensor_of(library, tensor).device_range()
    into.physical_address, into.size, into.hbm_index = found.address, found.size, found.hbm


@does("nrt_tensor_check_output_completion")
def check_completion(library: Library, tensor: Any, timeout: int, completions: int) -> None:
    """Wait for executions that write a tensor."""
    library.need(tensor)
    found = tensor_of(library, tensor)

    def slow() -> None:
        library.runtime.log.write(
            "WARN", "NRT", "nrt_tensor_check_output_completion", f"{found.name} is not complete after 30 seconds"
        )

    found.wait_for(completions, timeout, slow)


@does("nrt_tensor_reset_output_completion")
def reset_completion(library: Library, tensor: Any) -> None:
    """Count completions from zero again."""
    library.need(tensor)
    tensor_of(library, tensor).reset_completions()
