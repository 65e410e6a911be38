"""Which files the commands of a session may write: in a browser, on the screen, read-only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from neurontools.cli import main
from neurontools.debugger.commands.carry_out import carry_out
from neurontools.debugger.writing import Writing
from neurontools.tui import opening
from tests.tui.driving import Driver, drive


def said(session: Any, line: str) -> str:
    answer = carry_out(session, line)
    return str(answer.error) if answer.error is not None else ""


@pytest.mark.parametrize("line", ["save-core {}", "export x {}"])
def test_commands_write_below_the_folder_and_replace_nothing(
    double: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    (here / "link.npy").symlink_to(tmp_path / "target.npy")
    (here / "up").symlink_to(tmp_path)
    double.writing = Writing(here, kept=True)
    for outside in ("../x.npy", f"{tmp_path}/x.npy", "up/x.npy", "link.npy"):
        assert f"{outside} is outside" in said(double, line.format(outside))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here"]
    assert said(double, line.format("x.npy")) == ""
    before = (here / "x.npy").read_bytes()
    (here / "x.npy").write_bytes(b"kept")
    assert "x.npy exists; -f" in said(double, line.format("x.npy"))
    assert (here / "x.npy").read_bytes() == b"kept"
    assert said(double, line.format("x.npy").replace(" ", " -f ", 1)) == ""
    assert len((here / "x.npy").read_bytes()) == len(before)
    double.writing = Writing(read_only=True)
    assert "writes no files" in said(double, line.format("y.npy"))


def test_a_session_that_only_reads_saves_no_screen(
    double: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    double.writing = Writing(read_only=True)

    async def script(driver: Driver) -> None:
        await driver.press("e")

    drive(double, script)
    assert list(tmp_path.rglob("neurontools-*")) == []
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("options", "writing"),
    [
        ((), lambda here: Writing(here, kept=True)),
        (("--allow-writes",), lambda here: Writing(kept=True)),
        (("--read-only",), lambda here: Writing(here, read_only=True, kept=True)),
    ],
)
def test_what_a_page_may_write_is_what_the_options_say(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], writing: Any
) -> None:
    seen: list[Any] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEXTUAL_DRIVER", "textual.drivers.web_driver:WebDriver")
    monkeypatch.setattr(opening, "open_screen", lambda session, *rest: seen.append(session.writing))
    assert main(["debug", str(root / "examples" / "race.s"), *options]) == 0
    assert seen == [writing(tmp_path)]


def test_options_reach_every_page(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(opening, "serve", lambda *given: seen.append(given))
    file = root / "examples" / "race.s"
    words = ["--serve", "--read-only", "--host", "::1", "--port", "9000", "--seed", "3"]
    assert main(["debug", str(file), *words]) == 0
    assert seen == [(["debug", "--seed", "3", "--read-only", str(file)], "::1", 9000)]
