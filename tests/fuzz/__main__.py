"""`python -m tests.fuzz`: hostile inputs for every reader, for some minutes or a number of inputs."""

from __future__ import annotations

import argparse
import os
import random
import sys
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from neurontools.version import install_with
from tests.fuzz.driver import fuzz_guided, fuzz_named, store
from tests.fuzz.targets import TARGETS

CRASHES = Path(__file__).parent / "crashes"


def main() -> int:
    """Run the targets, tell what they found, and return 1 where that is anything."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, help="for all targets together (default 1.5 without --inputs)")
    parser.add_argument("--inputs", type=int, help="for each target")
    parser.add_argument("--target", action="append", choices=TARGETS, help="one of them; may be given again")
    parser.add_argument("--seed", type=int, default=None, help="of the mutations (default: another one each time)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--guided", action="store_true", help="by coverage, with atheris; takes --minutes")
    given = parser.parse_args()
    if given.guided and given.inputs:
        parser.error("--guided takes --minutes, no --inputs")
    if given.guided and find_spec("atheris") is None:
        parser.error(f"atheris is not installed: {install_with('fuzz')}")
    names = given.target or list(TARGETS)
    seed = random.SystemRandom().randrange(1 << 32) if given.seed is None else given.seed
    minutes = given.minutes if given.minutes is not None else None if given.inputs else 1.5
    jobs = max(1, min(given.jobs, len(names)))
    each = None if minutes is None else 60 * minutes * jobs / len(names)
    print(f"seed {seed}, {len(names)} targets, {jobs} processes", flush=True)
    total = crashes = 0
    with ProcessPoolExecutor(jobs, max_tasks_per_child=1) as pool:
        fuzz = fuzz_guided if given.guided else fuzz_named
        running = [pool.submit(fuzz, name, seed, given.inputs, each) for name in names]
        for future in running:
            tally = future.result()
            total += tally.inputs
            rate = tally.inputs / max(tally.seconds, 1e-9)
            told = f"{len(tally.found)} classes of crash" if tally.found else "no crash"
            print(f"{tally.target:<12}{tally.inputs:>10,} inputs {rate:>9,.0f}/s  {told}", flush=True)
            for found in tally.found.values():
                store(CRASHES, tally.target, found, lambda text: print(text, flush=True))
                crashes += 1
    print(f"{total:,} inputs, {crashes} classes of crash")
    return 1 if crashes else 0


if __name__ == "__main__":
    sys.exit(main())
