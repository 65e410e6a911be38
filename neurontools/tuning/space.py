"""The variants of a kernel: parameters with their values, in order and by chance."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

__all__ = ["SCHEDULE", "Space", "Values", "all_of", "key_of", "shuffled"]

# The option of commands that run scripts, as a parameter that is off or on; no kernel can have one of this name.
SCHEDULE = "--schedule"

Space = Mapping[str, tuple[Any, ...]]
Values = dict[str, Any]


def key_of(values: Mapping[str, Any]) -> str:
    """Return what tells variants apart."""
    return json.dumps(values, sort_keys=True, default=str)


def all_of(space: Space) -> Iterator[Values]:
    """Yield every variant, the last parameter's values fastest."""
    for each in product(*space.values()):
        yield dict(zip(space, each, strict=True))


def shuffled(space: Space, seed: int) -> Iterator[Values]:
    """Yield every variant once, in an order of chance, without a list of all."""
    size, chance = math.prod(map(len, space.values())), random.Random(seed)
    # A full cycle of a linear congruence: the modulus is a power of two, and what lies beyond the space is left out.
    modulus = 1 << max(size - 1, 1).bit_length()
    at, step, add = chance.randrange(modulus), 4 * chance.randrange(modulus) + 5, 2 * chance.randrange(modulus) + 1
    for _ in range(modulus):
        at = (at * step + add) % modulus
        if at < size:
            number, values = at, {}
            for name, choices in space.items():
                number, index = divmod(number, len(choices))
                values[name] = choices[index]
            yield values
