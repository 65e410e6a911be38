"""Named arrays in .npz files, element types of the hardware included."""

from __future__ import annotations

import lzma
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formats.errors import FormatError

if TYPE_CHECKING:
    import numpy

__all__ = ["export_array", "load_arrays", "write_arrays"]

# What `zipfile`, `zlib` and the two readers of NumPy's headers raise for a damaged, encrypted or exotic archive.
_DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, tokenize.TokenError, SyntaxError, ValueError, TypeError,
           EOFError, LookupError, OverflowError, RuntimeError, struct.error)  # fmt: skip

# NumPy stores a type it does not know as raw bytes ("V2"); the name is kept in a member of this suffix.
TYPE_SUFFIX = "__dtype__"


def load_arrays(path: Path) -> dict[str, numpy.ndarray[Any, Any]]:
    """Return the arrays of an .npz by name.

    bfloat16 and fp8 arrays come back as such when `write_arrays` wrote them; objects are refused, since they are code.
    """
    import ml_dtypes  # noqa: F401  its import teaches NumPy the names
    import numpy as np

    try:
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.ndarray):
            raise FormatError("holds one array without a name", path=str(path), expected="an .npz of named arrays")
        with file:
            arrays = {name: file[name] for name in file.files}
    except _DAMAGE as error:
        if isinstance(error, FormatError):
            raise
        # The reader of NumPy's headers gives a pair of text and place for some damage.
        reason = str(error.args[0] if error.args else error).split("\n")[0]
        raise FormatError("not an .npz of plain arrays", path=str(path), got=reason) from None
    types = {name.removesuffix(TYPE_SUFFIX): arrays.pop(name) for name in list(arrays) if name.endswith(TYPE_SUFFIX)}
    for name, spelled in types.items():
        try:
            arrays[name] = arrays[name].view(np.dtype(str(spelled)))
        except (KeyError, TypeError, ValueError):
            raise FormatError(
                "array and its element type do not fit", path=str(path), field=name, got=str(spelled)
            ) from None
    return arrays


def write_arrays(path: Path, arrays: Mapping[str, numpy.ndarray[Any, Any]]) -> None:
    """Write named arrays to an .npz that `load_arrays` and, for NumPy's own types, `numpy.load` read."""
    import numpy as np

    members: dict[str, Any] = {}
    for name, value in arrays.items():
        array = np.asarray(value)
        if array.dtype.kind == "V" or array.dtype.isbuiltin == 2:
            members[name] = array.view(f"u{array.dtype.itemsize}")
            members[name + TYPE_SUFFIX] = np.array(array.dtype.name)
        else:
            members[name] = array
    with path.open("wb") as file:
        np.savez(file, **members)


def export_array(path: Path, array: numpy.ndarray[Any, Any]) -> None:
    """Write one array to an .npy, whole or not at all; types that NumPy does not know are widened to fp32."""
    import numpy as np

    from neurontools.output import write_whole

    known = array if array.dtype.isbuiltin == 1 else array.astype(np.float32)
    with write_whole(path) as beside, beside.open("wb") as file:
        np.save(file, known)
