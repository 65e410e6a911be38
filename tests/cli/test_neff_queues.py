"""`neurontools neff queues`."""

from __future__ import annotations

from pathlib import Path

from formats import isa
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli
from tests.corpus.files import MATMUL_SMALL, find


def test_queues_with_their_transfers(cli: Cli, program_file: Path) -> None:
    rows = [line.split() for line in cli("neff", "queues", program_file).out.splitlines()[1:]]
    assert rows == [["qIn", "data", "sp", "16", "8-23", "1", "0"], ["qOut", "data", "act", "16", "24-39", "1", "0"]]


def test_json(cli: Cli, program_file: Path) -> None:
    result = checked_json(cli("neff", "queues", program_file, "--json"), "neff queues")
    assert [(q["name"], q["blocks"], q["semaphores"][0]) for q in result["queues"]] == [("qIn", 1, 8), ("qOut", 1, 24)]


def test_every_word_that_describes_a_transfer_is_counted(cli: Cli, tmp_path: Path) -> None:
    words = "\n".join(cls().asm for cls in (isa.PseudoDmaDirect2d, isa.DmaDirect2d, isa.DmaIndirect))
    program = parse_program(f".target trn2\n.dialect extended\n.queue qSPDynamic sp\n.engine sp\n{words}\n")
    path = tmp_path / "words.neff"
    path.write_bytes(to_neff(program))
    result = checked_json(cli("neff", "queues", path, "--json"), "neff queues")
    assert [(queue["name"], queue["words"]) for queue in result["queues"]] == [("qSPDynamic", 3)]
    assert len(checked_json(cli("neff", "dma", path, "--json"), "neff dma")["words"]) == 3


def test_words_are_counted_in_a_real_file(cli: Cli, corpus: Path) -> None:
    path = find(corpus, MATMUL_SMALL)
    result = checked_json(cli("neff", "queues", path, "--json"), "neff queues")
    assert {q["name"]: q["words"] for q in result["queues"]} == {"qPoolDynamic": 4, "qSPDynamicHW": 1}


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_files(cli, "neff queues", tmp_path)
