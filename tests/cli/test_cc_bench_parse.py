"""`neurontools cc bench-parse`: tables and JSON of nccom-test, units, the published rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from neurontools.cc.published import page, validated
from tests.cli.check import checked_json
from tests.cli.conftest import Cli

TEXT = """
$ nccom-test -r 2 --minbytes 1mb --maxbytes 64mb --stepfactor 64 --datatype fp32 allr
       size(B)    count(elems)    type    time(us)    algbw(GB/s)    busbw(GB/s)
       1048576          262144    fp32          68          14.36          14.36
      67108864        16777216    fp32        1214          51.48          51.48
Avg bus bandwidth:      32.9200GB/s

$ nccom-test -r 8 permute
    size(B)    count(elems)     type    time:avg(us)    algbw(GB/s)    busbw(GB/s)
    33554432        33554432    uint8          894.24          37.52          37.52
"""


def test_two_tables_of_two_units(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "n.txt").write_text(TEXT)
    ended = cli("cc", "bench-parse", tmp_path / "n.txt", "--json")
    first, second = checked_json(ended, "cc bench-parse")["tables"]
    assert ended.status == 0 and (first["operation"], first["ranks"]) == ("allreduce", 2)
    assert {row["unit"] for row in first["rows"]} == {"gib"} and {row["unit"] for row in second["rows"]} == {"gb"}
    assert all(row["busbw_right"] and row["ratio"] > 1 for row in first["rows"])
    assert "model: step lists alone" in cli("cc", "bench-parse", tmp_path / "n.txt").out


def test_a_wrong_bandwidth_is_found(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "n.txt").write_text(TEXT.replace("51.48          51.48", "51.48          99.00"))
    ended = cli("cc", "bench-parse", tmp_path / "n.txt")
    assert ended.status == 1 and "WRONG" in ended.out


def test_json_of_nccom_test(cli: Cli, tmp_path: Path) -> None:
    row = {"size(B)": 65536, "count(elems)": 16384, "type": "fp32", "time:avg(us)": 8.18, "algbw(GB/s)": 8.008,
           "busbw(GB/s)": 7.758}  # fmt: skip
    (tmp_path / "n.json").write_text(json.dumps({"results": [row]}))
    words = ("cc", "bench-parse", tmp_path / "n.json", "--instance", "trn1.32xlarge")
    assert cli(*words).status == 2
    found = checked_json(cli(*words, "--op", "allg", "--ranks", 32, "--json"), "cc bench-parse")["tables"]
    assert found[0]["rows"][0]["unit"] == "gb" and found[0]["rows"][0]["busbw_right"]


@pytest.mark.parametrize("row", ["1024 1024 uint8 nan 1.0 1.0", "-5 1 uint8 3.0 1.0 1.0", "8 8 uint8 inf 1.0 1.0"])
def test_a_row_that_nobody_measured(cli: Cli, tmp_path: Path, row: str) -> None:
    head = "size(B) count(elems) type time:avg(us) algbw(GB/s) busbw(GB/s)"
    (tmp_path / "n.txt").write_text(f"nccom-test -r 2 allr\n{head}\n{row}\n")
    ended = cli("cc", "bench-parse", tmp_path / "n.txt")
    assert ended.status == 3 and "a number of 0 and more" in ended.error_line


@pytest.mark.parametrize("data", [b"", b"\x00\xff" * 99, b'{"results": [3]}', b'{"results": 5}', b"{", b"size(B)\n4\n"])
def test_what_is_no_output(cli: Cli, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "n").write_bytes(data)
    assert cli("cc", "bench-parse", tmp_path / "n", "--op", "allr", "--ranks", 2).status == 3
    assert cli("cc", "bench-parse", tmp_path / "missing").status == 4
    assert cli("cc", "bench-parse").status == 2
    for given in (["--write", tmp_path / "page.md"], ["--published"]):  # one of two comparisons, none left out silently
        refused = cli("cc", "bench-parse", tmp_path / "n", "--op", "allr", "--ranks", 2, *given)
        assert refused.status == 2 and "--published" in refused.err
    assert not (tmp_path / "page.md").exists()


def test_the_published_rows(root: Path) -> None:
    """Written before the fit: the first and last row of a series are fitted, the others held out."""
    found = validated()
    for one in found.series:
        assert [row.held_out for row in one.rows] == [False, *[True] * (len(one.rows) - 2), False]
        for row in (one.rows[0], one.rows[-1]):
            assert row.error < 1e-9
    assert found.held_out == 56 and found.median_error <= 0.25
    assert "\n".join(page(found)) + "\n" == (root / "docs" / "collectives-validation.md").read_text()
