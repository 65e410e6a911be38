"""Every documented limit that is checked: the message names argument, value, limit, target and kernel line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import neurontools.nki.collectives as ncc
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from formats.errors import NeuronError, UnsupportedError
from neurontools.nki import NkiValidationError
from tests.nki.support import trace_body

P = 128


def t(*shape: int, dtype: Any = nl.float32, buffer: Any = nl.sbuf, address: Any = None) -> Any:
    return nl.ndarray(shape, dtype, buffer, address=address)


def ps(*shape: int, dtype: Any = nl.float32) -> Any:
    return nl.ndarray(shape, dtype, nl.psum)


def hbm(*shape: int, dtype: Any = nl.float32) -> Any:
    return nl.ndarray(shape, dtype, nl.shared_hbm)


def matmul(
    k: int = P, m: int = P, n: int = 512, dst: Any = None, dtypes: Any = (nl.float32, nl.float32), **more: Any
) -> None:
    nisa.nc_matmul(ps(m, n) if dst is None else dst(), t(k, m, dtype=dtypes[0]), t(k, n, dtype=dtypes[1]), **more)


def add(**change: Any) -> None:
    operands = {"dst": t(P, 8), "data1": t(P, 8), "data2": t(P, 8), "op": nl.add}
    nisa.tensor_tensor(
        **{name: value() if callable(value) and name != "op" else value for name, value in (operands | change).items()}
    )


CASES: list[tuple[str, Callable[[], Any], str]] = [
    # allocation
    ("trn2", lambda: t(129, 4), "shape[0] of the sbuf tensor sbuf_0 is 129 partitions, at most 128"),
    ("trn1", lambda: t(P, 192 * 256 + 1), "takes 196612 bytes per partition, at most 196608"),
    ("trn2", lambda: t(P, 224 * 256 + 1), "at most 229376"),
    ("trn3", lambda: t(P, 256 * 256 + 1), "at most 262144"),
    ("trn2", lambda: ps(P, 4097), "psum tensor psum_0 takes 16388 bytes per partition, at most 16384"),
    ("trn2", lambda: t(64, 4, address=(96, 0)), "address=(96, 0) puts 64 partitions past 128"),
    ("trn2", lambda: t(64, 4, address=(0, 229370)), "puts 16 bytes past the 229376"),
    ("trn2", lambda: nl.ndarray((4, 4), nl.float32, nl.hbm, address=(0, 0)), "only SBUF and PSUM have addresses"),
    ("trn2", lambda: nl.ndarray((4, 0), nl.float32), "must have dimensions of at least 1"),
    ("trn2", lambda: nl.ndarray((4, 4), nl.float32, "dram"), "buffer 'dram' is none of"),
    # start partitions (hardware.md 2.3)
    ("trn2", lambda: nisa.memset(t(P, 4)[5:9], 0), "from partition 5, 4 partitions must start at 0, 32, 64 or 96"),
    ("trn2", lambda: nisa.memset(t(P, 4)[32:96], 0), "from partition 32, 64 partitions must start at 0 or 64"),
    ("trn2", lambda: nisa.memset(t(P, 4)[32:128], 0), "96 partitions must start at 0"),
    ("trn2", lambda: nisa.memset(t(8, 4, address=(40, 0)), 0), "from partition 40"),
    # tensor_tensor
    (
        "trn2",
        lambda: add(data2=t(64, 8)),
        "partition count of dst, data1 and data2 is 128 and 128 and 64, must be equal",
    ),
    ("trn2", lambda: add(data2=t(P, 9)), "elements per partition of dst, data1 and data2 is 8 and 8 and 9"),
    ("trn2", lambda: add(data1=ps(P, 8), data2=ps(P, 8)), "both in PSUM, at most one may be"),
    ("trn2", lambda: add(data1=hbm(P, 8)), "data1 is hbm_", "must be in SBUF or PSUM"),
    ("trn2", lambda: add(data1=3.0), "data1 is 3.0, must be an NKI tensor"),
    ("trn2", lambda: add(op=nl.exp), "op is nl.exp, must be an nl operator with an ALU code"),
    ("trn2", lambda: add(op="add"), "op is 'add'"),
    ("trn2", lambda: add(op=nl.abs), "nl.abs, must be a binary operator"),
    ("trn2", lambda: add(op=nl.abs_max), "nl.abs_max, exists from gen4 on"),
    ("trn2", lambda: add(op=nl.bitwise_and), "of float32, nl.bitwise_and takes integer types only"),
    ("trn2", lambda: add(engine=nisa.engine.scalar), "must be nisa.engine.vector or nisa.engine.gpsimd"),
    ("trn2", lambda: add(data1=ps(P, 8), engine=nisa.engine.gpsimd), "GpSimd has no access to PSUM"),
    ("trn2", lambda: add(op=nl.power, engine=nisa.engine.vector), "nl.power runs on GpSimd only"),
    ("trn2", lambda: add(op=nl.power, dst=ps(P, 8)), "GpSimd has no access to PSUM"),
    # tensor_scalar
    ("trn2", lambda: nisa.tensor_scalar(t(P, 8), t(P, 8), nl.add, t(P, 2)), "a number or of shape (128, 1)"),
    (
        "trn2",
        lambda: nisa.tensor_scalar(t(P, 8), t(P, 8), nl.add, t(P, 1, dtype=nl.bfloat16)),
        "operand0 is a tile of bfloat16, must be float32",
    ),
    ("trn2", lambda: nisa.tensor_scalar(t(P, 8), t(P, 8), nl.add, None), "operand0 is None"),
    ("trn2", lambda: nisa.tensor_scalar(t(P, 8), t(P, 8), nl.add, 1.0, operand1=2.0), "must be None without op1"),
    (
        "trn2",
        lambda: nisa.tensor_scalar(
            t(P, 8, dtype=nl.int32), t(P, 8, dtype=nl.int32), nl.bitwise_or, 1, op1=nl.add, operand1=1
        ),
        "must both be bit operators or both arithmetic",
    ),
    (
        "trn2",
        lambda: nisa.tensor_scalar(t(P, 8), t(P, 8), nl.subtract, 1.0, engine=nisa.engine.scalar),
        "the Scalar engine of gen3 does multiply-add, multiply and add only",
    ),
    (
        "trn1",
        lambda: nisa.tensor_scalar(t(P, 8), t(P, 8), nl.add, 1.0, engine=nisa.engine.scalar),
        "scalar, needs gen3",
    ),
    ("trn2", lambda: nisa.tensor_scalar(t(P, 8), t(P, 8), nl.add, 1.0, engine=nisa.engine.gpsimd), "nl.rsqrt only"),
    ("trn2", lambda: nisa.tensor_scalar(t(P, 8), t(P, 8), nl.abs, 2.0), "must be None or 0 for nl.abs"),
    # other vector instructions
    ("trn2", lambda: nisa.scalar_tensor_tensor(t(P, 8), ps(P, 8), nl.add, 1.0, nl.add, ps(P, 8)), "both in PSUM"),
    (
        "trn2",
        lambda: nisa.tensor_tensor_scan(t(P, 8), t(P, 8), t(P, 8), 0.0, nl.bitwise_or, nl.add),
        "op0 is nl.bitwise_or, must be a binary arithmetic operator",
    ),
    ("trn2", lambda: nisa.tensor_reduce(t(P, 1), nl.add, t(P, 4, 8), axis=1), "must be the last dimensions of shape"),
    ("trn2", lambda: nisa.tensor_reduce(t(P, 1), nl.add, t(P, 8), axis=0), "without the partition dimension 0"),
    ("trn2", lambda: nisa.tensor_reduce(t(P, 2), nl.add, t(P, 8), axis=1), "is 2, must be 1 for axis 1"),
    ("trn2", lambda: nisa.tensor_reduce(t(P, 1), nl.divide, t(P, 8), axis=1), "nl.divide, is no reduction operator"),
    ("trn2", lambda: nisa.memset(t(P, 8, dtype=nl.uint8), 300), "value is 300, must be 0 to 255 for uint8"),
    ("trn2", lambda: nisa.memset(t(P, 8, dtype=nl.float8_e4m3fn_x4), 1), "takes 0 only"),
    ("trn1", lambda: nisa.tensor_copy(t(P, 8), t(P, 8), engine=nisa.engine.scalar), "engine is scalar, needs gen3"),
    ("trn2", lambda: nisa.tensor_copy(t(P, 8), t(P, 8), dtype=nl.int32), "must be the float32 of dst"),
    ("trn2", lambda: nisa.nc_stream_shuffle(t(32, 8), t(32, 8), [0] * 31), "31 long, must have 32 elements"),
    ("trn2", lambda: nisa.nc_stream_shuffle(t(32, 8), t(32, 8), [32] * 32), "0 to 31, or 255"),
    ("trn2", lambda: nisa.nc_stream_shuffle(t(32, 8, dtype=nl.int32), t(32, 8), [0] * 32), "must have the type of src"),
    (
        "trn2",
        lambda: nisa.nc_stream_shuffle(t(P, 8)[32:64], t(P, 8)[0:64], [0] * 32),
        "64 active partitions must start at",
    ),
    # activation
    ("trn1", lambda: nisa.activation(t(P, 8), nl.exp, t(P, 8), bias=1.0), "bias is 1.0, a constant bias needs gen3"),
    ("trn2", lambda: nisa.activation(t(P, 8), nl.maximum, t(P, 8)), "must be an nl activation function"),
    ("trn2", lambda: nisa.activation(t(P, 8), nl.exp, t(P, 8), scale=t(P, 1, dtype=nl.bfloat16)), "must be float32"),
    ("trn2", lambda: nisa.activation(t(P, 8), nl.exp, t(P, 8), bias=t(P, 1, dtype=nl.tfloat32)), "a tile of tfloat32"),
    ("trn2", lambda: nisa.activation(t(P, 8), nl.exp, t(P, 8), reduce_op=nl.maximum), "must be nl.add"),
    ("trn2", lambda: nisa.activation(t(P, 8), nl.exp, t(P, 8), reduce_res=t(P, 2)), "must be of shape (128, 1)"),
    # matrix multiplication
    ("trn1", lambda: matmul(n=513, dst=lambda: ps(P, 513)), "moving free size is 513, at most 512, on trn1 (gen2)"),
    ("trn2", lambda: matmul(n=1024), "moving free size is 1024, at most 512, on trn2 (gen3)"),
    (
        "trn3",
        lambda: matmul(n=8192, dst=lambda: ps(P, 8192, dtype=nl.bfloat16)[:, 0:8192], dtypes=(nl.float32, nl.bfloat16)),
        "float32 goes with float32 only, on trn3 (gen4)",
    ),
    ("trn2", lambda: nisa.nc_matmul(ps(P, 8), t(P, 129), t(P, 8)), "stationary free size is 129, at most 128"),
    ("trn2", lambda: nisa.nc_matmul(ps(P, 8), t(64, P), t(P, 8)), "must be equal (the contraction dimension)"),
    ("trn2", lambda: nisa.nc_matmul(ps(64, 8), t(P, P), t(P, 8)), "must be the 128 columns of stationary"),
    ("trn2", lambda: nisa.nc_matmul(ps(P, 9), t(P, P), t(P, 8)), "must be the 8 of moving"),
    ("trn2", lambda: nisa.nc_matmul(t(P, 8), t(P, P), t(P, 8)), "dst is sbuf_0 in SBUF, must be in PSUM"),
    ("trn2", lambda: nisa.nc_matmul(ps(P, 8), ps(P, P), t(P, 8)), "stationary is psum_1 in PSUM, must be in SBUF"),
    ("trn2", lambda: matmul(dtypes=(nl.float32, nl.bfloat16)), "float32 goes with float32 only"),
    ("trn2", lambda: matmul(dtypes=(nl.int32, nl.int32)), "stationary is of int32, must be one of"),
    ("trn2", lambda: matmul(dtypes=(nl.float8_e4m3fn, nl.bfloat16)), "stationary is of float8_e4m3fn"),
    ("trn3", lambda: matmul(dtypes=(nl.float8_e4m3fn, nl.float8_e4m3)), "cannot be mixed"),
    (
        "trn2",
        lambda: matmul(dst=lambda: ps(P, 512, dtype=nl.bfloat16), dtypes=(nl.bfloat16,) * 2),
        "dst is of bfloat16, must be float32",
    ),
    ("trn2", lambda: matmul(n=256, dst=lambda: ps(P, 1024)[:, 384:640]), "must not cross a bank of 2048 bytes"),
    ("trn1", lambda: matmul(perf_mode=nisa.matmul_perf_mode.double_row), "needs gen3"),
    ("trn1", lambda: matmul(k=32, tile_position=(0, 0), tile_size=(32, 128)), "row size must be 64 or 128"),
    ("trn2", lambda: matmul(k=32, tile_position=(16, 0), tile_size=(32, 128)), "must be a multiple of 32"),
    ("trn2", lambda: matmul(k=64, tile_position=(0, 0), tile_size=(32, 128)), "at most the 32 rows of the tile"),
    ("trn2", lambda: nisa.nc_transpose(t(64, P), t(P, 64)), "the Tensor engine reads SBUF and writes PSUM"),
    ("trn2", lambda: nisa.nc_transpose(ps(P, 64), t(P, 64)), "must hold (64, 128)"),
    ("trn2", lambda: nisa.nc_transpose(t(64, 64), t(64, 64), engine=nisa.engine.vector), "32 x 32 or less"),
    ("trn2", lambda: nisa.nc_transpose(t(16, 16, dtype=nl.int8), t(16, 16)), "must have the type of data, float32"),
    # DMA
    ("trn2", lambda: nisa.dma_copy(ps(P, 8), hbm(P, 8)), "dst is psum_0 in PSUM, DMA has no path to PSUM"),
    ("trn2", lambda: nisa.dma_copy(t(P, 8), hbm(P, 9)), "of 1024 and 1152 elements ((128, 8), (128, 9))"),
    ("trn2", lambda: nisa.dma_copy(t(P, 8), hbm(P, 8), priority=1), "priority is 1, needs gen4"),
    ("trn3", lambda: nisa.dma_copy(t(P, 8), hbm(P, 8), priority=4), "must be 0 to 3"),
    ("trn1", lambda: nisa.dma_copy(t(P, 8), hbm(P, 8), dge_mode=nisa.dge_mode.hwdge), "dge_mode is hwdge, needs gen3"),
    ("trn2", lambda: nisa.dma_copy(t(P, 8), hbm(P, 8), engine=nisa.engine.sync), "goes with dge_mode"),
    ("trn2", lambda: nisa.dma_transpose(hbm(8, P), hbm(P, 8)), "dst is hbm_0 in HBM, must be in SBUF"),
    ("trn2", lambda: nisa.dma_transpose(t(P, 8), hbm(P, 8)), "dst is of shape (128, 8), must be (8, 128)"),
    ("trn2", lambda: nisa.dma_transpose(t(8, P), hbm(P, 8), axes=(0, 1)), "axes is (0, 1), must be (1, 0)"),
    (
        "trn2",
        lambda: nisa.dma_transpose(
            t(8, P, dtype=nl.bfloat16), hbm(P, 8, dtype=nl.bfloat16), dge_mode=nisa.dge_mode.hwdge
        ),
        "src.shape[0] is 128, must be 16 with hwdge",
    ),
    # two cores
    ("trn1", lambda: nisa.core_barrier(hbm(4, 4), (0, 1)), "needs gen3"),
    ("trn2", lambda: nisa.core_barrier(hbm(4, 4), (0, 1)), "LNC is 1, needs a launch on two cores"),
    ("trn2", lambda: nisa.sendrecv(t(4, 4), t(4, 4), 1, 1, 0), "LNC is 1, needs a launch on two cores"),
    # functions
    ("trn2", lambda: nl.load(t(P, 8)), "src is sbuf_0 in sbuf, must be in HBM"),
    ("trn2", lambda: nl.add(t(P, 8), t(P, 4)), "shapes (128, 8) and (128, 4) do not broadcast"),
    ("trn2", lambda: nl.add("tile", 1.0), "x is 'tile', must be a tensor"),
    ("trn2", lambda: nl.sum(t(P, 8), axis=0), "nl.sum: axis is 0"),
    ("trn2", lambda: nl.broadcast_to(t(2, 8), (P, 8)), "cannot become (128, 8)"),
    ("trn2", lambda: nl.program_id(0) or bool(t(1, 1)), "is not known while tracing"),
]
CASES = [(one[0], one[1], one[-1]) for one in CASES]


@pytest.mark.parametrize(
    ("target", "body", "message"), CASES, ids=[f"{i}-{one[2][:40]}" for i, one in enumerate(CASES)]
)
def test_limit(target: str, body: Callable[[], Any], message: str) -> None:
    with pytest.raises(NkiValidationError) as caught:
        trace_body(body, target)
    text = str(caught.value)
    assert message in text
    assert isinstance(caught.value, NeuronError) and isinstance(caught.value, ValueError)
    assert "\n" not in text
    if "buffer" not in message and "dimensions of at least" not in message:
        assert "test_limits.py:" in text


def test_what_the_newest_generation_allows() -> None:
    def body() -> None:
        matmul(n=4096, dst=lambda: ps(P, 4096))
        matmul(n=8192, dst=lambda: ps(P, 8192, dtype=nl.bfloat16), dtypes=(nl.bfloat16,) * 2)
        matmul(dtypes=(nl.float8_e4m3fn, nl.bfloat16))
        add(op=nl.abs_max)
        nisa.dma_copy(t(P, 8), hbm(P, 8), priority=3)

    trace_body(body, "trn3")


@pytest.mark.parametrize(("act", "message"), [
    (lambda: nisa.dma_copy(t(P, 8), hbm(P, 8), dge_mode="swdge"), "dge_mode is 'swdge', must be one of dge_mode.un"),
    (lambda: nisa.dma_copy(t(P, 8), hbm(P, 8), dge_mode=9), "dge_mode is 9, must be one of"),
    (lambda: nisa.dma_copy(t(P, 8), hbm(P, 8), oob_mode="skip"), "oob_mode is skip, must be nisa.oob_mode.error or"),
    (lambda: nisa.dma_transpose(t(8, P), hbm(P, 8), dge_mode="none"), "dge_mode is 'none', must be one of"),
    (lambda: nisa.dma_compute(t(P, 8), t(P, 8), nl.add), "nisa.dma_compute: srcs is <NkiTensor"),
    (lambda: nisa.dropout(t(P, 8), t(P, 8), 1.5), "nisa.dropout: prob is 1.5, must be 0 to 1"),
    (lambda: nisa.tensor_reduce(t(P, 1), nl.add, t(P, 8), 1, keepdims="no"), "keepdims is 'no', must be True or False"),
    (lambda: ncc.all_reduce(hbm(P, 8), hbm(P, 8), [[0, 1]], nl.add), "all_reduce: srcs is <NkiTensor"),
    (lambda: ncc.all_reduce([hbm(P, 8)], [hbm(P, 8)], [[0.5, 1]], nl.add), "replica_group is .*, must be lists"),
    (lambda: ncc.all_gather([t(32, 8)], [t(32, 16)], [[0, 1]], 0), "the gathered one is that of all ranks"),
])  # fmt: skip
def test_modes_that_there_are_none_of_are_refused(act: Any, message: str) -> None:
    with pytest.raises(NkiValidationError, match=message):
        trace_body(act)


def test_modes_may_be_given_by_their_numbers() -> None:
    (op,) = trace_body(lambda: nisa.dma_copy(t(P, 8), hbm(P, 8), dge_mode=nisa.dge_mode.hwdge.value)).ops
    (same,) = trace_body(lambda: nisa.dma_copy(t(P, 8), hbm(P, 8), dge_mode=nisa.dge_mode.hwdge)).ops
    assert op.engine == same.engine == "SP"


def test_what_is_not_modelled_yet_says_so() -> None:
    with pytest.raises(UnsupportedError, match="dst_rmw_op is not supported yet"):
        trace_body(lambda: nisa.dma_copy(t(P, 8), hbm(P, 8), dst_rmw_op=nl.add))
