"""`neurontools mem neff`."""

from __future__ import annotations

from pathlib import Path

from formats.neff import open_neff
from formats.neff.memory import device_memory
from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli


def test_categories_are_those_of_load_check(cli: Cli, root: Path) -> None:
    for name in ("add_exp", "idle_pair"):
        path = root / "fixtures" / "neff" / f"{name}.neff"
        result = checked_json(cli("mem", "neff", path, "--runtime", "2.30.0", "--json"), "mem neff")
        expected = {one.name: one.bytes for one in device_memory(open_neff(path), (2, 30, 0)) if one.bytes}
        assert {one["name"]: one["bytes"] for one in result["categories"]} == expected
        assert result["total"] == sum(expected.values())
        assert all(sum(one["cores"]) == one["bytes"] for one in result["categories"])


def test_scratchpad_is_by_runtime_and_options(cli: Cli, root: Path) -> None:
    path = root / "fixtures" / "neff" / "add_exp.neff"

    def shared(*more: str) -> int:
        result = checked_json(cli("mem", "neff", path, *more, "--json"), "mem neff")
        return {one["name"]: one["bytes"] for one in result["categories"]}["Shared Scratchpad"] >> 20

    assert shared() == 64 and shared("--runtime", "2.30") == 512
    assert shared("--pages") == 512 and shared("--pages", "--page-size", "1024") == 1024
    assert shared("--page-size", "1024") == 64  # no effect on one region, as documented


def test_text(cli: Cli, root: Path) -> None:
    ended = cli("mem", "neff", root / "fixtures" / "neff" / "add_exp.neff", "--top", "1")
    assert ended.status == 0 and "Model Code" in ended.out and "ucode    every core" in ended.out
    assert all(len(line) < 200 for line in ended.out.splitlines())


def test_bad_files_and_options(cli: Cli, tmp_path: Path, root: Path) -> None:
    refuses_bad_files(cli, "mem neff", tmp_path)
    path = root / "fixtures" / "neff" / "add_exp.neff"
    assert cli("mem", "neff", path, "--pages", "--page-size", "700").status == 2
    assert cli("mem", "neff", path, "--runtime", "new").status == 2
