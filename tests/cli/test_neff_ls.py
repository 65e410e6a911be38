"""`neurontools neff ls`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli


def test_text_and_json_agree(cli: Cli, program_file: Path) -> None:
    result = checked_json(cli("neff", "ls", program_file, "--json"), "neff ls")
    sizes = {m["name"]: m["size"] for m in result["members"]}
    assert sizes["sg00/DVE.bin"] == 3 * 64 and result["bytes"] == sum(sizes.values())
    text = cli("neff", "ls", program_file).out
    assert [line.split()[-1] for line in text.splitlines()[1:-1]] == list(sizes)
    assert text.splitlines()[-1] == f"{len(sizes)} members, {result['bytes']:,} bytes"


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_files(cli, "neff ls", tmp_path)
