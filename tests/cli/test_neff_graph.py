"""`neurontools neff graph`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli


def test_graph_leads_from_inputs_to_outputs(cli: Cli, program_file: Path) -> None:
    result = checked_json(cli("neff", "graph", program_file, "--json"), "neff graph")
    compiled = [node for node in result["nodes"] if node["kind"] == "compiled"]
    assert [node["reads"] for node in compiled] == [["x"]] and result["outputs"] == ["y"]
    (kelf,) = result["kelfs"].values()
    assert kelf["subgraphs"][0]["definition"] == "sg00/def.json"
    dot = cli("neff", "graph", program_file, "--dot").out
    assert dot.startswith("digraph neff {") and dot.rstrip().endswith("}") and dot.count("->") == 2
    assert cli("neff", "graph", program_file, "--dot", "--json").status == 2


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_files(cli, "neff graph", tmp_path)
