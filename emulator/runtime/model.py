"""A loaded model: its checks at load time, and an execution that works on the caller's tensors themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from emulator.cost.flops import Counted
from emulator.debug_stream import DebugStream, Printed
from emulator.device import Device
from emulator.dtypes import numpy_dtype
from emulator.errors import LoadError
from emulator.runtime.errors import StatusError, invalid
from emulator.runtime.execution import new_device
from emulator.runtime.instances import INSTANCE_VARIABLE, instance_with
from emulator.runtime.tensor import Tensor, TensorSet
from emulator.settings import Settings
from formats.debug_stream import is_printed
from formats.dtypes import Dtype
from formats.errors import FormatError, NeuronError, NotFoundError
from formats.isa import SendReceive
from formats.named_tuple import NamedTuple
from formats.neff import Neff, TensorInfo, open_neff
from formats.neff_versions import NEFF_VERSIONS
from formats.nrt.status import NrtStatus

if TYPE_CHECKING:
    from emulator.runtime.variables import Options

__all__ = ["Execution", "Model", "ModelTensor", "check_neff"]

Watcher = Any


class ModelTensor(NamedTuple):
    """A tensor that a model takes or gives; `dtype` is the number of nrt.h, a scalar has the shape (1,)."""

    name: str
    output: bool
    nbytes: int
    dtype: int
    shape: tuple[int, ...]

    @classmethod
    def of(cls, info: TensorInfo, output: bool) -> ModelTensor:
        """Return what the file says of a tensor, element types as the runtime reports them.

        It knows no booleans, which are bytes, and says INT8 for the two kinds of 8-bit floats (runtime.md 11.4).
        """
        dtype = Dtype.from_numpy_name(info.dtype)
        code = Dtype.INT8 if dtype in _AS_INT8 else dtype
        return cls(info.name, output, info.nbytes, int(code), info.shape or (1,))


_AS_INT8 = (Dtype.FLOAT8E3, Dtype.FLOAT8E4, Dtype.FLOAT8E5, Dtype.FLOAT8E4FN)


class Execution(NamedTuple):
    """What came of one execution: the status, what there is to say, emulated time, what was printed, the device."""

    status: NrtStatus
    message: str
    time_ps: int
    prints: tuple[Printed, ...]
    device: Device
    flops: int = 0


def check_neff(data: bytes, options: Options) -> Neff:
    """Return an opened NEFF that the instance can load; StatusError with the runtime's status for any other."""
    try:
        neff = open_neff(data)
        version = neff.header.neff_version
        if version not in NEFF_VERSIONS:
            newest = ".".join(map(str, max(NEFF_VERSIONS)))
            raise StatusError(
                NrtStatus.NRT_UNSUPPORTED_NEFF_VERSION,
                f"NEFF version mismatch supported: {newest} received: {'.'.join(map(str, version))}",
            )
        if options.validate_hash:
            _check_hash(neff)
        target = neff.target
        if target.generation != options.instance.target.generation:
            # nrtpy's page has NRT_FAILURE for another chip (runtime.md 20: 5).
            other = instance_with(target.name).name
            raise StatusError(
                NrtStatus.NRT_FAILURE,
                f"the file is for {target.name}, the instance is {options.instance.name}; {INSTANCE_VARIABLE}={other} "
                "emulates one that it runs on",
            )
        cores = len(neff.subgraphs)
        if cores > options.lnc or (options.explicit_lnc and cores != options.lnc):
            raise invalid(f"the file is for LNC {cores}, configured is {options.lnc} (NEURON_LOGICAL_NC_CONFIG)")
    except (FormatError, LoadError, NotFoundError) as error:
        raise invalid(str(error)) from None
    return neff


def _check_hash(neff: Neff) -> None:
    from formats.neff.hashing import matching_variant  # deferred: start-up

    if matching_variant(neff.header.hash, neff.archive.data()) is None:
        raise invalid("the hash does not fit the data")


