"""Extension words: NKI instructions without a publicly known encoding. Every bit here is ours.

An extension word begins with the escape opcode; bytes 12-13 are the extension code, bytes 14-15 the length in units of
64 bytes. Patterns are wide (five dimensions, 32-bit steps and counts). A file that holds such words says so in
`neff_features`; nothing else is ever decoded this way.
"""

from __future__ import annotations

from formats.dtypes import Dtype
from formats.isa.enums import ActivationFunction, AluOp, ReduceCommand
from formats.isa.field import BitFlag, Bytes, Enumeration, Immediate, Integer
from formats.isa.instruction import ENGINES, EXTENSION_OPCODE, Instruction
from formats.isa.operand import Pattern, Pointer
from formats.isa.syntax import Bare, Key, Names
from formats.isa.syntax_operands import Immediates, PatternItem

__all__ = ["ActivationExtended", "ActivationReadAccumulator", "CoreBarrier", "ScalarTensorTensor",
           "Select", "SendReceive", "StreamShuffle", "TensorTensorScan", "VectorTranspose"]


class _Extension(Instruction):
    """What every extension word shares."""

    __slots__ = ()
    CITE = "ours"
    PROVENANCE = "ours"


class _Wide(_Extension):
    """An extension word with partitions and an output pattern."""

    __slots__ = ()
    channels = Integer(16, 1, "partitions", unit="partitions", default=128, provenance="ours")
    dst_dtype = Enumeration(17, Dtype, "element type of the output", provenance="ours")
    src_dtype = Enumeration(18, Dtype, "element type of the input", provenance="ours")
    dst = Pattern(32, 5, "output", role="write", dtype="dst_dtype", partitions="channels", wide=True, provenance="ours")
    src = Pattern(76, 5, "input", role="read", dtype="src_dtype", partitions="channels", wide=True, provenance="ours")


class TensorTensorScan(_Wide):
    """Scan r[i] = (src0[i] op0 r[i-1]) op1 src1[i] along the free dimension, in fp32."""

    __slots__ = ()
    NAME = "TENSOR_TENSOR_SCAN"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 1, 192
    ENGINES = ("DVE",)
    src1_dtype = Enumeration(19, Dtype, "element type of the second input", provenance="ours")
    op0 = Enumeration(20, AluOp, "operator with the running value", provenance="ours")
    op1 = Enumeration(21, AluOp, "operator with the second input", provenance="ours")
    initial_is_pointer = BitFlag(22, 0, "the initial value is a pointer", provenance="ours")
    reverse0 = BitFlag(22, 2, "the running value stands on the left of op0", provenance="ours")
    reverse1 = BitFlag(22, 3, "the second input stands on the left of op1", provenance="ours")
    initial_is_integer = BitFlag(22, 4, "the initial value holds integer bits", provenance="ours")
    initial_dtype = Enumeration(23, Dtype, "element type behind the pointer", default=Dtype.FLOAT32,
                                provenance="ours")
    initial = Immediate(24, "initial value", integer=initial_is_integer, provenance="ours")
    initial_pointer = Pointer(24, "initial value, one per partition", dtype="initial_dtype", partitions="channels",
                              flag=initial_is_pointer, alias=True, provenance="ours")
    src1 = Pattern(120, 5, "second input", role="read", dtype="src1_dtype", partitions="channels", wide=True,
                   provenance="ours")
    SYNTAX = (Names("ops", "op0", "op1"), Immediates(("initial", "initial_pointer")), Key("initial_dtype"),
              PatternItem("src"), PatternItem("src1"), PatternItem("dst"), Key("channels"),
              Key("reverse0", optional=True), Key("reverse1", optional=True))


