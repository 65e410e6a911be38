"""Inputs that the Neuron runtime wrote when an execution failed: NEURON_RT_DBG_DUMP_INPUTS_ON_ERR.

The directory holds the raw bytes of each input in `input0`, `input1`, … (with `.bin` or without) in the order of the
NEFF, and `model_name.txt`, which is written last. Source: runtime.md 6.1, formats.md 5.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formats.errors import FormatError, NotFoundError
from neurontools.command.files import need_folder

if TYPE_CHECKING:
    from formats.neff import TensorInfo

__all__ = ["load_input_dump"]

_NAME = re.compile(r"input(\d+)(?:\.bin)?")
_MODEL = "model_name.txt"
_PART = 1 << 24  # bytes read at a time


def load_input_dump(folder: Path, tensors: Sequence[TensorInfo], name: str = "") -> tuple[dict[str, Any], list[str]]:
    """Return the inputs by name as arrays, and warnings.

    `name` is the model's, to compare with the dump's. Raises NotFoundError for a missing input, FormatError for one of
    another size.
    """
    import numpy as np

    from emulator.dtypes import numpy_dtype  # deferred: start-up
    from formats.dtypes import Dtype  # deferred: start-up

    found: dict[int, Path] = {}
    for path in sorted(need_folder(folder).iterdir()):
        if (matched := _NAME.fullmatch(path.name)) and path.is_file():
            # a file with and one without .bin of one number: the first of the two
            found.setdefault(int(matched[1]), path)
    values: dict[str, Any] = {}
    for number, tensor in enumerate(tensors):
        if number not in found:
            raise NotFoundError(f"{folder}: no input{number} for {tensor.name} {tensor.dtype}{list(tensor.shape)}")
        path = found.pop(number)
        dtype = numpy_dtype(Dtype.from_numpy_name(tensor.dtype))
        size = path.stat().st_size
        wanted = int(np.prod(tensor.shape, dtype=np.int64)) * dtype.itemsize
        if size != wanted:
            raise FormatError(f"input {tensor.name!r} has another size", path=str(path), expected=f"{wanted} bytes",
                              got=f"{size} bytes")  # fmt: skip
        values[tensor.name] = _bytes(path, size).view(dtype).reshape(tensor.shape)
    return values, _warnings(folder, found, name)


def _bytes(path: Path, size: int) -> Any:
    """Return the bytes of a file that has so many."""
    from emulator.large_arrays import Store  # deferred: start-up

    store = Store(size)
    with path.open("rb") as file:
        while size:
            part = file.read(min(size, _PART))
            if not part:
                raise FormatError("file became shorter while it was read", path=str(path))
            store.write(part)
            size -= len(part)
    return store.array()


def _warnings(folder: Path, more: dict[int, Path], name: str) -> list[str]:
    warnings = [f"{path}: the NEFF has no input {number}" for number, path in sorted(more.items())]
    model = folder / _MODEL
    if not model.is_file():
        return [*warnings, f"{folder}: no {_MODEL}, which is written last: the dump may be incomplete"]
    said = model.read_text(encoding="utf-8", errors="replace").strip()
    if name and said and Path(said).stem != Path(name).stem:
        warnings.append(f"{folder}: inputs of {said}, not of {name}")
    return warnings
