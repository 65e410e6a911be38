"""`neurontools batch`: every command of a manifest, its outcome as a table, JSON and JUnit."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from formats.errors import FormatError
from neurontools.cli import app
from neurontools.tuning.batch import read_manifest, run_batch

EXAMPLES = Path(__file__).parents[2] / "examples"
MANIFEST = f"""
[[program]]
file = "{EXAMPLES / "vector_add.py"}"
do = ["run", "profile"]
name = "adding"
options = ["--target", "trn2"]

[[program]]
file = "{EXAMPLES / "race.s"}"
do = ["check"]

[[program]]
file = "missing.neff"
"""


def test_every_command_is_run_and_told(tmp_path: Path) -> None:
    manifest, report = tmp_path / "all.toml", tmp_path / "report.xml"
    manifest.write_text(MANIFEST)
    made = CliRunner().invoke(app, ["batch", str(manifest), "--jobs", "2", "--json", "--junit", str(report)])
    assert made.exit_code == 1, made.output
    rows = json.loads(made.stdout)["result"]["results"]
    assert [(row["name"], row["action"], row["status"]) for row in rows] == [
        ("adding", "run", 0),
        ("adding", "profile", 0),
        (str(EXAMPLES / "race.s"), "check", 1),
        ("missing.neff", "run", 4),
    ]
    assert rows[0]["time_ps"] == rows[1]["time_ps"] > 0
    assert rows[2]["findings"] >= 1 and "may still be" in rows[2]["what"]
    cases = ElementTree.parse(report).getroot().findall("testsuite/testcase")
    assert [case.find("failure") is None for case in cases] == [True, True, False, False]


def test_a_command_over_its_budget_is_ended(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(60)")
    (tmp_path / "all.toml").write_text('[[program]]\nfile = "slow.py"\n')
    (done,) = run_batch(tmp_path / "all.toml", max_seconds=0.5).results
    assert done.status == -1 and done.what == "over 0.5 s"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "tables"),
        ("file = 3", "tables"),
        ("[[program]]", "file"),
        ('[[program]]\nfile = "a"\ndo = ["burn"]', "unknown action"),
        ('[[program]]\nfile = "a"\nspeed = 3', "unknown key"),
        ("[[program", "not TOML"),
    ],
)
def test_a_bad_manifest_is_refused(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "all.toml").write_text(text)
    with pytest.raises(FormatError, match=what):
        read_manifest(tmp_path / "all.toml", 1.0)
    with pytest.raises(FileNotFoundError):
        read_manifest(tmp_path / "none.toml", 1.0)
