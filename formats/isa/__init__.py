"""The instruction set, declared once: classes, decoder, encoder, text both ways.

Everything about a word comes from its class: fields with offset, kind, doc, unit, cite and provenance; operand roles;
the generations that have it; its text.
"""

from formats.isa.activation import Activate, ActTableLoad
from formats.isa.codec import Stream, assemble, decode, decode_stream, parse_instruction
from formats.isa.columns import columns, columns_by_class
from formats.isa.control import EventSemaphore, Nop, OpcodeCC, SetOrderingMode
from formats.isa.dma import DmaDirect2d, PseudoDmaDirect2d, PseudoDmaTrigger
from formats.isa.enums import (
    AccumulatorCommand,
    ActivationFunction,
    AluOp,
    BranchCompare,
    Fp32Pass,
    OrderingMode,
    RangeClearMode,
    ReduceCommand,
    ReduceDims,
    TransposeMode,
    UpdateMode,
    WaitMode,
)
from formats.isa.extension import (
    ActivationExtended,
    ActivationReadAccumulator,
    CoreBarrier,
    ScalarTensorTensor,
    Select,
    SendReceive,
    StreamShuffle,
    TensorTensorScan,
    VectorTranspose,
)
from formats.isa.extension_dma import DmaIndirect
from formats.isa.extension_gen4 import Activate2, MatMulMx, QuantizeMx
from formats.isa.extension_gpsimd import (
    AffineSelect,
    Iota,
    LocalGather,
    NGather,
    NonzeroWithCount,
    SequenceBounds,
    TensorPartitionReduce,
    TopK,
)
from formats.isa.extension_indirection import IndirectRead, IndirectWrite
from formats.isa.extension_random import Dropout, Rand2, RandGetState, RandSetState, Rng, SetRngSeed
from formats.isa.extension_register import RegisterLoad
from formats.isa.extension_search import BnAggregate, BnStats, FindIndex8, MatchReplace8, Max8
from formats.isa.extension_select import (
    CopyPredicated,
    Exponential,
    RangeSelect,
    SelectReduce,
    TensorScalarCumulative,
    TensorScalarReduce,
)
from formats.isa.field import Bits, Field
from formats.isa.instruction import ENGINES, EXTENSION_OPCODE, WORD, Instruction
from formats.isa.loader import (
    CompareBranch,
    Drain,
    EventSemaphoreRangeClear,
    Notify,
    Opcode95,
    OpcodeA1,
    TensorLoad,
    TensorStore,
    Write,
)
from formats.isa.operand import (
    PSUM_BASE,
    PSUM_PARTITION_STRIDE,
    SBUF_PARTITION_STRIDE,
    Access,
    AccessPattern,
    DmaAccess,
    DmaAddress,
    DmaPattern,
    Pattern,
    Pointer,
)
from formats.isa.pe import LoadWeights, MatMul
from formats.isa.registry import BY_NAME, CLASSES, lookup
from formats.isa.rules import Problem, check
from formats.isa.sync import Update, Wait
from formats.isa.unknown import Unknown
from formats.isa.vector import Cast, Copy, Memset, Reciprocal, TensorReduce, TensorScalar, TensorTensor

__all__ = [
    "BY_NAME", "CLASSES", "ENGINES", "EXTENSION_OPCODE", "PSUM_BASE", "PSUM_PARTITION_STRIDE",
    "SBUF_PARTITION_STRIDE", "WORD", "Access", "AccessPattern", "AccumulatorCommand", "ActTableLoad", "Activate",
    "Activate2", "ActivationExtended", "ActivationFunction", "ActivationReadAccumulator", "AffineSelect", "AluOp",
    "Bits", "BnAggregate", "BnStats", "BranchCompare", "Cast", "CompareBranch", "Copy", "CopyPredicated",
    "CoreBarrier", "DmaAccess", "DmaAddress", "DmaDirect2d", "DmaIndirect", "DmaPattern", "Drain", "Dropout",
    "EventSemaphore", "EventSemaphoreRangeClear", "Exponential", "Field", "FindIndex8", "Fp32Pass", "IndirectRead",
    "IndirectWrite", "Instruction", "Iota", "LoadWeights", "LocalGather", "MatMul", "MatMulMx", "MatchReplace8",
    "Max8", "Memset", "NGather", "NonzeroWithCount", "Nop", "Notify", "Opcode95", "OpcodeA1", "OpcodeCC",
    "OrderingMode", "Pattern", "Pointer", "Problem", "PseudoDmaDirect2d", "PseudoDmaTrigger", "QuantizeMx", "Rand2",
    "RandGetState", "RandSetState", "RangeClearMode", "RangeSelect", "Reciprocal", "ReduceCommand", "ReduceDims",
    "RegisterLoad", "Rng", "ScalarTensorTensor", "Select", "SelectReduce", "SendReceive", "SequenceBounds",
    "SetOrderingMode", "SetRngSeed", "Stream", "StreamShuffle", "TensorLoad", "TensorPartitionReduce",
    "TensorReduce", "TensorScalar", "TensorScalarCumulative", "TensorScalarReduce", "TensorStore", "TensorTensor",
    "TensorTensorScan", "TopK", "TransposeMode", "Unknown", "Update", "UpdateMode", "VectorTranspose", "Wait",
    "WaitMode", "Write", "assemble", "check", "columns", "columns_by_class", "decode", "decode_stream", "lookup",
    "parse_instruction",
]
