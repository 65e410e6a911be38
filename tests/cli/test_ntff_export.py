"""`neurontools ntff export`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from tests.cli.captures import capture, neff, refuses_bad_captures
from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def test_a_table_of_executions(cli: Cli, root: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.csv"
    ended = cli("ntff", "export", capture(root), "-o", out, "--format", "csv", "--neff", neff(root, tmp_path), "--json")
    result = checked_json(ended, "ntff export")
    rows = list(csv.DictReader(out.open()))
    assert result["executions"] == len(rows) == 10 and result["bytes"] == out.stat().st_size
    work = next(row for row in rows if row["opcode"] == "TENSOR_TENSOR")
    assert (work["engine"], work["compiler_pc"]) == ("vector", "2") and work["source"].endswith("double.s:16")
    assert float(work["start_ns"]) > 1000 and float(work["duration_ns"]) > 0


def test_a_trace_for_chrome_is_no_simulation(cli: Cli, root: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.json"
    assert cli("ntff", "export", capture(root), "-o", out, "--format", "chrome").status == 0
    trace = json.loads(out.read_text())
    assert trace["otherData"]["is_simulation"] is False
    names = [event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"]
    assert "vector" in names and "E64 qIn" in names
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(slices) == 10 + 32 and {event["cat"] for event in slices} == {"instruction", "dma"}
    assert {event["name"] for event in trace["traceEvents"] if event["ph"] == "C"} == {"S[6]", "S[8]", "S[24]"}


def test_a_trace_for_perfetto(cli: Cli, root: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.pftrace"
    ended = cli("ntff", "export", capture(root), "-o", out)
    assert ended.status == 0 and ended.out.startswith(f"{out}: 10 executions, ")
    assert b"TENSOR_TENSOR" in out.read_bytes() and b"qOut" in out.read_bytes()


def test_an_unknown_format(cli: Cli, root: Path, tmp_path: Path) -> None:
    ended = cli("ntff", "export", capture(root), "-o", tmp_path / "x", "--format", "pdf")
    assert ended.status == 2 and "'pdf' is none of perfetto, chrome, csv" in ended.err
    assert not (tmp_path / "x").exists()


def test_nothing_is_written_for_bad_files(cli: Cli, root: Path, tmp_path: Path) -> None:
    refuses_bad_captures(cli, "ntff export", root, tmp_path, "-o", tmp_path / "never")
    assert not (tmp_path / "never").exists()
