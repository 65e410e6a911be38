"""`neurontools neff info`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli


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
    path = corpus / "nkipy" / "spike" / "tests" / "artifacts" / "matmul_small.neff"
    result = checked_json(cli("neff", "info", path, "--json"), "neff info")
    assert (result["lnc"], result["target"]["name"], result["compiler"]) == (2, "trn2", "2.23.6484.0+3b612583")
    assert [t["name"] for t in result["inputs"]] == ["x", "y"]
    assert result["subgraphs"][0]["words"]["PE"] == 12
