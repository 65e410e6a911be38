"""The one rule for inputs: what nobody gives is zeros, and a note says so."""

from __future__ import annotations

import re
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from emulator.dtypes import numpy_dtype
from emulator.errors import InputError
from emulator.large_arrays import Store, zeros
from emulator.runtime import check_inputs
from formats.dtypes import Dtype
from neurontools.command.files import need_file
from neurontools.program.arrays import load_arrays
from neurontools.program.configuration import RunConfiguration
from neurontools.program.input_dump import load_input_dump

if TYPE_CHECKING:
    from formats.neff import Neff, TensorInfo

__all__ = ["given_inputs", "program_inputs", "random_seed"]

Array = npt.NDArray[Any]
_RANDOM = re.compile(r"random(?::(\d+))?")
_DRAWN = 1 << 22  # numbers at a time
_MOST = 100  # random integers are below this: as indices they stay inside of most tensors


def random_seed(wanted: str | None) -> int | None:
    """Return the seed of `--inputs random`, None where other inputs are asked for."""
    found = None if wanted is None else _RANDOM.fullmatch(wanted)
    return None if found is None else int(found[1] or 0)


def program_inputs(neff: Neff, configuration: RunConfiguration) -> tuple[dict[str, Array], tuple[str, ...]]:
    """Return the inputs of a NEFF as a configuration asks for them, and notes on them.

    An input that is not given is all zeros. Raises InputError for arrays that are none of the file's, or do not fit.
    """
    notes: list[str] = []
    given: dict[str, Array] = {}
    wanted, seed = configuration.inputs, random_seed(configuration.inputs)
    if configuration.inputs_from is not None:
        given, odd = load_input_dump(configuration.inputs_from, neff.inputs, neff.header.name)
        notes += odd
    elif seed is not None:
        source = np.random.default_rng(seed)
        given = {tensor.name: _random(tensor, source) for tensor in neff.inputs}
    elif wanted is not None and wanted != "zeros":
        given = load_arrays(need_file(Path(wanted)))
    arrays, missing = given_inputs(neff, given, quiet=wanted == "zeros")
    return arrays, (*notes, *missing)


def given_inputs(
    neff: Neff, given: dict[str, Array], *, quiet: bool = False
) -> tuple[dict[str, Array], tuple[str, ...]]:
    """Return all inputs of a NEFF where some are given, and a note on those that are zeros; errors as above."""
    notes: list[str] = []
    missing = [tensor for tensor in neff.inputs if tensor.name not in given]
    given.update({tensor.name: _zeros(tensor) for tensor in missing})
    if missing and not quiet:
        names = ", ".join(f"{tensor.name} {tensor.dtype}{list(tensor.shape)}" for tensor in missing)
        notes.append(f"input {names} was not given; it is all zeros" if len(missing) == 1 else
                     f"inputs {names} were not given; they are all zeros")  # fmt: skip
    return check_inputs(neff, given), tuple(notes)


def _dtype(tensor: TensorInfo) -> np.dtype[Any]:
    return numpy_dtype(Dtype.from_numpy_name(tensor.dtype))


def _nbytes(tensor: TensorInfo) -> int:
    """Return the bytes of a tensor; ValueError where no array can have its shape."""
    if min(tensor.shape, default=0) < 0:
        raise ValueError("negative dimensions are not allowed")
    return prod(tensor.shape) * _dtype(tensor).itemsize


def _zeros(tensor: TensorInfo) -> Array:
    try:
        return zeros(_nbytes(tensor)).view(_dtype(tensor)).reshape(tensor.shape)
    except (ValueError, MemoryError) as error:  # a shape that no array can have
        raise InputError(f"input {tensor.name!r} of shape {list(tensor.shape)}: {error}") from None


def _random(tensor: TensorInfo, source: np.random.Generator) -> Array:
    """Return normal numbers, in integer tensors small ones that are not negative."""
    dtype = _dtype(tensor)
    try:
        if dtype.kind in "iu":
            return source.integers(0, min(_MOST, np.iinfo(dtype).max), tensor.shape).astype(dtype)
        store = Store(_nbytes(tensor))
        left = _nbytes(tensor) // dtype.itemsize
        while left:  # the same numbers as all at once, without as many of fp32
            part = min(left, _DRAWN)
            store.write(source.standard_normal(part, np.float32).astype(dtype))
            left -= part
        return store.array().view(dtype).reshape(tensor.shape)
    except (ValueError, MemoryError) as error:
        raise InputError(f"input {tensor.name!r} of shape {list(tensor.shape)}: {error}") from None
