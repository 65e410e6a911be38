"""`neurontools asm`."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.isa import decode_stream
from formats.neff import open_neff
from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def test_a_neff_is_written(cli: Cli, program_text: str, tmp_path: Path) -> None:
    source = tmp_path / "double.s"
    source.write_text(program_text)
    ended = cli("asm", source)
    assert ended.status == 0
    assert ended.out.startswith(f"{tmp_path / 'double.neff'}: 8 instructions for trn2 (SP 2, DVE 3, Activation 3), ")
    neff = open_neff(tmp_path / "double.neff")
    assert neff.verify() == []
    block = neff.subgraphs[0].dma_blocks["qIn", 0]
    assert (block.semaphore, block.descriptors[0].source, block.descriptors[0].target_offset) == (8, "x", 0x4000)
    assert neff.subgraphs[0].constant("two") == bytes.fromhex("00000040") * 128


def test_the_same_text_gives_the_same_bytes(cli: Cli, program_text: str, tmp_path: Path) -> None:
    source = tmp_path / "double.s"
    source.write_text(program_text)
    for name in ("a.neff", "b.neff"):
        assert cli("asm", source, "-o", tmp_path / name).status == 0
    assert (tmp_path / "a.neff").read_bytes() == (tmp_path / "b.neff").read_bytes()


def test_raw_words_and_json(cli: Cli, tmp_path: Path) -> None:
    source = tmp_path / "nops.s"
    source.write_text(".engine sp\nNOP cycle=0\nNOP S[3]>=1 cycle=5  # last\n")
    result = checked_json(cli("asm", source, "--raw", "--json"), "asm")
    assert result == {
        "output": str(tmp_path / "nops.bin"), "target": "trn2", "dialect": "neuron", "words": {"SP": 2}, "size": 128,
    }  # fmt: skip
    first, second = decode_stream((tmp_path / "nops.bin").read_bytes())
    assert (first.cycle, second.cycle, second.wait.value) == (0, 5, 1)


def test_activation_functions_come_into_the_file_s_table(cli: Cli, tmp_path: Path) -> None:
    from formats.isa import BY_NAME, ActivationFunction

    word = BY_NAME["ACTIVATE"](function=ActivationFunction.EXP)
    source = tmp_path / "exp.s"
    source.write_text(f".engine act\n{word.asm}\n")
    assert cli("asm", source).status == 0
    functions = open_neff(tmp_path / "exp.neff").subgraphs[0].activation_functions
    assert [(f.func_id, f.name) for f in functions] == [(7, "exp")]


@pytest.mark.parametrize(
    ("text", "status", "says"),
    [
        (".engine sp\nNOP cycle=zero\n", 3, "bad.s:2: "),
        (".colour red\n", 3, "bad.s:1: "),
        (".constant x float32 [1, 1] 1e39\n", 3, "a value does not fit float32"),
        (".constant x bfloat16 [1, 1] 4e38\n", 3, "a value does not fit bfloat16"),
        (
            ".queue q sp\n.input x float32 [4]\n.dma q 0 8 x+0[1][4] -> SB+0[1][8]\n",
            3,
            "bad.s:3: the two sides of a .dma differ in elements, expected 4 of uint8, found 8 of uint8",
        ),
    ],
)
def test_bad_programs_write_nothing(cli: Cli, tmp_path: Path, text: str, status: int, says: str) -> None:
    (tmp_path / "bad.s").write_text(text)
    ended = cli("asm", tmp_path / "bad.s")
    assert ended.status == status and says in ended.error_line
    assert [p.name for p in tmp_path.iterdir()] == ["bad.s"]


def test_bad_usage(cli: Cli, program_text: str, tmp_path: Path) -> None:
    source = tmp_path / "double.s"
    source.write_text(program_text)
    assert "one engine" in cli("asm", source, "--raw").error_line
    assert cli("asm", source, "-o", tmp_path / "no" / "x.neff").status == 4
    assert cli("asm", tmp_path / "none.s").status == 4
    assert cli("asm", source, "--target", "trn1").status == 3
    source.write_bytes(b"NOP \xff")
    ended = cli("asm", source)
    assert ended.status == 3 and "0x000004: not text in UTF-8" in ended.error_line


def test_examples_assemble(cli: Cli, root: Path, tmp_path: Path) -> None:
    for source in sorted((root / "examples").glob("*.s")):
        assert cli("asm", source, "-o", tmp_path / "x.neff").status == 0
        problems = open_neff(tmp_path / "x.neff").verify()
        # What never ends gives nothing back.
        assert problems == [] or (
            source.stem == "livelock" and [one.message for one in problems] == ["the graph has no output"]
        )
