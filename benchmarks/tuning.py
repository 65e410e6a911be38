"""How many variants a search needs: every variant of three kernels once, then each method replayed on the results.

    python benchmarks/tuning.py [SEEDS]

Prints, of each kernel and method, the share of the grid after which a variant within 5 % of the best is known, and how
far the best is from the best of all after a fifth of the grid; medians and the worst over seeds.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import importlib
import itertools
import math
import statistics
import sys

import neurontools
from formats.errors import NeuronError
from neurontools.nki import choices
from neurontools.tuning.results import METHODS, Trial
from neurontools.tuning.search import key_of, search_of

SHARE, NEAR = 0.2, 1.05

neurontools.nki.install()
SPACES, case = (getattr(importlib.import_module("tuning_kernels"), name) for name in ("SPACES", "case"))


def times(name):
    """Return the emulated time of every variant; a variant that cannot be built has none."""
    kernel, arguments, _ = case(name)
    found = {}
    for each in itertools.product(*SPACES[name].values()):
        values = dict(zip(SPACES[name], each, strict=True))
        try:
            choices.choose(values)
            neff = neurontools.build(kernel, *arguments, target="trn2")
            inputs = dict(zip((one.name for one in neff.inputs), arguments, strict=True))
            found[key_of(values)] = neurontools.run(neff, inputs).time_ps
        except NeuronError as error:
            print(f"{name} {values}: {error}", file=sys.stderr)
    return found


def replay(name, method, known, seed):
    """Return after how many variants one near the best is known, and the best after a fifth of the grid."""
    best, least, near = min(known.values()), math.inf, None
    search, fifth = search_of(method, SPACES[name], seed), math.inf
    size = math.prod(map(len, SPACES[name].values()))
    for number in range(1, size + 1):
        values = search.ask()
        if values is None:
            break
        time_ps = known.get(key_of(values))
        search.tell(Trial(values, "refused" if time_ps is None else "ok", time_ps or -1))
        least = min(least, time_ps or math.inf)
        if near is None and least <= NEAR * best:
            near = number
        if number == int(SHARE * size):
            fifth = least
    return near / size, fifth / best


def main():
    """Print the table."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print("| kernel | variants | slowest / best | method | grid until within 5 % (median, worst) | after a fifth |")
    print("|---|--:|--:|---|--:|--:|")
    for name in SPACES:
        known = times(name)
        spread = max(known.values()) / min(known.values())
        for method in METHODS:
            try:
                found = [replay(name, method, known, seed) for seed in range(seeds)]
            except NeuronError as error:
                print(f"{method}: {error}", file=sys.stderr)
                continue
            needed, after = zip(*found, strict=True)
            print(
                f"| {name} | {len(known)} | {spread:.2f} | {method} | {statistics.median(needed):.0%}, "
                f"{max(needed):.0%} | {statistics.median(after):.3f}, {max(after):.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
