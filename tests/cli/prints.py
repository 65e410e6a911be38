"""A program that prints tensors, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from neurontools.nki import language as nl
from neurontools.nki.launch import build_neff

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def printing(x: Any) -> Any:
    out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
    tile = nl.load(x)
    nl.device_print("first: ", tile)
    nl.device_print("again: ", tile)
    nl.store(out, tile)
    return out


def written(folder: Path) -> tuple[Path, Path]:
    """Return a NEFF that prints its input twice, and its input."""
    neff, inputs = folder / "printing.neff", folder / "x.npz"
    neff.write_bytes(build_neff(printing, (X,), {}, target="trn2").to_bytes())
    np.savez(inputs, x=X)
    return neff, inputs
