"""Run many inputs of a target, keep one of each class of crash, and make it small."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.fuzz.mutation import mutated, mutated_text
from tests.fuzz.oracles import Crash, tried
from tests.fuzz.targets import TARGETS, Target

__all__ = ["Found", "Tally", "fuzz", "fuzz_guided", "fuzz_named", "minimised", "store"]

_MINIMISING = 20.0  # seconds of one crash


class Found(NamedTuple):
    """One class of crash: the smallest input known for it."""

    crash: Crash
    data: bytes


class Tally(NamedTuple):
    """What came of a run: inputs, seconds, crashes by class."""

    target: str
    inputs: int
    seconds: float
    found: dict[str, Found]


def fuzz(target: Target, *, seed: int, inputs: int | None = None, seconds: float | None = None) -> Tally:
    """Try the seeds themselves, then mutations, until a number of inputs or a time is reached."""
    chance, seeds, found = random.Random(f"{seed} {target.name}"), target.seeds(), dict[str, Found]()
    began, count = time.monotonic(), 0
    while (inputs is None or count < inputs) and (seconds is None or time.monotonic() - began < seconds):
        data = seeds[count] if count < len(seeds) else _made(target, seeds, chance)
        count += 1
        crash = tried(target.run, data)
        if crash is not None and (crash.kind not in found or len(data) < len(found[crash.kind].data)):
            found[crash.kind] = Found(crash, data)
    return Tally(target.name, count, time.monotonic() - began, found)


def fuzz_named(name: str, seed: int, inputs: int | None, seconds: float | None) -> Tally:
    """Do the same in a process of its own, which knows targets by name, and make what was found small."""
    tally = fuzz(TARGETS[name], seed=seed, inputs=inputs, seconds=seconds)
    small = {kind: minimised(TARGETS[name], found) for kind, found in tally.found.items()}
    return tally._replace(found=small)


def fuzz_guided(name: str, seed: int, inputs: int | None, seconds: float | None) -> Tally:
    """Fuzz a target by coverage in a process of libFuzzer's, and make what was found small.  `inputs` is not for it."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="neurontools-guided-") as folder:
        command = [sys.executable, "-m", "tests.fuzz.guided", name, str(int(seconds or 60)), folder, str(seed)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        counted = Path(folder, "inputs")
        if ended.returncode or not counted.exists():
            said = (ended.stderr.strip().splitlines() or ["nothing"])[-1]
            crash = Crash(f"process ended with {ended.returncode}", said[:300])
            return Tally(name, 0, time.monotonic() - began, {crash.kind: Found(crash, b"")})
        found = {}
        for path in sorted(Path(folder, "crashes").glob("*")):
            data = path.read_bytes()
            crash_again = tried(TARGETS[name].run, data)
            if crash_again is not None:
                found[crash_again.kind] = minimised(TARGETS[name], Found(crash_again, data))
        return Tally(name, int(counted.read_text()), time.monotonic() - began, found)


def _made(target: Target, seeds: list[bytes], chance: random.Random) -> bytes:
    if not target.text:
        return mutated(chance.choice(seeds), seeds, chance)
    texts = [chance.choice(seeds).decode("utf-8", "replace") for _ in range(2)]
    return mutated_text(texts[0], texts[1:], chance).encode("utf-8", "replace")


def minimised(target: Target, found: Found) -> Found:
    """Return a smaller input of the same class: pieces are left out while the class stays."""
    data, until = found.data, time.monotonic() + _MINIMISING
    size = max(1, len(data) // 2)
    while size:
        at = 0
        while at < len(data) and time.monotonic() < until:
            shorter = data[:at] + data[at + size :]
            crash = tried(target.run, shorter)
            if crash is not None and crash.kind == found.crash.kind:
                data = shorter
            else:
                at += size
        size //= 2
    return Found(found.crash, data)


def store(folder: Path, target: str, found: Found, tell: Callable[[str], None]) -> Path:
    """Write a crash as a file whose name tells its class; `tests.fuzz.test_fuzz` tries all such files again."""
    folder.mkdir(parents=True, exist_ok=True)
    name = "".join(c if c.isalnum() else "-" for c in found.crash.kind)[:100]
    path = folder / f"{target}.{name}.input"
    path.write_bytes(found.data)
    tell(f"  {found.crash.kind}: {found.crash.text}\n    {path} ({len(found.data):,} bytes)")
    return path
