"""Every status comes about as the table says, in Python; tests/libnrt does the same through C."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from emulator.runtime.collective_requests import CollectiveContext, Communicator
from emulator.runtime.errors import StatusError
from emulator.runtime.failures import counters_of
from emulator.runtime.injection import INJECTIONS, read_plan
from emulator.runtime.queues import UnitKind
from emulator.runtime.reached import REACHED
from emulator.runtime.tensor import Placement, TensorSet
from formats.errors import FormatError
from formats.nrt.log import parse_line
from formats.nrt.lookup import mentions
from formats.nrt.status import NrtStatus as S
from neurontools.libnrt.library import Library
from tests.emulator.dma_programs import load_and_store
from tests.runtime.support import Session, X, copying, hanging, out_of_bounds, with_header

Recipe = Callable[[], None]
RECIPES: dict[S, Recipe] = {}


def reaches(status: S) -> Callable[[Recipe], Recipe]:
    def note(recipe: Recipe) -> Recipe:
        RECIPES[status] = recipe
        return recipe

    return note


def _execute(session: Session, data: bytes, x: np.ndarray = X) -> None:
    model = session.runtime.load(data)
    session.runtime.execute(model, *session.sets(model, x))


@reaches(S.NRT_SUCCESS)
def _success() -> None:
    _execute(Session(), copying())


@reaches(S.NRT_FAILURE)
def _failure() -> None:
    Session({"NEURONTOOLS_INSTANCE_TYPE": "inf2.xlarge"}).runtime.load(copying())


@reaches(S.NRT_INVALID)
def _invalid() -> None:
    Session().runtime.core(64)


@reaches(S.NRT_INVALID_HANDLE)
def _invalid_handle() -> None:
    session = Session()
    tensor = session.tensor(X)
    session.runtime.free(tensor)
    session.runtime.free(tensor)


@reaches(S.NRT_RESOURCE)
def _resource() -> None:
    session = Session()
    for _ in range(3):
        session.runtime.allocate(Placement.DEVICE, 0, 20 << 30)


@reaches(S.NRT_TIMEOUT)
def _timeout() -> None:
    _execute(Session(), hanging())


@reaches(S.NRT_QUEUE_FULL)
def _queue_full() -> None:
    session = Session()
    gate = threading.Event()
    try:
        for _ in range(64):
            session.runtime.schedule(0, UnitKind.COMPUTE, 0, gate.wait)
    finally:
        gate.set()


@reaches(S.NRT_LOAD_NOT_ENOUGH_NC)
def _not_enough() -> None:
    session = Session({"NEURON_RT_NUM_CORES": "1"})
    session.runtime.load(copying())
    session.runtime.load(copying())


@reaches(S.NRT_UNSUPPORTED_NEFF_VERSION)
def _version() -> None:
    Session().runtime.load(with_header(load_and_store(), neff_version_major=3))


@reaches(S.NRT_FAIL_HOST_MEM_ALLOC)
def _host_memory() -> None:
    session = Session({"NEURONTOOLS_INJECT": "host-memory"})
    session.runtime.allocate(Placement.HOST, -1, 8)


@reaches(S.NRT_UNINITIALIZED)
def _uninitialized() -> None:
    # A Runtime is open from the start; what C calls before nrt_init is the library without one.
    Library(None, None, {}).runtime.core(0)


@reaches(S.NRT_CLOSED)
def _closed() -> None:
    session = Session()
    session.runtime.close()
    session.runtime.load(copying())


@reaches(S.NRT_QUEUE_EMPTY)
def _queue_empty() -> None:
    session = Session()
    session.runtime.streams.read(session.runtime.streams.connect(0))


@reaches(S.NRT_EXEC_UNIT_UNRECOVERABLE)
def _unrecoverable() -> None:
    session = Session()
    model = session.runtime.load(hanging())
    unit = session.runtime.cores[0].unit(UnitKind.COMPUTE, 0)
    for _ in range(2):
        session.runtime.schedule(
            0, UnitKind.COMPUTE, 0, lambda: session.runtime.execute(model, TensorSet(), TensorSet())
        )
        assert unit.wait(20)


@reaches(S.NRT_EXEC_BAD_INPUT)
def _bad_input() -> None:
    session = Session()
    model = session.runtime.load(copying())
    inputs, outputs = session.sets(model)
    inputs.add("x", session.runtime.allocate_empty())
    session.runtime.execute(model, inputs, outputs)


@reaches(S.NRT_EXEC_COMPLETED_WITH_NUM_ERR)
def _numerical() -> None:
    _execute(Session({"NEURON_FAIL_ON_NAN": "1"}), copying(), np.full_like(X, np.nan))


@reaches(S.NRT_EXEC_NC_BUSY)
def _busy() -> None:
    session = Session()
    first, second = session.runtime.load(copying(), 0), session.runtime.load(copying(), 0)
    session.runtime.cores[0].profiled = first
    session.runtime.execute(first, *session.sets(first))
    session.runtime.execute(second, *session.sets(second))


@reaches(S.NRT_EXEC_OOB)
def _oob() -> None:
    _execute(Session(), out_of_bounds())


@reaches(S.NRT_COLL_PENDING)
def _pending() -> None:
    session = Session()
    tensor = session.tensor(X)
    context = CollectiveContext(session.runtime, Communicator((0, 1), 0, 0), [tensor], [tensor], 10, 0, 1)
    context.schedule(0)
    try:
        context.schedule(0)
    finally:
        session.runtime.meetings.close()


_INJECTED = {
    S.NRT_HW_ERROR: "lost-device",
    S.NRT_EXEC_COMPLETED_WITH_ERR: "double-event",
    S.NRT_EXEC_HW_ERR_COLLECTIVES: "collectives-hang",
    S.NRT_EXEC_HW_ERR_HBM_UE: "hbm-ue",
    S.NRT_EXEC_HW_ERR_NC_UE: "sram-ue",
    S.NRT_EXEC_HW_ERR_DMA_ABORT: "dma-abort",
    S.NRT_EXEC_SW_NQ_OVERFLOW: "nq-overflow",
    S.NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE: "hbm-ue-repairable",
    S.NRT_NETWORK_PROXY_FAILURE: "network",
}
for _status, _kind in _INJECTED.items():
    reaches(_status)(lambda kind=_kind: _execute(Session({"NEURONTOOLS_INJECT": kind}), copying()))


def test_the_table_has_every_status_once() -> None:
    assert [row.status for row in REACHED] == list(S)
    assert set(RECIPES) == set(S)


@pytest.mark.parametrize("status", RECIPES, ids=lambda status: status.name)
def test_status(status: S) -> None:
    if status is S.NRT_SUCCESS:
        RECIPES[status]()
        return
    with pytest.raises(StatusError) as caught:
        RECIPES[status]()
    assert caught.value.status is status and str(caught.value).startswith(f"{status.name}({int(status)}): ")


@pytest.mark.parametrize("kind", [kind for kind, each in INJECTIONS.items() if each.fault])
def test_an_injected_fault_leaves_line_counters_and_a_device_that_names_it(kind: str) -> None:
    session = Session({"NEURONTOOLS_INJECT": f"{kind}@0:2"}, collect=True)
    model = session.runtime.load(copying())
    sets = session.sets(model)
    with pytest.raises(StatusError) as caught:
        session.runtime.execute(model, *sets)
    injection = INJECTIONS[kind]
    assert caught.value.status is injection.status
    for counter in counters_of(injection.status):
        assert session.runtime.counters[0, counter] == 1
    facts = {fact.code for line in session.lines for fact, _ in mentions(line)}
    assert str(int(injection.status)) in facts
    assert all(parse_line(line) is not None for line in session.lines)
    (failure,) = session.failures
    assert failure.device.fault is not None and failure.device.fault.message == injection.message
    assert failure.events.total == 3  # two completions, and the fault
    assert bool(session.runtime.kernel_log) == bool(injection.kernel)
    # Once each: the next execution is well.
    session.runtime.execute(model, *sets)


def test_a_fault_waits_for_its_core() -> None:
    session = Session({"NEURONTOOLS_INJECT": "hang@1"})
    for core in (0, 1):
        model = session.runtime.load(copying(), core)
        if core:
            with pytest.raises(StatusError, match="NRT_TIMEOUT"):
                session.runtime.execute(model, *session.sets(model))
        else:
            session.runtime.execute(model, *session.sets(model))


def test_a_fault_that_an_execution_does_not_reach_waits_for_the_next() -> None:
    session = Session({"NEURONTOOLS_INJECT": "dma-abort:9999,sram-ue:1"}, collect=True)
    model = session.runtime.load(copying())
    inputs, outputs = session.sets(model)
    session.runtime.execute(model, inputs, outputs)
    with pytest.raises(StatusError, match="NRT_INVALID"):
        session.runtime.execute(model, TensorSet(), outputs)
    assert {each.injection.kind for each in session.runtime._planned} == {"dma-abort", "sram-ue"}
    outputs.add("y", inputs.get("x"))
    with pytest.raises(StatusError, match="NRT_EXEC_HW_ERR_NC_UE"):
        for _ in range(2):
            session.runtime.execute(model, inputs, outputs)
    assert session.failures[0].inputs == {"x": X.tobytes()}


def test_threads_inject_a_fault_once() -> None:
    session = Session({"NEURONTOOLS_INJECT": "hang", "NEURON_RT_NUM_CORES": "4"})
    statuses: list[S] = []

    def work(core: int) -> None:
        model = session.runtime.load(copying(), core)
        sets = session.sets(model)
        for _ in range(3):
            try:
                session.runtime.execute(model, *sets)
                statuses.append(S.NRT_SUCCESS)
            except StatusError as error:
                statuses.append(error.status)

    threads = [threading.Thread(target=work, args=(core,)) for core in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [S.NRT_SUCCESS] * 11 + [S.NRT_TIMEOUT]
    assert sum(session.runtime.counters[core, "status/success"] for core in range(4)) == 11


def test_out_of_memory_is_injected_at_a_call() -> None:
    session = Session({"NEURONTOOLS_INJECT": "out-of-memory"})
    with pytest.raises(StatusError, match="NRT_RESOURCE"):
        session.runtime.load(copying())
    assert not session.runtime.models and session.used() == 0
    session.runtime.load(copying())


@pytest.mark.parametrize("text", ["nonsense", "hang@", "hang@x", "hang:x", "hang@0:", "hang@99999999999"])
def test_plans_that_are_not_understood(text: str) -> None:
    with pytest.raises(StatusError) as caught:
        Session({"NEURONTOOLS_INJECT": text})
    assert caught.value.status is S.NRT_INVALID


def test_a_plan_in_full() -> None:
    found = read_plan("hang@3:7, sram-ue ,out-of-memory@0")
    assert [(each.injection.kind, each.core, each.after) for each in found] == [
        ("hang", 3, 7),
        ("sram-ue", None, 1),
        ("out-of-memory", 0, 1),
    ]


def test_what_is_no_event_is_not_decoded() -> None:
    from formats.debug_events import DebugEvent, decode_event, encode_event

    event = DebugEvent("x = ", 3, 1, "float32", (2, 2), bytes(range(16)))
    header, payload = encode_event(event)
    assert (len(header), len(payload)) == (64, 1024 + 16) and decode_event(header, payload) == event
    long = encode_event(event._replace(prefix="x" + "\u00e9" * 300))
    assert decode_event(*long).prefix == "x" + "\u00e9" * 255  # whole characters
    for broken in ((header[:-1], payload), (header, payload[:-1]), (bytes(64), payload)):
        with pytest.raises(FormatError):
            decode_event(*broken)
    with pytest.raises(FormatError, match="too many dimensions"):
        encode_event(event._replace(shape=(1,) * 9))
