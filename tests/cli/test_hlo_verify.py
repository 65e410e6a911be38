"""`neurontools hlo verify`."""

from __future__ import annotations

from pathlib import Path

from formats.hlo import module_bytes
from tests.cli.check import checked_json, refuses_bad_files
from tests.cli.conftest import Cli
from tests.cli.hlo_modules import model
from tests.formats.hlo.build import mlp


def test_verify(cli: Cli, tmp_path: Path) -> None:
    file = model(tmp_path)
    assert cli("hlo", "verify", file).out == "model.hlo.pb: ok\n"
    broken = mlp()
    broken.entry.instructions[3].shape = broken.entry.instructions[3].shape.with_dimensions((3, 3))
    path = tmp_path / "broken.pb"
    path.write_bytes(module_bytes(broken))
    ended = cli("hlo", "verify", path)
    assert ended.status == 1 and "error: %main: %dot.1: states f32[3,3]" in ended.out and "model.py:42" in ended.out
    assert cli("hlo", "verify", path, "--quiet", "--error-exitcode", "9").status == 9
    result = checked_json(cli("hlo", "verify", path, "--json"), "hlo verify")
    assert not result["ok"] and result["problems"][0]["instruction"] == "dot.1"


TEXT = """HloModule m

ENTRY main { // the only one
  a = f32[4] parameter(0)
  ROOT b = f32[4] add(a, a) /* twice */
}
"""


def test_text_may_begin_with_comments(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    for before in ("", "// RUN: hlo_test %s\n", "/* of a licence\n" + 40 * "a line of it\n" + "*/\n\n// and more\n"):
        path.write_text(before + TEXT)
        assert cli("hlo", "verify", path).out == "m.hlo: ok\n"


def test_computations_without_a_module_are_named_as_such(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    for number, before in enumerate(("", "// RUN: hlo_test %s\n"), 1):
        for start in ("fusion {", "ENTRY main {", "%add.1 (x: f32[]) -> f32[] {"):
            path.write_text(before + start + TEXT.partition("{")[2])
            ended = cli("hlo", "verify", path)
            assert ended.status == 3 and ended.err == (
                f"neurontools: {path}: line {number}, column 1: is no HLO text, "
                "expected 'HloModule' and a name before all computations\n"
            )


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_files(cli, "hlo verify", tmp_path)
