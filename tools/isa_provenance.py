"""docs/isa-provenance.md: every field of every real word, how it is known, and on how many words of public files.

`python -m tools` renews the page from the declarations and docs/isa-counts.json; a test fails while it is stale.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from formats import isa
from formats.cites import markdown
from formats.isa import Instruction
from formats.isa.field import BitFlag, Field, Nibble
from tools.isa_counts import load
from tools.isa_manual import PROVENANCE_WORDS

__all__ = ["PATH", "files", "page"]

PATH = "docs/isa-provenance.md"
# Names in the header that every word has; told once.
_HEADER = tuple(Instruction.HEADER)


def files() -> dict[str, str]:
    """Return the page by its path."""
    return {PATH: page()}


def page() -> str:
    """Return the Markdown of the whole page."""
    found = load()
    real = [cls for cls in isa.CLASSES if cls.DIALECT == "neuron"]
    ours = [cls for cls in isa.CLASSES if cls.DIALECT != "neuron"]
    lines = [*_opening(found, real), *_summary(found, real), *_header(found, real)]
    for cls in real:
        lines += _class(cls, found["classes"].get(cls.NAME))
    lines += _extensions(ours)
    return "\n".join(lines) + "\n"


def _opening(found: dict[str, Any], real: list[type[Instruction]]) -> Iterator[str]:
    files, rows = found["files"], found["classes"].values()
    words = sum(one["words"] for one in files)
    compilers = ", ".join(sorted({f"{one['compiler']} for {one['target']}" for one in files}))
    text, loaded = sum(row["text"] for row in rows), sum(row["loaded_text"] for row in rows)
    yield "<!-- Made by `python -m tools`; do not edit. -->"
    yield "# How the instruction words are known"
    yield ""
    yield from _paragraph(
        "No instruction set manual of the Neuron engines is public. This page says, field by field, how neurontools "
        f"knows what it reads, and on how many words. The counts are of {len(files)} public files with {words:,} words "
        f"({compilers}) and of the {sum(row['loaded'] for row in rows):,} words that the runtime had loaded in the "
        "captures beside them. Words of trn1 were checked on public files that carry no licence "
        f"({_source('isa.md 1, 14')}: 328,305 words of both targets); nothing of those is counted here."
    )
    yield from _paragraph(
        f"AWS's profiler printed the operands of {text:,} compiler words and {loaded:,} loaded words of these files: "
        "what neurontools prints is the same for every one. Every word encodes to its own bytes again from its fields."
    )
    yield "| provenance | meaning | classes | fields |"
    yield "|---|---|---:|---:|"
    classes = Counter(cls.PROVENANCE for cls in real)
    fields = Counter(field.provenance for cls in real for name, field in cls.FIELDS.items() if name not in _HEADER)
    fields.update(field.provenance for field in Instruction.HEADER.values())
    for word, meaning in PROVENANCE_WORDS.items():
        yield f"| {word} | {meaning} | {classes[word]} | {fields[word]} |"
    yield ""
    yield from _paragraph(
        "To check files of your own, and report words that are not here: "
        "`neurontools neff survey DIR --anonymous --json`."
    )


def _paragraph(text: str) -> Iterator[str]:
    yield from wrap(text, 128, break_long_words=False, break_on_hyphens=False)
    yield ""


def _summary(found: dict[str, Any], real: list[type[Instruction]]) -> Iterator[str]:
    yield "## Instructions"
    yield ""
    yield from _paragraph(
        "*Words* are those that the compiler wrote, *loaded* those in captures, *text* how many words had published "
        "text, compiler and loaded, all of it equal."
    )
    yield "| instruction | opcode | generations | provenance | source | words | loaded | text |"
    yield "|---|---|---|---|---|---:|---:|---:|"
    for cls in real:
        row = found["classes"].get(cls.NAME, {"words": 0, "loaded": 0, "text": 0, "loaded_text": 0})
        yield (
            f"| [{cls.NAME}](#{cls.NAME.lower()}) | 0x{cls.OPCODE:02x} | {', '.join(cls.GENERATIONS)} "
            f"| {cls.PROVENANCE} | {_source(cls.CITE)} | {row['words']:,} | {row['loaded']:,} "
            f"| {row['text']:,} + {row['loaded_text']:,} |"
        )
    yield ""


def _header(found: dict[str, Any], real: list[type[Instruction]]) -> Iterator[str]:
    yield "## Header of every word"
    yield ""
    yield from _paragraph(
        "*Set* counts the words in which the field is not as in a fresh word, *values* the different values in all "
        "words: the compiler's, or of instructions that only the loader writes those in captures."
    )
    yield "| field | bytes | provenance | source | set | values | what |"
    yield "|---|---|---|---|---:|---:|---|"
    for name, field in Instruction.HEADER.items():
        rows = [row["fields"][name] for row in found["classes"].values() if name in row["fields"]]
        several = max((row["values"] for row in rows), default=0)
        number = f"{sum(row['set'] for row in rows):,}"
        yield _row(name, field, "isa.md 1, 2", number, f"up to {several:,} of one instruction")
    yield ""


def _class(cls: type[Instruction], row: dict[str, Any] | None) -> Iterator[str]:
    yield f"## {cls.NAME}"
    yield ""
    said = "No word of the files above"
    if row is not None:
        texts = f"text of {row['text']:,} and {row['loaded_text']:,}"
        said = f"{row['words']:,} compiler words, {row['loaded']:,} loaded; {texts}"
    yield f"Opcode 0x{cls.OPCODE:02x}, {cls.PROVENANCE} ({_source(cls.CITE)}). {said}."
    yield ""
    own = {name: field for name, field in cls.FIELDS.items() if name not in _HEADER}
    if not own:
        yield "No fields of its own."
        yield ""
        return
    yield "| field | bytes | provenance | source | set | values | what |"
    yield "|---|---|---|---|---:|---:|---|"
    for name, field in own.items():
        counted = row["fields"].get(name) if row is not None else None
        number, values = (f"{counted['set']:,}", f"{counted['values']:,}") if counted else ("-", "-")
        yield _row(name, field, cls.CITE, number, values)
    yield ""


def _row(name: str, field: Field[Any], cite: str, number: str, values: str) -> str:
    doc = field.doc.replace("|", "\\|")
    source = _source(field.cite or cite)
    return f"| `{name}` | {_place(field)} | {field.provenance} | {source} | {number} | {values} | {doc} |"


def _source(cite: str) -> str:
    return markdown(cite, "reference")


def _place(field: Field[Any]) -> str:
    last = field.offset + field.size - 1
    where = str(field.offset) if field.size == 1 else f"{field.offset} to {last}"
    if isinstance(field, BitFlag):
        return f"{where} bit {field.bit}"
    if isinstance(field, Nibble):
        return f"{where} bits {'7 to 4' if field.shift else '3 to 0'}"
    return where


def _extensions(ours: list[type[Instruction]]) -> Iterator[str]:
    yield "## Words of our own"
    yield ""
    yield from _paragraph(
        "Where NKI documents an instruction whose word no public file shows, neurontools has one of its own, behind an "
        "opcode that real files do not use and only in files that say so. Meaning and limits are from AWS's "
        "documentation, every bit is ours."
    )
    yield "| instruction | code | generations | what |"
    yield "|---|---:|---|---|"
    for cls in ours:
        doc = " ".join((cls.__doc__ or "").split()).partition(". ")[0].rstrip(".").replace("|", "\\|")
        yield f"| {cls.NAME} | {cls.CODE} | {', '.join(cls.GENERATIONS)} | {doc} |"
