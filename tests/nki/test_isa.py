"""What each ISA call appends: instruction class, engine, operands, fields, kernel line."""

from __future__ import annotations

from typing import Any

import pytest

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from formats import isa
from formats.dtypes import Dtype
from neurontools.builder.trace import ComputeOp, DmaOp, MatmulOp, Space, Trace
from tests.nki.support import compute_ops, names, trace_body

P, F = 128, 64


def tile(dtype: Any = nl.float32, shape: tuple[int, ...] = (P, F), buffer: Any = nl.sbuf) -> Any:
    return nl.ndarray(shape, dtype, buffer)


def only(trace: Trace) -> Any:
    assert len(trace.ops) == 1, trace.ops
    return trace.ops[0]


@pytest.mark.parametrize(
    ("dtypes", "op", "psum", "engine"),
    [
        ((nl.float32,) * 3, nl.add, False, "DVE"),
        ((nl.bfloat16, nl.float32, nl.bfloat16), nl.subtract, False, "DVE"),
        ((nl.int32,) * 3, nl.multiply, False, "Pool"),
        ((nl.uint32, nl.int32, nl.uint32), nl.add, False, "Pool"),
        ((nl.int32,) * 3, nl.multiply, True, "DVE"),
        ((nl.int32,) * 3, nl.bitwise_xor, False, "DVE"),
        ((nl.float32,) * 3, nl.power, False, "Pool"),
    ],
)
def test_tensor_tensor_picks_the_documented_engine(dtypes: Any, op: Any, psum: bool, engine: str) -> None:
    def body() -> None:
        buffers = (nl.psum if psum else nl.sbuf, nl.sbuf, nl.sbuf)
        data1, data2, dst = (tile(d, buffer=b) for d, b in zip(dtypes, buffers, strict=True))
        nisa.tensor_tensor(dst, data1, data2, op, name="mine")

    made = only(trace_body(body))
    assert (made.instruction, made.engine, made.name) == (isa.TensorTensor, engine, "mine")
    assert made.fields == {"op": op.alu}
    assert [made.operands[key].dtype for key in ("src0", "src1", "dst")] == [d.code for d in dtypes]
    assert made.operands["src0"].dims == ((1, F),) and made.operands["src0"].partitions == P


def test_every_operation_names_the_kernel_line() -> None:
    def body() -> None:
        a = nl.full((P, F), 1.0, nl.float32)
        b = nl.broadcast_to(nl.zeros((1, F), nl.float32), (P, F))
        nl.softmax(
            nl.add(a, b),
            axis=1,
        )

    trace = trace_body(body)
    first = body.__code__.co_firstlineno
    assert {op.source[0] for op in trace.ops} == {__file__}
    assert {op.source[1] - first for op in trace.ops} == {1, 2, 3, 4}


def test_tensor_scalar_numbers_columns_and_reversal() -> None:
    def body() -> None:
        data, dst, column = tile(), tile(nl.bfloat16), tile(shape=(P, 1))
        nisa.tensor_scalar(dst, data, nl.multiply, 2, op1=nl.subtract, operand1=column, reverse1=True)
        nisa.tensor_scalar(dst=dst, data=data, op0=nl.add, operand0=column)
        nisa.tensor_scalar(tile(nl.uint8), tile(nl.uint8), nl.right_shift, 3)
        nisa.tensor_scalar(dst, data, nl.abs, None)
        nisa.tensor_scalar(dst, data, nl.rsqrt, 0.0)
        nisa.tensor_scalar(dst, data, nl.multiply, 2.0, op1=nl.add, operand1=1.0, engine=nisa.scalar_engine)

    first, second, shift, absolute, rsqrt, scalar = compute_ops(trace_body(body))
    assert first.fields == {
        "op0": isa.AluOp.MULTIPLY,
        "op1": isa.AluOp.SUBTRACT,
        "reverse0": 0,
        "reverse1": 1,
        "immediate0": 2.0,
    }
    assert isinstance(first.fields["immediate0"], float)
    assert set(first.operands) == {"src", "dst", "immediate1_pointer"}
    assert second.operands["immediate0_pointer"].dims == ((1, 1),) and second.fields["op1"] is isa.AluOp.BYPASS
    assert shift.fields["immediate0"] == 3 and isinstance(shift.fields["immediate0"], int)
    assert (absolute.engine, rsqrt.engine, scalar.engine) == ("DVE", "Pool", "Activation")


def test_copies_casts_and_fills() -> None:
    def body() -> None:
        nisa.tensor_copy(src=tile(), dst=tile())
        nisa.tensor_copy(tile(nl.bfloat16), tile(), engine=nisa.engine.gpsimd)
        nisa.tensor_copy(tile(shape=(P, 8, 8)), tile(buffer=nl.psum), engine=nisa.engine.scalar)
        nisa.memset(tile(), 0)
        nisa.memset(tile(nl.int8), -3.0, engine=nisa.engine.gpsimd)
        nisa.reciprocal(tile(), tile())

    made = compute_ops(trace_body(body))
    assert [op.instruction for op in made] == [isa.Copy, isa.Cast, isa.Copy, isa.Memset, isa.Memset, isa.Reciprocal]
    assert [op.engine for op in made] == ["DVE", "Pool", "Activation", "DVE", "Pool", "DVE"]
    values = [op.fields["value"] for op in made[3:5]]
    assert values == [0.0, -3] and [type(v) for v in values] == [float, int]


