"""`neurontools neff where`, and the whole chain in `disasm --source`."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.neff import open_neff
from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli
from tests.corpus.files import MATMUL_SMALL, find


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def test_a_line_gives_its_instructions(cli: Cli, program_file: Path, program_text: str) -> None:
    line = line_of(program_text, "EVENT_SEMAPHORE")
    (row,) = checked_json(cli("neff", "where", program_file, line, "--json"), "neff where")["instructions"]
    assert (row["engine"], row["pc"], row["name"]) == ("DVE", 1, "EVENT_SEMAPHORE")
    for place in (f"double.s:{line}", "DVE:1", "dve:1"):
        found = checked_json(cli("neff", "where", program_file, place, "--json"), "neff where")["instructions"]
        assert found == [row]
    assert {step["line"] for step in row["chain"] if step["line"]} == {line}


def test_a_file_gives_every_instruction_that_has_a_line(cli: Cli, program_file: Path) -> None:
    found = checked_json(cli("neff", "where", program_file, "double.s", "--json"), "neff where")["instructions"]
    graph = open_neff(program_file).subgraphs[0]
    places = {(engine, pc) for engine, stream in graph.streams.items() for pc in range(len(stream))
              if (where := graph.source_of(engine, pc)) is not None and where.line is not None}  # fmt: skip
    assert {(row["engine"], row["pc"]) for row in found} == places and len(found) == len(places) > 3


def test_long_lists_are_cut(cli: Cli, program_file: Path) -> None:
    text = cli("neff", "where", program_file, "double.s", "-n", "1").out
    assert "and 2 more; --lines 0 shows all" in text
    assert "more" not in cli("neff", "where", program_file, "double.s", "-n", "0").out


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("9999", "no instruction comes from line 9999; lines with instructions: "),
        ("double.s:9999", "no instruction comes from double.s:9999; lines with instructions: "),
        ("duoble.s:3", "did you mean double.s?"),
        ("kernel.xyz", "files: double.s"),
        ("PE:99", "sg00/PE has 2 instructions, numbered from 0; no 99"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(cli: Cli, program_file: Path, place: str, says: str) -> None:
    ended = cli("neff", "where", program_file, place)
    assert ended.status == 4 and says in ended.error_line


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_files(cli, "neff where", tmp_path, "12")


def test_source_lines_stand_above_their_words(cli: Cli, program_file: Path, program_text: str, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "double.s").write_text(program_text)
    text = cli("disasm", program_file, "-e", "sp", "--source", "--source-path", tmp_path / "src").out
    line = line_of(program_text, "PSEUDO_DMA_TRIGGER qIn")
    assert f"# double.s:{line}   PSEUDO_DMA_TRIGGER qIn block_id=0\n" in text and "#   BIR: SP-1" in text
    assert "BIR" not in cli("disasm", program_file, "-e", "sp").out
    (row,) = checked_json(cli("disasm", program_file, "-e", "sp", "-r", "1", "--source", "--json"), "disasm")[
        "engines"
    ]["SP"]
    assert row["chain"][0]["level"] == "BIR"
    assert cli("disasm", program_file, "--source", "--source-path", tmp_path / "none").status == 4


def test_the_chain_of_a_real_file_reaches_the_framework(cli: Cli, corpus: Path) -> None:
    (row,) = checked_json(cli("neff", "where", find(corpus, MATMUL_SMALL), "PE:9", "-g", "1", "--json"), "neff where")[
        "instructions"
    ]
    assert [(step["level"], step["name"]) for step in row["chain"]] == [
        ("BIR", "I-72-0"),
        ("Penguin", "float32<128 x 64> $72"),
        ("HLO", "%op0 = dot(%x, %y)"),
        ("framework", "hlo__dot_op0"),
    ]
    assert row["chain"][2]["line"] == 58 and row["chain"][2]["attributes"]["op_type"] == "NKIPy_Op"


def test_every_word_of_a_line_of_a_real_file_is_found(cli: Cli, corpus: Path) -> None:
    found = checked_json(
        cli("neff", "where", find(corpus, MATMUL_SMALL), "test_spike_async.py:58", "--json"), "neff where"
    )
    neff = open_neff(find(corpus, MATMUL_SMALL))
    expected = [
        (graph.name, engine, pc)
        for graph in neff.subgraphs
        for engine, stream in graph.streams.items()
        for pc in range(len(stream))
        if (where := graph.source_of(engine, pc)) is not None and where.line == 58
    ]
    assert [(row["subgraph"], row["engine"], row["pc"]) for row in found["instructions"]] == expected
    assert len(expected) == 20
    assert all(row["chain"][-1]["level"] == "framework" for row in found["instructions"])
