"""Triage of many light dumps: `python benchmarks/triage.py [ranks]`; prints one line of JSON.

The dumps are those of two example programs, written by the collector; every rank has three files of its own
(core, log, manifest), links to those, so the page cache is warm: what is measured is the work, not the disk.
Goal: 10,000 ranks in 60 s on two processors.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from formats.nrt.names import FileName, parse_file

ROOT = Path(__file__).resolve().parents[1]
RANKS_OF_ONE = 64


def templates(folder: Path) -> list[list[Path]]:
    """Return the files of one dump per example program."""
    found = []
    for name in ("out_of_bounds", "deadlock"):
        target = folder / name
        subprocess.run(
            [sys.executable, "-m", "neurontools", "run", ROOT / f"examples/{name}.s", "--dump-dir", target, "--quiet"],
            check=False,
            stdout=subprocess.DEVNULL,
        )
        found.append(sorted(next(target.iterdir()).iterdir()))
    return found


def fill(folder: Path, made: list[list[Path]], ranks: int) -> None:
    """Make directories of ranks from links to the files of the templates."""
    for rank in range(ranks):
        execution = rank // RANKS_OF_ONE
        directory = folder / f"dt-20260101-000000-cid-{execution:016x}"
        directory.mkdir(exist_ok=True)
        for path in made[execution % len(made)]:
            name = parse_file(path.name)
            assert name is not None
            mine = FileName(name.kind, f"i-{rank // 32:017x}", rank, rank, 0, name.device, name.core)
            os.link(path, directory / str(mine))


def main() -> None:
    """Measure one triage of a folder of dumps, in a process of its own."""
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as base:
        made = templates(Path(base))
        dumps = Path(base) / "dumps"
        dumps.mkdir()
        fill(dumps, made, ranks)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        ended = subprocess.run(
            [sys.executable, "-m", "neurontools", "core", "triage", dumps, "--json"], check=False, capture_output=True
        )
        seconds = time.perf_counter() - started
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = json.loads(ended.stdout)["result"]
        assert result["ranks"] == ranks and result["signatures"] == len(made), result
        figures = {
            "ranks": ranks,
            "seconds": round(seconds, 2),
            "processor_seconds": round(usage.ru_utime + usage.ru_stime - before.ru_utime - before.ru_stime, 2),
            "ms_per_rank": round(seconds / ranks * 1000, 3),
            "processors": len(os.sched_getaffinity(0)),
            "largest_process_mb": round(usage.ru_maxrss / 1024),
        }
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
