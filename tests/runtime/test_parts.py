"""Tensors, queues, variables, collectives, streams and traces of a session."""

from __future__ import annotations

import json
import os
import select
import threading
import time

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.runtime.collectives import CollectiveOp, ReduceOp, combine
from emulator.runtime.errors import StatusError
from emulator.runtime.instances import INSTANCES, instance_of
from emulator.runtime.log import Log
from emulator.runtime.queues import DEPTH, QUEUES, SEQUENCE_BITS, ErrorTracker, Unit, UnitKind, unit_id
from emulator.runtime.tensor import Placement, TensorSet
from emulator.runtime.trace import EVENT_TYPES, HARDWARE, TraceConfig, read_filter
from emulator.runtime.variables import VARIABLES, Options, read_cores, variable_of
from formats.debug_events import DebugEvent, decode_event
from formats.dtypes import Dtype
from formats.errors import NotFoundError
from formats.nrt.log import format_line, parse_line
from formats.nrt.status import NrtStatus as S
from tests.nrt.infodumps import parse_infodumps
from tests.runtime.support import Session, X, copying

# --- tensors ---------------------------------------------------------------------------------------------------------


def test_slices_share_bytes_and_keep_them_alive() -> None:
    session = Session()
    runtime = session.runtime
    whole = session.tensor(np.arange(64, dtype=np.uint8))
    part = runtime.slice(whole, 16, 32, "part")
    inner = runtime.slice(part, 8, 8)
    part.fill(7, 8, 8)
    assert inner.get() == bytes([7] * 8) and whole.get(24, 8) == bytes([7] * 8)
    assert inner.address == whole.address + 24 and inner.device_range().address == whole.device_range().address + 24
    used = session.used()
    runtime.free(whole)
    runtime.free(part)
    assert session.used() == used and inner.get() == bytes([7] * 8)
    runtime.free(inner)
    assert session.used() < used
    with pytest.raises(StatusError, match="NRT_INVALID_HANDLE"):
        inner.get()


def test_threads_share_and_drop_one_storage() -> None:
    session = Session()
    whole = session.tensor(np.zeros(64, np.uint8))
    used = session.used()

    def work() -> None:
        for _ in range(300):
            session.runtime.free(session.runtime.slice(whole, 0, 8))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session.used() == used and whole.get() == bytes(64)
    session.runtime.free(whole)
    assert session.used() <= used - 64


@pytest.mark.parametrize(("offset", "size"), [(0, 65), (64, 1), (-1, 1), (1, 64), (1 << 62, 1 << 62)])
def test_bytes_outside_a_tensor(offset: int, size: int) -> None:
    tensor = Session().tensor(np.zeros(64, np.uint8))
    for call in (
        lambda: tensor.span(offset, size),
        lambda: tensor.fill(0, offset, size),
        lambda: tensor.slice("s", offset, size),
        lambda: tensor.copy_to(tensor, size, offset),
    ):
        with pytest.raises(StatusError, match="NRT_INVALID"):
            call()


def test_copies_stay_on_a_core_unless_the_host_has_one_side() -> None:
    session = Session()
    one, other = session.tensor(np.arange(8, dtype=np.uint8)), session.tensor(np.zeros(8, np.uint8), core=1)
    host = session.runtime.allocate(Placement.HOST, -1, 8)
    with pytest.raises(StatusError, match="cores 0 and 1"):
        one.copy_to(other, 8)
    one.copy_to(host, 8)
    host.copy_to(other, 4, 2, 1)
    assert other.get() == bytes([0, 2, 3, 4, 5, 0, 0, 0])
    one.copy_to(one, 6, 0, 2)
    assert one.get() == bytes([0, 1, 0, 1, 2, 3, 4, 5])
    with pytest.raises(StatusError, match="not on a device"):
        host.device_range()


