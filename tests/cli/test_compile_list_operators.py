"""`neurontools compile list-operators`."""

from __future__ import annotations

from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def test_what_is_compiled(cli: Cli) -> None:
    listed = checked_json(cli("compile", "list-operators", "--framework", "XLA", "--json"), "compile list-operators")
    assert {"dot", "while", "scatter", "convolution", "call"} <= set(listed["operators"])
    assert "AwsNeuronTopK" in listed["custom_calls"]
    assert "infeed" not in cli("compile", "list-operators").out.split()


def test_only_xla(cli: Cli) -> None:
    assert cli("compile", "list-operators", "--framework", "TF").status == 2
