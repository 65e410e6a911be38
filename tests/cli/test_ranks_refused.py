"""What `--ranks` cannot mean is refused alike by every command that takes it: one line, one status, nothing left."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import neurontools
from neurontools.program.arrays import write_arrays
from tests.cli.conftest import Cli
from tests.emulator.machine.test_ranks import reduced

COMMANDS: dict[str, tuple[str, ...]] = {"run": (), "check": (), "debug": ("-c", "continue"), "profile": ()}

REFUSED: list[tuple[tuple[object, ...], int, str]] = [
    (("sum.neff", "--ranks", 0), 2, "0 is not in the range"),
    (("sum.neff", "--ranks", "x"), 2, "'x' is not a valid int"),
    (("sum.neff", "--ranks", 129), 3, "129 ranks; trn2.48xlarge has 1 to 128"),
    (("two.neff", "--ranks", 65), 3, "65 ranks; trn2.48xlarge has 1 to 64"),
    (("one.neff", "--ranks", 33), 3, "33 ranks; trn1.32xlarge has 1 to 32"),
    (("sum.neff", "--ranks", 2, "--instance", "nope"), 4, "no instance type 'nope'"),
    (("sum.neff", "--ranks", 2, "--instance", "inf1.xlarge"), 6, "described, not executed"),
    (("sum.neff", "--ranks", 2, "--instance", "inf2.xlarge"), 3, "the program is for trn2, inf2.xlarge has inf2"),
    (("one.neff", "--ranks", 2, "--instance", "trn2.48xlarge"), 3, "the program is for trn1"),
    (("sum.neff", "--ranks", 2, "--nodes", 0), 2, "0 is not in the range"),
    (("sum.neff", "--ranks", 2, "--nodes", 1000), 6, "at most 16,384 are emulated"),
    (("sum.neff", "--ranks", 2, "--nodes", 10**9), 3, "expected 1 to 4096"),
    (("sum.neff", "--ranks", 2, "--nodes", 2, "--instance", "inf2.48xlarge"), 6, "has no EFA"),
    (("sum.neff", "--nodes", 2), 2, "--nodes: goes with --ranks"),
    (("sum.neff", "--instance", "trn2.48xlarge"), 2, "--instance: goes with --ranks"),
    (("p-{rank}.neff", "--ranks", 3), 4, "p-2.neff: no such file"),
    (("q-{rank}.neff", "--ranks", 2), 3, "for trn2 on 1 cores and for trn2 on 2"),
    (("sum.neff", "--ranks", 2, "--inputs", "x-{rank}.npz"), 4, "x-0.npz: no such file"),
    (("sum.neff", "--ranks", 2, "--inputs", "i-{rank}.npz"), 3, "rank 1: input 'x' has shape [16, 5]"),
    (("sum.neff", "--ranks", 2, "--inputs", "y.npz"), 3, "no input 'zz'"),
    (("sum.neff", "--ranks", 2, "--inputs", "own.npz"), 3, "no input 'xx'"),
    (("sum.neff", "--ranks", 2, "--target", "trn1"), 2, "sum.neff is for trn2, not trn1"),
    (("sum.neff", "--ranks", 2, "--lnc", 2), 2, ""),
    (("syntax.py", "--ranks", 2), 3, "syntax.py:1: not Python"),
    (("empty", "--ranks", 2), 3, "NEFF header is cut off"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("refused")
    x = np.zeros((16, 4), np.float32)
    for name, target, lnc in (("sum", "trn2", 1), ("two", "trn2", 2), ("one", "trn1", 1)):
        neurontools.build(reduced, x, target=target, lnc=lnc).save(found / f"{name}.neff")
    for name in ("p-0", "p-1", "q-0"):
        (found / f"{name}.neff").write_bytes((found / "sum.neff").read_bytes())
    (found / "q-1.neff").write_bytes((found / "two.neff").read_bytes())
    for name, key, shape in (("i-0", "x", (16, 4)), ("i-1", "x", (16, 5)), ("y", "zz", (16, 4))):
        write_arrays(found / f"{name}.npz", {key: np.zeros(shape, np.float32)})
    write_arrays(found / "own.npz", dict.fromkeys(("x@0", "xx"), np.zeros((16, 4), np.float32)))
    (found / "syntax.py").write_text("def (\n")
    (found / "empty").write_text("")
    return found


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("words", "status", "message"), REFUSED, ids=[" ".join(map(str, one[0])) for one in REFUSED])
def test_what_ranks_cannot_mean(
    cli: Cli, folder: Path, command: str, words: tuple[object, ...], status: int, message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    ended = cli(command, *words, *COMMANDS[command])
    assert ended.status == status and message in ended.error_line
    assert sorted(folder.iterdir()) == before


def test_a_file_for_each_rank_is_taken_by_every_command(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for command, more in COMMANDS.items():
        ended = cli(command, "p-{rank}.neff", "--ranks", 2, "--inputs", "random:1", *more)
        assert ended.status == 0, (command, ended.err)
