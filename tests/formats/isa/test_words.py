"""Golden words: packed by hand from the layout tables (words.json), and published words where they are at hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from formats import isa

WORDS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "words.json").read_text())["words"]


@pytest.mark.parametrize("row", WORDS, ids=lambda row: row["text"][:60])
def test_a_word_prints_and_assembles_as_written_down(row: dict[str, Any]) -> None:
    raw = bytes.fromhex(row["hex"])
    for arch in row["archs"]:
        word = isa.decode(raw, arch, row["dialect"])
        assert (word.text, word.asm, word.encode()) == (row["text"], row["asm"], raw)
        assert isa.assemble(row["asm"], arch, row["dialect"]) == raw
        assert isa.decode_stream(raw, arch, row["dialect"])[0] == word


def test_every_class_has_a_golden_word() -> None:
    seen = {type(isa.decode(bytes.fromhex(row["hex"]), row["archs"][0], row["dialect"])) for row in WORDS}
    assert seen == {*isa.CLASSES, isa.Unknown}


def test_golden_words_obey_the_rules() -> None:
    for row in WORDS:
        word = isa.decode(bytes.fromhex(row["hex"]), row["archs"][-1], row["dialect"])
        assert isinstance(word, isa.Unknown) or isa.check(word, row["archs"][-1]) == []


def published(text: str) -> str:
    """Return profiler text without labels, dollar signs and double blanks: what isa.md 12 says to compare."""
    text = re.sub(r" \((?:Tensor|Vector|Scalar|Sync|GpSimd|q[^)]*)\)", "", text)
    return " ".join(text.replace("$S[", "S[").replace("$E[", "E[").split())


def test_published_words(reference_data: Path) -> None:
    vectors = json.loads((reference_data / "isa_vectors.json").read_text())["vectors"]
    texts = 0
    for vector in vectors:
        raw, arch = bytes.fromhex(vector["hex"]), vector["arch"]
        word = isa.decode(raw, arch, "neuron")
        assert not isinstance(word, isa.Unknown)
        assert word.encode() == raw and isa.assemble(word.asm, arch, "neuron") == raw
        assert isa.check(word, arch, vector["engine"]) == []
        if word.asm == word.text:
            assert isa.assemble(word.text, arch, "neuron") == raw
        if vector["name"]:
            texts += 1
            assert (word.name, published(word.operands)) == (vector["name"], published(vector["text"]))
            # What the profiler prints reads back too, as far as it says everything.
            parsed = isa.parse_instruction(f"{vector['name']} {vector['text']}", arch, "neuron")
            assert parsed.text == word.text
    assert (len(vectors), texts) == (400, 199)
