"""What each entry point may load: a start-up budget in modules, which is the same on every machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("numpy", "ml_dtypes", "rich", "textual", "google.protobuf", "elftools", "pydantic", "importlib.metadata")


def loaded(code: str, root: Path) -> set[str]:
    """Return the names in sys.modules after `code` ran in a fresh interpreter."""
    script = f"{code}\nimport sys\nprint('\\n'.join(['=====', *sys.modules]))"
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=root, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split("=====\n")[1].split("\n"))


@pytest.mark.parametrize(
    ("code", "banned"),
    [
        ("import neurontools", (*HEAVY, "typer", "formats", "emulator")),
        (
            "import neurontools.cli",
            (*HEAVY, "hashlib", "socket", "formats.isa", "formats.neff", "emulator", "neurontools.nki"),
        ),
        ("import formats.errors, formats.targets, formats.dtypes", (*HEAVY, "typer")),
        ("import formats.neff, formats.isa", (*HEAVY, "typer", "emulator")),
        ("import emulator", ("typer", "rich", "textual", "neurontools")),
        (
            "from tools.manual_pages import commands; list(commands())",
            (*HEAVY, "formats.isa", "formats.neff", "emulator"),
        ),
        ("from neurontools.cli import main; main(['reference', 'isa.md 2'])", (*HEAVY, "formats.isa", "emulator")),
        ("from neurontools.cli import main; main(['--version'])", (*HEAVY, "formats.isa", "emulator")),
        (
            "from neurontools.cli import main; main(['--help'])",
            (*HEAVY, "formats.isa", "neurontools.neff", "neurontools.running.command"),
        ),
    ],
)
def test_import_loads_no_more_than_it_needs(code: str, banned: tuple[str, ...], root: Path) -> None:
    assert loaded(code, root).isdisjoint(banned)


@pytest.mark.parametrize("command", ["neff info", "neff ls", "neff vars", "neff queues", "neff verify", "disasm"])
def test_readers_need_no_numpy(command: str, root: Path, program_file: Path) -> None:
    arguments = [*command.split(), str(program_file)]
    modules = loaded(f"from neurontools.cli import main; assert main({arguments!r}) == 0", root)
    assert modules.isdisjoint(("numpy", "ml_dtypes", "rich", "textual", "emulator", "google.protobuf"))


def test_no_file_is_over_the_house_limit(root: Path) -> None:
    lengths = {
        p: len(p.read_text().splitlines())
        for package in ("neurontools", "formats", "emulator")
        for p in (root / package).rglob("*.py")
    }
    assert {str(p.relative_to(root)): n for p, n in lengths.items() if n > 600} == {}
