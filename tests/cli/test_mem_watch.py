"""`neurontools mem watch`: sessions of other processes, as they change and when they end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.runtime.ledger_state import FOLDER_VARIABLE, dump_state, state_of
from emulator.runtime.memory import Category, Owner
from emulator.runtime.session import Runtime
from tests.cli.check import checked_json
from tests.cli.conftest import Cli

SESSION = """
import sys, time
from emulator.runtime.session import Runtime
runtime = Runtime({"NEURONTOOLS_MACHINE": sys.argv[2], "NEURON_PROCESS_TAG": "job", "NEURON_RT_NUM_CORES": "1"})
model = runtime.load(open(sys.argv[1], "rb").read(), 0)
time.sleep(1.5)
runtime.unload(model)
time.sleep(1.0)
runtime.close()
"""


def saved(root: Path, folder: Path) -> Path:
    """Return a file that shows a session with one model and a tensor."""
    runtime = Runtime({"NEURON_RT_NUM_CORES": "2"})
    runtime.load((root / "fixtures" / "neff" / "idle_pair.neff").read_bytes(), 0)
    runtime.memory.allocate(Category.TENSORS, 3 << 30, stack=runtime.cores[0].stacks[0], owner=Owner(0), name="t")
    state = state_of(runtime)
    path = folder / "session.json"
    path.write_text(json.dumps(dump_state(state)))
    return path


def test_a_saved_session(cli: Cli, root: Path, tmp_path: Path) -> None:
    path = saved(root, tmp_path)
    result = checked_json(cli("mem", "watch", path, "--json"), "mem watch")
    (session,) = result["sessions"]
    (stack,) = session["stacks"]
    assert stack["categories"]["tensors"] == (3 << 30) + 8 * 2 and sum(stack["categories"].values()) == stack["used"]
    assert [model["model"] for model in session["models"]] == [1001]
    ended = cli("mem", "watch", tmp_path, "--once")
    assert ended.status == 0 and "1 model" in ended.out and "1001 on nc0" in ended.out


def test_a_running_session(root: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(root)}
    neff = root / "fixtures" / "neff" / "idle_pair.neff"
    session = subprocess.Popen([sys.executable, "-c", SESSION, str(neff), str(tmp_path)], env=environment)
    try:
        deadline = 200
        while not list(tmp_path.glob("[0-9]*.json")) and deadline and session.poll() is None:
            deadline -= 1
            subprocess.run(["sleep", "0.1"], check=True)
        watch = subprocess.run([sys.executable, "-m", "neurontools", "mem", "watch", str(tmp_path), "--period", "0.1"],
                               capture_output=True, text=True, env=environment, timeout=120, check=False)  # fmt: skip
    finally:
        assert session.wait(120) == 0
    assert watch.returncode == 0 and "Traceback" not in watch.stderr
    assert "job (pid" in watch.stdout
    left = json.loads(next(tmp_path.glob("*.json")).read_text())
    assert left["ended"] and left["entries"] == []


@pytest.mark.parametrize(("name", "status"), [("missing", 4), (".", 4)])
def test_places_without_sessions(cli: Cli, tmp_path: Path, name: str, status: int) -> None:
    assert cli("mem", "watch", tmp_path / name, "--once").status == status


def test_no_place_and_bad_files(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    assert cli("mem", "watch", "--once").status == 4
    path = tmp_path / "bad.json"
    path.write_text("{")
    ended = cli("mem", "watch", path)
    assert ended.status == 3 and "bad.json" in ended.error_line