def test_an_empty_tensor_takes_the_callers_bytes() -> None:
    runtime = Session().runtime
    tensor = runtime.allocate_empty("t")
    with pytest.raises(StatusError, match="has no storage"):
        tensor.get()
    mine = np.arange(16, dtype=np.uint8)
    tensor.attach(mine)
    tensor.fill(9, 0, 1)
    assert mine[0] == 9 and tensor.placement is Placement.VIRTUAL
    runtime.free(tensor)
    with pytest.raises(StatusError, match="NRT_INVALID_HANDLE"):
        tensor.attach(mine)


def test_fresh_tensors_are_zero_even_where_one_was_freed() -> None:
    session = Session()
    tensor = session.tensor(np.full(4 << 20, 255, np.uint8))
    session.runtime.free(tensor)
    assert not any(session.runtime.allocate(Placement.DEVICE, 0, 4 << 20).get())


def test_completions_are_counted_per_output() -> None:
    session = Session()
    model = session.runtime.load(copying())
    inputs, outputs = session.sets(model)
    output = outputs.get("y")
    with pytest.raises(StatusError, match="0 of 2 completions"):
        output.wait_for(2, 1000)
    thread = threading.Thread(target=session.runtime.execute, args=(model, inputs, outputs, 2))
    thread.start()
    output.wait_for(2, -1)
    thread.join()
    output.reset_completions()
    with pytest.raises(StatusError, match="NRT_TIMEOUT"):
        output.wait_for(1, 0)


def test_sets_replace_and_refuse() -> None:
    session = Session()
    tensors = TensorSet()
    first, second = session.tensor(X), session.tensor(X)
    tensors.add("x", first)
    tensors.add("x", second)
    assert tensors.get("x") is second
    with pytest.raises(StatusError, match="no tensor 'y'"):
        tensors.get("y")


@pytest.mark.parametrize("size", [0, -1, (1 << 46) + 1])
def test_sizes_that_no_tensor_has(size: int) -> None:
    with pytest.raises(StatusError, match="NRT_INVALID"):
        Session().runtime.allocate(Placement.DEVICE, 0, size)


# --- queues ----------------------------------------------------------------------------------------------------------


def test_numbers_are_ordered_and_name_their_queue() -> None:
    identities = [
        unit_id(core, kind, queue) for core in range(128) for kind in UnitKind for queue in range(QUEUES[kind])
    ]
    assert identities == list(range(len(identities))) and len(identities) < 1 << 16
    unit = Unit(3, UnitKind.COMPUTE, 0)
    done: list[int] = []
    sequences = [unit.schedule(lambda n=n: done.append(n)) for n in range(20)]
    assert unit.wait(10) and done == list(range(20))
    assert sequences == [unit.base + n for n in range(1, 21)] and unit.completed == sequences[-1]
    assert unit.base >> SEQUENCE_BITS == unit_id(3, UnitKind.COMPUTE, 0)
    assert all(map(unit.is_completed, sequences))
    for wrong in (0, unit.base, unit.base + 21):
        with pytest.raises(StatusError, match="was not given out"):
            unit.is_completed(wrong)
    unit.close()


