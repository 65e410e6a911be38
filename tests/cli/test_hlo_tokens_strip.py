"""`neurontools hlo tokens strip`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cli
from tests.cli.hlo_modules import collectives


def test_a_module_without_tokens_stays_as_it_is(cli: Cli, tmp_path: Path) -> None:
    file, output = collectives(tmp_path), tmp_path / "out.pb"
    assert cli("hlo", "tokens", "strip", file, "-o", output).status == 0
    assert cli("hlo", "diff", file, output).status == 0
    assert cli("hlo", "tokens", "strip", tmp_path / "none", "-o", output).status == 4
