"""`nki.isa`: one function per NeuronCore instruction; each checks its documented limits and appends to the trace."""

from neurontools.nki.errors import NkiValidationError
from neurontools.nki.isa import constants
from neurontools.nki.isa.activate2 import activate2
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
from neurontools.nki.isa.dma_indirect import dma_compute
from neurontools.nki.isa.gpsimd import (
    affine_select,
    iota,
    local_gather,
    nc_n_gather,
    nonzero_with_count,
    sequence_bounds,
    tensor_partition_reduce,
    topk,
)
from neurontools.nki.isa.instruction import NkiInstruction
from neurontools.nki.isa.matmul import nc_matmul, nc_transpose
from neurontools.nki.isa.moves import memset, nc_stream_shuffle, tensor_copy
from neurontools.nki.isa.multicore import core_barrier, get_nc_sub_version, get_nc_version, sendrecv
from neurontools.nki.isa.mx import nc_matmul_mx, quantize_mx
from neurontools.nki.isa.random_numbers import dropout, rand2, rand_get_state, rand_set_state, rng, set_rng_seed
from neurontools.nki.isa.reduce import tensor_reduce
from neurontools.nki.isa.registers import (
    VirtualRegister,
    register_alloc,
    register_load,
    register_move,
    register_store,
)
from neurontools.nki.isa.search import bn_aggr, bn_stats, max8, nc_find_index8, nc_match_replace8
from neurontools.nki.isa.selection import (
    exponential,
    range_select,
    select_reduce,
    tensor_copy_predicated,
    tensor_scalar_cumulative,
    tensor_scalar_reduce,
)
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
    "VirtualRegister",
    "activate2",
    "activation",
    "activation_reduce",
    "affine_select",
    "bn_aggr",
    "bn_stats",
    "constants",
    "core_barrier",
    "dge_mode",
    "dma_compute",
    "dma_copy",
    "dma_engine",
    "dma_transpose",
    "dropout",
    "engine",
    "exponential",
    "get_nc_sub_version",
    "get_nc_version",
    "gpsimd_engine",
    "iota",
    "local_gather",
    "matmul_perf_mode",
    "max8",
    "memset",
    "nc_find_index8",
    "nc_match_replace8",
    "nc_matmul",
    "nc_matmul_mx",
    "nc_n_gather",
    "nc_stream_shuffle",
    "nc_transpose",
    "nc_version",
    "nonzero_with_count",
    "oob_mode",
    "quantize_mx",
    "rand2",
    "rand_get_state",
    "rand_set_state",
    "range_select",
    "reciprocal",
    "reduce_cmd",
    "register_alloc",
    "register_load",
    "register_move",
    "register_store",
    "rng",
    "scalar_engine",
    "scalar_tensor_tensor",
    "select_reduce",
    "sendrecv",
    "sequence_bounds",
    "set_rng_seed",
    "tensor_copy",
    "tensor_copy_predicated",
    "tensor_engine",
    "tensor_partition_reduce",
    "tensor_reduce",
    "tensor_scalar",
    "tensor_scalar_cumulative",
    "tensor_scalar_reduce",
    "tensor_tensor",
    "tensor_tensor_scan",
    "topk",
    "unknown_engine",
    "vector_engine",
]
