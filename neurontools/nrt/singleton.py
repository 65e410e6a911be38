"""The one runtime of a process: made when it is first needed, configured before, closed by `reset`."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterable
from typing import Protocol

from emulator.runtime.session import Runtime
from emulator.runtime.tensor import Tensor
from neurontools.libnrt.collecting import collector
from neurontools.libnrt.console import VERSION, console
from neurontools.nrt.errors import NrtpyError, failing

__all__ = ["NrtpyRuntime", "configure", "get_nrtpy_singleton", "reset"]

_VARIABLE = "NEURON_RT_VISIBLE_CORES"
_lock = threading.RLock()


class Freeable(Protocol):
    """What the runtime needs of a tensor of nrtpy."""

    def need(self) -> Tensor:
        """Return the runtime's tensor; NrtpyError for one that is freed."""
        ...


class NrtpyRuntime:
    """The runtime that models and tensors belong to; `session` is the emulated one."""

    def __init__(self) -> None:
        environ = dict(os.environ)
        with failing("Failed to initialize runtime"):
            self.session = Runtime(environ, sink=console, collector=collector(environ), version=VERSION)

    @property
    def closed(self) -> bool:
        """Return whether `reset` has ended it."""
        return self.session.closed

    def free_tensor(self, tensor: Freeable) -> None:
        """Free a tensor before Python does; NrtpyError where it is freed already."""
        found = tensor.need()
        with failing("Failed to free tensor"):
            self.session.free(found)

    def close(self) -> None:
        """End the session."""
        if not self.closed:
            with failing("Failed to close runtime"):
                self.session.close()


class _Held:
    """What the module keeps: the runtime, and the variable as it was before `configure`."""

    runtime: NrtpyRuntime | None = None
    before: tuple[str | None] | None = None


def get_nrtpy_singleton() -> NrtpyRuntime:
    """Return the runtime of this process; the first call makes it."""
    with _lock:
        if _Held.runtime is None:
            _Held.runtime = NrtpyRuntime()
        return _Held.runtime


def configure(visible_cores: Iterable[int] | None = None) -> None:
    """Set the visible cores before the runtime is made; None leaves them.

    Raises NrtpyError where it is active, TypeError and ValueError for what are no core numbers.
    """
    with _lock:
        if _Held.runtime is not None:
            raise NrtpyError("Cannot configure: the runtime is already active. Call nrtpy.reset() first.")
        if visible_cores is None:
            return
        if isinstance(visible_cores, int):
            raise TypeError("visible_cores must be an iterable of integers, not an int")
        cores = list(visible_cores)
        for core in cores:
            if isinstance(core, bool) or not hasattr(core, "__index__"):
                raise TypeError(f"visible_cores must contain integers, not {type(core).__name__}")
            if core < 0:
                raise ValueError(f"visible_cores must not be negative: {core}")
        if not cores:
            raise ValueError("visible_cores is empty")
        if _Held.before is None:
            _Held.before = (os.environ.get(_VARIABLE),)
        os.environ[_VARIABLE] = ",".join(str(int(core)) for core in cores)


def reset() -> None:
    """Close the runtime and forget the configuration; models and tensors of it are of no use afterwards."""
    with _lock:
        runtime, _Held.runtime = _Held.runtime, None
        if runtime is not None:
            runtime.close()
        if _Held.before is not None:
            (value,) = _Held.before
            _Held.before = None
            if value is None:
                os.environ.pop(_VARIABLE, None)
            else:
                os.environ[_VARIABLE] = value


atexit.register(reset)
