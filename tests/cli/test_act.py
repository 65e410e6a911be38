"""`--act` of run, check and debug: activation functions exactly, or by the file's own tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Cli
from tests.corpus import files


@pytest.mark.parametrize("command", ["run", "check", "debug"])
def test_how_is_checked(cli: Cli, program_file: Path, command: str) -> None:
    ended = cli(command, program_file, "--act", "fast")
    assert ended.status == 2 and "'fast' is none of exact, table" in ended.err


def test_a_file_without_tables_gives_the_same(cli: Cli, program_file: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.ones((128, 64), np.float32))
    for how in ("exact", "table"):
        ended = cli("run", program_file, "--inputs", tmp_path / "in.npz", "--outputs", tmp_path / f"{how}.npz", "--act",
                    how)  # fmt: skip
        assert ended.status == 0
    exact, table = (np.load(tmp_path / f"{how}.npz")["y"] for how in ("exact", "table"))
    assert exact.tobytes() == table.tobytes()
    assert cli("check", program_file, "--inputs", tmp_path / "in.npz", "--act", "table").status == 0


def test_the_tables_of_a_real_file(cli: Cli, corpus: Path, tmp_path: Path) -> None:
    name = files.ATTENTION[1]
    path, inputs = files.find(corpus, name), files.attention_inputs(name)
    np.savez(tmp_path / "in.npz", **inputs)
    for how in ("exact", "table"):
        ended = cli("run", path, "--inputs", tmp_path / "in.npz", "--outputs", tmp_path / f"{how}.npz", "--act", how)
        assert ended.status == 0
    exact, table = (np.load(tmp_path / f"{how}.npz")["kernel_out"] for how in ("exact", "table"))
    assert exact.tobytes() != table.tobytes()
    assert np.abs(exact - table).max() < 1e-5
    looks = "continue; print kernel_out[0, 0:2]"
    first = cli("debug", path, "--inputs", tmp_path / "in.npz", "--act", "table", "-c", looks)
    assert first.status == 0 and f"{table[0, 0]:.3f}"[:5] in first.out
