"""Models of nrtpy: load a NEFF, call it, benchmark it."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from statistics import fmean, pstdev
from time import perf_counter

from emulator.dtypes import numpy_dtype
from emulator.runtime.model import Model
from emulator.runtime.tensor import TensorSet
from formats.debug_stream import is_printed
from formats.dtypes import Dtype
from formats.neff import TensorInfo
from formats.nrt.status import NrtStatus
from neurontools.nrt.errors import NrtError, NrtpyError, failing
from neurontools.nrt.singleton import NrtpyRuntime, get_nrtpy_singleton
from neurontools.nrt.tensor import NrtpyTensor, NrtTensor

__all__ = ["BenchmarkResult", "NrtpyModel", "TensorMetadata"]


@dataclass(frozen=True)
class TensorMetadata:
    """What a model says of a tensor; a scalar has the shape [1]."""

    size: int
    dtype: str
    shape: list[int]

    @classmethod
    def of(cls, info: TensorInfo) -> TensorMetadata:
        """Return what the file says."""
        return cls(info.nbytes, info.dtype, list(info.shape or (1,)))


@dataclass(frozen=True)
class BenchmarkResult:
    """Times of a benchmark, in milliseconds; `durations_ms` one by one."""

    mean_ms: float
    min_ms: float
    max_ms: float
    std_dev_ms: float
    iterations: int
    warmup_iterations: int
    durations_ms: list[float]


class NrtpyModel:
    """A loaded model; unloaded with the object."""

    def __init__(self, runtime: NrtpyRuntime, model: Model, name: str, neff_path: Path, core_id: int) -> None:
        self._runtime, self._model = runtime, model
        self.name, self.neff_path, self.core_id = name, neff_path, core_id
        self.input_tensors_info = {info.name: TensorMetadata.of(info) for info in model.neff.inputs}
        self.output_tensors_info = {info.name: TensorMetadata.of(info) for info in _outputs(model)}
        end = weakref.finalize(self, _unload, weakref.ref(runtime), model)
        end.atexit = False

    @classmethod
    def load_from_neff(
        cls,
        neff_path: str | PathLike[str],
        name: str | None = None,
        core_id: int = 0,
        cc_enabled: bool = False,
        rank_id: int = 0,
        world_size: int = 1,
    ) -> NrtpyModel:
        """Load a NEFF; NrtError where the file is missing or the runtime refuses it."""
        path = Path(neff_path)
        runtime = get_nrtpy_singleton()
        try:
            data = path.read_bytes()
        except OSError as error:
            raise NrtError(NrtStatus.NRT_FAILURE, "Failed to load model", str(error)) from None
        with failing("Failed to load model"):
            world = (rank_id, world_size) if cc_enabled else None
            model = runtime.session.load(data, core_id, world=world)
        return cls(runtime, model, name or path.stem, path, core_id)

    def __call__(
        self,
        inputs: Mapping[str, NrtpyTensor],
        outputs: Mapping[str, NrtpyTensor] | None = None,
        save_trace: bool = False,
        ntff_name: str | None = None,
    ) -> dict[str, NrtpyTensor] | None:
        """Execute; return the outputs where none were given.

        `save_trace` writes the execution as NTFF to `ntff_name`, or beside the NEFF.
        """
        if self._runtime.closed:
            raise NrtpyError(f"Model '{self.name}' belongs to a runtime that was reset")
        made = self._allocate() if outputs is None else None
        given = self._set(inputs)
        wanted = self._set(made if outputs is None and made is not None else outputs or {})
        tracing = self._traced(Path(ntff_name or self.neff_path.with_suffix(".ntff"))) if save_trace else nullcontext()
        with tracing, failing("Failed to execute model"):
            self._runtime.session.execute(self._model, given, wanted)
        return made

    @contextmanager
    def _traced(self, path: Path) -> Iterator[None]:
        session = self._runtime.session
        with failing("Failed to start profile"):
            session.watching.start_profile(session.core(self._model.core), self._model, str(path))
        try:
            yield
        finally:
            try:
                session.watching.stop_profile(str(path))
            except OSError as error:
                raise NrtError(NrtStatus.NRT_FAILURE, "Failed to save trace", str(error)) from None

    def _allocate(self) -> dict[str, NrtpyTensor]:
        made = {}
        for info in _outputs(self._model):
            metadata = self.output_tensors_info[info.name]
            reference = NrtTensor.allocate(metadata.size, info.name, self.core_id)
            dtype = numpy_dtype(Dtype.from_numpy_name(info.dtype))
            made[info.name] = NrtpyTensor(reference, tuple(metadata.shape), dtype, info.name)
        return made

    def _set(self, tensors: Mapping[str, NrtpyTensor]) -> TensorSet:
        found = TensorSet()
        with failing("Failed to add tensor to tensor set"):
            for name, tensor in tensors.items():
                found.add(name, tensor.need())
        return found

    def benchmark(
        self,
        inputs: Mapping[str, NrtpyTensor],
        outputs: Mapping[str, NrtpyTensor] | None = None,
        warmup_iter: int = 5,
        benchmark_iter: int = 5,
        mode: str = "device",
    ) -> BenchmarkResult:
        """Execute many times: "device" gives emulated time on the core, "host" time of this machine."""
        if mode not in ("device", "host"):
            raise ValueError(f"mode must be 'device' or 'host', not {mode!r}")
        if benchmark_iter < 1:
            raise ValueError(f"benchmark_iter must be at least 1, not {benchmark_iter}")
        into = self._allocate() if outputs is None else outputs
        core = self._runtime.session.cores[self._model.core]
        for _ in range(warmup_iter):
            self(inputs, into)
        durations = []
        for _ in range(benchmark_iter):
            began, busy = perf_counter(), core.busy_ps
            self(inputs, into)
            durations.append((core.busy_ps - busy) / 1e9 if mode == "device" else (perf_counter() - began) * 1e3)
        return BenchmarkResult(
            fmean(durations),
            min(durations),
            max(durations),
            pstdev(durations),
            len(durations),
            warmup_iter,
            durations,
        )


def _outputs(model: Model) -> list[TensorInfo]:
    """Return the outputs that are tensors of the caller: printed ones are not."""
    return [info for info in model.neff.outputs if not is_printed(info.name)]


def _unload(runtime: weakref.ref[NrtpyRuntime], model: Model) -> None:
    owner = runtime()
    if owner is not None and not owner.closed and not model.unloaded:
        owner.session.unload(model)
