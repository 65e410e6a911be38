"""What the journal costs: recording per instruction, its bytes, a step back. Informational: nothing here fails.

    python benchmarks/journal.py [SIZE] [WORDS] [STEPS]

Recording is measured on the tiled matmul of `benchmarks/matmul.py` (2048 cubed), with and without a journal;
steps back on a run of 100,000 words of `benchmarks/checks.py`: one after the other from the end, and behind jumps to
places spread over all of it.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is imported: spinning threads would measure themselves

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import neurontools
from emulator.device import Device
from emulator.journal import BUDGET, Journal

TARGET = "trn2"
GOAL_US, GOAL_MS = 150.0, 20.0


def loaded(neff: Any, inputs: dict[str, Any], budget: int | None) -> tuple[Device, Journal | None]:
    """Return a device with a program, and a journal where there is a budget for one."""
    device = Device(neff.target, len(neff.subgraphs))
    device.load(neff)
    device.set_inputs(inputs)
    journal = None if budget is None else Journal(device, budget)
    if journal is not None:
        device.observers.append(journal)
    return device, journal


class Silent:
    """An observer that does nothing: what being watched costs by itself."""

    def on_event(self, event: Any) -> None:
        """Do nothing."""


def recording(size: int) -> None:
    """Print what recording costs on the tiled matmul."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
    neurontools.nki.install()
    from tiled_matmul import tiled_matmul

    random = np.random.default_rng(0)
    a_t, b = (random.standard_normal((size, size), np.float32) for _ in range(2))
    neff = neurontools.build(tiled_matmul, a_t, b, target=TARGET)
    inputs = dict(zip((tensor.name for tensor in neff.inputs), (a_t, b), strict=True))
    words = sum(len(stream) for graph in neff.subgraphs for stream in graph.streams.values())
    times: dict[str, float] = {}
    for _ in range(3):
        for label, budget in (("bare", None), ("journal", BUDGET)):
            device, journal = loaded(neff, inputs, budget)
            started = time.process_time()
            device.run()
            took = time.process_time() - started
            times[label] = min(took, times.get(label, took))
            assert device.outcome == "finished"
            if journal is not None:
                kept = (
                    f"{journal.nbytes / 1e6:.0f} MB of records + {journal.checkpoint_bytes / 1e6:.0f} MB of "
                    f"{len(journal.checkpoints) - 1} checkpoints = "
                    f"{(journal.nbytes + journal.checkpoint_bytes) / 1e6:.0f} of {BUDGET / 1e6:.0f} MB"
                )
            del journal
            device.release()
    more = (times["journal"] - times["bare"]) / words * 1e6
    print(
        f"matmul {size}^3: {words:,} instructions, bare {times['bare']:.2f} s, recorded {times['journal']:.2f} s "
        f"(CPU, best of 3): {more:.0f} us more per instruction (goal {GOAL_US:.0f})"
    )
    print(f"  {kept}")


def stepping(words: int, steps: int) -> None:
    """Print what a step back costs at places all over a long run."""
    from checks import program

    neff = program(words)
    device, journal = loaded(neff, {"x": np.ones((128, 512), np.float32)}, BUDGET)
    assert journal is not None
    started = time.process_time()
    device.run()
    took = time.process_time() - started
    total = len(journal.log)
    print(
        f"{words} words, {total} completions recorded in {took:.1f} s; {journal.records} at hand, "
        f"{len(journal.checkpoints) - 1} checkpoints, "
        f"{(journal.nbytes + journal.checkpoint_bytes) / 1e6:.0f} of {BUDGET / 1e6:.0f} MB"
    )
    _report("one after the other from the end", journal, [total - 1 - at for at in range(steps)])
    for at in (int(at) for at in np.linspace(total - steps - 2, 2, 20)):
        before = time.perf_counter()
        journal.back_to(at)
        took = time.perf_counter() - before
        _report(f"25 behind a jump to {at} ({took * 1e3:.0f} ms)", journal, [at - 1 - n for n in range(min(25, at))])
    device, journal = loaded(neff, {"x": np.ones((128, 512), np.float32)}, BUDGET)
    assert journal is not None
    device.run()
    # Where what is at hand ends, the next step runs again from the checkpoint before.
    journal.back_to(total - journal.records)
    here = len(journal.log)
    _report("one after the other past the end of what is at hand", journal, list(range(here - 1, here - 4 * steps, -1)))


def _report(label: str, journal: Journal, places: list[int]) -> None:
    times = []
    for target in places:
        before = time.perf_counter()
        journal.back_to(target)
        times.append(time.perf_counter() - before)
    over = sum(each > GOAL_MS / 1e3 for each in times)
    print(
        f"  {label}: median {np.median(times) * 1e3:.2f} ms, most {max(times) * 1e3:.1f} ms, "
        f"{over} of {len(times)} over {GOAL_MS:.0f} ms"
    )


def main() -> None:
    """Print all figures."""
    size, words, steps = (
        int(sys.argv[n]) if len(sys.argv) > n else default for n, default in ((1, 2048), (2, 100_000), (3, 1500))
    )
    recording(size)
    stepping(words, steps)


if __name__ == "__main__":
    main()
