"""`neurontools compile cache gc`: old, large, locked and unfinished entries."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from tests.cli.check import checked_json, refuses_bad_caches
from tests.cli.conftest import Cli

DAY = 86400


def _copy(entry: Path, name: str, days: float = 0) -> Path:
    """Copy an entry under another compiler's version, where keys are not ours to check."""
    place = entry.parent.parent / "neuronxcc-2.0" / name
    shutil.copytree(entry, place)
    then = time.time() - days * DAY
    for one in place.iterdir():
        os.utime(one, (then, then))
    return place


def test_nothing_goes_without_delete(cli: Cli, kept: Path) -> None:
    cache, entry = kept.parent.parent, kept
    old = _copy(entry, "MODULE_old", days=40)
    arguments = ("compile", "cache", "gc", "--cache_dir", cache, "--older-than", "30d")
    result = checked_json(cli(*arguments, "--json"), "compile cache gc")
    assert [(one["entry"]["key"], one["why"]) for one in result["going"]] == [("MODULE_old", "older")]
    assert (result["removed"], old.exists()) == (False, True)
    assert "--delete removes" in cli(*arguments).out
    assert cli(*arguments, "--delete").status == 0
    assert (old.exists(), entry.exists()) == (False, True)


def test_the_oldest_go_until_the_rest_fits(cli: Cli, kept: Path) -> None:
    cache, entry = kept.parent.parent, kept
    places = [_copy(entry, f"MODULE_{days}", days) for days in (1, 3, 2)]
    size = sum(one.stat().st_size for one in entry.iterdir())
    assert cli("compile", "cache", "gc", "--cache_dir", cache, "--max-size", 2 * size, "--delete").status == 0
    assert [one.exists() for one in (entry, *places)] == [True, True, False, False]


def test_locked_and_young_entries_stay(cli: Cli, kept: Path) -> None:
    cache, entry = kept.parent.parent, kept
    locked, unfinished, young = (_copy(entry, f"MODULE_{i}", 9 if i < 2 else 0) for i in range(3))
    (locked / "model.hlo_module.pb.lock").touch()
    os.utime(locked / "model.hlo_module.pb.lock", (0, 0))
    (unfinished / "model.done").unlink()
    (young / "model.done").unlink()
    left = entry.parent / ".new-abc"
    left.mkdir()
    os.utime(left, (0, 0))
    arguments = ("compile", "cache", "gc", "--cache_dir", cache, "--older-than", "1d", "--delete")
    assert cli(*arguments).status == 0
    assert [one.exists() for one in (entry, locked, unfinished, young, left)] == [True, True, False, True, False]
    result = checked_json(cli(*arguments, "--locks", "--json"), "compile cache gc")
    assert (result["locks"], locked.exists(), entry.exists(), young.exists()) == (1, False, True, True)


def test_bad_caches(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuses_bad_caches(cli, "gc", tmp_path, monkeypatch)


def test_bad_times_and_sizes(cli: Cli, tmp_path: Path) -> None:
    for option, value in (
        ("--older-than", "soon"),
        ("--older-than", "5"),
        ("--max-size", "-1"),
        ("--max-size", "1 XB"),
        ("--older-than", "9" * 400 + "d"),
        ("--max-size", "9" * 400 + "GB"),
    ):
        assert cli("compile", "cache", "gc", "--cache_dir", tmp_path, f"{option}={value}").status == 2
