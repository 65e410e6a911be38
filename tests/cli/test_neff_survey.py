"""`neurontools neff survey`."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from formats.neff import HEADER_SIZE, Header, open_neff
from neurontools.neff.surveying import collect
from neurontools.neff.surveying.judge import Options, judge
from neurontools.neff.surveying.records import FileRecord
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.corpus.files import MATMUL_LARGE, MATMUL_SMALL, find
from tests.formats.neff.support import changed, fixture


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with good files, a file of strange words, a cut one, noise, and something else."""
    place = tmp_path / "files"
    (place / "deep").mkdir(parents=True)
    (place / "a.neff").write_bytes(fixture())
    stream = open_neff(fixture()).subgraphs[0].stream_bytes("DVE")
    (place / "deep" / "b.neff").write_bytes(changed(sg00__DVE_DOT_bin=b"\x77" * 64 + stream[64:]))
    (place / "deep" / "c.neff").write_bytes(
        changed(
            sg00__DVE_DOT_bin=b"\x77" * 64 + stream[64:],
        )
    )
    (place / "cut.neff").write_bytes(fixture()[:3000])
    (place / "noise.neff").write_bytes(b"\x5a" * 5000)
    (place / "notes.txt").write_text("no NEFF")
    return place


def survey(cli: Cli, *arguments: object) -> dict[str, Any]:
    ended = cli("neff", "survey", *arguments, "--jobs", "1", "--json")
    return checked_json(ended, "neff survey")


def test_bad_files_are_rows_and_strange_words_are_listed(cli: Cli, folder: Path) -> None:
    result = survey(cli, folder)
    files = {Path(record["path"]).name: record for record in result["files"]}
    assert list(files) == ["a.neff", "cut.neff", "noise.neff", "b.neff", "c.neff"]
    assert files["a.neff"]["error"] is None and files["a.neff"]["checked"] == "own"
    assert "cut" in files["cut.neff"]["error"] and "not a NEFF" in files["noise.neff"]["error"]
    total = result["summary"]
    assert (total["files"], total["read"], total["words"], total["decoded"]) == (5, 3, 39, 37)
    example = total["unknown"]["OPCODE_77"]
    assert (example["count"], example["files"], example["raw"]) == (2, 2, "77" * 64)
    assert example["first"].endswith("b.neff") and example["place"] == "sg00/DVE 0"
    assert cli("neff", "survey", folder, "-j", "1").status == 1
    text = cli("neff", "survey", folder, "-j", "1").out
    assert "5 files, 3 read" in text and "OPCODE_77" in text and "not a NEFF" in text


def test_nothing_to_report_is_status_0(cli: Cli, root: Path) -> None:
    ended = cli("neff", "survey", root / "fixtures", "--execute", "-j", "1")
    assert ended.status == 0 and "executed: 2 finished" in ended.out


def test_processes_give_what_one_gives(cli: Cli, folder: Path) -> None:
    one = checked_json(cli("neff", "survey", folder, "-j", "1", "--json"), "neff survey")
    two = checked_json(cli("neff", "survey", folder, "-j", "2", "--json"), "neff survey")
    assert one == two


def test_faults_hangs_and_large_files_are_told(cli: Cli, root: Path, tmp_path: Path, program_file: Path) -> None:
    for name in ("out_of_bounds", "deadlock"):
        assert cli("asm", root / "examples" / f"{name}.s", "-o", tmp_path / f"{name}.neff").status == 0
    result = survey(cli, tmp_path, program_file, "--execute")
    how = {Path(record["path"]).stem: record["executed"]["how"] for record in result["files"]}
    assert how == {"out_of_bounds": "fault", "deadlock": "hang", "double": "finished"}
    assert result["summary"]["executed"] == {"fault": 1, "hang": 1, "finished": 1}
    (record,) = survey(cli, program_file, "--execute", "--max-steps", "1")["files"]
    assert record["executed"]["how"] == "unfinished"
    assert judge(str(program_file), Options(True, max_bytes=1000)).executed.how == "skipped"


def test_a_file_that_is_not_executed_is_read_all_the_same(cli: Cli, tmp_path: Path) -> None:
    data = fixture()
    (tmp_path / "x.neff").write_bytes(Header.parse(data)._replace(feature_bits=1 << 40).encode() + data[HEADER_SIZE:])
    (record,) = survey(cli, tmp_path, "--execute")["files"]
    assert record["error"] is None and record["words"]["words"] > 0
    assert record["executed"]["how"] == "refused" and "feature bit 40 is not known" in record["executed"]["reason"]


def test_anonymous_reports_name_nothing(cli: Cli, folder: Path) -> None:
    ended = cli("neff", "survey", folder, "-j", "1", "--anonymous", "--json")
    assert "a.neff" not in ended.out and str(folder) not in ended.out
    names = [record["path"] for record in checked_json(ended, "neff survey")["files"]]
    assert names[0] == hashlib.sha256(fixture()).hexdigest()[:16]


def test_places_that_hold_nothing(cli: Cli, tmp_path: Path) -> None:
    ended = cli("neff", "survey", tmp_path)
    assert ended.status == 4 and "no file ends in .neff below" in ended.error_line
    assert cli("neff", "survey", tmp_path / "none").status == 4
    (tmp_path / "plain").write_bytes(fixture())
    # A file that is named needs no ending, and counts once by whatever name.
    (tmp_path / "other.neff").symlink_to(tmp_path / "plain")
    assert survey(cli, tmp_path / "plain", tmp_path)["summary"]["files"] == 1


def die(path: str, options: Options) -> FileRecord:
    """Judge a file as a process that the system kills does."""
    if path.endswith("killer.neff"):
        os._exit(9)
    return judge(path, options)


def stumble(path: str, options: Options) -> FileRecord:
    raise KeyError("not foreseen")


def test_a_file_that_kills_its_process_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = []
    for name in ("a.neff", "killer.neff", "z.neff"):
        (tmp_path / name).write_bytes(fixture())
        paths.append(str(tmp_path / name))
    monkeypatch.setattr(collect, "judge", die)
    records = collect.survey(paths, Options(), 2)
    assert [record.error for record in records] == [None, f"{paths[1]}: took its process with it", None]


def test_a_bug_of_ours_is_told_in_the_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.neff"
    path.write_bytes(fixture())
    monkeypatch.setattr(collect, "judge", stumble)
    (record,) = collect.survey([str(path)], Options())
    assert record.error == "bug in neurontools: KeyError: 'not foreseen'"


def test_the_visible_corpus_is_understood_whole(cli: Cli, corpus: Path) -> None:
    result = survey(cli, find(corpus, "trainium-kernel-fusion"), find(corpus, MATMUL_SMALL), find(corpus, MATMUL_LARGE))
    total = result["summary"]
    assert total["files"] == total["read"] == total["sound"] >= 2
    assert total["words"] == total["decoded"] == total["reencoded"] == total["consistent"] > 59_000
    assert not total["unknown"] and not total["unnamed"]
    assert {row["checked"] for row in total["compilers"]} == {"checked"}
