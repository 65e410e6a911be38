"""What a capture and the emulator's run of its NEFF have in common, by opcode, shape and kind of transfer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import median
from typing import TYPE_CHECKING, Annotated

from formats.named_tuple import NamedTuple
from neurontools.ntff.residual_plot import COLUMNS, column

if TYPE_CHECKING:
    from formats.neff import Neff
    from formats.ntff import Ntff
    from neurontools.ntff.residuals import Residual

__all__ = ["Compared", "CoreTimes", "ResidualRow", "compare_capture"]


class ResidualRow(NamedTuple):
    """Words of one opcode and shape on one engine, or transfers of one shape; `ratio` is emulated over captured."""

    owner: Annotated[str, "the engine; empty for transfers"]
    name: str
    shape: str
    number: int
    captured_ns: Annotated[float, "median"]
    emulated_ns: Annotated[float, "median"]
    ratio: Annotated[float | None, "median of the ratios; null where nothing took any time in the capture"]
    p95: Annotated[float | None, "95 percent of the ratios are not farther than this from 1"]
    off_ns: Annotated[float, "what all of them are off, too long and too short alike"]


class CoreTimes(NamedTuple):
    """One core from the begin of its first word to the end of its last word or transfer that both sides have."""

    core: str
    captured_ns: float
    emulated_ns: float
    ratio: float | None


class Compared(NamedTuple):
    """The result of `ntff compare`; tables have the rows first that are off by most time in all."""

    name: str
    target: str
    outcome: str
    cores: list[CoreTimes]
    words: int
    waits: Annotated[int, "EVENT_SEMAPHORE on both sides: as long as they wait, so not compared"]
    transfers: int
    captured_only: Annotated[int, "words and transfers that the emulator's run does not have"]
    emulated_only: Annotated[int, "words and transfers that the capture does not have"]
    opcodes: list[ResidualRow]
    classes: list[ResidualRow]
    moves: list[ResidualRow]
    spread: Annotated[list[int], "words by ratio: in columns of a quarter of a doubling, from an eighth to eightfold"]
    moves_spread: Annotated[list[int], "transfers alike"]


def compare_capture(ntff: Ntff, core: int | None, neff: Neff, inputs: str | None) -> tuple[Compared, list[Residual]]:
    """Return what the two sides have in common, and every word and transfer of it."""
    from emulator.timeline.measure import data_decides, measure  # deferred: start-up
    from neurontools.ntff.residuals import matched  # deferred: start-up
    from neurontools.program.configuration import RunConfiguration  # deferred: start-up
    from neurontools.program.inputs import program_inputs  # deferred: start-up

    with_data = inputs is not None or data_decides(neff)
    given = program_inputs(neff, RunConfiguration(inputs=inputs or "zeros"))[0] if with_data else {}
    measured = measure(neff, given, data=with_data)
    found = matched(ntff, core, neff, measured)
    words = [one for one in found.rows if one.kind == "word"]
    moves = [one for one in found.rows if one.kind == "transfer"]
    whole = [_core(name, [one for one in found.rows if one.core == name])
             for name in dict.fromkeys(one.core for one in found.rows)]  # fmt: skip
    return Compared(
        ntff.name, ntff.target.name, measured.device.outcome, whole, len(words), found.waits, len(moves),
        found.captured_only, found.emulated_only, _rows(words, shapes=False), _rows(words), _rows(moves),
        _spread(words), _spread(moves),
    ), found.rows  # fmt: skip


def _core(name: str, rows: list[Residual]) -> CoreTimes:
    real = max(one.captured_start_ps + one.captured_ps for one in rows)
    mine = max(one.emulated_start_ps + one.emulated_ps for one in rows)
    return CoreTimes(name, real / 1000, mine / 1000, round(mine / real, 3) if real else None)


def _rows(residuals: Iterable[Residual], *, shapes: bool = True) -> list[ResidualRow]:
    groups: defaultdict[tuple[str, str, str], list[Residual]] = defaultdict(list)
    for one in residuals:
        groups[one.owner if one.kind == "word" else "", one.name, one.shape if shapes else ""].append(one)
    rows = []
    for key, group in groups.items():
        ratios = sorted(one.emulated_ps / one.captured_ps for one in group if one.captured_ps)
        off = sorted(abs(ratio - 1) for ratio in ratios)
        rows.append(ResidualRow(
            *key, len(group), round(median(one.captured_ps for one in group) / 1000, 3),
            round(median(one.emulated_ps for one in group) / 1000, 3), round(median(ratios), 3) if ratios else None,
            round(off[min(len(off) - 1, len(off) * 95 // 100)], 3) if off else None,
            round(sum(abs(one.emulated_ps - one.captured_ps) for one in group) / 1000, 3),
        ))  # fmt: skip
    # Not by ratio: words of 20 ns that run twice would hide the ones a program's time hangs on.
    return sorted(rows, key=lambda row: (-row.off_ns, row[:3]))


def _spread(residuals: Iterable[Residual]) -> list[int]:
    found = [0] * COLUMNS
    for one in residuals:
        if one.captured_ps and one.emulated_ps:
            found[column(one.emulated_ps / one.captured_ps)] += 1
    return found
