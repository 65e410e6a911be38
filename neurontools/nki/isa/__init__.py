"""`nki.isa`: one function per NeuronCore instruction; each checks its documented limits and appends to the trace."""

from neurontools.nki.errors import NkiValidationError
from neurontools.nki.isa import constants
from neurontools.nki.isa.activations import activation, activation_reduce
from neurontools.nki.isa.constants import (
    dge_mode,
    dma_engine,
    engine,
    gpsimd_engine,
    matmul_perf_mode,
    nc_version,
    oob_mode,
    reduce_cmd,
    scalar_engine,
    tensor_engine,
    unknown_engine,
    vector_engine,
)
from neurontools.nki.isa.dma import dma_copy, dma_transpose
from neurontools.nki.isa.instruction import NkiInstruction
from neurontools.nki.isa.later import *  # noqa: F403  the documented names that are refused
from neurontools.nki.isa.matmul import nc_matmul, nc_transpose
from neurontools.nki.isa.moves import memset, nc_stream_shuffle, tensor_copy
from neurontools.nki.isa.multicore import core_barrier, get_nc_sub_version, get_nc_version, sendrecv
from neurontools.nki.isa.reduce import tensor_reduce
from neurontools.nki.isa.vector import (
    reciprocal,
    scalar_tensor_tensor,
    tensor_scalar,
    tensor_tensor,
    tensor_tensor_scan,
)

__all__ = [
    "NkiInstruction",
    "NkiValidationError",
    "activation",
    "activation_reduce",
    "constants",
    "core_barrier",
    "dge_mode",
    "dma_copy",
    "dma_engine",
    "dma_transpose",
    "engine",
    "get_nc_sub_version",
    "get_nc_version",
    "gpsimd_engine",
    "matmul_perf_mode",
    "memset",
    "nc_matmul",
    "nc_stream_shuffle",
    "nc_transpose",
    "nc_version",
    "oob_mode",
    "reciprocal",
    "reduce_cmd",
    "scalar_engine",
    "scalar_tensor_tensor",
    "sendrecv",
    "tensor_copy",
    "tensor_engine",
    "tensor_reduce",
    "tensor_scalar",
    "tensor_tensor",
    "tensor_tensor_scan",
    "unknown_engine",
    "vector_engine",
]
