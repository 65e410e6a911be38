"""`neurontools cc bench`: nccom-test's options, columns, JSON, units, checks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from neurontools.cc.busbw import bandwidths, factor
from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def test_columns_and_json(cli: Cli, tmp_path: Path) -> None:
    words = ("cc", "bench", "allr", "-r", 16, "-b", "1kb", "-e", "64kb", "-f", 4, "-d", "fp32", "--show-algorithm",
             "-t", "avg,p50", "--report-to-json-file", tmp_path / "r.json",
             "-n", 15, "-I", 10, "-c", "random")  # fmt: skip
    lines = cli(*words).out.splitlines()
    assert lines[0].split() == ["size(B)", "count(elems)", "type", "time:avg(us)", "time:p50(us)", "algbw(GB/s)",
                                "busbw(GB/s)", "algorithm"]  # fmt: skip
    assert [line.split()[0] for line in lines[1:5]] == ["1024", "4096", "16384", "65536"]
    assert lines[-2].startswith("Avg bus bandwidth:") and lines[-1] == "check: passed"
    written = json.loads((tmp_path / "r.json").read_text())["results"]
    assert [one["size(B)"] for one in written] == [1024, 4096, 16384, 65536] and "time:p50(us)" in written[0]
    rows = checked_json(cli(*words, "--json"), "cc bench")["rows"]
    assert all(row["measured"] == 150 and row["busbw"] == pytest.approx(row["algbw"] * 1.875) for row in rows)


def test_published_bandwidths() -> None:
    """33,554,432 bytes: 768 us are 40.69 in 2^30, 894.24 us are 37.52 in 10^9 (collectives.md 10)."""
    assert round(bandwidths("allreduce", 2, 33_554_432, 768, "gib")[0], 2) == 40.69
    assert round(bandwidths("permute", 8, 33_554_432, 894.24, "gb")[1], 2) == 37.52
    assert factor("allreduce", 16) == 1.875 and factor("allgather", 4) == 0.75 and factor("sendrecv", 2) == 1


def test_all_ones_and_sizes(cli: Cli) -> None:
    found = checked_json(cli("cc", "bench", "redsct", "-r", 8, "-b", "8kb", "-e", "16kb", "-i", "4kb", "-c", "all_ones",
                             "-d", "bf16", "--json"), "cc bench")  # fmt: skip
    assert [row["size"] for row in found["rows"]] == [8192, 12288, 16384]
    assert all(row["passed"] and row["output_bytes"] * 8 == row["input_bytes"] for row in found["rows"])


def test_ones_of_narrow_integers_wrap(cli: Cli) -> None:
    words = ("cc", "bench", "allr", "-N", 4, "-b", "1kb", "-e", "1kb", "-d", "uint8", "-c", "all_ones")
    assert "check: passed" in cli(*words).out  # 256 ranks, whose sum is 0


def test_a_warning_is_shown(cli: Cli) -> None:
    ended = cli("cc", "bench", "allr", "-r", 2, "-b", 8, "-e", 8, "-w", 0, "-W", 1)
    assert ended.status == 0 and "no warm-up operations" in ended.err


@pytest.mark.parametrize(
    ("words", "status"),
    [(("allr", "-b", "2kb", "-e", "1kb"), 2), (("allr", "-c", "maybe"), 2), (("allr", "--unit", "mb"), 2),
     (("allr", "-t", "p101"), 2), (("allr", "-b", 1, "-e", "1gb", "-i", 1), 2), (("alltoallv",), 6), (("bcast",), 4)],
)  # fmt: skip
def test_what_makes_no_sense(cli: Cli, words: tuple[object, ...], status: int) -> None:
    assert cli("cc", "bench", *words).status == status


def test_a_wrong_output_is_found(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from emulator.machine.collectives import memory

    whole = memory.folded
    monkeypatch.setattr(memory, "folded", lambda parts, op: whole(parts[:-1], op))
    ended = cli("cc", "bench", "allr", "-r", 8, "-b", "1kb", "-e", "1kb", "-c", "all_ones", "-d", "int32")
    assert ended.status == 1 and "check: FAILED at 1024 bytes" in ended.out
