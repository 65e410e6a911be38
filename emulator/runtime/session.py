"""The Neuron runtime of one process, as libnrt shows it: cores, models, tensors, executions, and what remains of them.

Everything that the C interface and the Python interface do goes through a `Runtime`. Errors are StatusError. Several
threads may call it: executions of one core follow one another, those of different cores are independent.
"""

from __future__ import annotations

import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from time import monotonic_ns
from typing import Any

import numpy as np

from emulator.device import Device
from emulator.dump.tail import EventTail
from emulator.runtime.activity import Activity
from emulator.runtime.collectives import Meetings
from emulator.runtime.cores import LogicalCore
from emulator.runtime.errors import StatusError, invalid
from emulator.runtime.failures import DGE_BLAMED, counters_of, lines_of
from emulator.runtime.injection import INJECT_VARIABLE, INJECTIONS, Injector, Planned, read_plan
from emulator.runtime.input_dump import write_inputs
from emulator.runtime.ledger_memory import ledger_of, report_lines
from emulator.runtime.ledger_state import FOLDER_VARIABLE, Publisher
from emulator.runtime.ledger_views import model_lines
from emulator.runtime.log import Log, Sink, cores_text, system_fields
from emulator.runtime.memory import Allocation, Category, OutOfMemoryError, Owner
from emulator.runtime.model import Execution, Model, check_neff
from emulator.runtime.profiles import Buffers
from emulator.runtime.queues import ErrorTracker, Unit, UnitKind
from emulator.runtime.reservation import LOCKS_VARIABLE, Reservation
from emulator.runtime.sendrecv import Exchange
from emulator.runtime.streams import DebugStreams
from emulator.runtime.tensor import Placement, Storage, Tensor, TensorSet, zeros
from emulator.runtime.variables import Options
from emulator.runtime.watching import Watching
from formats.core.environment import public_variables
from formats.debug_events import DebugEvent
from formats.engines import ENGINES
from formats.errors import NeuronError
from formats.named_tuple import NamedTuple
from formats.nrt.status import NrtStatus

__all__ = ["Failure", "Runtime"]

_FIRST_MODEL = 1001  # what models are numbered from in documented logs
_MOST_TENSOR = 1 << 46
# Models whose device of load time waits for their first execution: each holds the memories of its cores, tens of MB.
_READY = 4


class Failure(NamedTuple):
    """An execution that failed, for whoever collects a dump: the device is as it stood, and released afterwards."""

    call: str
    status: NrtStatus
    message: str
    model: Model
    core: LogicalCore
    device: Device
    inputs: Mapping[str, bytes]
    log: tuple[str, ...]
    events: EventTail


Collector = Callable[[Failure], object]


