"""A session of the runtime: cores, models, executions, what remains of each."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from emulator.runtime import run
from emulator.runtime.errors import StatusError
from emulator.runtime.session import Runtime
from emulator.runtime.tensor import Placement, TensorSet
from formats.nrt.status import NrtStatus as S
from tests.emulator.dma_programs import load_and_store
from tests.runtime.support import Session, X, copying, hanging, out_of_bounds, with_header


def _status(caught: pytest.ExceptionInfo[StatusError]) -> S:
    return caught.value.status


def test_executes_on_the_callers_tensors_as_often_as_wanted() -> None:
    session = Session()
    model = session.runtime.load(copying())
    assert [(each.name, each.output, each.nbytes, each.dtype) for each in model.tensors] == [
        ("x", False, X.nbytes, 10),
        ("y", True, X.nbytes, 10),
    ]
    inputs, outputs = session.sets(model)
    time = session.runtime.execute(model, inputs, outputs)
    assert time == run(load_and_store(), {"x": X}).time_ps
    assert outputs.get("y").get() == X.tobytes()
    inputs.get("x").write(-X)
    assert session.runtime.execute(model, inputs, outputs, repeat=3) == 3 * time
    assert outputs.get("y").get() == (-X).tobytes()
    assert session.runtime.cores[0].executions == 4 and session.runtime.cores[0].time_ps == 4 * time


def test_several_models_on_one_core_and_memory_comes_back() -> None:
    session = Session()
    core = session.runtime.core(0)
    before = session.used()
    models = [session.runtime.load(copying(), 0) for _ in range(3)]
    assert [model.number for model in models] == [1001, 1002, 1003] and set(core.models) == {1001, 1002, 1003}
    for model in models:
        inputs, outputs = session.sets(model)
        session.runtime.execute(model, inputs, outputs)
        for tensors in (inputs, outputs):
            for tensor in tensors.tensors.values():
                session.runtime.free(tensor)
    for model in models:
        session.runtime.unload(model)
    assert session.used() == before and not session.runtime.models
    with pytest.raises(StatusError) as caught:
        session.runtime.unload(models[0])
    assert _status(caught) is S.NRT_INVALID_HANDLE


def test_many_loaded_models_hold_few_memories_and_still_run() -> None:
    session = Session()
    models = [session.runtime.load(copying(), 0) for _ in range(7)]
    assert [model._ready is not None for model in models] == [False] * 3 + [True] * 4
    for model in models:
        inputs, outputs = session.sets(model)
        session.runtime.execute(model, inputs, outputs)
        assert outputs.get("y").get() == X.tobytes()


def test_first_free_core_is_taken_until_there_is_none() -> None:
    session = Session({"NEURON_RT_VISIBLE_CORES": "2,3"})
    assert [session.runtime.load(copying()).core for _ in range(2)] == [0, 1]
    assert [core.number for core in session.runtime.cores] == [2, 3]
    assert session.runtime.cores[0].physical == (4, 5) and session.runtime.cores[0].stacks[0].hbm == 2
    for core in (-1, 2, 99):
        with pytest.raises(StatusError) as caught:
            session.runtime.load(copying(), core)
        assert _status(caught) is S.NRT_LOAD_NOT_ENOUGH_NC
    assert "Could not find VNC id 2" in session.log


@pytest.mark.parametrize(
    ("data", "environ", "status", "text"),
    [
        (b"", {}, S.NRT_INVALID, "Failed|file|byte"),
        (b"not a NEFF" * 300, {}, S.NRT_INVALID, "expected"),
        (with_header(load_and_store(), neff_version_major=9), {}, S.NRT_UNSUPPORTED_NEFF_VERSION, "received: 9.0"),
        (copying(), {"NEURONTOOLS_INSTANCE_TYPE": "trn1.32xlarge"}, S.NRT_FAILURE, "the file is for trn2"),
        (copying(), {"NEURON_LOGICAL_NC_CONFIG": "2"}, S.NRT_INVALID, "LNC 1, configured is 2"),
        (with_header(load_and_store(), hash=b"\1" * 32), {"NEURON_RT_VALIDATE_HASH": "true"}, S.NRT_INVALID, "hash"),
    ],
)
def test_files_that_cannot_be_loaded(data: bytes, environ: dict[str, str], status: S, text: str) -> None:
    session = Session(environ)
    with pytest.raises(StatusError, match=text) as caught:
        session.runtime.load(data)
    assert (_status(caught) is status and f"{int(status)}" in session.log) or text in session.log


def test_a_hash_that_fits_is_accepted() -> None:
    assert Session({"NEURON_RT_VALIDATE_HASH": "TRUE"}).runtime.load(copying()).number == 1001


def test_sets_that_do_not_fit_the_model() -> None:
    session = Session()
    model = session.runtime.load(copying())
    inputs, outputs = session.sets(model)
    short = TensorSet()
    short.add("x", session.runtime.allocate(Placement.DEVICE, 0, 8))
    empty = TensorSet()
    empty.add("x", session.runtime.allocate_empty("x"))
    freed, _ = session.sets(model)
    session.runtime.free(freed.get("x"))
    for given, status, text in (
        (TensorSet(), S.NRT_INVALID, "input 'x' of model test.neff is not in the set"),
        (short, S.NRT_INVALID, "has 8 bytes, model test.neff wants 32768"),
        (empty, S.NRT_EXEC_BAD_INPUT, "has no storage"),
        (freed, S.NRT_INVALID_HANDLE, "is freed"),
    ):
        with pytest.raises(StatusError, match=text) as caught:
            session.runtime.execute(model, given, outputs)
        assert _status(caught) is status
    with pytest.raises(StatusError):
        session.runtime.execute(model, inputs, TensorSet())
    with pytest.raises(StatusError):
        session.runtime.execute(model, inputs, outputs, repeat=0)
    session.runtime.execute(model, inputs, outputs)


def test_one_tensor_may_be_input_and_output() -> None:
    session = Session()
    model = session.runtime.load(copying())
    tensor = session.tensor(X)
    inputs, outputs = TensorSet(), TensorSet()
    inputs.add("x", tensor)
    outputs.add("y", tensor)
    session.runtime.execute(model, inputs, outputs)
    assert tensor.get() == X.tobytes()
    # Overlapping halves of one storage: the input is read as it was.
    whole = session.tensor(np.concatenate([X, X[:1]]))
    row = X[0].nbytes
    inputs.add("x", session.runtime.slice(whole, 0, X.nbytes))
    outputs.add("y", session.runtime.slice(whole, row, X.nbytes))
    session.runtime.execute(model, inputs, outputs)
    assert whole.get(row) == X.tobytes()


def test_failures_are_logged_as_documented_and_collected() -> None:
    session = Session(collect=True)
    model = session.runtime.load(out_of_bounds())
    inputs, outputs = session.sets(model)
    with pytest.raises(StatusError) as caught:
        session.runtime.execute(model, inputs, outputs)
    assert _status(caught) is S.NRT_EXEC_OOB
    assert (
        "TDRV:exec_wait_round_robin".ljust(45) + "[ND 0][NC 0] Out of bounds access on model test.neff" in session.log
    )
    assert "NMGR:dlr_infer".ljust(45) + "Inference completed with err: 1006. mode->h_nn=1001, lnc=0" in session.log
    assert session.lines[-1].endswith(
        "ERROR   NRT:nrt_execute_repeat                      Failed to execute model test.neff with status 1006"
    )
    (failure,) = session.failures
    assert failure.status is S.NRT_EXEC_OOB and failure.inputs == {"x": X.tobytes()}
    assert failure.device.fault is not None and failure.events.total > 0
    assert session.runtime.counters[0, "status/oob_error"] == 1
    # A core goes on after a fault of the program.
    with pytest.raises(StatusError):
        session.runtime.execute(model, inputs, outputs)


def test_a_hang_is_a_time_out() -> None:
    session = Session()
    model = session.runtime.load(hanging())
    with pytest.raises(StatusError) as caught:
        session.runtime.execute(model, TensorSet(), TensorSet())
    assert _status(caught) is S.NRT_TIMEOUT
    assert "execution timeout (30000 ms) on Neuron Device 0 NC 0, model test.neff" in session.log


def test_device_time_is_limited_by_the_variable() -> None:
    session = Session({"NEURON_RT_EXEC_TIMEOUT": "1"})
    model = session.runtime.load(copying())
    assert model._settings.limit_ps == 10**12


def test_nan_fails_only_where_it_is_asked_for() -> None:
    array = X.copy()
    array[3, 4] = np.nan
    for environ, fails in (({}, False), ({"NEURON_FAIL_ON_NAN": "1"}, True),
                           ({"NEURON_RT_NUMERICAL_ERRORS_VERBOSITY": "critical"}, True)):  # fmt: skip
        session = Session(environ)
        model = session.runtime.load(copying())
        sets = session.sets(model, array)
        if not fails:
            session.runtime.execute(model, *sets)
            continue
        with pytest.raises(StatusError) as caught:
            session.runtime.execute(model, *sets)
        assert _status(caught) is S.NRT_EXEC_COMPLETED_WITH_NUM_ERR
        assert "INFER_ERROR_SUBTYPE_NUMERICAL" in session.log


def test_after_the_end_everything_is_closed() -> None:
    session = Session()
    model = session.runtime.load(copying())
    sets = session.sets(model)
    session.runtime.close()
    assert session.used() == 0 and not session.runtime.tensors
    for call in (
        lambda: session.runtime.load(copying()),
        lambda: session.runtime.execute(model, *sets),
        lambda: session.runtime.allocate(Placement.DEVICE, 0, 8),
        lambda: session.runtime.allocate_empty(),
        session.runtime.close,
    ):
        with pytest.raises(StatusError) as caught:
            call()
        assert _status(caught) is S.NRT_CLOSED


def test_threads_on_several_cores_get_their_own_results() -> None:
    session = Session({"NEURON_RT_NUM_CORES": "4"})
    wrong: list[object] = []

    def work(core: int) -> None:
        model = session.runtime.load(copying(), core)
        for turn in range(3):
            inputs, outputs = session.sets(model, X * (core + 10 * turn))
            session.runtime.execute(model, inputs, outputs)
            if outputs.get("y").get() != (X * (core + 10 * turn)).tobytes():
                wrong.append((core, turn))
        session.runtime.unload(model)

    threads = [threading.Thread(target=work, args=(core,)) for core in range(4) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and not session.runtime.models


def test_a_session_that_does_not_come_about_keeps_no_cores(tmp_path) -> None:
    environ = {"NEURONTOOLS_CORE_LOCKS": str(tmp_path / "cores")}
    with pytest.raises(StatusError, match="SCRATCHPAD_PAGE_SIZE"):
        Runtime({**environ, "NEURON_SCRATCHPAD_PAGE_SIZE": "7"})
    Runtime(environ).close()


def test_processes_share_cores_by_locks(tmp_path) -> None:
    environ = {"NEURONTOOLS_CORE_LOCKS": str(tmp_path / "cores"), "NEURON_RT_NUM_CORES": "2"}
    first = Runtime(environ)
    second = Runtime(environ)
    assert [[core.number for core in each.cores] for each in (first, second)] == [[0, 1], [2, 3]]
    session_lines: list[str] = []
    with pytest.raises(StatusError) as caught:
        Runtime(
            {**environ, "NEURON_RT_VISIBLE_CORES": "1-2"},
            sink=lambda place, line: session_lines.append(line),
        )
    assert _status(caught) is S.NRT_LOAD_NOT_ENOUGH_NC
    assert "NeuronCore(s) not available - Requested:nc1-nc2 Available:0" in session_lines[-1]
    first.close()
    assert [core.number for core in Runtime(environ).cores] == [0, 1]
    second.close()
