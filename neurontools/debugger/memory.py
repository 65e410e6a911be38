"""Looking at memory without touching it: addresses as people write them, bytes and which of them were written."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from emulator.dtypes import numpy_dtype
from emulator.memory import FRESH
from formats.dtypes import Dtype
from formats.errors import NotFoundError
from formats.named_tuple import NamedTuple
from formats.neuron_core import PARTITIONS, PSUM_BASE, PSUM_PARTITION_STRIDE, SBUF_PARTITION_STRIDE
from neurontools.debugger.errors import UsageError
from neurontools.debugger.names import parse_core, parse_dtype, parse_number
from neurontools.debugger.results import Array, Examined

if TYPE_CHECKING:
    from emulator.machine_view import AllocationView, MachineView
    from emulator.placement import DeviceTensor
    from formats.neff.tiles import Tile

__all__ = [
    "Spot",
    "bytes_at",
    "cast_values",
    "chip_bytes",
    "examine",
    "hbm_bytes",
    "parse_format",
    "parse_spot",
    "spot_of_tensor",
]

_PSUM_END = PSUM_BASE + PARTITIONS * PSUM_PARTITION_STRIDE
_CHIP = re.compile(r"(?:(sbuf|psum):)?(\w+):(\w+)", re.IGNORECASE)
_SIZES = {"b": 1, "h": 2, "w": 4, "g": 8}
_LIMIT = 1 << 20  # values one command shows


class Spot(NamedTuple):
    """An address: in SBUF or PSUM of `core` a byte of a partition, in HBM a device address; it ends at `end`."""

    space: str
    core: int | None
    name: str
    partition: int | None
    address: int
    end: int


def parse_spot(device: MachineView, text: str, core: int) -> Spot | None:
    """Return the spot that an address means, None where the text is no address (but may be a tensor's name).

    Addresses are `sbuf:PARTITION:BYTE`, `psum:PARTITION:BYTE`, `PARTITION:BYTE` (SBUF), `hbm:ADDRESS`, or a number: an
    engine address up to the end of PSUM, a device address above. `nc1` in front chooses the core. Raises NotFoundError
    where nothing stands at the address.
    """
    chosen, rest = parse_core(text)
    core = core if chosen is None else chosen
    if core >= len(device.cores):
        raise NotFoundError(f"no core {core}; there are {len(device.cores)}")
    if rest.lower().startswith("hbm:"):
        return _device_spot(device, parse_number(rest[4:], "a device address"))
    found = _CHIP.fullmatch(rest)
    if found and found[2][0].isdigit():
        space = (found[1] or "sbuf").upper()
        return _chip_spot(device, space, core, parse_number(found[2], "a partition"), parse_number(found[3], "a byte"))
    if not rest[:1].isdigit():
        return None
    address = parse_number(rest, "an address")
    if address < PSUM_BASE:
        return _chip_spot(device, "SBUF", core, *divmod(address, SBUF_PARTITION_STRIDE))
    if address < _PSUM_END:
        return _chip_spot(device, "PSUM", core, *divmod(address - PSUM_BASE, PSUM_PARTITION_STRIDE))
    return _device_spot(device, address)


def _chip_spot(device: MachineView, space: str, core: int, partition: int, byte: int) -> Spot:
    rows, width = device.cores[core].memory.array(space).shape
    if partition >= rows or byte >= width:
        raise NotFoundError(
            f"{space} has partitions 0 to {rows - 1} and bytes 0 to {width - 1:#x}; asked for partition "
            f"{partition}, byte {byte:#x}"
        )
    return Spot(space, core, "", partition, byte, width)


def _device_spot(device: MachineView, address: int) -> Spot:
    place = device.addresses.locate(address)
    if place.kind in ("sbuf", "psum") and place.core < len(device.cores):
        return _chip_spot(device, place.kind.upper(), place.core, int(place.index), place.offset)
    found = device.hbm.find(address)
    if found is None:
        raise NotFoundError(f"no memory at {address:#x}; `info memory` lists the allocations")
    return Spot("HBM", None, found.name, None, address, found.address + found.nbytes)


def spot_of_tensor(device: MachineView, found: DeviceTensor | Tile, core: int, offset: int) -> Spot:
    """Return the spot `offset` bytes into a tensor; in a tile, into its first partition."""
    from formats.neff.tiles import Tile  # deferred: start-up

    if isinstance(found, Tile):
        size = found.partition_bytes
        spot = _chip_spot(device, found.space, core, found.partition, found.offset + offset)._replace(name=found.name)
    else:
        size = found.nbytes
        spot = Spot("HBM", None, found.name, None, found.address + offset, found.address + size)
    if not 0 <= offset < size:
        raise NotFoundError(f"{found.name} has {size} bytes" + (" in a partition" if isinstance(found, Tile) else ""))
    return spot


def parse_format(text: str) -> tuple[int | None, str, Dtype]:
    """Return count (None where not given), base ("x", "d", "f") and element type of "8f", "4xb" or "16:bfloat16".

    Letters are gdb's: x hexadecimal, d signed, u unsigned, f floating point; b, h, w, g sizes of 1, 2, 4 and 8 bytes.
    Raises UsageError.
    """
    text = text.strip().lstrip("/")
    found = re.fullmatch(r"(\d{0,9}):?(.*)", text)
    digits, letters = (found[1], found[2]) if found else ("", text)
    count = int(digits) if digits else None
    if count is not None and not 1 <= count <= _LIMIT:
        raise UsageError(f"{count} is not a count from 1 to {_LIMIT}")
    named = parse_dtype(letters) if len(letters) > 1 else None
    if named is not None:
        return count, "f" if named.is_float else "d", named
    base = size = ""
    for letter in letters:
        if letter in "xduf" and not base:
            base = letter
        elif letter in _SIZES and not size:
            size = letter
        else:
            raise UsageError(f"{text!r} is not a format: a count, one of x d u f, one of b h w g, or an element type")
    width = _SIZES[size or "w"]
    if base == "f":
        if width not in (2, 4):
            raise UsageError("f takes sizes h (fp16) and w (fp32)")
        return count, "f", Dtype.FLOAT16 if width == 2 else Dtype.FLOAT32
    signed = base == "d"
    kinds = {
        1: (Dtype.UINT8, Dtype.INT8),
        2: (Dtype.UINT16, Dtype.INT16),
        4: (Dtype.UINT32, Dtype.INT32),
        8: (Dtype.UINT64, Dtype.INT64),
    }
    return count, "x" if base in ("", "x") else "d", kinds[width][signed]


def cast_values(value: object, dtype: np.dtype[Any], place: str) -> Array:
    """Return values in a type; UsageError for numbers that it does not hold."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise UsageError(f"{place} takes numbers")
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        low = limits.min if dtype.kind == "i" else -(limits.max // 2) - 1
        # Python's own integers: in fp64 the limits of 64 bits are rounded up.
        fits = array.dtype.kind != "f" or (np.isfinite(array) & (array == np.trunc(array))).all()
        if not fits or (array.size and not low <= int(array.min()) <= int(array.max()) <= limits.max):
            raise UsageError(f"{place} takes whole numbers from {limits.min} to {limits.max}")
        # By way of 64 bits: from floating point, a negative number has no meaning in an unsigned type.
        return array.astype(np.int64 if array.size and array.min() < 0 else np.uint64).astype(dtype)
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def examine(device: MachineView, spot: Spot, count: int, base: str, dtype: Dtype) -> Examined:
    """Return `count` values from a spot on; NotFoundError where they reach beyond its partition or allocation."""
    nbytes = count * dtype.size
    if spot.address + nbytes > spot.end:
        where = f"partition {spot.partition} of {spot.space}" if spot.space != "HBM" else spot.name
        room = (spot.end - spot.address) // dtype.size
        raise NotFoundError(f"{count} values of {dtype.size} bytes reach beyond {where}; {room} fit")
    if spot.space == "HBM":
        data, written = hbm_bytes(device, spot.address, nbytes)
    else:
        assert spot.core is not None and spot.partition is not None
        data, written = chip_bytes(device, spot.core, spot.space, spot.partition, 1, spot.address, nbytes)
    values = np.frombuffer(data.tobytes(), numpy_dtype(dtype))
    return Examined(
        spot.space,
        spot.core,
        spot.name,
        spot.partition,
        spot.address,
        dtype.numpy_name,
        base,
        values,
        np.all(written.reshape(count, dtype.size), axis=1),
    )


def bytes_at(device: MachineView, text: str, offset: int, count: int, core: int) -> tuple[str, bytes]:
    """Return an address `offset` bytes behind another one, and up to `count` bytes from there, as far as they go.

    Raises NotFoundError, UsageError for an address that is none.
    """
    spot = parse_spot(device, text, core)
    if spot is None:
        raise UsageError(f"{text!r} is no address")
    first = spot.address + offset
    if spot.space == "HBM":
        found = device.hbm.find(spot.address)
        low = first if found is None else found.address
        size = max(min(count, spot.end - first), 0) if first >= low else 0
        return f"hbm:{first:#x}", hbm_bytes(device, first, size)[0].tobytes() if size else b""
    assert spot.core is not None and spot.partition is not None
    size = max(min(count, spot.end - first), 0) if first >= 0 else 0
    data = chip_bytes(device, spot.core, spot.space, spot.partition, 1, first, size)[0].tobytes() if size else b""
    return f"nc{spot.core} {spot.space.lower()}:{spot.partition}:{first:#x}", data


def chip_bytes(
    device: MachineView, core: int, space: str, partition: int, partitions: int, byte: int, nbytes: int
) -> tuple[Array, Array]:
    """Return copies of (partitions, nbytes) bytes and of their written plane."""
    memory = device.cores[core].memory
    part = slice(partition, partition + partitions), slice(byte, byte + nbytes)
    return memory.array(space)[part].copy(), memory.written(space)[part].copy()


def hbm_bytes(device: MachineView, address: int, nbytes: int) -> tuple[Array, Array]:
    """Return copies of bytes in HBM and of their written plane; a look does not create an allocation."""
    found: AllocationView | None = device.hbm.find(address)
    if found is None:
        return np.full(nbytes, FRESH, np.uint8), np.zeros(nbytes, np.bool_)
    start = address - found.address
    if not found.touched:
        return found.fresh()[start : start + nbytes], np.zeros(nbytes, np.bool_)
    return found.data[start : start + nbytes].copy(), found.written[start : start + nbytes].copy()


def elements(data: Array, written: Array, dtype: Dtype, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return bytes as elements of a shape, and which elements are written whole."""
    kind = numpy_dtype(dtype)
    values = np.frombuffer(data.tobytes(), kind).reshape(shape)
    return values, written.reshape(prod(shape), kind.itemsize).all(axis=1).reshape(shape)