def test_a_full_queue_takes_more_when_one_is_done() -> None:
    gate = threading.Event()
    unit = Unit(0, UnitKind.COLLECTIVES, 2)
    for _ in range(DEPTH):
        unit.schedule(gate.wait)
    with pytest.raises(StatusError, match="NRT_QUEUE_FULL"):
        unit.schedule(gate.wait)
    assert unit.pending == DEPTH
    gate.set()
    assert unit.wait(10)
    unit.schedule(gate.wait)
    unit.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_queue_serves_on_after_an_error_of_any_kind() -> None:
    unit, tracker = Unit(0, UnitKind.TENSOR_OP, 0), ErrorTracker(0)
    first = unit.schedule(lambda: 1 // 0, tracker)
    second = unit.schedule(lambda: None, tracker)
    assert unit.wait(20) and unit.is_completed(second)
    assert tracker.errors == [(first, S.NRT_FAILURE)]
    unit.close()


def test_errors_are_tracked_and_a_fatal_one_ends_the_queue() -> None:
    unit, tracker = Unit(0, UnitKind.COMPUTE, 0), ErrorTracker(0)

    def fails(status: S) -> None:
        raise StatusError(status, "as planned")

    oob = unit.schedule(lambda: fails(S.NRT_EXEC_OOB), tracker)
    good = unit.schedule(lambda: None, tracker)
    hung = unit.schedule(lambda: fails(S.NRT_TIMEOUT), tracker)
    assert unit.wait(10)
    assert tracker.errors == [(oob, S.NRT_EXEC_OOB), (hung, S.NRT_TIMEOUT)]
    assert unit.is_completed(good) and unit.broken
    with pytest.raises(StatusError, match="NRT_EXEC_UNIT_UNRECOVERABLE"):
        unit.schedule(lambda: None)
    unit.close()


def test_a_file_descriptor_becomes_readable() -> None:
    gate = threading.Event()
    unit = Unit(0, UnitKind.TENSOR_OP, 0)
    sequence = unit.schedule(gate.wait)
    file = unit.handle(sequence)
    assert not select.select([file], [], [], 0)[0]
    gate.set()
    assert select.select([file], [], [], 10)[0]
    late = unit.handle(sequence)
    assert select.select([late], [], [], 0)[0]
    os.close(file)
    os.close(late)
    unit.close()
    with pytest.raises(StatusError, match="NRT_CLOSED"):
        unit.schedule(gate.wait)


# --- variables -------------------------------------------------------------------------------------------------------


@given(st.integers(0, 60), st.integers(1, 20))
def test_ranges_of_cores_read_back(first: int, count: int) -> None:
    cores = list(range(first, first + count))
    assert read_cores(",".join(map(str, cores))) == read_cores(f"{first}-{cores[-1]}") == tuple(cores)


@pytest.mark.parametrize("text", ["a", "1,3", "3,2", "2-1", "1,,2", "-1", "0-99999999", "1;2"])
def test_cores_that_are_not_understood(text: str) -> None:
    with pytest.raises(StatusError, match="NEURON_RT_VISIBLE_CORES"):
        Options.of({"NEURON_RT_VISIBLE_CORES": text})


@pytest.mark.parametrize(
    ("environ", "cores", "lnc"),
    [
        ({}, 64, 2),
        ({"NEURON_LOGICAL_NC_CONFIG": "1"}, 128, 1),
        ({"NEURON_RT_VIRTUAL_CORE_SIZE": "1"}, 128, 1),
        ({"NEURON_RT_NUM_CORES": "3"}, 3, 2),
        ({"NEURON_RT_NUM_CORES": "3", "NEURON_RT_VISIBLE_CORES": "8-9"}, 2, 2),
        ({"NEURONTOOLS_INSTANCE_TYPE": "inf2.24xlarge"}, 12, 1),
        ({"NEURON_PLATFORM_TARGET_OVERRIDE": "inf2"}, 24, 1),
        ({"NEURON_PLATFORM_TARGET_OVERRIDE": "Trn1"}, 32, 1),
        ({"NEURON_PLATFORM_TARGET_OVERRIDE": "trn1", "NEURONTOOLS_INSTANCE_TYPE": "trn2.3xlarge"}, 4, 2),
    ],
)
def test_visible_cores(environ: dict[str, str], cores: int, lnc: int) -> None:
    options = Options.of(environ)
    assert (len(options.visible), options.lnc) == (cores, lnc)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NEURON_LOGICAL_NC_CONFIG", "3"),
        ("NEURON_RT_EXEC_TIMEOUT", "soon"),
        ("NEURON_RT_EXEC_TIMEOUT", str(1 << 40)),
        ("NEURON_RT_VALIDATE_HASH", "perhaps"),
        ("NEURON_RT_DEBUG_STREAM_BUFFER_SIZE", "-1"),
    ],
)
def test_values_that_are_not_understood(name: str, value: str) -> None:
    session_lines: list[str] = []
    with pytest.raises(StatusError, match=name) as caught:
        Session({name: value})
    assert caught.value.status is S.NRT_INVALID and not session_lines


