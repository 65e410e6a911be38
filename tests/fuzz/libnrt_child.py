"""A C client that does what bytes say: `python -m tests.fuzz.libnrt_child LIBRARY`, for `tests.fuzz.libnrt`.

Programs come on standard input, each behind its length in four bytes; a line answers each: "ok", or what was broken.
A call is one byte for its function and one for each parameter, which chooses among values: handles that were given
out (also those that are gone, or of another kind), NULL, garbage; lengths and offsets of every size. What only a C
program itself can break is left out: memory that the caller does not have, structures that were not filled in.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Callable
from ctypes import c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from formats.nrt.status import NrtStatus
from neurontools.libnrt.functions import FUNCTIONS, Function, Parameter
from tests.libnrt.client import Client
from tests.runtime.support import copying, hanging, out_of_bounds

ROOM = 1 << 20
BY_NAME = {one.name: one for one in FUNCTIONS}
# Arrays that are freed by what they say themselves; a garbage one is the caller's mistake.
_ARRAYS = ("nrt_sys_trace_free_event_types", "nrt_inspect_config_free_activity_types")
NAMES = [one.name for one in FUNCTIONS if one.name not in _ARRAYS]
_STATUSES = {int(status) for status in NrtStatus}
_NUMBERS = (0, 1, 2, 3, 7, 63, 64, 255, -1, (1 << 31) - 1)
_FEW = (0, 1, 1, 1)  # of ranks: more would wait for somebody
_SIZES = (0, 1, 7, 8, 4096, 32_768, 32_769, 65_536, ROOM)
_LARGE = (*_SIZES, 20 << 30, 1 << 46, (1 << 46) + 1, (1 << 63), (1 << 64) - 1)
_TIMES = (0, 1, 50)
_GARBAGE = (0, 1, 8, 0x1000, 0x1008, 0x7FFFFFFFFFF0, (1 << 64) - 1)


class Batch(ctypes.Structure):
    """nrt_tensor_batch_t with its one operation."""

    _fields_ = [("tensor", c_void_p), ("ops", c_void_p), ("count", c_uint32)]


class Op(ctypes.Structure):
    """nrt_tensor_batch_op_t."""

    _fields_ = [("offset", c_uint64), ("size", c_uint64), ("buffer", c_void_p)]


class Comm(ctypes.Structure):
    """nrt_cc_comm_t."""

    _fields_ = [("group", c_void_p), *((name, c_uint32) for name in ("rank", "ranks", "device", "devices", "vnc"))]


class Tensors(ctypes.Structure):
    """nrt_tensor_list_t."""

    _fields_ = [("tensors", c_void_p), ("count", c_size_t)]


class Machine:
    """The client's memory: rooms for bytes, slots for handles, every handle that there ever was."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.rooms = [ctypes.create_string_buffer(ROOM) for _ in range(4)]
        for room, data in zip(self.rooms, (copying(), out_of_bounds(), hanging()), strict=False):
            ctypes.memmove(room, data, len(data))
        self.files = (len(copying()), len(out_of_bounds()), len(hanging()))
        self.out = ctypes.create_string_buffer(ROOM)
        self.slots = (c_void_p * 16)()
        self.known: dict[int, str] = {}  # handle: its kind
        self.addresses: list[int] = []
        self.kept: list[Any] = []

    def start(self) -> None:
        ctypes.memset(self.slots, 0, ctypes.sizeof(self.slots))
        self.known, self.addresses, self.kept = {}, [], []

    def handle(self, base: str, choice: int) -> int:
        """Return a handle of a kind, the newest for 0; from 192 on any that there ever was, or none at all."""
        mine = [number for number, kind in self.known.items() if kind == base][-8:]
        if choice == 255:
            return 0
        if choice < 192 and mine:
            return mine[-1 - choice % len(mine)]
        pool = (*_GARBAGE, *list(self.known)[-16:])
        return pool[choice % len(pool)]

    def value(self, function: Function, each: Parameter, choice: int) -> Any:
        kind, name = each.type.replace("const ", ""), each.name
        stars = kind.count("*")
        base = kind.rstrip(" *")
        if kind == "char *":
            texts = (None, b"", b"x", b"y", b"nrt_execute", b"all", b"device_profile", b"/dev/null", b"out", b"n" * 300)
            return texts[choice % len(texts)]
        if base in ("nrt_tensor_batch_t", "nrt_cc_comm_t", "nrt_tensor_list_t") and stars == 1:
            return self._structure(base, choice) if choice % 8 else None
        if stars == 1 and base.endswith("_t") and base.startswith(("nrt_", "nrta_")) and (base not in _FILLED):
            return self.handle(base, choice)
        if stars == 2 and base not in ("char", "void"):
            return ctypes.addressof(self.slots) + 8 * (choice % 16) if choice < 240 else None
        if stars:
            return self._memory(function, name, choice)
        if kind == "bool":
            return bool(choice & 1)
        if name == "timeout":
            return _TIMES[choice % len(_TIMES)]
        if name in ("g_device_count", "ctx_device_count"):
            return _FEW[choice % len(_FEW)]
        if name == "rank_input_size":
            return _SIZES[choice % len(_SIZES)]
        if name == "num_batches":
            return choice & 1
        if kind in ("size_t", "uint64_t"):
            paired = any("*" in one.type and one.name in ("buf", "buffer", "neff_bytes", "src", "info", "stats")
                         for one in function.parameters)  # fmt: skip
            if function.name.startswith("nrt_load") and choice < 192:
                return self.files[choice % 3]
            pool = _SIZES if paired and "offset" not in name else _LARGE
            return pool[choice % len(pool)]
        if kind == "nrt_async_exec_callback_t":
            return None
        return _NUMBERS[choice % len(_NUMBERS)] if choice < 128 else choice % 4

    def _memory(self, function: Function, name: str, choice: int) -> int | None:
        if choice >= 240:
            return None
        if function.name == "nrt_memcpy_to_device" and name == "dest":
            known = self.addresses or [0]
            return known[choice % len(known)] if choice & 1 else self.handle("", choice)
        if name in ("neff_bytes", "src", "buf", "buffer") and "read" not in function.name:
            return ctypes.addressof(self.rooms[choice % 4 if choice >= 192 else choice % 3])
        return ctypes.addressof(self.out)

    def _structure(self, base: str, choice: int) -> int:
        if base == "nrt_tensor_batch_t":
            op = Op(_LARGE[choice % len(_LARGE)], _SIZES[choice % len(_SIZES)], ctypes.addressof(self.rooms[3]))
            self.kept += [op, made := Batch(self.handle("nrt_tensor_t", choice), ctypes.addressof(op), 1)]
        elif base == "nrt_cc_comm_t":
            group = (c_uint32 * 2)(0, choice % 3)
            self.kept += [group, made := Comm(ctypes.addressof(group), choice % 3, 1 + choice % 2, 0, 1, choice % 2)]
        else:
            array = (c_void_p * 1)(self.handle("nrt_tensor_t", choice))
            self.kept += [array, made := Tensors(ctypes.addressof(array), choice & 1)]
        return ctypes.addressof(made)

    def note(self, function: Function, answer: Any) -> None:
        """Remember what a call gave out."""
        kinds = [
            each.type.replace("const ", "").rstrip(" *") for each in function.parameters if each.type.count("*") == 2
        ]
        for slot in self.slots:
            if slot and slot not in self.known:
                self.known[slot] = kinds[0] if kinds else ""
        if function.name == "nrt_tensor_get_va" and answer:
            self.addresses.append(answer)
        if function.name == "nrta_get_completion_handle" and answer == 0:
            os.close(ctypes.c_int.from_buffer(self.out).value)


