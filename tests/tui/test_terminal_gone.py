"""The screen ends when its terminal goes away without a signal, instead of reading nothing for ever."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="needs pseudo-terminals")
termios = pytest.importorskip("termios", reason="needs pseudo-terminals")


def test_the_screen_ends_with_its_terminal(root: Path, tmp_path: Path) -> None:
    outer, inner = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "XDG_CONFIG_HOME": str(tmp_path),
                   "XDG_STATE_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "neurontools", "debug", "examples/deadlock.s"],
        stdin=inner, stdout=inner, stderr=inner, cwd=root, env=environment,
    )  # fmt: skip
    os.close(inner)
    try:
        seen, end = b"", time.monotonic() + 60
        while b"ENGINES" not in seen:
            assert time.monotonic() < end and process.poll() is None, seen[-500:]
            if select.select([outer], [], [], 0.5)[0]:
                seen += os.read(outer, 1 << 16)
        os.close(outer)
        process.wait(timeout=60)
    finally:
        process.kill()


def test_sigterm_leaves_the_terminal_as_it_was(root: Path, tmp_path: Path) -> None:
    outer, inner = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "XDG_CONFIG_HOME": str(tmp_path),
                   "XDG_STATE_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}  # fmt: skip
    before = termios.tcgetattr(inner)
    process = subprocess.Popen(
        [sys.executable, "-m", "neurontools", "debug", "examples/deadlock.s"],
        stdin=inner, stdout=inner, stderr=inner, cwd=root, env=environment,
    )  # fmt: skip
    try:
        seen, end, asked = b"", time.monotonic() + 60, False
        while process.poll() is None:
            assert time.monotonic() < end, seen[-500:]
            if select.select([outer], [], [], 0.2)[0]:
                seen += os.read(outer, 1 << 16)
            if b"ENGINES" in seen and not asked:
                asked = True
                process.send_signal(signal.SIGTERM)
        while select.select([outer], [], [], 0.2)[0]:
            seen += os.read(outer, 1 << 16)
    finally:
        process.kill()
    assert asked and process.returncode == -signal.SIGTERM
    assert termios.tcgetattr(inner) == before, "keys are echoed again, line by line"
    for mode in (b"?1049", b"?1000", b"?1003"):  # the other screen, the mouse
        assert seen.rfind(b"\x1b[" + mode + b"l") > seen.rfind(b"\x1b[" + mode + b"h") >= 0, mode
    assert seen.rfind(b"\x1b[?25h") > seen.rfind(b"\x1b[?25l"), "the cursor is there"
    os.close(inner)
    os.close(outer)


def test_a_slow_opening_says_so_before_the_screen_comes(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    (folder / "compare.py").write_text((root / "examples" / "compare.py").read_text())
    text = (root / "examples" / "vector_add.py").read_text()
    (folder / "slow.py").write_text(text.replace("import nki\n", "import time\n\nimport nki\n\ntime.sleep(2)\n", 1))
    outer, inner = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "XDG_CONFIG_HOME": str(tmp_path), "PYTHONPATH": str(root),
                   "XDG_STATE_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "neurontools", "debug", str(folder / "slow.py")],
        stdin=inner, stdout=inner, stderr=inner, cwd=root, env=environment,
    )  # fmt: skip
    os.close(inner)
    try:
        seen, end = b"", time.monotonic() + 60
        while b"ENGINES" not in seen:
            assert time.monotonic() < end and process.poll() is None, seen[-500:]
            if select.select([outer], [], [], 0.5)[0]:
                seen += os.read(outer, 1 << 16)
        assert 0 <= seen.find(b"opening slow.py, ") < seen.find(b"\x1b[?1049h")
    finally:
        process.kill()
        process.wait()
        os.close(outer)