def test_more_cores_than_there_are() -> None:
    with pytest.raises(StatusError, match="NRT_RESOURCE"):
        Session({"NEURON_RT_VISIBLE_CORES": "63-64"})


def test_variables_without_effect_are_named_once() -> None:
    environ = {
        "NEURON_RT_LOG_LEVEL": "WARNING",
        "NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS": "3",
        "NEURON_RT_ROOT_COMM_ID": "10.0.0.1:4444",
        "NEURON_RT_VISIBEL_CORES": "0",
        "NEURON_RT_NUM_CORES": "2",
    }
    session = Session(environ)
    assert len(session.lines) == 3 and all(" WARN " in line for line in session.lines)
    assert "NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS is removed" in session.log
    assert "NEURON_RT_VISIBEL_CORES is no variable" in session.log


def test_the_table_of_variables() -> None:
    names = [row.name for row in VARIABLES]
    assert len(names) == len(set(names))
    assert variable_of("NEURON_RT_LOG_LEVEL_TDRV") is not None and variable_of("NEURON_RT_NONSENSE") is None


def test_instances() -> None:
    assert instance_of("TRN2.48xlarge ").cores(2) == 64
    assert INSTANCES["trn1.32xlarge"].place(31, 1) == (15, (1,))
    stacks = [INSTANCES["trn2.48xlarge"].stacks(core, 1)[0].hbm for core in range(8)]
    assert stacks == [0, 0, 1, 1, 2, 2, 3, 3]
    with pytest.raises(NotFoundError, match=r"there are inf2\.xlarge, .*trn1\.2xlarge"):
        instance_of("p5.48xlarge")


# --- log -------------------------------------------------------------------------------------------------------------


def test_levels_and_places_by_module() -> None:
    lines: list[tuple[str, str]] = []
    log = Log(
        {
            "NEURON_RT_LOG_LEVEL": "info",
            "NEURON_RT_LOG_LEVEL_TDRV": "DEBUG",
            "NEURON_RT_LOG_LEVEL_NMGR": "QUIET",
            "NEURON_RT_LOG_LOCATION": "all.log",
            "NEURON_RT_LOG_LOCATION_TDRV": "tdrv.log",
        },
        lambda place, line: lines.append((place, line)),
    )
    log.write("DEBUG", "TDRV", "one", "kept")
    log.write("DEBUG", "NRT", "two", "not kept")
    log.say("NMGR", "three", "not kept")
    log.write("INFO", "NRT", "four", "kept")
    assert [place for place, _ in lines] == ["tdrv.log", "all.log"]
    parsed = parse_line(lines[0][1])
    assert parsed is not None and (parsed.level, parsed.module, parsed.function, parsed.text) == (
        "DEBUG",
        "TDRV",
        "one",
        "kept",
    )
    assert list(log.tail) == [line for _, line in lines]


def test_a_line_is_the_documented_one_to_the_byte() -> None:
    documented = (
        "2025-Sep-19 18:57:20.798030  4444:4444  ERROR  TDRV:exec_wait_round_robin                   "
        "[ND 0][NC 0] Out of bounds access on model file.neff"
    )
    found = parse_line(documented)
    assert found is not None
    assert format_line(*found[1:]) == documented


def test_the_block_reads_back() -> None:
    lines: list[str] = []
    log = Log({}, lambda place, line: lines.append(line))
    log.infodump({"Failure": "NRT_EXEC_OOB in nrt_execute()", "LNC": "0"}, {"NEURON_RT_NUM_CORES": "2"})
    (block,) = parse_infodumps(lines)
    assert (block.whole, block.status, block.call) == (True, "NRT_EXEC_OOB", "nrt_execute")
    assert block.environment == {"NEURON_RT_NUM_CORES": "2"}