class Model:
    """A NEFF that is loaded on one logical core; `number` is the runtime's, `core` counts the visible ones."""

    def __init__(self, neff: Neff, number: int, core: int, options: Options, *, collectives: bool = False) -> None:
        self.neff, self.number, self.core, self.collectives = neff, number, core, collectives
        self.name = neff.header.name or neff.path or "model.neff"
        limit = options.timeout_s * 1_000_000_000_000 or None
        self._settings = Settings(options.instance.target, limit_ps=limit)
        self._fail_on_nan = options.fail_on_nan
        self.unloaded = False
        self.executions = 0
        self._counted = Counted()
        self._lock = threading.Lock()
        try:
            self.tensors = (
                *(ModelTensor.of(info, False) for info in neff.inputs),
                *(ModelTensor.of(info, True) for info in neff.outputs if not is_printed(info.name)),
            )
            # The first execution runs on the device that loading is tried on.
            self._ready: Device | None = self.make_device()
        except StatusError:
            raise
        except NeuronError as error:
            raise invalid(str(error)) from None

    def make_device(self) -> Device:
        """Return a device with the file on it."""
        device = new_device(self.neff, self._settings)
        device.load(self.neff)
        return device

    @property
    def operations(self) -> int:
        """Return how many words of the model exchange data between cores."""
        words = (word for subgraph in self.neff.subgraphs for stream in subgraph.streams.values() for word in stream)
        return sum(isinstance(word, SendReceive) for word in words)

    def execute(
        self,
        inputs: TensorSet,
        outputs: TensorSet,
        watchers: tuple[Watcher, ...] = (),
        running: Callable[[Device], object] = lambda device: None,
    ) -> Execution:
        """Run once on tensors of the caller; the caller holds the core, and releases the device.

        NRT_INVALID where a set lacks a tensor or has one of another size, NRT_EXEC_BAD_INPUT for one without storage.
        `watchers` observe the run; `running` is called with the device before it moves.
        """
        if self.unloaded:
            raise StatusError(NrtStatus.NRT_INVALID_HANDLE, f"model {self.name} is unloaded")
        given = {each.name: self._tensor(each, inputs) for each in self.tensors if not each.output}
        wanted = {each.name: self._tensor(each, outputs) for each in self.tensors if each.output}
        device = self._take() or self.make_device()
        variables = device.tensors
        for name, tensor in given.items():
            data = tensor.data
            # A program may write an output before it has read all of an input that lies in the same bytes.
            if any(np.may_share_memory(data, each.data) for each in wanted.values()):
                data = data.copy()
            device.hbm.allocations[variables[name].address].lend(data)
        for name, tensor in wanted.items():
            device.hbm.allocations[variables[name].address].lend(tensor.data)
        stream = DebugStream.of(device)
        if stream is not None:
            device.observers.append(stream)
        for watcher in watchers:
            device.observers.append(watcher)
            if hasattr(watcher, "attach"):
                watcher.attach(device)
        counter = self._counted.observer(device)
        if counter is not None:
            device.observers.append(counter)
        running(device)
        device.run()
        self.executions += 1
        prints = () if stream is None else stream.records()
        status, message = self._outcome(device, wanted)
        if not status:
            for tensor in wanted.values():
                tensor.complete()
        return Execution(status, message, device.now_ps, prints, device, self._counted.of(device, counter))

    def _tensor(self, each: ModelTensor, tensors: TensorSet) -> Tensor:
        found = tensors.tensors.get(each.name)
        kind = "output" if each.output else "input"
        if found is None:
            raise invalid(f"{kind} {each.name!r} of model {self.name} is not in the set")
        if found.freed:
            raise StatusError(NrtStatus.NRT_INVALID_HANDLE, f"{kind} {each.name!r} is freed")
        if found.empty:
            raise StatusError(NrtStatus.NRT_EXEC_BAD_INPUT, f"{kind} {each.name!r} has no storage")
        if found.size != each.nbytes:
            raise invalid(f"{kind} {each.name!r} has {found.size} bytes, model {self.name} wants {each.nbytes}")
        return found

    def _outcome(self, device: Device, outputs: Mapping[str, Tensor]) -> tuple[NrtStatus, str]:
        if device.fault is not None:
            return device.fault.status, device.fault.message
        if device.hang is not None:
            collective = self.collectives and self.operations
            hung = NrtStatus.NRT_EXEC_HW_ERR_COLLECTIVES if collective else NrtStatus.NRT_TIMEOUT
            return hung, device.hang.text().partition("\n")[0]
        if self._fail_on_nan:
            for info in self.neff.outputs:
                if info.name not in outputs:
                    continue  # printed: nobody's tensor
                dtype = Dtype.from_numpy_name(info.dtype)
                if (
                    dtype.is_float
                    and np.isnan(outputs[info.name].data.view(numpy_dtype(dtype)).astype(np.float32)).any()
                ):
                    return NrtStatus.NRT_EXEC_COMPLETED_WITH_NUM_ERR, f"output {info.name!r} has NaN"
        return NrtStatus.NRT_SUCCESS, ""

    def unload(self) -> None:
        """Give the device up; a second time is NRT_INVALID_HANDLE."""
        if self.unloaded:
            raise StatusError(NrtStatus.NRT_INVALID_HANDLE, f"model {self.name} is unloaded")
        self.unloaded = True
        self.rest()

    def rest(self) -> None:
        """Give back the device that was made at load time; the next execution makes its own."""
        device = self._take()
        if device is not None:
            device.release()

    def _take(self) -> Device | None:
        with self._lock:
            device, self._ready = self._ready, None
        return device
