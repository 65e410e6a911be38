"""Arrays keep type and bits through an .npz, bfloat16 and fp8 included; damaged files are format errors."""

from __future__ import annotations

import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from formats.errors import FormatError
from neurontools.program.arrays import load_arrays, write_arrays


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8", "bfloat16", "float8_e4m3", "float8_e5m2"])
def test_arrays_come_back(tmp_path: Path, dtype: str) -> None:
    assert ml_dtypes.bfloat16 is not None
    array = np.arange(12).reshape(3, 4).astype(np.dtype(dtype))
    write_arrays(tmp_path / "x.npz", {"a": array, "b": array[:, :1]})
    back = load_arrays(tmp_path / "x.npz")
    assert list(back) == ["a", "b"]
    assert back["a"].dtype == array.dtype and back["a"].tobytes() == array.tobytes()
    assert back["b"].shape == (3, 1)


@pytest.mark.parametrize("name", ["file", "allow_pickle", "args", "a/b", "größe"])
def test_any_name_of_an_output_is_a_name_of_a_member(tmp_path: Path, name: str) -> None:
    write_arrays(tmp_path / "x.npz", {name: np.arange(6)[::2], "other": np.float32(3)})
    for found in (load_arrays(tmp_path / "x.npz"), np.load(tmp_path / "x.npz")):
        assert sorted(found) == sorted((name, "other")) and found[name].tolist() == [0, 2, 4]


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


def test_every_kind_of_damage_is_a_format_error(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, a=np.arange(5000, dtype=np.float32))
    whole = path.read_bytes()
    central = whole.find(b"PK\x01\x02")
    refused = 0
    # Beside chance: encrypted (flag bit 0), patched data (bit 5), an unknown method, a later version of the format.
    edits = [(at, whole[at] ^ 0x41) for at in range(0, len(whole), 97)] + [(at, whole[at] ^ 0xFF) for at in range(180)]
    edits += [(central + 8, 1), (central + 8, 32), (central + 10, 99), (central + 6, 255)]
    for at, byte in edits:
        path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
        try:
            load_arrays(path)
        except FormatError as error:
            refused += "\n" not in str(error)
    assert refused > len(edits) // 2


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': ((((",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
        "{}",
    ],
)
def test_hostile_headers_are_refused(tmp_path: Path, header: str) -> None:
    text = header.encode() + b"\n"
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("a.npy", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
    with pytest.raises(FormatError):
        load_arrays(tmp_path / "x.npz")


def member(header: str) -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def test_members_that_claim_more_than_the_file_allows_are_refused(tmp_path: Path) -> None:
    """Three megabytes of packed zeros took three to six gigabytes."""
    path, zeros = tmp_path / "x.npz", b"\0" * (1 << 20)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file, file.open("a.npy", "w", force_zip64=True) as to:
        to.write(member(f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({300 << 20},)}}"))
        for _ in range(300):
            to.write(zeros)
    assert path.stat().st_size < 1 << 20
    with pytest.raises(FormatError, match="over the size limit"):
        load_arrays(path)


@pytest.mark.parametrize("name", ["(9999,9999)f4", "O", "f4,f4", "(((", "bfloat17", "finfo", "__name__", "V1" * 60])
def test_text_of_a_type_asks_numpy_for_nothing(tmp_path: Path, name: str) -> None:
    np.savez(tmp_path / "x.npz", a=np.ones(3, np.uint16), a__dtype__=np.array(name))
    with pytest.raises(FormatError, match="element type"):
        load_arrays(tmp_path / "x.npz")


@pytest.mark.parametrize("names", [("a.npy", "notes.txt"), ("a",), ("a.npy", "a.npy")])
def test_foreign_members_are_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        for name in names:
            archive.writestr(name, member("{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}") + b"1")
    with pytest.raises(FormatError, match=r"something else than arrays|stands in it twice"):
        load_arrays(tmp_path / "x.npz")


@pytest.mark.parametrize("shape", ["0", "2, 2", "1, 0, 4", "-1, -4", ", ".join("1" * 33), "1 << 70"])
def test_shapes_that_do_not_fit_their_bytes_are_refused(tmp_path: Path, shape: str) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("a.npy", member(f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({shape},)}}") + b"12345")
    with pytest.raises(FormatError):
        load_arrays(tmp_path / "x.npz")


def test_names_of_members_command_no_terminal(tmp_path: Path) -> None:
    """Found by `python -m tests.fuzz`."""
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("\x1b[2J.txt", b"")
    with pytest.raises(FormatError, match="not for printing") as caught:
        load_arrays(tmp_path / "x.npz")
    assert "\x1b" not in str(caught.value)
