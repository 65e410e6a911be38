"""Every documented variable of the runtime: honoured ones change what a session does, the others are named."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from emulator.runtime.errors import StatusError
from emulator.runtime.inspecting import InspectConfig
from emulator.runtime.ledger import Ledger
from emulator.runtime.ledger_state import state_of
from emulator.runtime.profiles import buffer_bytes
from emulator.runtime.tensor import Placement
from emulator.runtime.variables import VARIABLES, variable_of
from formats.debug_events import DebugEvent
from formats.neff import open_neff
from formats.nrt.environment import NAMED
from neurontools.libnrt.collecting import collector
from tests.runtime.support import Session, X, copying, free_port, hanging, with_header

Seen = Callable[[Session], object]


def _logged(level: str, module: str) -> Seen:
    def seen(session: Session) -> object:
        session.runtime.log.write(level, module, "f", "text")
        return list(session.places)

    return seen


def _status(data: Callable[[], bytes], x: np.ndarray = X) -> Seen:
    def seen(session: Session) -> object:
        try:
            model = session.runtime.load(data())
            session.runtime.execute(model, *session.sets(model, x))
        except StatusError as error:
            return error.status, [line.split("  ")[-1] for line in session.lines if "timeout" in line]
        return 0

    return seen


def _overflow(session: Session) -> object:
    session.runtime.inject("nq-overflow")
    _status(copying)(session)
    return "caused by DGE" in session.log


def _dumped(session: Session) -> object:
    session.runtime.inject("dma-abort")
    _status(copying)(session)
    return "were dumped successfully" in session.log


def _full(session: Session) -> object:
    with pytest.raises(StatusError, match="NRT_RESOURCE"):
        for _ in range(2):
            session.runtime.allocate(Placement.DEVICE, 0, 20 << 30)
    return len(session.lines)


def _events(session: Session) -> object:
    session.runtime.streams.connect(0)
    event = DebugEvent("", 0, 1, "float32", (1,), bytes(4))
    return [session.runtime.streams.push(event) for _ in range(3)]


def _scratchpad(session: Session) -> object:
    memory = session.runtime.memory
    assert isinstance(memory, Ledger)
    return memory.scratchpad


def _inspected(session: Session) -> object:
    runtime = session.runtime
    config = InspectConfig.of(session.environ, runtime.options.trace_events)
    return (
        config.enabled,
        config.on_failure,
        config.folder,
        config.activities,
        config.cores,
        config.kinds,
        config.max_events,
    )


def _buffers(session: Session) -> object:
    return buffer_bytes("gen3", session.environ)


def _cores(session: Session) -> object:
    return session.runtime.instance.name, session.runtime.total_cores, [core.number for core in session.runtime.cores]


def _tag(session: Session) -> object:
    state = state_of(session.runtime)
    return state.tag


def _listens(session: Session) -> object:
    try:
        session.runtime.exchange.init(0)
    except StatusError:
        return False
    session.runtime.exchange.close_all()
    return True


def _damaged() -> bytes:
    neff = open_neff(copying())
    return with_header(neff, hash=b"\1" * 32)


PORT = "NEURON_RT_ASYNC_SENDRECV_BOOTSTRAP_PORT"
NAN = np.full_like(X, np.nan)
PAGES = {"NEURON_LOGICAL_NC_CONFIG": "1"}  # where scratchpads have pages
# Name: a value that is not the usual one, what it changes, what else has to be set.
HONOURED: dict[str, tuple[str, Seen, dict[str, str]]] = {
    "NEURON_RT_VISIBLE_CORES": ("4-5", _cores, {}),
    "NEURON_RT_NUM_CORES": ("3", _cores, {}),
    "NEURON_LOGICAL_NC_CONFIG": ("1", _cores, {}),
    "NEURON_RT_VIRTUAL_CORE_SIZE": ("1", _cores, {}),
    "NEURON_PLATFORM_TARGET_OVERRIDE": ("trn1", _cores, {}),
    "NEURON_RT_LOG_LEVEL": ("INFO", _logged("INFO", "NRT"), {}),
    "NEURON_RT_LOG_LEVEL_TDRV": ("QUIET", _logged("ERROR", "TDRV"), {}),
    "NEURON_RT_LOG_LEVEL_NMGR": ("QUIET", _logged("ERROR", "NMGR"), {}),
    "NEURON_RT_LOG_LEVEL_NRT": ("DEBUG", _logged("DEBUG", "NRT"), {}),
    "NEURON_RT_LOG_LOCATION": ("x.log", _logged("ERROR", "NRT"), {}),
    "NEURON_RT_LOG_LOCATION_TDRV": ("x.log", _logged("ERROR", "TDRV"), {}),
    "NEURON_RT_LOG_LOCATION_NMGR": ("x.log", _logged("ERROR", "NMGR"), {}),
    "NEURON_RT_LOG_LOCATION_NRT": ("x.log", _logged("ERROR", "NRT"), {}),
    "NEURON_RT_EXEC_TIMEOUT": ("7", _status(hanging), {}),
    "NEURON_RT_VALIDATE_HASH": ("TRUE", _status(_damaged), {}),
    "NEURON_RT_NUMERICAL_ERRORS_VERBOSITY": ("critical", _status(copying, NAN), {}),
    "NEURON_FAIL_ON_NAN": ("1", _status(copying, NAN), {}),
    "NEURON_RT_ENABLE_DGE_NOTIFICATIONS": ("1", _overflow, {}),
    "NEURON_RT_DBG_DUMP_INPUTS_ON_ERR": ("1203", _dumped, {}),
    "NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY": ("x", lambda session: collector(session.environ) is None, {}),
    "NEURON_RT_S3_CORE_DUMP_PREFIX": ("s3://x", lambda session: collector(session.environ) is None, {}),
    "NEURON_RT_DEBUG_STREAM_BUFFER_SIZE": ("2", _events, {}),
    "NEURON_RT_INSPECT_ENABLE": ("1", _inspected, {}),
    "NEURON_RT_INSPECT_OUTPUT_DIR": ("x", _inspected, {}),
    "NEURON_RT_INSPECT_SYSTEM_PROFILE": ("0", _inspected, {}),
    "NEURON_RT_INSPECT_DEVICE_PROFILE": ("0", _inspected, {}),
    "NEURON_RT_INSPECT_ON_FAIL": ("1", _inspected, {}),
    "NEURON_RT_INSPECT_EVENT_FILTER_NC": ("0,2-3", _inspected, {}),
    "NEURON_RT_INSPECT_EVENT_FILTER_TYPE": ("hardware", _inspected, {}),
    "NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC": ("5", _inspected, {}),
    "NEURON_PROCESS_TAG": ("job", _tag, {}),
    "NEURON_RT_CONTIGUOUS_SCRATCHPAD": ("0", _scratchpad, {}),
    "NEURON_SCRATCHPAD_PAGE_SIZE": ("1024", _scratchpad, PAGES),
    "NEURON_RT_ENABLE_DEVICE_MEMORY_OOM_LOG": ("0", _full, {}),
    "NEURON_RT_ASYNC_SENDRECV_EXPERIMENTAL_ENABLED": ("1", _listens, {PORT: str(free_port())}),
    PORT: (str(free_port()), _listens, {"NEURON_RT_ASYNC_SENDRECV_EXPERIMENTAL_ENABLED": "1"}),
    **{f"NEURON_RT_PROFILE_BUF_{kind}_MB": ("512", _buffers, {})
       for kind in ("EVENT", "DMA", "THROTTLE", "CC_CORE_INSTRUCTION", "CC_CORE_EVENT")},
}  # fmt: skip


@pytest.fixture(autouse=True)
def _here(tmp_path: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(tmp_path)
    yield
    os.chdir(before)


def test_the_table_has_every_documented_variable_of_the_runtime() -> None:
    documented = {one.name for one in NAMED if one.name.startswith("NEURON_RT_")}
    documented |= {"NEURON_LOGICAL_NC_CONFIG", "NEURON_SCRATCHPAD_PAGE_SIZE", "NEURON_PROCESS_TAG"}
    documented |= {"NEURON_FAIL_ON_NAN", "NEURON_PLATFORM_TARGET_OVERRIDE", "NEURONCORE_GROUP_SIZES"}
    names = [row.name for row in VARIABLES]
    assert len(names) == len(set(names)) and documented - set(names) == set()
    assert all(row.meaning for row in VARIABLES)
    assert variable_of("NEURON_RT_NONSENSE") is None
    assert {row.name for row in VARIABLES if row.effect == "honoured"} == set(HONOURED)


@pytest.mark.parametrize("name", HONOURED)
def test_what_is_honoured_changes_something(name: str) -> None:
    value, seen, more = HONOURED[name]
    usual = seen(Session(dict(more)))
    assert seen(Session({**more, name: value})) != usual
    assert seen(Session(dict(more))) == usual  # and nothing of it stays


@pytest.mark.parametrize("row", [row for row in VARIABLES if row.effect != "honoured"], ids=lambda row: row.name)
def test_what_is_not_is_named_with_the_reason(row: object) -> None:
    name, effect, meaning = row  # type: ignore[misc]
    session = Session({name: "1", "NEURON_RT_LOG_LEVEL": "WARNING"})
    (line,) = session.lines
    how = "removed" if effect == "removed" else "without effect here"
    assert " WARN " in line and line.endswith(f"{name} is {how}: {meaning}")
