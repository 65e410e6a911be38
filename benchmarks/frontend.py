"""What the front end costs: tracing and building a kernel of every engine, per instruction, and how it grows.

    python benchmarks/frontend.py [INSTRUCTIONS ...]

An instruction is one word of the file. Time is processor time of this process, the shortest of three runs (one run
from 200,000 instructions on); memory is what Python held at the height of building, over what the trace holds, from a
run of its own under tracemalloc.
"""

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
MEASURED_BYTES = 50_000     # tracemalloc slows building down tenfold


def mixed(a, b, turns):
    """Return, for each turn, columns that have passed through every engine."""
    out = nl.ndarray((128, 128 * turns), dtype=nl.float32, buffer=nl.shared_hbm)
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
        nisa.tensor_scalar(dst=z, data=z, op0=nl.subtract, operand0=largest)
        nisa.dma_copy(dst=out[:, turn * 128 : turn * 128 + 128], src=z)
    return out


def trace(turns):
    """Return the traces of the kernel."""
    a, b = np.zeros((128, 128), np.float32), np.zeros((128, 1024), np.float32)
    return [one.trace for one in trace_kernel(mixed, (a, b, turns), target=TARGET)]


def measure(turns):
    """Return instructions, and the seconds of tracing and of building."""
    started = time.process_time()
    traces = trace(turns)
    traced = time.process_time()
    built = builder.build(traces, "mixed")
    ended = time.process_time()
    words = sum(sum(core.words.values()) for core in built.report.cores)
    return words, traced - started, ended - traced


def height(turns):
    """Return the bytes per instruction that building holds at its height."""
    traces = trace(turns)
    tracemalloc.start()
    built = builder.build(traces, "mixed")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / sum(sum(core.words.values()) for core in built.report.cores)


def main():
    """Print a line per size; return 1 when a goal is missed."""
    sizes = [int(one) for one in sys.argv[1:]] or [10_000, 100_000, 1_000_000]
    measure(2)      # imports, tables of the instruction set
    costs = []
    for size in sizes:
        turns = max(round(size / WORDS_PER_TURN), 1)
        runs = [measure(turns) for _ in range(3 if size < 200_000 else 1)]
        words = runs[0][0]
        traced, built = (min(run[index] for run in runs) / words * 1e6 for index in (1, 2))
        costs.append(traced + built)
        print(f"{words:>9,} instructions: trace {traced:.1f} + build {built:.1f} = {costs[-1]:.1f} us each "
              f"(goal {GOAL_US:.0f})", flush=True)
    peak = height(round(MEASURED_BYTES / WORDS_PER_TURN))
    growth = max(costs) / min(costs)
    print(f"building holds {peak:.0f} bytes per instruction at its height (goal {GOAL_BYTES}); the dearest size costs "
          f"{growth:.2f} times the cheapest (goal {GOAL_GROWTH})")
    return 0 if max(costs) <= GOAL_US and peak <= GOAL_BYTES and growth <= GOAL_GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
