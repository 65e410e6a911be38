"""`jit` and the ways to run a kernel of the first generation."""

from __future__ import annotations

import functools
import sys
from itertools import product
from pathlib import Path
from typing import Any

from formats import whole_files
from formats.named_tuple import NamedTuple
from neurontools.neuronxcc.nki import spmd
from neurontools.neuronxcc.nki.tile import Tile, unwrap
from neurontools.nki import language as nl
from neurontools.nki.arguments import map_structure
from neurontools.nki.compile import FrameworkMethods
from neurontools.nki.kernel import Kernel as PresentKernel
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.tracer import is_tracing, tracer
from neurontools.program import launches
from neurontools.program.configuration import RunConfiguration

__all__ = ["Benchmark", "Kernel", "baremetal", "benchmark", "jit", "profile", "simulate_kernel"]


class Kernel(FrameworkMethods, PresentKernel):
    """A kernel of the first generation; `kernel[4, 2]` runs eight programs, one after another on one core."""

    def __getitem__(self, grid: Any) -> Kernel:
        """Return the kernel with a launch grid; an extent of 0, which public launches have, is one program."""
        extents = grid if isinstance(grid, (tuple, list)) else (grid,)
        checked = super().__getitem__(tuple(1 if isinstance(one, int) and one == 0 else one for one in extents))
        return type(self)(self.func, checked.grid, **self.options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel and return its results."""
        if is_tracing():
            return self.func(*args, **kwargs)
        return self.as_launched()(*args, **kwargs)

    def as_launched(self) -> PresentKernel:
        """Return the kernel of the present generation that runs this one's body."""
        return PresentKernel(_body(self.func, self.grid), (), **self.options)


def _body(function: Any, grid: tuple[int, ...]) -> Any:
    """Return the function as the present generation runs it: plain tensors in and out, all programs in turn."""

    @functools.wraps(function)
    def body(*args: Any, **kwargs: Any) -> Any:
        def wrap(value: Any, path: str) -> Any:
            return Tile(value) if isinstance(value, NkiTensor) else value

        positional = [map_structure(one, wrap) for one in args]
        keywords = {name: map_structure(one, wrap) for name, one in kwargs.items()}
        tracer().trace.spills = True
        results = None
        with spmd.running(spmd.Programs(grid)) as programs:
            for number, place in enumerate(product(*map(range, grid))):
                programs.begin(place, number)
                # shared tensors are the same ones in every program, so that the results of the last are those of all
                results = function(*positional, **keywords)
        return map_structure(results, lambda value, path: _returned(value))

    return body


def _returned(value: Any) -> Any:
    """Return a result as the launch takes it; simulation gave back tiles on chip too, so they go to HBM."""
    tensor = unwrap(value)
    if not isinstance(tensor, NkiTensor) or not tensor.on_chip:
        return tensor
    result = nl.ndarray(tensor.shape, tensor.dtype, nl.shared_hbm)
    nl.store(result, tensor)
    return result


def jit(func: Any = None, mode: str = "auto", **kwargs: Any) -> Any:
    """Make a function a kernel: @nki.jit, @nki.jit(mode="simulation"); every mode runs on this toolkit's emulator."""
    if func is None:
        return lambda function: jit(function, mode, **kwargs)
    if isinstance(func, PresentKernel):
        return Kernel(func.func, func.grid, **(func.options | kwargs))
    return Kernel(func, **kwargs)


class Latency(NamedTuple):
    """How long a run took on the emulator, in microseconds; NaN where the run had no clock."""

    microseconds: float

    def get_latency_percentile(self, percentile: float) -> float:
        """Return the latency, which every run of the emulator has in common."""
        return self.microseconds


class BenchmarkResult(NamedTuple):
    """What `nki.benchmark` leaves at a kernel."""

    nc_latency: Latency


class Saving(Kernel):
    """A kernel whose file is kept, as `save_neff_name` in the folder `working_directory`, whenever it is launched."""

    timing = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel once and return its results."""
        if is_tracing():
            return super().__call__(*args, **kwargs)
        running = launches.current() or launches.Launches(RunConfiguration(timing=self.timing))
        with launches.using(running):
            results = super().__call__(*args, **kwargs)
        self.ran(running)
        name = self.options.get("save_neff_name")
        if name:
            folder = Path(self.options.get("working_directory") or "")
            whole_files.write_beside(folder / name, running.done[-1].neff)
        if self.options.get("save_trace_name"):
            print("neurontools: save_trace_name: no trace is written; `neurontools profile` shows the run",
                  file=sys.stderr)  # fmt: skip
        return results

    def ran(self, running: launches.Launches) -> None:
        """Look at the launch that is through."""


class Benchmark(Saving):
    """A kernel that remembers how long its last launch took, as `benchmark_result`."""

    timing = True
    benchmark_result: BenchmarkResult | None = None

    def ran(self, running: launches.Launches) -> None:
        """Keep the time of the launch that is through."""
        timed = running.configuration.timing
        took = running.done[-1].made.result.time_ps / 1e6 if timed else float("nan")
        self.benchmark_result = BenchmarkResult(Latency(took))


def _way(kind: type[Saving], kernel: Any, options: dict[str, Any]) -> Any:
    """Return a kernel of a kind, or the decorator that makes one."""
    if kernel is None:
        return lambda function: _way(kind, function, options)
    inner = jit(kernel)
    return kind(inner.func, inner.grid, **(inner.options | options))


def baremetal(kernel: Any = None, **options: Any) -> Any:
    """Run a kernel on the emulator, where the first generation ran it on a device without a framework."""
    return _way(Saving, kernel, options)


def benchmark(kernel: Any = None, **options: Any) -> Any:
    """Run a kernel once on the emulator, whose time `benchmark_result` then tells."""
    return _way(Benchmark, kernel, options)


def profile(kernel: Any = None, **options: Any) -> Any:
    """Run a kernel once on the emulator; `neurontools profile` shows its engines."""
    return _way(Saving, kernel, options)


def simulate_kernel(kernel: Any, *args: Any, **kwargs: Any) -> Any:
    """Run a kernel, or a plain function as one, on the emulator; arrays that it writes are updated in place."""
    return jit(kernel)(*args, **kwargs) if not isinstance(kernel, Kernel) else kernel(*args, **kwargs)
