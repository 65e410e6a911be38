"""Text of whole public programs against the text that AWS's profiler printed for the same words."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from formats import isa
from formats.neff import open_neff
from tools.isa_counts import LABELS, compared_texts, plain_text


def programs(corpus: Path) -> list[Path]:
    found = [path for path in sorted(corpus.rglob("*.neff")) if (path.parent / "json_reports").is_dir()]
    if not found:
        pytest.skip("no NEFF with json_reports beside it below NEURONTOOLS_CORPUS")
    return found


def test_every_word_prints_as_the_profiler_printed_it(corpus: Path) -> None:
    totals: Counter[str] = Counter()
    for path in programs(corpus):
        for stage, word, name, text in compared_texts(path):
            assert (word.name, plain_text(word.operands)) == (name, text), path
            totals[stage] += 1
    if len(programs(corpus)) == 10:
        assert totals == {"compiler": 3399, "loaded": 6175}  # isa.md 14.1, with the 100 b1 words


def test_the_profilers_own_text_assembles_to_the_word(corpus: Path) -> None:
    """What the profiler prints is all that our assembler needs, but for what no text says."""
    for path in programs(corpus)[:2]:
        for stage, word, name, text in compared_texts(path):
            if stage == "compiler":
                parsed = isa.parse_instruction(f"{name} {text}", "gen3", "neuron")
                assert parsed.text == word.text
                if word.asm == word.text:
                    assert parsed.raw == word.raw


def test_the_debug_chain_is_the_profilers(corpus: Path) -> None:
    """BIR and Penguin ids and names of every word that the profile lists."""
    checked = 0
    for path in programs(corpus):
        neff = open_neff(path)
        graphs = {graph.name: graph for graph in neff.subgraphs}
        (profile,) = path.parent.glob(f"json_reports/{path.stem}*_profile_full.json")
        for row in json.loads(profile.read_text())["instruction"]:
            if "compiler_pc" not in row or not row["bir_id"]:
                continue
            chain = graphs[row["subgraph"]].chain_of(LABELS[row["label"]], row["compiler_pc"])
            levels = {step.level: step for step in chain}
            assert levels["BIR"].name == row["bir_instruction_name"]
            assert levels["BIR"].id == row["raw_bir_id"] & 0xFFFFFFFF
            if row["penguin_id"]:
                assert levels["Penguin"].id == row["raw_penguin_id"]
            checked += 1
    assert checked > 1000
