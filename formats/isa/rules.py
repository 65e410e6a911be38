"""What a well-formed word obeys: ranges, partitions, memory, element types, equal counts. One word at a time.

Rules are data: each says what it asks, where that is from, and how sure that is. Most follow from the kinds of fields a
class declares; the rest are listed for their classes. Whether a whole program is right (semaphores that meet, queues and
variables that exist) is not asked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from math import prod
from typing import Any, NamedTuple

from formats.dtypes import DTYPES, Dtype
from formats.isa.activation import Activate
from formats.isa.codec import generation_of
from formats.isa.control import EventSemaphore
from formats.isa.dma import DmaDirect2d, PseudoDmaDirect2d, PseudoDmaTrigger
from formats.isa.enums import ActivationFunction, Fp32Pass, UpdateMode
from formats.isa.extension import (
    ActivationExtended,
    ScalarTensorTensor,
    Select,
    SendReceive,
    StreamShuffle,
    TensorTensorScan,
    VectorTranspose,
)
from formats.isa.field import Enumeration
from formats.isa.instruction import EXTENSION_OPCODE, Instruction
from formats.isa.loader import CompareBranch, EventSemaphoreRangeClear, TensorLoad, Write
from formats.isa.operand import (
    PSUM_BASE,
    PSUM_PARTITION_STRIDE,
    SBUF_PARTITION_STRIDE,
    AccessPattern,
    DmaAddress,
    Pattern,
    Pointer,
)
from formats.isa.pe import LoadWeights, MatMul
from formats.isa.unknown import Unknown
from formats.isa.vector import Cast, Copy, Memset, Reciprocal, TensorReduce, TensorScalar, TensorTensor
from formats.targets import Target

__all__ = ["RULES", "Problem", "Rule", "check", "rules_of"]

PARTITIONS = 128
# Bytes of SBUF in each partition, PSUM in each partition, one PSUM bank. Source: hardware.md 2.1.
SBUF_BYTES = {"gen2": 192 * 1024, "gen3": 224 * 1024, "gen4": 256 * 1024}
PSUM_BYTES = 16 * 1024
BANK_BYTES = 2 * 1024
MOVING_LIMIT = {"gen2": 512, "gen3": 512, "gen4": 4096}


class Problem(NamedTuple):
    """One rule that a word breaks: the field, what is wrong, and how and whence the rule is known."""

    field: str
    message: str
    provenance: str
    cite: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message} [{self.provenance}; {self.cite}]"


Finding = tuple[str, str]
Check = Callable[[Any, str], Iterator[Finding]]


class Rule(NamedTuple):
    """A rule in words, its source, and the function that yields (field, message) for a word and a generation."""

    doc: str
    provenance: str
    cite: str
    check: Check


class _Use(NamedTuple):
    """One on-chip operand that a word really uses."""

    name: str
    field: Pattern | Pointer
    pattern: AccessPattern
    dtype_field: str
    dtype: int
    partitions: int


def _uses(word: Instruction) -> Iterator[_Use]:
    raw = word.raw
    for name, field in word.OPERANDS.items():
        if field.enabled(raw):
            value = field.read(raw)
            pattern = value if isinstance(value, AccessPattern) else AccessPattern(value, (1,), (1,))
            named = not isinstance(field.dtype, Dtype)
            dtype = word.FIELDS[str(field.dtype)].read(raw) if named else field.dtype
            if isinstance(word, MatMul) and name == "dst":
                dtype = word.writes[0].dtype
            yield _Use(name, field, pattern, str(field.dtype) if named else name, int(dtype),
                       word.FIELDS[field.partitions].read(raw))


def _length(word: Instruction, generation: str) -> Iterator[Finding]:
    if word.raw[1] != 0x10:
        yield "length", f"{word.raw[1]:#x} is not 0x10"


def _undeclared(word: Instruction, generation: str) -> Iterator[Finding]:
    mask = _undeclared_mask(type(word))
    bits = int.from_bytes(word.raw, "little") & mask
    if bits:
        first = ((bits & -bits).bit_length() - 1) // 8
        yield f"byte {first}", f"{word.raw[first]:#04x} where no field is known"


@cache
def _undeclared_mask(cls: type[Instruction]) -> int:
    declared = 0
    for field in cls.FIELDS.values():
        declared |= field.mask
    if cls.CODE >= 0:
        declared |= 0xFFFFFFFF << 96
    return ((1 << 8 * cls.SIZE) - 1) & ~declared


def _names(word: Instruction, generation: str) -> Iterator[Finding]:
    for field in _enumerations(type(word)):
        value = field.read(word.raw)
        if type(value) is int:
            yield field.name, f"code {value:#x} has no name in {field.enum.__name__}"


@cache
def _enumerations(cls: type[Instruction]) -> tuple[Enumeration, ...]:
    # Function ids are bound by the file's own table; element types count where their operand is used.
    return tuple(f for f in cls.FIELDS.values() if isinstance(f, Enumeration) and f.enum is not ActivationFunction
                 and f.enum is not Dtype)


def _update_value(word: Instruction, generation: str) -> Iterator[Finding]:
    if word.raw[6] in (UpdateMode.SEM_ADD_IMM, UpdateMode.SEM_WRITE_IMM):
        yield "update_mode", f"{UpdateMode(word.raw[6]).name} takes a value, which the header has no place for"


def _dtypes(word: Instruction, generation: str) -> Iterator[Finding]:
    for use in _uses(word):
        if use.dtype not in _KNOWN_DTYPES:
            yield use.dtype_field, f"element type {use.dtype:#x} of {use.name} is not known"


_KNOWN_DTYPES = frozenset(int(d) for d in Dtype if d)


def _partitions(word: Instruction, generation: str) -> Iterator[Finding]:
    for use in _uses(word):
        if not 1 <= use.partitions <= PARTITIONS:
            yield use.field.partitions, f"{use.partitions} partitions are not 1 to {PARTITIONS}"


def _place(address: int) -> tuple[str, int, int]:
    """Return ("SBUF" or "PSUM", partition, byte) of an engine address."""
    if address < PSUM_BASE:
        return "SBUF", address // SBUF_PARTITION_STRIDE, address % SBUF_PARTITION_STRIDE
    return "PSUM", (address - PSUM_BASE) // PSUM_PARTITION_STRIDE, (address - PSUM_BASE) % PSUM_PARTITION_STRIDE


def _span(use: _Use) -> tuple[int, int]:
    """Return the first byte, relative to the address, and the byte after the last that a pattern touches."""
    size = DTYPES[Dtype(use.dtype)].size if use.dtype in _KNOWN_DTYPES else 1
    moves = [step * (count - 1) for step, count in zip(use.pattern.steps, use.pattern.counts, strict=True) if count]
    return size * sum(m for m in moves if m < 0), size * (sum(m for m in moves if m > 0) + 1)


def _memory(word: Instruction, generation: str) -> Iterator[Finding]:
    for use in _uses(word):
        space, partition, byte = _place(use.pattern.address)
        limit = PSUM_BYTES if space == "PSUM" else SBUF_BYTES[generation]
        low, high = _span(use)
        if byte + low < 0 or byte + high > limit:
            yield use.name, f"bytes {byte + low:#x} to {byte + high:#x} of a partition leave {space} ({limit:#x} bytes)"
        if partition + use.partitions > PARTITIONS:
            yield use.name, f"partitions {partition} to {partition + use.partitions - 1} leave {space}"


def _start_partition(word: Instruction, generation: str) -> Iterator[Finding]:
    for use in _uses(word):
        space, partition, _ = _place(use.pattern.address)
        allowed = (0,) if use.partitions > 64 else (0, 64) if use.partitions > 32 else (0, 32, 64, 96)
        if partition not in allowed:
            starts = " or ".join(map(str, allowed))
            yield use.name, f"{use.partitions} partitions start at {partition} of {space}, not at {starts}"


def _alignment(word: Instruction, generation: str) -> Iterator[Finding]:
    for use in _uses(word):
        if use.dtype in _KNOWN_DTYPES and use.pattern.address % DTYPES[Dtype(use.dtype)].size:
            dtype = DTYPES[Dtype(use.dtype)]
            yield use.name, f"address {use.pattern.address:#x} is not a multiple of {dtype.size} ({dtype.spelling})"


def _counts(word: Instruction, generation: str) -> Iterator[Finding]:
    for use in _uses(word):
        if not all(use.pattern.counts):
            yield use.name, f"a dimension of zero elements in {list(use.pattern.counts)}"


_COMMON: tuple[Rule, ...] = (
    Rule("The length byte is 16 dwords.", "observed", "isa.md 1", _length),
    Rule("Bytes that no field names are zero.", "observed", "isa.md 1", _undeclared),
    Rule("Codes of enumerations have names, function ids excepted.", "observed", "isa.md 2, 5", _names),
    Rule("Updates that take a value stand in the second slot of EVENT_SEMAPHORE.", "inferred", "isa.md 2, 7",
         _update_value),
)
_ON_CHIP: tuple[Rule, ...] = (
    Rule("Element types of used operands are known.", "documented", "isa.md 5", _dtypes),
    Rule("1 to 128 partitions.", "documented", "hardware.md 2.1", _partitions),
    Rule("Every dimension has an element.", "observed", "isa.md 4", _counts),
    Rule("Operands stay inside SBUF or PSUM.", "documented", "hardware.md 2.1", _memory),
    Rule("More than 64 partitions start at 0, more than 32 at 0 or 64, fewer at 0, 32, 64 or 96.", "documented",
         "hardware.md 2.3", _start_partition),
    Rule("Addresses are multiples of the element size.", "documented", "hardware.md 2.2", _alignment),
)


def _same_elements(*operands: str) -> Rule:
    """Return the rule that operands have equally many elements in each partition."""
    def run(word: Instruction, generation: str) -> Iterator[Finding]:
        counts = {name: prod(word.FIELDS[name].read(word.raw).counts) for name in operands
                  if word.OPERANDS[name].enabled(word.raw)}
        if len(set(counts.values())) > 1:
            yield operands[-1], "elements differ: " + ", ".join(f"{name} {count}" for name, count in counts.items())
    return Rule(f"{', '.join(operands[:-1])} and {operands[-1]} have equally many elements.", "observed",
                "isa.md 11", run)


def _reduced(word: TensorReduce, generation: str) -> Iterator[Finding]:
    folded = int(word.dims) - 1
    if 1 <= folded <= 4:
        kept, written = prod(word.src.counts[folded:]), prod(word.dst.counts)
        if kept != written:
            yield "dst", f"{kept} elements are kept of src, {written} are written"


def _same_dtype(word: Copy, generation: str) -> Iterator[Finding]:
    if word.src_dtype != word.dst_dtype:
        yield "dst_dtype", "COPY moves raw bits: both element types are one"


def _psum_result(word: MatMul, generation: str) -> Iterator[Finding]:
    if word.dst.address < PSUM_BASE:
        yield "dst", f"{word.dst.address:#x} is not in PSUM"


def _sbuf_source(word: LoadWeights | MatMul, generation: str) -> Iterator[Finding]:
    if word.src.address >= PSUM_BASE:
        yield "src", f"{word.src.address:#x} is not in SBUF"


def _one_bank(word: MatMul, generation: str) -> Iterator[Finding]:
    for use in _uses(word):
        if use.name == "dst" and use.pattern.address >= PSUM_BASE and generation != "gen4":
            byte = _place(use.pattern.address)[2]
            low, high = _span(use)
            if (byte + low) // BANK_BYTES != (byte + high - 1) // BANK_BYTES:
                yield "dst", f"bytes {byte + low:#x} to {byte + high:#x} cross a PSUM bank of {BANK_BYTES} bytes"


def _moving_size(word: MatMul, generation: str) -> Iterator[Finding]:
    if prod(word.src.counts) > MOVING_LIMIT[generation]:
        yield "src", f"{prod(word.src.counts)} moving elements are over {MOVING_LIMIT[generation]}"


def _columns(word: LoadWeights, generation: str) -> Iterator[Finding]:
    if prod(word.src.counts) != word.cols:
        yield "cols", f"{prod(word.src.counts)} stationary columns are loaded, {word.cols} are declared"


def _accumulate_flags(word: MatMul, generation: str) -> Iterator[Finding]:
    if word.acc_flags > 3:
        yield "acc_flags", f"{word.acc_flags} has bits other than first and last"


def _tiles(word: LoadWeights | MatMul, generation: str) -> Iterator[Finding]:
    for name in ("row_groups", "column_groups"):
        if not 1 <= getattr(word, name) <= 15:
            yield name, f"{getattr(word, name):#x} is no mask of four groups"


def _fp32_pass(word: LoadWeights | MatMul, generation: str) -> Iterator[Finding]:
    if word.fp32_mode != Fp32Pass.NONE and word.dtype not in (Dtype.FLOAT32, Dtype.FLOAT32R, Dtype.TFLOAT32):
        yield "fp32_mode", "a pass of fp32 halves needs an fp32 operand"


def _memset_count(word: Memset, generation: str) -> Iterator[Finding]:
    if word.count != prod(word.dst.counts):
        yield "count", f"{word.count} differs from the {prod(word.dst.counts)} elements of dst"


def _clear_range(word: EventSemaphoreRangeClear, generation: str) -> Iterator[Finding]:
    if word.first > word.last:
        yield "last", f"the range {word.first} to {word.last} is empty"


def _branch_target(word: CompareBranch, generation: str) -> Iterator[Finding]:
    if word.target % 64:
        yield "target", f"{word.target} is not a multiple of 64 bytes"


def _write_sizes(word: Write, generation: str) -> Iterator[Finding]:
    if not 1 <= word.size0 <= 8 or word.size1 > 8:
        yield "size0", f"sizes {word.size0} and {word.size1} are not 1 to 8 (second: 0 to 8)"


def _register_count(word: TensorLoad, generation: str) -> Iterator[Finding]:
    if not 1 <= word.count0 * word.count1 <= 32:
        yield "count0", f"{word.count0} × {word.count1} registers are not 1 to 32"


def _queue_name(word: PseudoDmaTrigger, generation: str) -> Iterator[Finding]:
    if not word.queue or not word.queue.isprintable() or "\\" in word.queue:
        yield "queue", f"{word.queue!r} is no name"


Direct2d = PseudoDmaDirect2d | DmaDirect2d


def _dma_sides(word: Direct2d) -> Iterator[tuple[str, DmaAddress, Any, int, int]]:
    yield "src", word.src, word.src_pattern, word.src_element_size, word.src_dtype
    yield "dst", word.dst, word.dst_pattern, word.dst_element_size, word.dst_dtype


def _dma_elements(word: Direct2d, generation: str) -> Iterator[Finding]:
    totals = []
    for side, _, pattern, size, dtype in _dma_sides(word):
        if dtype not in _KNOWN_DTYPES:
            yield f"{side}_dtype", f"element type {int(dtype):#x} is not known"
        elif not size or size % DTYPES[Dtype(dtype)].size:
            yield f"{side}_element_size", f"{size} bytes are not whole elements of {DTYPES[Dtype(dtype)].spelling}"
        elif not all(pattern.counts):
            yield f"{side}_pattern", f"a dimension of zero elements in {list(pattern.counts)}"
        else:
            totals.append(prod(pattern.counts) * size // DTYPES[Dtype(dtype)].size)
    if len(totals) == 2 and totals[0] != totals[1]:
        yield "dst_pattern", f"{totals[0]} elements are read, {totals[1]} are written"


def _dma_memory(word: Direct2d, generation: str) -> Iterator[Finding]:
    for side, address, pattern, size, _ in _dma_sides(word):
        if address.form == "variable" and address.index == 0:
            moves = [step * (count - 1) for step, count in zip(*pattern, strict=True) if count]
            low = address.offset + sum(m for m in moves if m < 0)
            high = address.offset + sum(m for m in moves if m > 0) + size
            if low < 0 or high > PARTITIONS * SBUF_PARTITION_STRIDE:
                yield side, f"offsets {low:#x} to {high:#x} leave on-chip memory"


def _transposed(word: VectorTranspose, generation: str) -> Iterator[Finding]:
    if word.channels > 32 or not 1 <= word.columns <= 32:
        yield "columns", f"{word.channels} × {word.columns} is more than 32 × 32"
    if prod(word.src.counts) != word.columns or prod(word.dst.counts) != word.channels:
        yield "dst", (f"src has {prod(word.src.counts)} elements and dst {prod(word.dst.counts)} for "
                      f"{word.channels} partitions by {word.columns}")


def _shuffle_mask(word: StreamShuffle, generation: str) -> Iterator[Finding]:
    if any(31 < entry != 255 for entry in word.mask):
        yield "mask", "entries are 0 to 31, or 255 to keep"


_PE: tuple[Rule, ...] = (
    Rule("src is in SBUF.", "documented", "hardware.md 2.4", _sbuf_source),
    Rule("Only fp32 operands have passes.", "observed", "isa.md 7 (01, 02)", _fp32_pass),
    Rule("Row and column groups are masks of four.", "inferred", "isa.md 7 (01, 02)", _tiles),
)
_DIRECT: tuple[Rule, ...] = (
    Rule("Both sides have known element types, whole elements, and equally many.", "observed", "isa.md 8", _dma_elements),
    Rule("On-chip addresses stay inside the 128 partitions.", "observed", "isa.md 4, 8", _dma_memory),
)

# Rules of single classes, beyond what the kinds of their fields bring.
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
    Copy: (_same_elements("src", "dst"), Rule("Both sides have one element type.", "observed", "isa.md 7 (46)", _same_dtype)),
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
    TensorTensorScan: (_same_elements("src", "src1", "dst"),),
    ScalarTensorTensor: (_same_elements("src", "src1", "dst"),),
    ActivationExtended: (_same_elements("src", "dst"),),
    Select: (_same_elements("predicate", "src", "on_false_tile", "dst"),),
    StreamShuffle: (_same_elements("src", "dst"), Rule("Mask entries are 0 to 31, or 255.", "documented",
                                                       "hardware.md 5.5", _shuffle_mask)),
    VectorTranspose: (Rule("At most 32 × 32, and dst has the shape of src turned.", "documented", "hardware.md 2.3",
                           _transposed),),
    SendReceive: (_same_elements("src", "peer_pattern"),),
}


@cache
def rules_of(cls: type[Instruction]) -> tuple[Rule, ...]:
    """Return every rule for words of a class: common ones, those of its operands, its own."""
    common = tuple(r for r in _COMMON if r.check is not _update_value or cls is not EventSemaphore)
    return (*common, *(_ON_CHIP if cls.OPERANDS else ()), *RULES.get(cls, ()))


def check(word: Instruction, target: str | Target = "gen3", engine: str | None = None) -> list[Problem]:
    """Return every rule that a word breaks on `target`, and in the stream of `engine` if that is named.

    An `Unknown` word gives one problem, since nothing else about it can be judged.
    """
    generation, cls = generation_of(target), type(word)
    if isinstance(word, Unknown):
        what = "extension word is cut off or has no class" if word.raw[0] == EXTENSION_OPCODE else "is not established"
        return [Problem("opcode", f"{word.raw[0]:#04x} {what}", "observed", "isa.md 6")]
    problems = []
    if generation not in cls.GENERATIONS:
        return [Problem("opcode", f"{cls.NAME} does not exist on {generation}", "observed", cls.CITE)]
    if engine is not None and engine not in cls.ENGINES:
        problems.append(Problem("opcode", f"{cls.NAME} is for {', '.join(cls.ENGINES)}, not {engine}", "observed", cls.CITE))
    if engine == "Pool":
        problems += [Problem(use.name, "Pool cannot reach PSUM", "documented", "hardware.md 2.4")
                     for use in _uses(word) if use.pattern.address >= PSUM_BASE]
    for rule in rules_of(cls):
        problems += [Problem(field, message, rule.provenance, rule.cite) for field, message in rule.check(word, generation)]
    return problems
