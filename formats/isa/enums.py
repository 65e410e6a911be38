"""Enumerations of instruction fields; codes of 0x80 and up are ours (extended dialect)."""

from __future__ import annotations

from enum import IntEnum, unique

__all__ = [
    "AccumulatorCommand",
    "ActivationFunction",
    "AluOp",
    "BranchCompare",
    "CollectiveKind",
    "Fp32Pass",
    "OrderingMode",
    "RangeClearMode",
    "ReduceCommand",
    "ReduceDims",
    "TransposeMode",
    "UpdateMode",
    "WaitMode",
]


@unique
class WaitMode(IntEnum):
    """How a word waits. Source: isa.md 2."""

    NONE = 0
    SEM_EQ = 1
    SEM_GT = 4
    SEM_GE = 5
    EVENT_SET = 7


@unique
class CollectiveKind(IntEnum):
    """What ranks do together, or a number that only the rank knows. The operations are documented, the codes ours."""

    ALL_GATHER = 1
    ALL_REDUCE = 2
    REDUCE_SCATTER = 3
    ALL_TO_ALL = 4
    PERMUTE = 5
    PERMUTE_NEXT = 6
    ALL_GATHER_V = 7
    ALL_TO_ALL_V = 8
    RANK = 9
    RANK_IN_TURN = 10


@unique
class UpdateMode(IntEnum):
    """What a word signals at completion. Source: isa.md 2."""

    NONE = 0x00
    EVENT_SET = 0x11
    SEM_INC = 0x13
    SEM_DEC = 0x14
    SEM_ADD_IMM = 0x15
    SEM_WRITE_IMM = 0x19


@unique
class AluOp(IntEnum):
    """Arithmetic operator; 0, 4, 6 and 8 are observed, the rest are ours. Source: isa.md 5, names hardware.md 7.5."""

    BYPASS = 0x00
    ADD = 0x04
    MULTIPLY = 0x06
    MAX = 0x08
    # Names are documented, numbers are not, and KLR's order is alphabetical: no other code can be guessed from four.
    SUBTRACT = 0x80
    DIVIDE = 0x81
    MIN = 0x82
    POWER = 0x83
    MOD = 0x84
    FMOD = 0x85
    EQUAL = 0x86
    NOT_EQUAL = 0x87
    GREATER = 0x88
    GREATER_EQUAL = 0x89
    LESS = 0x8A
    LESS_EQUAL = 0x8B
    LOGICAL_AND = 0x8C
    LOGICAL_OR = 0x8D
    LOGICAL_XOR = 0x8E
    LOGICAL_NOT = 0x8F
    BITWISE_AND = 0x90
    BITWISE_OR = 0x91
    BITWISE_XOR = 0x92
    INVERT = 0x93
    LEFT_SHIFT = 0x94
    RIGHT_SHIFT = 0x95
    ABS_MAX = 0x96
    ABS_MIN = 0x97
    RSQRT = 0x98
    RECIPROCAL = 0x99
    ABS = 0x9A
    SQUARE = 0x9B
    RELU = 0x9C
    SIGN = 0x9D
    NEGATIVE = 0x9E


@unique
class ActivationFunction(IntEnum):
    """Activation function id; below 0x40 and 128, 130 as in the public exp_and_others table, 0xC0 and up ours.

    A file's own table decides; these names serve where no file is at hand. Source: isa.md 5, hardware.md 7.4.
    """

    IDENTITY = 1
    RELU = 2
    LEAKY_RELU = 3
    PARAMETRIC_RELU = 4
    TANH = 6
    EXP = 7
    DERIVATIVE_IDENTITY = 11
    DERIVATIVE_RELU = 12
    DERIVATIVE_LEAKY_RELU = 13
    SQUARE = 30
    SIGN = 31
    ABS = 33
    IS_FINITE = 35
    COPY = 128
    MEMSET_ZERO = 130
    # tables of the compiler number their functions up to 130, so ours begin well above
    LOG = 0xC0
    SQRT = 0xC1
    RSQRT = 0xC2
    RECIPROCAL = 0xC3
    SIGMOID = 0xC4
    SILU = 0xC5
    SILU_DX = 0xC6
    GELU = 0xC7
    GELU_DX = 0xC8
    GELU_APPRX_TANH = 0xC9
    GELU_APPRX_SIGMOID = 0xCA
    GELU_APPRX_SIGMOID_DX = 0xCB
    SOFTPLUS = 0xCC
    MISH = 0xCD
    ERF = 0xCE
    ERF_DX = 0xCF
    SIN = 0xD0
    COS = 0xD1
    TAN = 0xD2
    ARCTAN = 0xD3
    FLOOR = 0xD4
    CEIL = 0xD5
    TRUNC = 0xD6


@unique
class Fp32Pass(IntEnum):
    """Which half of an fp32 operand a PE pass carries. Source: isa.md 5."""

    NONE = 0
    LOW = 1
    HIGH = 2
    LOW_HIGH = 3


@unique
class TransposeMode(IntEnum):
    """PE transpose mode. Source: isa.md 5."""

    DISABLED = 0
    ENABLED = 1


@unique
class ReduceDims(IntEnum):
    """Innermost dimensions a reduction folds; XYZ and XYZW by extrapolation. Source: isa.md 5."""

    X = 2
    XY = 3
    XYZ = 4
    XYZW = 5


@unique
class AccumulatorCommand(IntEnum):
    """Accumulator command of ACTIVATE; only IDLE has been seen. Source: isa.md 5."""

    IDLE = 0


@unique
class ReduceCommand(IntEnum):
    """What a word does with the accumulator registers. Source: hardware.md 5.5 (documented values)."""

    IDLE = 0
    RESET = 1
    REDUCE = 2
    RESET_REDUCE = 3
    LOAD_REDUCE = 4


@unique
class OrderingMode(IntEnum):
    """Ordering mode of a stream. Source: isa.md 5. The profiler spells it in lower case."""

    relaxed = 0
    strict = 1


@unique
class BranchCompare(IntEnum):
    """Comparison of a branch; EQ and ALWAYS are observed, the rest are ours. Source: isa.md 5."""

    ALWAYS = 0
    EQ = 3
    NE = 0x80
    LT = 0x81
    LE = 0x82
    GT = 0x83
    GE = 0x84


@unique
class RangeClearMode(IntEnum):
    """What a range clear clears. Source: isa.md 5."""

    SEMAPHORE_ZERO = 1
