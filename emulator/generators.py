"""Random number generators of the engines: XORWOW, whose state words the documentation counts but does not name.

GpSimd has one generator per lane, Vector four: 6 and 24 words (nki.isa.rand_set_state). Order of the words, seeding,
and which generator gives which element are ours.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from formats.named_tuple import NamedTuple
from formats.neuron_core import PARTITIONS

__all__ = ["GeneratorBank", "Generators", "GeneratorsState", "generators_of"]

_WORDS = 6  # x, y, z, w, v of Marsaglia's xorwow, and the Weyl counter d
_PER_LANE = {"DVE": 4, "Pool": 1}
_WEYL = np.uint32(362437)

Words = npt.NDArray[np.uint32]


class HasGenerators(Protocol):
    """A core, as far as this module knows it."""

    @property
    def generators(self) -> GeneratorBank:
        """Return its generators."""
        ...


class Drawn(NamedTuple):
    """The state of one engine's generators."""

    state: bytes


class Generators:
    """The generators of one engine: `state` is (lanes, generators, words), `words` the words of a lane."""

    NOT_STATE: ClassVar = {"words": "a figure of the chip"}

    def __init__(self, per_lane: int) -> None:
        self.state: Words = np.zeros((PARTITIONS, per_lane, _WORDS), np.uint32)
        self.words = per_lane * _WORDS
        self.seed(0)

    def seed(self, number: int) -> None:
        """Derive all states from a 32-bit number, by SplitMix64 over its lanes."""
        count = np.arange(1, self.state.size + 1, dtype=np.uint64)
        # The odd constant spreads neighbouring seeds; the other three are SplitMix64's.
        mixed = np.uint64(number & 0xFFFFFFFF) * np.uint64(0x2545F4914F6CDD1D) + count * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        # xorwow never leaves the state in which all five words are zero.
        self.state[...] = ((mixed >> np.uint64(32)) | np.uint64(1)).astype(np.uint32).reshape(self.state.shape)

    def snapshot(self) -> Drawn:
        """Return the state as a value, for `restore`."""
        return Drawn(self.state.tobytes())

    def restore(self, state: Drawn) -> None:
        """Return to a state that `snapshot` gave."""
        self.state[...] = np.frombuffer(state.state, np.uint32).reshape(self.state.shape)

    def draw(self, lanes: slice, count: int) -> Words:
        """Return `count` numbers for each lane; element i comes from generator i modulo their number."""
        state = self.state[lanes]
        per_lane = state.shape[1]
        turns = -(-count // per_lane)
        result = np.empty((turns, state.shape[0], per_lane), np.uint32)
        x, y, z, w, v, d = (state[:, :, i].copy() for i in range(_WORDS))
        for turn in range(turns):
            mixed = x ^ (x >> np.uint32(2))
            x, y, z, w = y, z, w, v
            v = (v ^ (v << np.uint32(4))) ^ (mixed ^ (mixed << np.uint32(1)))
            d = d + _WEYL
            np.add(v, d, result[turn])
        for i, one in enumerate((x, y, z, w, v, d)):
            state[:, :, i] = one
        return result.transpose(1, 0, 2).reshape(state.shape[0], -1)[:, :count]


class GeneratorsState(NamedTuple):
    """The states of a core's generators in use, by engine."""

    engines: tuple[tuple[str, Drawn], ...]


class GeneratorBank:
    """The generators of one core by engine, made when a word first uses them."""

    NOT_STATE: ClassVar[dict[str, str]] = {}

    def __init__(self) -> None:
        self._engines: dict[str, Generators] = {}

    def of(self, engine: str) -> Generators:
        """Return the generators of an engine."""
        found = self._engines.get(engine)
        if found is None:
            found = self._engines[engine] = Generators(_PER_LANE[engine])
        return found

    def snapshot(self) -> GeneratorsState:
        """Return the states of all generators in use, for `restore`."""
        return GeneratorsState(tuple((engine, one.snapshot()) for engine, one in self._engines.items()))

    def restore(self, state: GeneratorsState) -> None:
        """Return to states that `snapshot` gave; those that a word has used since begin anew."""
        held = dict(state.engines)
        for engine in self._engines:
            self.restore_of(engine, held.get(engine))

    def state_of(self, engine: str) -> Drawn | None:
        """Return the state of an engine's generators, None where no word has used them."""
        found = self._engines.get(engine)
        return None if found is None else found.snapshot()

    def restore_of(self, engine: str, state: Drawn | None) -> None:
        """Return an engine's generators to a state; they stay the same objects, since words are bound to them."""
        found = self._engines.get(engine)
        if found is None:
            return
        if state is None:
            found.seed(0)
        else:
            found.restore(state)

    def digest(self, into: Any) -> None:
        """Feed the states to a hash; those as they were at the beginning count for nothing."""
        for engine, one in sorted(self._engines.items()):
            state = one.state.tobytes()
            if state != Generators(_PER_LANE[engine]).state.tobytes():
                into.update(engine.encode())
                into.update(state)


def generators_of(core: HasGenerators, engine: str) -> Generators:
    """Return the generators of a core's engine."""
    return core.generators.of(engine)
