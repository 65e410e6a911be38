"""What starting costs: processor time of whole processes, against `python -c pass` in the same run.

    python benchmarks/startup.py [ROUNDS]      default 10; processes take turns, so that all meet the same machine

Informational: nothing here fails. Byte code is compiled once, as where a package is installed.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEFF, CORE = ROOT / "fixtures/neff/add_exp.neff", ROOT / "fixtures/core/nan.core"
SIX = "break 3;continue;info registers;step;info engines;x/4xw out"
PROGRAM = ("-m", "neurontools")
WHAT = {
    "python -c pass": (("-c", "pass"), ""),
    "import numpy, ml_dtypes": (("-c", "import emulator, ml_dtypes"), ""),
    "neurontools --version": ((*PROGRAM, "--version"), ""),
    "neurontools core info --json": ((*PROGRAM, "core", "info", str(CORE), "--json"), "goal 100 ms past python"),
    "neurontools debug, six commands": ((*PROGRAM, "debug", str(NEFF), "--commands", SIX), "goal 400 ms in all"),
}


def seconds(words: tuple[str, ...], environment: dict[str, str]) -> float:
    """Return the processor seconds of one process, user and system; CalledProcessError where it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Measure and print."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    taken: dict[str, list[float]] = {name: [] for name in WHAT}
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for number in range(rounds + 1):
            for name, (words, _) in WHAT.items():
                spent = seconds(words, environment)
                if number:  # the first round compiles
                    taken[name].append(spent)
    empty = statistics.median(taken["python -c pass"])
    title = f"processor time, {rounds} rounds"
    print(f"{title:32} {'least':>8} {'median':>8} {'past python':>12} {'ratio':>7}")
    for name, spent in taken.items():
        middle = statistics.median(spent)
        print(f"{name:32} {min(spent) * 1000:5.0f} ms {middle * 1000:5.0f} ms {(middle - empty) * 1000:9.0f} ms "
              f"{middle / empty:6.1f}x  {WHAT[name][1]}")  # fmt: skip


if __name__ == "__main__":
    main()
