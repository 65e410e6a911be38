"""`neurontools hlo diff`."""

from __future__ import annotations

from pathlib import Path

from formats.hlo import module_bytes
from formats.hlo.compare import same
from formats.hlo.text import parse_module, print_module
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.cli.hlo_modules import model
from tests.formats.hlo.build import mlp


def test_diff(cli: Cli, tmp_path: Path) -> None:
    file = model(tmp_path)
    renamed = mlp()
    for number, each in enumerate(renamed.entry.instructions):
        each.name = f"other.{number}"
    other = tmp_path / "other.pb"
    other.write_bytes(module_bytes(renamed))
    assert cli("hlo", "diff", file, other).status == 0
    changed = tmp_path / "changed.txt"
    changed.write_text(print_module(mlp()).replace("stride=1x2", "stride=1x1").replace("f32[3,2]", "f32[3,3]"))
    ended = cli("hlo", "diff", file, changed)
    assert ended.status == 1 and "- pool.1 = f32[3,2]" in ended.out and "+ pool.1 = f32[3,3]" in ended.out
    result = checked_json(cli("hlo", "diff", file, changed, "--json"), "hlo diff")
    assert not result["same"] and result["differing"] >= 1


def test_operands_the_other_way_round_are_a_difference() -> None:
    base = (
        "HloModule m\nENTRY e {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] subtract({})\n}}"
    )
    assert not same(parse_module(base.format("a, b")), parse_module(base.format("b, a")))
    assert same(parse_module(base.format("a, b")), parse_module(base.format("a, b").replace("r =", "z =")))


def test_what_is_sent_out_is_a_difference_though_no_result_depends_on_it() -> None:
    base = (
        "HloModule m\nENTRY e {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  t = token[] after-all()\n"
        "  o = token[] outfeed({}, t), outfeed_shape=f32[]\n  ROOT r = f32[] subtract(a, b)\n}}"
    )
    assert not same(parse_module(base.format("a")), parse_module(base.format("b")))
    assert same(parse_module(base.format("a")), parse_module(base.format("a").replace("o =", "z =")))
