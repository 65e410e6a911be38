"""A C client by way of ctypes: the calls that tests make, and statuses as names."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p, create_string_buffer
from typing import Any

from formats.nrt.status import NrtStatus as S
from neurontools.libnrt.functions import FUNCTIONS

__all__ = ["Client"]

_TYPES = {
    "NRT_STATUS": c_int,
    "void": None,
    "size_t": c_size_t,
    "int": c_int,
    "int32_t": ctypes.c_int32,
    "uint32_t": c_uint32,
    "nrt_enum_t": c_uint32,
    "int64_t": c_int64,
    "uint64_t": c_uint64,
    "nrta_seq_t": c_uint64,
    "bool": ctypes.c_bool,
    "const char *": c_char_p,
}


class Client:
    """The library as C sees it; `call` gives a status, methods what tests need."""

    def __init__(self, lib: Any) -> None:
        self.lib = lib
        for function in FUNCTIONS:
            entry = getattr(lib, function.name)
            entry.restype = _TYPES.get(function.returns, c_void_p)
            entry.argtypes = [_TYPES.get(each.type, c_void_p) for each in function.parameters]

    def call(self, name: str, *arguments: Any) -> S:
        return S(getattr(self.lib, name)(*arguments))

    def good(self, name: str, *arguments: Any) -> None:
        status = self.call(name, *arguments)
        assert status is S.NRT_SUCCESS, (name, status)

    def init(self) -> Client:
        self.good("nrt_init", 1, b"", b"")
        return self

    def end(self) -> None:
        """Close what a test left open."""
        self.lib.nrt_close()

    def handle(self, name: str, *arguments: Any) -> c_void_p:
        made = c_void_p()
        self.good(name, *arguments, byref(made))
        assert made.value
        return made

    def load(self, data: bytes, core: int = 0) -> c_void_p:
        return self.handle("nrt_load", data, len(data), core, 1)

    def tensor(self, data: bytes = b"", size: int = 0, core: int = 0, placement: int = 0) -> c_void_p:
        made = self.handle("nrt_tensor_allocate", placement, core, size or len(data), b"t")
        if data:
            self.good("nrt_tensor_write", made, data, 0, len(data))
        return made

    def read(self, tensor: c_void_p, size: int) -> bytes:
        buffer = create_string_buffer(size)
        self.good("nrt_tensor_read", tensor, buffer, 0, size)
        return buffer.raw

    def set_of(self, **tensors: c_void_p) -> c_void_p:
        made = self.handle("nrt_allocate_tensor_set")
        for name, tensor in tensors.items():
            self.good("nrt_add_tensor_to_tensor_set", made, name.encode(), tensor)
        return made

    def used(self, core: int = 0) -> int:
        stats, written = (c_size_t * 2)(), c_size_t()
        self.good("nrt_get_vnc_memory_stats", core, byref(stats), ctypes.sizeof(stats), byref(written))
        return int(stats[0])
