"""Element types as kernels compare, pass and promote them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import neurontools.nki.language as nl
from formats.dtypes import Dtype
from neurontools.nki import NkiValidationError
from neurontools.nki.dtype import dtype_of, promote

ALL = [
    nl.bool_,
    nl.int8,
    nl.int16,
    nl.int32,
    nl.uint8,
    nl.uint16,
    nl.uint32,
    nl.float16,
    nl.float32,
    nl.bfloat16,
    nl.tfloat32,
    nl.float8_e4m3,
    nl.float8_e4m3fn,
    nl.float8_e5m2,
    nl.float8_e8m0fnu,
]


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16", "int32", "uint8", "float8_e4m3fn", "bool"])
def test_a_type_equals_everything_of_its_name(name: str) -> None:
    one = dtype_of(name)
    kind = np.dtype(name)
    assert one == name and name == one
    assert one == kind and kind == one
    assert one == kind.type and one == dtype_of(kind) and one == dtype_of(kind.type)
    assert one != "float64" and one != np.dtype("float64") and one != np.float64
    assert np.zeros(1, one).dtype == kind
    assert hash(one) == hash(name) and {one: 1}[name] == 1
    assert isinstance(one, str) and repr(one) == name


def test_names_of_frameworks_and_formats() -> None:
    assert dtype_of("torch.bfloat16") == nl.bfloat16 == ml_dtypes.bfloat16
    assert dtype_of(Dtype.FLOAT8E5) == nl.float8_e5m2
    assert (nl.float8_e4m3fn_x4.itemsize, nl.float4_e2m1fn_x4.itemsize) == (4, 2)
    for bad in ("float64", np.int64, None, object(), float):
        with pytest.raises(NkiValidationError, match="is not an NKI data type"):
            dtype_of(bad)


@pytest.mark.parametrize(
    ("first", "second", "result"),
    [
        # Source: hardware.md 7.3
        (nl.float16, nl.int32, nl.float16),
        (nl.float16, nl.float32, nl.float32),
        (nl.float16, nl.bfloat16, nl.float32),
        (nl.float8_e4m3, nl.float8_e5m2, nl.bfloat16),
        (nl.int8, nl.int16, nl.int16),
        (nl.int8, nl.uint8, nl.int16),
        (nl.uint16, nl.int16, nl.int32),
        (nl.uint8, nl.int16, nl.int16),
        (nl.int32, nl.uint32, nl.float32),
    ],
)
def test_promotion(first: nl.DType, second: nl.DType, result: nl.DType) -> None:
    assert promote(first, second) == promote(second, first) == result


def test_promotion_is_total_and_symmetric() -> None:
    for first in ALL:
        assert promote(first, first) == first
        for second in ALL:
            assert promote(first, second) == promote(second, first)
