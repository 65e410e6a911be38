"""Whether emulated times put versions of kernels in the order of their published times: Spearman's coefficient."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

from formats.named_tuple import NamedTuple
from neurontools.validation.results import Ranking
from neurontools.validation.targets import PICOSECONDS

if TYPE_CHECKING:
    from neurontools.validation.measure import Measurement

__all__ = ["LIBRARY", "LibraryRow", "library_rows", "rankings", "ranks", "spearman"]

LIBRARY = "nki_library.csv"
_MATMULS = tuple(f"C-{number}" for number in range(1, 9))
_MAMBA = ("D-1", "D-2", "D-3")

Pair = tuple[float, float]


class LibraryRow(NamedTuple):
    """A case of nki-library: what its test expects, and what the emulator gave, in microseconds."""

    kernel: str
    case: str
    expected: float
    ours: float


def library_rows() -> tuple[LibraryRow, ...]:
    """Return the figures that `benchmarks/nki_library.py` gave."""
    lines = files(__package__).joinpath(LIBRARY).read_text(encoding="utf-8").splitlines()
    found = (line.split(",") for line in lines[1:])
    return tuple(LibraryRow(kernel, case, float(expected), float(ours)) for kernel, case, expected, ours in found)


def ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value, from 1; equal values share the mean of their ranks."""
    order = sorted(values)
    first = {value: place for place, value in reversed(list(enumerate(order)))}  # reversed: of equals the first stays
    return [first[value] + (order.count(value) + 1) / 2 for value in values]


def spearman(pairs: Iterable[Pair]) -> float | None:
    """Return the correlation of ranks; None where there is none: fewer than two pairs, or all of a side equal."""
    both = [ranks(side) for side in zip(*pairs, strict=True)]
    if not both or any(len(set(side)) < 2 for side in both):
        return None
    # Pearson's coefficient of the ranks, not the short formula of squared differences, which ties make wrong.
    (one, other), middle = both, (len(both[0]) + 1) / 2
    product = sum((a - middle) * (b - middle) for a, b in zip(one, other, strict=True))
    return product / math.sqrt(math.prod(sum((a - middle) ** 2 for a in side) for side in both))


def _averages(rows: Iterable[LibraryRow]) -> dict[str, Pair]:
    by_kernel: dict[str, list[LibraryRow]] = {}
    for row in rows:
        by_kernel.setdefault(row.kernel, []).append(row)
    return {
        kernel: (statistics.mean(row.expected for row in cases), statistics.mean(row.ours for row in cases))
        for kernel, cases in by_kernel.items()
    }


def rankings(measurements: Iterable[Measurement]) -> tuple[Ranking, ...]:
    """Return how far orders agree, of every set of versions whose rows were all measured.

    The first is of all of them together: matrix products, Mamba steps, and a mean for every test file of nki-library.
    """
    known = {
        m.target.id: (m.target.value * scale, m.ours * scale)
        for m in measurements
        # Of times only: a rate is better where it is larger, and would turn the order round.
        if m.ours is not None and (scale := PICOSECONDS.get(m.target.unit, 0.0) / PICOSECONDS["us"])
    }
    library = library_rows()
    averages = _averages(library)

    def documented(*names: str) -> list[Pair] | None:
        return [known[name] for name in names] if all(name in known for name in names) else None

    # All or none: an order of those that happened to run says nothing about the others.
    together = documented(*_MATMULS, *_MAMBA)
    sets = {
        "documented versions and nki-library, together": together and together + list(averages.values()),
        "matrix products C-1 to C-8": documented(*_MATMULS),
        "of these, trn1: C-1 to C-4": documented(*_MATMULS[:4]),
        "of these, trn2: C-5 to C-8": documented(*_MATMULS[4:]),
        "Mamba D-1 to D-3": documented(*_MAMBA),
        "nki-library, a mean for every test file": list(averages.values()),
        "nki-library, row by row": [(row.expected, row.ours) for row in library],
        **{f"of these, {name}": [(row.expected, row.ours) for row in library if row.kernel == name]
           for name in averages},
    }  # fmt: skip
    return tuple(
        Ranking(name, len(pairs), coefficient)
        for name, pairs in sets.items()
        if pairs is not None and (coefficient := spearman(pairs)) is not None
    )
