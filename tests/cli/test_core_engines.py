"""`neurontools core engines`."""

from __future__ import annotations

from pathlib import Path

from formats.core import CoreWriter
from formats.core import records as r
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.cli.dumps import refuses_bad_dumps


def test_text_and_json_agree(cli: Cli, hang_core: Path) -> None:
    result = checked_json(cli("core", "engines", hang_core, "--json"), "core engines")
    assert [e["state"] for e in result["engines"]] == ["done", "wait", "wait", "wait", "done"]
    assert result["engines"][3]["waiting"]["condition"] == "S[4]>=1"
    lines = cli("core", "engines", hang_core).out.splitlines()
    assert len(lines) == 6 and "S[6]>=1, is 0" in lines[2] and "examples/deadlock.s:27" in lines[2]


def test_one_engine_and_its_registers(cli: Cli, tmp_path: Path) -> None:
    with CoreWriter(tmp_path / "x.core") as writer:
        writer.note(r.DumpNote())
        writer.note(r.EnginesNote((r.EngineState(0, "PE", registers=(0, 5)), r.EngineState(1, "SP"))))
    assert cli("core", "engines", tmp_path / "x.core", "-e", "tensor", "-r").out.splitlines()[-1].split() == [
        "r1", "0x00000005", "5"
    ]  # fmt: skip
    missing = cli("core", "engines", tmp_path / "x.core", "--core", "1", "--engine", "pe")
    assert missing.status == 4 and missing.error_line == "the dump has no nc1 PE"
    assert cli("core", "engines", tmp_path / "x.core", "--engine", "gpu").status == 4


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_dumps(cli, "core engines", tmp_path)
