"""Sixteen threads on the same handles: frees, unloads and executions race, and every answer is a documented one."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from ctypes import byref, c_bool, c_uint64, c_void_p, create_string_buffer

import pytest

from formats.nrt.log import parse_line
from formats.nrt.status import NrtStatus as S
from tests.libnrt.client import Client
from tests.runtime.support import X, copying, out_of_bounds

THREADS, TURNS = 16, 60
DOCUMENTED = {S.NRT_SUCCESS, S.NRT_INVALID, S.NRT_INVALID_HANDLE, S.NRT_RESOURCE, S.NRT_QUEUE_FULL, S.NRT_EXEC_OOB,
              S.NRT_EXEC_BAD_INPUT}  # fmt: skip


class Shared:
    """What all threads have: pools of handles, some of which are gone."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.models, self.tensors, self.sets = list[int](), list[int](), list[int]()
        self.answers: Counter[tuple[str, S]] = Counter()
        self.lock = threading.Lock()

    def call(self, name: str, *arguments: object) -> S:
        status = self.client.call(name, *arguments)
        with self.lock:
            self.answers[name, status] += 1
        return status

    def make(self, pool: list[int], name: str, *arguments: object) -> None:
        made = c_void_p()
        if self.call(name, *arguments, byref(made)) is S.NRT_SUCCESS:
            pool.append(made.value or 0)


def work(shared: Shared, seed: int, failed: list[BaseException]) -> None:
    rng = random.Random(seed)
    files, room = (copying(), out_of_bounds()), create_string_buffer(X.nbytes)

    def some(pool: list[int]) -> int:
        return rng.choice(pool) if pool else 0

    try:
        for _ in range(TURNS):
            kind = rng.randrange(12)
            if kind == 0 and len(shared.models) < 12:
                data = rng.choice(files)
                shared.make(shared.models, "nrt_load", data, len(data), rng.randrange(4), 1)
            elif kind == 1 and rng.random() < 0.4:
                shared.call("nrt_unload", some(shared.models))
            elif kind < 4:
                size = X.nbytes if rng.random() < 0.95 else 20 << 30
                shared.make(shared.tensors, "nrt_tensor_allocate", 0, rng.randrange(4), size, b"t")
            elif kind == 4 and rng.random() < 0.3:
                shared.client.lib.nrt_tensor_free(byref(c_void_p(some(shared.tensors))))
            elif kind == 5:
                shared.make(shared.tensors, "nrt_tensor_allocate_slice", some(shared.tensors), 0, X.nbytes, b"s")
            elif kind == 6:
                shared.make(shared.sets, "nrt_allocate_tensor_set")
            elif kind == 7:
                name = rng.choice((b"x", b"y"))
                shared.call("nrt_add_tensor_to_tensor_set", some(shared.sets), name, some(shared.tensors))
            elif kind == 8:
                name = rng.choice(("nrt_tensor_read", "nrt_tensor_write"))
                shared.call(name, some(shared.tensors), room, 0, X.nbytes)
            elif kind != 11:
                shared.call("nrt_execute", some(shared.models), some(shared.sets), some(shared.sets))
            else:
                sequence, done = c_uint64(), c_bool()
                arguments = some(shared.models), some(shared.sets), some(shared.sets), 0, None, byref(sequence)
                if shared.call("nrta_execute_schedule", *arguments) is S.NRT_SUCCESS:
                    while not done:
                        shared.call("nrta_is_completed", sequence, byref(done))
                        time.sleep(0.001)
    except BaseException as error:  # noqa: BLE001  told below
        failed.append(error)


def test_threads_that_take_each_others_handles_away(client: Client, capfd: pytest.CaptureFixture[str]) -> None:
    client.init()
    before = client.used()
    shared, failed = Shared(client), list[BaseException]()
    # Something to begin with.
    for core in range(4):
        shared.make(shared.models, "nrt_load", copying(), len(copying()), core, 1)
        for name in (b"x", b"y"):
            shared.make(shared.tensors, "nrt_tensor_allocate", 0, core, X.nbytes, name)
        shared.make(shared.sets, "nrt_allocate_tensor_set")
        for name in (b"x", b"y"):
            shared.call("nrt_add_tensor_to_tensor_set", shared.sets[-1], name, shared.tensors[-1])
    threads = [threading.Thread(target=work, args=(shared, seed, failed), daemon=True) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert not any(thread.is_alive() for thread in threads), "a deadlock"
    assert not failed
    assert {status for _, status in shared.answers} <= DOCUMENTED, shared.answers
    assert shared.answers["nrt_execute", S.NRT_SUCCESS] and shared.answers["nrt_unload", S.NRT_SUCCESS]
    for tensor in shared.tensors:
        client.lib.nrt_tensor_free(byref(c_void_p(tensor)))
    for model in shared.models:
        client.call("nrt_unload", model)
    for each in shared.sets:
        client.lib.nrt_destroy_tensor_set(byref(c_void_p(each)))
    assert client.used() == before
    said = capfd.readouterr().err
    assert "bug in neurontools" not in said
    # Lines of sixteen threads are whole.
    assert all(parse_line(line) is not None for line in said.splitlines())
