"""`neurontools cc plan`: algorithms with reasons, traffic, requests that are not legal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def planned(cli: Cli, *words: object) -> dict[str, object]:
    return dict(checked_json(cli("cc", "plan", *words, "--json"), "cc plan"))


@pytest.mark.parametrize(
    ("words", "algorithm"),
    [
        (("allr", "--size", "64kb"), "mesh"),
        (("allr", "--size", "1MiB"), "rdh"),
        (("allr", "--size", "64MiB"), "kangaring"),
        (("allr", "--size", "64MiB", "--ranks", 3), "ring"),
        (("allr", "--size", "1kb", "--nodes", 4), "hier"),
        (("allr", "--size", "4kb", "--nodes", 4, "--ranks", 4), "single-step-mesh"),
        (("allr", "--size", "64kb", "--nodes", 4, "--ranks", 4), "mesh"),
        (("alltoall", "--size", "64kb"), "mesh"),
        (("allr", "--size", "1MiB", "--instance", "inf2.48xlarge"), "kangaring"),
    ],
)
def test_the_choice_goes_by_size_and_group(cli: Cli, words: tuple[object, ...], algorithm: str) -> None:
    found = planned(cli, *words)
    assert found["algorithm"] == algorithm and found["rule"]
    assert all(row["reason"] for row in found["rejected"])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("words", "name", "reason"),
    [
        (("allr", "--size", 64, "--nodes", 2, "--ranks", 2), "mesh", "a second step"),
        (("allr", "--size", 64, "--nodes", 2, "--ranks", 2), "hier", "one rank a node"),
        (("allr", "--size", "4kb", "--nodes", 32, "--ranks", 32), "mesh", "up to 1,048,576 bytes, 16 ranks"),
        (("allr", "--size", "4kb", "--nodes", 4, "--ranks", 4), "rdh", "from 1,048,576 to 67,108,864 bytes"),
        (("allr", "--size", "4kb", "--instance", "inf2.48xlarge"), "kangaring", "above 1,000,000 bytes"),
    ],
)
def test_reasons_are_those_of_the_group(cli: Cli, words: tuple[object, ...], name: str, reason: str) -> None:
    found = planned(cli, *words)
    rejected = {row["algorithm"]: row["reason"] for row in found["rejected"]}  # type: ignore[attr-defined]
    assert reason in rejected[name] and "inf " not in found["rule"]


def test_stretches_carry_the_bytes_of_all_groups(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    carried = []
    for groups in ([[0, 1]], [[0, 1], [2, 3]]):
        path.write_text(json.dumps({"replica_groups": [groups]}))
        carried.append(planned(cli, "allr", "--size", "64kb", "--groups", path)["links"])
    assert carried[1][0]["bytes"] == 2 * carried[0][0]["bytes"]  # type: ignore[index]


def test_the_worked_answer(cli: Cli) -> None:
    """64 ranks, 1 MiB: 126 steps of Ring with 2,064,384 bytes, 62 hops of KangaRing, one step with 66,060,288."""
    base = ("allr", "--ranks", 64, "--size", "1MiB", "--nodes", 1)
    found = {
        name: planned(cli, *base, "--algo", name) for name in ("ring", "kangaring", "rdh", "mesh", "single-step-mesh")
    }
    assert {name: one["steps"] for name, one in found.items()} == {
        "ring": 126, "kangaring": 62, "rdh": 10, "mesh": 4, "single-step-mesh": 1,
    }  # fmt: skip
    assert sum(row["bytes_per_rank"] for row in found["ring"]["step_rows"]) == 2_064_384  # type: ignore[attr-defined]
    assert found["single-step-mesh"]["step_rows"][0]["bytes_per_rank"] == 66_060_288  # type: ignore[index]
    assert planned(cli, *base)["algorithm"] == "rdh"
    assert "1 MiB lies on the boundary with mesh" in cli("cc", "plan", *base).out


def test_single_step_thresholds(cli: Cli) -> None:
    for ranks, limit in ((4, 62_500), (8, 17_857), (16, 7_143), (32, 3_226), (64, 1_536)):
        words = ("allr", "--nodes", ranks, "--ranks", ranks)
        assert planned(cli, *words, "--size", limit - 2)["algorithm"] == "single-step-mesh"
        assert planned(cli, *words, "--size", limit + 2)["algorithm"] != "single-step-mesh"


def test_thresholds_of_a_file(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text("mesh = 100\nrdh = 2000\n")
    assert planned(cli, "allr", "--size", "4kb", "--thresholds", tmp_path / "t.toml")["algorithm"] == "kangaring"
    (tmp_path / "t.toml").write_text("mash = 100\n")
    ended = cli("cc", "plan", "allr", "--thresholds", tmp_path / "t.toml")
    assert ended.status == 3 and "mash: no threshold" in ended.error_line


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("allr", "--algo", "rdh", "--ranks", 12), 6, "3 chips are no power of two"),
        (("allr", "--algo", "kangaring", "--ranks", 6), 6, "all ranks of each chip"),
        (("allg", "--algo", "single-step-mesh"), 6, "only AllReduce"),
        (("permute", "--pairs", "PAIRS"), 6, "not linked"),
        (("allr", "--instance", "inf1.24xlarge"), 6, "described, not executed"),
        (("allr", "--instance", "inf2.48xlarge", "--nodes", 2), 6, "no EFA"),
        (("allr", "--algo", "star"), 4, "no algorithm 'star'"),
        (("reduce",), 4, "no collective operation"),
        (("allr", "--dtype", "fp4"), 4, "no data type"),
        (("allr", "--ranks", 65), 3, "number of ranks"),
        (("allr", "--size", "many"), 2, "no number of bytes"),
    ],
)
def test_what_is_not_legal(cli: Cli, tmp_path: Path, words: tuple[object, ...], status: int, message: str) -> None:
    pairs = tmp_path / "pairs.json"
    pairs.write_text(json.dumps({"src_target_pairs": [[[0, 40], [40, 0]]]}))
    ended = cli("cc", "plan", *(pairs if word == "PAIRS" else word for word in words))
    assert ended.status == status and message in ended.error_line
