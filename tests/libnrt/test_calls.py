"""The library through C: what calls give, what they refuse, that nothing is left over."""

from __future__ import annotations

import ctypes
import json
import os
import select
import threading
from ctypes import byref, c_bool, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p, create_string_buffer
from pathlib import Path

import numpy as np
import pytest

from emulator.runtime.reached import REACHED
from formats.debug_events import decode_event
from formats.nrt.status import NrtStatus as S
from neurontools.libnrt.functions import FUNCTIONS
from tests.emulator.dma_programs import load_and_store
from tests.libnrt.client import Client
from tests.runtime.support import X, copying, hanging, out_of_bounds, printing, with_header

SIZE = X.nbytes


def _sets(client: Client, x: np.ndarray = X) -> tuple[c_void_p, c_void_p, c_void_p]:
    output = client.tensor(size=SIZE)
    return client.set_of(x=client.tensor(x.tobytes())), client.set_of(y=output), output


def test_an_execution_from_load_to_unload(client: Client) -> None:
    client.init()
    before = client.used()
    model = client.load(copying())
    inputs, outputs, y = _sets(client)
    client.good("nrt_execute", model, inputs, outputs)
    assert client.read(y, SIZE) == X.tobytes()
    client.good("nrt_execute_repeat", model, inputs, outputs, 2)
    client.lib.nrt_destroy_tensor_set(byref(outputs))
    assert outputs.value is None
    client.good("nrt_unload", model)
    client.lib.nrt_tensor_free(byref(y))
    assert y.value is None and client.used() == before + SIZE
    assert client.call("nrt_execute", model, inputs, inputs) is S.NRT_INVALID_HANDLE


def test_what_a_model_says_of_its_tensors(client: Client) -> None:
    client.init()
    model = client.load(load_and_store(dtype="bfloat16").to_bytes())
    array = client.handle("nrt_get_model_tensor_info", model)
    raw = ctypes.string_at(array.value, 8 + 2 * 296)
    assert int.from_bytes(raw[:8], "little") == 2
    for index, (name, usage) in enumerate(((b"x", 0), (b"y", 1))):
        entry = raw[8 + 296 * index :]
        assert entry[:256].rstrip(b"\0") == name
        assert int.from_bytes(entry[256:260], "little") == usage
        assert int.from_bytes(entry[264:272], "little") == 128 * 64 * 2
        assert int.from_bytes(entry[272:276], "little") == 6
        shape = int.from_bytes(entry[280:288], "little")
        dimensions = int.from_bytes(entry[288:292], "little")
        assert list((c_uint32 * dimensions).from_address(shape)) == [128, 64]
    client.good("nrt_free_model_tensor_info", array)
    assert client.call("nrt_free_model_tensor_info", array) is S.NRT_INVALID_HANDLE


