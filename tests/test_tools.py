"""`python -m tools` writes what is stale, removes what is gone, and with --check only says so."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools import generate
from tools.__main__ import main
from tools.generate import GENERATORS, Change, Generator, apply, changes


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Give a folder whose one generator makes two files, one of them written already, beside one that is gone."""
    made = SimpleNamespace(files=lambda: {"man/a.1": "a", "man/sub/b.1": b"b"}, OWNS="man/*.1")
    monkeypatch.setattr(generate, "import_module", lambda name: made)
    monkeypatch.setattr(generate, "GENERATORS", {"pages": Generator("made", "pages")})
    (tmp_path / "man").mkdir()
    (tmp_path / "man/a.1").write_text("a")
    (tmp_path / "man/gone.1").write_text("old")
    (tmp_path / "man/other.7").write_text("not ours")
    return tmp_path


def test_stale_files_are_written_and_gone_ones_removed(pages: Path) -> None:
    found = list(changes(["pages"], pages))
    assert found == [Change("man/gone.1", None), Change("man/sub/b.1", b"b")]
    for change in found:
        apply(change, pages)
    assert list(changes(["pages"], pages)) == []
    assert sorted(path.name for path in pages.rglob("*.*")) == ["a.1", "b.1", "other.7"]


def test_check_changes_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    stale = [Change("man/x.1", b"")]
    monkeypatch.setattr("tools.__main__.changes", lambda names: iter(stale if "manual" in names else []))
    monkeypatch.setattr("tools.__main__.apply", lambda change: pytest.fail("--check wrote a file"))
    assert main(["--check"]) == 1
    assert capsys.readouterr().out == "man/x.1: stale\n"
    assert main(["--check", "isa-manual"]) == 0


def test_every_generator_makes_files(root: Path) -> None:
    for name, each in GENERATORS.items():
        assert callable(import_module(each.module).files), name
    made = {Path(path).stem for path in (root / "tools").glob("*.py")}
    named = {each.module.split(".")[1] for each in GENERATORS.values() if each.module.startswith("tools.")}
    assert made - named == {"__init__", "__main__", "generate", "isa_counts", "memory_captures", "roff"}


def test_the_fixture_list_is_fresh() -> None:
    assert list(changes(["fixture-list"])) == []
