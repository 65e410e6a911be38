"""`neurontools monitor validate`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.nrt.monitor_sample import documented_report


def test_good_and_bad_reports(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "capture.json"
    bad = documented_report()
    bad["surprise"] = 1
    path.write_text(json.dumps(documented_report()) + "\n" + json.dumps(bad))
    ended = cli("monitor", "validate", path, "--json")
    result = checked_json(ended, "monitor validate")
    assert ended.status == 1 and result["reports"] == 2
    assert result["bad"] == [{"number": 2, "problems": ["surprise: not documented"]}]
    assert "report 2: surprise" in cli("monitor", "validate", path).out
    path.write_text(json.dumps(documented_report()))
    assert cli("monitor", "validate", path).status == 0


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "capture.json"
    for text in ("", "{", "[]"):
        path.write_text(text)
        ended = cli("monitor", "validate", path)
        assert ended.status == 3 and "capture.json" in ended.error_line
    assert cli("monitor", "validate", tmp_path / "missing").status == 4
