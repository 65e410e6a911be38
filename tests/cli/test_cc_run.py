"""`neurontools cc run`: data on every rank, time only, groups, sizes that the issue names."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def test_outputs_are_sums(cli: Cli, tmp_path: Path) -> None:
    words = ("cc", "run", "allr", "--ranks", 8, "--size", "4kb", "--inputs", "ones", "--outputs", tmp_path / "o.npz")
    found = checked_json(cli(*words, "--json"), "cc run")
    outputs = np.load(tmp_path / "o.npz")
    assert len(outputs.files) == 8 and all(
        (outputs[name] == 8).all() and outputs[name].size == 1024 for name in outputs
    )
    assert found["hangs"] == [] and all(row["finished_ns"] for row in found["rows"])


def test_time_alone_is_the_same_time(cli: Cli) -> None:
    words = ("cc", "run", "allg", "--size", "64kb", "--json")
    assert checked_json(cli(*words), "cc run")["time_ns"] == checked_json(cli(*words, "--no-data"), "cc run")["time_ns"]


def test_a_mebibyte_over_64_ranks(cli: Cli) -> None:
    text = cli("cc", "run", "allr", "--size", "1MiB").out
    assert text.startswith("allreduce of 1,048,576 bytes (float32) over 64 ranks by rdh took")


def test_a_thousand_ranks_for_time(cli: Cli) -> None:
    found = checked_json(cli("cc", "run", "allr", "--nodes", 16, "--size", "1MiB", "--no-data", "--json"), "cc run")
    assert found["ranks"] == 1024 and len(found["rows"]) == 1024 and found["hangs"] == []


def test_groups_run_beside_each_other(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    path.write_text(json.dumps({"replica_groups": [[list(range(at, at + 16)) for at in range(0, 64, 16)]]}))
    found = checked_json(cli("cc", "run", "redsct", "--size", "64kb", "--groups", path, "--json"), "cc run")
    assert (found["groups"], found["ranks"], len(found["rows"])) == (4, 16, 64)
    path.write_text("{}")
    assert cli("cc", "run", "allr", "--groups", path).status == 3
    path.write_text(json.dumps({"replica_groups": [[[0, 1], [1, 2]]]}))
    ended = cli("cc", "run", "allr", "--groups", path)
    assert ended.status == 6 and "rank 1 is in group 0 and in group 1" in ended.error_line
    assert cli("cc", "run", "allr", "--inputs", "zeros").status == 2


def test_pairs_are_honoured_or_refused(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    for pairs, operation, status, message in (
        ([[0, 1], [0, 2]], "sendrecv", 0, ""),
        ([[0, 1], [2, 1]], "sendrecv", 3, "several for rank 1"),
        ([[0, 1], [0, 77]], "sendrecv", 3, "[0, 77]"),
        ([[0, 1], [1, 0]], "allr", 6, "they belong to permute and sendrecv"),
    ):
        path.write_text(json.dumps({"src_target_pairs": [pairs]}))
        ended = cli("cc", "run", operation, "--ranks", 4, "--size", 64, "--pairs", path)
        assert ended.status == status and message in ended.err
