"""`neurontools neff info`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli
from tests.corpus.files import MATMUL_SMALL, find


def test_text_tells_target_tensors_and_words(cli: Cli, program_file: Path) -> None:
    ended = cli("neff", "info", program_file)
    assert ended.status == 0 and ended.err == ""
    first, *rest = ended.out.splitlines()
    assert first == "double.neff: NEFF for trn2 (cayman, gen3), LNC 1"
    assert "x       float32  [128, 64]  32,768" in rest
    assert any(line.split()[:6] == ["sg00", "2", "3", "2", "3", "2"] for line in rest)


def test_json(cli: Cli, program_file: Path) -> None:
    result = checked_json(cli("neff", "info", program_file, "--json"), "neff info")
    assert result["target"] == {"name": "trn2", "generation": "gen3", "arch": "cayman"}
    assert result["outputs"] == [{"name": "y", "dtype": "float32", "shape": [128, 64], "size": 32768}]
    assert result["subgraphs"][0]["words"] == {"PE": 2, "Activation": 3, "Pool": 2, "DVE": 3, "SP": 2}
    assert result["file_bytes"] == program_file.stat().st_size
    assert result["header"]["name"] == "double"


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_files(cli, "neff info", tmp_path)


def test_a_real_file(cli: Cli, corpus: Path) -> None:
    path = find(corpus, MATMUL_SMALL)
    result = checked_json(cli("neff", "info", path, "--json"), "neff info")
    assert (result["lnc"], result["target"]["name"], result["compiler"]) == (2, "trn2", "2.23.6484.0+3b612583")
    assert [t["name"] for t in result["inputs"]] == ["x", "y"]
    assert result["subgraphs"][0]["words"]["PE"] == 12


def test_a_checked_compiler_and_our_own_are_told_apart(cli: Cli, corpus: Path, program_file: Path) -> None:
    path = find(corpus, MATMUL_SMALL)
    assert checked_json(cli("neff", "info", path, "--json"), "neff info")["checked"]["how"] == "checked"
    own = checked_json(cli("neff", "info", program_file, "--json"), "neff info")["checked"]
    assert own["how"] == "own" and own["words"] == own["reencoded"] > 0


def test_an_unknown_compiler_is_said_to_be_unchecked(cli: Cli, program_file: Path, tmp_path: Path) -> None:
    folder, changed = tmp_path / "folder", tmp_path / "changed.neff"
    assert cli("neff", "unpack", program_file, folder).status == 0
    text = json.loads((folder / "info.json").read_text())
    (folder / "info.json").write_text(json.dumps({**text, "tool_version": "9.9.9.0+abcdef"}))
    stream = bytearray((folder / "sg00" / "DVE.bin").read_bytes())
    stream[64] = 0x77  # an opcode that no class has
    (folder / "sg00" / "DVE.bin").write_bytes(stream)
    assert cli("neff", "pack", folder, "-o", changed).status == 0
    engines = ("PE", "Activation", "Pool", "DVE", "SP")
    words = sum(len((folder / "sg00" / f"{engine}.bin").read_bytes()) // 64 for engine in engines)
    found = checked_json(cli("neff", "info", changed, "--json"), "neff info")["checked"]
    assert (found["how"], found["words"], found["reencoded"]) == ("unchecked", words, words - 1)
    assert found["sampled"] is False
    assert (
        "11 of 12 words (91.66 %) byte for byte; not checked on files of this compiler version"
        in cli("neff", "info", changed).out
    )
