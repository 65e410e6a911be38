"""`neurontools hlo tokens strip`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cli
from tests.cli.hlo_modules import collectives


def test_a_module_without_tokens_stays_as_it_is(cli: Cli, tmp_path: Path) -> None:
    file, output = collectives(tmp_path), tmp_path / "out.pb"
    assert cli("hlo", "tokens", "strip", file, "-o", output).status == 0
    assert cli("hlo", "diff", file, output).status == 0
    assert cli("hlo", "tokens", "strip", tmp_path / "none", "-o", output).status == 4


def test_marks_of_others_are_refused(cli: Cli, tmp_path: Path) -> None:
    """An element of a parameter that bears the mark was an IndexError."""
    file, output = tmp_path / "marked.txt", tmp_path / "out.pb"
    mark = 'frontend_attributes={neurontools_token="1"}'
    for line in (f"g = f32[4] get-tuple-element(p), index=0, {mark}",
                 f"h = f32[4] get-tuple-element(p), index=0\n  g = f32[4] negate(h), {mark}"):  # fmt: skip
        file.write_text(f"HloModule m\n\nENTRY main {{\n  p = (f32[4], f32[4]) parameter(0)\n  {line}\n"
                        "  ROOT r = f32[4] add(g, g)\n}\n")  # fmt: skip
        ended = cli("hlo", "tokens", "strip", file, "-o", output)
        assert ended.status == 3 and "hlo tokens add" in ended.error_line and not output.exists()