def test_reductions_merge_dimensions_on_each_side() -> None:
    def body() -> None:
        data = tile(shape=(P, 4, 3, 2))
        nisa.tensor_reduce(tile(shape=(P, 4, 3)), nl.maximum, data, axis=3)
        nisa.tensor_reduce(tile(shape=(P, 4)), nl.add, data, axis=(2, 3), negate=True)
        nisa.tensor_reduce(tile(shape=(P, 1)), nl.add, data, axis=[1, 2, 3], keepdims=True)
        pool = data.ap([[24, P], [6, 2], [2, 3], [12, 2], [1, 2]])
        nisa.tensor_reduce(tile(shape=(P, 2, 3)), nl.add, pool, axis=[3, 4])

    made = compute_ops(trace_body(body))
    assert [op.operands["src"].dims for op in made] == [
        ((2, 12), (1, 2)),
        ((6, 4), (1, 6)),
        ((1, 24),),
        ((2, 6), (12, 2), (1, 2)),
    ]
    assert [op.fields["dims"].name for op in made] == ["X", "X", "X", "XY"]
    assert [op.fields["negate"] for op in made] == [0, 1, 0, 0]


def test_scan_and_scalar_tensor_tensor() -> None:
    def body() -> None:
        nisa.tensor_tensor_scan(tile(), tile(), tile(), 0.0, nl.multiply, nl.add)
        nisa.tensor_tensor_scan(tile(), tile(), tile(), tile(shape=(P, 1)), nl.multiply, nl.add, reverse0=True)
        nisa.scalar_tensor_tensor(tile(), tile(), nl.subtract, tile(nl.bfloat16, (P, 1)), nl.multiply, tile())

    plain, started, fused = compute_ops(trace_body(body))
    assert plain.instruction is isa.TensorTensorScan and plain.fields["initial"] == 0.0
    assert "initial_pointer" in started.operands and started.fields["reverse0"] == 1
    assert fused.instruction is isa.ScalarTensorTensor
    assert fused.operands["immediate0_pointer"].dtype is Dtype.BFLOAT16


def test_activation_uses_the_real_word_where_it_can() -> None:
    def body() -> None:
        data, column = tile(), tile(shape=(P, 1))
        nisa.activation(tile(), nl.exp, data)
        nisa.activation(tile(), nl.gelu_apprx_tanh, data, bias=column, scale=0.5)
        nisa.activation(tile(), nl.exp, data, scale=column)
        nisa.activation(tile(), nl.exp, data, bias=1.5)
        nisa.activation(tile(), op=nl.square, data=data, reduce_op=nl.add, reduce_cmd=nisa.reduce_cmd.reduce)
        nisa.activation_reduce(tile(), nl.copy, data, nl.add, column)

    made = compute_ops(trace_body(body))
    assert [op.instruction for op in made] == [
        isa.Activate,
        isa.Activate,
        *[isa.ActivationExtended] * 4,
        isa.ActivationReadAccumulator,
    ]
    assert [op.fields.get("function") for op in made] == [
        "exp",
        "gelu_apprx_tanh",
        "exp",
        "exp",
        "square",
        "copy",
        None,
    ]
    assert set(made[1].operands) == {"src", "dst", "bias_pointer"} and made[1].fields["scale"] == 0.5
    assert set(made[2].operands) == {"src", "dst", "scale_pointer"}
    assert made[3].fields["bias"] == 1.5
    assert made[4].fields["reduce_command"] is isa.ReduceCommand.REDUCE
    assert made[5].fields["reduce_command"] is isa.ReduceCommand.RESET_REDUCE
    assert all(op.engine == "Activation" for op in made)


def test_matmul_records_what_the_kernel_said() -> None:
    def body() -> None:
        left, right = tile(shape=(P, 96)), tile(shape=(P, 512))
        psum = tile(shape=(96, 512), buffer=nl.psum)
        nisa.nc_matmul(psum, left, right)
        nisa.nc_matmul(psum, left, right, accumulate=True)
        nisa.nc_matmul(
            dst=psum, stationary=left, moving=right, accumulate=False, tile_position=(0, 0), tile_size=(128, 128)
        )

    made = [op for op in trace_body(body).ops if isinstance(op, MatmulOp)]
    assert [op.accumulate for op in made] == [None, True, False]
    assert not made[0].is_transpose
    assert made[0].dst.allocation.space is Space.PSUM and made[0].moving.dims == ((1, 512),)


