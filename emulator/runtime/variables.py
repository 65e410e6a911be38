"""What each documented variable of the runtime does here: it is honoured, without effect, or removed.

A session reads them once, when it is made. Source: runtime.md 19.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from emulator.runtime.errors import StatusError
from emulator.runtime.instances import Instance, configured
from formats.named_tuple import NamedTuple
from formats.nrt.environment import VARIABLES as DOCUMENTED
from formats.nrt.environment import Variable as Documented
from formats.nrt.environment import parse_cpus
from formats.nrt.status import NrtStatus
from formats.numerals import parse_decimal

__all__ = ["VARIABLES", "Options", "Variable", "read_cores"]

Effect = Literal["honoured", "ignored", "removed"]


class Variable(NamedTuple):
    """One documented variable: what the runtime does with it, what it does here."""

    name: str
    effect: Effect
    meaning: str


# By name, or by how names begin (*). Values, defaults, and which are gone: `formats.nrt.environment`.
# fmt: off
_EFFECTS: Mapping[str, tuple[Effect, str]] = {
    "NEURON_RT_VISIBLE_CORES": ("honoured", "Logical cores of the process: numbers and ranges, ascending, without a "
        "gap."),
    "NEURON_RT_NUM_CORES": ("honoured", "How many cores, where NEURON_RT_VISIBLE_CORES does not say which; 0 is all."),
    "NEURON_LOGICAL_NC_CONFIG": ("honoured", "Physical cores of a logical core."),
    "NEURON_RT_VIRTUAL_CORE_SIZE": ("honoured", "An older name of NEURON_LOGICAL_NC_CONFIG."),
    "NEURON_PLATFORM_TARGET_OVERRIDE": ("honoured", "The chip of the instance, where NEURONTOOLS_INSTANCE_TYPE names "
        "none."),
    "NEURON_RT_LOG_LEVEL": ("honoured", "Least level that is written."),
    "NEURON_RT_LOG_LEVEL_*": ("honoured", "The same for one module."),
    "NEURON_RT_LOG_LOCATION": ("honoured", "console (standard error), syslog (which is the console here), or a file."),
    "NEURON_RT_LOG_LOCATION_*": ("honoured", "The same for one module."),
    "NEURON_RT_EXEC_TIMEOUT": ("honoured", "Seconds of device time that an execution may take."),
    "NEURON_RT_VALIDATE_HASH": ("honoured", "Check the hash of a NEFF before it is loaded."),
    "NEURON_RT_NUMERICAL_ERRORS_VERBOSITY": ("honoured", "critical: NaN in an output fails the execution."),
    "NEURON_FAIL_ON_NAN": ("honoured", "1: NaN in an output fails the execution."),
    "NEURON_RT_ENABLE_DGE_NOTIFICATIONS": ("honoured", "Whether an injected overflow blames DMA generation."),
    "NEURON_RT_DBG_DUMP_INPUTS_ON_ERR": ("honoured", "Write the inputs of an execution that fails with this status."),
    "NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY": ("honoured", "Where core dumps go."),
    "NEURON_RT_S3_CORE_DUMP_PREFIX": ("honoured", "What the collector is given to upload to."),
    "NEURON_RT_DEBUG_STREAM_BUFFER_SIZE": ("honoured", "Events that a debug stream keeps."),
    "NEURON_RT_INSPECT_ENABLE": ("honoured", "1: profiles and a system trace of the whole session."),
    "NEURON_RT_INSPECT_OUTPUT_DIR": ("honoured", "Where they go."),
    "NEURON_RT_INSPECT_SYSTEM_PROFILE": ("honoured", "Whether the system trace is among them."),
    "NEURON_RT_INSPECT_DEVICE_PROFILE": ("honoured", "Whether device profiles are; on unless 0 (nrt_profile.h)."),
    "NEURON_RT_INSPECT_ON_FAIL": ("honoured", "1: a device profile of each execution that fails."),
    "NEURON_RT_INSPECT_EVENT_FILTER_NC": ("honoured", "Cores that are traced and profiled."),
    "NEURON_RT_INSPECT_EVENT_FILTER_TYPE": ("honoured", "Kinds of events that a system trace keeps."),
    "NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC": ("honoured", "Events that a system trace keeps of a core."),
    "NEURON_RT_INSPECT_*": ("ignored", "What has no published schema is not captured: CPU use, host memory."),
    "NEURON_PROCESS_TAG": ("honoured", "What neuron-monitor calls the process."),
    "NEURON_RT_CONTIGUOUS_SCRATCHPAD": ("honoured", "Whether shared scratchpads are contiguous."),
    "NEURON_SCRATCHPAD_PAGE_SIZE": ("honoured", "Bytes of a scratchpad page, in MB."),
    "NEURON_RT_ENABLE_DEVICE_MEMORY_OOM_LOG": ("honoured", "Whether the table of device memory is written."),
    "NEURON_RT_PROFILE_BUF_EVENT_MB": ("honoured", "Bytes of a profile's buffers, in MB: of words and signals."),
    "NEURON_RT_PROFILE_BUF_DMA_MB": ("honoured", "The same of DMA packets."),
    "NEURON_RT_PROFILE_BUF_*": ("honoured", "The same; here they only take device memory."),
    "NEURON_RT_DEBUG_MEMLOG_MAX_SIZE": ("ignored", "Entries of the log of allocations, which is not kept; `neurontools "
        "mem watch` shows what there is."),
    "NEURON_RT_DEBUG_OUTPUT_DIR": ("ignored", "Where what a debugger collects goes."),
    "NEURON_RT_ALLOW_LEGACY_NEFF": ("ignored", "Load a NEFF of an older chip; words of one chip are not run on another "
        "here."),
    "NEURON_RT_ROOT_COMM_ID": ("ignored", "Where ranks of several processes meet; collectives of one process need "
        "none."),
    "NEURON_RT_MULTI_INSTANCE_SHARED_WEIGHTS": ("ignored", "Share constants between models."),
    "NEURON_RT_STOCHASTIC_ROUNDING_*": ("ignored", "Round at random."),
    "NEURON_RT_RESET_CORES": ("ignored", "Reset cores at the start; emulated ones are new each time."),
    "NEURON_RT_LOW_LATENCY_TASKS_CPU_AFFINITY": ("ignored", "Processors of the network's threads."),
    "NEURON_RT_ONE_THREAD_PER_CORE": ("ignored", "A thread for each core."),
    "NEURON_RT_RANKS_PER_NETWORK_PROXY": ("ignored", "Ranks that share a thread of the network."),
    "NEURON_RT_GPSIMD_STDOUT_QUEUE_SIZE_BYTES": ("ignored", "Bytes that GpSimd programs may print."),
    "NEURON_RT_DBG_*": ("ignored", "Bytes of DMA packets; the cost model has its own."),
    "NEURON_RT_ASYNC_SENDRECV_EXPERIMENTAL_ENABLED": ("honoured", "1: tensors may be sent to other programs."),
    "NEURON_RT_ASYNC_SENDRECV_BOOTSTRAP_PORT": ("honoured", "Port of logical core 0 for that; others are behind it."),
    "NEURON_RT_ULTRASERVER_*": ("ignored", "Place in an UltraServer."),
}
# fmt: on


def _row(known: Documented) -> Variable | None:
    """Return the row of a documented variable, None for one that is not the runtime's."""
    if known.gone:
        return Variable(known.name, "removed", f"{known.gone}; {known.instead}")
    exact = _EFFECTS.get(known.name)
    families = (row for name, row in _EFFECTS.items() if name[-1] == "*" and known.name.startswith(name[:-1]))
    found = exact or next(families, None)
    return None if found is None else Variable(known.name, *found)


