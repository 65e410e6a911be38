"""The instruction set, declared once: classes, decoder, encoder, text both ways.

Everything about a word comes from its class: fields with offset, kind, doc, unit, cite and provenance; operand roles; the
generations that have it; its text.
"""

from formats.isa.activation import Activate, ActTableLoad
from formats.isa.codec import Stream, assemble, columns, decode, decode_stream, parse_instruction
from formats.isa.control import (
    CompareBranch,
    Drain,
    EventSemaphore,
    EventSemaphoreRangeClear,
    Nop,
    Notify,
    Opcode95,
    OpcodeA1,
    OpcodeCC,
    SetOrderingMode,
    TensorLoad,
    TensorStore,
    Write,
)
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
from formats.isa.instruction import ENGINES, EXTENSION_OPCODE, WORD, Instruction, Unknown, Update, Wait
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
from formats.isa.vector import Cast, Copy, Memset, Reciprocal, TensorReduce, TensorScalar, TensorTensor

__all__ = [
    "BY_NAME", "CLASSES", "ENGINES", "EXTENSION_OPCODE", "PSUM_BASE", "PSUM_PARTITION_STRIDE", "SBUF_PARTITION_STRIDE",
    "WORD", "Access", "AccessPattern", "AccumulatorCommand", "ActTableLoad", "Activate", "ActivationExtended",
    "ActivationFunction", "ActivationReadAccumulator", "AluOp", "Bits", "BranchCompare", "Cast", "CompareBranch", "Copy",
    "CoreBarrier", "DmaAccess", "DmaAddress", "DmaDirect2d", "DmaPattern", "Drain", "EventSemaphore",
    "EventSemaphoreRangeClear", "Field", "Fp32Pass", "Instruction", "LoadWeights", "MatMul", "Memset", "Nop", "Notify",
    "Opcode95", "OpcodeA1", "OpcodeCC", "OrderingMode", "Pattern", "Pointer", "PseudoDmaDirect2d", "PseudoDmaTrigger",
    "RangeClearMode", "Reciprocal", "ReduceCommand", "ReduceDims", "ScalarTensorTensor", "Select", "SendReceive",
    "SetOrderingMode", "Stream", "StreamShuffle", "TensorLoad", "TensorReduce", "TensorScalar", "TensorStore",
    "TensorTensor", "TensorTensorScan", "TransposeMode", "Unknown", "Update", "UpdateMode", "VectorTranspose", "Wait",
    "WaitMode", "Write", "assemble", "columns", "decode", "decode_stream", "lookup", "parse_instruction",
]
