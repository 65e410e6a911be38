"""`.npy` without NumPy, against NumPy."""

from __future__ import annotations

import io

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from emulator.device import Device
from formats.errors import FormatError, UnsupportedError
from formats.neff import NeffWriter
from formats.neff.npy import npy_bytes, parse_npy

arrays = hnp.arrays(hnp.scalar_dtypes().filter(lambda d: d.kind in "fiub"), hnp.array_shapes(min_dims=0, max_side=5))


def saved(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


@given(arrays, st.booleans())
def test_reads_what_numpy_writes(array: np.ndarray, fortran: bool) -> None:
    array = np.asfortranarray(array) if fortran else array
    found = parse_npy(saved(array), "x")
    assert found.shape == array.shape and np.dtype(found.descr) == array.dtype
    assert found.payload == array.tobytes("F" if found.fortran_order else "C")


@given(arrays)
def test_writes_what_numpy_reads(array: np.ndarray) -> None:
    data = npy_bytes(array.dtype.str, array.shape, array.tobytes())
    loaded = np.load(io.BytesIO(data))
    assert loaded.dtype == array.dtype and loaded.tobytes() == array.tobytes() and loaded.shape == array.shape
    assert (len(data) - array.nbytes) % 64 == 0


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3"])
def test_types_numpy_has_no_name_for(name: str) -> None:
    array = np.arange(6).astype(getattr(ml_dtypes, name)).reshape(2, 3)
    writer = NeffWriter("trn2")
    writer.subgraph(0).constant("c", array)
    found = writer.build().subgraphs[0].constant_array("c")
    assert found.dtype == array.dtype and found.tobytes() == array.tobytes() and found.shape == (2, 3)


def test_fortran_order_constant() -> None:
    array = np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3))
    writer = NeffWriter("trn2")
    writer.subgraph(0).constant("c", saved(array))
    graph = writer.build().subgraphs[0]
    assert graph.constant_array("c").tolist() == array.tolist()


@pytest.mark.parametrize("array", [np.asfortranarray(np.eye(2, 3, dtype=np.float32)), np.arange(3, dtype=">i4")])
def test_a_constant_in_another_order_is_not_loaded(array: np.ndarray) -> None:
    writer = NeffWriter("trn2")
    writer.subgraph(0).constant("c", saved(array))
    neff = writer.build()
    with pytest.raises(UnsupportedError, match=r"value_c\.npy: how a constant stored (columns|most significant)"):
        Device(neff.target).load(neff)
    assert [one for one in neff.verify() if "so not executed" in one.message]


HEAD = b"\x93NUMPY\x01\x00"


def framed(text: bytes, payload: bytes = b"") -> bytes:
    return HEAD + len(text).to_bytes(2, "little") + text + payload


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x93NUMPY",
        HEAD + b"\xff\xff{",
        framed(b"{}"),
        framed(b"__import__('os')"),
        framed(b"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", bytes(4)),
        framed(b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", bytes(8)),
        framed(b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", bytes(4)),
        framed(b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", bytes(4)),
        framed(b"{'descr': '<f4', 'fortran_order': False, 'shape': (1 1), }", bytes(44)),
        # Nothing to hold, and still no array: NumPy has no index of 64 bits unsigned, and not so many dimensions.
        framed(b"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 99999999999999999999), }"),
        framed(b"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4611686018427387904), }"),
        framed(b"{'descr': '<f4', 'fortran_order': False, 'shape': (" + b"1, " * 40 + b"), }", bytes(4)),
    ],
)
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        parse_npy(data, "x")


def test_payload_of_another_length_is_refused() -> None:
    with pytest.raises(FormatError, match="wrong length"):
        npy_bytes("<f4", (2,), bytes(4))
