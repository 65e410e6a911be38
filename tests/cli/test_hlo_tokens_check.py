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


_STARTED = """\
HloModule m

add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = f32[] add(a, b)
}

ENTRY main {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  s = f32[4] all-reduce-start(p), replica_groups={{0,1}}, to_apply=add
  t = f32[4] all-reduce-start(q), replica_groups={{0,1}}, to_apply=add
  u = f32[4] all-reduce-done(s)
  v = f32[4] all-reduce-done(t)
  ROOT r = (f32[4], f32[4]) tuple(u, v)
}
"""


def test_collectives_that_begin_and_end_apart_are_looked_at(cli: Cli, tmp_path: Path) -> None:
    """None were found, so the order was said to be total."""
    file = tmp_path / "started.txt"
    file.write_text(_STARTED)
    ended = cli("hlo", "tokens", "check", file)
    assert ended.status == 1 and "2 collectives in 1 stream, 1 pair not ordered" in ended.out
    ended = cli("hlo", "tokens", "add", file, "-o", tmp_path / "out.pb")
    assert ended.status == 6 and "tokens of all-reduce-start are not modelled" in ended.error_line
