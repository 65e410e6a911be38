"""What memory that nothing has written holds: NaN in floating-point types, 4 in integers.

Memory is bytes, so the type comes from who asked for it. All bits set are NaN in every floating-point type, and the
state of all memory when a device is made. Where the file says that integers are to stand, the loader puts 4s: in
inputs and outputs, whose element type every file gives, and where member `sgNN/fresh.json`, a list of objects, says so:

    {"space": "SBUF", "partition": 0, "partitions": 128, "offset": 2048, "nbytes": 64, "dtype": "int32"}
    {"variable": "scratch", "dtype": "uint8"}

`offset` and `nbytes` are bytes inside each partition, "PSUM" is the other space; a variable is a tensor in HBM that is
neither input nor output. The builder lists integer tiles that some word may read before all of it is written, where
nothing stood before; bytes of an earlier tile keep what it left, as on a device. The format is ours. The two values:
nki.md 4.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from emulator.device_memory import DeviceMemory
from emulator.memory import FRESH, ChipMemory
from formats.dtypes import Dtype
from formats.errors import FormatError
from formats.neff import Subgraph
from formats.neff.fields import load_value

if TYPE_CHECKING:
    from emulator.placement import DeviceTensor

__all__ = ["INTEGER", "fill_fresh", "fresh_pattern"]

INTEGER = 4
_NUMBERS = ("partition", "partitions", "offset", "nbytes")


def fresh_pattern(dtype: str) -> bytes:
    """Return the bytes of one element that was never written; "" is a type that is not known."""
    code = Dtype.from_numpy_name(dtype) if dtype else Dtype.UNKNOWN
    return INTEGER.to_bytes(code.size, "little") if code.is_int else bytes([FRESH])


def fill_fresh(subgraph: Subgraph, tensors: Mapping[str, DeviceTensor], memory: ChipMemory, hbm: DeviceMemory) -> None:
    """Fill the integers of one core that are to be fresh.

    FormatError where the list in the file is malformed, or names what the file or the core does not have.
    """
    for tensor in tensors.values():
        if tensor.kind in ("input", "output") and tensor.nbytes:
            hbm.set_fresh(tensor.address, tensor.nbytes, fresh_pattern(tensor.dtype))
    if not subgraph.has("fresh.json"):
        return
    path = subgraph.member("fresh.json")
    for number, item in enumerate(_items(subgraph.parsed_bytes("fresh.json"), path)):
        where = f"entry {number}"
        if not isinstance(item, dict) or not isinstance(item.get("dtype"), str):
            raise FormatError("no object with a dtype", path=path, field=where)
        pattern = fresh_pattern(item["dtype"])
        if "variable" in item:
            found = tensors.get(item["variable"]) if isinstance(item["variable"], str) else None
            if found is None:
                raise FormatError("no such variable", path=path, field=where, got=repr(item["variable"]))
            hbm.set_fresh(found.address, found.nbytes, pattern)
            continue
        if item.get("space") not in ("SBUF", "PSUM"):
            raise FormatError("no such space", path=path, field=where, expected="SBUF or PSUM", got=item.get("space"))
        first, partitions, byte, nbytes = (_number(item, key, path, where) for key in _NUMBERS)
        high, wide = memory.laid(item["space"]).shape
        if first + partitions > high or byte + nbytes > wide or nbytes % len(pattern):
            raise FormatError("range is outside of the memory, or holds no whole elements", path=path, field=where)
        memory.set_fresh(item["space"], first, partitions, byte, nbytes, pattern)


def _items(data: bytes, path: str) -> Iterable[Any]:
    items = load_value(data, path)
    if not isinstance(items, list):
        raise FormatError("list of fresh memory is not a list", path=path)
    return items


def _number(item: Mapping[str, Any], key: str, path: str, where: str) -> int:
    value = item.get(key)
    if type(value) is not int or value < 0:
        raise FormatError("no such number", path=path, field=f"{where}.{key}", expected="0 or more", got=repr(value))
    return value
