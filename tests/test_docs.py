"""Documentation is complete: commands, schemas, tests, exit statuses, the Python interface, links."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import neurontools
from neurontools.command.catalog import leaf_summaries
from neurontools.command.exits import ExitStatus
from neurontools.command.lazy import LazyGroup, rows_of
from neurontools.command.table import TABLE
from tests.cli.check import schema_of_command
from tools import command_table, screens
from tools.manual_pages import commands

ALL = {name: command for name, command in commands() if name}
LEAVES = sorted(name for name, command in ALL.items() if not isinstance(command, LazyGroup))
SUMMARIES = {name: entry.summary for name, entry in TABLE.items()}


def test_the_table_knows_every_command() -> None:
    assert set(SUMMARIES) == set(ALL)
    assert set(leaf_summaries()) == set(LEAVES)


def test_the_table_of_commands_is_fresh(root: Path) -> None:
    for place, text in command_table.files().items():
        assert text == (root / place).read_text(), "run `python -m tools`"


def test_a_new_command_follows_the_last_of_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    shorter = {name: entry for name, entry in TABLE.items() if name not in ("neff ls", "asm", "err", "err explain")}
    monkeypatch.setattr(command_table, "TABLE", shorter)
    names = list(command_table.rows())
    assert set(names) == set(TABLE)
    assert names[names.index("neff pack") + 1] == "neff ls" and names[-3:] == ["asm", "err", "err explain"]


def test_every_result_has_a_type(root: Path) -> None:
    """Only commands whose schema is still kept by hand have none, so the list shrinks with docs/schemas."""
    by_hand = {path.stem.replace(".", " ") for path in (root / "docs" / "schemas").glob("*.json")}
    # What `dap` says is said in a protocol of others.
    assert {name for name in LEAVES if import_module(TABLE[name].module).app.result is None} == by_hand | {"dap"}


@pytest.mark.parametrize("name", sorted(ALL))
def test_command_has_one_summary_everywhere(name: str, root: Path) -> None:
    assert ALL[name].help.strip().split("\n")[0] == SUMMARIES[name]
    text = (root / "docs" / "commands.md").read_text()
    section = re.search(rf"^## neurontools {name}\n\n(.*)$", text, re.MULTILINE)
    assert section is not None, f"docs/commands.md has no section on {name}"
    assert section[1] == SUMMARIES[name]


@pytest.mark.parametrize("name", LEAVES)
def test_command_has_example_schema_and_test(name: str, root: Path) -> None:
    section = (root / "docs" / "commands.md").read_text().split(f"## neurontools {name}\n")[1].split("\n## ")[0]
    assert f"    neurontools {name} " in section, "no example"
    if name != "dap":
        schema = schema_of_command(name)
        assert schema["properties"]["schema"]["const"] == f"neurontools.{name.replace(' ', '.')}/1"
    assert (root / "tests" / "cli" / f"test_{re.sub('[ -]', '_', name)}.py").exists()


def test_documentation_knows_no_other_commands(root: Path) -> None:
    sections = re.findall(r"^## neurontools (.*)$", (root / "docs" / "commands.md").read_text(), re.MULTILINE)
    assert sorted(sections) == sorted(ALL)


def test_exit_statuses_are_documented(root: Path) -> None:
    head = (root / "docs" / "commands.md").read_text().split("\n## ")[0]
    rows = re.findall(r"^\| ([\d, ]+) \| ", head, re.MULTILINE)
    assert sorted(int(n) for row in rows for n in row.split(",")) == sorted(ExitStatus)


def test_readme_names_every_command(root: Path) -> None:
    text = (root / "README.md").read_text()
    for name in rows_of(""):
        assert f"neurontools {name}" in text


def test_readme_has_the_two_set_up_commands(root: Path) -> None:
    lines = [line for line in (root / "README.md").read_text().splitlines() if line.startswith("    python3 -m venv")]
    assert len(lines) == 2
    assert re.search(r"neurontools run (examples/\w+\.py)$", lines[0]) and lines[1].endswith("pytest -n 2")
    example = lines[0].split()[-1]
    assert (root / example).exists()


def test_python_interface_is_documented(root: Path) -> None:
    text = (root / "docs" / "api.md").read_text()
    for name in neurontools.__all__:
        if name != "__version__":
            assert re.search(rf"`{name}\b", text), f"docs/api.md does not mention {name}"


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "docs/commands.md", "docs/architecture.md", "docs/api.md"]
)
def test_links_lead_somewhere(page: str, root: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", (root / page).read_text()):
        if not target.startswith("http"):
            assert (root / page).parent.joinpath(target).exists(), f"{page}: {target}"


@pytest.mark.parametrize("page", screens.PAGES)
def test_screens_are_real(page: str, root: Path) -> None:
    assert screens.renewed(page) == (root / page).read_text(), "run `python -m tools screens`"
