"""How many variants a search needs: every variant of three kernels once, then each method replayed on the results.

    python benchmarks/tuning.py [SEEDS]

Prints, of each kernel and method, the share of the grid after which a variant within 5 % of the best is known, and how
far the best is from the best of all after a fifth of the grid; medians and the worst over seeds. A run on a part of the
rows counts as that part of one, and successive halving begins with as many variants as come to a fifth of the grid.
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
from neurontools.tuning.search import search_of
from neurontools.tuning.space import key_of

SHARE, NEAR = 0.2, 1.05

neurontools.nki.install()
kernels = importlib.import_module("tuning_kernels")
SPACES, RUNGS, case = kernels.SPACES, kernels.RUNGS, kernels.case


def times(name, part):
    """Return the emulated time of every variant on a part of the rows; a variant that cannot be built has none."""
    kernel, arguments, _ = case(name, part)
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
    """Return what it took to find a variant near the best, infinite where none is, and the best after a fifth.

    `known` are times of all variants by part of the rows; what it took is in whole runs, as a share of the grid.
    """
    size = math.prod(map(len, SPACES[name].values()))
    parts = [*(RUNGS[name] if method == "halving" else ()), 1]
    cost = sum(share / 3**rung for rung, share in enumerate(1 / part for part in parts))
    search = search_of(method, SPACES[name], seed, int(SHARE * size / cost), len(parts) - 1)
    best, least, near, fifth, spent = min(known[1].values()), math.inf, math.inf, math.inf, 0.0
    while (values := search.ask()) is not None:
        part = parts[search.rung]
        time_ps = known[part].get(key_of(values))
        search.tell(Trial(values, "refused" if time_ps is None else "ok", time_ps or -1))
        spent += 1 / part
        if part == 1:
            least = min(least, time_ps or math.inf)
        if near == math.inf and least <= NEAR * best:
            near = spent
        if spent <= math.ceil(SHARE * size):
            fifth = least
    return near / size, fifth / best


def main():
    """Print the table."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print("| kernel | variants | slowest / best | method | grid until within 5 % (median, worst) | after a fifth |")
    print("|---|--:|--:|---|--:|--:|")
    for name in SPACES:
        known = {part: times(name, part) for part in (1, *RUNGS[name])}
        spread = max(known[1].values()) / min(known[1].values())
        for method in METHODS:
            try:
                found = [replay(name, method, known, seed) for seed in range(seeds)]
            except NeuronError as error:
                print(f"{method}: {error}", file=sys.stderr)
                continue
            needed, after = zip(*found, strict=True)
            print(
                f"| {name} | {len(known[1])} | {spread:.2f} | {method} | {statistics.median(needed):.0%}, "
                f"{max(needed):.0%} | {statistics.median(after):.3f}, {max(after):.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
