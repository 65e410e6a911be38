"""Profiles of a session: what is captured, what it takes of device memory, what is written, and when it is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from emulator.runtime.errors import StatusError
from emulator.runtime.inspecting import InspectConfig
from emulator.runtime.profiles import buffer_bytes
from formats.neff import open_neff
from formats.nrt.status import NrtStatus as S
from formats.ntff import open_ntff
from neurontools.ntff.compared import compare_capture
from tests.runtime.support import Session, copying, out_of_bounds


def _refused(status: S, work: object, *arguments: object) -> str:
    assert callable(work)
    with pytest.raises(StatusError) as error:
        work(*arguments)
    assert error.value.status is status
    return error.value.message


def test_a_profile_has_every_execution_and_the_ledgers_addresses(tmp_path: Path) -> None:
    session = Session()
    runtime = session.runtime
    watching = runtime.watching
    model = runtime.load(copying(), 2)
    core, before = runtime.core(2), session.used()
    watching.start_profile(core, model, "a.ntff")
    buffers = buffer_bytes("gen3", {})
    assert session.used() - before == len(core.stacks) * buffers > 1 << 30
    for _ in range(3):
        runtime.execute(model, *session.sets(model))
    path = tmp_path / "b.ntff"  # the only profile there is
    held = session.used()
    watching.stop_profile(str(path))
    assert held - session.used() == len(core.stacks) * buffers
    ntff = open_ntff(path)
    capture = ntff.core(core.physical[0])
    assert len(ntff.executed(capture.core)) == 3 * 8
    starts = [one.start_ps for one in ntff.executed(capture.core)]
    assert starts[8] > starts[7] and len(ntff.packets(capture.core)) == 3 * 288
    ledger = runtime.memory
    entries = {e.allocation.address: e.use for e in ledger.entries.values()}  # type: ignore[attr-defined]
    assert {entries[place.address] for place in capture.places.values()} == {"pe", "act", "pool", "dve", "sp"}
    memory = {one.category: one.nbytes for one in capture.memory}
    assert memory["profiler buffers"] == buffers and memory["ucode"] > 1 << 20
    found, _ = compare_capture(ntff, None, open_neff(copying()), "zeros")
    assert (found.words, found.emulated_only, found.captured_only) == (8, 0, 2 * 8)
    assert found.opcodes[0].ratio == 1
    runtime.close()


def test_when_a_profile_is_refused(tmp_path: Path) -> None:
    session = Session({"NEURON_RT_PROFILE_BUF_DMA_MB": "20000"})
    runtime, watching = session.runtime, session.runtime.watching
    model, core = runtime.load(copying(), 0), runtime.core(0)
    # The stack has 24 GiB, and two cores of one logical core lie on it.
    _refused(S.NRT_RESOURCE, watching.start_profile, core, model, "a")
    assert "profiler buffers" in session.log and core.profiled is None
    runtime.close()
    session = Session()
    runtime, watching = session.runtime, session.runtime.watching
    model, other, core = runtime.load(copying(), 0), runtime.load(copying(), 1), runtime.core(0)
    _refused(S.NRT_INVALID, watching.stop_profile, "a")
    _refused(S.NRT_INVALID, watching.stop_continuous)
    _refused(S.NRT_INVALID, watching.stop_inspection)
    path = str(tmp_path / "no" / "a.ntff")
    watching.start_profile(core, model, path)
    _refused(S.NRT_INVALID, watching.start_profile, core, model, "b")
    _refused(S.NRT_INVALID, watching.start_profile, runtime.core(1), other, path)
    _refused(S.NRT_INVALID, watching.start_continuous)
    watching.start_profile(runtime.core(1), other, "b")
    assert f"{path}, b" in _refused(S.NRT_INVALID, watching.stop_profile, "c")
    with pytest.raises(FileNotFoundError, match="No such file"):
        watching.stop_profile(path)
    assert core.profiled is None
    before = session.used()
    runtime.unload(other)
    assert session.used() < before - (1 << 30)
    _refused(S.NRT_INVALID, watching.stop_profile, "b")
    runtime.close()


def test_buffers_that_are_full_lose_events_and_say_so(tmp_path: Path) -> None:
    session = Session({"NEURON_RT_PROFILE_BUF_DMA_MB": "1", "NEURON_RT_LOG_LEVEL": "WARNING"})
    runtime = session.runtime
    model, core = runtime.load(copying(), 0), runtime.core(0)
    path = tmp_path / "a.ntff"
    runtime.watching.start_profile(core, model, str(path))
    runtime.watching.profiles._by_name[str(path)]._most["trace_dma"] = 1000
    runtime.execute(model, *session.sets(model))
    runtime.watching.stop_profile(str(path))
    ntff = open_ntff(tmp_path / "a.ntff")
    assert len(ntff.packets(0)) == 31 and len(ntff.executed(0)) == 8
    assert "profiler buffers are full" in session.log
    runtime.close()


def test_a_model_that_never_ran_leaves_its_streams(tmp_path: Path) -> None:
    session = Session()
    runtime = session.runtime
    model = runtime.load(copying(), 0)
    runtime.watching.start_profile(runtime.core(0), model, "a")
    runtime.watching.stop_profile(str(tmp_path / "a.ntff"))
    ntff = open_ntff(tmp_path / "a.ntff")
    assert ntff.executed(0) == () and len(ntff.buffers(0)) == 5
    runtime.close()


def test_continuous_profiling_keeps_the_last_execution_of_each_core(tmp_path: Path) -> None:
    session = Session()
    runtime, watching = session.runtime, session.runtime.watching
    first, second = runtime.load(copying(), 0), runtime.load(copying(), 1)
    watching.start_continuous()
    _refused(S.NRT_INVALID, watching.start_profile, runtime.core(0), first, "a")
    _refused(S.NRT_INVALID, watching.save_continuous, runtime.core(0), str(tmp_path))
    before = session.used()
    for model in (first, first, second):
        runtime.execute(model, *session.sets(model))
    assert session.used() > before + (2 << 30)
    paths = [watching.save_continuous(runtime.core(index), str(tmp_path / "out")) for index in (0, 0, 1)]
    assert len(set(paths)) == 3
    for path, core in zip(paths, (0, 0, 2), strict=True):
        ntff = open_ntff(path)
        assert [one.core for one in ntff.cores] == [core] and len(ntff.executed(core)) == 8
    held = session.used()
    watching.stop_continuous()
    assert session.used() < held - (2 << 30)
    _refused(S.NRT_INVALID, watching.save_continuous, runtime.core(0), str(tmp_path))
    runtime.close()


def _files(folder: Path) -> dict[str, Path]:
    (process,) = folder.iterdir()
    assert process.name == f"i-emulated_pid_{os.getpid()}"
    (times,) = process.iterdir()
    return {path.name: path for path in times.iterdir()}


def test_an_inspection_leaves_profiles_files_and_trace(tmp_path: Path) -> None:
    session = Session()
    runtime = session.runtime
    config = InspectConfig()
    config.folder, config.enabled, config.session = str(tmp_path), True, 4
    first, second, other = runtime.load(copying(), 0), runtime.load(copying(), 0), runtime.load(copying(), 1)
    config.cores[0] = True
    runtime.watching.inspect(config)
    _refused(S.NRT_INVALID, runtime.watching.inspect, config)
    _refused(S.NRT_INVALID, runtime.watching.start_profile, runtime.core(0), first, "a")
    for model in (first, second, second, other):
        runtime.execute(model, *session.sets(model))
    folder = runtime.watching.stop_inspection()
    files = _files(tmp_path)
    digest = open_neff(copying()).header.hash.hex()[:16]
    assert folder is not None and set(files) == {
        "profile_nc_0_session_4.ntff", f"profile_nc_0_session_4_model_{first.number}.ntff", "sys_trace.json",
        f"neff_{digest}_vnc_0.neff",
    }  # fmt: skip
    assert len(open_ntff(files["profile_nc_0_session_4.ntff"]).executed(0)) == 2 * 8
    assert open_neff(files[f"neff_{digest}_vnc_0.neff"]).header.hash.hex().startswith(digest)
    events = json.loads(files["sys_trace.json"].read_text())["events"]
    assert {"nrt_execute", "nc_exec_running"} <= {each["event_type"] for each in events}
    assert {each["nc_idx"] for each in events} == {0}
    runtime.close()


def test_variables_begin_an_inspection_and_the_end_of_the_session_writes_it(tmp_path: Path) -> None:
    environ = {"NEURON_RT_INSPECT_ENABLE": "1", "NEURON_RT_INSPECT_OUTPUT_DIR": str(tmp_path / "out"),
               "NEURON_RT_INSPECT_SYSTEM_PROFILE": "0"}  # fmt: skip
    session = Session(environ)
    model = session.runtime.load(copying(), 0)
    session.runtime.execute(model, *session.sets(model))
    # A program that begins it itself as well means the same one.
    session.runtime.watching.inspect(InspectConfig.of(environ, 10))
    session.runtime.close()
    assert "profile_nc_0_session_1.ntff" in _files(tmp_path / "out")
    assert "sys_trace.json" not in _files(tmp_path / "out")


def test_a_failure_alone_is_profiled_where_that_is_asked_for(tmp_path: Path) -> None:
    session = Session({"NEURON_RT_INSPECT_ON_FAIL": "1", "NEURON_RT_INSPECT_OUTPUT_DIR": str(tmp_path)})
    runtime = session.runtime
    good, bad = runtime.load(copying(), 0), runtime.load(out_of_bounds(), 0)
    runtime.execute(good, *session.sets(good))
    assert not list(tmp_path.iterdir())
    _refused(S.NRT_EXEC_OOB, runtime.execute, bad, *session.sets(bad))
    assert f"profile_nc_0_session_1_failed_{bad.number}.ntff" in _files(tmp_path)
    runtime.close()


@pytest.mark.parametrize(
    ("asked", "more"), [({}, 0), ({"DMA": "512"}, 448 << 20), ({"EVENT": "64", "DMA": "1"}, -63 << 20)]
)
def test_variables_size_the_buffers(asked: dict[str, str], more: int) -> None:
    environ = {f"NEURON_RT_PROFILE_BUF_{kind}_MB": value for kind, value in asked.items()}
    assert buffer_bytes("gen3", environ) - buffer_bytes("gen3", {}) == more
    assert buffer_bytes("gen2", {}) == 2 << 30