# What a call fills in, or reads as a structure; all else with such a name is a handle.
_FILLED = frozenset(
    ("nrt_version_t", "nrt_instance_info_t", "nrt_vnc_memory_stats_t", "nrt_tensor_device_allocation_info_t",
     "nrta_seq_t", "nrt_model_info_t", "ndebug_stream_event_header_t", "nrt_ucode_info")
)  # fmt: skip


def run(machine: Machine, program: bytes) -> str:
    """Carry out one program between nrt_init and nrt_close, and say what was broken."""
    lib, at = machine.client.lib, 0
    machine.start()
    steps = iter(program)
    while (code := next(steps, None)) is not None:
        function = BY_NAME[NAMES[code % len(NAMES)]]
        arguments = [machine.value(function, each, next(steps, 0)) for each in function.parameters]
        answer = getattr(lib, function.name)(*arguments)
        if function.returns == "NRT_STATUS" and answer not in _STATUSES:
            return f"{function.name} returned {answer}"
        machine.note(function, answer)
        at += 1
        if at > 60:
            break
    lib.nrt_close()
    lib.nrt_init(1, b"", b"")
    if (used := machine.client.used()) != machine_baseline(machine):
        return f"{used} bytes are in use after nrt_close"
    lib.nrt_close()
    return ""


_baseline: list[int] = []


def machine_baseline(machine: Machine) -> int:
    """Return the bytes of a core that nobody uses."""
    if not _baseline:
        machine.client.lib.nrt_close()
        machine.client.init()
        _baseline.append(machine.client.used())
    return _baseline[0]


def serve(library: str, read: Callable[[int], bytes], write: Callable[[bytes], object]) -> None:
    """Answer programs until there is none."""
    with tempfile.TemporaryDirectory(prefix="neurontools-libnrt-fuzz-") as folder:
        os.chdir(folder)
        log = Path(folder, "nrt.log")
        os.environ |= {"NEURON_RT_LOG_LOCATION": str(log), "NEURON_RT_LOG_LEVEL": "ERROR", "NEURON_RT_NUM_CORES": "4"}
        machine = Machine(Client(ctypes.CDLL(library)))
        while len(head := read(4)) == 4:
            log.write_text("")
            broken = run(machine, read(int.from_bytes(head, "little")))
            told = log.read_text(encoding="utf-8", errors="replace")
            if "bug in neurontools" in told:
                broken = told[told.index("bug in neurontools") :].splitlines()[0]
            write((broken or "ok").replace("\n", " ").encode()[:400] + b"\n")


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what anybody prints is no answer
    serve(sys.argv[1], sys.stdin.buffer.read, answers.write)
