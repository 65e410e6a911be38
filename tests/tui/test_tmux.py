"""The real program on a real terminal: opened, stepped, gone back in time, left."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

TMUX = shutil.which("tmux")
_PATIENCE = 120.0  # seconds: many times what it takes, for a machine that does much else
pytestmark = pytest.mark.skipif(TMUX is None, reason="there is no tmux")


class Terminal:
    """One tmux server of its own with one window."""

    def __init__(self, folder: Path, size: tuple[int, int], command: str) -> None:
        self.socket = str(folder / "tmux")
        environment = {**os.environ, "XDG_STATE_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
        # What a process before us knew of its own terminal must not decide about this one.
        gone = ("TMUX", "NO_COLOR", "COLUMNS", "LINES")
        self._environment = {key: value for key, value in environment.items() if key not in gone}
        self.run("-f", "/dev/null", "new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), command)

    def run(self, *arguments: str) -> str:
        """Carry out one tmux command."""
        done = subprocess.run([str(TMUX), "-S", self.socket, *arguments], capture_output=True, text=True,
                              env=self._environment, timeout=_PATIENCE)  # fmt: skip
        return done.stdout

    def until(self, wanted: Callable[[str], bool], seconds: float = _PATIENCE) -> str:
        """Return the screen when it is as wanted."""
        end = time.monotonic() + seconds
        while True:
            text = self.run("capture-pane", "-p")
            if wanted(text):
                return text
            assert time.monotonic() < end, text
            time.sleep(0.1)

    def press(self, *keys: str) -> None:
        """Press keys."""
        self.run("send-keys", *keys)


@pytest.fixture
def terminal(tmp_path: Path, root: Path) -> Iterator[Callable[..., Terminal]]:
    made: list[Terminal] = []

    def start(file: str, size: tuple[int, int] = (200, 50)) -> Terminal:
        command = f"cd '{root}' && '{sys.executable}' -m neurontools debug {file}; echo left with $?; sleep 60"
        made.append(Terminal(tmp_path, size, command))
        return made[-1]

    yield start
    for each in made:
        each.run("kill-server")


def test_open_step_travel_back_quit(terminal: Callable[..., Terminal]) -> None:
    screen = terminal("examples/deadlock.s")
    screen.until(lambda text: "· start ·" in text and "SOURCE deadlock.s" in text)
    screen.press("s", "s")
    screen.until(lambda text: "#1 ·" in text)
    screen.press("c")
    text = screen.until(lambda text: "✗ hang" in text)
    assert "waits S[4]>=1, is 0  ← ACT pc 1 (deadlock)" in text
    screen.press("S")
    screen.until(lambda text: "#7 ·" in text or "#8 ·" in text)
    screen.press(":goto start", "Enter")
    text = screen.until(lambda text: "· start ·" in text and "› goto start" in text)
    assert "✗ hang" not in text
    screen.press("quit", "Enter")
    assert "Traceback" not in screen.until(lambda text: "left with 0" in text)


def test_a_small_terminal(terminal: Callable[..., Terminal]) -> None:
    screen = terminal("examples/deadlock.s", (80, 24))
    screen.until(lambda text: "[1 Run]" in text and "ENGINES" in text and "· start ·" in text)
    screen.press("2")
    screen.until(lambda text: "[2 Code]" in text and "SOURCE deadlock.s" in text and "ENGINES" not in text)
    screen.press("q")
    screen.until(lambda text: "left with 0" in text)


def test_the_prompt_instead(terminal: Callable[..., Terminal]) -> None:
    screen = terminal("--cli examples/deadlock.s")
    screen.until(lambda text: "(neuron nc0" in text)
    screen.press("quit", "Enter")
    screen.until(lambda text: "left with 0" in text)


def test_suspended_and_continued_the_terminal_is_sane(tmp_path: Path, root: Path) -> None:
    """Ctrl-Z, and SIGTSTP from elsewhere, give a shell back in which one can type; `fg` gives the screen."""
    shell = Terminal(tmp_path, (100, 30), f"cd '{root}' && PS1='ready> ' bash --norc -i")
    try:
        shell.until(lambda text: "ready>" in text)
        shell.press(f"'{sys.executable}' -m neurontools debug examples/deadlock.s", "Enter")
        shell.until(lambda text: "[1 Run]" in text and "· start ·" in text)
        for stop in ("key", "signal"):
            if stop == "key":
                shell.press("C-z")
            else:
                [pid] = _screens(shell)
                os.kill(pid, signal.SIGTSTP)
            shell.until(lambda text: "Stopped" in text and text.rstrip().endswith("ready>"))
            shell.press("clear; echo typed $((40+2)); stty -a | grep -o ' icanon\\| echo '", "Enter")
            text = shell.until(lambda text: "typed 42" in text and "icanon" in text.replace("grep -o", ""))
            assert " -icanon" not in text and " -echo " not in text
            shell.press("fg", "Enter")
            shell.until(lambda text: "[1 Run]" in text and "ENGINES" in text)
            shell.press("s")
            shell.until(lambda text, stop=stop: f"#{0 if stop == 'key' else 1} ·" in text)
        shell.press("q")
        shell.until(lambda text: text.rstrip().endswith("ready>"))
    finally:
        shell.run("kill-server")


def _screens(terminal: Terminal) -> list[int]:
    """Return the processes of the debugger below a terminal's shell."""
    shell = terminal.run("display-message", "-p", "#{pane_pid}").strip()
    found = []
    for pid in subprocess.run(["ps", "--ppid", shell, "-o", "pid="], capture_output=True, text=True).stdout.split():
        inner = subprocess.run(["ps", "--ppid", pid, "-o", "pid=,args="], capture_output=True, text=True).stdout
        own = subprocess.run(["ps", "-p", pid, "-o", "args="], capture_output=True, text=True).stdout
        lines = [f"{pid} {own}", *inner.splitlines()]
        found += [int(line.split()[0]) for line in lines if "neurontools debug" in line and "bash" not in line]
    return found
