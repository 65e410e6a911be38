"""Inputs of an execution that failed, written where a variable asks for it. Source: runtime.md 6.1."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

__all__ = ["write_inputs"]


def write_inputs(inputs: Mapping[str, bytes], model: str, number: int, parent: Path) -> Path:
    """Write a folder with the bytes of each input, the model's name last, and return it; raises OSError."""
    # AWS's runtime has a random number there too.
    folder = parent / f"input_dump_{random.randrange(1 << 31)}_h_nn_{number}"
    folder.mkdir()
    for index, data in enumerate(inputs.values()):
        (folder / f"input{index}.bin").write_bytes(data)
    # Who waits for this file finds all of the others.
    (folder / "model_name.txt").write_text(model + "\n", encoding="utf-8")
    return folder
