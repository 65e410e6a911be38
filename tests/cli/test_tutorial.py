"""docs/tutorial.md keeps its word: what each version is, and how much faster the last one is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli, cli

__all__ = ["cli"]  # a fixture


def version(root: Path, name: str) -> Path:
    return root / "examples" / "tutorial" / f"{name}.py"


@pytest.mark.parametrize(
    ("name", "kinds"), [("wrong", {"nan"}), ("racy", {"write-read"}), ("slow", set()), ("fast", set())]
)
def test_what_is_found(cli: Cli, root: Path, name: str, kinds: set[str]) -> None:
    tools = ("--tool", "nancheck") if name == "wrong" else ()
    made = cli("check", version(root, name), *tools, "--json")
    assert {one["kind"] for one in made.json["result"]["findings"]} == kinds
    assert made.status == bool(kinds)


@pytest.mark.parametrize("name", ["slow", "fast"])
@pytest.mark.parametrize("seed", [1, 2])
def test_it_is_right_in_other_schedules(cli: Cli, root: Path, name: str, seed: int) -> None:
    printed = cli("run", version(root, name), "--seed", seed).out
    assert float(printed.split()[-1]) < 1e-5


def test_the_last_version_takes_less_than_half_of_the_time(cli: Cli, root: Path) -> None:
    slow, fast = (
        cli("profile", "run", version(root, name), "--no-advice", "--json").json["result"]["total_time_ns"]
        for name in ("slow", "fast")
    )
    assert 2 * fast < slow
