"""Loops that a run was still in when it was ended: those that nothing ends, or that come no nearer to their end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from emulator.device import Device
from emulator.diagnosis.causes import Reason
from emulator.loaded import LoadedWord
from formats.isa import BranchCompare, CompareBranch
from formats.named_tuple import NamedTuple
from formats.neuron_core import WORD

__all__ = ["Endless", "Loops"]

_TURNS = 100  # without a step towards the end, for a loop to be called one that comes no nearer to it
_BUDGETS = (Reason.INSTRUCTION_LIMIT, Reason.TIME_LIMIT, Reason.HOST_TIME_LIMIT)


class Endless(NamedTuple):
    """A loop of an engine: the word that would leave it, the first of its words, why it never does."""

    core: int
    engine: str
    exit: LoadedWord
    first: LoadedWord
    why: str


class _Test:
    """What a branch has compared: the distance from its constant, and since how many turns that has not shrunk."""

    __slots__ = ("distance", "since", "turns", "value")

    def __init__(self) -> None:
        self.turns, self.distance, self.value, self.since = 0, -1, 0, 0

    def take(self, value: int, constant: int) -> None:
        distance = abs(_signed(value) - _signed(constant))
        if self.distance < 0 or distance < self.distance:
            self.turns, self.since = 0, value
        self.turns += 1
        self.distance, self.value = distance, value

    def text(self, register: int) -> str:
        """Say what came of the turns."""
        if self.value == self.since:
            return f"R[{register}] was {_signed(self.value)} in each of the last {self.turns} turns"
        return f"R[{register}] went from {_signed(self.since)} to {_signed(self.value)} in the last {self.turns} turns"


class Loops:
    """Follow what branches compare, to tell after a run that was ended which loops would have gone on."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._tests: dict[tuple[int, str, int], _Test] = {}

    def take(self, core: int, engine: str, pc: int, word: CompareBranch, value: int | None = None) -> None:
        """Note what a branch has compared: the register as it is, or the value that it had then."""
        if word.compare == BranchCompare.ALWAYS:
            return
        test = self._tests.get((core, engine, pc))
        if test is None:
            test = self._tests[core, engine, pc] = _Test()
        if value is None:
            value = self._device.cores[core].engines[engine].registers[word.register]
        test.take(value, word.constant)

    def endless(self) -> Iterator[Endless]:
        """Yield the loops that engines are in and do not leave, once the run is over."""
        hang = self._device.hang
        if hang is None:
            return
        if hang.reason == Reason.LIVELOCK:
            ends: dict[tuple[int, str], list[int]] = {}
            for word in hang.loops:
                ends.setdefault((word.core, word.engine), []).append(word.pc)
            for (core, engine), pcs in ends.items():
                own = [one for one in self._device.cores[core].engines[engine].words if one.pc in pcs]
                yield Endless(core, engine, own[-1], own[0], "nothing that it tests can change any more")
        elif hang.reason in _BUDGETS:
            for each in self._device.cores:
                for name in each.engines:
                    yield from self._still(each.index, name)

    def _still(self, core: int, name: str) -> Iterator[Endless]:
        """Yield the innermost loop that an engine stands in, where none of its exits has come nearer."""
        engine = self._device.cores[core].engines[name]
        words = engine.words
        if not words:
            return
        here = min(engine.position, len(words) - 1)
        for first, last in _around(words, here):
            exits = [one for one in words[first : last + 1] if _leaves(one, words[first].slot, words[last].slot)]
            tests = [(one, self._tests.get((core, name, one.pc))) for one in exits]
            if tests and all(test is not None and test.turns >= _TURNS for _, test in tests):
                found, test = tests[0]
                assert test is not None and isinstance(found.word, CompareBranch)
                yield Endless(core, name, found, words[first], test.text(found.word.register))
                return


def _around(words: Sequence[LoadedWord], here: int) -> list[tuple[int, int]]:
    """Return the loops around a position, the innermost one first: first and last word of each."""
    slots = {one.slot: number for number, one in enumerate(words)}
    found = []
    for last in range(here, len(words)):
        word = words[last].word
        if isinstance(word, CompareBranch) and word.target <= 0:
            first = slots.get(words[last].slot + word.target // WORD)
            if first is not None and first <= here:
                found.append((first, last))
    return sorted(found, key=lambda loop: loop[1] - loop[0])


def _leaves(one: LoadedWord, first: int, last: int) -> bool:
    """Return whether a word is a branch that can lead out of slots `first` to `last`."""
    word = one.word
    if not isinstance(word, CompareBranch) or word.compare == BranchCompare.ALWAYS:
        return False
    return one.slot == last or not first <= one.slot + word.target // WORD <= last


def _signed(value: int) -> int:
    return (value & 0xFFFFFFFF ^ 1 << 31) - (1 << 31)
