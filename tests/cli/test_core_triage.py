"""`neurontools core triage`: first failures, signatures, causes, of our dumps and of AWS's."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from formats.errors import FormatError
from neurontools.dump.publish import COMMITTED
from neurontools.triage.hypotheses import Hypothesis
from neurontools.triage.rank import Rank
from neurontools.triage.rows import ClusterRow, FailureRow, Triage
from neurontools.triage.view import view
from neurontools.triage.work import add_up
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.triage.support import DEADLOCK, FAULT, LOST, awss, ours

CID = "00ab00cd00ef0011"
TIMEOUT = (5, "NRT_TIMEOUT")
STUCK = (
    "missing collectives status on Neuron Device 0 NC 1, model 0 - suspected hang in collectives operation 7 out of 9"
)


def result(cli: Cli, *words: object) -> Any:
    ended = cli("core", "triage", *words, "--jobs", 1, "--json")
    assert ended.status == 1, ended
    return checked_json(ended, "core triage")


def test_the_first_rank_that_failed_is_found_among_its_followers(cli: Cli, tmp_path: Path) -> None:
    directory = tmp_path / f"dt-20250919-185700-cid-{CID}"
    for pid in range(1, 8):
        ours(directory, pid, instance=f"i-0{pid % 2}", second=1.0, fault=None, waits=LOST, world=10, rank=pid,
             status=(1200, "NRT_EXEC_HW_ERR_COLLECTIVES"))  # fmt: skip
    ours(directory, 100, instance="i-07", second=4.5, world=10, rank=0)  # later, but not a consequence
    ours(directory, 101, instance="i-07", second=5.5, world=10, rank=8)
    data = result(cli, tmp_path)
    (failure,) = data["failures"]
    assert (failure["cluster"], failure["ranks"], failure["missing"], failure["consequences"]) == (CID, 9, 1, 7)
    first = failure["first"]
    assert (first["instance"], first["pid"], first["rank"], first["status"]) == ("i-07", 100, 0, 1006)
    assert (first["engine"], first["opcode"], first["line"], first["when_from"]) == ("Pool", "GATHER", "k.py:7", "log")
    best = data["hypotheses"][0]
    assert best["cause"] == "out-of-bounds" and "Pool pc 11 (k.py:7)" in best["text"] and "99999" in best["text"]
    assert "missing-ranks" in [each["cause"] for each in data["hypotheses"]]
    assert [(c["status"], c["ranks"], c["first_in"]) for c in data["clusters"]] == [
        ("NRT_EXEC_OOB", 2, 1), ("NRT_EXEC_HW_ERR_COLLECTIVES", 7, 0)
    ]  # fmt: skip


def test_ranks_of_one_cluster_meet_across_directories(cli: Cli, tmp_path: Path) -> None:
    for host in ("a", "b"):
        ours(tmp_path / host / f"dt-20250919-185700-cid-{CID}", 1, instance=f"i-{host}", second=2 if host == "a" else 1)
    data = result(cli, tmp_path / "a", tmp_path / "b")
    assert data["directories"] == 2 and data["executions"] == 1
    assert data["failures"][0]["first"]["instance"] == "i-b"


def test_directories_without_a_cluster_are_executions_of_their_own(cli: Cli, tmp_path: Path) -> None:
    for second in range(3):
        ours(tmp_path / f"dt-20250919-18570{second}-cid-{'0' * 16}", 5, second=second)
    data = result(cli, tmp_path)
    assert data["executions"] == 3 and data["signatures"] == 1
    assert data["clusters"][0]["first_in"] == 3 and data["hypotheses"][0]["score"] == 0.9


def test_deadlock_and_lost_signal(cli: Cli, tmp_path: Path) -> None:
    ours(tmp_path / "a", 1, fault=None, waits=DEADLOCK, status=TIMEOUT)
    data = result(cli, tmp_path)
    assert data["hypotheses"][0]["cause"] == "deadlock"
    assert "PE pc 3 (k.py:4) waits for S[5]>=1" in data["hypotheses"][0]["text"]
    assert "DVE pc 8 (k.py:9) waits for S[6]>=1" in data["hypotheses"][0]["text"]
    ours(tmp_path / "b", 1, fault=None, waits=LOST, status=TIMEOUT)
    data = result(cli, tmp_path / "b")
    assert data["hypotheses"][0]["cause"] == "lost-signal" and "S[9]>=2" in data["hypotheses"][0]["text"]
    assert data["clusters"][0]["awaited"] == "S[9]>=2"


def test_directories_of_aws_at_the_documented_level(cli: Cli, tmp_path: Path) -> None:
    directory = tmp_path / f"dt-20250917-194443-cid-{CID}"
    awss(directory, 1, STUCK, "Failed to execute model file.neff with status 1200", second=1)
    awss(directory, 2, "[MLA 0][NC 0] DMA TX engine 5 is in an abort state", second=3)
    awss(directory, 3)
    (directory / "i-0b51-nrt-pid-3.log").unlink()
    data = result(cli, tmp_path)
    assert data["ranks"] == 3 and data["unread"] == 1
    first = data["failures"][0]["first"]
    assert (first["pid"], first["status_name"], first["knowledge"]) == (2, "NRT_EXEC_HW_ERR_DMA_ABORT", "log")
    assert data["hypotheses"][0]["cause"] == "hardware" and "i-0b51" in data["hypotheses"][0]["text"]


def test_only_followers_say_that_the_cause_is_elsewhere(cli: Cli, tmp_path: Path) -> None:
    awss(tmp_path / f"dt-20250917-194443-cid-{CID}", 1, STUCK)
    causes = [each["cause"] for each in result(cli, tmp_path)["hypotheses"]]
    assert causes == ["elsewhere"]


def test_text_page_and_rows(cli: Cli, tmp_path: Path) -> None:
    ours(tmp_path / "d<b>&" / f"dt-20250919-185700-cid-{CID}", 1)
    ended = cli("core", "triage", tmp_path, "--html", tmp_path / "t.html", "--rows", tmp_path / "rows", "--jobs", 1)
    assert ended.status == 1
    assert ended.out.startswith("1 rank in 1 execution and 1 directory, 1 signature\n")
    assert "1. an access out of bounds at Pool pc 11 (k.py:7)" in ended.out
    page = (tmp_path / "t.html").read_text()
    assert "d&lt;b&gt;&amp;" in page and "d<b>" not in page and "GATHER" in page
    (row,) = [json.loads(line) for line in (tmp_path / "rows").read_text().splitlines()]
    assert set(row) == set(Rank.__dataclass_fields__) and row["consequence"] is False
    assert cli("core", "triage", tmp_path, "--error-exitcode", 0, "--quiet", "--jobs", 1) == (0, "", "")


def test_json_is_complete_where_text_shows_the_first(cli: Cli, tmp_path: Path) -> None:
    for pid in range(25):  # each of a signature of its own
        fault = FAULT._replace(pc=pid, engine=f"E{pid}")
        ours(tmp_path / f"dt-20250919-1857{pid:02}-cid-{pid + 1:016x}", pid, fault=fault)
    data = result(cli, tmp_path)
    assert data["executions"] == data["signatures"] == 25
    assert len(data["failures"]) == len(data["clusters"]) == len(data["hypotheses"]) == 25
    text = cli("core", "triage", tmp_path, "--jobs", 1).out
    assert text.count("\nand 5 more; --json lists them") == 3
    few = result(cli, tmp_path, "--top", 3)
    assert few["signatures"] == 25 and len(few["failures"]) == len(few["clusters"]) == len(few["hypotheses"]) == 3


def test_text_has_no_fact_that_json_lacks(cli: Cli, tmp_path: Path) -> None:
    """The text is the view of what JSON holds: made of JSON alone it is the same to the letter."""
    ours(tmp_path / "a" / f"dt-20250919-185700-cid-{CID}", 1, second=2.5, world=4, rank=1)
    ours(tmp_path / "b" / f"dt-20250919-185700-cid-{CID}", 2, fault=None, waits=LOST, status=TIMEOUT, instance="i-02")
    ours(tmp_path / "c" / f"dt-20250919-185701-cid-{'0' * 16}", 3, fault=None, waits=DEADLOCK, status=TIMEOUT)
    awss(tmp_path / f"dt-20250917-194443-cid-{'1' * 16}", 4, "[MLA 0][NC 0] DMA TX engine 5 is in an abort state")
    awss(tmp_path / f"dt-20250917-194443-cid-{'1' * 16}", 5)
    (tmp_path / f"dt-20250917-194443-cid-{'1' * 16}" / "i-0b51-nrt-pid-5.log").unlink()
    found = Triage(**result(cli, tmp_path))
    made = found._replace(
        hypotheses=tuple(Hypothesis(**each) for each in found.hypotheses),  # type: ignore[arg-type]
        clusters=tuple(ClusterRow(**each) for each in found.clusters),  # type: ignore[arg-type]
        failures=tuple(
            FailureRow(**{**each, "first": Rank(**each["first"])})  # type: ignore[dict-item,index,arg-type]
            for each in found.failures
        ),
    )
    text = cli("core", "triage", tmp_path, "--jobs", 1).out
    assert made.unread == 1 and len(made.failures) == 3
    assert text.splitlines()[: len(list(view(made, 20)))] == list(view(made, 20))


def test_executions_are_counted_once_wherever_their_ranks_lie(cli: Cli, tmp_path: Path) -> None:
    for host in range(3):  # ranks of two executions in turn
        for which in range(2):
            ours(tmp_path / f"{host}{which}" / f"dt-20250919-185700-cid-{which + 1:016x}", host, instance=f"i-{host}")
    (cluster,) = result(cli, tmp_path)["clusters"]
    assert (cluster["ranks"], cluster["executions"], cluster["first_in"]) == (6, 2, 2)


def test_a_folder_that_cannot_be_listed_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours(tmp_path / "a" / f"dt-20250919-185700-cid-{CID}", 1)
    (tmp_path / "closed").mkdir()
    whole = os.scandir

    def scandir(path: str) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return whole(path)

    monkeypatch.setattr(os, "scandir", scandir)
    summary = add_up([str(tmp_path)])
    assert summary.ranks == summary.directories == 1
    assert f"{tmp_path}/closed: permission denied" in summary.warnings
    with pytest.raises(FormatError, match="cannot be listed: permission denied"):
        add_up([str(tmp_path / "closed")])


def test_no_dumps_and_no_folder(cli: Cli, tmp_path: Path) -> None:
    ended = cli("core", "triage", tmp_path)
    assert ended.status == 0 and ended.out.startswith("0 ranks")
    missing = cli("core", "triage", tmp_path / "none")
    assert missing.status == 4 and "none: no such folder" in missing.error_line
    failed = cli("core", "triage", tmp_path / "none", "--json")
    assert failed.status == 4
    checked_json(failed, "core triage")
    assert cli("core", "triage", "nothing://x/y").status in (3, 6)


def test_damage_is_a_warning(cli: Cli, tmp_path: Path) -> None:
    directory = tmp_path / f"dt-20250919-185700-cid-{CID}"
    for pid in (1, 2, 3):
        ours(directory, pid)
    core = next(directory.glob("*-nc0-pid-1-*"))
    core.write_bytes(core.read_bytes()[:100])
    next(directory.glob("*pid-2-*.json")).write_text("{]")
    next(directory.glob("*pid-3.log")).write_bytes(b"\xff\x00" * 50)
    ended = cli("core", "triage", tmp_path, "--json", "--jobs", 1)
    data = checked_json(ended, "core triage")
    assert data["ranks"] == 3 and data["failures"][0]["statuses"] == {"NRT_EXEC_OOB": 3}
    assert any("not a manifest" in text for text in ended.json["warnings"])


@pytest.mark.parametrize("variables", [[], None, "x", {"RANK": [], "WORLD_SIZE": "many"}, {"RANK": 1e999}])
def test_variables_of_any_kind(cli: Cli, tmp_path: Path, variables: object) -> None:
    ours(tmp_path, 1)
    manifest = next(tmp_path.glob("*.json"))
    manifest.write_text(json.dumps({"arguments": {}, "environment": {"hostname": "h", "variables": variables}}))
    first = result(cli, tmp_path)["failures"][0]["first"]
    assert (first["rank"], first["world"]) == (None, None)


def test_a_status_that_this_version_does_not_know(cli: Cli, tmp_path: Path) -> None:
    ours(tmp_path, 1, status=(1999, "NRT_EXEC_FROM_THE_FUTURE"))
    (best,) = result(cli, tmp_path)["hypotheses"]
    assert best["cause"] == "status" and best["text"].startswith("NRT_EXEC_FROM_THE_FUTURE at Pool pc 11")


def test_a_dump_of_the_year_nought(cli: Cli, tmp_path: Path) -> None:
    ours(tmp_path, 1, created="0001-01-01T00:00:00+14:00")
    next(tmp_path.glob("*.log")).unlink()
    assert cli("core", "triage", tmp_path, "--jobs", 1).status == 1


def test_a_dump_whose_rank_was_killed_while_publishing_counts(cli: Cli, tmp_path: Path) -> None:
    directory = tmp_path / f"dt-20250919-185700-cid-{CID}"
    ours(directory / f"{COMMITTED}77", 1)
    assert result(cli, tmp_path)["ranks"] == 1


def test_the_report_does_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    for directory in range(3):
        for pid in range(40):
            ours(tmp_path / f"dt-20250919-18570{directory}-cid-{directory:016x}", pid, second=pid)
    one, two = add_up([str(tmp_path)]), add_up([str(tmp_path)], jobs=2)
    assert one.ranks == two.ranks == 120 and one.by_size == two.by_size and one.executions == two.executions


def test_urls_through_fsspec(tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason="URLs need fsspec (extra fleet)")
    from fsspec.implementations.memory import MemoryFileSystem

    directory = tmp_path / f"dt-20250919-185700-cid-{CID}"
    ours(directory, 1)
    memory = MemoryFileSystem()
    for path in directory.iterdir():
        memory.pipe_file(f"/fleet/{directory.name}/{path.name}", path.read_bytes())
    try:
        summary = add_up(["memory://fleet"])
    finally:
        memory.rm("/fleet", recursive=True)
    (failure,) = summary.executions.values()
    assert failure.first is not None and failure.first.line == "k.py:7" and failure.cluster == CID
    with pytest.raises(FileNotFoundError):
        add_up(["memory://nothing-here"])


def test_on_dask(tmp_path: Path) -> None:
    if not os.environ.get("NEURONTOOLS_TEST_DASK"):
        pytest.skip("NEURONTOOLS_TEST_DASK is not set: a cluster takes seconds to start")
    pytest.importorskip("distributed", reason="needs Dask (extra fleet)")
    ours(tmp_path / f"dt-20250919-185700-cid-{CID}", 1)
    assert add_up([str(tmp_path)], dask="local").by_size == add_up([str(tmp_path)]).by_size
