"""Whole streams of a public NEFF: every word decoded, printed, assembled, judged."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from formats import isa
from formats.neff import open_neff

FOLDER = "nkipy/spike/tests/artifacts"
# Words by opcode over both subgraphs. Source: isa.md 6 ("the two nkipy files alone").
TOTALS = {
    "LDWEIGHTS": 8712,
    "MATMUL": 33288,
    "TENSOR_TENSOR": 1024,
    "MEMSET": 128,
    "CAST": 128,
    "COPY": 68,
    "EVENT_SEMAPHORE": 7474,
    "PSEUDO_DMA_DIRECT2D": 8264 + 482 + 32,
}


def streams(corpus: Path, name: str) -> list[tuple[str, isa.Stream]]:
    path = corpus / FOLDER / name
    if not path.exists():
        pytest.skip(f"the corpus has no {FOLDER}/{name}")
    return [(engine, stream) for graph in open_neff(path).subgraphs for engine, stream in graph.streams.items()]


def test_the_two_programs_have_the_words_that_were_counted(corpus: Path) -> None:
    found: Counter[str] = Counter()
    for name in ("matmul_small.neff", "matmul_large.neff"):
        for _, stream in streams(corpus, name):
            for cls, table in isa.columns_by_class(stream.data).items():
                found[cls.NAME] += len(table["index"])
    assert {name: found[name] for name in TOTALS} == TOTALS and "UNKNOWN" not in found


def test_every_word_of_the_small_program_reads_back(corpus: Path) -> None:
    words = [(engine, word) for engine, stream in streams(corpus, "matmul_small.neff") for word in stream]
    assert len(words) == 58
    for engine, word in words:
        assert isa.assemble(word.asm, "gen3", "neuron") == word.raw
        assert isa.check(word, "gen3", engine) == []


def test_every_word_of_the_large_program_is_clean_and_printable(corpus: Path) -> None:
    total, distinct = 0, set()
    for engine, stream in streams(corpus, "matmul_large.neff"):
        for word in stream:
            total += 1
            assert isa.check(word, "gen3", engine) == []
            # Words that differ only in what they wait for print alike apart from that: assemble each kind once.
            kind = engine, word.raw[:4], word.raw[12:]
            if kind not in distinct:
                distinct.add(kind)
                if len(distinct) % 8 == 0:
                    assert isa.assemble(word.asm, "gen3", "neuron") == word.raw
    assert total == 59590
