"""Full disks, closed streams, outputs that are devices or links, keys pressed at the wrong time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import neurontools.program.recording
import neurontools.running.files
from formats.errors import FormatError
from formats.whole_files import write_beside
from neurontools.command.output import write_whole
from tests.cli.conftest import Cli

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.is_char_device(), reason="this system has no device that is always full")


def started(root: Path, *arguments: object, **streams: Any) -> subprocess.Popen[str]:
    # Shells ignore Ctrl-C for what they start in the background, and a killed test run must leave no endless program.
    code = (
        "import ctypes, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "sys.platform == 'linux' and ctypes.CDLL(None).prctl(1, signal.SIGKILL);"
        "from neurontools.cli import main; print('up', file=sys.stderr, flush=True); sys.exit(main())"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=root,
        stderr=subprocess.PIPE,
        text=True,
        **{"stdout": subprocess.DEVNULL, "stdin": subprocess.DEVNULL, **streams},
    )


def notes(process: subprocess.Popen[str]) -> str:
    """Return what the process says on standard error, after the line that tells that it is up."""
    _, text = process.communicate(timeout=60)
    return text.removeprefix("up\n")


@needs_full
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("neff", "ls", "FILE"), 3, "neurontools: no space left on device\n"),
        (("neff", "ls", "FILE", "--json"), 3, "neurontools: no space left on device\n"),
        (("neff", "ls", "missing.neff", "--json"), 4, "neurontools: missing.neff: no such file\n"),
        (("debug", "FILE", "--json", "-c", "info engines"), 3, "neurontools: no space left on device\n"),
    ],
)
def test_a_full_disk_behind_stdout_is_one_line(
    root: Path, program_file: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], status: int,
    says: str, unbuffered: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with FULL.open("w") as full:
        process = started(root, *(program_file if one == "FILE" else one for one in arguments), stdout=full)
        assert notes(process) == says
    assert process.returncode == status


@needs_full
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_behind_stderr_keeps_the_status(
    root: Path, monkeypatch: pytest.MonkeyPatch, unbuffered: str
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with FULL.open("w") as full:
        code = "import sys; from neurontools.cli import main; sys.exit(main(['neff', 'ls', 'missing.neff']))"
        done = subprocess.run([sys.executable, "-c", code], cwd=root, stderr=full, stdout=subprocess.PIPE, check=False)
    assert (done.returncode, done.stdout) == (4, b"")


@pytest.mark.parametrize("closed", ["stdin", "stdout", "stderr"])
def test_closed_streams_are_empty_ones(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, program_file: Path, closed: str
) -> None:
    monkeypatch.setattr(sys, closed, None)
    ended = cli("debug", program_file) if closed == "stdin" else cli("neff", "ls", program_file)
    assert ended.status == 0


def test_help_into_a_closed_pipe_is_quiet(root: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    process = started(root, "--help", stdout=write)
    os.close(write)
    assert notes(process) == ""
    assert process.returncode == 141


@pytest.mark.parametrize("write", [lambda path: _whole(path, b"new"), lambda path: write_beside(path, b"new")])
def test_links_and_pipes_are_written_through(tmp_path: Path, write: Callable[[Path], None]) -> None:
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write(link)
    assert link.is_symlink() and target.read_bytes() == b"new"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write(pipe)
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    assert pipe.is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe", "target"]


def _whole(path: Path, data: bytes) -> None:
    with write_whole(path) as beside:
        beside.write_bytes(data)


@needs_full
def test_a_full_device_as_output_stays_and_is_named() -> None:
    with pytest.raises(OSError, match="No space left") as caught:
        _whole(FULL, b"new")
    assert caught.value.filename == str(FULL)
    with pytest.raises(FormatError, match=r"/dev/full: cannot be written"):
        write_beside(FULL, b"new")
    assert FULL.is_char_device()


@pytest.mark.parametrize("option", ["--outputs", "--save-neff"])
def test_an_output_that_is_a_folder_is_refused_before_the_run(
    cli: Cli, root: Path, tmp_path: Path, option: str
) -> None:
    ended = cli("run", root / "examples" / "vector_add.py", option, tmp_path)
    assert (ended.status, ended.out) == (3, "")
    assert ended.error_line == f"{tmp_path}: is a folder, not a file"


def test_an_output_of_a_script_that_cannot_be_written_is_ours(
    cli: Cli, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(neurontools.running.files, "write_whole", full)
    ended = cli("run", root / "examples" / "vector_add.py", "--save-neff", tmp_path / "x.neff")
    assert ended.status == 3
    assert ended.error_line == f"{tmp_path / 'x.neff'}: cannot be written (no space left on device)"


@pytest.mark.parametrize("file", ["vector_add.py", "race.s"])
def test_a_recording_that_cannot_be_written_is_ours(
    cli: Cli, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    def closed(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(neurontools.program.recording, "write_whole", closed)
    ended = cli("run", root / "examples" / file, "--record", tmp_path / "x.nrec")
    assert ended.status == 3
    assert ended.error_line == f"{tmp_path / 'x.nrec'}: cannot be written (permission denied)"


def test_characters_that_the_terminal_does_not_have_are_replaced(root: Path) -> None:
    line = ["debug", root / "examples" / "race.s", "-c", "continue; info timeline; list"]
    ended = subprocess.run(
        [sys.executable, "-m", "neurontools", *map(str, line)], cwd=root, check=False, capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert ended.returncode == 0 and b"?" in ended.stdout, ended


def test_no_command_writes_over_its_own_input(cli: Cli, program_text: str, program_file: Path, tmp_path: Path) -> None:
    program = tmp_path / "x.neff"
    program.write_text(program_text)
    ended = cli("asm", program)
    assert ended.status == 2 and "is the program itself" in ended.error_line
    assert program.read_text() == program_text
    folder = tmp_path / "unpacked"
    assert cli("neff", "unpack", program_file, folder).status == 0
    ended = cli("neff", "pack", folder, "-o", folder / "x.neff")
    assert ended.status == 2 and "inside the folder" in ended.error_line


# Each turn leaves another state: a loop that changes nothing ends as a livelock.
SPIN = (
    ".target trn2\n.engine sp\nhere:\n    NOP S[5]++@complete cycle=0\n"
    "    COMPARE_BRANCH cmp_op=ALWAYS label_id=%here\n"
)


@pytest.mark.parametrize("command", ["run", "check"])
def test_an_interrupt_ends_an_endless_program(root: Path, tmp_path: Path, command: str) -> None:
    program = tmp_path / "spin.s"
    program.write_text(SPIN)
    process = started(root, command, program)
    assert process.stderr is not None and process.stderr.readline() == "up\n"
    time.sleep(0.8)  # NumPy is being imported, or the program runs: it is the same to the one who waits
    process.send_signal(signal.SIGINT)
    assert notes(process) == ""
    assert process.returncode == 130


def test_an_interrupt_stops_the_debugged_program(root: Path, tmp_path: Path) -> None:
    program = tmp_path / "spin.s"
    program.write_text(SPIN)
    process = started(root, "debug", "--json", program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("stepi\ncontinue\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["result"]["command"] == "stepi"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "up\n")
    assert json.loads(out)["result"]["value"]["reason"] == "interrupted"
