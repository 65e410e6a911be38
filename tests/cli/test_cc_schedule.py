"""`neurontools cc schedule`: deadlocks over ranks are named with ranks, lines and cycle; clean twins end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.counting import counted


def scheduled(cli: Cli, folder: Path, text: str, *words: object) -> tuple[int, Any]:
    (folder / "calls.txt").write_text(text)
    ended = cli("cc", "schedule", folder / "calls.txt", *words, "--json")
    return ended.status, checked_json(ended, "cc schedule")


CLEAN = "0-7: allr 4kb over 0-7\n0-7: allg 4kb over 0-7\n0-3: redsct 4kb over 0-3\n"
CROSSED = """\
0: allr 4kb over 0,4     # rank 0 begins with rank 4 ...
0: allr 4kb over 0,8
4: allr 4kb over 4,8     # ... which begins with rank 8 ...
4: allr 4kb over 0,4
8: allr 4kb over 0,8     # ... which begins with rank 0
8: allr 4kb over 4,8
"""


def test_calls_that_meet(cli: Cli, tmp_path: Path) -> None:
    status, found = scheduled(cli, tmp_path, CLEAN)
    assert status == 0 and found["stuck"] is None and [row["lines"] for row in found["calls"]] == [[1], [2], [3]]
    ends = [row["end_ns"] for row in found["calls"]]
    assert ends == sorted(ends) and all(row["start_ns"] < row["end_ns"] for row in found["calls"])


def test_another_order_is_a_cycle(cli: Cli, tmp_path: Path) -> None:
    status, found = scheduled(cli, tmp_path, CROSSED)
    stuck = found["stuck"]
    assert status == 5 and stuck["cause"] == "order" and stuck["status"] == 1200
    assert stuck["ranks"] == [0, 4, 8] and stuck["lines"] == [1, 3, 5]
    assert "ranks 0, 4, 8 call in different orders" in cli("cc", "schedule", tmp_path / "calls.txt").out
    # The clean twin: rank 8 begins with rank 4, so that somebody can.
    lines = CROSSED.splitlines()
    lines[4], lines[5] = lines[5], lines[4]
    assert scheduled(cli, tmp_path, "\n".join(lines))[0] == 0


def test_streams_do_not_wait_for_each_other(cli: Cli, tmp_path: Path) -> None:
    crossed = "0: allr 4kb over 0-1\n0: allg 4kb over 0,1,2,3\n1-3: allg 4kb over 0-3{}\n1: allr 4kb over 0-1\n"
    status, found = scheduled(cli, tmp_path, crossed.format(""))
    assert status == 5 and found["stuck"]["ranks"] == [0, 1]
    assert scheduled(cli, tmp_path, crossed.format(" stream 1"))[0] == 0


def test_one_stream_serialises_and_two_overlap(cli: Cli, tmp_path: Path) -> None:
    both = "0-63: allg 1MiB\n0-63: allr 16MiB{}\n"
    one, two = (scheduled(cli, tmp_path, both.format(stream))[1] for stream in ("", " stream 1"))
    assert one["calls"][1]["start_ns"] > 0 and two["calls"][1]["start_ns"] == 0
    assert two["time_ns"] < one["time_ns"]


def test_a_rank_that_never_calls(cli: Cli, tmp_path: Path) -> None:
    status, found = scheduled(cli, tmp_path, "0-4: allr 4kb over 0-5\n")
    assert status == 5 and found["stuck"]["cause"] == "missing" and found["stuck"]["ranks"] == [5]
    assert scheduled(cli, tmp_path, "0-5: allr 4kb over 0-5\n")[0] == 0


def test_a_wrong_group(cli: Cli, tmp_path: Path) -> None:
    status, found = scheduled(cli, tmp_path, "0: allr 4kb over 0-3\n1-3: allr 4kb over 1-3\n")
    assert status == 5 and found["stuck"]["ranks"] == [1]
    assert "it calls allreduce of 4,096 bytes over ranks 1-3 (line 2)" in found["stuck"]["sentence"]


def test_calls_that_are_not_the_same(cli: Cli, tmp_path: Path) -> None:
    status, found = scheduled(cli, tmp_path, "0: allr 4kb over 0-1\n1: allg 4kb over 0-1\n")
    assert status == 1 and "rank 0 calls allreduce" in found["mismatches"][0] and "line 2" in found["mismatches"][0]
    assert scheduled(cli, tmp_path, "0: allr 4kb over 0-1\n1: allr 8kb over 0-1\n")[0] == 1


def test_a_deadlock_of_64_ranks_is_explained_quickly() -> None:
    from emulator.machine.collectives import schedule
    from emulator.machine.machine import Machine

    machine = Machine("trn2.48xlarge")
    pairs = [tuple(sorted((rank, (rank + 1) % 64))) for rank in range(64)]
    calls = [schedule.Call(2 * rank + 1, (rank,), "allreduce", 64, 4, pairs[rank], 0) for rank in range(64)]
    calls += [schedule.Call(2 * rank + 2, (rank,), "allreduce", 64, 4, pairs[rank - 1], 0) for rank in range(64)]
    did, ended = counted(lambda: schedule.run_schedule(machine, calls), builtins=True)
    assert did < 100_000 and ended.stuck is not None and ended.stuck.cause == "order" and len(ended.stuck.ranks) == 64


@pytest.mark.parametrize(
    "text",
    ["", "# nothing\n", "all: allr 4kb\n", "0: bcast 4kb\n", "0: allr many\n", "0-1: allr 4kb over 1\n",
     "0: allr 4kb stream 4\n", "0: allr 4kb as fp4\n", "0-999999999: allr 4kb\n", "3-: allr 4kb\n"],
)  # fmt: skip
def test_files_that_are_none(cli: Cli, tmp_path: Path, text: str) -> None:
    (tmp_path / "calls.txt").write_text(text)
    assert cli("cc", "schedule", tmp_path / "calls.txt").status == 3
    assert cli("cc", "schedule", tmp_path / "missing").status == 4


@pytest.mark.parametrize("ranks", ["3-1", "0-", "-", "0--1", ",".join(["0-9999"] * 3), "9" * 5000])
def test_lists_of_ranks_that_are_none(cli: Cli, tmp_path: Path, ranks: str) -> None:
    """A range that goes down was no rank at all, and a list of ranges could take any memory."""
    (tmp_path / "calls").write_text(f"{ranks}: allr 64kb over 0-3\n")
    ended = cli("cc", "schedule", tmp_path / "calls")
    assert ended.status == 3 and "line 1" in ended.error_line and "no call" in ended.error_line
