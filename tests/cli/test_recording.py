"""`run --record` and `debug` on what it writes: the same run again, damage, runs that end otherwise."""

from __future__ import annotations

import json
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.errors import FormatError
from formats.neff import open_neff
from neurontools.debugger.opening import open_session
from neurontools.program.configuration import RunConfiguration
from neurontools.program.recording import RecordingObserver, open_recording
from tests.cli.conftest import Cli

SCRIPT = """
import numpy as np
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=tile)
    return out

for rows in (4, 8):
    double(np.full((rows, 4), rows, np.float32))
"""


@pytest.fixture
def recorded(cli: Cli, program_file: Path, tmp_path: Path) -> Path:
    """Return the recording of one run of the doubling program under a seed."""
    inputs, path = tmp_path / "in.npz", tmp_path / "run.nrec"
    np.savez(inputs, x=np.arange(128 * 64, dtype=np.float32).reshape(128, 64))
    assert cli("run", program_file, "--inputs", inputs, "--seed", "7", "--record", path, "--quiet").status == 0
    return path


def test_a_recording_opens_at_its_end_and_goes_back(cli: Cli, recorded: Path) -> None:
    session = open_session(recorded)
    assert (session.outcome, session.seed, session.notes) == ("finished", 7, [])
    np.testing.assert_array_equal(session.print_tensor("y"), 2 * session.print_tensor("x"))
    end = session.events
    session.reverse_step()
    session.goto("start")
    assert session.events == 0 and session.goto("end").events == end
    ended = cli("debug", recorded, "-c", "when; reverse-step; continue")
    assert ended.status == 0 and f"{end} events" in ended.out and "the program has ended" in ended.out


def test_every_launch_of_a_script_is_recorded(cli: Cli, tmp_path: Path) -> None:
    script, path = tmp_path / "two.py", tmp_path / "two.nrec"
    script.write_text(SCRIPT)
    assert cli("run", script, "--record", path).status == 0
    for file, rows in ((path, 4), (tmp_path / "two-2.nrec", 8)):
        session = open_session(file)
        assert session.notes == [] and session.print_tensor("out").shape == (rows, 4)
        assert (session.print_tensor("out") == 2 * rows).all()
        assert session.list_source("two.py:9").rows  # the source is found where it was


def test_the_same_run_gives_the_same_bytes(cli: Cli, program_file: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.ones((128, 64), np.float32))
    for name in ("one", "two"):
        cli("run", program_file, "--inputs", tmp_path / "in.npz", "--record", tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_types_that_numpy_files_cannot_name_survive(program_file: Path, tmp_path: Path) -> None:
    import ml_dtypes

    class Finished:
        fault = hang = None
        now_ps = steps = 0

        @staticmethod
        def state_hash() -> str:
            return "-"

    given = {"a": np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3), "b": np.zeros((0, 4), np.int32)}
    observer = RecordingObserver(tmp_path / "r", "n", open_neff(program_file), given, RunConfiguration())
    observer.attach(Finished())
    observer.finish()
    found = open_recording(tmp_path / "r").inputs
    assert found["a"].dtype == given["a"].dtype and found["b"].shape == (0, 4)
    np.testing.assert_array_equal(found["a"].view(np.uint16), given["a"].view(np.uint16))


def test_a_run_that_ends_otherwise_says_so(recorded: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.nrec"
    rewrite(recorded, other, lambda text: {**text, "end": {**text["end"], "time_ps": 5, "state": "else"}})
    (note,) = open_session(other).notes
    assert note.startswith("the run does not end as it was recorded: time_ps 5 then") and "state else then" in note


def rewrite(source: Path, target: Path, change: Any) -> None:
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, json.dumps(change(json.loads(data))) if name == "recording.json" else data)


@pytest.mark.parametrize("option", [("--inputs", "x.npz"), ("--seed", "3"), ("--target", "trn2"), ("--lnc", "1")])
def test_a_recording_brings_its_own_options(cli: Cli, recorded: Path, option: tuple[str, str]) -> None:
    ended = cli("debug", recorded, *option, "-c", "when")
    assert ended.status == 2 and "a recording brings its own" in ended.err


def test_damage_is_one_line(cli: Cli, recorded: Path, tmp_path: Path) -> None:
    data, damaged = recorded.read_bytes(), tmp_path / "damaged.nrec"
    rng = random.Random(3)
    for number in range(300):
        changed = bytearray(data[: rng.randrange(4, len(data))] if number % 3 == 0 else data)
        for _ in range(rng.randrange(1, 8)):
            changed[rng.randrange(4, len(changed)) if len(changed) > 4 else 0] = rng.randrange(256)
        damaged.write_bytes(bytes(changed))
        try:
            open_recording(damaged)
        except FormatError as error:
            assert "\n" not in str(error) and "damaged.nrec" in str(error)
    rewrite(recorded, damaged, lambda text: {**text, "schema": "else/1"})
    ended = cli("debug", damaged, "-c", "when")
    assert ended.status == 3 and "expected neurontools.program.recording/1" in ended.error_line


@pytest.mark.parametrize(
    "change",
    [
        {"name": 5},
        {"name": None},
        {"end": []},
        {"end": {"outcome": "never", "time_ps": 1, "completions": 1, "state": ""}},
        {"end": {"outcome": "hang", "time_ps": "1", "completions": 1, "state": ""}},
        {"end": {"outcome": "hang", "time_ps": 1, "completions": -1, "state": ""}},
        {"folders": "/tmp"},
        {"folders": [5]},
        {"options": {"seed": True}},
        {"options": {"seed": -1}},
        {"options": {"seed": 1 << 70}},
        {"options": {"hang_timeout_ps": 1.5}},
        {"options": {"target": 3}},
        {"options": {"timing": 1}},
        {"inputs": []},
        {"inputs": {"x": {"dtype": "float32", "shape": [1 << 62, 4]}}},
        {"inputs": {"x": {"dtype": "float32", "shape": [-128, -64]}}},
        {"inputs": {"x": {"dtype": "(9,9)f4", "shape": [128, 64]}}},
        {"inputs": {"x": {"dtype": 5, "shape": [128, 64]}}},
        {"inputs": {"x": {"dtype": "float32", "shape": "all"}}},
    ],
)
def test_every_value_of_a_description_is_checked_where_it_enters(recorded: Path, tmp_path: Path, change: Any) -> None:
    damaged = tmp_path / "damaged.nrec"
    rewrite(recorded, damaged, lambda text: {**text, **change})
    with pytest.raises(FormatError, match=r"damaged\.nrec"):
        open_recording(damaged)


def test_members_of_a_recording_are_under_one_limit(recorded: Path, tmp_path: Path) -> None:
    """An archive in an archive does not inflate twice."""
    damaged, inner = tmp_path / "damaged.nrec", tmp_path / "inner.npz"
    np.savez_compressed(inner, x=np.zeros(120 << 20, np.uint8), y=np.zeros(120 << 20, np.uint8))
    with zipfile.ZipFile(recorded) as old, zipfile.ZipFile(damaged, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, inner.read_bytes() if name == "inputs.npz" else old.read(name))
    with pytest.raises(FormatError, match="over the size limit"):
        open_recording(damaged)