class ScalarTensorTensor(_Wide):
    """Apply (src op0 immediate) op1 src1."""

    __slots__ = ()
    NAME = "SCALAR_TENSOR_TENSOR"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 2, 192
    ENGINES = ("DVE",)
    src1_dtype = Enumeration(19, Dtype, "element type of the second input", provenance="ours")
    op0 = Enumeration(20, AluOp, "operator with the immediate", provenance="ours")
    op1 = Enumeration(21, AluOp, "operator with the second input", provenance="ours")
    immediate0_is_pointer = BitFlag(22, 0, "the immediate is a pointer", provenance="ours")
    reverse0 = BitFlag(22, 2, "the immediate stands on the left of op0", provenance="ours")
    reverse1 = BitFlag(22, 3, "the second input stands on the left of op1", provenance="ours")
    immediate0_is_integer = BitFlag(22, 4, "the immediate holds integer bits", provenance="ours")
    immediate0_dtype = Enumeration(23, Dtype, "element type behind the pointer", default=Dtype.FLOAT32,
                                   provenance="ours")
    immediate0 = Immediate(24, "immediate", integer=immediate0_is_integer, provenance="ours")
    immediate0_pointer = Pointer(24, "immediate, one per partition", dtype="immediate0_dtype", partitions="channels",
                                 flag=immediate0_is_pointer, alias=True, provenance="ours")
    src1 = Pattern(120, 5, "second input", role="read", dtype="src1_dtype", partitions="channels", wide=True,
                   provenance="ours")
    SYNTAX = (Names("ops", "op0", "op1"), Immediates(("immediate0", "immediate0_pointer")), Key("immediate0_dtype"),
              PatternItem("src"), PatternItem("src1"), PatternItem("dst"), Key("channels"),
              Key("reverse0", optional=True), Key("reverse1", optional=True))


class ActivationExtended(_Wide):
    """Apply func(in * scale + bias) with a scale per partition, a constant bias, or a running sum per partition."""

    __slots__ = ()
    NAME = "ACTIVATION_EXTENDED"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 3, 128
    ENGINES = ("Activation",)
    function = Enumeration(19, ActivationFunction, "function id, bound through the file's function table",
                           provenance="ours")
    reduce_command = Enumeration(20, ReduceCommand, "what happens to the accumulator registers", provenance="ours")
    reduce_op = Enumeration(21, AluOp, "operator of the accumulation", default=AluOp.ADD, provenance="ours")
    scale_is_pointer = BitFlag(22, 0, "the scale is a pointer", provenance="ours")
    bias_is_pointer = BitFlag(22, 1, "the bias is a pointer", provenance="ours")
    scale_is_integer = BitFlag(22, 4, "the scale holds integer bits", provenance="ours")
    bias_is_integer = BitFlag(22, 5, "the bias holds integer bits", provenance="ours")
    bias_dtype = Enumeration(23, Dtype, "element type of the bias behind its pointer", default=Dtype.FLOAT32,
                             provenance="ours")
    scale = Immediate(24, "scale", integer=scale_is_integer, default=1.0, provenance="ours")
    scale_pointer = Pointer(24, "scale, one per partition", dtype=Dtype.FLOAT32, partitions="channels",
                            flag=scale_is_pointer, alias=True, provenance="ours")
    bias = Immediate(28, "bias", integer=bias_is_integer, provenance="ours")
    bias_pointer = Pointer(28, "bias, one per partition", dtype="bias_dtype", partitions="channels",
                           flag=bias_is_pointer, alias=True, provenance="ours")
    SYNTAX = (Bare("function"), Immediates(("scale", "scale_pointer"), ("bias", "bias_pointer")), Key("bias_dtype"),
              PatternItem("src"), PatternItem("dst"), Key("channels"), Key("reduce_command", "accumulator_cmd"),
              Key("reduce_op"))


class ActivationReadAccumulator(_Extension):
    """Store the accumulator register of each partition. The name is public, the encoding is ours."""

    __slots__ = ()
    NAME = "ACTIVATION_READ_ACCUMULATOR"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 4, 128
    ENGINES = ("Activation",)
    channels = Integer(16, 1, "partitions", unit="partitions", default=128, provenance="ours")
    dst_dtype = Enumeration(17, Dtype, "element type of the output", provenance="ours")
    dst = Pattern(32, 5, "output", role="write", dtype="dst_dtype", partitions="channels", wide=True, provenance="ours")
    SYNTAX = (PatternItem("dst"), Key("channels"))


