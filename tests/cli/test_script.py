"""Scripts run as Python would run them: name, arguments, import path, exit status, their own traceback."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from formats.errors import FormatError, UnsupportedError
from neurontools.program.script import run_script


def script(folder: Path, text: str) -> Path:
    path = folder / "script.py"
    path.write_text(text)
    return path


def test_it_is_main_with_its_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "beside.py").write_text("WORD = 'beside'")
    path = script(
        tmp_path,
        "import sys, __main__\n"
        "from beside import WORD\n"
        "from dataclasses import dataclass\n"
        "@dataclass\n"
        "class Here: x: 'int' = 1\n"
        "print(__name__, sys.argv[1:], WORD, __main__.Here.__module__, __file__ == sys.argv[0])\n",
    )
    before = list(sys.path), sys.argv, sys.modules["__main__"]
    assert run_script(path, ["--rows", "3"]) == 0
    assert capsys.readouterr().out == "__main__ ['--rows', '3'] beside __main__ True\n"
    assert (list(sys.path), sys.argv, sys.modules["__main__"]) == before


def test_a_script_that_has_changed_runs_as_it_is_now(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("print('old')\n", "print('old')\n", "print('new')\n", "print('old')\n"):
        assert run_script(script(tmp_path, text), []) == 0
    (tmp_path / "deeper").mkdir()
    assert (
        run_script(script(tmp_path / "deeper", "print(__file__)\nprint((lambda: 0).__code__.co_filename)\n"), []) == 0
    )
    *words, file, known = capsys.readouterr().out.split()
    assert words == ["old", "old", "new", "old"] and file == known == str(tmp_path / "deeper" / "script.py")


@pytest.mark.parametrize(
    ("code", "status"), [("sys.exit()", 0), ("sys.exit(7)", 7), ("sys.exit('no')", 1), ("raise SystemExit(300)", 44)]
)
def test_its_exit_status_passes_through(tmp_path: Path, code: str, status: int) -> None:
    assert run_script(script(tmp_path, f"import sys\n{code}\n"), []) == status


def test_its_errors_are_shown_as_python_shows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = script(tmp_path, "def f():\n    assert 1 == 2, 'differs'\nf()\n")
    assert run_script(path, []) == 1
    text = capsys.readouterr().err
    assert text.startswith("Traceback (most recent call last):\n")
    assert "AssertionError: differs" in text and "neurontools" not in text


def test_errors_of_the_toolkit_pass(tmp_path: Path) -> None:
    path = script(tmp_path, "from formats.errors import UnsupportedError\nraise UnsupportedError('gather')\n")
    with pytest.raises(UnsupportedError, match="gather"):
        run_script(path, [])


def test_what_is_not_python_is_a_format_error(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"script\.py:2: not Python"):
        run_script(script(tmp_path, "x = 1\nx = = 2\n"), [])
    path = tmp_path / "script.py"
    path.write_bytes(b"x = 1\0")
    with pytest.raises(FormatError, match="not Python"):
        run_script(path, [])
