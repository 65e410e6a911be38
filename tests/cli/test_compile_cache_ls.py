"""`neurontools compile cache ls`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.check import checked_json, refuses_bad_caches
from tests.cli.conftest import Cli


def test_a_whole_cache_is_listed_and_verifies(cli: Cli, kept: Path) -> None:
    cache, entry = kept.parent.parent, kept
    result = checked_json(cli("compile", "cache", "ls", "--cache_dir", cache, "--json"), "compile cache ls")
    (row,) = result["entries"]
    assert (row["key"], row["state"], row["compiler"]) == (entry.name, "complete", entry.parent.name)
    assert row["size"] == result["size"] == sum(one.stat().st_size for one in entry.iterdir())
    assert "1 module," in cli("compile", "cache", "ls", "--cache_dir", cache).out


def test_states(cli: Cli, kept: Path) -> None:
    (kept / "model.done").unlink()
    assert "incomplete" in cli("compile", "cache", "ls", "--cache_dir", kept.parent.parent).out
    (kept / "model.hlo_module.pb.lock").touch()
    assert "locked" in cli("compile", "cache", "ls", "--cache_dir", kept.parent.parent).out


def test_bad_caches(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuses_bad_caches(cli, "ls", tmp_path, monkeypatch)