VARIABLES: tuple[Variable, ...] = tuple(row for row in map(_row, DOCUMENTED.values()) if row is not None)
_BY_NAME = {row.name: row for row in VARIABLES}
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")
_MOST = 1 << 31


def variable_of(name: str) -> Variable | None:
    """Return the row of a variable, None for one that the runtime is not known to read."""
    return _BY_NAME.get(name)


def _refuse(name: str, value: str, expected: str) -> StatusError:
    return StatusError(NrtStatus.NRT_INVALID, f"{name}={value!r}: expected {expected}")


def read_cores(text: str, name: str = "NEURON_RT_VISIBLE_CORES") -> tuple[int, ...]:
    """Return the cores that "0,1", "4-7" or a mix of both names; StatusError for gaps."""
    cores = parse_cpus(text)
    if cores is None:
        raise _refuse(name, text, "numbers and ranges that ascend, such as 0,1,4-7")
    if any(later != core + 1 for core, later in pairwise(cores)):
        raise _refuse(name, text, "ascending cores without a gap")
    return cores


def _flag(environ: Mapping[str, str], name: str) -> bool:
    value = environ.get(name, "").strip().lower()
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise _refuse(name, environ[name], "true or false")


def _number(environ: Mapping[str, str], name: str) -> int:
    """Return a number, the documented default where none is given."""
    value = environ.get(name, "").strip() or DOCUMENTED[name].default or "0"
    number = parse_decimal(value, 10)
    if number is None or number >= _MOST:
        raise _refuse(name, value, "a number from 0 to 2147483647")
    return number


