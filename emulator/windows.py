"""How words read and write device addresses: memories, semaphores, events. Source: formats.md 7.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from emulator.addresses import Location
from emulator.faults import fault_error
from emulator.semaphores import signed
from formats.errors import UnsupportedError

if TYPE_CHECKING:
    from emulator.context import CoreContext, DeviceContext

__all__ = ["read_device", "write_device"]

_COUNTER_BYTES = 4

Bytes = npt.NDArray[np.uint8]
Plane = npt.NDArray[np.bool_]


def write_device(device: DeviceContext, address: int, size: int, value: int) -> None:
    """Write `size` bytes, little-endian, to a device address at the present time.

    Raises FaultError where nothing stands there or it cannot be written so, UnsupportedError for registers whose
    meaning is not public.
    """
    location = device.addresses.locate(address)
    kind, index, action = location.kind, location.index, location.action
    if kind == "hbm":
        device.hbm.write(address, value.to_bytes(size, "little"))
    elif kind in ("sbuf", "psum"):
        _settle_products(device, location, size, writes=True)
        view, written = _on_chip(device, location, address, size)
        view[:] = np.frombuffer(value.to_bytes(size, "little"), np.uint8)
        written[:] = True
    elif kind in ("semaphore", "event"):
        _check_counter(address, size)
        core, number = _core(device, location, address), signed(value & 0xFFFFFFFF)
        if kind == "event":
            core.events.set(index, 1 if value else 0, device.now_ps)
        elif action == "set":
            core.semaphores.set(index, number, device.now_ps)
        elif action == "read":
            raise fault_error(
                "access",
                f"{address:#x} is the read register of S[{index}]",
                address=(address, address + size),
                expected="its set, increment or decrement register",
            )
        else:
            core.semaphores.add(index, number if action == "increment" else -number, device.now_ps)
    else:
        raise _nothing(location, address, size, "write")


def read_device(device: DeviceContext, address: int, size: int) -> int:
    """Read `size` bytes, little-endian, from a device address; errors as in `write_device`."""
    location = device.addresses.locate(address)
    kind, index, action = location.kind, location.index, location.action
    if kind == "hbm":
        return int.from_bytes(device.hbm.view(address, size).tobytes(), "little")
    if kind in ("sbuf", "psum"):
        _settle_products(device, location, size, writes=False)
        return int.from_bytes(_on_chip(device, location, address, size)[0].tobytes(), "little")
    if kind == "semaphore" and action == "read":
        _check_counter(address, size)
        return _core(device, location, address).semaphores[index] & 0xFFFFFFFF
    if kind == "event":
        _check_counter(address, size)
        return _core(device, location, address).events[index]
    raise _nothing(location, address, size, "read")


def _core(device: DeviceContext, location: Location, address: int) -> CoreContext:
    if location.core >= len(device.cores):
        raise fault_error(
            "oob",
            f"{address:#x} belongs to core {location.core}, which this device does not run",
            address=(address, address + 1),
            expected=f"cores 0 to {len(device.cores) - 1}",
        )
    return device.cores[location.core]


def _on_chip(device: DeviceContext, location: Location, address: int, size: int) -> tuple[Bytes, Plane]:
    memory = _core(device, location, address).memory
    space, index, first = location.kind.upper(), location.index, location.offset
    end = first + size
    array = memory.array(space)
    if index >= array.shape[0] or end > array.shape[1]:
        raise fault_error(
            "oob",
            f"{space} access out of bounds: partition {index}, bytes {first:#x} to {end - 1:#x}",
            space=space,
            address=(address, address + size),
            expected=f"partitions 0 to {array.shape[0] - 1}, bytes 0x0 to {array.shape[1] - 1:#x} of each",
        )
    return array[index, first:end], memory.written(space)[index, first:end]


def _settle_products(device: DeviceContext, location: Location, size: int, *, writes: bool) -> None:
    """Have the Tensor engine add what is about to be looked at or overwritten."""
    if location.core < len(device.cores) and (pe := device.cores[location.core].pe).pending:
        place = (location.kind.upper(), location.core, int(location.index), 1, location.offset, size, None)
        pe.settle((), [place]) if writes else pe.settle([place], ())


def _check_counter(address: int, size: int) -> None:
    if size != _COUNTER_BYTES or address % _COUNTER_BYTES:
        raise fault_error(
            "access",
            f"semaphore and event registers hold 4 bytes; {size} at {address:#x}",
            address=(address, address + size),
        )


def _nothing(location: Location, address: int, size: int, verb: str) -> Exception:
    if location.kind in ("register", "doorbell", "semaphore"):
        return UnsupportedError(f"cannot {verb} {location.kind} at {address:#x}: its effect is not modelled")
    return fault_error("oob", f"cannot {verb} {address:#x}: nothing stands there", address=(address, address + size))
