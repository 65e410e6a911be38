"""Words of the Tensor engine (PE): load weights, multiply. Source: isa.md 7."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import ClassVar

from formats.dtypes import Dtype
from formats.isa.behaviour import Dataflow
from formats.isa.enums import Fp32Pass, TransposeMode
from formats.isa.field import Enumeration, Integer
from formats.isa.instruction import Instruction
from formats.isa.operand import Pattern, Pointer
from formats.isa.rule import Context, Finding, Rule, in_psum, place, same_elements, span
from formats.isa.syntax import Key, Product
from formats.isa.syntax_operands import PatternItem
from formats.neuron_core import MOVING_COLUMNS, PARTITIONS, PSUM_BANK_BYTES, PSUM_BASE, QUADRANT

__all__ = ["LoadWeights", "MatMul"]


FIRST_OF_GROUP, LAST_OF_GROUP = 1, 2  # acc_flags bit 0: overwrite PSUM; bit 1: the sum is complete


def _sbuf_source(word: LoadWeights | MatMul, context: Context) -> Iterator[Finding]:
    if word.src.address >= PSUM_BASE:
        yield "src", f"{word.src.address:#x} is not in SBUF"


def _one_bank(word: MatMul, context: Context) -> Iterator[Finding]:
    for use in context.uses:
        # gen4 writes up to 4096 elements at once, which is more than a bank (hardware.md 2.1)
        if use.name == "dst" and use.pattern.address >= PSUM_BASE and context.generation != "gen4":
            byte = place(use.pattern.address)[2]
            low, high = span(use)
            if (byte + low) // PSUM_BANK_BYTES != (byte + high - 1) // PSUM_BANK_BYTES:
                yield "dst", f"bytes {byte + low:#x} to {byte + high:#x} cross a PSUM bank of {PSUM_BANK_BYTES} bytes"


def _moving_size(word: MatMul, context: Context) -> Iterator[Finding]:
    if prod(word.src.counts) > MOVING_COLUMNS[context.generation]:
        yield "src", f"{prod(word.src.counts)} moving elements are over {MOVING_COLUMNS[context.generation]}"


def _columns(word: LoadWeights, context: Context) -> Iterator[Finding]:
    if prod(word.src.counts) != word.cols:
        yield "cols", f"{prod(word.src.counts)} stationary columns are loaded, {word.cols} are declared"


def _accumulate_flags(word: MatMul, context: Context) -> Iterator[Finding]:
    if word.acc_flags > 3:
        yield "acc_flags", f"{word.acc_flags} has bits other than first and last"


def _tiles(word: LoadWeights | MatMul, context: Context) -> Iterator[Finding]:
    for name, size in (("row_groups", word.rows), ("column_groups", word.cols)):
        groups = getattr(word, name)
        if not 1 <= groups <= 15:
            yield name, f"{groups:#x} is no mask of four groups"
        elif size > QUADRANT * groups.bit_count():
            yield name, f"{size} do not fit into {groups.bit_count()} groups of {QUADRANT}"


def _fp32_pass(word: LoadWeights | MatMul, context: Context) -> Iterator[Finding]:
    if word.fp32_mode != Fp32Pass.NONE and word.dtype not in (Dtype.FLOAT32, Dtype.FLOAT32R, Dtype.TFLOAT32):
        yield "fp32_mode", "a pass of fp32 halves needs an fp32 operand"


class _PeWord(Instruction):
    """What both words of the Tensor engine share."""

    __slots__ = ()
    ENGINES = ("PE",)
    CITE = "isa.md 7 (01, 02)"
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule("src is in SBUF.", "documented", "hardware.md 2.4", _sbuf_source),
        Rule("Only fp32 operands have passes.", "observed", "isa.md 7 (01, 02)", _fp32_pass),
        Rule("Row and column groups are masks of four with room for all.", "inferred", "isa.md 7 (01, 02)", _tiles),
    )

    dtype = Enumeration(32, Dtype, "element type of the source")
    fp32_mode = Enumeration(33, Fp32Pass, "which half of fp32 operands this pass carries")
    transpose_mode = Enumeration(34, TransposeMode, "pass the source through bit for bit; printed for LDWEIGHTS only")
    rows = Integer(38, 1, "contraction size K: partitions read", unit="partitions", default=PARTITIONS)
    # A word reads `rows` partitions and writes `cols` of them: K and M of the product, in that order (isa.md 15).
    cols = Integer(
        39, 1, "stationary columns M: output partitions", unit="partitions", default=PARTITIONS, provenance="inferred"
    )
    row_groups = Integer(
        44, 1, "mask of the four groups of 32 rows in use", default=0x0F, provenance="inferred", known=range(1, 16)
    )
    column_groups = Integer(
        45, 1, "mask of the four groups of 32 columns in use", default=0x0F, provenance="inferred", known=range(1, 16)
    )
    unknown_46 = Integer(46, 1, "unknown; follows dtype and opcode on gen2, 0 on gen3", provenance="inferred")


# The array shifts weights in from one side, so a program streams the last column first (isa.md 11).
class LoadWeights(_PeWord):
    """Load the stationary operand; the last streamed element becomes column 0."""

    __slots__ = ()
    NAME = "LDWEIGHTS"
    OPCODE = 0x01
    DATAFLOW = Dataflow.WEIGHTS
    src = Pattern(16, 3, "stationary operand in SBUF, read backwards", role="read", dtype="dtype", partitions="rows")
    SYNTAX = (Key("fp32_mode", optional=True), Key("transpose_mode"), PatternItem("src"), Product("rows", "cols"))
    RULES = (
        *_PeWord.RULES,
        Rule("The columns loaded are the columns declared.", "observed", "isa.md 7 (01)", _columns),
    )


class MatMul(_PeWord):
    """Multiply the stationary operand by a moving operand into PSUM."""

    __slots__ = ()
    NAME = "MATMUL"
    OPCODE = 0x02
    DATAFLOW = Dataflow.PRODUCT
    src = Pattern(16, 3, "moving operand in SBUF", role="read", dtype="dtype", partitions="rows")
    acc_flags = Integer(43, 1, "bit 0: first of a group (overwrite PSUM), bit 1: last of a group", known=range(4))
    dst_dtype = Integer(
        47,
        1,
        "element type of PSUM, 0 for the documented default (fp32, or the source's type in transpose mode)",
        provenance="ours",
        cite="ours",
    )
    dst = Pattern(48, 3, "result in PSUM", role="write", dtype="dst_dtype", partitions="cols")
    SYNTAX = (
        Key("acc_flags"),
        Key("fp32_mode", optional=True),
        PatternItem("src"),
        PatternItem("dst", typed=False),
        Product("rows", "cols"),
    )
    RULES = (
        *_PeWord.RULES,
        same_elements("src", "dst"),
        in_psum("hardware.md 2.4"),
        Rule("dst stays in one PSUM bank (gen2, gen3).", "documented", "hardware.md 2.1, isa.md 4", _one_bank, True),
        Rule("At most 512 moving elements (gen4: 4096).", "documented", "hardware.md 2.1", _moving_size),
        Rule("acc_flags holds first and last only.", "observed", "isa.md 5", _accumulate_flags),
    )

    @property
    def factors(self) -> tuple[bytes, bytes, bytes]:
        """Return the bits that say what is multiplied and where the product goes: the passes of one have the same."""
        return self.raw[16:32], self.raw[38:40], self.raw[47:64]

    @property
    def adds(self) -> bool:
        # The last of a group adds like any other: bit 1 has no effect that execution could show (isa.md 5, 15).
        return not self.acc_flags & FIRST_OF_GROUP

    def dtype_of(self, operand: Pattern | Pointer) -> int:
        """Return an element type; PSUM without one holds fp32, or the source's type in transpose mode."""
        code = super().dtype_of(operand)
        if code or operand.role != "write":
            return code
        return self.dtype if self.transpose_mode else Dtype.FLOAT32
