"""Every environment variable that Neuron documents, with the values it takes. Source: runtime.md 19, 19.1."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import pairwise
from typing import Literal

from formats.errors import FormatError
from formats.named_tuple import NamedTuple
from formats.nrt.memory import PAGE_SIZES
from formats.nrt.names import DEFAULT_LOCAL_DIRECTORY

__all__ = [
    "NAMED", "PROFILE_BUFFERS", "VARIABLES", "Kind", "Variable", "misfit", "nearest", "parse_cpus", "parse_environment",
    "variable",
]  # fmt: skip

Kind = Literal["text", "int", "bool", "flag", "one of", "cores", "numbers", "folder", "address"]


class Variable(NamedTuple):
    """One variable: the kind of its values, the words it takes, its default, since when it is gone, and for what."""

    name: str
    kind: Kind = "text"
    words: tuple[str, ...] = ()
    low: int = 0
    high: int = (1 << 31) - 1
    default: str = ""
    gone: str = ""
    instead: str = ""
    cite: str = "runtime.md 19"


_LEVELS = ("ERROR", "WARNING", "INFO", "DEBUG", "TRACE", "QUIET")
_V = "runtime.md 19.1"
PROFILE_BUFFERS = ("EVENT", "DMA", "THROTTLE", "CC_CORE_INSTRUCTION", "CC_CORE_EVENT")
# fmt: off
NAMED: tuple[Variable, ...] = (
    Variable("NEURON_RT_VISIBLE_CORES", "cores", cite=_V),
    Variable("NEURON_RT_NUM_CORES", "int", default="0", cite=_V),
    Variable("NEURON_RT_LOG_LEVEL", "one of", _LEVELS, default="ERROR", cite=_V),
    *(Variable(f"NEURON_RT_LOG_LEVEL_{one}", "one of", _LEVELS, cite=_V) for one in ("TDRV", "NMGR", "NRT")),
    Variable("NEURON_RT_LOG_LOCATION", "one of", ("console", "syslog"), default="console", cite=_V),
    *(Variable(f"NEURON_RT_LOG_LOCATION_{one}", cite=_V) for one in ("TDRV", "NMGR", "NRT")),
    Variable("NEURON_RT_EXEC_TIMEOUT", "int", default="30", cite=_V),
    Variable("NEURON_RT_VALIDATE_HASH", "bool", default="FALSE", cite=_V),
    Variable("NEURON_RT_MULTI_INSTANCE_SHARED_WEIGHTS", "bool", default="FALSE", cite=_V),
    Variable("NEURON_RT_ALLOW_LEGACY_NEFF", "bool", default="FALSE", cite=_V),
    Variable("NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS", "int", gone="removed in runtime 2.34.10",
             instead="schedule with nrta_execute_schedule and keep two or three requests queued", cite="runtime.md 5"),
    Variable("NEURON_RT_ROOT_COMM_ID", "address", cite="runtime.md 7"),
    Variable("NEURON_RT_STOCHASTIC_ROUNDING_EN", "flag"),
    Variable("NEURON_RT_STOCHASTIC_ROUNDING_SEED", "int"),
    Variable("NEURON_RT_DEBUG_MEMLOG_MAX_SIZE", "int", default="1048576", cite="runtime.md 3.1"),
    Variable("NEURON_RT_RESET_CORES", "flag"),
    Variable("NEURON_RT_VIRTUAL_CORE_SIZE", "int", low=1, high=2, cite=_V),
    Variable("NEURON_LOGICAL_NC_CONFIG", "int", low=1, high=2, cite="runtime.md 2.2"),
    Variable("NEURON_RT_LOW_LATENCY_TASKS_CPU_AFFINITY", "numbers", cite="runtime.md 5"),
    Variable("NEURON_RT_ONE_THREAD_PER_CORE", "flag", cite="runtime.md 5"),
    Variable("NEURON_RT_RANKS_PER_NETWORK_PROXY", "int", low=1, cite="runtime.md 5"),
    Variable("NEURON_RT_NUMERICAL_ERRORS_VERBOSITY", cite="runtime.md 11.1"),
    Variable("NEURON_RT_GPSIMD_STDOUT_QUEUE_SIZE_BYTES", "int"),
    Variable("NEURON_RT_DEBUG_STREAM_BUFFER_SIZE", "int", low=1, default="65536", cite="runtime.md 15"),
    Variable("NEURON_RT_DEBUG_OUTPUT_DIR", "folder"),
    Variable("NEURON_RT_ENABLE_DGE_NOTIFICATIONS", "flag", default="0", cite=_V),
    Variable("NEURON_RT_ENABLE_DEVICE_MEMORY_OOM_LOG", "flag", cite="runtime.md 3.1"),
    Variable("NEURON_RT_CONTIGUOUS_SCRATCHPAD", "flag", default="1", cite=_V),
    Variable("NEURON_SCRATCHPAD_PAGE_SIZE", "int", low=PAGE_SIZES[0], high=PAGE_SIZES[-1],
             default=str(PAGE_SIZES[0]), cite=_V),
    *(Variable(f"NEURON_RT_PROFILE_BUF_{one}_MB", "int", low=1, high=65536, cite=_V) for one in PROFILE_BUFFERS),
    Variable("NEURON_RT_DBG_DMA_PACKETIZATION_SIZE", "int"),
    Variable("NEURON_RT_DBG_CC_DMA_PACKET_SIZE", "numbers"),  # one for each stream
    Variable("NEURON_RT_DBG_DUMP_INPUTS_ON_ERR", cite="runtime.md 6.1"),
    Variable("NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY", "folder", default=DEFAULT_LOCAL_DIRECTORY,
             cite="runtime.md 6.1"),
    Variable("NEURON_RT_S3_CORE_DUMP_PREFIX", cite="runtime.md 6.1"),
    Variable("NEURON_RT_ASYNC_SENDRECV_EXPERIMENTAL_ENABLED", "flag", cite="runtime.md 11.3"),
    Variable("NEURON_RT_ASYNC_SENDRECV_BOOTSTRAP_PORT", "int", low=1, high=65535, cite="runtime.md 11.3"),
    Variable("NEURON_RT_ULTRASERVER_MODE"),
    Variable("NEURON_RT_ULTRASERVER_SERVER_ID"),
    Variable("NEURON_RT_ULTRASERVER_NODE_ID"),
    Variable("NEURON_ULTRASERVER_NODE_CONFIG", "int", low=1, high=4),
    Variable("NEURON_RT_INSPECT_ENABLE", "flag", default="0", cite=_V),
    Variable("NEURON_RT_INSPECT_OUTPUT_DIR", "folder", default="./output", cite=_V),
    Variable("NEURON_RT_INSPECT_SYSTEM_PROFILE", "flag", default="1", cite=_V),
    Variable("NEURON_RT_INSPECT_DEVICE_PROFILE", "one of", ("0", "1", "model", "session"), default="0", cite=_V),
    Variable("NEURON_RT_INSPECT_ON_FAIL", "flag"),
    Variable("NEURON_RT_INSPECT_EVENT_FILTER_NC", "numbers", cite=_V),
    Variable("NEURON_RT_INSPECT_EVENT_FILTER_TYPE", cite=_V),
    Variable("NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC", "int", low=1, default="1000000", cite=_V),
    Variable("NEURON_RT_INSPECT_PRECACHE_ENABLE", "flag"),
    Variable("NEURON_RT_INSPECT_CPU_UTIL", "flag"),
    Variable("NEURON_RT_INSPECT_HOST_MEMORY", "flag"),
    Variable("NEURON_RT_INSPECT_DURATION_NSEC", "int", gone="removed", instead="stop the session with nrt_profile_stop",
             cite=_V),
    Variable("NEURON_RT_INSPECT_START_OFFSET_NSEC", "int", gone="removed",
             instead="start the session with nrt_profile_start", cite=_V),
    Variable("NEURON_PROCESS_TAG", cite="runtime.md 13.3"),
    Variable("NEURON_FAIL_ON_NAN", "flag", cite="runtime.md 11.1"),
    Variable("NEURON_CC_FLAGS", cite="runtime.md 18.1"),
    Variable("NEURON_COMPILE_CACHE_URL", "folder"),
    Variable("NEURON_PARALLEL_COMPILE"),
    Variable("NEURON_PARALLEL_COMPILE_MAX_RETRIES", "int"),
    Variable("NEURON_PARALLEL_COMPILE_DUMP_RESULTS"),
    Variable("NEURON_FRAMEWORK_DEBUG", "flag"),
    Variable("NEURON_PLATFORM_TARGET_OVERRIDE"),
    Variable("NEURON_FSDP", "flag"),
    Variable("NEURON_FSDP_CC_MULTISTREAM", "flag"),
    Variable("NEURON_NXD_FSDP_CC_MULTISTREAM", "flag"),
    Variable("NEURON_FSDP_NUM_LAYER_EARLY_AG_SHIFT", "int"),
    Variable("NEURON_FSDP_NUM_LAYER_LATE_RS_SHIFT", "int"),
    Variable("NEURON_RTD_ADDRESS", gone="of the daemon that Neuron 1 had", instead="remove it"),
    Variable("NEURONCORE_GROUP_SIZES", gone="deprecated", instead="set NEURON_RT_VISIBLE_CORES", cite=_V),
    # Names that framework and tutorial pages use; their values are not described.
    *(Variable(f"NEURON_{one}") for one in (
        "CONFIG", "LIBRARY", "PROFILE", "EXTRACT_GRAPHS_ONLY", "DUMP_HLO_SNAPSHOT", "NC0_ONLY_SNAPSHOT", "RANK_ID",
        "FUSE_SOFTMAX", "CUSTOM_SILU", "RUN_TRIVIAL_COMPUTATION_ON_CPU", "PJRT_PROCESS_INDEX", "SEND_IP", "RECV_IP",
        "PJRT_PROCESSES_NUM_DEVICES", "COMPILED_ARTIFACTS", "SKIP_EFA_AFFINITY", "VISIBLE_DEVICES", "NUM_DEVICES",
        "LIBTORCH_REMOTE_CACHE", "LIBTORCH_PARALLEL_COMPILE_WORKERS", "LIBTORCH_COMPILATION_TIMEOUT", "ERRMSG",
        "LIBTORCH_DISABLE_GRAPH_CAPTURE_BACKEND", "LIBTORCH_DISABLE_COMPILE_CACHE", "USE_EAGER_DEBUG_MODE",
        "IGNORE_TRAINING_SCRIPT_ERROR_AND_COMPILE", "TRANSFER_WITH_STATIC_RING_OPS", "NUM_RECENT_MODELS_TO_KEEP",
        "TRANSFER_ALL_PARAMETERS_WITH_STATIC_RING", "FORCE_PJRT_PLUGIN_REGISTRATION", "CACHE", "CC_WRAPPER",
        "TOKEN_GEN_BUCKETS", "CONTEXT_LENGTH_BUCKETS", "QUANT_DTYPE", "LOCAL_TP", "PP_STAGES", "MAX_NUM_INFERS")),
)
# fmt: on
VARIABLES: dict[str, Variable] = {one.name: one for one in NAMED}
_TRUE_FALSE = ("true", "false", "1", "0")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?", re.ASCII)
_LONGEST, _MOST = 32_768, 20_000


def variable(name: str) -> Variable | None:
    """Return what is documented of a variable, None where nothing is."""
    return VARIABLES.get(name)


def nearest(name: str) -> str | None:
    """Return the documented name that an unknown one is most like, None where none is near."""
    found = get_close_matches(name, VARIABLES, n=1, cutoff=0.8)
    return found[0] if found else None


def parse_cpus(text: str) -> tuple[int, ...] | None:
    """Return the numbers of "40-47,88", in the order given; None for what is no such list."""
    found: list[int] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or len(found) + last - first >= _MOST:
            return None
        found += range(first, last + 1)
    return tuple(found)


def misfit(one: Variable, value: str) -> str | None:
    """Return what a variable expects instead of a value, None where the value fits."""
    text = value.strip()
    if one.kind == "int":
        if re.fullmatch(r"\d{1,18}", text, re.ASCII) is None or not one.low <= int(text) <= one.high:
            return f"a number from {one.low} to {one.high}"
    elif one.kind == "bool" and text.lower() not in _TRUE_FALSE:
        return "TRUE or FALSE"
    elif one.kind == "flag" and text.lower() not in _TRUE_FALSE:
        return "0 or 1"
    elif one.kind == "one of" and text.lower() not in {word.lower() for word in one.words}:
        return f"one of {', '.join(one.words)}"
    elif one.kind in ("cores", "numbers"):
        numbers = parse_cpus(text)
        if numbers is None:
            return "numbers and ranges between commas, such as 0-3"
        if one.kind == "cores" and any(b != a + 1 for a, b in pairwise(numbers)):
            return "cores in a row, ascending, such as 4-7"
    elif one.kind == "address" and re.fullmatch(r"[^\s:]{1,255}:\d{1,5}", text) is None:
        return "an address and a port, such as 10.0.0.1:46820"
    return None


def parse_environment(lines: Iterable[str], path: str | None = None) -> dict[str, tuple[str, int]]:
    """Return the variables that a file sets, with their lines: `env` output, a file of `docker`, or a shell script.

    Of a script only assignments in front of a command, and `export`, are read; nothing is expanded.
    """
    found: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(lines, 1):
        if number > _MOST:
            raise FormatError("too many lines", path=path, expected=f"at most {_MOST:,}")
        text = line.strip()
        if not text or text.startswith("#") or "=" not in text:
            continue
        if len(text) > _LONGEST:
            raise FormatError("too long a line", path=path, field=f"line {number}",
                              expected=f"at most {_LONGEST:,} characters", got=f"{len(text):,}")  # fmt: skip
        try:
            words = shlex.split(text, comments=True)
        except ValueError as error:
            raise FormatError(
                f"cannot be read as a line of a shell: {error}", path=path, field=f"line {number}"
            ) from None
        if words and words[0] in ("export", "env", "set"):
            words = words[1:]
        for word in words:
            if _ASSIGNMENT.match(word) is None:
                break
            name, _, value = word.partition("=")
            found[name] = value, number
    return found
