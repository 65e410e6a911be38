"""The library while it is loaded: the session between nrt_init and nrt_close, handles, and how each C call gets there.

`start(ffi, lib)` is what the compiled library calls first. No exception leaves a call: it becomes a status, and a line
of the log.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from emulator.runtime.errors import StatusError
from emulator.runtime.instances import configured
from emulator.runtime.session import Runtime
from emulator.runtime.variables import Options
from formats.errors import NeuronError
from formats.nrt.status import NrtStatus
from neurontools.libnrt.console import VERSION, console
from neurontools.libnrt.functions import FUNCTIONS, Function
from neurontools.libnrt.handles import Handles

__all__ = ["Call", "Library"]

Call = Callable[..., Any]
_DEFAULTS: Mapping[str, Any] = {"NRT_STATUS": int(NrtStatus.NRT_FAILURE), "void": None, "size_t": 0}


class Library:
    """What C programs see: `ffi` and `lib` are cffi's, `calls` does the work of each function by name."""

    def __init__(self, ffi: Any, lib: Any, calls: Mapping[str, Call]) -> None:
        self.ffi, self.lib = ffi, lib
        self.handles = Handles()
        self.state = NrtStatus.NRT_UNINITIALIZED
        self._runtime: Runtime | None = None
        self._said: set[str] = set()
        self._lock = threading.RLock()
        self._calls = calls
        # Blocks of C memory that clients give back: address -> everything allocated with it.
        self.blocks: dict[int, tuple[Any, ...]] = {}
        # Text and arrays that stay for clients to read.
        self.kept: dict[object, Any] = {}

    # --- the session -------------------------------------------------------------------------------------------------

    @property
    def runtime(self) -> Runtime:
        """Return the session; NRT_UNINITIALIZED before nrt_init, NRT_CLOSED after nrt_close."""
        if self._runtime is None:
            never = self.state == NrtStatus.NRT_UNINITIALIZED
            raise StatusError(self.state, f"nrt_{'init was not' if never else 'close was'} called")
        return self._runtime

    def open(self) -> None:
        """Begin a session; NRT_INVALID where there is one."""
        with self._lock:
            if self._runtime is not None:
                raise StatusError(NrtStatus.NRT_INVALID, "nrt_init was called already")
            from neurontools.libnrt.collecting import collector  # deferred: start-up

            environ = dict(os.environ)
            self._runtime = Runtime(environ, sink=console, collector=collector(environ), version=VERSION)

    def close(self) -> None:
        """End the session and forget its handles; what is left over is freed."""
        with self._lock:
            runtime = self.runtime
            runtime.close()
            self._runtime, self.state = None, NrtStatus.NRT_CLOSED
            self.handles.clear()
            self.kept.clear()

    def options(self) -> Options:
        """Return what the variables say, also before there is a session."""
        return Options.of(os.environ) if self._runtime is None else self._runtime.options

    def total_cores(self) -> int:
        """Return the logical cores of the instance, also before there is a session."""
        options = self.options()
        return options.instance.cores(options.lnc)

    def instance(self) -> Any:
        """Return the instance type."""
        return configured(os.environ)

    # --- calls -------------------------------------------------------------------------------------------------------

    def bind(self) -> None:
        """Give every function of the table its Python side."""
        for function in FUNCTIONS:
            self.ffi.def_extern(name=f"py_{function.name}")(self._entry(function))

    def _entry(self, function: Function) -> Call:
        work = self._calls.get(function.name)
        failed = _DEFAULTS.get(function.returns, self.ffi.NULL)
        early, status = function.early, function.returns == "NRT_STATUS"

        def entry(*arguments: Any) -> Any:
            try:
                if not early and self._runtime is None:
                    self.runtime  # noqa: B018  raises the status of a library that is not open
                if work is None:
                    lacking = self.lack(function)
                    return lacking if status else failed
                answer = work(self, *arguments)
                return 0 if status and answer is None else answer
            except StatusError as error:
                quiet = error.reported or _expected(error.status)
                self._log(function.name, error.message, "DEBUG" if quiet else "ERROR")
                return int(error.status) if status else failed
            except (NeuronError, MemoryError, OSError, ValueError) as error:
                self._log(function.name, f"{type(error).__name__}: {error}", "ERROR")
                return int(NrtStatus.NRT_FAILURE) if status else failed
            except Exception as error:  # noqa: BLE001  a C program must not meet a traceback
                self._log(function.name, f"bug in neurontools: {type(error).__name__}: {error}", "ERROR")
                return int(NrtStatus.NRT_FAILURE) if status else failed

        return entry

    def lack(self, function: Function) -> int:
        """Say once what the library does not do, and return the status of it."""
        if function.name not in self._said:
            self._said.add(function.name)
            console("console", f"libnrt (neurontools): {function.name} is not supported: {function.missing}")
        return int(function.status)

    def _log(self, function: str, message: str, level: str) -> None:
        runtime = self._runtime
        if runtime is not None:
            runtime.log.write(level, "NRT", function, message)
        elif level == "ERROR":
            console("console", f"libnrt (neurontools): {function}: {message}")

    # --- C memory ----------------------------------------------------------------------------------------------------

    def need(self, *pointers: Any) -> None:
        """Raise NRT_INVALID where a pointer that a result goes to is NULL."""
        for pointer in pointers:
            if pointer == self.ffi.NULL:
                raise StatusError(NrtStatus.NRT_INVALID, "a pointer is NULL")

    def number(self, pointer: Any) -> int:
        """Return the number of a handle."""
        return int(self.ffi.cast("uintptr_t", pointer))

    def give(self, into: Any, value: object, kind: str) -> None:
        """Store a new handle of an object."""
        self.need(into)
        into[0] = self.ffi.cast(kind, self.handles.put(value))

    def text(self, pointer: Any) -> str:
        """Return a C text; "" for NULL."""
        if pointer == self.ffi.NULL:
            return ""
        raw: bytes = self.ffi.string(pointer, 1 << 16)
        return raw.decode("utf-8", "replace")

    def allocate(self, nbytes: int) -> Any:
        """Return zeroed C memory."""
        block = self.lib.calloc(1, max(1, nbytes))
        if block == self.ffi.NULL:
            raise StatusError(NrtStatus.NRT_FAIL_HOST_MEM_ALLOC, f"no host memory for {nbytes} bytes")
        return block

    def block(self, first: Any, *others: Any) -> None:
        """Remember what goes together: `free_block` of the first one frees all."""
        self.blocks[self.number(first)] = (first, *others)

    def free_block(self, pointer: Any) -> None:
        """Free C memory that the library gave out; NRT_INVALID_HANDLE for any other."""
        found = self.blocks.pop(self.number(pointer), None)
        if found is None:
            raise StatusError(NrtStatus.NRT_INVALID_HANDLE, "memory that the library did not give out")
        for each in reversed(found):
            self.lib.free(each)

    def bytes_at(self, pointer: Any, size: int) -> Any:
        """Return a caller's buffer."""
        self.need(pointer)
        return self.ffi.buffer(pointer, size)

    def texts(self, into: Any, count: Any, values: tuple[str, ...]) -> None:
        """Store an array of texts, which the caller frees one by one or as a whole."""
        self.need(into, count)
        array = self.ffi.cast("char **", self.allocate(8 * max(1, len(values))))
        for index, value in enumerate(values):
            raw = value.encode() + b"\0"
            text = self.ffi.cast("char *", self.allocate(len(raw)))
            self.ffi.memmove(text, raw, len(raw))
            array[index] = text
        into[0] = self.ffi.cast("const char **", array)
        count[0] = len(values)

    def free_texts(self, array: Any, count: int) -> None:
        """Free an array of texts."""
        if array == self.ffi.NULL:
            return
        for index in range(count):
            self.lib.free(self.ffi.cast("void *", array[index]))
        self.lib.free(self.ffi.cast("void *", array))


def _expected(status: NrtStatus) -> bool:
    """Return whether a status is an answer that clients wait for, which no log needs an error of."""
    return status in (NrtStatus.NRT_QUEUE_FULL, NrtStatus.NRT_QUEUE_EMPTY, NrtStatus.NRT_TIMEOUT)