@dataclass(frozen=True)
class Options:
    """What the variables of a process say; `explicit_lnc` is whether one of them sets it."""

    instance: Instance
    lnc: int
    explicit_lnc: bool
    visible: Sequence[int]
    asked: str
    timeout_s: int
    validate_hash: bool
    fail_on_nan: bool
    dge_notifications: bool
    dump_inputs_on: int
    stream_events: int
    trace_events: int
    remarks: tuple[str, ...]

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Options:
        """Return what an environment says; StatusError (NRT_INVALID) names the variable that is wrong."""
        instance = configured(environ)
        lnc_name = next((n for n in ("NEURON_LOGICAL_NC_CONFIG", "NEURON_RT_VIRTUAL_CORE_SIZE") if environ.get(n)), "")
        lnc = _number(environ, lnc_name) if lnc_name else instance.default_lnc
        if not 1 <= lnc <= instance.default_lnc:
            raise _refuse(lnc_name, environ[lnc_name], f"1 to {instance.default_lnc} on {instance.name}")
        total = instance.cores(lnc)
        text = environ.get("NEURON_RT_VISIBLE_CORES", "").strip()
        number = _number(environ, "NEURON_RT_NUM_CORES")
        if text:
            visible: Sequence[int] = read_cores(text)
            asked = f"nc{visible[0]}-nc{visible[-1]}"
        else:
            visible = range(number or total)  # of any length: a session says that there are not so many
            asked = f"{len(visible)}"
        critical = environ.get("NEURON_RT_NUMERICAL_ERRORS_VERBOSITY", "").strip().lower() == "critical"
        return cls(
            instance,
            lnc,
            bool(lnc_name),
            visible,
            asked,
            _number(environ, "NEURON_RT_EXEC_TIMEOUT"),
            _flag(environ, "NEURON_RT_VALIDATE_HASH"),
            critical or _flag(environ, "NEURON_FAIL_ON_NAN"),
            _flag(environ, "NEURON_RT_ENABLE_DGE_NOTIFICATIONS"),
            _number(environ, "NEURON_RT_DBG_DUMP_INPUTS_ON_ERR"),
            _number(environ, "NEURON_RT_DEBUG_STREAM_BUFFER_SIZE"),
            _number(environ, "NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC"),
            tuple(_remarks(environ)),
        )


def _remarks(environ: Mapping[str, str]) -> list[str]:
    """Return a line for each variable that is set and has no effect."""
    found: list[str] = []
    for name in sorted(environ):
        if not name.startswith(("NEURON_RT_", "NEURON_RTD_", "NEURONCORE_")):
            continue
        row = variable_of(name)
        if row is None:
            found.append(f"{name} is no variable that the runtime is known to read")
        elif row.effect in ("ignored", "removed"):
            how = "removed" if row.effect == "removed" else "without effect here"
            found.append(f"{name} is {how}: {row.meaning}")
    return found
