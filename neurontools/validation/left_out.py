"""Leave one repository out: how far its captures are off where figures are taken from those of the others only.

Figures that say how long a word takes are fitted anew, to the medians of each class of words in each repository that is
left: the sum of the relative errors' magnitudes is made least. A figure that no other repository has takes the value of
the nearest kind of word, or what documents say. Figures of the time between words, of first times and of transfers stay
as they are: what a capture says about those hangs on its program.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from formats.named_tuple import NamedTuple
from neurontools.validation.captures import NEAR, Beside, active_errors, beside, word_errors
from neurontools.validation.results import LeftOutRow

if TYPE_CHECKING:
    from emulator.arch import Arch
    from formats.isa import Instruction

__all__ = ["fitted", "left_out"]

# Writes take the memory's time: as much of it is more cycles of Scalar than of Vector.
_SCALAR_WRITES = ("scalar_strided_write", "scalar_strided_write_psum")
_SCALAR_SMALL_WRITES = ("scalar_strided_write16", "scalar_strided_write16_psum")
# What is known of a figure without the captures it was taken from: another figure's value, or the documents'.
_WITHOUT: dict[str, str | float] = {
    **dict.fromkeys(
        ("vector_strided_write", "vector_strided_write16", "scalar_strided_read"), "slow_stride_factor"),
    "vector_strided_read": 1.0,  # hardware.md 2.3, 3.4: half of two elements a cycle
    **dict.fromkeys(_SCALAR_WRITES, "vector_strided_write"),
    **dict.fromkeys(_SCALAR_SMALL_WRITES, "vector_strided_write16"),
    "activation_psum_latency": "activation_latency",
    "tensor_scalar_latency": "vector_latency",
    "tensor_reduce_latency": "vector_latency",
    "load_weights_fp32": "load_transpose_fp32",
    "load_strided_rate_fp32": "load_strided_rate",
    "trigger_scalar": "trigger_pool",
    "software_word": "trigger_pool",
    "reciprocal_passes": 8.0,    # hardware.md 5.2
    "generate_hardware": 554.0,  # hardware.md 4.4: 600 ns a transfer, less `generate_gap`
    "generate_row": 0.0,
    "two_tensors": "two_inputs",
}  # fmt: skip
_ROUNDS = 40
_EXACT, _STAY = 0.002, 0.1  # errors below the one all weigh the same; the other keeps figures where words do not say
_ONE_TIME = 0.10  # the middle half of a class of words lies within this: others run at either clock of an engine


class _Class(NamedTuple):
    """Words of one opcode and shape on one engine in one repository; nanoseconds."""

    repository: str
    engine: str
    word: Instruction
    captured: float
    emulated: float
    takes_one_time: bool = True  # others depend on what else goes on


def left_out(folder: Path, pairs: Sequence[tuple[Path, Path]], sides: Sequence[Beside]) -> Iterator[LeftOutRow]:
    """Yield a row for every repository of a chip that others have captures of too.

    `pairs` are captures and their NEFFs below `folder`, `sides` each beside its run with the figures as they are.
    """
    from emulator.arch import arch_of  # deferred: start-up
    from emulator.cost.figures import figures_as  # deferred: start-up

    for target in sorted({side.target for side in sides}):
        of = [(pair, side) for pair, side in zip(pairs, sides, strict=True) if side.target == target]
        every = [one for _, side in of for one in _classes(side)]
        names = sorted({side.repository for _, side in of})
        for name in names if len(names) > 1 else ():
            known = [one for one in every if one.repository != name and one.takes_one_time]
            own = [one for one in every if one.repository == name]
            values, instead = fitted(known, own, arch_of(target))
            with figures_as({**values, **instead}, target):
                again = [beside(folder, *pair) for pair, side in of if side.repository == name]
            yield _row(name, again, len(values), sorted(instead))


def _classes(side: Beside) -> Iterator[_Class]:
    """Yield the classes of words of a capture."""
    groups = defaultdict(list)
    for row in side.rows:
        if row.kind == "word" and row.captured_ps:
            groups[row.owner, row.name, row.shape].append(row)
    for (engine, _, _), rows in groups.items():
        times = sorted(row.captured_ps / 1000 for row in rows)
        middle = median(times)
        word = side.streams[engine][rows[0].pc]
        emulated = median(row.emulated_ps / 1000 for row in rows)
        spread = times[len(times) * 3 // 4] - times[len(times) // 4]
        yield _Class(side.repository, engine, word, middle, emulated, spread <= middle * _ONE_TIME)


def fitted(known: Sequence[_Class], own: Sequence[_Class], chip: Arch) -> tuple[dict[str, float], dict[str, float]]:
    """Return figures fitted to `known` classes, and values of those that only words of its `own` need."""
    from emulator.cost.figures import FIGURES, figure  # deferred: start-up

    values = {row.name: row.value for row in FIGURES if chip.target in row.targets}
    slopes = {name: slope for name in values if (slope := _slopes(name, values[name], known, chip))}
    fit = _least(slopes, {name: values[name] for name in slopes}, known)
    instead = {}
    for name in values.keys() - slopes.keys():
        without = _WITHOUT.get(name)
        if without is not None and _slopes(name, values[name], own, chip):
            given = fit.get(without, figure(without, chip.target)) if isinstance(without, str) else without
            if name in _SCALAR_WRITES + _SCALAR_SMALL_WRITES:
                given *= chip.clock_ghz("Activation") / chip.clock_ghz("DVE")
            instead[name] = given
    return fit, instead


def _slopes(name: str, value: float, classes: Sequence[_Class], chip: Arch) -> dict[int, float]:
    """Return by how many nanoseconds each class takes longer for one more of a figure; those that do not are left out.

    The step is small, as several costs are the larger of two.
    """
    from emulator.cost.figures import figures_as  # deferred: start-up

    step = abs(value) * 0.02 or 1.0
    plain = [_shown(one, chip) for one in classes]
    with figures_as({name: value + step}, chip.target):
        longer = [_shown(one, chip) for one in classes]
    return {at: (more - less) / step for at, (less, more) in enumerate(zip(plain, longer, strict=True)) if more != less}


def _shown(one: _Class, chip: Arch) -> float:
    """Return how long a profile shows a word that waits for nothing; nanoseconds."""
    from emulator.cost import cost_of  # deferred: start-up
    from emulator.cost.instructions import shown_ps  # deferred: start-up

    shown = shown_ps(one.word, one.engine, chip)
    return (cost_of(one.word, one.engine, chip).latency_ps if shown is None else shown) / 1000


def _least(
    slopes: Mapping[str, Mapping[int, float]], values: Mapping[str, float], known: Sequence[_Class]
) -> dict[str, float]:
    """Return the values that make the sum of the relative errors' magnitudes least, near those given where it is flat.

    Weighted least squares, again and again: a class weighs as little as it is far off.
    """
    import numpy as np  # deferred: start-up

    names = sorted(slopes)
    matrix = np.zeros((len(known), len(names)))
    for column, name in enumerate(names):
        for at, by in slopes[name].items():
            matrix[at, column] = by * (values[name] or 1.0) / known[at].captured
    errors = np.array([1 - one.emulated / one.captured for one in known])
    change = np.zeros(len(names))
    for _ in range(_ROUNDS):
        weights = 1 / np.maximum(np.abs(errors - matrix @ change), _EXACT)
        normal = matrix.T @ (matrix * weights[:, None]) + _STAY * np.eye(len(names))
        change = np.maximum(np.linalg.solve(normal, matrix.T @ (weights * errors)), -1.0)  # no figure is below 0
    return {name: values[name] + (values[name] or 1.0) * float(by) for name, by in zip(names, change, strict=True)}


def _row(name: str, sides: Sequence[Beside], figures: int, without: Sequence[str]) -> LeftOutRow:
    programs = [abs(side.error) for side in sides]
    words = sorted(error for side in sides for error in word_errors(side.rows))
    worst = [max((abs(error) for _, error in active_errors(side.rows)), default=0.0) for side in sides]
    return LeftOutRow(
        name, sides[0].target, len(sides), figures, tuple(without), median(programs), max(programs), len(words),
        median(words), sum(each <= NEAR for each in words) / len(words), sum(each <= NEAR for each in worst),
    )  # fmt: skip
