"""The variables that the runtime reads: one row each, honoured, without effect here, or removed.

A session reads them once, when it is made. Source: runtime.md 19.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from emulator.runtime.errors import StatusError
from emulator.runtime.instances import Instance, configured
from formats.nrt.status import NrtStatus

__all__ = ["VARIABLES", "Options", "Variable", "read_cores"]

Effect = Literal["honoured", "elsewhere", "ignored", "removed"]


class Variable(NamedTuple):
    """One variable: what the runtime does with it, what it does here; the name may end in * for a family."""

    name: str
    effect: Effect
    meaning: str
    cite: str = "runtime.md 19"


# fmt: off
VARIABLES: tuple[Variable, ...] = (
    Variable("NEURON_RT_VISIBLE_CORES", "honoured", "Logical cores of the process: numbers and ranges, ascending, "
        "without a gap."),
    Variable("NEURON_RT_NUM_CORES", "honoured", "How many cores, where NEURON_RT_VISIBLE_CORES does not say which; "
        "0 is all."),
    Variable("NEURON_LOGICAL_NC_CONFIG", "honoured", "Physical cores of a logical core."),
    Variable("NEURON_RT_VIRTUAL_CORE_SIZE", "honoured", "An older name of NEURON_LOGICAL_NC_CONFIG."),
    Variable("NEURON_PLATFORM_TARGET_OVERRIDE", "honoured", "The chip of the instance, where "
        "NEURONTOOLS_INSTANCE_TYPE names none."),
    Variable("NEURON_RT_LOG_LEVEL", "honoured", "Least level that is written: TRACE, DEBUG, INFO, WARNING, ERROR, "
        "QUIET."),
    Variable("NEURON_RT_LOG_LEVEL_*", "honoured", "The same for one module: TDRV, NMGR, NRT."),
    Variable("NEURON_RT_LOG_LOCATION", "honoured", "console (standard error), syslog (which is the console here), "
        "or a file."),
    Variable("NEURON_RT_LOG_LOCATION_*", "honoured", "The same for one module."),
    Variable("NEURON_RT_EXEC_TIMEOUT", "honoured", "Seconds of device time that an execution may take; 30 unless "
        "set."),
    Variable("NEURON_RT_VALIDATE_HASH", "honoured", "Check the hash of a NEFF before it is loaded."),
    Variable("NEURON_RT_ALLOW_LEGACY_NEFF", "ignored", "Load a NEFF of an older chip; words of one chip are not run "
        "on another here."),
    Variable("NEURON_RT_NUMERICAL_ERRORS_VERBOSITY", "honoured", "critical: NaN in an output fails the execution."),
    Variable("NEURON_FAIL_ON_NAN", "honoured", "1: NaN in an output fails the execution."),
    Variable("NEURON_RT_ENABLE_DGE_NOTIFICATIONS", "honoured", "Whether an injected overflow blames DMA generation."),
    Variable("NEURON_RT_DBG_DUMP_INPUTS_ON_ERR", "honoured", "Write the inputs of an execution that fails with this "
        "status."),
    Variable("NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY", "honoured", "Where core dumps go."),
    Variable("NEURON_RT_S3_CORE_DUMP_PREFIX", "honoured", "What the collector is given to upload to."),
    Variable("NEURON_RT_DEBUG_STREAM_BUFFER_SIZE", "honoured",
        "Events that a debug stream keeps; 65,536 unless set."),
    Variable("NEURON_RT_INSPECT_EVENT_FILTER_NC", "honoured", "Cores whose events a system trace keeps."),
    Variable("NEURON_RT_INSPECT_EVENT_FILTER_TYPE", "honoured", "Kinds of events that a system trace keeps."),
    Variable("NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC", "honoured",
        "Events that a system trace keeps of a core; 1,000,000 unless set."),
    Variable("NEURON_PROCESS_TAG", "elsewhere", "What neuron-monitor calls the process; read where its report is "
        "made."),
    Variable("NEURON_RT_CONTIGUOUS_SCRATCHPAD", "elsewhere", "Whether scratchpads are contiguous; read by the "
        "allocator."),
    Variable("NEURON_SCRATCHPAD_PAGE_SIZE", "elsewhere", "Bytes of a scratchpad page, in MB; read by the allocator."),
    Variable("NEURON_RT_ENABLE_DEVICE_MEMORY_OOM_LOG", "elsewhere",
        "Whether the table of device memory is written; read by the allocator."),
    Variable("NEURON_RT_DEBUG_MEMLOG_MAX_SIZE", "elsewhere", "Entries of the log of allocations; read by the "
        "allocator."),
    Variable("NEURON_RT_PROFILE_BUF_*", "elsewhere", "Bytes of the profiler's buffers, in MB; read by the "
        "allocator."),
    Variable("NEURON_RT_ROOT_COMM_ID", "ignored", "Where ranks of several processes meet; collectives of one "
        "process need none."),
    Variable("NEURON_RT_MULTI_INSTANCE_SHARED_WEIGHTS", "ignored", "Share constants between models."),
    Variable("NEURON_RT_STOCHASTIC_ROUNDING_EN", "ignored", "Round at random."),
    Variable("NEURON_RT_STOCHASTIC_ROUNDING_SEED", "ignored", "Where random rounding begins."),
    Variable("NEURON_RT_RESET_CORES", "ignored", "Reset cores at the start; emulated ones are new each time."),
    Variable("NEURON_RT_LOW_LATENCY_TASKS_CPU_AFFINITY", "ignored", "Processors of the network's threads."),
    Variable("NEURON_RT_ONE_THREAD_PER_CORE", "ignored", "A thread for each core."),
    Variable("NEURON_RT_RANKS_PER_NETWORK_PROXY", "ignored", "Ranks that share a thread of the network."),
    Variable("NEURON_RT_GPSIMD_STDOUT_QUEUE_SIZE_BYTES", "ignored", "Bytes that GpSimd programs may print."),
    Variable("NEURON_RT_DBG_DMA_PACKETIZATION_SIZE", "ignored", "Bytes of a DMA packet; the cost model has its own."),
    Variable("NEURON_RT_DBG_CC_DMA_PACKET_SIZE", "ignored", "The same for collectives."),
    Variable("NEURON_RT_ASYNC_SENDRECV_*", "ignored", "Tensors sent to other hosts."),
    Variable("NEURON_RT_ULTRASERVER_*", "ignored", "Place in an UltraServer."),
    Variable("NEURON_RT_INSPECT_*", "ignored", "Profiles that begin by themselves; call nrt_sys_trace_start or "
        "nrt_profile_start."),
    Variable("NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS", "removed",
        "Implicit asynchronous execution; use nrta_execute_schedule.", "runtime.md 5"),
    Variable("NEURON_RT_INSPECT_DURATION_NSEC", "removed", "Duration of a profile."),
    Variable("NEURON_RT_INSPECT_START_OFFSET_NSEC", "removed", "Start of a profile."),
    Variable("NEURONCORE_GROUP_SIZES", "removed", "Groups of cores; use NEURON_RT_VISIBLE_CORES."),
)
# fmt: on
_EXACT = {row.name: row for row in VARIABLES if not row.name.endswith("*")}
_FAMILIES = tuple((row.name[:-1], row) for row in VARIABLES if row.name.endswith("*"))
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")
_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?", re.ASCII)
_MOST = 1 << 31


def variable_of(name: str) -> Variable | None:
    """Return the row of a variable, None for one that the runtime is not known to read."""
    found = _EXACT.get(name)
    if found is None:
        found = next((row for prefix, row in _FAMILIES if name.startswith(prefix)), None)
    return found


def _refuse(name: str, value: str, expected: str) -> StatusError:
    return StatusError(NrtStatus.NRT_INVALID, f"{name}={value!r}: expected {expected}")


def read_cores(text: str, name: str = "NEURON_RT_VISIBLE_CORES") -> tuple[int, ...]:
    """Return the cores that "0,1", "4-7" or a mix of both names; StatusError for gaps."""
    cores: list[int] = []
    for part in text.split(","):
        found = _RANGE.fullmatch(part.strip())
        if found is None:
            raise _refuse(name, text, "numbers and ranges such as 0,1,4-7")
        first, last = int(found[1]), int(found[2] or found[1])
        if last < first or last - first > 4096:
            raise _refuse(name, text, "ranges that ascend")
        cores += range(first, last + 1)
    if cores != list(range(cores[0], cores[0] + len(cores))):
        raise _refuse(name, text, "ascending cores without a gap")
    return tuple(cores)


def _flag(environ: Mapping[str, str], name: str) -> bool:
    value = environ.get(name, "").strip().lower()
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise _refuse(name, environ[name], "true or false")


def _number(environ: Mapping[str, str], name: str, default: int) -> int:
    value = environ.get(name, "").strip()
    if not value:
        return default
    if not (value.isascii() and value.isdecimal()) or int(value) >= _MOST:
        raise _refuse(name, value, "a number from 0 to 2147483647")
    return int(value)


@dataclass(frozen=True)
class Options:
    """What the variables of a process say; `explicit_lnc` is whether one of them sets it."""

    instance: Instance
    lnc: int
    explicit_lnc: bool
    visible: tuple[int, ...]
    asked: str
    timeout_s: int = 30
    validate_hash: bool = False
    fail_on_nan: bool = False
    dge_notifications: bool = True
    dump_inputs_on: int = 0
    stream_events: int = 1 << 16
    trace_events: int = 1_000_000
    remarks: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Options:
        """Return what an environment says; StatusError (NRT_INVALID) names the variable that is wrong."""
        instance = configured(environ)
        lnc_name = next((n for n in ("NEURON_LOGICAL_NC_CONFIG", "NEURON_RT_VIRTUAL_CORE_SIZE") if environ.get(n)), "")
        lnc = _number(environ, lnc_name, 0) if lnc_name else instance.default_lnc
        if not 1 <= lnc <= instance.default_lnc:
            raise _refuse(lnc_name, environ[lnc_name], f"1 to {instance.default_lnc} on {instance.name}")
        total = instance.cores(lnc)
        text = environ.get("NEURON_RT_VISIBLE_CORES", "").strip()
        number = _number(environ, "NEURON_RT_NUM_CORES", 0)
        if text:
            visible = read_cores(text)
            asked = f"nc{visible[0]}-nc{visible[-1]}"
        else:
            visible = tuple(range(number or total))
            asked = f"{len(visible)}"
        critical = environ.get("NEURON_RT_NUMERICAL_ERRORS_VERBOSITY", "").strip().lower() == "critical"
        return cls(
            instance,
            lnc,
            bool(lnc_name),
            visible,
            asked,
            _number(environ, "NEURON_RT_EXEC_TIMEOUT", 30),
            _flag(environ, "NEURON_RT_VALIDATE_HASH"),
            critical or _flag(environ, "NEURON_FAIL_ON_NAN"),
            environ.get("NEURON_RT_ENABLE_DGE_NOTIFICATIONS", "").strip() != "0",
            _number(environ, "NEURON_RT_DBG_DUMP_INPUTS_ON_ERR", 0),
            _number(environ, "NEURON_RT_DEBUG_STREAM_BUFFER_SIZE", 1 << 16),
            _number(environ, "NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC", 1_000_000),
            tuple(_remarks(environ)),
        )


def _remarks(environ: Mapping[str, str]) -> list[str]:
    """Return a line for each variable that is set and has no effect."""
    found: list[str] = []
    for name in sorted(environ):
        if not name.startswith(("NEURON_RT_", "NEURONCORE_")):
            continue
        row = variable_of(name)
        if row is None:
            found.append(f"{name} is no variable that the runtime is known to read")
        elif row.effect in ("ignored", "removed"):
            found.append(
                f"{name} is {'removed' if row.effect == 'removed' else 'without effect here'}: {{row.meaning}}"
            )
    return found
