"""`neurontools compile cache verify`: whole and damaged entries."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.hlo import save_hlo
from tests.cli.check import checked_json, refuses_bad_caches
from tests.cli.conftest import Cli
from tests.compiler.support import adder


def test_a_whole_cache_verifies(cli: Cli, kept: Path) -> None:
    ended = cli("compile", "cache", "verify", "--cache_dir", kept.parent.parent, "--json")
    assert (ended.status, checked_json(ended, "compile cache verify")["problems"]) == (0, [])
    assert "1 module, ok" in cli("compile", "cache", "verify", "--cache_dir", kept.parent.parent).out


def _cut(entry: Path) -> None:
    (entry / "model.neff").write_bytes((entry / "model.neff").read_bytes()[:-9])


def _other_flags(entry: Path) -> None:
    flags = entry / "compile_flags.json"
    flags.write_text(flags.read_text().replace('"trn2"', '"trn1"'))


def _other_module(entry: Path) -> None:
    save_hlo(entry / "model.hlo_module.pb", adder(opcode="multiply"))


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (_cut, "model.neff: not the file that was written"),
        (_other_flags, "compile_flags.json: not those of the key"),
        (_other_module, "not those of the key"),
        (lambda entry: (entry / "model.done").unlink(), "model.done: missing"),
        (lambda entry: (entry / "model.neff").unlink(), "model.neff: missing"),
        (lambda entry: (entry / "model.hlo_module.pb").unlink(), "model.hlo_module.pb: missing"),
        (lambda entry: (entry / "model.hlo_module.pb").write_bytes(b"\xff\xff no"), "model.hlo_module.pb: "),
        (lambda entry: (entry / "report.json").write_text("[" * 9), "report.json: no JSON"),
        (lambda entry: (entry / "compile_flags.json").write_bytes(b"\xff"), "compile_flags.json: no JSON"),
        (lambda entry: (entry / "model.hlo_module.pb.lock").touch(), "lock: a compilation is under way"),
    ],
)
def test_damage_is_told_with_its_file(cli: Cli, kept: Path, damage: object, problem: str) -> None:
    cache, entry = kept.parent.parent, kept
    damage(entry)  # type: ignore[operator]
    ended = cli("compile", "cache", "verify", "--cache_dir", cache)
    assert (ended.status, problem in ended.out) == (1, True), ended.out


def test_bad_caches(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuses_bad_caches(cli, "verify", tmp_path, monkeypatch)
