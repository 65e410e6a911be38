"""Arrays keep type and bits through an .npz, bfloat16 and fp8 included; damaged files are format errors."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from formats.errors import FormatError
from neurontools.arrays import load_arrays, write_arrays


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8", "bfloat16", "float8_e4m3", "float8_e5m2"])
def test_arrays_come_back(tmp_path: Path, dtype: str) -> None:
    assert ml_dtypes.bfloat16 is not None
    array = np.arange(12).reshape(3, 4).astype(np.dtype(dtype))
    write_arrays(tmp_path / "x.npz", {"a": array, "b": array[:, :1]})
    back = load_arrays(tmp_path / "x.npz")
    assert list(back) == ["a", "b"]
    assert back["a"].dtype == array.dtype and back["a"].tobytes() == array.tobytes()
    assert back["b"].shape == (3, 1)


def test_plain_types_are_plain_npz(tmp_path: Path) -> None:
    write_arrays(tmp_path / "x.npz", {"a": np.ones(3, np.float32)})
    with np.load(tmp_path / "x.npz") as file:
        assert file.files == ["a"]


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04" + bytes(40)])
def test_damage_is_a_format_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"x\.npz"):
        load_arrays(path)


def test_objects_and_lone_arrays_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.array([{}], dtype=object))
    with pytest.raises(FormatError, match="plain arrays"):
        load_arrays(tmp_path / "x.npz")
    np.save(tmp_path / "y.npy", np.ones(2))
    with pytest.raises(FormatError, match="without a name"):
        load_arrays(tmp_path / "y.npy")


def test_a_wrong_type_name_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.ones(3, np.uint16), a__dtype__=np.array("bfloat17"))
    with pytest.raises(FormatError, match="element type"):
        load_arrays(tmp_path / "x.npz")
