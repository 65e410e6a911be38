"""Named arrays in .npz files, element types of the hardware included."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from formats.errors import FormatError
from neurontools.program.zip_members import ZipMembers, damage_is_told

if TYPE_CHECKING:
    import numpy

__all__ = ["array_type", "export_array", "load_arrays", "write_arrays", "write_members"]

# NumPy stores a type it does not know as raw bytes ("V2"); the name is kept in a member of this suffix.
TYPE_SUFFIX = "__dtype__"
_NUMPY_MAGIC = b"\x93NUMPY"
# Names of NumPy's own types that hold plain elements; text of other forms could ask NumPy for anything.
_PLAIN = re.compile(r"bool|u?int(?:8|16|32|64)|float(?:16|32|64)|complex(?:64|128)|void\d{1,5}")
_LONGEST_NAME = 64


def array_type(name: str) -> numpy.dtype[Any]:
    """Return the element type of a name that a file gives, one of NumPy or of ml_dtypes; FormatError for another."""
    import ml_dtypes
    import numpy as np

    if _PLAIN.fullmatch(name):
        return np.dtype(name)
    found = getattr(ml_dtypes, name, None) if name.isidentifier() else None
    if not isinstance(found, type) or not issubclass(found, np.generic):
        raise FormatError("unknown element type", got=repr(name[:_LONGEST_NAME]))
    return np.dtype(found)


def load_arrays(path: Path) -> dict[str, numpy.ndarray[Any, Any]]:
    """Return the arrays of an .npz by name.

    bfloat16 and fp8 arrays come back as such when `write_arrays` wrote them; objects are refused, since they are code.
    """
    where = str(path)
    with damage_is_told(where, "not an .npz of plain arrays"):
        with path.open("rb") as file:
            if file.read(len(_NUMPY_MAGIC)) == _NUMPY_MAGIC:
                raise FormatError("holds one array without a name", path=where, expected="an .npz of named arrays")
        with ZipMembers(path, where, path.stat().st_size) as members:
            foreign = next((name for name in members.names if not name.endswith(".npy")), None)
            if foreign is not None:
                raise FormatError("holds something else than arrays", path=where, field=foreign, expected="NAME.npy")
            arrays = {name.removesuffix(".npy"): members.array(name) for name in members.names}
        types = {name: arrays.pop(name) for name in list(arrays) if name.endswith(TYPE_SUFFIX)}
        for name, spelled in types.items():
            _give_type(arrays, name.removesuffix(TYPE_SUFFIX), spelled, where)
    return arrays


def _give_type(arrays: dict[str, numpy.ndarray[Any, Any]], name: str, spelled: numpy.ndarray[Any, Any],
               where: str) -> None:  # fmt: skip
    """Give an array the type that another member names."""
    text = str(spelled) if spelled.ndim == 0 and spelled.dtype.kind == "U" else f"{spelled.dtype}{list(spelled.shape)}"
    try:
        arrays[name] = arrays[name].view(array_type(text))
    except (KeyError, TypeError, ValueError):
        raise FormatError("array and its element type do not fit", path=where, field=name,
                          got=text[:_LONGEST_NAME]) from None  # fmt: skip


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
        write_members(file, members)


def write_members(file: BinaryIO, members: Mapping[str, numpy.ndarray[Any, Any]]) -> None:
    """Write arrays of NumPy's own types as an .npz: `numpy.savez` has parameters called `file` and `allow_pickle`."""
    from numpy.lib import format as npy

    with zipfile.ZipFile(file, "w", allowZip64=True) as archive:
        for name, array in members.items():
            # A member may have more than 4 GiB, which the archive must know before the first byte.
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, array, allow_pickle=False)


def export_array(path: Path, array: numpy.ndarray[Any, Any]) -> None:
    """Write one array to an .npy, whole or not at all; types that NumPy does not know are widened to fp32."""
    import numpy as np

    from neurontools.command.output import write_whole  # deferred: start-up

    known = array if array.dtype.isbuiltin == 1 else array.astype(np.float32)
    with write_whole(path) as beside, beside.open("wb") as file:
        np.save(file, known)