class VectorTranspose(_Wide):
    """Transpose a tile of at most 32 partitions by 32 elements; the output has `columns` partitions."""

    __slots__ = ()
    NAME = "VECTOR_TRANSPOSE"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 5, 128
    ENGINES = ("DVE",)
    columns = Integer(19, 1, "elements per input partition, partitions of the output", provenance="ours", default=32)
    dst = Pattern(32, 5, "output", role="write", dtype="dst_dtype", partitions="columns", wide=True, provenance="ours")
    SYNTAX = (PatternItem("src"), PatternItem("dst"), Key("channels"), Key("columns"))


class Select(_Wide):
    """Choose src where the predicate is not zero, else the other input."""

    __slots__ = ()
    NAME = "SELECT"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 6, 256
    ENGINES = ("DVE",)
    predicate_dtype = Enumeration(19, Dtype, "element type of the predicate", provenance="ours")
    on_false_dtype = Enumeration(20, Dtype, "element type of the other input", provenance="ours")
    on_false_is_integer = BitFlag(22, 4, "the other input holds integer bits", provenance="ours")
    on_false = Immediate(24, "other input where it is a number", integer=on_false_is_integer, provenance="ours")
    predicate = Pattern(120, 5, "predicate", role="read", dtype="predicate_dtype", partitions="channels", wide=True,
                        provenance="ours")
    on_false_tile = Pattern(164, 5, "other input where it is a tile", role="read", dtype="on_false_dtype",
                            partitions="channels", wide=True, provenance="ours")
    SYNTAX = (PatternItem("predicate"), PatternItem("src"), PatternItem("on_false_tile", "on_false", optional=True),
              Key("on_false", "imm", style="scalar"), PatternItem("dst"), Key("channels"))


class StreamShuffle(_Wide):
    """Permute partitions inside each group of 32; mask value 255 leaves a partition untouched."""

    __slots__ = ()
    NAME = "STREAM_SHUFFLE"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 7, 192
    ENGINES = ("DVE",)
    dst_channels = Integer(19, 1, "partitions of the output", unit="partitions", default=128, provenance="ours")
    mask = Bytes(128, 32, "source partition of each of the 32", provenance="ours")
    dst = Pattern(32, 5, "output", role="write", dtype="dst_dtype", partitions="dst_channels", wide=True,
                  provenance="ours")
    SYNTAX = (Key("mask", style="bytes"), PatternItem("src"), PatternItem("dst"), Key("channels"), Key("dst_channels"))


class CoreBarrier(_Extension):
    """Meet the other core of the pair; the public name is PSEUDO_CORE_BARRIER, the encoding is ours."""

    __slots__ = ()
    NAME = "PSEUDO_CORE_BARRIER"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 8, 64
    ENGINES = ENGINES
    semaphore = Integer(16, 1, "semaphore the other core raises", provenance="ours")
    barrier_id = Integer(20, 4, "number of the barrier", provenance="ours")
    SYNTAX = (Key("semaphore"), Key("barrier_id", "id"))


class SendReceive(_Extension):
    """Send a tile to the other core of the pair by DMA and raise a semaphore there and here when it has arrived."""

    __slots__ = ()
    NAME = "SEND_RECEIVE"
    OPCODE, CODE, SIZE = EXTENSION_OPCODE, 9, 128
    ENGINES = ("Pool", "SP", "Activation")
    channels = Integer(16, 1, "partitions", unit="partitions", default=128, provenance="ours")
    dtype = Enumeration(17, Dtype, "element type", provenance="ours")
    semaphore = Integer(18, 1, "semaphore raised on this core once the tile has left", provenance="ours")
    peer_semaphore = Integer(19, 1, "semaphore raised on the other core once the tile is there", provenance="ours")
    semaphore_increment = Integer(20, 1, "increment of both", default=16, provenance="ours")
    src = Pattern(32, 5, "tile sent", role="read", dtype="dtype", partitions="channels", wide=True, provenance="ours")
    peer_pattern = Pattern(76, 5, "tile on the other core", role="remote", dtype="dtype", partitions="channels",
                           wide=True, provenance="ours")
    SYNTAX = (Key("semaphore"), Key("peer_semaphore"), Key("semaphore_increment", "sem_increment"), PatternItem("src"),
              PatternItem("peer_pattern"), Key("channels"))
