"""`neurontools compile explain`."""

from __future__ import annotations

from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def test_one_code_or_all(cli: Cli) -> None:
    result = checked_json(cli("compile", "explain", "NCC_EVRF035", "--json"), "compile explain")
    assert [one["name"] for one in result["codes"]] == ["EVRF035"]
    assert "implicit-integer-downcast" in cli("compile", "explain", "evrf035").out
    assert cli("compile", "explain").out.count("NCC_") == 60


def test_an_unknown_code_is_not_found(cli: Cli) -> None:
    ended = cli("compile", "explain", "NOPE")
    assert ended.status == 4
    assert "EVRF035" in ended.err
