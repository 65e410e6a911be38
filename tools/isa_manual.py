"""The manual page neuron-isa(7), in roff, from the declarations of the instruction classes.

`python -m tools` renews it; a test fails while it is stale.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from formats import isa
from formats.dtypes import DTYPES
from formats.isa import enums
from formats.isa.field import BitFlag, Enumeration, Field, Nibble
from formats.isa.operand import Pattern, Pointer
from formats.isa.rules import rules_of
from tools import roff
from tools.roff import roff as _text

__all__ = ["PATH", "files", "page"]

PATH = "man/man7/neuron-isa.7"
ENGINE_WORDS = {"PE": "Tensor", "Activation": "Scalar", "Pool": "GpSimd", "DVE": "Vector", "SP": "Sync"}
PROVENANCE_WORDS = {
    "documented": "said in AWS's public documentation",
    "observed": "seen in public files, and confirmed by published profiler text or by executing them",
    "inferred": "consistent with every public file, but constant there or shown by one indirect proof",
    "ours": "defined by neurontools; hardware knows nothing of it",
}
# Codes of 0x80 and up (function ids: 0xC0) are ours, whatever else the enumeration holds.
OURS_FROM = {enums.AluOp: 0x80, enums.BranchCompare: 0x80, enums.ActivationFunction: 0xC0}


def files() -> dict[str, str]:
    """Return the page by its path."""
    return {PATH: page()}


def page() -> str:
    """Return the roff of the whole page."""
    lines = [
        "'\\\" t",
        roff.title("NEURON-ISA", 7, "Instruction Set"),
        ".SH NAME",
        "neuron\\-isa \\- instruction words of AWS Neuron engines as neurontools reads, writes and executes them",
    ]
    for part in (_description, _header, _grammar, _patterns, _rules, _instructions, _extensions, _enumerations):
        lines += part()
    lines += [
        ".SH SEE ALSO",
        ", ".join(f"\\fB{_text(name)}\\fR(1)" for name in ("neurontools", "neurontools-asm", "neurontools-disasm")),
    ]
    return "\n".join(lines) + "\n"


def _description() -> Iterator[str]:
    yield ".SH DESCRIPTION"
    yield _text(
        f"A NeuronCore has five engines ({', '.join(f'{e}: {w}' for e, w in ENGINE_WORDS.items())}). Each executes its "
        "own stream of little-endian words of 64 bytes, in order; they meet only through semaphores and events. No "
        "instruction set manual is public. This page says what neurontools knows, field by field, and how."
    )
    yield ".PP"
    yield "Every word and field has a provenance:"
    for word, meaning in PROVENANCE_WORDS.items():
        yield from (".TP", f"\\fB{word}\\fR", _text(meaning[0].upper() + meaning[1:] + "."))
    yield ".PP"
    yield _text(
        'Sources such as isa.md 7 are sections of the reference pages: "neurontools reference isa.md 7" prints one.'
    )
    yield ".PP"
    yield _text(
        "Two dialects share one decoder. In the neuron dialect, that of real files, whatever is ours is "
        "unknown. In the extended dialect, which a file declares among its features, words and codes of ours "
        "have their meaning too. A word that no class explains prints as OPCODE_xx with all its bytes and "
        "reads back unchanged. Bits that no field names are 0 in every public word."
    )


def _header() -> Iterator[str]:
    yield ".SH WORD HEADER"
    yield "Bytes 0 to 11 are the same in every word."
    yield from _field_table(isa.Instruction.HEADER.values(), "")
    yield ".PP"
    yield _text(
        "A word starts when its wait holds, and signals when it completes. Only EVENT_SEMAPHORE has a second "
        "wait and a second update."
    )


def _grammar() -> Iterator[str]:
    yield ".SH TEXT"
    yield "A line is the name, then wait, update and operands, with blanks between them:"
    yield from _example(
        "MATMUL S[8]>=16 S[5]++@complete acc_flags=3 src=fp16@0x37b00[1,0,0][128,1,1] "
        "dst=0x2000800[1,0,0][128,1,1] 128*128"
    )
    yield from _table(
        ("text", "meaning"),
        [
            ("S[I]>=V  S[I]==V  S[I]>V", "wait for semaphore I"),
            ("E[I]==1-", "wait for event I, then clear it"),
            ("S[I]++@complete  S[I]--@complete", "count semaphore I up or down"),
            ("S[I]+=V@complete  S[I]=V@complete", "add to semaphore I, or set it (second slot of EVENT_SEMAPHORE)"),
            ("E[I]+@complete", "set event I"),
            ("waitM[I]:V  updateM[I]:V@complete", "a mode without a name"),
            ("DTYPE@0xADDRESS[STEPS][COUNTS]", "an access pattern, innermost dimension first, steps in elements"),
            ("imm=A,B imm_src=INSTRUCTION,PTR", "immediates: a float, i and an integer, or a hexadecimal address"),
            ("{FIELD=BITS ...}", "fields that the grammar does not print, where they are not as in a fresh word"),
            ("{raw=HEX}", "all bytes, where bits are set that no field has"),
            ("OPCODE_xx bytes=HEX", "a word without a class: bytes 12 and up"),
        ],
    )
    yield ".PP"
    yield _text(
        "Without braces this is the profiler's text for the same word. Queue and engine names in parentheses, "
        "and $ before S, E and R, are read and not needed. # begins a comment."
    )


def _patterns() -> Iterator[str]:
    yield ".SH ADDRESSES"
    yield _text(
        f"SBUF is partition × 0x{isa.SBUF_PARTITION_STRIDE:x} + byte (observed); PSUM is 0x{isa.PSUM_BASE:x} + "
        f"partition × 0x{isa.PSUM_PARTITION_STRIDE:x} + byte (base observed, stride ours). An operand "
        "covers the same bytes in each of its partitions. Patterns of real words hold 3 or 4 dimensions of "
        "16-bit steps and counts; those of extension words 5 of 32 bits."
    )


def _rules() -> Iterator[str]:
    yield ".SH RULES"
    yield "Every word obeys these, words with on\\-chip operands those of operands too. Instructions name their own."
    for rule in rules_of(isa.Copy):
        if rule not in isa.Copy.RULES:
            yield from (".TP", "\\(bu", f"{_text(rule.doc)} ({rule.provenance}; {_cite(rule.cite)})")


def _instructions() -> Iterator[str]:
    yield ".SH INSTRUCTIONS"
    yield "Words of real files, by opcode."
    for cls in sorted((c for c in isa.CLASSES if c.CODE < 0), key=lambda c: c.OPCODE):
        yield from _class(cls, f"{cls.NAME} (0x{cls.OPCODE:02x})")


def _extensions() -> Iterator[str]:
    yield ".SH EXTENSION WORDS"
    yield _text(
        "Instructions without a publicly known encoding have words of ours behind the escape opcode "
        f"0x{isa.EXTENSION_OPCODE:x}, which no public file shows. Bytes 12-13 hold the extension code, bytes "
        "14-15 the length in units of 64 bytes, so a word takes any multiple of 64 bytes. They exist in the "
        "extended dialect only; one that is cut off, or whose code or length has no class, is an unknown word."
    )
    for cls in sorted((c for c in isa.CLASSES if c.CODE >= 0), key=lambda c: c.CODE):
        yield from _class(cls, f"{cls.NAME} (code {cls.CODE}, {cls.SIZE} bytes)")


def _class(cls: type[isa.Instruction], title: str) -> Iterator[str]:
    yield f'.SS "{_text(title)}"'
    yield _text(" ".join((cls.__doc__ or "").split()))
    yield from _example(cls.synopsis())
    yield ".PP"
    engines = ", ".join(ENGINE_WORDS[engine] for engine in cls.ENGINES)
    yield _text(
        f"Engines: {engines}. Generations: {', '.join(cls.GENERATIONS)}. Word: {cls.PROVENANCE}; {_cite(cls.CITE)}."
    )
    own = [field for name, field in cls.FIELDS.items() if name not in isa.Instruction.HEADER]
    if own:
        yield from _field_table(sorted(own, key=lambda f: (f.offset, f.mask, f.alias)), cls.CITE)
    if cls.RULES:
        yield ".PP"
        yield "Rules: " + _text(" ".join(f"{rule.doc} ({rule.provenance})" for rule in cls.RULES))


def _enumerations() -> Iterator[str]:
    yield ".SH ENUMERATIONS"
    for name in sorted(enums.__all__):
        enum = getattr(enums, name)
        limit = OURS_FROM.get(enum, 256)
        yield f'.SS "{name}"'
        yield _text(" ".join((enum.__doc__ or "").split()))
        ours = _is_ours(enum)
        rows = [(f"0x{int(code):02x}", code.name, "ours" if ours or code >= limit else "") for code in enum]
        yield from _table(("code", "name", ""), rows)
    yield '.SS "Element types"'
    yield _text("As nrt_dtype_t numbers them; 0x80 and up are ours.")
    yield from _table(
        ("code", "text", "bytes", "NumPy", "provenance"),
        [
            (f"0x{int(code):02x}", info.spelling, str(info.size), info.numpy_name or "-", info.provenance)
            for code, info in DTYPES.items()
        ],
    )


def _is_ours(enum: Any) -> bool:
    fields = [f for cls in isa.CLASSES for f in cls.FIELDS.values() if isinstance(f, Enumeration) and f.enum is enum]
    return bool(fields) and all(field.provenance == "ours" for field in fields)


def _field_table(fields: Iterable[Field[Any]], cite: str) -> Iterator[str]:
    rows = []
    for field in fields:
        source = "" if not field.cite or field.cite in (cite, "ours") else f"; {_cite(field.cite)}"
        rows.append((_bits(field), field.name, _kind(field), f"{_meaning(field)} ({field.provenance}{source})"))
    return _table(("bytes", "field", "kind", "meaning"), rows)


def _bits(field: Field[Any]) -> str:
    if isinstance(field, BitFlag):
        return f"{field.offset}.{field.bit}"
    if isinstance(field, Nibble):
        return f"{field.offset}.{field.shift}-{field.shift + 3}"
    return str(field.offset) if field.size == 1 else f"{field.offset}-{field.offset + field.size - 1}"


def _kind(field: Field[Any]) -> str:
    if isinstance(field, Enumeration):
        return "Dtype" if field.enum.__name__ == "Dtype" else field.enum.__name__
    if isinstance(field, Pattern):
        return f"pattern{field.dims}{'w' if field.wide else ''} {field.role}"
    if isinstance(field, Pointer):
        return f"pointer {field.role}"
    if field.kind == "integer":
        return f"{'i' if getattr(field, 'signed', False) else 'u'}{8 * field.size}"
    return field.kind


def _meaning(field: Field[Any]) -> str:
    unit = f", {field.unit}" if field.unit and field.unit not in field.doc else ""
    default = field.default
    shown = isinstance(default, int | float) and default and not field.alias
    return f"{field.doc}{unit}" + (f"; {_default(default)} unless set" if shown else "")


def _default(value: Any) -> str:
    return str(value.name) if hasattr(value, "name") else str(value)


def _cite(cite: str) -> str:
    return "neurontools" if cite == "ours" else cite


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Give a tbl(1) table whose last column wraps."""
    yield ".TS"
    yield "tab(|);"
    yield " ".join("lB" for _ in head)
    yield " ".join(["l"] * (len(head) - 1) + ["lx"]) + "."
    yield "|".join(head)
    for row in rows:
        yield "|".join(_cell(text) for text in row[:-1]) + "|T{"
        yield _text(row[-1])
        yield "T}"
    yield ".TE"


def _cell(text: str) -> str:
    return _text(text).replace("|", "\\[ba]")


def _example(text: str) -> Iterator[str]:
    yield ".PP"
    yield ".RS 4"
    yield ".na"
    yield _text(text)
    yield ".ad"
    yield ".RE"
