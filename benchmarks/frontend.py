"""What the front end costs: tracing and building a kernel of every engine, per instruction, and how it grows.

    python benchmarks/frontend.py [INSTRUCTIONS ...]

An instruction is one word of the file. Each size has a process of its own. Time is processor time, the shortest of
three runs (one run from 200,000 instructions on). Memory is given twice: resident bytes, of the trace and the most that
building held besides, the finished file included; and, from a run of its own under tracemalloc, what Python's objects
took at the height of building. The first is larger by what the allocator keeps.
"""

import json
import subprocess
import sys
import time
import tracemalloc

import numpy as np

from neurontools import builder
from neurontools.nki import isa as nisa
from neurontools.nki import language as nl
from neurontools.nki.launch import trace_kernel

TARGET = "trn2"
GOAL_US, GOAL_BYTES, GOAL_GROWTH = 60.0, 1500, 1.3
WORDS_PER_TURN = 11.6
MEASURED_BYTES = 50_000  # tracemalloc slows building down tenfold


def mixed(a, b, turns):
    """Return, for each turn, columns that have passed through every engine; bfloat16, so that a million words fit."""
    out = nl.ndarray((128, 128 * turns), dtype=nl.bfloat16, buffer=nl.shared_hbm)
    weights = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=weights, src=a)
    for turn in nl.affine_range(turns):
        place = turn % (b.shape[1] // 128) * 128
        x = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=x, src=b[:, place : place + 128])
        y = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=y, data=x, op0=nl.multiply, operand0=0.01)
        nisa.activation(dst=y, op=nl.exp, data=y)
        product = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(product, weights, y)
        z = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=z, data1=product, data2=x, op=nl.add)
        largest = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=largest, op=nl.maximum, data=z, axis=1)
        last = nl.ndarray((128, 128), dtype=nl.bfloat16, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=last, data=z, op0=nl.subtract, operand0=largest)
        nisa.dma_copy(dst=out[:, turn * 128 : turn * 128 + 128], src=last)
    return out


def trace(turns):
    """Return the traces of the kernel."""
    a, b = np.zeros((128, 128), np.float32), np.zeros((128, 1024), np.float32)
    return [one.trace for one in trace_kernel(mixed, (a, b, turns), target=TARGET)]


def resident(highest=False):
    """Return the resident bytes of this process, or their highest since `forget_highest`; Linux tells them."""
    wanted = "VmHWM:" if highest else "VmRSS:"
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(wanted))


def forget_highest():
    """Begin a new highest value."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def measure(turns):
    """Return instructions, seconds of tracing and of building, resident bytes of the trace and of building."""
    first = resident()
    started = time.process_time()
    traces = trace(turns)
    traced = time.process_time()
    held = resident()
    forget_highest()
    between = time.process_time()
    built = builder.build(traces, "mixed")
    ended = time.process_time()
    words = sum(sum(core.words.values()) for core in built.report.cores)
    return words, traced - started, ended - between, held - first, resident(highest=True) - held


def height(turns):
    """Return the bytes per instruction that Python's objects take at the height of building, the trace left out."""
    traces = trace(turns)
    tracemalloc.start()
    built = builder.build(traces, "mixed")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / sum(sum(core.words.values()) for core in built.report.cores)


def one_size(size):
    """Print the figures of one size as JSON; memory is that of the first run, in a process that has done nothing."""
    measure(2)  # imports, tables of the instruction set
    turns = max(round(size / WORDS_PER_TURN), 1)
    runs = [measure(turns) for _ in range(3 if size < 200_000 else 1)]
    words, *_, of_trace, of_build = runs[0]
    traced, built = (min(run[index] for run in runs) / words * 1e6 for index in (1, 2))
    print(json.dumps([words, traced, built, of_trace / words, of_build / words]))


def main():
    """Print a line per size; return 1 when a goal is missed."""
    if sys.argv[1:2] == ["--one"]:
        return one_size(int(sys.argv[2]))
    sizes = [int(one) for one in sys.argv[1:]] or [10_000, 100_000, 1_000_000]
    costs, resident_bytes = [], []
    for size in sizes:
        done = subprocess.run([sys.executable, __file__, "--one", str(size)], capture_output=True, check=True)
        words, traced, built, of_trace, of_build = json.loads(done.stdout)
        costs.append(traced + built)
        resident_bytes.append(of_build)
        print(
            f"{words:>9,} instructions: trace {traced:.1f} + build {built:.1f} = {costs[-1]:.1f} us each "
            f"(goal {GOAL_US:.0f}); resident: trace {of_trace:.0f} + build {of_build:.0f} bytes each",
            flush=True,
        )
    peak = height(round(MEASURED_BYTES / WORDS_PER_TURN))
    growth = max(costs) / min(costs)
    print(
        f"building holds {peak:.0f} bytes per instruction at its height by tracemalloc (goal {GOAL_BYTES}); the "
        f"dearest size costs {growth:.2f} times the cheapest (goal {GOAL_GROWTH})"
    )
    return 0 if max(costs) <= GOAL_US and max(peak, *resident_bytes[1:]) <= GOAL_BYTES and growth <= GOAL_GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
