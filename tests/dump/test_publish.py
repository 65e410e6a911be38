"""Dumps appear whole or not at all: killed at any moment, with many ranks, on disks that refuse."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from neurontools.dump import publish
from tests.dump.support import INSTANCE, core_file, environment, flags, run, start, sysfs, visible_files, whole_dumps

DIRECTORY = "dt-20250917-194443-cid-0000000000000000"
KILLS = int(os.environ.get("NEURONTOOLS_KILLS", "24"))  # 200 for the full test
RANKS = int(os.environ.get("NEURONTOOLS_RANKS", "16"))  # 64 for the full test


def test_killed_at_random_moments_leaves_whole_dumps_only(tmp_path: Path) -> None:
    core = core_file(tmp_path / "core", cores=2, extra=2 << 20)
    variables = environment(NEURONTOOLS_CORE_FILE=str(core))
    directory = tmp_path / "dumps" / DIRECTORY
    started = time.monotonic()
    assert run(flags(directory, pid=1), env=variables).returncode == 0
    longest = time.monotonic() - started
    moments = random.Random(7)
    finished = {1}
    for pid in range(2, KILLS + 2):
        process = start(flags(directory, pid=pid), env=variables)
        time.sleep(moments.uniform(0.3, 1.1) * longest)
        process.kill()
        process.communicate()
        if process.returncode == 0:
            finished.add(pid)
        assert finished <= whole_dumps(directory)  # whole, though one that was killed may not have its names yet
    found = whole_dumps(directory)
    publish.recover(directory)
    assert whole_dumps(directory) == found
    assert not [name for name in os.listdir(directory) if name.startswith(".")]


def test_killed_between_any_two_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop publishing before every rename in turn; what readers see is whole, and the next one completes it."""

    class Killed(BaseException):
        pass

    for steps in range(8):
        directory = tmp_path / str(steps) / "dumps"
        directory.mkdir(parents=True)
        (directory / "other").write_text("another rank")
        stage = publish.new_stage(directory)
        names = ["i-1-nd0-nc0-pid-1-tid-1-lid-0", "i-1-nrt-pid-1.log", "i-1-neuron-dump-pid-1-tid-1-lid-0.json"]
        for name in names:
            (stage / name).write_text(name)
        left = [steps]
        real = os.rename

        def rename(source: Path, target: Path, real=real, left=left) -> None:  # type: ignore[no-untyped-def]
            if not left[0]:
                raise Killed
            left[0] -= 1
            real(source, target)

        monkeypatch.setattr(publish.os, "rename", rename)
        with contextlib.suppress(Killed):
            publish.publish(stage, directory)
        monkeypatch.setattr(publish.os, "rename", real)
        seen = {name for name, _path in visible_files(directory)} - {"other"}
        assert seen in (set(), set(names)), steps
        publish.recover(directory)
        named = {name for name in os.listdir(directory) if not name.startswith(".")} - {"other"}
        assert named == seen


def test_the_manifest_gets_its_name_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dumps").mkdir()
    (tmp_path / "dumps" / "other").write_text("")
    stage = publish.new_stage(tmp_path / "dumps")
    for name in ("a.json", "b", "c"):
        (stage / name).write_text("")
    order: list[str] = []
    real = os.rename
    monkeypatch.setattr(publish.os, "rename", lambda a, b: (order.append(Path(b).name), real(a, b)))
    publish.publish(stage, tmp_path / "dumps")
    assert order[-3:] == ["b", "c", "a.json"]


def test_many_ranks_lose_nothing(tmp_path: Path) -> None:
    root = sysfs(tmp_path / "sys")
    log = tmp_path / "log"
    log.write_text("a line\n")
    directory = tmp_path / "dumps" / DIRECTORY
    processes = [start(flags(directory, pid=pid, sysfs_root=root, log=log)) for pid in range(1, RANKS + 1)]
    for process in processes:
        _out, err = process.communicate(timeout=300)
        assert (process.returncode, err) == (0, "")
    assert whole_dumps(directory) == set(range(1, RANKS + 1))
    assert len(os.listdir(directory)) == 4 * RANKS  # two cores, log, manifest
    assert os.listdir(directory.parent) == [DIRECTORY]


def test_old_stages_are_swept_and_young_ones_kept(tmp_path: Path) -> None:
    directory = tmp_path / "dumps"
    old, young = publish.new_stage(directory), publish.new_stage(directory)
    (old / "part").write_text("")
    os.utime(old, (0, 0))
    publish.sweep(directory)
    assert not old.exists() and young.exists()


def test_an_unwritable_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = run(flags(tmp_path / "file" / DIRECTORY))
    assert ended.returncode == 3 and ended.stdout == ""
    assert f"neuron-dump: {tmp_path}/file/{DIRECTORY}: the dump cannot be written: " in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_folder_without_permission(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    (tmp_path / "closed").mkdir(mode=0o500)
    ended = run(flags(tmp_path / "closed" / DIRECTORY))
    assert ended.returncode == 3 and "permission denied" in ended.stderr


def test_a_file_in_the_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / DIRECTORY).write_text("mine")
    ended = run(flags(tmp_path / DIRECTORY))
    assert ended.returncode == 3 and "not a directory" in ended.stderr
    assert os.listdir(tmp_path) == [DIRECTORY] and (tmp_path / DIRECTORY).read_text() == "mine"


def test_a_disk_that_is_too_small_keeps_the_small_files(tmp_path: Path) -> None:
    """The limit of a file's size stands in for a full disk: the core does not fit, log and manifest do."""
    core = core_file(tmp_path / "core", extra=4 << 20)
    log = tmp_path / "log"
    log.write_text("a line\n")
    variables = environment(NEURONTOOLS_CORE_FILE=str(core), NEURONTOOLS_LOG_FILE=str(log))
    code = (
        "import sys, os, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "os.link = lambda a, b: (_ for _ in ()).throw(PermissionError(1, 'no links'));"
        "from neurontools.dump.program import main; sys.exit(main(sys.argv[1:]))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, *flags(tmp_path / DIRECTORY)], env=variables, text=True, capture_output=True,
        check=False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
    )  # fmt: skip
    assert ended.returncode == 3 and "device state" in ended.stderr and "too large" in ended.stderr
    assert whole_dumps(tmp_path / DIRECTORY) == {897}
    assert sorted(name.rpartition(".")[2] for name in os.listdir(tmp_path / DIRECTORY)) == ["json", "log"]


def test_a_full_disk(tmp_path: Path) -> None:
    """A file system of 64 KiB: nothing fits, nothing is left, one line says why."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", place]
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("no permission to mount a small file system")
    try:
        (place / "filler").write_bytes(bytes(64 << 10))
        ended = run(flags(place / DIRECTORY))
        assert ended.returncode == 3 and "no space left on device" in ended.stderr
        assert os.listdir(place) == ["filler"]
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_time_limit_holds(tmp_path: Path) -> None:
    """A log that never gives its bytes (a pipe nobody writes) costs its share of the time, and nothing else."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    ended = run(flags(tmp_path / DIRECTORY, log=pipe, timeout=2, sysfs_root=sysfs(tmp_path / "sys")))
    assert ended.returncode == 0 and "log tail not collected: took too long" in ended.stderr
    names = os.listdir(tmp_path / DIRECTORY)
    assert f"{INSTANCE}-nd0-nc1-pid-897-tid-897-lid-0" in names and len(names) == 3
