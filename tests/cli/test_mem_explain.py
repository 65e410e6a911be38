"""`neurontools mem explain`."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.nrt.memory_reports import DOCUMENTED_BLOCK, DOCUMENTED_EXCERPT, DOCUMENTED_LIST, DOCUMENTED_TABLE


def written(folder: Path, text: str) -> Path:
    path = folder / "runtime.log"
    path.write_text(text)
    return path


def test_the_documented_table(cli: Cli, tmp_path: Path) -> None:
    ended = cli("mem", "explain", written(tmp_path, DOCUMENTED_TABLE), "--json")
    result = checked_json(ended, "mem explain")
    assert ended.status == 0 and result["problems"] == [] and result["sharing"] == [4, 5]
    assert result["failures"] == [{"line": 2, "bytes": 4 << 30, "alignment": "none", "usage": "tensors", "device": 0,
                                   "core": 4}]  # fmt: skip
    rows = {row["label"]: row for row in result["rows"]}
    assert rows["NEFF 1001"]["name"].endswith("meta_dense") and rows["NEFF 1001"]["values"]["tensors"] is None
    assert "share the stack" in result["advice"][0] and "tensors: 20.0 GiB, 99 %" in result["advice"][1]


def test_private_scratchpad_is_explained(cli: Cli, tmp_path: Path) -> None:
    for text in (DOCUMENTED_EXCERPT, DOCUMENTED_LIST):
        ended = cli("mem", "explain", written(tmp_path, text))
        assert ended.status == 0 and "NEURON_SCRATCHPAD_PAGE_SIZE" in ended.out


def test_standard_input(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(DOCUMENTED_BLOCK.encode()), "utf-8"))
    ended = cli("mem", "explain", "-")
    assert ended.status == 0 and "out-test0_meta_concat3" in ended.out and "230.6 KiB" in ended.out


def test_sums_that_do_not_add_up(cli: Cli, tmp_path: Path) -> None:
    path = written(tmp_path, DOCUMENTED_TABLE.replace("| 96.285MB | 96.037MB", "| 96.285MB | 76.037MB"))
    ended = cli("mem", "explain", path)
    assert ended.status == 1 and "does not add up: line 12: NC 5" in ended.out
    assert cli("mem", "explain", path, "-q", "--error-exitcode", "7").status == 7


@pytest.mark.parametrize(
    ("content", "status"),
    [(b"", 3), (b"nothing of the kind\n", 3), (b"\xff\xfe", 3),
     (DOCUMENTED_TABLE.replace("28.562KB", "28.562XB").encode(), 3), (b"ND 0 Overall | 1.000KB |\n", 3)],
)  # fmt: skip
def test_bad_files(cli: Cli, tmp_path: Path, content: bytes, status: int) -> None:
    path = tmp_path / "bad.log"
    path.write_bytes(content)
    ended = cli("mem", "explain", path)
    assert ended.status == status and "bad.log" in ended.error_line
    assert cli("mem", "explain", tmp_path / "missing.log").status == 4
