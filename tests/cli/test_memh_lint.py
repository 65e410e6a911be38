"""`neurontools memh lint`: a planted access out of bounds, short pieces, a round trip, and their clean twins."""

from __future__ import annotations

from pathlib import Path

from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.cli.test_memh_budget import KERNEL, SPILL, THROUGH


def rules(cli: Cli, *words: object) -> tuple[int, set[str]]:
    ended = cli("memh", "lint", *words, "--json")
    return ended.status, {row["rule"] for row in checked_json(ended, "memh lint")["findings"]}


def test_a_broken_rule(cli: Cli, root: Path) -> None:
    assert rules(cli, root / "examples/out_of_bounds.s") == (1, {"oob"})
    assert rules(cli, root / "examples/vector_add.py", "--strict") == (0, set())


def test_a_program_that_hangs_is_not_clean(cli: Cli, root: Path) -> None:
    ended = cli("memh", "lint", root / "examples/deadlock.s")
    assert ended.status == 5 and "the run did not finish" in ended.err and "0 broken rules" in ended.out


def test_slow_accesses(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(KERNEL.format(spill="", through=""))
    assert rules(cli, path, "--strict") == (0, set())
    path.write_text(KERNEL.format(spill=SPILL, through=THROUGH))
    assert rules(cli, path) == (0, {"round-trip"}) and rules(cli, path, "--strict")[0] == 1
    path.write_text(KERNEL.format(spill="", through="").replace("(64, 256)", "(64, 16)"))
    assert rules(cli, path) == (0, {"small-transfer"}) and rules(cli, path, "--small", 0) == (0, set())
    assert "64 bytes in a partition" in cli("memh", "lint", path).out
