"""`neurontools hlo tokens check`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.check import refuses_bad_files
from tests.cli.conftest import Cli
from tests.cli.hlo_modules import COLLECTIVES, collectives


def test_unordered_collectives(cli: Cli, tmp_path: Path) -> None:
    file = collectives(tmp_path)
    assert "1 pair not ordered" in cli("hlo", "tokens", "check", file).out
    assert cli("hlo", "tokens", "check", file, "--quiet", "--error-exitcode", "7").status == 7


def test_a_stream_that_is_no_number(cli: Cli, tmp_path: Path) -> None:
    file = collectives(tmp_path)
    file.write_text(COLLECTIVES.replace('stream_id="1"', 'stream_id="x"'))
    ended = cli("hlo", "tokens", "check", file)
    assert ended.status == 3 and "a stream is no number" in ended.error_line


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_files(cli, "hlo tokens check", tmp_path)
