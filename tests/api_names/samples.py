"""One or more calls of every entry of the NKI interface, as a kernel body would write them.

A call stands for its entry on every target that takes it; where targets or engines differ, there are several.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import neurontools.nki as nki
import neurontools.nki.collectives as ncc
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from neurontools.nki.operators import BinaryOperator, UnaryOperator

Call = Callable[[], Any]
F32, BF16, I32, U32, U16, U8 = nl.float32, nl.bfloat16, nl.int32, nl.uint32, nl.uint16, nl.uint8
E = nisa.engine


def t(*shape: int, dtype: Any = F32, buffer: Any = nl.sbuf) -> Any:
    return nl.ndarray(shape or (32, 16), dtype, buffer)


def psum(*shape: int, dtype: Any = F32) -> Any:
    return t(*shape, dtype=dtype, buffer=nl.psum)


def hbm(*shape: int, dtype: Any = F32) -> Any:
    return t(*shape, dtype=dtype, buffer=nl.shared_hbm)


def register() -> Any:
    return nisa.register_alloc(1)


def on_both_cores(call: Call) -> Call:
    """Mark a call that needs a launch on two cores."""
    call.cores = 2  # type: ignore[attr-defined]
    return call


def _columns(engine: Any) -> list[Call]:
    words = 6 if engine is E.gpsimd else 24
    return [lambda: nisa.rand_set_state(t(32, words, dtype=U32), engine=engine),
            lambda: nisa.rand_get_state(t(32, words, dtype=U32), engine=engine)]  # fmt: skip


def _other() -> int:
    return 1 - int(nl.program_id(0))


def _fori(counted: list[Any]) -> None:
    total = t(1, 1, dtype=I32)
    nisa.memset(total, 0)
    counted.append(nl.fori_loop(0, register(), lambda i: nisa.tensor_scalar(total, total, nl.add, 1.0)))


def _dynamic() -> None:
    total = t(1, 1)
    for _ in nl.dynamic_range(register()):
        nisa.tensor_scalar(total, total, nl.add, 1.0)


def _while() -> None:
    count = register()

    def body(state: Any) -> Any:
        nisa.register_move(count, 0)
        return count

    nl.while_loop(count, body)


def _no_reorder() -> None:
    with nl.no_reorder():
        nisa.memset(t(), 0)


def _after() -> None:
    first = nisa.memset(t(), 0)
    nisa.memset(t(), 1).depends_on(first)


def _set(value: Any) -> None:
    one = t()
    one[0:32, 0:4] = value


def _two(op: Any) -> Call:
    return lambda: op(t(dtype=I32), t(dtype=I32)) if getattr(op, "kind", "") == "bitvec" else op(t(), t())


def _one(op: Any) -> Call:
    return lambda: op(t(dtype=I32)) if getattr(op, "kind", "") == "bitvec" else op(t())


ISA: dict[str, list[Call]] = {
    "activate2": [lambda: nisa.activate2(t(), nl.exp, t(), 1.0, 0.0, nl.multiply, nl.add)],
    "activation": [
        lambda: nisa.activation(t(), nl.exp, t()),
        lambda: nisa.activation(t(), nl.exp, t(), scale=t(32, 1), reduce_op=nl.add, reduce_res=t(32, 1),
                                reduce_cmd=nisa.reduce_cmd.reset_reduce),
    ],
    "activation_reduce": [lambda: nisa.activation_reduce(t(), nl.exp, t(), nl.add, t(32, 1))],
    "affine_select": [lambda: nisa.affine_select(t(), [[1, 16]], 1, t(), 0.0)],
    "bn_aggr": [lambda: nisa.bn_aggr(t(32, 2), t(32, 6))],
    "bn_stats": [lambda: nisa.bn_stats(t(32, 6), t())],
    "core_barrier": [on_both_cores(lambda: nisa.core_barrier(hbm(4, 4), (0, 1)))],
    "dma_compute": [lambda: nisa.dma_compute(t(), [t(), hbm(32, 16)], nl.add)],
    "dma_copy": [
        lambda: nisa.dma_copy(t(), hbm(32, 16)),
        lambda: nisa.dma_copy(t(), hbm(64, 16).ap([[16, 32], [1, 16]], vector_offset=t(32, 1, dtype=I32))),
    ],
    "dma_transpose": [lambda: nisa.dma_transpose(t(16, 32, dtype=BF16), hbm(32, 16, dtype=BF16))],
    "dropout": [lambda: nisa.dropout(t(), t(), 0.5)],
    "exponential": [lambda: nisa.exponential(t(), t())],
    "get_nc_sub_version": [nisa.get_nc_sub_version],
    "get_nc_version": [nisa.get_nc_version],
    "iota": [lambda: nisa.iota(t(dtype=I32), [[1, 16]])],
    "local_gather": [lambda: nisa.local_gather(t(), t(), t(32, 1, dtype=U16))],
    "max8": [lambda: nisa.max8(t(32, 8), t())],
    "memset": [lambda: nisa.memset(t(), 0), lambda: nisa.memset(t(), 0, engine=E.gpsimd)],
    "nc_find_index8": [lambda: nisa.nc_find_index8(t(32, 8, dtype=U32), t(), t(32, 8))],
    "nc_match_replace8": [lambda: nisa.nc_match_replace8(t(), t(), t(32, 8), 0.0)],
    "nc_matmul": [lambda: nisa.nc_matmul(psum(16, 16), t(), t())],
    "nc_matmul_mx": [
        lambda: nisa.nc_matmul_mx(psum(16, 16), t(dtype=nl.float8_e5m2_x4), t(dtype=nl.float8_e5m2_x4),
                                  t(dtype=U8), t(dtype=U8))],
    "nc_n_gather": [lambda: nisa.nc_n_gather(t(), t(), t(dtype=U32))],
    "nc_stream_shuffle": [lambda: nisa.nc_stream_shuffle(t(), t(), [0] * 32)],
    "nc_transpose": [lambda: nisa.nc_transpose(t(16, 32), t()), lambda: nisa.nc_transpose(psum(16, 32), t())],
    "nonzero_with_count": [
        lambda: nisa.nonzero_with_count(t(128, 17, dtype=I32), t(128, 16, dtype=I32))],
    "quantize_mx": [lambda: nisa.quantize_mx(t(32, 4, dtype=nl.float8_e5m2_x4), t(dtype=BF16), t(32, 4, dtype=U8))],
    "rand2": [lambda: nisa.rand2(t(), 0.0, 1.0)],
    "rand_get_state": [_columns(E.gpsimd)[1], _columns(E.vector)[1]],
    "rand_set_state": [_columns(E.gpsimd)[0], _columns(E.vector)[0]],
    "range_select": [
        lambda: nisa.range_select(t(), t(), nl.greater, nl.less, t(32, 1), t(32, 1), reduce_res=t(32, 1),
                                  on_false_value=-3.4028235e38)],
    "reciprocal": [lambda: nisa.reciprocal(t(), t())],
    "register_alloc": [register],
    "register_load": [lambda: nisa.register_load(register(), hbm(1, 1, dtype=I32))],
    "register_move": [lambda: nisa.register_move(register(), 2)],
    "register_store": [lambda: nisa.register_store(hbm(1, 1, dtype=I32), register())],
    "rng": [lambda: nisa.rng(t(dtype=U32)), lambda: nisa.rng(t(dtype=U32), engine=E.gpsimd)],
    "scalar_tensor_tensor": [lambda: nisa.scalar_tensor_tensor(t(), t(), nl.add, 1.0, nl.add, t())],
    "select_reduce": [lambda: nisa.select_reduce(t(), t(dtype=U8), t(), 0.0)],
    "sendrecv": [on_both_cores(lambda: nisa.sendrecv(t(), t(), _other(), _other(), 0))],
    "sequence_bounds": [lambda: nisa.sequence_bounds(t(1, 2, 16), t(1, 16))],
    "set_rng_seed": [lambda: nisa.set_rng_seed(t(1, 1, dtype=U32))],
    "tensor_copy": [
        lambda: nisa.tensor_copy(t(), t()),
        lambda: nisa.tensor_copy(t(), t(), engine=E.scalar),
        lambda: nisa.tensor_copy(t(dtype=BF16), t(), engine=E.gpsimd),
    ],
    "tensor_copy_predicated": [lambda: nisa.tensor_copy_predicated(t(), t(), t(dtype=U8))],
    "tensor_partition_reduce": [lambda: nisa.tensor_partition_reduce(t(1, 16), nl.add, t())],
    "tensor_reduce": [lambda: nisa.tensor_reduce(t(32, 1), nl.add, t(), 1)],
    "tensor_scalar": [
        lambda: nisa.tensor_scalar(t(), t(), nl.add, 1.0),
        lambda: nisa.tensor_scalar(t(), t(), nl.add, 1.0, engine=E.scalar),
        lambda: nisa.tensor_scalar(t(), t(), nl.rsqrt, 0.0),
    ],
    "tensor_scalar_cumulative": [lambda: nisa.tensor_scalar_cumulative(t(), t(), nl.add, nl.add, 0.0)],
    "tensor_scalar_reduce": [lambda: nisa.tensor_scalar_reduce(t(), t(), nl.add, 0.0, nl.add, t(32, 1))],
    "tensor_tensor": [
        lambda: nisa.tensor_tensor(t(), t(), t(), nl.add),
        lambda: nisa.tensor_tensor(t(), t(), t(), nl.power),
    ],
    "tensor_tensor_scan": [lambda: nisa.tensor_tensor_scan(t(), t(), t(), 0.0, nl.multiply, nl.add)],
    "topk": [
        lambda: nisa.topk(t(16, 8, dtype=BF16), t(16, 8, dtype=U32), t(16, 8, dtype=BF16), 64)],
    "NkiInstruction": [_after],
    "VirtualRegister": [lambda: nisa.VirtualRegister(3)],
}  # fmt: skip

ONE_RANK, FOUR_RANKS = ncc.ReplicaGroup([[0]]), ncc.ReplicaGroup([[0, 1, 2, 3]])
COLLECTIVES: dict[str, list[Call]] = {
    "all_gather": [lambda: ncc.all_gather([hbm(4, 4)], [hbm(4, 4)], ONE_RANK, 0)],
    "all_gather_v": [lambda: ncc.all_gather_v([hbm(4)], [hbm(16)], FOUR_RANKS, hbm(3, 4, dtype=U32))],
    "all_reduce": [lambda: ncc.all_reduce([hbm(4, 4)], [hbm(4, 4)], ONE_RANK, nl.add)],
    "all_to_all": [lambda: ncc.all_to_all([hbm(4, 4)], [hbm(4, 4)], ONE_RANK, 0)],
    "all_to_all_v": [lambda: ncc.all_to_all_v([hbm(16)], [hbm(16)], FOUR_RANKS, hbm(3, 4, dtype=U32))],
    "collective_permute": [lambda: ncc.collective_permute([hbm(4, 4)], [hbm(4, 4)], [(0, 0)])],
    "collective_permute_implicit": [
        lambda: ncc.collective_permute_implicit([[hbm(4, 4)]], [[hbm(4, 4)]], ONE_RANK)],
    "collective_permute_implicit_current_processing_rank_id": [
        lambda: ncc.collective_permute_implicit_current_processing_rank_id(0, ONE_RANK)],
    "collective_permute_implicit_reduce": [
        lambda: ncc.collective_permute_implicit_reduce([[hbm(4, 4)]], [[hbm(4, 4)]], [[hbm(4, 4)]], ONE_RANK, nl.add)],
    "rank_id": [ncc.rank_id],
    "reduce_scatter": [lambda: ncc.reduce_scatter([hbm(4, 4)], [hbm(4, 4)], ONE_RANK, 0, nl.add)],
    "ReplicaGroup": [lambda: ncc.ReplicaGroup([[0]])],
}  # fmt: skip

LANGUAGE: dict[str, list[Call]] = {
    "affine_range": [lambda: list(nl.affine_range(2))],
    "all": [lambda: nl.all(t(), axis=1)],
    "broadcast_to": [lambda: nl.broadcast_to(t(1, 16), (32, 16))],
    "device_print": [lambda: nl.device_print("here", t())],
    "dropout": [lambda: nl.dropout(t(), 0.5)],
    "ds": [lambda: nisa.memset(t()[nl.ds(0, 32), nl.ds(4, 8)], 0)],
    "dynamic_range": [_dynamic],
    "empty_like": [lambda: nl.empty_like(t())],
    "expand_dims": [lambda: nl.expand_dims(t(), 1)],
    "fori_loop": [lambda: _fori([])],
    "full": [lambda: nl.full((4, 4), 2.0, F32)],
    "gather_flattened": [lambda: nl.gather_flattened(t(), t(dtype=U32))],
    "is_hbm": [lambda: nl.is_hbm(nl.hbm)],
    "is_on_chip": [lambda: nl.is_on_chip(nl.sbuf)],
    "is_psum": [lambda: nl.is_psum(nl.psum)],
    "is_sbuf": [lambda: nl.is_sbuf(nl.sbuf)],
    "load": [lambda: nl.load(hbm(32, 16))],
    "load_transpose2d": [lambda: nl.load_transpose2d(hbm(32, 16))],
    "matmul": [lambda: nl.matmul(t(32, 32), t(32, 16))],
    "max": [lambda: nl.max(t(), axis=1)],
    "mean": [lambda: nl.mean(t(), axis=1)],
    "min": [lambda: nl.min(t(), axis=1)],
    "ndarray": [lambda: nl.ndarray((4, 4), F32)],
    "no_reorder": [_no_reorder],
    "num_programs": [lambda: nl.num_programs(0)],
    "ones": [lambda: nl.ones((4, 4), F32)],
    "prod": [lambda: nl.prod(t(), axis=1)],
    "program_id": [lambda: nl.program_id(0)],
    "program_ndim": [nl.program_ndim],
    "rand": [lambda: nl.rand((4, 4), F32)],
    "random_seed": [lambda: nl.random_seed(t(1, 1, dtype=I32))],
    "rms_norm": [lambda: nl.rms_norm(t(), t(1, 16), axis=1, n=16)],
    "sequential_range": [lambda: list(nl.sequential_range(2))],
    "shared_constant": [lambda: nl.shared_constant(np.ones((4, 4), np.float32))],
    "shared_identity_matrix": [lambda: nl.shared_identity_matrix(16)],
    "softmax": [lambda: nl.softmax(t(), axis=1)],
    "static_range": [lambda: list(nl.static_range(2))],
    "store": [lambda: nl.store(hbm(32, 16), t())],
    "sum": [lambda: nl.sum(t(), axis=1)],
    "transpose": [lambda: nl.transpose(t())],
    "var": [lambda: nl.var(t(), axis=1)],
    "where": [lambda: nl.where(t(), t(), t())],
    "while_loop": [_while],
    "zeros": [lambda: nl.zeros((4, 4), F32)],
    "zeros_like": [lambda: nl.zeros_like(t())],
    "MemoryRegion": [lambda: nl.ndarray((4, 4), F32, nl.MemoryRegion.psum)],
    "NKIObject": [lambda: type("Settings", (nl.NKIObject,), {"width": 1})(width=3)],
    "average": [lambda: nisa.tensor_partition_reduce(t(1, 16), nl.average, t())],
    "bypass": [lambda: nisa.tensor_scalar(t(), t(), nl.bypass, None)],
    "prelu": [lambda: nisa.activation(t(), nl.prelu, t())],
    "tile_size": [lambda: nl.tile_size.pmax],
    "DType": [lambda: nl.DType],
    **{region: [lambda region=region: nl.ndarray((4, 4), F32, getattr(nl, region))]
       for region in ("sbuf", "psum", "hbm", "private_hbm", "shared_hbm")},
    **{name: [lambda name=name: nisa.memset(t(4, 4, dtype=getattr(nl, name)), 0)]
       for name in ("bool_", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "float32", "bfloat16",
                    "tfloat32", "float8_e4m3", "float8_e4m3fn", "float8_e5m2", "float8_e5m2_x4", "float8_e4m3fn_x4",
                    "float8_e8m0fnu", "float4_e2m1fn_x4")},
    **{name: [_two(op)] for name, op in vars(nl).items() if isinstance(op, BinaryOperator)},
    **{name: [_one(op)] for name, op in vars(nl).items() if isinstance(op, UnaryOperator)},
}  # fmt: skip

VIEWS: dict[str, list[Call]] = {
    "__getitem__": [lambda: nisa.memset(t()[0:32, 2:8:2], 0)],
    "__init__": [lambda: nl.ndarray((4, 4), F32, nl.sbuf, name="mine")],
    "__setitem__": [lambda: _set(1.0)],
    "ap": [lambda: nisa.memset(t().ap([[16, 32], [2, 8]]), 0)],
    "broadcast": [lambda: nisa.tensor_copy(t(), t(32, 1).broadcast(1, 16))],
    "buffer": [lambda: t().buffer],
    "dtype": [lambda: t().dtype],
    "expand_dim": [lambda: t().expand_dim(1)],
    "flatten_dims": [lambda: t(32, 4, 4).flatten_dims(1, 2)],
    "get_pattern": [lambda: t().get_pattern()],
    "indirect": [lambda: nisa.tensor_copy(t(32, 32), t(32, 64).indirect(t(32, 2, dtype=U16), 32))],
    "is_contiguous": [lambda: t().is_contiguous()],
    "is_indirect": [lambda: t().is_indirect()],
    "name": [lambda: t().name],
    "ndim": [lambda: t().ndim],
    "offset": [lambda: t().offset],
    "permute": [lambda: nisa.tensor_copy(t(32, 4, 4), t(32, 4, 4).permute((0, 2, 1)))],
    "rearrange": [lambda: t(32, 4, 4).rearrange(["p", "a", "b"], ["p", "b", "a"])],
    "reinterpret_cast": [lambda: t().reinterpret_cast(I32)],
    "reshape": [lambda: t().reshape((32, 4, 4))],
    "reshape_dim": [lambda: t().reshape_dim(1, (4, 4))],
    "select": [lambda: t(32, 4, 4).select(1, 2)],
    "shape": [lambda: t().shape],
    "size": [lambda: t().size],
    "slice": [lambda: t().slice(1, 2, 8)],
    "squeeze_dim": [lambda: t(32, 1, 4).squeeze_dim(1)],
    "strides": [lambda: t().strides],
    "vector_select": [lambda: nisa.dma_copy(t(), hbm(64, 16).vector_select(0, t(32, 1, dtype=I32)))],
    "view": [lambda: t().view(I32)],
}


def _kernel(x: Any) -> Any:
    return x


TOP: dict[str, list[Call]] = {"jit": [lambda: nki.jit(_kernel)], "simulate": [lambda: nki.simulate(_kernel)]}
SAMPLES: dict[str, dict[str, list[Call]]] = {
    "nki": TOP,
    "nki.isa": ISA,
    "nki.language": LANGUAGE,
    "nki.language.NkiTensor": VIEWS,
    "nki.collectives": COLLECTIVES,
}
