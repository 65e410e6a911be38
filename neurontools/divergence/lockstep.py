"""Two executions side by side, until the first result that differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from emulator.dma.transfer import Transfer
from emulator.events import Event
from formats.named_tuple import NamedTuple
from neurontools.divergence.alignment import Alignments, align
from neurontools.divergence.array_difference import difference
from neurontools.divergence.operands import Operand, before, completion, operands, pairs
from neurontools.divergence.results import Difference, Divergence, OutputGap

if TYPE_CHECKING:
    from neurontools.debugger import Session

__all__ = ["Comparison", "compare_runs"]

Key = tuple[Any, ...]
Place = tuple[int, str, int]  # core, engine, pc


class Comparison(NamedTuple):
    """What came of two executions side by side.

    `compared` results were equal within tolerance; `unmatched` completions of each side have no counterpart on the
    other one, or one of another size. `outputs` holds outputs that differ, where no divergence says why. `missing`
    outputs are on one side only. `outcomes` are "finished", "fault", "hang" or "running" (not run to its end), `stops`
    what faulted or hung there, and `alike` whether that is the same: in one way, at words that were matched.
    """

    divergence: Divergence | None
    compared: int
    unmatched: tuple[int, int]
    alignments: Alignments
    outcomes: tuple[str, str]
    outputs: tuple[OutputGap, ...]
    missing: tuple[str, ...]
    stops: tuple[str, str]
    alike: bool

    @property
    def same(self) -> bool:
        """Return whether nothing differs."""
        return self.divergence is None and not self.outputs and not self.missing and self.alike


class _Item(NamedTuple):
    number: int
    results: tuple[Operand, ...]


class _Run:
    """One side: a session, and the results that wait for their counterparts."""

    def __init__(self, session: Session, places: dict[Place, Place]) -> None:
        self.session, self.places = session, places
        self.waiting: dict[Key, _Item] = {}
        self.number, self.done, self.unmatched = -1, False, 0
        self._turns: Counter[Key] = Counter()

    def step(self) -> tuple[Key, _Item] | None:
        """Go on by one completion; return its key, shared by both sides, and its results."""
        event = self.session.device.step()
        if event is None:
            self.done = True
            return None
        self.number = event.number
        if event.kind not in ("instruction", "dma"):
            return None
        results = operands(self.session, event, writes=True)
        if not results:
            return None
        place = self._place(event)
        if place is None:
            self.unmatched += 1
            return None
        self._turns[place] += 1
        return (*place, self._turns[place]), _Item(event.number, results)

    def _place(self, event: Event) -> Key | None:
        word = event.instruction
        engine = word.engine if isinstance(word, Transfer) else event.engine
        place = self.places.get((event.core, engine, event.pc))
        return None if place is None else (event.kind, *place)


def compare_runs(open_one: Callable[[], Session], open_other: Callable[[], Session], rtol: float = 0.0,
                 atol: float = 0.0) -> Comparison:  # fmt: skip
    """Return the first completion, in the order of the first run, whose result differs beyond tolerance.

    The functions open fresh sessions at the beginning; they are called again to show what the one that differs read.
    Words are matched by position where an engine's opcodes are the same on both sides, else by opcode, source line and
    tile name; the k-th completion of a word with the k-th.
    """
    first, second = open_one(), open_other()
    alignments = align(first, second)
    # Of the first program only words that have a counterpart: results of others would wait for nothing.
    one = _Run(first, {place: place for place in alignments.places.values()})
    other = _Run(second, alignments.places)
    best: tuple[_Item, _Item, int, Difference] | None = None
    compared = odd = 0
    # Both go on in turn, and whoever comes first waits in the table: times may order completions in another way.
    while not (one.done and other.done):
        for mine, theirs in ((one, other), (other, one)):
            # A difference bounds the search: only what the first run completed before it can take its place.
            if mine.done or (best is not None and mine is one and one.number >= best[0].number):
                continue
            made = mine.step()
            if made is None:
                continue
            key, item = made
            found = theirs.waiting.pop(key, None)
            if found is None:
                mine.waiting[key] = item
                continue
            a, b = (item, found) if mine is one else (found, item)
            if best is not None and a.number >= best[0].number:
                continue
            # One generation may do in one word what another does in two, so sizes that differ are no difference.
            if [r.array.size for r in a.results] != [r.array.size for r in b.results]:
                odd += 1
                continue
            gap = _differs(a, b, rtol, atol)
            if gap is None:
                compared += 1
            else:
                best = a, b, *gap
        if best is not None and (one.done or one.number >= best[0].number):
            # An earlier difference can only come from results that still wait for the other side.
            limit = best[0].number
            if other.done or not any(item.number < limit for item in one.waiting.values()):
                break
    left = one.unmatched + odd, other.unmatched + odd
    if best is None:
        left = left[0] + len(one.waiting), left[1] + len(other.waiting)
    outcomes = first.device.outcome, second.device.outcome
    (ended, stop), (other_ended, other_stop) = (_stop(one, "A"), _stop(other, "B"))
    stops, alike = (stop, other_stop), ended == other_ended
    if best is not None:
        found_one = _report(open_one(), open_other(), best, rtol, atol)
        return Comparison(found_one, compared, left, alignments, outcomes, (), (), stops, alike)
    outputs, missing = _outputs(first, second, rtol, atol)
    return Comparison(None, compared, left, alignments, outcomes, outputs, missing, stops, alike)


def _stop(run: _Run, side: str) -> tuple[Key, str]:
    """Return how a run ended, at places of the first program, and that in a line, empty where it finished."""
    device = run.session.device
    fault, hang = device.fault, device.hang

    def matched(place: Place) -> Key:
        return run.places.get(place, (side, *place))  # a word without a counterpart is like no other one

    if fault is not None:
        where = fault.core, fault.engine, fault.pc
        text = f"nc{fault.core} {fault.engine} pc {fault.pc}: {fault.message}" if fault.engine else fault.message
        return ("fault", fault.kind, matched(where)), text
    if hang is not None:
        stuck = [(each.core, each.engine, each.pc) for each in hang.waits]
        stuck += [(each.core, each.engine, each.pc) for each in hang.loops]
        text = ", ".join(f"nc{core} {engine} pc {pc}" for core, engine, pc in stuck)
        return ("hang", hang.reason, frozenset(map(matched, stuck))), f"{hang.reason}: {text}" if stuck else hang.reason
    return (device.outcome,), ""


def _differs(one: _Item, other: _Item, rtol: float, atol: float) -> tuple[int, Difference] | None:
    for index, (a, b) in enumerate(zip(one.results, other.results, strict=True)):
        gap = difference(a.array, b.array.reshape(a.array.shape), rtol, atol)
        if gap is not None:
            return index, gap
    return None


def _report(first: Session, second: Session, best: tuple[_Item, _Item, int, Difference], rtol: float,
            atol: float) -> Divergence:  # fmt: skip
    one, other, index, gap = best
    event, inputs, outputs = before(first, one.number)
    second_event, second_inputs, second_outputs = before(second, other.number)
    made = pairs(first, outputs, second_outputs, rtol, atol)
    return Divergence(
        completion(first, event),
        completion(second, second_event),
        made[index].name,
        made[index].tensor,
        gap,
        pairs(first, inputs, second_inputs, rtol, atol),
        made,
    )


def _outputs(first: Session, second: Session, rtol: float,
             atol: float) -> tuple[tuple[OutputGap, ...], tuple[str, ...]]:  # fmt: skip
    """Return the outputs that differ, and those that only one side has."""
    # Where neither run ended well, what they wrote so far differs by how far they came.
    if "finished" not in (first.device.outcome, second.device.outcome):
        return (), ()
    mine, theirs = first.device.outputs(), second.device.outputs()
    found, missing = [], sorted(set(mine) ^ set(theirs))
    for name in mine:
        if name not in theirs:
            continue
        if mine[name].shape != theirs[name].shape:
            missing.append(f"{name} (of another shape)")
            continue
        gap = difference(mine[name], theirs[name], rtol, atol)
        if gap is not None:
            found.append(OutputGap(name, gap))
    return tuple(found), tuple(missing)
