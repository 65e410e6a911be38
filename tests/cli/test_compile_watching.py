"""Compilations that somebody watches: dumps after each pass, Ctrl-C, and the line that says what is being done."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from formats.hlo.text import parse_module
from neurontools.compiler.pipeline import PASSES, compile_module
from neurontools.text import progress
from tests.cli.conftest import Cli
from tests.debugger.graph import MODEL

_NODE = re.compile(r"^ *%\d+ = \S.* [a-z][a-z0-9-]*\(.*  // (\S+)$", re.MULTILINE)
# Shells ignore Ctrl-C for what runs in their background.
_START = ("import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
          "from neurontools.cli import main; sys.exit(main(sys.argv[1:]))")  # fmt: skip


@pytest.fixture
def module(tmp_path: Path) -> Path:
    (tmp_path / "model.txt").write_text(MODEL)
    return tmp_path / "model.txt"


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_can_be_printed(cli: Cli, module: Path, tmp_path: Path, name: str) -> None:
    ended = cli("compile", module, "-o", tmp_path / "x.neff", "--logfile", tmp_path / "log", "--dump-after", name)
    assert ended.status == 0
    assert f"// after {name}\n" in ended.err
    assert sum(ended.err.count(f"// after {other}\n") for other in PASSES) == 1
    names = set(_NODE.findall(ended.err))
    assert {"dot.1", "add.1", "tanh.1", "out.1"} <= names, "each node says which operation it is from"


def test_all_passes_are_printed_in_their_order(cli: Cli, module: Path, tmp_path: Path) -> None:
    wanted = [word for name in PASSES for word in ("--dump-after", name)]
    ended = cli("compile", module, "-o", tmp_path / "x.neff", "--logfile", tmp_path / "log", *wanted)
    places = [ended.err.index(f"// after {name}\n") for name in PASSES]
    assert places == sorted(places)


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    rows = 6000
    lines = ["  v.0 = f32[128,128] parameter(0)"]
    lines += [f"  v.{n} = f32[128,128] dot(v.{n - 1}, v.0), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
              for n in range(1, rows)]  # fmt: skip
    lines[-1] = lines[-1].replace("  v.", "  ROOT v.", 1)
    (tmp_path / "long.txt").write_text("HloModule long\n\nENTRY main {\n" + "\n".join(lines) + "\n}\n")
    out = tmp_path / "out"
    out.mkdir()
    line = [sys.executable, "-c", _START, "compile", str(tmp_path / "long.txt"), "-o", str(out / "x.neff"),
            "--logfile", str(tmp_path / "log"), "--cache_dir", str(out / "cache")]  # fmt: skip
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, error
    assert "Traceback" not in error
    assert [one for one in out.rglob("*") if one.is_file()] == []


def test_what_is_being_done_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    told: list[str] = []
    compile_module(parse_module(MODEL), told=told.append)
    assert [f"pass {name}" for name in PASSES[1:]] == told[: len(PASSES) - 1]
    assert any(one.startswith("lowering 0 of ") for one in told)
    assert told[-1].startswith("building ")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "FIRST_SECONDS", 0.0)
    with progress.doing("model\x1b[31m") as tick:
        assert tick is not None
        tick("pass verify")
    shown = capsys.readouterr().err
    assert "pass verify" in shown
    assert "\x1b[31m" not in shown
