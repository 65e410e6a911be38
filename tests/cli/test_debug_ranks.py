"""`neurontools debug --ranks`: scripts and files on several ranks, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import neurontools
from tests.cli.conftest import Cli
from tests.emulator.machine.test_ranks import reduced

SCRIPT = """
import os, sys
import numpy as np
import nki, nki.collectives as ncc, nki.language as nl

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

@nki.jit
def total(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    ncc.all_reduce([x], [out], [list(range(world))], nl.add)
    return out

if sys.argv[1:] == [str(rank)]:
    raise SystemExit(3)
y = total(np.full((4, 8), rank + 1.0, np.float32))
z = total(y)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "step.py"
    path.write_text(SCRIPT)
    return path


def asked(script: Path) -> list[object]:
    return ["debug", script, "--ranks", 3, "--target", "trn2", "--lnc", 1]


def test_a_script_on_the_command_line(cli: Cli, script: Path) -> None:
    ended = cli(
        *asked(script), "-c", "break step.py:11 rank 2; continue; info ranks; rank 1; continue; print out[0, 0]"
    )
    assert ended.status == 0, ended.err
    assert "breakpoint 1: " in ended.out and "step.py:11 on rank 2" in ended.out
    assert "rank 2\nbreakpoint 1\n=> nc0 " in ended.out and "rank 1: total" in ended.out
    assert "out[0, 0]" in ended.out and ended.out.splitlines()[-1].endswith("6.")


def test_a_later_launch(cli: Cli, script: Path) -> None:
    ended = cli(*asked(script), "--launch", 2, "-c", "continue; print out[0]")
    assert ended.status == 0 and "min 18, mean 18, max 18" in ended.out, ended.err
    ended = cli(*asked(script), "--launch", 3, "-c", "continue")
    assert ended.status == 4 and "no launch 3; the ranks launch kernels together 2 times" in ended.error_line


def test_a_rank_whose_script_leaves(cli: Cli, script: Path) -> None:
    ended = cli(*asked(script), "-c", "info ranks; continue; why", "--", 1)
    assert ended.status == 5 and "absent" in ended.out
    assert "for rank 1, which launched no program" in ended.out
    assert "the script of rank 1 launches no kernel here" in ended.err
    ended = cli(*asked(script), "-c", "rank 1", "--", 1)
    assert ended.status == 4 and "rank 1 runs no program" in ended.err


def test_as_json(cli: Cli, script: Path) -> None:
    ended = cli(*asked(script), "--json", "-c", "rank 2; info breakpoints; info ranks; continue; why; rank 3")
    documents = [json.loads(line) for line in ended.out.splitlines()]
    values = [one["result"]["value"] for one in documents[:-1]]
    assert values[0]["rank"] == 2 and [row["selected"] for row in values[2]] == [False, False, True]
    assert values[3]["reason"] == "finished" and values[4]["ranks"] == {"waits": [], "hang": None}
    assert ended.status == 4 and documents[-1]["error"]["message"] == "no rank 3; there are 0 to 2"


@pytest.mark.parametrize(("options", "status", "message"), [
    (["--instance", "trn2.48xlarge"], 2, "goes with --ranks"),
    (["--ranks", 0], 2, "--ranks"),
    (["--ranks", 129], 3, "129 ranks; trn2.48xlarge has 1 to 128"),
    (["--ranks", 2, "--instance", "trn9.big"], 4, "no instance type 'trn9.big'"),
])  # fmt: skip
def test_options_that_do_not_fit_are_refused(
    cli: Cli, tmp_path: Path, options: list[object], status: int, message: str
) -> None:
    path = tmp_path / "sum.neff"
    neurontools.build(reduced, np.zeros((16, 4), np.float32), target="trn2", lnc=1).save(path)
    ended = cli("debug", path, *options, "-c", "state")
    assert ended.status == status and message in ended.err, ended.err


def test_the_core_dump_of_a_rank_has_no_ranks(cli: Cli, script: Path, tmp_path: Path) -> None:
    saved = cli(*asked(script), "-c", f"rank 1; step 5; save-core {tmp_path / 'one.core'}")
    assert saved.status == 0, saved.err
    assert cli("debug", tmp_path / "one.core", "-c", "state; info ranks").status == 0
    ended = cli("debug", tmp_path / "one.core", "--ranks", 2, "-c", "state")
    assert ended.status == 3 and "a core dump cannot be run" in ended.error_line


def test_a_rank_alone_has_no_others(cli: Cli, root: Path) -> None:
    ended = cli("debug", root / "examples/deadlock.s", "-c", "info ranks; rank; rank 1")
    assert ended.status == 2 and "none" in ended.out and "runs here alone" in ended.error_line
