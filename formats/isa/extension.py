"""Extension words: NKI instructions without a publicly known encoding. Every bit here is ours.

An extension word begins with the escape opcode; bytes 12-13 are the extension code, bytes 14-15 the length in units of
64 bytes. Patterns are wide (five dimensions, 32-bit steps and counts). A file that holds such words says so in
`neff_features`; nothing else is ever decoded this way.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from formats.dtypes import Dtype
from formats.engines import ENGINES
from formats.isa.behaviour import Dataflow, Duration, EngineState, Passes
from formats.isa.enums import ActivationFunction, AluOp, ReduceCommand
from formats.isa.field import BitFlag, Bytes, Enumeration, Immediate, Integer
from formats.isa.instruction import EXTENSION_OPCODE, Instruction
from formats.isa.operand import Pointer, Tile
from formats.isa.rule import Context, Finding, Rule, same_elements
from formats.isa.signals import HEADER_SLOT, Meet, Raise
from formats.isa.syntax import Bare, Key, Names
from formats.isa.syntax_operands import Immediates, PatternItem
from formats.neuron_core import DMA_ENGINES, PARTITIONS

__all__ = [
    "ActivationExtended",
    "ActivationReadAccumulator",
    "CoreBarrier",
    "ScalarTensorTensor",
    "Select",
    "SendReceive",
    "StreamShuffle",
    "TensorTensorScan",
    "VectorTranspose",
]


class ExtensionWord(Instruction):
    """What every extension word shares."""

    __slots__ = ()
    OPCODE = EXTENSION_OPCODE
    CITE = "ours"
    PROVENANCE = "ours"


# A word has its small fields in bytes 16 to 31, then tiles of 44 bytes from byte 32 on.
class TileWord(ExtensionWord):
    """An extension word with partitions and an output pattern."""

    __slots__ = ()
    channels = Integer(16, 1, "partitions", unit="partitions", default=PARTITIONS)
    dst_dtype = Enumeration(17, Dtype, "element type of the output")
    src_dtype = Enumeration(18, Dtype, "element type of the input")
    dst = Tile(32, "output", role="write", dtype="dst_dtype")
    src = Tile(76, "input", role="read", dtype="src_dtype")


class TensorTensorScan(TileWord):
    """Scan r[i] = (src0[i] op0 r[i-1]) op1 src1[i] along the free dimension, in fp32."""

    __slots__ = ()
    NAME = "TENSOR_TENSOR_SCAN"
    # Codes are given out by topic in blocks of 16: from 1 what NKI needs most, 16 DMA and registers, 32 GpSimd, 48
    # selections, 64 searches, 80 random numbers, 96 gen4. SIZE is what the fields take, in whole words of 64 bytes.
    CODE, SIZE = 1, 192
    ENGINES = ("DVE",)
    COST = Passes("dst", ("src", "src1", "dst"), "two_inputs")
    DATAFLOW = Dataflow.EARLIER
    src1_dtype = Enumeration(19, Dtype, "element type of the second input")
    op0 = Enumeration(20, AluOp, "operator with the running value")
    op1 = Enumeration(21, AluOp, "operator with the second input")
    initial_is_pointer = BitFlag(22, 0, "the initial value is a pointer")
    reverse0 = BitFlag(22, 2, "the running value stands on the left of op0")
    reverse1 = BitFlag(22, 3, "the second input stands on the left of op1")
    initial_is_integer = BitFlag(22, 4, "the initial value holds integer bits")
    initial_dtype = Enumeration(23, Dtype, "element type behind the pointer", default=Dtype.FLOAT32)
    initial = Immediate(24, "initial value", integer=initial_is_integer)
    initial_pointer = Pointer(
        24,
        "initial value, one per partition",
        dtype="initial_dtype",
        partitions="channels",
        flag=initial_is_pointer,
        alias=True,
    )
    src1 = Tile(120, "second input", role="read", dtype="src1_dtype")
    SYNTAX = (
        Names("ops", "op0", "op1"),
        Immediates(("initial", "initial_pointer")),
        Key("initial_dtype"),
        PatternItem("src"),
        PatternItem("src1"),
        PatternItem("dst"),
        Key("channels"),
        Key("reverse0", optional=True),
        Key("reverse1", optional=True),
    )
    RULES = (same_elements("src", "src1", "dst"),)


class ScalarTensorTensor(TileWord):
    """Apply (src op0 immediate) op1 src1."""

    __slots__ = ()
    NAME = "SCALAR_TENSOR_TENSOR"
    CODE, SIZE = 2, 192
    ENGINES = ("DVE",)
    OVERWRITES = True
    src1_dtype = Enumeration(19, Dtype, "element type of the second input")
    op0 = Enumeration(20, AluOp, "operator with the immediate")
    op1 = Enumeration(21, AluOp, "operator with the second input")
    # bits as in byte 35 of TENSOR_SCALAR
    immediate0_is_pointer = BitFlag(22, 0, "the immediate is a pointer")
    reverse0 = BitFlag(22, 2, "the immediate stands on the left of op0")
    reverse1 = BitFlag(22, 3, "the second input stands on the left of op1")
    immediate0_is_integer = BitFlag(22, 4, "the immediate holds integer bits")
    immediate0_dtype = Enumeration(23, Dtype, "element type behind the pointer", default=Dtype.FLOAT32)
    immediate0 = Immediate(24, "immediate", integer=immediate0_is_integer)
    immediate0_pointer = Pointer(
        24,
        "immediate, one per partition",
        dtype="immediate0_dtype",
        partitions="channels",
        flag=immediate0_is_pointer,
        alias=True,
    )
    src1 = Tile(120, "second input", role="read", dtype="src1_dtype")
    SYNTAX = (
        Names("ops", "op0", "op1"),
        Immediates(("immediate0", "immediate0_pointer")),
        Key("immediate0_dtype"),
        PatternItem("src"),
        PatternItem("src1"),
        PatternItem("dst"),
        Key("channels"),
        Key("reverse0", optional=True),
        Key("reverse1", optional=True),
    )
    RULES = (same_elements("src", "src1", "dst"),)


class ActivationExtended(TileWord):
    """Apply func(in * scale + bias) with a scale per partition, a constant bias, or a running sum per partition."""

    __slots__ = ()
    NAME = "ACTIVATION_EXTENDED"
    CODE, SIZE = 3, 128
    ENGINES = ("Activation",)
    OVERWRITES = True
    STATE = EngineState.OPTIONAL
    function = Enumeration(19, ActivationFunction, "function id, bound through the file's function table")
    reduce_command = Enumeration(20, ReduceCommand, "what happens to the accumulator registers")
    reduce_op = Enumeration(21, AluOp, "operator of the accumulation", default=AluOp.ADD)
    scale_is_pointer = BitFlag(22, 0, "the scale is a pointer")
    bias_is_pointer = BitFlag(22, 1, "the bias is a pointer")
    scale_is_integer = BitFlag(22, 4, "the scale holds integer bits")
    bias_is_integer = BitFlag(22, 5, "the bias holds integer bits")
    bias_dtype = Enumeration(23, Dtype, "element type of the bias behind its pointer", default=Dtype.FLOAT32)
    scale = Immediate(24, "scale", integer=scale_is_integer, default=1.0)
    scale_pointer = Pointer(
        24, "scale, one per partition", dtype=Dtype.FLOAT32, partitions="channels", flag=scale_is_pointer, alias=True
    )
    bias = Immediate(28, "bias", integer=bias_is_integer)
    bias_pointer = Pointer(
        28, "bias, one per partition", dtype="bias_dtype", partitions="channels", flag=bias_is_pointer, alias=True
    )
    SYNTAX = (
        Bare("function"),
        Immediates(("scale", "scale_pointer"), ("bias", "bias_pointer")),
        Key("bias_dtype"),
        PatternItem("src"),
        PatternItem("dst"),
        Key("channels"),
        Key("reduce_command", "accumulator_cmd"),
        Key("reduce_op"),
    )
    RULES = (same_elements("src", "dst"),)


class ActivationReadAccumulator(ExtensionWord):
    """Store the accumulator register of each partition. The name is public, the encoding is ours."""

    __slots__ = ()
    NAME = "ACTIVATION_READ_ACCUMULATOR"
    CODE, SIZE = 4, 128
    ENGINES = ("Activation",)
    DATAFLOW = Dataflow.ACCUMULATORS
    STATE = EngineState.ACCUMULATORS
    channels = Integer(16, 1, "partitions", unit="partitions", default=PARTITIONS)
    dst_dtype = Enumeration(17, Dtype, "element type of the output")
    dst = Tile(32, "output", role="write", dtype="dst_dtype")
    SYNTAX = (PatternItem("dst"), Key("channels"))


def _transposed(word: VectorTranspose, context: Context) -> Iterator[Finding]:
    if word.channels > 32 or not 1 <= word.columns <= 32:
        yield "columns", f"{word.channels} × {word.columns} is more than 32 × 32"
    if prod(word.src.counts) != word.columns or prod(word.dst.counts) != word.channels:
        yield (
            "dst",
            (
                f"src has {prod(word.src.counts)} elements and dst {prod(word.dst.counts)} for "
                f"{word.channels} partitions by {word.columns}"
            ),
        )


class VectorTranspose(TileWord):
    """Transpose a tile of at most 32 partitions by 32 elements; the output has `columns` partitions."""

    __slots__ = ()
    NAME = "VECTOR_TRANSPOSE"
    CODE, SIZE = 5, 128
    ENGINES = ("DVE",)
    DATAFLOW = Dataflow.TRANSPOSE
    COST = Passes()
    CUTS = False
    columns = Integer(19, 1, "elements per input partition, partitions of the output", default=32)
    dst = Tile(32, "output", role="write", dtype="dst_dtype", partitions="columns")
    SYNTAX = (PatternItem("src"), PatternItem("dst"), Key("channels"), Key("columns"))
    RULES = (
        Rule("At most 32 × 32, and dst has the shape of src turned.", "documented", "hardware.md 2.3", _transposed),
    )


class Select(TileWord):
    """Choose src where the predicate is not zero, else the other input."""

    __slots__ = ()
    NAME = "SELECT"
    CODE, SIZE = 6, 256
    ENGINES = ("DVE",)
    DATAFLOW = Dataflow.CHOICE
    predicate_dtype = Enumeration(19, Dtype, "element type of the predicate")
    on_false_dtype = Enumeration(20, Dtype, "element type of the other input")
    on_false_is_integer = BitFlag(22, 4, "the other input holds integer bits")
    on_false = Immediate(24, "other input where it is a number", integer=on_false_is_integer)
    predicate = Tile(120, "predicate", role="read", dtype="predicate_dtype")
    on_false_tile = Tile(164, "other input where it is a tile", role="read", dtype="on_false_dtype")
    SYNTAX = (
        PatternItem("predicate"),
        PatternItem("src"),
        PatternItem("on_false_tile", "on_false", optional=True),
        Key("on_false", "imm", style="scalar"),
        PatternItem("dst"),
        Key("channels"),
    )
    RULES = (same_elements("predicate", "src", "on_false_tile", "dst"),)


def _shuffle_mask(word: StreamShuffle, context: Context) -> Iterator[Finding]:
    if any(31 < entry < 255 for entry in word.mask):
        yield "mask", "entries are 0 to 31, or 255 to keep"


class StreamShuffle(TileWord):
    """Permute partitions inside each group of 32; mask value 255 leaves a partition untouched."""

    __slots__ = ()
    NAME = "STREAM_SHUFFLE"
    CODE, SIZE = 7, 192
    ENGINES = ("DVE",)
    DATAFLOW = Dataflow.PERMUTATION
    COST = Passes()
    KEEPS = True
    dst_channels = Integer(19, 1, "partitions of the output", unit="partitions", default=PARTITIONS)
    mask = Bytes(128, 32, "source partition of each of the 32")
    dst = Tile(32, "output", role="write", dtype="dst_dtype", partitions="dst_channels", lanes="mask")
    SYNTAX = (Key("mask", style="bytes"), PatternItem("src"), PatternItem("dst"), Key("channels"), Key("dst_channels"))
    RULES = (
        same_elements("src", "dst"),
        Rule("Mask entries are 0 to 31, or 255.", "documented", "hardware.md 5.1", _shuffle_mask),
    )


class CoreBarrier(ExtensionWord):
    """Meet the other core of the pair; the public name is PSEUDO_CORE_BARRIER, the encoding is ours."""

    __slots__ = ()
    CALM = True
    NAME = "PSEUDO_CORE_BARRIER"
    CODE, SIZE = 8, 64
    ENGINES = ENGINES
    CARRIED_OUT = "a wait on the other core: the sequencer carries it out with the semaphores of both"
    COST = Duration("control")
    MEETS = True
    semaphore = Integer(16, 1, "semaphore the other core raises")
    barrier_id = Integer(20, 4, "number of the barrier")
    SYNC = (HEADER_SLOT, Meet("semaphore"))
    SYNTAX = (Key("semaphore"), Key("barrier_id", "id"))


class SendReceive(ExtensionWord):
    """Send a tile to the other core of the pair by DMA and raise a semaphore there and here when it has arrived."""

    __slots__ = ()
    NAME = "SEND_RECEIVE"
    CODE, SIZE = 9, 128
    ENGINES = ("Pool", "SP", "Activation")
    CARRIED_OUT = "a DMA word: emulator.dma moves the data to the other core"
    channels = Integer(16, 1, "partitions", unit="partitions", default=PARTITIONS)
    dtype = Enumeration(17, Dtype, "element type")
    semaphore = Integer(18, 1, "semaphore raised on this core once the tile has left")
    peer_semaphore = Integer(19, 1, "semaphore raised on the other core once the tile is there")
    semaphore_increment = Integer(20, 1, "increment of both", default=DMA_ENGINES)
    src = Tile(32, "tile sent", role="read", dtype="dtype")
    peer_pattern = Tile(76, "tile on the other core", role="remote", dtype="dtype")
    SYNC = (
        HEADER_SLOT,
        Raise("semaphore", "semaphore_increment"),
        Raise("peer_semaphore", "semaphore_increment", peer=True),
    )
    SYNTAX = (
        Key("semaphore"),
        Key("peer_semaphore"),
        Key("semaphore_increment", "sem_increment"),
        PatternItem("src"),
        PatternItem("peer_pattern"),
        Key("channels"),
    )
    RULES = (same_elements("src", "peer_pattern"),)
