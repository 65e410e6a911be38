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
    "ActivationExtended", "ActivationFunction", "ActivationReadAccumulator", "AluOp", "Bits", "BranchCompare", "Cast",
    "CompareBranch", "Copy", "CoreBarrier", "DmaAccess", "DmaAddress", "DmaDirect2d", "DmaPattern", "Drain",
    "EventSemaphore", "EventSemaphoreRangeClear", "Field", "Fp32Pass", "Instruction", "LoadWeights", "MatMul",
    "Memset", "Nop", "Notify", "Opcode95", "OpcodeA1", "OpcodeCC", "OrderingMode", "Pattern", "Pointer", "Problem",
    "PseudoDmaDirect2d", "PseudoDmaTrigger", "RangeClearMode", "Reciprocal", "ReduceCommand", "ReduceDims",
    "ScalarTensorTensor", "Select", "SendReceive", "SetOrderingMode", "Stream", "StreamShuffle", "TensorLoad",
    "TensorReduce", "TensorScalar", "TensorStore", "TensorTensor", "TensorTensorScan", "TransposeMode", "Unknown",
    "Update", "UpdateMode", "VectorTranspose", "Wait", "WaitMode", "Write", "assemble", "check", "columns",
    "columns_by_class", "decode", "decode_stream", "lookup", "parse_instruction",
]
