"""The capture fixture and the NEFF it is of, and what every `ntff` command refuses."""

from __future__ import annotations

from pathlib import Path

from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from tests.cli.check import refuses_bad_files
from tests.cli.conftest import Cli

__all__ = ["capture", "neff", "refuses_bad_captures"]


def capture(root: Path) -> Path:
    """Return the capture of an emulated run."""
    return root / "fixtures" / "ntff" / "double.ntff"


def neff(root: Path, folder: Path) -> Path:
    """Assemble the NEFF that the capture is of."""
    path = folder / "double.neff"
    source = root / "fixtures" / "ntff" / "double.s"
    path.write_bytes(to_neff(parse_program(source.read_text(), "fixtures/ntff/double.s")))
    return path


def refuses_bad_captures(cli: Cli, command: str, root: Path, folder: Path, *more: object) -> None:
    """Check a command against files that are no captures, and a capture that is cut off."""
    refuses_bad_files(cli, command, folder, *more)
    cut = folder / "cut.ntff"
    cut.write_bytes(capture(root).read_bytes()[:600])
    ended = cli(*command.split(), cut, *more)
    assert ended.status == 3 and "cut.ntff" in ended.error_line and ended.out == ""
    unknown = cli(*command.split(), capture(root), "--core", 9, *more) if command != "ntff info" else None
    if unknown is not None:
        assert unknown.status == 4 and "no core 9; there are 0" in unknown.error_line
