"""The Neuron driver's data store of one process on one device: counters in a fixed layout, both ways.

Layout and names: runtime.md 12.1. Objects (loaded models, process information) lie between the counters and their
extension; their encoding is not in public headers, so they are kept as bytes, zero in what is made here.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from formats.errors import FormatError
from formats.named_tuple import NamedTuple

__all__ = ["CORES", "CORE_COUNTERS", "DEVICE_COUNTERS", "SIZE", "Datastore", "decode", "encode"]

_SIGNATURE = b"nds\0"
_HEADER = struct.Struct("<4si")
_SLOT = 8
# fmt: off
DEVICE_COUNTERS = (
    "RUNTIME_VERSION", "FRAMEWORK_VERSION", "FAL_VERSION", "FEATURE_BITMAP", "MIN_NEFF_VERSION", "MAX_NEFF_VERSION",
    "MEM_USAGE_CODE_HOST", "MEM_USAGE_TENSORS_HOST", "MEM_USAGE_CONSTANTS_HOST", "MEM_USAGE_SCRATCHPAD_HOST",
    "MEM_USAGE_MISC_HOST", "DYNAMIC_SYSFS_METRIC_BITMAP", "DEVICE_CLUSTER_ID",
)
_BASE = (
    "TIME_IN_USE", "INFER_COMPLETED", "INFER_COMPLETED_WITH_ERR", "INFER_COMPLETED_WITH_NUM_ERR", "INFER_TIMED_OUT",
    "INFER_INCORRECT_INPUT", "INFER_FAILED_TO_QUEUE", "ERR_GENERIC", "ERR_NUMERICAL", "ERR_MODEL", "ERR_TRANSIENT",
    "ERR_HW", "ERR_RT", "LATENCY_DEVICE", "LATENCY_TOTAL", "NC_TIME", "GENERIC_FAIL", "ERR_RESOURCE",
    "ERR_RESOURCE_NC", "ERR_INVALID", "ERR_UNSUPPORTED_NEFF_VERSION", "CC_TIME", "MEM_USAGE_CODE_DEVICE",
    "MEM_USAGE_TENSORS_DEVICE", "MEM_USAGE_CONSTANTS_DEVICE", "MEM_USAGE_SCRATCHPAD_DEVICE", "MEM_USAGE_MISC_DEVICE",
    "MODEL_LOAD_COUNT", "INFERENCE_COUNT", "MAC_COUNT", "OOB",
)
_MORE = (
    "HW_ERR_COLLECTIVES", "HW_ERR_HBM_UE", "HW_ERR_NC_UE", "HW_ERR_DMA_ABORT", "ERR_SW_NQ_OVERFLOW",
    "ERR_SW_SEMAPHORE_ERROR", "ERR_SW_EVENT_ERROR", "ERR_SW_PSUM_COLLISION", "ERR_SW_SEQUENCER_FATAL",
    "HW_ERR_REPAIRABLE_HBM_UE",
)
# fmt: on
CORE_COUNTERS = (*_BASE, *_MORE)
_DEVICE_SLOTS, _BASE_SLOTS, _MORE_SLOTS, _SLOTS = 31, 31, 64, 96
_FIRST, _REST = 4, 12  # cores with the first layout, and those that came later
CORES = _FIRST + _REST


def _aligned(offset: int) -> int:
    return -(-offset // 64) * 64


_DEVICE_AT = _HEADER.size
_BASE_AT = _DEVICE_AT + _DEVICE_SLOTS * _SLOT
_OBJECTS_AT = _BASE_AT + _FIRST * _BASE_SLOTS * _SLOT
_OLD_AT, _OLD_SIZE = 44_588, (65 * _FIRST + 96 * _REST) * _SLOT
_MORE_AT = _aligned(_OLD_AT + _OLD_SIZE)
_REST_AT = _aligned(_MORE_AT + _FIRST * _MORE_SLOTS * _SLOT)
SIZE = _REST_AT + _REST * _SLOTS * _SLOT


class Datastore(NamedTuple):
    """Counters by name, of the device and of each core that has any, without zeros; bytes of objects."""

    version: int
    device: dict[str, int]
    cores: dict[int, dict[str, int]]
    objects: bytes = b""


def _offset(core: int, name: str) -> int:
    """Return where a counter of a core stands."""
    index = CORE_COUNTERS.index(name)
    if core >= _FIRST:
        return _REST_AT + ((core - _FIRST) * _SLOTS + index) * _SLOT
    if index < _BASE_SLOTS:
        return _BASE_AT + (core * _BASE_SLOTS + index) * _SLOT
    return _MORE_AT + (core * _MORE_SLOTS + index - _BASE_SLOTS) * _SLOT


def encode(store: Datastore) -> bytes:
    """Return the bytes of a data store; FormatError for cores and counters that it has no place for."""
    data = bytearray(SIZE)
    _HEADER.pack_into(data, 0, _SIGNATURE, store.version)
    room = _OLD_AT - _OBJECTS_AT
    if len(store.objects) > room:
        raise FormatError("too many bytes of objects", expected=f"at most {room:,}", got=f"{len(store.objects):,}")
    data[_OBJECTS_AT : _OBJECTS_AT + len(store.objects)] = store.objects
    for name, value in store.device.items():
        if name not in DEVICE_COUNTERS:
            raise FormatError("unknown counter of a device", got=name)
        struct.pack_into("<Q", data, _DEVICE_AT + DEVICE_COUNTERS.index(name) * _SLOT, _counted(value, name))
    for core, counters in store.cores.items():
        for name, value in counters.items():
            if not 0 <= core < CORES or name not in CORE_COUNTERS:
                raise FormatError("unknown counter of a core", field=f"core {core}", got=name)
            struct.pack_into("<Q", data, _offset(core, name), _counted(value, name))
    return bytes(data)


def _counted(value: int, name: str) -> int:
    if not 0 <= value < 1 << 64:
        raise FormatError("not a counter's value", field=name, expected="64 bits", got=value)
    return value


def decode(data: bytes, path: str | None = None) -> Datastore:
    """Return what a data store says; FormatError for what is none."""
    if len(data) < SIZE:
        raise FormatError("too short for a data store", path=path, expected=f"{SIZE:,} bytes", got=f"{len(data):,}")
    signature, version = _HEADER.unpack_from(data)
    if signature != _SIGNATURE:
        raise FormatError("not a data store", path=path, offset=0, expected="'nds' and a zero", got=repr(signature))

    def value(offset: int) -> int:
        found: int = struct.unpack_from("<Q", data, offset)[0]
        return found

    device = {name: number for at, name in enumerate(DEVICE_COUNTERS) if (number := value(_DEVICE_AT + at * _SLOT))}
    cores: Mapping[int, dict[str, int]] = {
        core: {name: number for name in CORE_COUNTERS if (number := value(_offset(core, name)))}
        for core in range(CORES)
    }
    return Datastore(version, device, {core: one for core, one in cores.items() if one},
                     data[_OBJECTS_AT:_OLD_AT].rstrip(b"\0"))  # fmt: skip
