"""`neurontools hlo tokens add`."""

from __future__ import annotations

from pathlib import Path

from formats.hlo import open_hlo
from formats.hlo.text import parse_module
from formats.hlo.verify import verify
from neurontools.hlo_interpreter import evaluate
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.cli.hlo_modules import COLLECTIVES, arguments, collectives


def test_tokens(cli: Cli, tmp_path: Path) -> None:
    file = collectives(tmp_path)
    ended = cli("hlo", "tokens", "check", file)
    assert ended.status == 1 and "stream 0: nothing orders %one and %three" in ended.out
    threaded, stripped = tmp_path / "threaded.pb", tmp_path / "stripped.pb"
    assert "4 collectives" in cli("hlo", "tokens", "add", file, "-o", threaded).out
    result = checked_json(cli("hlo", "tokens", "check", threaded, "--json"), "hlo tokens check")
    assert result["ordered"] and result["with_token"] == 4 and result["streams"] == [0, 1]
    assert verify(open_hlo(threaded)) == []
    given = arguments()
    expected = evaluate(parse_module(COLLECTIVES), given)
    assert [v.tolist() for v in evaluate(open_hlo(threaded), given)] == [v.tolist() for v in expected]
    assert checked_json(cli("hlo", "tokens", "strip", threaded, "-o", stripped, "--json"), "hlo tokens strip") == {
        "collectives": 4, "output": str(stripped)}  # fmt: skip
    assert cli("hlo", "diff", file, stripped).status == 0
    again = tmp_path / "again.pb"
    assert "0 collectives" in cli("hlo", "tokens", "add", threaded, "-o", again).out


def test_a_broken_module_gets_no_tokens(cli: Cli, tmp_path: Path) -> None:
    file = collectives(tmp_path)
    file.write_text(COLLECTIVES.replace("one = f32[4]", "one = f32[5]"))
    ended = cli("hlo", "tokens", "add", file, "-o", tmp_path / "out.pb")
    assert ended.status == 3 and "states f32[5]" in ended.error_line and not (tmp_path / "out.pb").exists()
