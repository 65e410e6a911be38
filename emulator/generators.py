"""Random number generators of the engines: XORWOW, whose state words the documentation counts but does not name.

GpSimd has one generator per lane, Vector four: 6 and 24 words (nki.isa.rand_set_state). Order of the words, seeding,
and which generator gives which element are ours.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

__all__ = ["Generators", "digest", "existing", "generators_of"]

_LANES = 128
_WORDS = 6                      # x, y, z, w, v of Marsaglia's xorwow, and the Weyl counter d
_PER_LANE = {"DVE": 4, "Pool": 1}
_WEYL = np.uint32(362437)

Words = npt.NDArray[np.uint32]


class Generators:
    """The generators of one engine: `state` is (lanes, generators, words), `words` the words of a lane."""

    def __init__(self, per_lane: int) -> None:
        self.state: Words = np.zeros((_LANES, per_lane, _WORDS), np.uint32)
        self.words = per_lane * _WORDS
        self.seed(0)

    def seed(self, number: int) -> None:
        """Derive all states from a 32-bit number, by SplitMix64 over its lanes."""
        count = np.arange(1, self.state.size + 1, dtype=np.uint64)
        mixed = np.uint64(number & 0xFFFFFFFF) * np.uint64(0x2545F4914F6CDD1D) + count * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        self.state[...] = ((mixed >> np.uint64(32)) | np.uint64(1)).astype(np.uint32).reshape(self.state.shape)

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


_GENERATORS: WeakKeyDictionary[Any, dict[str, Generators]] = WeakKeyDictionary()


def generators_of(core: Any, engine: str) -> Generators:
    """Return the generators of a core's engine."""
    engines = _GENERATORS.setdefault(core, {})
    if engine not in engines:
        engines[engine] = Generators(_PER_LANE[engine])
    return engines[engine]


def existing(core: Any, engine: str) -> Generators | None:
    """Return the generators of a core's engine, None where no word has used them."""
    return _GENERATORS.get(core, {}).get(engine)


def digest(core: Any, into: Any) -> None:
    """Feed the states of a core's generators to a hash; those as they were at the beginning count for nothing."""
    for engine, one in sorted(_GENERATORS.get(core, {}).items()):
        state = one.state.tobytes()
        if state != Generators(_PER_LANE[engine]).state.tobytes():
            into.update(engine.encode())
            into.update(state)
