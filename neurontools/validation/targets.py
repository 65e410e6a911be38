"""Published measurements, and which of them are held out of calibration."""

from __future__ import annotations

import csv
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from formats.errors import NotFoundError

__all__ = ["GROUPS", "LEFT_OUT", "RULE", "Target", "chosen", "targets"]

RULE = ("A row is held out when the first byte of the SHA-256 of its id, modulo 5, is 0 or 1; where that leaves nothing"
        " for an opcode of a chip to be fitted to, its first row calibrates all the same (A-5, A-6).")

_ONLY_SOURCE = frozenset({"A-5", "A-6"})

GROUPS = {
    "A": "Single instructions", "B": "DMA", "C": "Matrix products", "D": "Mamba", "E": "Layer normalization",
    "H": "Third-party kernels", "P": "Compiled attention, word for word",
}
LIMITS: dict[str, tuple[float, float]] = {
    "A": (0.03, 0.07), "B": (0.10, 0.10), "C": (0.15, 0.15), "D": (0.15, 0.15), "E": (0.15, 0.15), "H": (0.25, 0.25),
    "P": (0.15, 0.15),
}
"""The errors aimed at by group: of calibrated and of held-out rows."""

LEFT_OUT: tuple[tuple[str, str], ...] = (
    ("C-9", "the batch of the three-layer perceptron is not published"),
    ("C-5d to C-8d, C-8a", "packet times summed over engines; the model has no packets"),
    ("D-4, D-6", "beyond a sequence of 512 step 2 costs what the compiler spills, which no kernel says"),
    ("D-7 beyond 4096", "the same kernel again, longer"),
    ("F-1 to F-4", "design targets of rmsnorm_quant; its own rows are in the nki-library comparison"),
    ("H-7 to H-9", "convolutions of a course, whose source is not public"),
    ("I-1 to I-11", "collectives between chips are not emulated"),
)


class Target(NamedTuple):
    """One published number. `kernel` is a function of `validation.kernels`, a file of the corpus, or nothing."""

    id: str
    chip: str
    group: str
    what: str
    value: float
    unit: str
    kernel: str
    arguments: dict[str, Any]
    measure: str
    quality: str
    source: str

    @property
    def held_out(self) -> bool:
        """Tell whether the row only tests the model."""
        return self.id not in _ONLY_SOURCE and hashlib.sha256(self.id.encode()).digest()[0] % 5 < 2

    @property
    def limit(self) -> float:
        """Return the error aimed at."""
        return LIMITS[self.group][self.held_out]

    @property
    def long(self) -> bool:
        """Tell whether its kernel takes more than some seconds to emulate."""
        large = self.unit == "ms" and self.value > 3
        return large or self.id in ("H-1", "E-1", "E-2")


@cache
def targets() -> tuple[Target, ...]:
    """Return all rows of the data file, in its order."""
    text = files(__package__).joinpath("targets.csv").read_text(encoding="utf-8")
    return tuple(Target(**{**row, "value": float(row["value"]), "arguments": json.loads(row["arguments"] or "{}")})
                 for row in csv.DictReader(text.splitlines()))


def chosen(names: list[str], every: bool) -> tuple[Target, ...]:
    """Return the rows named (ids or groups), else all, without the long ones unless `every`.

    Raises NotFoundError for a name that is neither.
    """
    if not names:
        return tuple(target for target in targets() if every or not target.long)
    for name in names:
        if not any(name in (target.id, target.group) for target in targets()):
            raise NotFoundError(f"no target {name!r}; there are {', '.join(t.id for t in targets())}")
    return tuple(target for target in targets() if target.id in names or target.group in names)
