"""Rules of single instruction classes, beyond what the kinds of their fields bring."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from formats.dtypes import DTYPES, Dtype
from formats.isa.activation import Activate
from formats.isa.dma import DmaDirect2d, PseudoDmaDirect2d, PseudoDmaTrigger
from formats.isa.enums import Fp32Pass
from formats.isa.extension import (
    ActivationExtended,
    ScalarTensorTensor,
    Select,
    SendReceive,
    StreamShuffle,
    TensorTensorScan,
    VectorTranspose,
)
from formats.isa.extension_dma import DmaIndirect
from formats.isa.instruction import Instruction
from formats.isa.loader import CompareBranch, EventSemaphoreRangeClear, TensorLoad, Write
from formats.isa.operand import PSUM_BASE, SBUF_PARTITION_STRIDE, DmaAddress
from formats.isa.pe import LoadWeights, MatMul
from formats.isa.rule import KNOWN_DTYPES, Context, Finding, Rule, place, span
from formats.isa.rules_extension import EXTENSION_RULES
from formats.isa.vector import Cast, Copy, Memset, Reciprocal, TensorReduce, TensorScalar, TensorTensor

__all__ = ["RULES"]

# Source: hardware.md 2.1. Moving elements of one matmul; gen4 with fp32 results.
BANK_BYTES = 2 * 1024
MOVING_LIMIT = {"gen2": 512, "gen3": 512, "gen4": 4096}
ON_CHIP_BYTES = 128 * SBUF_PARTITION_STRIDE


def _same_elements(*operands: str) -> Rule:
    """Return the rule that operands have equally many elements in each partition."""
    def run(word: Instruction, context: Context) -> Iterator[Finding]:
        counts = {name: prod(word.FIELDS[name].read(word.raw).counts) for name in operands
                  if word.OPERANDS[name].enabled(word.raw)}
        if len(set(counts.values())) > 1:
            yield operands[-1], "elements differ: " + ", ".join(f"{name} {count}" for name, count in counts.items())
    return Rule(f"{', '.join(operands[:-1])} and {operands[-1]} have equally many elements.", "observed",
                "isa.md 11", run)


def _reduced(word: TensorReduce, context: Context) -> Iterator[Finding]:
    folded = int(word.dims) - 1
    if 1 <= folded <= 4:
        kept, written = prod(word.src.counts[folded:]), prod(word.dst.counts)
        if kept != written:
            yield "dst", f"{kept} elements are kept of src, {written} are written"


def _same_dtype(word: Copy, context: Context) -> Iterator[Finding]:
    if word.src_dtype != word.dst_dtype:
        yield "dst_dtype", "COPY moves raw bits: both element types are one"


def _psum_result(word: MatMul, context: Context) -> Iterator[Finding]:
    if word.dst.address < PSUM_BASE:
        yield "dst", f"{word.dst.address:#x} is not in PSUM"


def _sbuf_source(word: LoadWeights | MatMul, context: Context) -> Iterator[Finding]:
    if word.src.address >= PSUM_BASE:
        yield "src", f"{word.src.address:#x} is not in SBUF"


def _one_bank(word: MatMul, context: Context) -> Iterator[Finding]:
    for use in context.uses:
        if use.name == "dst" and use.pattern.address >= PSUM_BASE and context.generation != "gen4":
            byte = place(use.pattern.address)[2]
            low, high = span(use)
            if (byte + low) // BANK_BYTES != (byte + high - 1) // BANK_BYTES:
                yield "dst", f"bytes {byte + low:#x} to {byte + high:#x} cross a PSUM bank of {BANK_BYTES} bytes"


def _moving_size(word: MatMul, context: Context) -> Iterator[Finding]:
    if prod(word.src.counts) > MOVING_LIMIT[context.generation]:
        yield "src", f"{prod(word.src.counts)} moving elements are over {MOVING_LIMIT[context.generation]}"


def _columns(word: LoadWeights, context: Context) -> Iterator[Finding]:
    if prod(word.src.counts) != word.cols:
        yield "cols", f"{prod(word.src.counts)} stationary columns are loaded, {word.cols} are declared"


def _accumulate_flags(word: MatMul, context: Context) -> Iterator[Finding]:
    if word.acc_flags > 3:
        yield "acc_flags", f"{word.acc_flags} has bits other than first and last"


def _tiles(word: LoadWeights | MatMul, context: Context) -> Iterator[Finding]:
    for name in ("row_groups", "column_groups"):
        if not 1 <= getattr(word, name) <= 15:
            yield name, f"{getattr(word, name):#x} is no mask of four groups"


def _fp32_pass(word: LoadWeights | MatMul, context: Context) -> Iterator[Finding]:
    if word.fp32_mode != Fp32Pass.NONE and word.dtype not in (Dtype.FLOAT32, Dtype.FLOAT32R, Dtype.TFLOAT32):
        yield "fp32_mode", "a pass of fp32 halves needs an fp32 operand"


def _memset_count(word: Memset, context: Context) -> Iterator[Finding]:
    if word.count != prod(word.dst.counts):
        yield "count", f"{word.count} differs from the {prod(word.dst.counts)} elements of dst"


def _clear_range(word: EventSemaphoreRangeClear, context: Context) -> Iterator[Finding]:
    if word.first > word.last:
        yield "last", f"the range {word.first} to {word.last} is empty"


def _branch_target(word: CompareBranch, context: Context) -> Iterator[Finding]:
    if word.target % 64:
        yield "target", f"{word.target} is not a multiple of 64 bytes"


def _write_sizes(word: Write, context: Context) -> Iterator[Finding]:
    if not 1 <= word.size0 <= 8 or word.size1 > 8:
        yield "size0", f"sizes {word.size0} and {word.size1} are not 1 to 8 (second: 0 to 8)"


def _register_count(word: TensorLoad, context: Context) -> Iterator[Finding]:
    if not 1 <= word.count0 * word.count1 <= 32:
        yield "count0", f"{word.count0} × {word.count1} registers are not 1 to 32"


def _queue_name(word: PseudoDmaTrigger, context: Context) -> Iterator[Finding]:
    if not word.queue or not word.queue.isprintable() or "\\" in word.queue:
        yield "queue", f"{word.queue!r} is no name"


Direct2d = PseudoDmaDirect2d | DmaDirect2d | DmaIndirect


def _dma_sides(word: Direct2d) -> Iterator[tuple[str, DmaAddress, Any, int, int]]:
    yield "src", word.src, word.src_pattern, word.src_element_size, word.src_dtype
    yield "dst", word.dst, word.dst_pattern, word.dst_element_size, word.dst_dtype


def _dma_elements(word: Direct2d, context: Context) -> Iterator[Finding]:
    totals = []
    for side, _, pattern, size, dtype in _dma_sides(word):
        if dtype not in KNOWN_DTYPES:
            yield f"{side}_dtype", f"element type {int(dtype):#x} is not known"
        elif not size or size % KNOWN_DTYPES[dtype]:
            yield f"{side}_element_size", f"{size} bytes are not whole elements of {DTYPES[Dtype(dtype)].spelling}"
        elif not all(pattern.counts):
            yield f"{side}_pattern", f"a dimension of zero elements in {list(pattern.counts)}"
        else:
            totals.append(prod(pattern.counts) * size // KNOWN_DTYPES[dtype])
    if len(totals) == 2 and totals[0] != totals[1]:
        yield "dst_pattern", f"{totals[0]} elements are read, {totals[1]} are written"


def _dma_memory(word: Direct2d, context: Context) -> Iterator[Finding]:
    for side, address, pattern, size, _ in _dma_sides(word):
        if address.form == "variable" and address.index == 0:
            moves = [step * (count - 1) for step, count in zip(*pattern, strict=True) if count]
            low = address.offset + sum(m for m in moves if m < 0)
            high = address.offset + sum(m for m in moves if m > 0) + size
            if low < 0 or high > ON_CHIP_BYTES:
                yield side, f"offsets {low:#x} to {high:#x} leave on-chip memory"


def _enough_indices(word: DmaIndirect, context: Context) -> Iterator[Finding]:
    there = word.channels * prod(word.index.counts)
    if not 1 <= word.rows <= there:
        yield "rows", f"{word.rows} rows and {there} indices"


def _transposed(word: VectorTranspose, context: Context) -> Iterator[Finding]:
    if word.channels > 32 or not 1 <= word.columns <= 32:
        yield "columns", f"{word.channels} × {word.columns} is more than 32 × 32"
    if prod(word.src.counts) != word.columns or prod(word.dst.counts) != word.channels:
        yield "dst", (f"src has {prod(word.src.counts)} elements and dst {prod(word.dst.counts)} for "
                      f"{word.channels} partitions by {word.columns}")


def _shuffle_mask(word: StreamShuffle, context: Context) -> Iterator[Finding]:
    if any(31 < entry < 255 for entry in word.mask):
        yield "mask", "entries are 0 to 31, or 255 to keep"


_PE: tuple[Rule, ...] = (
    Rule("src is in SBUF.", "documented", "hardware.md 2.4", _sbuf_source),
    Rule("Only fp32 operands have passes.", "observed", "isa.md 7 (01, 02)", _fp32_pass),
    Rule("Row and column groups are masks of four.", "inferred", "isa.md 7 (01, 02)", _tiles),
)
_DIRECT: tuple[Rule, ...] = (
    Rule("Both sides have known element types and equally many whole elements.", "observed", "isa.md 8", _dma_elements),
    Rule("On-chip addresses stay inside the 128 partitions.", "observed", "isa.md 4, 8", _dma_memory),
)

RULES: dict[type[Instruction], tuple[Rule, ...]] = {
    LoadWeights: (*_PE, Rule("The columns loaded are the columns declared.", "observed", "isa.md 7 (01)", _columns)),
    MatMul: (
        *_PE, _same_elements("src", "dst"),
        Rule("dst is in PSUM.", "documented", "hardware.md 2.4", _psum_result),
        Rule("dst stays in one PSUM bank (gen2, gen3).", "documented", "hardware.md 2.1, isa.md 4", _one_bank),
        Rule("At most 512 moving elements (gen4: 4096).", "documented", "hardware.md 2.1", _moving_size),
        Rule("acc_flags holds first and last only.", "observed", "isa.md 5", _accumulate_flags)),
    Activate: (_same_elements("src", "dst"),),
    TensorTensor: (_same_elements("src0", "src1", "dst"),),
    TensorScalar: (_same_elements("src", "dst"),),
    TensorReduce: (Rule("dst has the elements that are kept.", "observed", "isa.md 7 (42)", _reduced),),
    Copy: (_same_elements("src", "dst"),
           Rule("Both sides have one element type.", "observed", "isa.md 7 (46)", _same_dtype)),
    Cast: (_same_elements("src", "dst"),),
    Reciprocal: (_same_elements("src", "dst"),),
    Memset: (Rule("count is the number of elements of dst.", "observed", "isa.md 7 (49)", _memset_count),),
    EventSemaphoreRangeClear: (Rule("The range is not empty.", "observed", "isa.md 10.2 (b0)", _clear_range),),
    CompareBranch: (Rule("The target is a word.", "observed", "isa.md 10.2 (a9)", _branch_target),),
    Write: (Rule("Values have 1 to 8 bytes.", "observed", "isa.md 10.2 (a5)", _write_sizes),),
    TensorLoad: (Rule("1 to 32 registers are loaded.", "inferred", "isa.md 10.2 (aa)", _register_count),),
    PseudoDmaTrigger: (Rule("The queue has a name.", "observed", "isa.md 8 (c1)", _queue_name),),
    PseudoDmaDirect2d: _DIRECT,
    DmaDirect2d: _DIRECT,
    DmaIndirect: (_DIRECT[0], Rule("There is an index for each row.", "ours", "ours", _enough_indices)),
    TensorTensorScan: (_same_elements("src", "src1", "dst"),),
    ScalarTensorTensor: (_same_elements("src", "src1", "dst"),),
    ActivationExtended: (_same_elements("src", "dst"),),
    Select: (_same_elements("predicate", "src", "on_false_tile", "dst"),),
    StreamShuffle: (_same_elements("src", "dst"), Rule("Mask entries are 0 to 31, or 255.", "documented",
                                                       "hardware.md 5.1", _shuffle_mask)),
    VectorTranspose: (Rule("At most 32 × 32, and dst has the shape of src turned.", "documented", "hardware.md 2.3",
                           _transposed),),
    SendReceive: (_same_elements("src", "peer_pattern"),),
    **EXTENSION_RULES,
}
