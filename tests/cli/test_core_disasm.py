"""`neurontools core disasm`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.cli.dumps import refuses_bad_dumps


def test_where_it_faulted(cli: Cli, fault_core: Path) -> None:
    result = checked_json(cli("core", "disasm", fault_core, "--json"), "core disasm")
    (engine,) = result["engines"]
    assert [row["state"] for row in engine["rows"]] == ["done", "flying", "fault"] and engine["engine"] == "DVE"
    assert engine["rows"][2]["source"] == "examples/out_of_bounds.s:15"
    assert "!!      2  TENSOR_TENSOR" in cli("core", "disasm", fault_core).out


def test_who_waits_and_what_the_loader_put_there(cli: Cli, hang_core: Path) -> None:
    result = checked_json(cli("core", "disasm", hang_core, "--json"), "core disasm")
    assert [engine["engine"] for engine in result["engines"]] == ["Activation", "Pool", "DVE"]
    row = result["engines"][1]["rows"][1]
    assert row["text"].startswith("PSEUDO_DMA_TRIGGER") and row["loaded"].startswith("WRITE") and row["state"] == "next"


def test_around_a_pc(cli: Cli, hang_core: Path) -> None:
    ended = cli("core", "disasm", hang_core, "-e", "pool", "--around", "2", "-n", "1", "--json")
    (engine,) = checked_json(ended, "core disasm")["engines"]
    assert [row["pc"] for row in engine["rows"]] == [2]
    missing = cli("core", "disasm", hang_core, "-e", "pool", "--around", "99")
    assert missing.status == 4 and missing.error_line == "nc0 Pool pc 99 is not in this light dump"


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_dumps(cli, "core disasm", tmp_path)
