"""Commands that start processes of their own, and are interrupted while these run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import CancelledError
from pathlib import Path

import pytest

from neurontools.tuning.children import child, none_left

_SCRIPT = "import os, sys, time\nopen(sys.argv[1], 'w').write(str(os.getpid()))\ntime.sleep(600)\n"


@pytest.mark.parametrize("command", ["batch", "tune"])
def test_an_interrupted_command_ends_its_processes(root: Path, tmp_path: Path, command: str) -> None:
    """They have sessions of their own, and the threads that wait for them did so to the end of their budgets."""
    (tmp_path / "sleeps.py").write_text(_SCRIPT)
    (tmp_path / "batch.toml").write_text(
        f'[[program]]\nfile = "sleeps.py"\ndo = ["run"]\narguments = ["{tmp_path}/pid"]\n'
    )
    words = {
        "batch": ["batch", "batch.toml"],
        "tune": ["tune", "sleeps.py", "--schedule", "--", f"{tmp_path}/pid"],
    }[command]
    process = subprocess.Popen(
        [sys.executable, "-m", "neurontools", *words], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    try:
        while not ((tmp_path / "pid").is_file() and (tmp_path / "pid").read_text()):
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130 and b"Traceback" not in out + err
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_no_process_starts_while_all_are_ended() -> None:
    words = [sys.executable, "-c", "import time; time.sleep(600)"]
    with child(words) as process, none_left():
        assert process.wait(60) == -signal.SIGKILL
        with pytest.raises(CancelledError), child(words):
            pass
    with child(words) as process:
        assert process.poll() is None
    assert process.returncode == -signal.SIGKILL