# --- collectives -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", list(CollectiveOp))
@pytest.mark.parametrize("reduce", [ReduceOp.ADD, ReduceOp.MAX, ReduceOp.MIN])
def test_collectives_agree_with_numpy(op: CollectiveOp, reduce: ReduceOp) -> None:
    session = Session()
    arrays = [np.random.default_rng(rank).integers(-99, 99, 24).astype(np.int32) for rank in range(4)]
    total = {ReduceOp.ADD: np.sum, ReduceOp.MAX: np.max, ReduceOp.MIN: np.min}[reduce](arrays, axis=0).astype(np.int32)
    sizes = {CollectiveOp.ALLGATHER: 4 * 96, CollectiveOp.ALLREDUCE: 96, CollectiveOp.REDUCESCATTER: 24}
    outputs = [session.runtime.allocate(Placement.DEVICE, 0, sizes[op]) for _ in arrays]
    combine(op, reduce, 8, [([session.tensor(array)], [output]) for array, output in zip(arrays, outputs, strict=True)])
    for rank, output in enumerate(outputs):
        expected = {
            CollectiveOp.ALLGATHER: np.concatenate(arrays),
            CollectiveOp.ALLREDUCE: total,
            CollectiveOp.REDUCESCATTER: total[6 * rank : 6 * rank + 6],
        }[op]
        assert output.get() == expected.tobytes()


def test_collectives_that_do_not_fit() -> None:
    session = Session()
    one, two = session.tensor(np.zeros(3, np.float32)), session.tensor(np.zeros(4, np.float32))
    for op, reduce, dtype, parts in (
        (CollectiveOp.ALLREDUCE, ReduceOp.ADD, 10, [([one], [one]), ([two], [two])]),
        (CollectiveOp.ALLREDUCE, ReduceOp.FMA, 10, [([one], [one])]),
        (CollectiveOp.ALLREDUCE, ReduceOp.ADD, 99, [([one], [one])]),
        (CollectiveOp.REDUCESCATTER, ReduceOp.ADD, 10, [([one], [one]), ([one], [one])]),
        (CollectiveOp.ALLGATHER, ReduceOp.ADD, 10, [([one], [two])]),
        (CollectiveOp.ALLGATHER, ReduceOp.ADD, 10, [([one], [one]), ([], [one])]),
    ):
        with pytest.raises(StatusError, match="NRT_INVALID"):
            combine(op, reduce, dtype, parts)


def test_outputs_that_do_not_fit_leave_those_that_do_as_they_are() -> None:
    session = Session()
    given = [session.tensor(np.full(3, rank + 1.0, np.float32)) for rank in range(2)]
    good, bad = session.tensor(np.zeros(3, np.float32)), session.tensor(np.zeros(4, np.float32))
    with pytest.raises(StatusError, match="outputs of 16 bytes"):
        combine(CollectiveOp.ALLREDUCE, ReduceOp.ADD, 10, [([given[0]], [good]), ([given[1]], [bad])])
    assert not np.frombuffer(good.get(), np.float32).any()


def test_narrow_floats_are_summed_as_cc_cores_do_it() -> None:
    session = Session()
    parts = [np.full(4, value, ml_dtypes.bfloat16) for value in (256.0, 1.0, 1.0)]  # 257 is no bfloat16
    output = session.runtime.allocate(Placement.DEVICE, 0, 8)
    outputs = [output, *(session.runtime.allocate(Placement.DEVICE, 0, 8) for _ in parts[1:])]
    combine(CollectiveOp.ALLREDUCE, ReduceOp.ADD, int(Dtype.BFLOAT16),
            [([session.tensor(part)], [each]) for part, each in zip(parts, outputs, strict=True)])  # fmt: skip
    assert (np.frombuffer(output.get(), ml_dtypes.bfloat16).astype(np.float32) == 258).all()


def test_a_queue_that_is_closed_keeps_nobody_waiting() -> None:
    unit, gate = Unit(0, UnitKind.COMPUTE, 0), threading.Event()
    unit.schedule(gate.wait)
    unit.schedule(lambda: None)  # given up when the queue is closed
    found: list[bool] = []
    waiting = threading.Thread(target=lambda: found.append(unit.wait()))
    waiting.start()
    threading.Timer(0.05, gate.set).start()
    unit.close()
    waiting.join(20)
    assert found == [False]


