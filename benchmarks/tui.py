"""What the screen costs: opening, a step until it is painted, and the emulator's speed while the screen follows.

    python benchmarks/tui.py [WORDS]      default 10,000; the real program on a pseudo-terminal of 200 by 50

Informational: nothing here fails. A run takes turns with one without a screen, so that both meet the same machine. Both
are of the session that `neurontools debug` opens, in a process of their own, from the same event on.
"""

from __future__ import annotations

import fcntl
import gc
import os
import pty
import re
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

SIZE = 50, 200  # lines, columns
STEPS = 60
QUIET = 0.03  # seconds without output that end a frame
ROUNDS = 3


class Terminal:
    """`neurontools debug FILE` on a pseudo-terminal; `text` is all it has painted since it was last cleared."""

    def __init__(self, file: Path) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self.state = tempfile.TemporaryDirectory(prefix="neurontools-benchmark-")
        environment["XDG_STATE_HOME"] = self.state.name
        self.text = ""
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "neurontools", "debug", str(file)],
            stdin=slave, stdout=slave, stderr=slave, cwd=ROOT, env=environment, start_new_session=True,
        )  # fmt: skip
        os.close(slave)

    def press(self, keys: str) -> float:
        """Send keys; return when."""
        self.text = ""
        os.write(self.master, keys.encode())
        return time.perf_counter()

    def until(self, pattern: str, seconds: float = 60) -> float:
        """Read until something has been painted and the frame is whole; return when its last byte came."""
        wanted, end = re.compile(pattern), time.perf_counter() + seconds
        last = time.perf_counter()
        while time.perf_counter() < end:
            found = wanted.search(self.text)
            ready, _, _ = select.select([self.master], [], [], QUIET if found else 0.5)
            if ready:
                self.text += os.read(self.master, 1 << 20).decode(errors="replace")
                last = time.perf_counter()
            elif found:
                return last
        raise TimeoutError(f"{pattern!r} was not painted, but {self.text[-300:]!r}")

    @property
    def cpu(self) -> float:
        """Return the seconds of processor time that the program has taken, all threads together."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """Leave."""
        os.write(self.master, b"q")
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.master)


def alone(file: Path) -> None:
    """Print the seconds, and those of the processor, that the same run takes at the prompt, without a screen."""
    from neurontools.debugger.opening import open_session

    session = open_session(file)
    session.step(STEPS)
    started, cpu = time.perf_counter(), time.process_time()
    session.continue_()
    print(time.perf_counter() - started, time.process_time() - cpu)


def headless(file: Path) -> tuple[float, float]:
    """Return what `alone` prints in a process of its own."""
    command = [sys.executable, __file__, "--alone", str(file)]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    seconds, cpu = map(float, output.split())
    return seconds, cpu


def steps(terminal: Terminal) -> list[float]:
    """Return the seconds from each key to its painted frame."""
    found = []
    for number in range(STEPS):  # events count from 0
        pressed = terminal.press("s")
        found.append(terminal.until(rf"#{number} ·") - pressed)
    return found


def main() -> None:
    """Measure and print."""
    gc.set_threshold(200_000, 20, 20)  # as in neurontools/__main__.py: the run alone and the followed one collect alike
    if sys.argv[1:2] == ["--alone"]:
        alone(Path(sys.argv[2]))
        return
    from benchmarks.checks import source
    from neurontools.assembly.assemble_neff import to_neff
    from neurontools.assembly.assembler import parse_program

    words = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.neff"
        file.write_bytes(to_neff(parse_program(source(words), "run.s")))
        opened, stepped, ratios, opened_cpu, stepped_cpu, ratios_cpu = [], [], [], [], [], []
        spent, updates = [], []
        for _ in range(ROUNDS):
            terminal = Terminal(file)
            try:
                opened.append(terminal.until("by tensor") - terminal.started)
                opened_cpu.append(terminal.cpu)
                stepped += steps(terminal)
                stepped_cpu.append((terminal.cpu - opened_cpu[-1]) / STEPS)
                seconds, seconds_cpu = headless(file)
                cpu = terminal.cpu
                pressed = terminal.press("c")
                spent.append(terminal.until("finished", 600) - pressed)
                ratios.append(seconds / spent[-1])
                ratios_cpu.append(seconds_cpu / (terminal.cpu - cpu))
                updates.append(len(set(re.findall(r"#(\d+) ·", terminal.text))) / spent[-1])
            finally:
                terminal.close()
    print(f"{words:,} words, {SIZE[1]} by {SIZE[0]}, {ROUNDS} rounds")
    print(f"opening                     {statistics.median(opened):6.2f} s (goal 1.0), "
          f"of the processor {statistics.median(opened_cpu):.2f} s")  # fmt: skip
    print(f"key to painted step, median {statistics.median(stepped) * 1000:6.1f} ms (goal 50), "
          f"of the processor {statistics.median(stepped_cpu) * 1000:.1f} ms")  # fmt: skip
    print(f"                     slowest tenth from {statistics.quantiles(stepped, n=10)[-1] * 1000:.1f} ms")
    print(f"emulator while followed     {100 * statistics.median(ratios):6.0f} % of its speed alone (goal 80), "
          f"by processor time {100 * statistics.median(ratios_cpu):.0f} %")  # fmt: skip
    print(f"                     in runs of {statistics.median(spent):.1f} s, "
          f"{statistics.median(updates):.1f} updates a second (goal 5 to 30)")  # fmt: skip
    from benchmarks import tui_maps

    tui_maps.report()


if __name__ == "__main__":
    main()
