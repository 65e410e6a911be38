"""Words of the Tensor engine (PE): load weights, multiply. Source: isa.md 7."""

from __future__ import annotations

from formats.dtypes import Dtype
from formats.isa.enums import Fp32Pass, TransposeMode
from formats.isa.field import Enumeration, Integer
from formats.isa.instruction import Instruction
from formats.isa.operand import Access, Pattern
from formats.isa.syntax import Key, Product
from formats.isa.syntax_operands import PatternItem

__all__ = ["LoadWeights", "MatMul"]


class _PeWord(Instruction):
    """What both words of the Tensor engine share."""

    __slots__ = ()
    ENGINES = ("PE",)
    CITE = "isa.md 7 (01, 02)"

    dtype = Enumeration(32, Dtype, "element type of the source")
    fp32_mode = Enumeration(33, Fp32Pass, "which half of fp32 operands this pass carries")
    transpose_mode = Enumeration(34, TransposeMode, "pass the source through bit for bit; printed for LDWEIGHTS only")
    rows = Integer(38, 1, "contraction size K: partitions read", unit="partitions", default=128)
    cols = Integer(39, 1, "stationary columns M: output partitions", unit="partitions", default=128,
                   provenance="inferred")
    row_groups = Integer(44, 1, "mask of the four groups of 32 rows in use", default=0x0F, provenance="inferred")
    column_groups = Integer(45, 1, "mask of the four groups of 32 columns in use", default=0x0F, provenance="inferred")
    unknown_46 = Integer(46, 1, "unknown; follows dtype and opcode on gen2, 0 on gen3", provenance="inferred")


class LoadWeights(_PeWord):
    """Load the stationary operand; the last streamed element becomes column 0."""

    __slots__ = ()
    NAME = "LDWEIGHTS"
    OPCODE = 0x01
    src = Pattern(16, 3, "stationary operand in SBUF, read backwards", role="read", dtype="dtype", partitions="rows")
    SYNTAX = (Key("fp32_mode", optional=True), Key("transpose_mode"), PatternItem("src"), Product("rows", "cols"))


class MatMul(_PeWord):
    """Multiply the stationary operand by a moving operand into PSUM."""

    __slots__ = ()
    NAME = "MATMUL"
    OPCODE = 0x02
    src = Pattern(16, 3, "moving operand in SBUF", role="read", dtype="dtype", partitions="rows")
    acc_flags = Integer(43, 1, "bit 0: first of a group (overwrite PSUM), bit 1: last of a group")
    dst_dtype = Integer(47, 1, "element type of PSUM, 0 for the documented default (fp32, or the source's type in "
                        "transpose mode)", provenance="ours", cite="ours")
    dst = Pattern(48, 3, "result in PSUM", role="write", dtype="dst_dtype", partitions="cols")
    SYNTAX = (Key("acc_flags"), Key("fp32_mode", optional=True), PatternItem("src"), PatternItem("dst", typed=False),
              Product("rows", "cols"))

    @property
    def writes(self) -> tuple[Access, ...]:
        """Return the access to PSUM with the element type it really has: fp32, or the source's in transpose mode."""
        access, = self._accesses("write") or (None,)
        if access is None:
            return ()
        if not access.dtype:
            access = access._replace(dtype=self.dtype if self.transpose_mode else Dtype.FLOAT32)
        return (access,)
