"""`nki.language`: types, memories, tensors, operators and functional tile operations.

Operators (`nl.add`, `nl.exp`, ...) are objects: tokens for `op=` of ISA calls, and functions when called.
"""

import typing as _typing

from neurontools.nki.dtype import (
    DType,
    bfloat16,
    bool_,
    float4_e2m1fn_x4,
    float8_e4m3,
    float8_e4m3fn,
    float8_e4m3fn_x4,
    float8_e5m2,
    float8_e5m2_x4,
    float8_e8m0fnu,
    float16,
    float32,
    int8,
    int16,
    int32,
    tfloat32,
    uint8,
    uint16,
    uint32,
)
from neurontools.nki.language.creation import (
    empty_like,
    full,
    ndarray,
    ones,
    shared_constant,
    shared_identity_matrix,
    zeros,
    zeros_like,
)
from neurontools.nki.language.debugging import device_print
from neurontools.nki.language.dynamic import dynamic_range, fori_loop, while_loop
from neurontools.nki.language.elementwise import where
from neurontools.nki.language.loops import (
    affine_range,
    ds,
    nc,
    no_reorder,
    num_programs,
    par_dim,
    program_id,
    program_ndim,
    range,
    sequential_range,
    spmd_dim,
    static_range,
)
from neurontools.nki.language.movement import broadcast_to, expand_dims, load, load_transpose2d, store, transpose
from neurontools.nki.language.reductions import all, matmul, max, mean, min, prod, rms_norm, softmax, sum, var
from neurontools.nki.language.sampling import dropout, gather_flattened, rand, random_seed
from neurontools.nki.language.sizes import tile_size
from neurontools.nki.objects import NKIObject
from neurontools.nki.operators import OPERATORS
from neurontools.nki.regions import MemoryRegion, is_hbm, is_on_chip, is_psum, is_sbuf
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.unknown import of_module as _of_module

sbuf = MemoryRegion.sbuf
psum = MemoryRegion.psum
private_hbm = MemoryRegion.private_hbm
hbm = MemoryRegion.private_hbm
shared_hbm = MemoryRegion.shared_hbm
bool = bool_

globals().update(OPERATORS)
if _typing.TYPE_CHECKING:

    def __getattr__(name: str) -> _typing.Any: ...  # one that the line above adds

else:

    def __getattr__(name):
        """Say which name may be meant."""
        raise _of_module("nki.language", name, globals())


__all__ = [  # noqa: PLE0604  the keys of OPERATORS are strings
    "DType",
    "MemoryRegion",
    "NKIObject",
    "NkiTensor",
    "affine_range",
    "all",
    "bfloat16",
    "bool",
    "bool_",
    "broadcast_to",
    "device_print",
    "dropout",
    "dynamic_range",
    "ds",
    "empty_like",
    "expand_dims",
    "float4_e2m1fn_x4",
    "float8_e4m3",
    "float8_e4m3fn",
    "float8_e4m3fn_x4",
    "float8_e5m2",
    "float8_e5m2_x4",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "fori_loop",
    "full",
    "gather_flattened",
    "hbm",
    "int8",
    "int16",
    "int32",
    "is_hbm",
    "is_on_chip",
    "is_psum",
    "is_sbuf",
    "load",
    "load_transpose2d",
    "matmul",
    "max",
    "mean",
    "min",
    "nc",
    "ndarray",
    "no_reorder",
    "num_programs",
    "ones",
    "par_dim",
    "private_hbm",
    "prod",
    "program_id",
    "program_ndim",
    "psum",
    "rand",
    "random_seed",
    "range",
    "rms_norm",
    "sbuf",
    "sequential_range",
    "shared_constant",
    "shared_hbm",
    "shared_identity_matrix",
    "softmax",
    "spmd_dim",
    "static_range",
    "store",
    "sum",
    "tfloat32",
    "tile_size",
    "transpose",
    "uint8",
    "uint16",
    "uint32",
    "var",
    "where",
    "while_loop",
    "zeros",
    "zeros_like",
    *OPERATORS,
]