class Runtime:
    """A session; `memory` accounts for device memory, `collector` is called for each execution that failed.

    `sink` gets each line of the log with the place that it is for; `version` is what the log calls the library.
    Raises StatusError where a variable is wrong or cores are not to be had.
    """

    def __init__(
        self,
        environ: Mapping[str, str] | None = None,
        *,
        collector: Collector | None = None,
        sink: Sink = lambda place, line: None,
        version: str = "neurontools",
    ) -> None:
        self.environ = dict(os.environ if environ is None else environ)
        self.version = version
        self.log = Log(self.environ, sink)
        self._collector = collector
        try:
            self.options = Options.of(self.environ)
            self._planned = read_plan(self.environ.get(INJECT_VARIABLE, ""))
        except StatusError as error:
            self.log.say("NRT", "nrt_init", error.message)
            raise
        except NeuronError as error:
            self.log.say("NRT", "nrt_init", str(error))
            raise invalid(str(error)) from None
        for remark in self.options.remarks:
            self.log.write("WARN", "NRT", "nrt_config_parse", remark)
        self.instance = self.options.instance
        self._reservation = Reservation(self.environ.get(LOCKS_VARIABLE))
        self.cores = tuple(
            LogicalCore(index, number, self.instance, self.options.lnc)
            for index, number in enumerate(self._take_cores())
        )
        with ExitStack() as undo:
            undo.callback(self._reservation.release)  # a session that does not come about keeps nobody from its cores
            self._begin()
            undo.pop_all()

    def _begin(self) -> None:
        """Make what a session has besides its cores."""
        self.memory = ledger_of(self.instance, self.options, self.environ)
        self.activity = Activity()
        self.models: dict[int, Model] = {}
        self.tensors: set[Tensor] = set()
        self.counters: Counter[tuple[int, str]] = Counter()
        self.kernel_log: list[str] = []
        self._ready: deque[Model] = deque()
        self.streams = DebugStreams(self.options.stream_events)
        self.meetings = Meetings()
        self.exchange = Exchange(self.environ)
        buffers = Buffers(self.memory, self.environ, self.instance.target.generation, self._reserve)
        instance = self.instance.name, self.instance_id
        self.watching = Watching(buffers, self.environ, self.log, instance, self.version)
        self.closed = False
        self._numbers = count(_FIRST_MODEL)
        self._lock = threading.RLock()
        self._memory_lock = threading.RLock()
        self.watching.begin(self.options.trace_events)
        self._publisher = self._published(self.environ.get(FOLDER_VARIABLE))
        if self._publisher is not None:
            self.memory.changed = self._publisher.changed

    def _published(self, folder: str | None) -> Publisher | None:
        if not folder:
            return None
        try:
            return Publisher(self, Path(folder), lambda text: self.log.say("NRT", "nrt_init", text))
        except OSError as error:
            raise StatusError(NrtStatus.NRT_FAILURE, f"{FOLDER_VARIABLE}: {error}") from None

    def _take_cores(self) -> tuple[int, ...]:
        options = self.options
        total = self.instance.cores(options.lnc)
        try:
            if options.visible[-1] >= total:
                device = self.instance.place(options.visible[-1], options.lnc)[0]
                self.log.say("TDRV", "tdrv_init_mla", f"Could not open the nd{device}")
                raise StatusError(
                    NrtStatus.NRT_RESOURCE, f"{self.instance.name} has {total} cores, not nc{options.visible[-1]}"
                )
            if options.asked.startswith("nc") or len(options.visible) == total:
                self._reservation.take(tuple(options.visible))
                return tuple(options.visible)
            return self._reservation.take_free(len(options.visible), total)
        except StatusError as error:
            self.log.say("NRT", "nrt_allocate_neuron_cores", error.message)
            raise

    # --- cores -------------------------------------------------------------------------------------------------------

    @property
    def total_cores(self) -> int:
        """Return how many logical cores the instance has."""
        return self.instance.cores(self.options.lnc)

    def core(self, index: int) -> LogicalCore:
        """Return a visible core; NRT_INVALID where there is no such."""
        self._need_open()
        if not 0 <= index < len(self.cores):
            raise invalid(f"there are {len(self.cores)} visible cores, not {index}")
        core = self.cores[index]
        if not core.started:
            with self._lock:
                if not core.started:
                    self._reserve(lambda: self.memory.start_core(core.number, core.stacks), core)
                    core.started = True
        return core

    def _need_open(self) -> None:
        if self.closed:
            raise StatusError(NrtStatus.NRT_CLOSED, "the runtime is closed")

    def _reserve(self, work: Callable[[], Any], core: LogicalCore) -> Any:
        """Take device memory; what there is no room for is NRT_RESOURCE."""
        self._inject_call("out-of-memory", core)
        try:
            with self._memory_lock:
                return work()
        except OutOfMemoryError as error:
            for function, text in report_lines(self.memory, error, self.environ):
                self.log.say("TDRV", function or "log_dev_mem_usage_table", text)
            raise StatusError(NrtStatus.NRT_RESOURCE, str(error)) from None

    def memory_stats(self, index: int) -> tuple[int, int]:
        """Return the bytes in use and those there are on the HBM stacks of a core."""
        stacks = set(self.core(index).stacks)
        return sum(map(self.memory.used, stacks)), sum(map(self.memory.limit, stacks))

    # --- faults to have ----------------------------------------------------------------------------------------------

    def inject(self, kind: str, core: int | None = None, after: int = 1) -> None:
        """Have a fault: at the next execution of a core (any, without one) after so many completions, or at a call."""
        if kind not in INJECTIONS:
            raise invalid(f"no fault {kind!r} to inject; there are {', '.join(INJECTIONS)}")
        self._planned.append(Planned(INJECTIONS[kind], core, max(1, after)))

    def _due(self, core: LogicalCore, *, execution: bool, kind: str = "") -> Planned | None:
        """Take a fault that is planned for a core off the list."""
        with self._lock:
            for planned in self._planned:
                fits = bool(planned.injection.fault) if execution else planned.injection.kind == kind
                if fits and planned.core in (None, core.index):
                    self._planned.remove(planned)
                    return planned
        return None

    def _inject_call(self, kind: str, core: LogicalCore) -> None:
        planned = self._due(core, execution=False, kind=kind)
        if planned is not None:
            raise self.fail(core, StatusError(planned.injection.status, planned.injection.message))

    def _count(self, core: int, *counters: str, by: int = 1) -> None:
        with self._lock:
            for counter in counters:
                self.counters[core, counter] += by

    def fail(self, core: LogicalCore | None, error: StatusError) -> StatusError:
        """Count an error of a call, and return it."""
        self._count(-1 if core is None else core.number, *counters_of(error.status))
        return error

    # --- models ------------------------------------------------------------------------------------------------------

    def load(self, data: bytes, core: int = -1, *, world: tuple[int, int] | None = None) -> Model:
        """Load a NEFF on a core, -1 for the first that has none; `world` are rank and ranks of collectives."""
        self._need_open()
        try:
            return self._load(data, core, world)
        except StatusError as error:
            if error.status == NrtStatus.NRT_UNSUPPORTED_NEFF_VERSION:
                self.log.say("NMGR", "kmgr_load_nn_internal_v2", error.message)
            else:
                self.log.say("NMGR", "kmgr_load_nn_post_metrics", f"Failed to load NN: {error.message}, err: "
                               f"{int(error.status)}")  # fmt: skip
            visible = self.cores[core] if 0 <= core < len(self.cores) else None
            raise self.fail(visible, error) from None

    def _load(self, data: bytes, index: int, world: tuple[int, int] | None) -> Model:
        if world is not None and not 0 <= world[0] < world[1]:
            raise invalid(f"rank {world[0]} of {world[1]}")
        neff = check_neff(data, self.options)
        with self._lock:
            if index == -1:
                index = next((core.index for core in self.cores if not core.models), len(self.cores))
            needed = max(1, neff.header.requested_tpb_count)
            if not 0 <= index < len(self.cores) or index + needed > len(self.cores):
                self.log.say("TDRV", "db_vtpb_get_mla_and_tpb", f"Could not find VNC id {index}")
                raise StatusError(
                    NrtStatus.NRT_LOAD_NOT_ENOUGH_NC,
                    f"the file needs {needed} of {len(self.cores)} visible cores, from {index} on",
                )
            core = self.core(index)
            number = next(self._numbers)
        if len(neff.subgraphs) < self.options.lnc:
            self.log.write("WARN", "NRT", "nrt_load", f"{neff.header.name}: made for LNC {len(neff.subgraphs)}, the "
                           f"runtime has LNC {self.options.lnc}: one physical core runs it")  # fmt: skip
        model = Model(neff, number, index, self.options, collectives=world is not None)
        owner = Owner(core.number, number)
        try:
            self._reserve(lambda: self.memory.load(neff, owner, core.stacks[: len(neff.subgraphs)]), core)
        except StatusError:
            model.unload()
            raise
        with self._lock:
            self.models[number] = core.models[number] = model
            self._ready.append(model)
            resting = self._ready.popleft() if len(self._ready) > _READY else None
        if resting is not None:
            resting.rest()
        self._count(core.number, "other_info/model_load_count")
        self._event(core, "nrt_load", model.name)
        for text in model_lines(self.memory, owner):
            self.log.write("INFO", "TDRV", "dml_log_dev_neff_mem", text)
        self.log.write("INFO", "NRT", "nrt_load", f"Loaded {model.name} as model {number} on nc{core.number}")
        return model

    def unload(self, model: Model) -> None:
        """Unload a model, behind an execution that is under way."""
        core = self.core(model.core)
        with core.lock:
            model.unload()
            self.watching.unloaded(model)
            if core.last is model:
                core.last = None
            with self._lock:
                del self.models[model.number], core.models[model.number]
                if model in self._ready:
                    self._ready.remove(model)
            with self._memory_lock:
                self.memory.unload(Owner(core.number, model.number))
        self._event(core, "nrt_unload", model.name)

    # --- tensors -----------------------------------------------------------------------------------------------------

    def allocate(self, placement: Placement, core: int, size: int, name: str = "") -> Tensor:
        """Return a tensor of zeros on a core's HBM stack, or in the memory of the host."""
        self._need_open()
        if not 0 < size <= _MOST_TENSOR:
            raise invalid(f"a tensor of {size} bytes")
        if placement == Placement.VIRTUAL:
            raise invalid("virtual tensors are made by nrt_tensor_allocate_empty and a buffer")
        if placement == Placement.HOST:
            self._inject_call("host-memory", self.cores[0])
            return self._keep(Tensor(name, Storage(self._zeros(size), placement, -1, None, lambda: None), 0, size))
        visible = self.core(core)
        owner = Owner(visible.number)

        def reserve() -> Allocation:
            return self.memory.allocate(Category.TENSORS, size, stack=visible.stacks[0], owner=owner, name=name)

        try:
            allocation: Allocation = self._reserve(reserve, visible)
        except StatusError as error:
            raise self.fail(visible, error) from None

        def give() -> None:
            with self._memory_lock:
                self.memory.free(allocation)

        return self._keep(Tensor(name, Storage(self._zeros(size), placement, core, allocation, give), 0, size))

    def _zeros(self, size: int) -> Any:
        try:
            return zeros(size)
        except (MemoryError, OSError, ValueError):
            raise StatusError(NrtStatus.NRT_FAIL_HOST_MEM_ALLOC, f"no host memory for {size} bytes") from None

    def _keep(self, tensor: Tensor) -> Tensor:
        self.tensors.add(tensor)
        return tensor

    def allocate_empty(self, name: str = "") -> Tensor:
        """Return a tensor without storage."""
        self._need_open()
        return self._keep(Tensor(name, None))

    def slice(self, tensor: Tensor, offset: int, size: int, name: str = "") -> Tensor:
        """Return a tensor over some bytes of another one."""
        self._need_open()
        return self._keep(tensor.slice(name or tensor.name, offset, size))

    def free(self, tensor: Tensor) -> None:
        """Free a tensor; its bytes stay while slices of them do."""
        tensor.free()
        self.tensors.discard(tensor)

    # --- executions --------------------------------------------------------------------------------------------------

    def execute(self, model: Model, inputs: TensorSet, outputs: TensorSet, repeat: int = 1,
                call: str = "nrt_execute") -> int:  # fmt: skip
        """Execute a model so many times and return the emulated time of all, in picoseconds.

        StatusError with the status of the first that fails; then the log has its lines and the collector was called.
        """
        if repeat < 1:
            raise invalid(f"an execution is repeated {repeat} times")
        core = self.core(model.core)
        total = 0
        with core.lock:
            if core.profiled not in (None, model):
                raise self.fail(
                    core,
                    StatusError(NrtStatus.NRT_EXEC_NC_BUSY, f"nc{core.number} is kept for a profile of another model"),
                )
            for _ in range(repeat):
                total += self._execute(core, model, inputs, outputs, call)
        return total

    def _execute(self, core: LogicalCore, model: Model, inputs: TensorSet, outputs: TensorSet, call: str) -> int:
        tracking = self._event(core, "nrt_execute", model.name, "start")
        started = monotonic_ns()
        planned = self._due(core, execution=True)
        injector = None if planned is None else Injector(planned)
        # Events are made only for whoever looks at them.
        dumping = self._collector is not None
        tail = EventTail()
        capture = self.watching.capture(core, model)
        watchers = [each for each in (tail if dumping else None, capture, injector) if each is not None]
        try:
            if core.last is not model and core.last is not None:
                self._event(core, "nrt_model_switch", model.name)
            ran = model.execute(inputs, outputs, tuple(watchers))
        except StatusError as error:
            self._report(core, model, error.status, error.message, None, call)
            error.reported = True
            raise self.fail(core, error) from None
        finally:
            if planned is not None and injector is not None and not injector.done:
                self._planned.append(planned)  # it did not come so far: for the next execution
        core.last = model
        self.activity.ran(core.number, monotonic_ns() - started, ran.time_ps)
        if self._publisher is not None:
            self._publisher.changed()
        begin, end = core.clock(ran.time_ps)
        try:
            self.watching.executed(core.index, tracking, begin, end)
            if capture is not None:
                self.watching.ran(core, model, capture, begin, bool(ran.status))
            self._count(core.number, "other_info/inference_count")
            self._count(core.number, "other_info/flop_count", by=ran.flops)
            for each in ran.prints:
                self._print(core, each)
            if ran.status:
                self._failed(core, model, ran, call, tail)
        finally:
            ran.device.release()
        self._count(core.number, "status/success")
        self._event(core, "nrt_execute", model.name, "stop", tracking)
        return ran.time_ps

    def _failed(self, core: LogicalCore, model: Model, ran: Execution, call: str, tail: EventTail) -> None:
        error = self.fail(core, StatusError(ran.status, ran.message))
        self._report(core, model, ran.status, ran.message, ran.device, call)
        error.reported = True
        dump = self.options.dump_inputs_on == int(ran.status)
        given: dict[str, bytes] = {}
        if dump or self._collector is not None:
            # The device's: a tensor that is an output too may have other bytes by now.
            names = (each.name for each in model.tensors if not each.output)
            given = {name: ran.device.tensor(name).tobytes() for name in names}
        if dump:
            self._dump_inputs(model, given)
        if self._collector is not None:
            lines = tuple(self.log.tail)
            self._collector(Failure(call, ran.status, ran.message, model, core, ran.device, given, lines, tail))
        raise error

    def _dump_inputs(self, model: Model, given: Mapping[str, bytes]) -> None:
        try:
            folder = write_inputs(given, model.name, model.number, Path.cwd())
        except OSError as error:
            self.log.say("TDRV", "tensor_dump_inputs", f"Failed to dump input tensors: {error}")
            return
        self.log.say("TDRV", "tensor_dump_inputs", f"{len(given)} input tensors were dumped successfully to directory "
                     f"{folder}. Model name is {model.name}")  # fmt: skip

    def _report(
        self, core: LogicalCore, model: Model, status: NrtStatus, message: str, device: Device | None, call: str
    ) -> None:
        """Write what the documentation shows of a failure: lines of the driver's library, the block, the call's own."""
        fault = None if device is None else device.fault
        engine = next((number for number, name in enumerate(ENGINES) if fault is not None and fault.engine == name), 0)
        fields = {
            "device": core.device,
            "core": core.physical[0],
            "id": model.number,
            "model": model.name,
            "message": message.partition("\n")[0],
            "timeout": self.options.timeout_s * 1000,
            "engine": engine,
            "pc": -1 if fault is None else fault.pc,
            "operation": 0,
            "operations": max(1, model.operations),
            "overflow": DGE_BLAMED if self.options.dge_notifications else "its notification queue overflowed",
        }
        if device is not None:
            for module, function, text in lines_of(status, fields):
                self.log.say(module, function, text)
            for injection in INJECTIONS.values():
                if injection.kernel and injection.status == status:
                    self.kernel_log.append(
                        f"NEURON_HW_ERR={injection.kernel} instance-id={self.instance_id} nd-id={core.device} "
                        f"nc-id={core.physical[0]}"
                    )
        else:
            self.log.say("NMGR", "dlr_infer", message.partition("\n")[0])
        index = core.index
        self.log.say("NMGR", "dlr_infer", f"Inference completed with err: {int(status)}. mode->h_nn={model.number}, "
                       f"lnc={index}")  # fmt: skip
        self.log.infodump(
            {
                "NRT version": self.version,
                "Instance ID": self.instance_id,
                "Cluster ID": self.environ.get("NEURONTOOLS_CLUSTER_ID") or "0",
                **system_fields(),
                "Failure": f"{status.name} in {call}()",
                "LNC": str(index),
                "Visible cores": cores_text(each.number for each in self.cores),
            },
            {k: v for k, v in public_variables(self.environ).items() if k.startswith("NEURON_")},
        )
        self.log.say("NRT", "nrt_execute_repeat", f"Failed to execute model {model.name} with status {int(status)}")

    @property
    def instance_id(self) -> str:
        """Return what the instance is called in logs and dumps."""
        return self.environ.get("NEURONTOOLS_INSTANCE_ID") or "i-emulated"

    def _print(self, core: LogicalCore, printed: Any) -> None:
        if self.streams.listens(core.index):
            values = np.ascontiguousarray(printed.values)
            self.streams.push(
                DebugEvent(printed.prefix, core.index, 1, values.dtype.name, values.shape, values.tobytes())
            )

    # --- queues ------------------------------------------------------------------------------------------------------

    def schedule(
        self, core: int, kind: UnitKind, queue: int, work: Callable[[], object], tracker: ErrorTracker | None = None
    ) -> int:
        """Give a queue of a core something to do and return the sequence number; errors as in `Unit.schedule`."""
        visible = self.core(core)
        try:
            return visible.unit(kind, queue).schedule(work, tracker)
        except StatusError as error:
            raise self.fail(visible, error) from None

    def unit_of(self, sequence: int) -> Unit:
        """Return the queue that gave out a sequence number; NRT_INVALID where none did."""
        self._need_open()
        for core in self.cores:
            for unit in core.units():
                if unit.base >> 48 == sequence >> 48:
                    return unit
        raise invalid(f"sequence number {sequence:#x} was not given out")

    def _event(self, core: LogicalCore, kind: str, name: str, phase: str = "instant", tracking: int = 0) -> int:
        return self.watching.note(core.index, kind, phase, tracking, name=name)

    # --- end ---------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the session: queues, models, tensors, streams, reserved cores; nothing of it can be used afterwards."""
        self._need_open()
        # Whoever waits for a rank that never comes must not keep its queue.
        self.meetings.close()
        self.exchange.close_all()
        for core in self.cores:
            for unit in core.units():
                unit.close()
        self.watching.close()
        for model in list(self.models.values()):
            self.unload(model)
        for tensor in list(self.tensors):
            self.free(tensor)
        for core in self.cores:
            if core.started:
                self.memory.stop_core(core.number)
        self.streams.close_all()
        self._reservation.release()
        if self._publisher is not None:
            self._publisher.close()
        self.closed = True