def test_counts_work_before_the_session(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    count = c_uint32()
    client.good("nrt_get_visible_nc_count", byref(count))
    assert count.value == 64
    monkeypatch.setenv("NEURON_RT_VISIBLE_CORES", "4-6")
    client.good("nrt_get_visible_vnc_count", byref(count))
    assert count.value == 3
    client.good("nrt_get_total_vnc_count", byref(count))
    assert count.value == 64
    monkeypatch.setenv("NEURON_RT_VISIBLE_CORES", "4,6")
    assert client.call("nrt_get_visible_nc_count", byref(count)) is S.NRT_INVALID
    info = create_string_buffer(32)
    client.good("nrt_get_instance_info", info, 32)
    assert info.raw[:4] == (5).to_bytes(4, "little") and info.raw[8:12] == b"Trn2"
    version = create_string_buffer(224)
    client.good("nrt_get_version", version, 224)
    assert version.raw[0] == 2 and b"neurontools" in version.raw
    assert [client.lib.nrt_get_status_as_str(int(status)) for status in S] == [status.name.encode() for status in S]
    assert client.lib.nrt_get_status_as_str(8) == b"NRT_UNKNOWN"


def test_no_handle_is_followed(client: Client) -> None:
    """Every function with a handle gets one that is none; NULL, small, huge and of another kind."""
    client.init()
    model, tensor = client.load(copying()), client.tensor(b"12345678")
    handles = {"nrt_model_t", "nrt_tensor_t", "nrt_tensor_set_t", "nrt_cc_context_t", "nrta_error_tracker_t",
               "nrt_inspect_config_t", "nrt_sys_trace_config_t", "nrt_profile_continuous_options_t",
               "nrt_sys_trace_fetch_options_t"}  # fmt: skip
    room = create_string_buffer(4096)
    tried = 0
    for function in FUNCTIONS:
        kinds = [each.type.replace("const ", "").rstrip(" *") for each in function.parameters]
        single = [kind in handles and each.type.count("*") == 1 for kind, each in
                  zip(kinds, function.parameters, strict=True)]  # fmt: skip
        if not any(single) or function.missing or function.name == "nrta_tensor_read":
            continue
        for wrong in (
            0,
            1,
            0x7FFFFFFFFFF0,
            ctypes.addressof(room),
            (tensor if "model_t" in str(kinds) else model).value,
        ):
            arguments = [
                wrong if is_handle else ctypes.addressof(room) if "*" in each.type and each.type != "const char *"
                else b"x" if each.type == "const char *" else 0
                for each, is_handle in zip(function.parameters, single, strict=True)
            ]  # fmt: skip
            answer = getattr(client.lib, function.name)(*arguments)
            if function.returns == "NRT_STATUS":
                allowed = {S.NRT_INVALID_HANDLE, S.NRT_INVALID}
                if wrong == 0 and function.name in ("nrt_sys_trace_start", "nrt_inspect_begin_with_options"):
                    allowed.add(S.NRT_SUCCESS)  # NULL means the usual options
                if wrong == 0 and function.name == "nrt_sys_trace_fetch_events":
                    allowed.add(S.NRT_SUCCESS)
                assert S(answer) in allowed, (function.name, wrong, S(answer))
            tried += 1
    assert tried > 200


def test_null_pointers_are_refused(client: Client) -> None:
    client.init()
    model, tensor = client.load(copying()), client.tensor(b"12345678")
    for name, arguments in (
        ("nrt_load", (None, 8, 0, 1, None)),
        ("nrt_load", (copying(), 8, 0, 1, None)),
        ("nrt_tensor_allocate", (0, 0, 8, b"t", None)),
        ("nrt_tensor_read", (tensor, None, 0, 8)),
        ("nrt_tensor_write", (tensor, None, 0, 8)),
        ("nrt_get_model_tensor_info", (model, None)),
        ("nrt_allocate_tensor_set", (None,)),
        ("nrt_tensor_attach_buffer", (tensor, None, 8)),
        ("nrt_tensor_check_output_completion", (None, 0, 0)),
        ("nrta_cc_prepare", (None, None, None, 0, 0, 0, None)),
        ("nrt_sys_trace_fetch_events", (None, None, None)),
    ):
        assert client.call(name, *arguments) is S.NRT_INVALID, name
    client.lib.nrt_tensor_free(None)
    client.lib.nrt_destroy_tensor_set(None)
    client.lib.nrt_sys_trace_buffer_free(None)


def test_tensors(client: Client) -> None:
    client.init()
    tensor = client.tensor(bytes(range(64)))
    assert client.lib.nrt_tensor_get_size(tensor) == 64
    part = client.handle("nrt_tensor_allocate_slice", tensor, 8, 16, b"part")
    client.good("nrt_tensor_memset", part, 4, 0x1FF, 2)
    assert client.read(tensor, 64)[8:24] == bytes([8, 9, 10, 11, 255, 255, *range(14, 24)])
    client.good("nrt_tensor_copy", part, 0, tensor, 32, 16)
    assert client.read(tensor, 64)[32:48] == client.read(part, 16)
    address = client.lib.nrt_tensor_get_va(part)
    assert ctypes.string_at(address, 4) == bytes([8, 9, 10, 11])
    client.good("nrt_memcpy_to_device", address, b"abcd", 4)
    assert client.read(part, 4) == b"abcd"
    assert client.call("nrt_memcpy_to_device", 64, b"abcd", 4) is S.NRT_INVALID
    info = (c_uint64 * 3)()
    client.good("nrt_tensor_get_device_allocation_info", part, info)
    assert info[0] % 4096 == 8 and info[1] >= 64 and info[2] & 0xFFFFFFFF == 0
    mine = create_string_buffer(b"mine", 4)
    empty = client.handle("nrt_tensor_allocate_empty", b"e")
    client.good("nrt_tensor_attach_buffer", empty, mine, 4)
    client.good("nrt_tensor_write", empty, b"X", 0, 1)
    assert mine.raw == b"Xine"
    for size in (65, 1 << 63):
        assert client.call("nrt_tensor_read", tensor, mine, 0, size) is S.NRT_INVALID
    assert client.lib.nrt_tensor_get_va(1) is None


class _Op(ctypes.Structure):
    _fields_ = (("offset", c_uint64), ("size", c_uint64), ("buffer", c_void_p))


class _Batch(ctypes.Structure):
    _fields_ = (("tensor", c_void_p), ("ops", ctypes.POINTER(_Op)), ("num_ops", c_uint32))


def test_a_batch_is_what_its_operations_are_one_by_one(client: Client) -> None:
    client.init()
    tensors = [client.tensor(bytes([n] * 32)) for n in range(3)]
    given = [create_string_buffer(os.urandom(8), 8) for _ in range(6)]
    ops = (_Op * 6)(*(_Op(4 * n, 8, ctypes.addressof(buffer)) for n, buffer in enumerate(given)))
    batches = (_Batch * 3)(*(
        _Batch(tensor, ctypes.cast(ctypes.byref(ops, 2 * n * ctypes.sizeof(_Op)), ctypes.POINTER(_Op)), 2)
        for n, tensor in enumerate(tensors)
    ))  # fmt: skip
    client.good("nrt_tensor_write_batch", batches, 3, False)
    expected = []
    for n in range(3):
        data = bytearray([n] * 32)
        for op in (2 * n, 2 * n + 1):
            data[4 * op : 4 * op + 8] = given[op].raw
        expected.append(bytes(data))
    assert [client.read(tensor, 32) for tensor in tensors] == expected
    for buffer in given:
        ctypes.memset(buffer, 0, 8)
    client.good("nrt_tensor_read_batch", batches, 3, True)
    assert [given[n].raw for n in range(6)] == [expected[n // 2][4 * n : 4 * n + 8] for n in range(6)]
    ops[5].offset = 25
    before = [client.read(tensor, 32) for tensor in tensors]
    assert client.call("nrt_tensor_write_batch", batches, 3, False) is S.NRT_INVALID
    assert [client.read(tensor, 32) for tensor in tensors] == before


def test_queues_and_completions(client: Client) -> None:
    client.init()
    model = client.load(copying())
    inputs, outputs, y = _sets(client)
    tracker = client.handle("nrta_error_tracker_create", 0)
    sequences = []
    for _ in range(3):
        sequence = c_uint64()
        client.good("nrta_execute_schedule", model, inputs, outputs, 0, tracker, byref(sequence))
        sequences.append(sequence.value)
    assert sequences == list(range(sequences[0], sequences[0] + 3))
    file, done, last = c_int(), c_bool(), c_uint64()
    client.good("nrta_get_completion_handle", sequences[-1], byref(file))
    assert select.select([file.value], [], [], 30)[0]
    os.close(file.value)
    client.good("nrta_is_completed", sequences[-1], byref(done))
    client.good("nrta_get_sequence", 0, 3, 0, byref(last))
    assert done.value and last.value == sequences[-1]
    client.good("nrt_tensor_check_output_completion", y, 0, 3)
    errors, count = c_void_p(), c_size_t(9)
    client.good("nrta_error_tracker_get_list", tracker, byref(errors), byref(count))
    assert count.value == 0
    hung = client.load(hanging())
    nothing = client.set_of()
    client.good("nrta_execute_schedule", hung, nothing, nothing, 0, tracker, byref(last))
    client.good("nrt_async_drain_queued_execs", 0)
    client.good("nrta_error_tracker_get_list", tracker, byref(errors), byref(count))
    assert list((c_uint64 * 2).from_address(errors.value)) == [last.value, int(S.NRT_TIMEOUT)] and count.value == 1
    assert (
        client.call("nrta_execute_schedule", model, inputs, outputs, 0, tracker, byref(last))
        is S.NRT_EXEC_UNIT_UNRECOVERABLE
    )
    client.lib.nrta_error_tracker_destroy(tracker)
    assert client.call("nrta_error_tracker_get_list", tracker, byref(errors), byref(count)) is S.NRT_INVALID_HANDLE
    assert client.call("nrta_is_completed", 0xFFFF << 48, byref(done)) is S.NRT_INVALID
    assert client.call("nrta_get_sequence", 0, 5, 0, byref(last)) is S.NRT_INVALID
    assert client.call("nrta_get_sequence", 0, 3, 1, byref(last)) is S.NRT_INVALID


def test_transfers_in_queues(client: Client) -> None:
    client.init()
    tensor, other = client.tensor(size=64), client.tensor(size=64)
    source, target, sequence = create_string_buffer(os.urandom(64), 64), create_string_buffer(64), c_uint64()
    for name, arguments in (
        ("nrta_tensor_write", (tensor, source, 0, 64, 0)),
        ("nrta_tensor_copy", (tensor, 0, other, 0, 64, 1)),
        ("nrta_tensor_read", (target, other, 0, 64, 1)),
    ):
        client.good(name, *arguments, None, byref(sequence))
        client.good("nrt_async_drain_queued_execs", 0)
    assert target.raw == source.raw
    assert client.call("nrta_tensor_write", tensor, source, 1, 64, 0, None, byref(sequence)) is S.NRT_INVALID
    assert client.call("nrta_tensor_write", tensor, source, 0, 64, 2, None, byref(sequence)) is S.NRT_INVALID
    # What the guide's programs pass for a tracker is none, and nothing is written there.
    status = c_int(-7)
    wrong = client.call("nrta_tensor_write", tensor, source, 0, 64, 0, byref(status), byref(sequence))
    assert wrong is S.NRT_INVALID_HANDLE and status.value == -7


class _Comm(ctypes.Structure):
    _fields_ = (
        ("group", c_void_p), ("rank", c_uint32), ("rank_n", c_uint32), ("device", c_uint32), ("devices", c_uint32),
        ("vnc", c_uint32),
    )  # fmt: skip


class _List(ctypes.Structure):
    _fields_ = (("tensors", c_void_p), ("count", c_size_t))


def test_collectives_of_the_host(client: Client) -> None:
    client.init()
    group = (c_uint32 * 2)(0, 1)
    contexts, outputs, keep = [], [], []
    for rank in range(2):
        data = (np.arange(4, dtype=np.float32) * (rank + 1)).tobytes()
        given, made = client.tensor(data, core=rank), client.tensor(size=16, core=rank)
        lists = [_List(ctypes.addressof(array), 1) for array in ((c_void_p * 1)(given), (c_void_p * 1)(made))]
        arrays = [(c_void_p * 1)(given), (c_void_p * 1)(made)]
        lists = [_List(ctypes.addressof(array), 1) for array in arrays]
        comm = _Comm(ctypes.addressof(group), rank, 2, rank, 2, rank)
        contexts.append(client.handle("nrta_cc_prepare", byref(comm), byref(lists[0]), byref(lists[1]), 10, 0, 1))
        outputs.append(made)
        keep.append((arrays, comm))
    sequence = c_uint64()
    client.good("nrta_cc_schedule", byref(contexts[0]), 0, None, byref(sequence))
    assert client.call("nrta_cc_schedule", byref(contexts[0]), 0, None, byref(sequence)) is S.NRT_COLL_PENDING
    client.good("nrta_cc_schedule", byref(contexts[1]), 0, None, byref(sequence))
    for core in range(2):
        client.good("nrt_async_drain_queued_execs", core)
    for output in outputs:
        assert np.frombuffer(client.read(output, 16), np.float32).tolist() == [0, 3, 6, 9]
    assert client.call("nrta_cc_schedule", byref(contexts[0]), 0, None, byref(sequence)) is S.NRT_INVALID_HANDLE
    results = {}

    def rank(number: int) -> None:
        mine, whole = create_string_buffer(bytes([number] * 4), 4), create_string_buffer(12)
        client.good("nrt_barrier", number, number, 3)
        client.good("nrt_all_gather", number, number, 3, 4, mine, whole)
        results[number] = whole.raw

    threads = [threading.Thread(target=rank, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(results.values()) == {bytes([0] * 4 + [1] * 4 + [2] * 4)} and len(results) == 3


def test_traces(client: Client) -> None:
    client.init()
    config = client.handle("nrt_sys_trace_config_allocate")
    client.lib.nrt_sys_trace_config_set_capture_enabled_for_nc(config, 0, True)
    names, count = ctypes.POINTER(c_char_p)(), c_size_t()
    client.good("nrt_sys_trace_get_event_types", byref(names), byref(count))
    kinds = [names[n] for n in range(count.value)]
    assert b"nc_exec_running" in kinds
    for kind in kinds:
        client.good("nrt_sys_trace_config_set_capture_enabled_for_event_type", config, kind, kind == b"nc_exec_running")
    assert (
        client.call("nrt_sys_trace_config_set_capture_enabled_for_event_type", config, b"nonsense", True)
        is S.NRT_INVALID
    )
    client.lib.nrt_sys_trace_free_event_types(names, count)
    client.good("nrt_sys_trace_start", config)
    client.lib.nrt_sys_trace_config_free(config)
    model = client.load(copying())
    inputs, outputs, _ = _sets(client)
    client.good("nrt_execute", model, inputs, outputs)
    options = client.handle("nrt_sys_trace_fetch_options_allocate")
    client.lib.nrt_sys_trace_fetch_options_set_nc_idx(options, 0)
    for expected in (["start", "stop"], []):
        buffer, size = c_void_p(), c_size_t()
        client.good("nrt_sys_trace_fetch_events", byref(buffer), byref(size), options)
        text = ctypes.string_at(buffer.value)
        assert len(text) == size.value
        assert [each["phase"] for each in json.loads(text)["events"]] == expected
        client.lib.nrt_sys_trace_buffer_free(buffer)
    client.good("nrt_sys_trace_stop")
    assert client.call("nrt_sys_trace_stop") is S.NRT_INVALID


def test_options_of_captures_are_kept(client: Client) -> None:
    client.init()
    config = client.handle("nrt_inspect_config_allocate")
    names, count = ctypes.POINTER(c_char_p)(), c_size_t()

    def enabled() -> list[bytes]:
        client.good("nrt_inspect_config_get_enabled_activity_types", config, byref(names), byref(count))
        found = [names[n] for n in range(count.value)]
        client.lib.nrt_inspect_config_free_activity_types(names, count)
        return found

    assert len(enabled()) == 4
    client.good("nrt_inspect_config_set_activity", config, b"all", False)
    client.good("nrt_inspect_config_set_activity", config, b"cpu_util", True)
    assert enabled() == [b"cpu_util"]
    client.good("nrt_inspect_config_set_defaults", config)
    assert len(enabled()) == 4
    assert client.call("nrt_inspect_config_set_activity", config, b"nonsense", True) is S.NRT_INVALID
    assert client.call("nrt_inspect_config_set_output_dir", config, b"") is S.NRT_INVALID
    assert client.call("nrt_inspect_config_set_sys_trace_max_events_per_nc", config, 0) is S.NRT_INVALID
    client.good("nrt_inspect_config_free", config)


def test_prints_arrive_in_the_stream(client: Client) -> None:
    client.init()
    file = c_int()
    client.good("nrt_debug_client_connect", 0, byref(file))
    assert client.call("nrt_debug_client_connect", 0, byref(c_int())) is S.NRT_INVALID
    model = client.load(printing())
    inputs, outputs = client.set_of(x=client.tensor(X.tobytes())), client.set_of()
    client.good("nrt_execute", model, inputs, outputs)
    assert select.select([file.value], [], [], 0)[0]
    header, payload = create_string_buffer(64), c_void_p()
    client.good("nrt_debug_client_read_one_event", file, header, byref(payload))
    size = int.from_bytes(header.raw[:8], "little")
    event = decode_event(header.raw, ctypes.string_at(payload.value, size))
    assert (event.prefix, event.core, event.dtype, event.shape) == ("x is", 0, "float32", (128, 64))
    assert event.data == X.tobytes()
    ctypes.CDLL(None).free(payload)
    assert client.call("nrt_debug_client_read_one_event", file, header, byref(payload)) is S.NRT_QUEUE_EMPTY
    client.lib.nrt_debug_client_connect_close(file)
    assert client.call("nrt_debug_client_read_one_event", file, header, byref(payload)) is S.NRT_INVALID_HANDLE


@pytest.mark.parametrize("function", [each for each in FUNCTIONS if each.missing], ids=lambda each: each.name)
def test_what_is_missing_says_so_once(client: Client, function, capfd: pytest.CaptureFixture) -> None:
    client.init()
    arguments = [None if "*" in each.type else 0 for each in function.parameters]
    for _ in range(2):
        answer = getattr(client.lib, function.name)(*arguments)
        assert answer == (int(function.status) if function.returns == "NRT_STATUS" else None)
    said = capfd.readouterr().err.count(f"{function.name} is not supported: {function.missing}")
    assert said <= 1  # the process may have said so before


# --- statuses --------------------------------------------------------------------------------------------------------


def _ran(client: Client, data: bytes, x: np.ndarray = X, **environ: str) -> S:
    os.environ.update(environ)
    try:
        client.init()
    finally:
        for name in environ:
            del os.environ[name]
    model = client.load(data)
    names = {"x": client.tensor(x.tobytes())} if data != hanging() else {}
    outputs = {"y": client.tensor(size=SIZE)} if data == copying() or environ else {}
    return client.call("nrt_execute", model, client.set_of(**names), client.set_of(**outputs))


def _injected(kind: str):
    return lambda client: _ran(client, copying(), NEURONTOOLS_INJECT=kind)


def _load_status(data: bytes, **environ: str):
    def reach(client: Client) -> S:
        os.environ.update(environ)
        try:
            client.init()
        finally:
            for name in environ:
                del os.environ[name]
        return client.call("nrt_load", data, len(data), 0, 1, byref(c_void_p()))

    return reach


def _queue_full(client: Client) -> S:
    client.init()
    group = (c_uint32 * 2)(0, 1)
    arrays = (c_void_p * 1)(client.tensor(size=16))
    tensors, sequence = _List(ctypes.addressof(arrays), 1), c_uint64()
    comm = _Comm(ctypes.addressof(group), 0, 2, 0, 2, 0)
    status = S.NRT_SUCCESS
    for _ in range(64):  # the other rank never comes, so the first blocks the queue
        context = client.handle("nrta_cc_prepare", byref(comm), byref(tensors), byref(tensors), 10, 0, 1)
        status = client.call("nrta_cc_schedule", byref(context), 2, None, byref(sequence))
    return status


def _pending(client: Client) -> S:
    client.init()
    group = (c_uint32 * 2)(0, 1)
    arrays = (c_void_p * 1)(client.tensor(size=16))
    tensors, sequence = _List(ctypes.addressof(arrays), 1), c_uint64()
    comm = _Comm(ctypes.addressof(group), 0, 2, 0, 2, 0)
    context = client.handle("nrta_cc_prepare", byref(comm), byref(tensors), byref(tensors), 10, 0, 1)
    client.good("nrta_cc_schedule", byref(context), 0, None, byref(sequence))
    return client.call("nrta_cc_schedule", byref(context), 0, None, byref(sequence))


def _unrecoverable(client: Client) -> S:
    client.init()
    model, nothing, sequence = client.load(hanging()), client.set_of(), c_uint64()
    client.good("nrta_execute_schedule", model, nothing, nothing, 0, None, byref(sequence))
    client.good("nrt_async_drain_queued_execs", 0)
    return client.call("nrta_execute_schedule", model, nothing, nothing, 0, None, byref(sequence))


def _busy(client: Client) -> S:
    client.init()
    first, second = client.load(copying()), client.load(copying())
    client.good("nrt_profile_start", first, b"/dev/null")
    inputs, outputs, _ = _sets(client)
    client.good("nrt_execute", first, inputs, outputs)
    status = client.call("nrt_execute", second, inputs, outputs)
    client.good("nrt_profile_stop", b"/dev/null")
    client.good("nrt_execute", second, inputs, outputs)
    return status


def _bad_input(client: Client) -> S:
    client.init()
    model = client.load(copying())
    _, outputs, _ = _sets(client)
    return client.call("nrt_execute", model, client.set_of(x=client.handle("nrt_tensor_allocate_empty", b"x")), outputs)


def _queue_empty(client: Client) -> S:
    client.init()
    file = c_int()
    client.good("nrt_debug_client_connect", 1, byref(file))
    return client.call("nrt_debug_client_read_one_event", file, create_string_buffer(64), byref(c_void_p()))


def _resource(client: Client) -> S:
    client.init()
    return [client.call("nrt_tensor_allocate", 0, 0, 20 << 30, None, byref(c_void_p())) for _ in range(2)][-1]


def _host_memory(client: Client) -> S:
    os.environ["NEURONTOOLS_INJECT"] = "host-memory"
    try:
        client.init()
    finally:
        del os.environ["NEURONTOOLS_INJECT"]
    return client.call("nrt_tensor_allocate", 1, -1, 8, None, byref(c_void_p()))


def _not_enough(client: Client) -> S:
    client.init()
    return client.call("nrt_load", copying(), len(copying()), 64, 1, byref(c_void_p()))


def _closed(client: Client) -> S:
    client.init()
    client.lib.nrt_close()
    return client.call("nrt_load", copying(), len(copying()), 0, 1, byref(c_void_p()))


def _invalid_handle(client: Client) -> S:
    client.init()
    model = client.load(copying())
    client.good("nrt_unload", model)
    return client.call("nrt_unload", model)


RECIPES = {
    S.NRT_SUCCESS: lambda client: _ran(client, copying()),
    S.NRT_FAILURE: _load_status(copying(), NEURONTOOLS_INSTANCE_TYPE="trn1.2xlarge"),
    S.NRT_INVALID: _load_status(b"nothing" * 400),
    S.NRT_INVALID_HANDLE: _invalid_handle,
    S.NRT_RESOURCE: _resource,
    S.NRT_TIMEOUT: lambda client: _ran(client, hanging()),
    S.NRT_HW_ERROR: _injected("lost-device"),
    S.NRT_QUEUE_FULL: _queue_full,
    S.NRT_LOAD_NOT_ENOUGH_NC: _not_enough,
    S.NRT_UNSUPPORTED_NEFF_VERSION: _load_status(with_header(load_and_store(), neff_version_major=7)),
    S.NRT_FAIL_HOST_MEM_ALLOC: _host_memory,
    S.NRT_CLOSED: _closed,
    S.NRT_QUEUE_EMPTY: _queue_empty,
    S.NRT_EXEC_UNIT_UNRECOVERABLE: _unrecoverable,
    S.NRT_EXEC_BAD_INPUT: _bad_input,
    S.NRT_EXEC_COMPLETED_WITH_NUM_ERR: lambda client: _ran(
        client, copying(), np.full_like(X, np.nan), NEURON_FAIL_ON_NAN="1"
    ),
    S.NRT_EXEC_COMPLETED_WITH_ERR: _injected("double-event"),
    S.NRT_EXEC_NC_BUSY: _busy,
    S.NRT_EXEC_OOB: lambda client: _ran(client, out_of_bounds()),
    S.NRT_COLL_PENDING: _pending,
    S.NRT_EXEC_HW_ERR_COLLECTIVES: _injected("collectives-hang"),
    S.NRT_EXEC_HW_ERR_HBM_UE: _injected("hbm-ue"),
    S.NRT_EXEC_HW_ERR_NC_UE: _injected("sram-ue"),
    S.NRT_EXEC_HW_ERR_DMA_ABORT: _injected("dma-abort"),
    S.NRT_EXEC_SW_NQ_OVERFLOW: _injected("nq-overflow"),
    S.NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE: _injected("hbm-ue-repairable"),
    S.NRT_NETWORK_PROXY_FAILURE: _injected("network"),
}


@pytest.mark.parametrize("status", RECIPES, ids=lambda status: status.name)
def test_status_through_c(client: Client, status: S, capfd: pytest.CaptureFixture) -> None:
    assert RECIPES[status](client) is status
    if int(status) > 1000 and status not in (S.NRT_COLL_PENDING, S.NRT_EXEC_NC_BUSY):
        assert f"Failure: {status.name} in nrt_execute()" in capfd.readouterr().err


def test_all_statuses_but_the_first_moment_are_there() -> None:
    # NRT_UNINITIALIZED needs a process whose library was never open: tests/libnrt/test_programs.py.
    assert set(RECIPES) | {S.NRT_UNINITIALIZED} == {row.status for row in REACHED}
    names = {function.name for function in FUNCTIONS}
    assert all(row.call in names for row in REACHED)


def test_nothing_is_left_over_after_many_loads(client: Client) -> None:
    client.init()
    data, before = copying(), client.used()
    for _ in range(50):
        model = client.load(data)
        client.good("nrt_unload", model)
    assert client.used() == before
    for _ in range(20):
        client.lib.nrt_close()
        client.init()
    assert client.used() == before


def test_the_log_goes_where_it_is_wanted(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURON_RT_LOG_LOCATION", str(tmp_path / "nrt.log"))
    monkeypatch.setenv("NEURON_RT_LOG_LOCATION_TDRV", str(tmp_path / "tdrv.log"))
    monkeypatch.setenv("NEURONTOOLS_INJECT", "dma-abort")
    assert _ran(client, copying(), NEURON_RT_LOG_LEVEL="ERROR") is S.NRT_EXEC_HW_ERR_DMA_ABORT
    assert "is in an abort state" in (tmp_path / "tdrv.log").read_text()
    assert "nrt_infodump" in (tmp_path / "nrt.log").read_text()
