"""The prompt over ranks on a real terminal: a rank chosen, Ctrl-C in a move, forwards and back, leaving."""

from __future__ import annotations

import os
import re
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="needs pseudo-terminals")

# It runs for minutes: no machine is so fast that it ends before Ctrl-C comes.
SCRIPT = """
import os
import numpy as np
import nki, nki.collectives as ncc, nki.language as nl

world = int(os.environ["WORLD_SIZE"])

@nki.jit
def long(x):
    own, out = (nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm) for _ in range(2))
    tile = nl.load(x)
    for _ in nl.dynamic_range(1_000_000):
        tile[...] = nl.multiply(tile, 1.0)
    nl.store(own, tile)
    ncc.all_reduce([own], [out], [list(range(world))], nl.add)
    return out

long(np.ones((128, 512), np.float32))
"""
_PATIENCE = 240.0  # seconds: many times what it takes, for a machine that does much else


class Prompt:
    """A session on a terminal of its own."""

    def __init__(self, folder: Path, root: Path, *options: str) -> None:
        (folder / "long.py").write_text(SCRIPT)
        environment = {**os.environ, "TERM": "xterm", "HOME": str(folder), "PYTHONPATH": str(root)}
        words = [sys.executable, "-m", "neurontools", "debug", str(folder / "long.py"), *options]
        self.process, self._terminal = pty.fork()
        if not self.process:
            import signal

            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background ignores it
            os.execvpe(sys.executable, words, environment)
        self._seen = ""

    def until(self, text: str) -> str:
        """Return what comes up to a text."""
        end = time.monotonic() + _PATIENCE
        while text not in self._seen:
            assert time.monotonic() < end, self._seen[-2000:]
            if select.select([self._terminal], [], [], 0.2)[0]:
                self._seen += os.read(self._terminal, 1 << 16).decode(errors="replace")
        found, _, self._seen = self._seen.partition(text)
        return found

    def until_rank_two(self) -> str:
        """Return what comes up to the next prompt of rank 2, on whatever engine."""
        found = self.until("(neuron rank 2 nc0 ")
        self.until(") ")
        return found

    def give(self, line: str) -> None:
        """Type a line."""
        os.write(self._terminal, f"{line}\n".encode())

    def press_ctrl_c(self, after: float) -> None:
        """Interrupt, a while from now."""
        time.sleep(after)
        os.write(self._terminal, b"\x03")

    def leave(self) -> int:
        """Quit, and return the exit status."""
        self.give("quit")
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


@pytest.fixture
def prompt(tmp_path: Path, root: Path) -> Iterator[Prompt]:
    made = Prompt(tmp_path, root, "--ranks", "3", "--target", "trn2", "--lnc", "1", "--cli")
    yield made
    try:
        os.kill(made.process, 9)
        os.waitpid(made.process, 0)
    except (ProcessLookupError, ChildProcessError):
        pass  # it has ended, as it should


def test_the_prompt_names_the_rank_and_ctrl_c_stops_all_of_them(prompt: Prompt) -> None:
    prompt.until("(neuron rank 0 nc0 ")
    prompt.give("rank 2")
    prompt.until_rank_two()
    prompt.give("continue")
    prompt.press_ctrl_c(0.5)
    assert "interrupted" in prompt.until_rank_two()
    prompt.give("info ranks")
    rows = [line.split() for line in prompt.until_rank_two().splitlines() if " running " in line]
    events = [int(row[row.index("running") + 3].replace(",", "")) for row in rows]
    assert len(rows) == 3 and min(events) > 0 and max(events) - min(events) <= 2
    prompt.give("reverse-step 2")
    assert "back 2 completions" in prompt.until_rank_two()
    prompt.give("goto end")
    prompt.press_ctrl_c(0.5)
    assert "interrupted" in prompt.until_rank_two()
    prompt.give("step")
    assert re.search(r"#\d+ .* nc0 \w+ pc \d+", prompt.until_rank_two())
    assert prompt.leave() == 0
