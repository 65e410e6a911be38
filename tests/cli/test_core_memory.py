"""`neurontools core memory`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.cli.dumps import dump, refuses_bad_dumps


def test_what_is_there(cli: Cli, hang_core: Path) -> None:
    result = checked_json(cli("core", "memory", hang_core, "--json"), "core memory")
    assert next(m for m in result["memories"] if m["space"] == "SBUF")["written"] == 32768
    assert [(a["name"], a["stored"]) for a in result["allocations"]] == [("sg00/x", 0), ("y", 0)]
    assert "y       output" in cli("core", "memory", hang_core).out


def test_addresses_and_tensors(cli: Cli, root: Path, tmp_path: Path) -> None:
    path = dump(root, "deadlock", tmp_path / "x.core")
    result = checked_json(cli("core", "memory", path, "127:0x4000", "-n", "4", "-f", "f", "--json"), "core memory")
    assert result["values"] == [1.0] * 4 and result["space"] == "SBUF"
    result = checked_json(cli("core", "memory", path, "y[3:5,:2]", "--json"), "core memory")
    assert result["shape"] == [2, 2] and result["unwritten"] == 4
    assert "1  1  1  1" in cli("core", "memory", path, "nc0 127:0x4000", "-n", "4", "-f", "f").out
    target = tmp_path / "x.npy"
    ended = cli("core", "memory", path, "0:0x4000", "-f", "f", "-n", "64", "-o", target, "--json")
    result = checked_json(ended, "core memory")
    assert np.array_equal(np.load(target), np.ones(64, np.float32)) and result["values"] is None


def test_what_is_not_there(cli: Cli, hang_core: Path, tmp_path: Path) -> None:
    for place, words in (("x", "not in this light dump"), ("z", "no tensor 'z'"), ("200:0", "partitions 0 to 127"),
                         ("hbm:0x5", "no memory at 0x5")):  # fmt: skip
        ended = cli("core", "memory", hang_core, place)
        assert ended.status == 4 and words in ended.error_line, ended
    assert cli("core", "memory", hang_core, "0:0x4000", "-f", "q").status == 2
    assert cli("core", "memory", hang_core, "-o", tmp_path / "x.npy").status == 2


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    refuses_bad_dumps(cli, "core memory", tmp_path)
