"""The keymap file, the remembered layout, the first theme, and how the screen is opened."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from formats.errors import FormatError, UnsupportedError
from neurontools.cli import main
from neurontools.debugger import Session
from neurontools.debugger import command as debug
from neurontools.tui import opening, settings
from tests.tui.driving import Driver, drive


def _write_keys(text: str) -> Path:
    path = settings.keymap_file()
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def test_no_keymap_file_is_no_keymap() -> None:
    assert settings.load_keymap(["step"]) == {}


def test_keys_from_the_file(double: Session) -> None:
    _write_keys('step = "f7"\n')
    keymap = settings.load_keymap(["step", "help"])
    assert keymap == {"step": "f7"}

    async def script(driver: Driver) -> None:
        await driver.press("f7")
        assert driver.app.snapshot.state.events == 1
        await driver.press("s")
        assert driver.app.snapshot.state.events == 1
        await driver.press("question_mark")
        assert "  f7           step" in str(driver.app.screen.query("Static").first().render())

    drive(double, script, keymap=keymap)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('fly = "f7"\n', "'fly' is no action; they are step, help"),
        ("step = 7\n", 'step needs keys in quotes, such as step = "f7"'),
        ("step = \n", "Invalid value"),
    ],
)
def test_a_wrong_keymap_file_is_one_line_with_its_path(text: str, said: str) -> None:
    path = _write_keys(text)
    with pytest.raises(FormatError) as caught:
        settings.load_keymap(["step", "help"])
    assert str(path) in str(caught.value) and said in str(caught.value)


def test_the_layout_comes_back_and_a_broken_file_is_no_matter(tmp_path: Path) -> None:
    assert settings.load_layout() == settings.Layout()
    layout = settings.Layout("textual-light", "Time", 44)
    settings.save_layout(layout)
    assert settings.load_layout() == layout
    for text in ("{", "[]", '{"theme": "", "tab": "", "left": Infinity}', '{"theme": "", "tab": "", "left": NaN}'):
        (tmp_path / "state" / "neurontools" / "screen.json").write_text(text)
        assert settings.load_layout() == settings.Layout()


def test_the_first_theme() -> None:
    known = ("textual-dark", "textual-light", "ansi-dark", "ansi-light")
    assert settings.first_theme("", "truecolor", known) == "textual-dark"
    assert settings.first_theme("textual-light", "256", known) == "textual-light"
    assert settings.first_theme("textual-light", "standard", known) == "ansi-dark"
    assert settings.first_theme("ansi-light", "standard", known) == "ansi-light"
    assert settings.first_theme("gone", "truecolor", known) == "textual-dark"
    for name in known:
        assert settings.other_theme(settings.other_theme(name)) == name


def test_sixteen_colours(double: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLORTERM")
    monkeypatch.setenv("TERM", "xterm")

    async def script(driver: Driver) -> None:
        assert driver.app.theme == "ansi-dark"
        await driver.press("c", "t", "f")
        assert "(s) ENGINES" in driver.text and "✓ done" in driver.text

    drive(double, script)


# --- opening ----------------------------------------------------------------------------------------------------------


class _Stream:
    def isatty(self) -> bool:
        return True


def test_a_screen_needs_a_terminal_at_every_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEXTUAL_DRIVER", raising=False)
    assert not opening.wanted()
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, _Stream())
    assert opening.wanted()
    monkeypatch.setenv("TERM", "dumb")
    assert not opening.wanted()
    monkeypatch.setenv("TEXTUAL_DRIVER", "textual.drivers.web_driver:WebDriver")
    assert opening.wanted()


@pytest.mark.parametrize(
    ("options", "shown"), [([], True), (["--cli"], False), (["--commands", "step"], False), (["--json"], False)]
)
def test_debug_opens_the_screen_unless_told_otherwise(
    program_file: Path, options: list[str], shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(opening, "wanted", lambda: True)
    monkeypatch.setattr(opening, "open_screen", lambda session, name, notes=(): opened.append(name))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert main(["debug", str(program_file), *options]) == 0
    assert opened == (["double.neff"] if shown else [])


def test_serve_passes_the_command_line_on(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[object] = []
    monkeypatch.setattr(opening, "serve", lambda arguments, host, port: called.append((arguments, host, port)))
    given = ["debug", "--serve", "--port", "9001", "--seed", "3", "--no-timing", "kernel.py", "--", "a b"]
    assert main(given) == 0
    ((arguments, host, port),) = called  # type: ignore[misc]
    assert arguments[0] == "debug" and arguments[-6:] == ["--seed", "3", "--no-timing", "kernel.py", "--", "a b"]
    assert (host, port) == ("127.0.0.1", 9001)
    assert debug.app


def test_serve_without_its_package_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textual_serve.server", None)
    monkeypatch.delitem(sys.modules, "neurontools.tui.serving", raising=False)
    with pytest.raises(UnsupportedError, match=r"pip install '.*\[web\]'"):
        opening.serve(["debug", "x"], "127.0.0.1", 1)


def test_serve_hands_the_command_to_its_server(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("textual_serve", reason="the screen in a browser needs textual-serve")
    from neurontools.tui import serving

    made: list[object] = []

    class Server:
        def __init__(self, command: str, host: str, port: int, title: str) -> None:
            made.extend((command, host, port, title))

        def serve(self) -> None:
            made.append("served")

    monkeypatch.setattr(serving, "ScreenServer", Server)
    opening.serve(["debug", "a b.neff"], "127.0.0.1", 8765)
    assert str(made[0]).endswith("-m neurontools debug 'a b.neff'")
    assert made[1:] == ["127.0.0.1", 8765, "neurontools debug", "served"]


def test_only_the_screen_imports_textual() -> None:
    code = "import sys, neurontools.debugger.command, neurontools.tui.settings, neurontools.tui.opening\n"
    code += "import neurontools.tui.carry_out; print('textual' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