def test_transposes_choose_engine_by_size_and_memory() -> None:
    def body() -> None:
        nisa.nc_transpose(tile(shape=(32, 16), buffer=nl.sbuf), tile(shape=(16, 32)))
        nisa.nc_transpose(tile(shape=(64, P), buffer=nl.psum), tile(shape=(P, 8, 8)))
        nisa.nc_transpose(tile(nl.bfloat16, (64, P), nl.psum), tile(nl.bfloat16, (P, 64)))
        nisa.nc_transpose(tile(shape=(P, 512), buffer=nl.psum), tile(shape=(64, 32)))
        nisa.nc_transpose(tile(nl.float32, (64, P), nl.psum), tile(nl.bfloat16, (P, 64)))
        nisa.nc_transpose(tile(nl.int32, (64, P), nl.psum), tile(nl.int32, (P, 64)))

    trace = trace_body(body)
    assert names(trace) == ["VectorTranspose", "DmaOp", "MatmulOp", "DmaOp", "MatmulOp", *["MatmulOp"] * 3]
    made = [op for op in trace.ops if isinstance(op, MatmulOp)]
    assert [op.is_transpose for op in made] == [True, True, True, False, True]
    assert all(op.accumulate is False for op in made)
    assert made[2].dst.partitions == 32 and made[2].dst.dims == ((1, 64),)  # the corner of a larger tile
    assert made[4].dst.dtype is Dtype.FLOAT32 and made[4].stationary.dtype is Dtype.FLOAT32  # integers move as bits
    constants = [a for a in trace.allocations if a.kind == "constant"]
    assert [a.dtype for a in constants] == [Dtype.FLOAT32, Dtype.BFLOAT16]  # one identity per type
    assert constants[0].data is not None and constants[0].data.trace() == 128


def test_a_copy_with_scale_or_bias_is_not_the_engines_copy() -> None:
    def body() -> None:
        data, column = tile(), tile(shape=(P, 1))
        nisa.activation(tile(), nl.copy, data)
        nisa.activation(tile(), nl.copy, data, scale=0.5)
        nisa.activation(tile(), nl.copy, data, bias=column)
        nisa.activation(tile(), nl.copy, data, scale=column)

    made = compute_ops(trace_body(body))
    assert [op.fields["function"] for op in made] == ["copy", "identity", "identity", "identity"]


def test_dma_queues_and_shapes() -> None:
    def body() -> None:
        hbm, flat = nl.ndarray((P, F), nl.float32, nl.hbm), nl.ndarray((P * F,), nl.bfloat16, nl.hbm)
        sbuf = tile()
        nisa.dma_copy(sbuf, hbm)
        nisa.dma_copy(flat, sbuf)
        nisa.dma_copy(sbuf, hbm, dge_mode=nisa.dge_mode.hwdge, engine=nisa.engine.scalar)
        nisa.dma_copy(hbm, sbuf, dge_mode=nisa.dge_mode.hwdge)
        nisa.dma_copy(sbuf, hbm, dge_mode=nisa.dge_mode.swdge)
        nisa.dma_copy(tile(shape=(P // 2, F)), sbuf[::2])

    trace = trace_body(body)
    made = [op for op in trace.ops if isinstance(op, DmaOp)]
    # Where the kernel does not say, the builder chooses the queue.
    assert [op.engine for op in made[:5]] == [None, None, "Activation", "Activation", "Pool"]
    assert made[1].dst.dims == ((1, P * F),) and made[1].src.partitions == P
    assert [op.src.partition for op in made[5:]] == list(
        range(0, P, 2)
    )  # one per partition where partitions are skipped


def test_dma_transpose_forms() -> None:
    def body() -> None:
        nisa.dma_transpose(tile(nl.bfloat16, (F, P)), nl.ndarray((P, F), nl.bfloat16, nl.hbm))
        nisa.dma_transpose(tile(nl.bfloat16, (F, 3, P)), nl.ndarray((P, 3, F), nl.bfloat16, nl.hbm), axes=(2, 1, 0))
        nisa.dma_transpose(tile(nl.uint8, (F, P)), nl.ndarray((P, F), nl.uint8, nl.hbm))

    made = [op for op in trace_body(body).ops if isinstance(op, DmaOp)]
    assert [op.transpose for op in made] == [True, True, True, True, False]
    assert made[2].src.dims == ((3 * F, P), (1, F)) and made[2].src.offset == F * 2
    assert made[2].dst.offset == P * 2 and made[2].dst.dims == ((1, P),)
    assert made[4].src.dims == ((1, F), (F, P))
    gen2 = [
        op
        for op in trace_body(
            lambda: nisa.dma_transpose(tile(nl.bfloat16, (F, P)), nl.ndarray((P, F), nl.bfloat16, nl.hbm)), "trn1"
        ).ops
        if isinstance(op, DmaOp)
    ]
    assert [op.transpose for op in gen2] == [False]


def test_stream_shuffle_broadcasts_a_partition() -> None:
    def body() -> None:
        nisa.nc_stream_shuffle(dst=tile(shape=(32, F))[0:32], src=tile(shape=(1, F)), shuffle_mask=[0] * 32)

    made = only(trace_body(body))
    assert isinstance(made, ComputeOp) and made.fields == {"mask": (0,) * 32}
    assert made.operands["src"].partitions == 1 and made.operands["dst"].partitions == 32


def test_instructions_outside_a_kernel_are_errors() -> None:
    with pytest.raises(nisa.NkiValidationError, match="only while a kernel is traced"):
        nl.ndarray((P, F), nl.float32)
