"""`neurontools disasm`."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.neff import open_neff
from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli
from tests.corpus.files import MATMUL_SMALL, find

NOP = b"\xa4\x10" + bytes(62)


def test_engines_words_and_source_lines(cli: Cli, program_file: Path, program_text: str) -> None:
    text = cli("disasm", program_file).out
    assert [line for line in text.splitlines() if line.endswith(":")] == ["PE:", "Activation:", "Pool:", "DVE:", "SP:"]
    line = 1 + program_text.splitlines().index("    PSEUDO_DMA_TRIGGER qIn block_id=0")
    assert f"# double.s:{line}\n     1  PSEUDO_DMA_TRIGGER   qIn block_id=0" in text
    assert "double.s" not in cli("disasm", program_file, "--no-source").out


def test_engines_and_ranges(cli: Cli, program_file: Path) -> None:
    text = cli("disasm", program_file, "-e", "dve", "-e", "ACT", "--range", "1:2", "--no-source").out
    assert [line.split()[:2] for line in text.splitlines() if line] == [
        ["Activation:"],
        ["1", "PSEUDO_DMA_TRIGGER"],
        ["DVE:"],
        ["1", "EVENT_SEMAPHORE"],
    ]
    assert "no instructions in range" in cli("disasm", program_file, "-e", "sp", "-r", "99:").out


def test_json(cli: Cli, program_file: Path) -> None:
    ended = cli("disasm", program_file, "-e", "dve", "-r", "2", "--raw", "--json")
    (row,) = checked_json(ended, "disasm")["engines"]["DVE"]
    stream = open_neff(program_file).subgraphs[0].streams["DVE"]
    assert (row["pc"], row["offset"], row["name"]) == (2, 128, "TENSOR_TENSOR")
    assert bytes.fromhex(row["raw"]) == stream[2].raw
    assert row["source"]["file"] == "double.s"


def test_asm_text_gives_the_words_back(cli: Cli, program_file: Path, tmp_path: Path) -> None:
    for engine in ("PE", "Activation", "DVE", "SP"):
        source = tmp_path / f"{engine}.s"
        source.write_text(cli("disasm", program_file, "--asm", "-e", engine).out)
        assert cli("asm", source, "-o", tmp_path / "out.bin").status == 0
        assert (tmp_path / "out.bin").read_bytes() == open_neff(program_file).subgraphs[0].stream_bytes(engine)


def test_raw_streams(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "SP.bin"
    path.write_bytes(NOP + b"\x7f" + bytes(63))
    text = cli("disasm", path, "--target", "trn1", "--raw").out
    assert text.startswith("SP:\n     0  NOP                  cycle=0\n        a410")
    assert "OPCODE_7F" in text.upper()
    extended = cli("disasm", path, "--dialect", "extended", "--json")
    assert checked_json(extended, "disasm")["dialect"] == "extended"


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["-e", "vpu"], 4, "no engine 'vpu'"),
        (["--subgraph", "3"], 4, "no subgraph 3"),
        (["--target", "trn1"], 2, "is for trn2"),
        (["--target", "trn9"], 3, "trn9"),
        (["--dialect", "extended"], 2, "says itself"),
        (["--range", "-1:"], 2, "negative"),
    ],
)
def test_bad_options(cli: Cli, program_file: Path, arguments: list[str], status: int, says: str) -> None:
    ended = cli("disasm", program_file, *arguments)
    assert ended.status == status and says in ended.error_line


def test_bad_streams(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "PE.bin"
    path.write_bytes(NOP[:-1])
    ended = cli("disasm", path)
    assert ended.status == 3 and "PE.bin" in ended.error_line
    assert cli("disasm", path, "-e", "pe", "-e", "act").status == 2
    assert cli("disasm", path, "--dialect", "latin").status == 3
    refuses_bad_files(cli, "disasm", tmp_path)


def test_a_real_file(cli: Cli, corpus: Path) -> None:
    path = find(corpus, MATMUL_SMALL)
    text = cli("disasm", path, "-e", "pe").out
    assert "MATMUL               S[5]++@complete acc_flags=3 src=fp16@0x37b00[1,0,0][128,1,1]" in text
    assert "test_spike_async.py:58" in text