def test_nobody_waits_for_work_that_failed() -> None:
    meetings, errors = Session().runtime.meetings, []

    def come(rank: int) -> None:
        try:
            meetings.meet("group", rank, 2, None, lambda parts: 1 // 0, 20)
        except (StatusError, ZeroDivisionError) as error:
            errors.append(error)

    threads = [threading.Thread(target=come, args=(rank,)) for rank in range(2)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - started < 10
    assert {type(error) for error in errors} == {StatusError, ZeroDivisionError}


def test_who_does_not_come_is_named() -> None:
    runtime = Session().runtime
    with pytest.raises(StatusError, match=r"ranks that did not come: \[1, 2\]") as caught:
        runtime.meetings.meet("barrier", 0, 3, None, lambda parts: None, 0.01)
    assert caught.value.status is S.NRT_EXEC_HW_ERR_COLLECTIVES
    met: list[int] = []

    def come(rank: int) -> None:
        runtime.meetings.meet("barrier", rank, 3, rank, lambda parts: met.append(len(parts)), 10)

    threads = [threading.Thread(target=come, args=(rank,)) for rank in range(3) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == [3, 3, 3, 3]


# --- streams and traces ----------------------------------------------------------------------------------------------


def test_a_stream_has_one_client_and_drops_what_does_not_fit() -> None:
    streams = Session({"NEURON_RT_DEBUG_STREAM_BUFFER_SIZE": "2"}).runtime.streams
    event = DebugEvent("x", 0, 1, "int32", (1,), b"\1\0\0\0")
    assert not streams.push(event)
    file = streams.connect(0)
    with pytest.raises(StatusError, match="NRT_INVALID"):
        streams.connect(0)
    assert not select.select([file], [], [], 0)[0]
    assert [streams.push(event._replace(prefix=str(n))) for n in range(3)] == [True, True, False]
    assert select.select([file], [], [], 0)[0]
    assert [decode_event(*streams.read(file)).prefix for _ in range(2)] == ["0", "1"]
    with pytest.raises(StatusError, match="NRT_QUEUE_EMPTY"):
        streams.read(file)
    streams.close(file)
    with pytest.raises(StatusError, match="NRT_INVALID_HANDLE"):
        streams.read(file)


def test_a_trace_has_a_pair_for_each_execution_and_is_read_once() -> None:
    session = Session()
    runtime = session.runtime
    model = runtime.load(copying())
    sets = session.sets(model)
    runtime.execute(model, *sets)
    config = TraceConfig()
    config.cores[0] = True
    config.kinds = {"nc_exec_running"}
    runtime.watching.start_trace(config)
    runtime.execute(model, *sets, repeat=3)
    assert runtime.watching.trace is not None
    events = json.loads(runtime.watching.trace.fetch())["events"]
    assert [each["phase"] for each in events] == ["start", "stop"] * 3
    times = [each["data"]["nc_timestamp_ns"] for each in events]
    assert times == sorted(times) and all(stop > start for start, stop in zip(times[::2], times[1::2], strict=True))
    assert len({each["tracking_id"] for each in events}) == 3
    assert json.loads(runtime.watching.trace.fetch()) == {"events": []}
    with pytest.raises(StatusError, match="under way"):
        runtime.watching.start_trace(config)
    runtime.watching.stop_trace()
    with pytest.raises(StatusError, match="no system trace"):
        runtime.watching.stop_trace()


def test_filters_of_events() -> None:
    assert read_filter("hardware") == set(HARDWARE)
    assert read_filter("^nrt_load") == set(EVENT_TYPES) - {"nrt_load"}
    assert read_filter("hardware,^cc_exec") == set(HARDWARE) - {"cc_exec_barrier"}
    assert read_filter("nrt_execute,software") == set(EVENT_TYPES) - set(HARDWARE)
    ring = TraceConfig()
    ring.cores = {1: True}
    assert ring.wants(1, "nrt_load") and not ring.wants(0, "nrt_load")
    with pytest.raises(ValueError, match="no event 'x'"):
        read_filter("x")
