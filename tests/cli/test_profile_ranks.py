"""`neurontools profile --ranks`: who is late, what is exposed, the path over all ranks, exports, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neurontools
from tests.cli.check import checked_json
from tests.cli.conftest import Cli, Ended
from tests.emulator.machine.test_ranks import reduced

SCRIPT = """
import os, sys
import numpy as np
import nki, nki.collectives as ncc, nki.language as nl

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
more = {0: 0, **{int(key): int(value) for key, value in (word.split("=") for word in sys.argv[1:])}}

@nki.jit
def total(x):
    own, out, res = (nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm) for _ in range(3))
    tile = nl.load(x)
    for _ in range(2 + more.get(rank, 0)):
        tile = nl.multiply(tile, 2.0)
    nl.store(own, tile)
    ncc.all_reduce([own], [out], [list(range(world))], nl.add)
    nl.store(res, nl.add(nl.load(out), tile))
    return res

if -1 in more and more[-1] == rank:
    raise SystemExit(0)
total(np.full((128, 256), rank + 1.0, np.float32))
"""
PERMUTE = """
import os
import numpy as np
import nki, nki.collectives as ncc, nki.language as nl

rank = int(os.environ["RANK"])

@nki.jit
def passed(x):
    own, out = (nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm) for _ in range(2))
    tile = nl.load(x)
    for _ in range(1 + {1: 2, 3: 9}.get(rank, 0)):
        tile = nl.multiply(tile, 2.0)
    nl.store(own, tile)
    ncc.collective_permute([own], [out], [[0, 1], [1, 0], [2, 3], [3, 2]])
    if rank < 2:
        for _ in range(4):
            nl.store(own, nl.load(out))
    return out

passed(np.full((128, 64), rank + 1.0, np.float32))
"""
ON = ("--target", "trn2", "--lnc", 1)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "step.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def profiled(cli: Cli, script: Path) -> Callable[..., Ended]:
    return lambda ranks, *options: cli("profile", script, "--ranks", ranks, *ON, *options)


def test_the_late_rank_is_the_slowest_and_others_waited_for_it(profiled: Callable[..., Ended]) -> None:
    found = checked_json(profiled(4, "--json", "--", "2=6"), "profile run")
    assert (found["slowest"], found["rank"], found["outcome"]) == (2, 2, "finished")
    (met,) = found["collectives"]
    assert met["latest"] == 2 and met["skew_ns"] > 0 and met["line"] == "step.py:16"
    assert met["ended_ns"] == pytest.approx(met["called_ns"] + met["skew_ns"] + met["time_ns"], abs=0.01)
    late = [row["late_ns"] for row in found["ranks"]]
    assert late == [met["skew_ns"], met["skew_ns"], 0, met["skew_ns"]]
    for row in found["ranks"]:
        assert 0 < row["exposed_ns"] <= row["collective_ns"] < row["time_ns"] <= found["total_time_ns"]
    # All of it is exposed: nothing computes between the call and the end.
    assert met["exposed_ns"] == pytest.approx(met["skew_ns"] + met["time_ns"], abs=0.01)


def test_the_path_over_ranks_is_the_run_and_goes_to_the_late_rank(profiled: Callable[..., Ended]) -> None:
    found = profiled(4, "--json", "--", "2=6").json["result"]
    path, (met,) = found["critical_path"], found["collectives"]
    links = path["links"]
    assert links[0]["start_ns"] == 0 and links[-1]["end_ns"] == path["total_ns"] == found["total_time_ns"]
    assert all(one["end_ns"] == two["start_ns"] for one, two in pairwise(links))
    assert "unexplained" not in {link["kind"] for link in links}
    called = met["called_ns"] + met["skew_ns"]
    assert {link["rank"] for link in links if link["end_ns"] <= called} == {2}
    (joined,) = [link for link in links if link["kind"] == "collective"]
    assert joined["start_ns"] == pytest.approx(called, abs=0.01) and joined["detail"] == "rank 2 came last"
    assert joined["rank"] != 2
    shares = {row["rank"]: row["ns"] for row in path["ranks"]}
    assert sum(shares.values()) == pytest.approx(found["total_time_ns"], abs=0.1)
    assert {row["rank"]: row["critical_ns"] for row in found["ranks"]} == {
        rank: shares.get(rank, 0) for rank in range(4)
    }
    assert sum(row["critical_ns"] for row in found["lines"]) == pytest.approx(found["total_time_ns"], abs=0.1)


def test_without_the_late_rank_the_run_is_shorter_by_what_was_waited(profiled: Callable[..., Ended]) -> None:
    late, clean = (profiled(4, "--json", "--", *more).json["result"] for more in (("2=6",), ()))
    assert clean["collectives"][0]["skew_ns"] == 0 and {row["late_ns"] for row in clean["ranks"]} == {0}
    gap = late["total_time_ns"] - clean["total_time_ns"]
    assert gap == pytest.approx(late["collectives"][0]["skew_ns"], rel=0.05)


def test_the_text(profiled: Callable[..., Ended]) -> None:
    ended = profiled(4, "--", "2=6")
    assert ended.status == 0 and ended.err == ""
    lines = ended.out.splitlines()
    assert lines[0].startswith("total on 4 ranks of trn2.48xlarge: ") and lines[0].endswith("(simulated)")
    assert lines[1].startswith("rank 2 is the slowest: it waited 0 ps for others, rank 0 ")
    assert any(line.startswith("*2 ") for line in lines)
    for text in ("all_reduce add of 32768 FLOAT32", "rank 2 came last", "engines of rank 2, the slowest", "0 > 1"):
        assert text in ended.out
    short = profiled(4, "--top", 1, "--rank", 0, "--", "2=6").out
    assert "and 2 ranks more that end earlier" in short and "engines of rank 0\n" in short


def test_a_permute_waits_for_its_partner_alone(cli: Cli, tmp_path: Path) -> None:
    """Rank 3 calls last of all, and exchanges data with 2 alone: 0, which ends last, waited for 1."""
    (tmp_path / "pass.py").write_text(PERMUTE)
    found = cli("profile", tmp_path / "pass.py", "--ranks", 4, *ON, "--json").json["result"]
    (met,) = found["collectives"]
    assert met["latest"] == 3 and met["name"].startswith("permute")
    links = found["critical_path"]["links"]
    (joined,) = [link for link in links if link["kind"] == "collective"]
    assert {link["rank"] for link in links} <= {0, 1} and links[0]["rank"] == 1
    assert joined["detail"] in ("rank 1 came last", "") and joined["start_ns"] < met["called_ns"] + met["skew_ns"]


def test_two_cores_of_a_rank(cli: Cli, script: Path) -> None:
    found = cli("profile", script, "--ranks", 2, "--target", "trn2", "--lnc", 2, "--json").json["result"]
    assert found["profile"]["cores"] == 2 and found["critical_path"]["total_ns"] == found["total_time_ns"]


def test_a_rank_that_does_not_come(profiled: Callable[..., Ended]) -> None:
    ended = profiled(3, "--json", "--", "-1=1")
    found = checked_json(ended, "profile run")
    assert ended.status == 5 and found["outcome"] == "hang"
    assert [row["outcome"] for row in found["ranks"]] == ["hang", "absent", "hang"]
    assert found["collectives"][0]["ended_ns"] is None and found["collectives"][0]["time_ns"] is None
    assert any("for rank 1, which launched no program" in text for text in ended.json["warnings"])
    text = profiled(3, "--", "-1=1")
    assert text.status == 5 and "the run did not finish: hang" in text.out and "rank 1 launches no kernel" in text.err
    missing = profiled(3, "--rank", 1, "--", "-1=1")
    assert missing.status == 4 and "no rank 1 that runs a program" in missing.err


def test_against_a_saved_profile_and_another_program(cli: Cli, script: Path, profiled: Callable[..., Ended],
                                                     tmp_path: Path, root: Path) -> None:  # fmt: skip
    saved = tmp_path / "before.json"
    saved.write_text(profiled(2, "--json").out)
    found = checked_json(profiled(2, "--against", saved, "--json", "--", "1=6"), "profile run")["against"]
    assert found["total_time_ns"] > found["before_ns"] and found["name"] == "total"
    (call,) = found["collectives"]
    assert call["skew_delta_ns"] > 0 and call["line"] == "step.py:16"
    assert [row["rank"] for row in found["ranks"] if row["compute_delta_ns"] > 0] == [1]
    assert any(row["line"] == "step.py:14" and row["busy_delta_ns"] > 0 for row in found["lines"])
    equal = profiled(2, "--against", script, "--json").json["result"]["against"]
    assert equal["lines"] == equal["ranks"] == equal["collectives"] == []
    assert "against total: " in profiled(2, "--against", saved).out
    one = json.loads(profiled(2, "--json").out)["result"]["profile"]  # of one program alone
    for wrong in ("{}", json.dumps(one), "[", '{"ranks": 3}'):
        saved.write_text(wrong)
        ended = profiled(2, "--against", saved)
        assert ended.status == 3 and "is no profile that `neurontools profile run --ranks` with" in ended.err
    saved.write_text(profiled(2, "--json").out)
    alone = cli("profile", root / "examples/race.s", "--against", saved)
    assert alone.status == 3 and "is compared with --ranks" in alone.error_line


def test_what_if_changes_every_rank(profiled: Callable[..., Ended]) -> None:
    found = profiled(2, "--what-if", "dma=2x", "--json").json["result"]["what_if"]
    assert found["total_time_ns"] < found["before_ns"] and found["lines"]
    same = profiled(2, "--what-if", "pe=2x", "--json").json["result"]["what_if"]
    assert same["total_time_ns"] == same["before_ns"]  # only one word of the Tensor engine, off the path


def test_chrome_has_tracks_of_ranks_streams_and_links(profiled: Callable[..., Ended], tmp_path: Path) -> None:
    ended = profiled(3, "--format", "chrome", "--output", tmp_path / "t.json", "--", "1=4")
    assert ended.status == 0 and ended.out == f"wrote {tmp_path / 't.json'}\n"
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    groups = {one["pid"]: one["args"]["name"] for one in events if one["name"] == "process_name"}
    assert set(groups.values()) == {"all ranks (simulated)", "links (simulated)",
                                    *(f"rank {rank} nc0 (simulated)" for rank in range(3))}  # fmt: skip
    tracks = {(groups[one["pid"]], one["args"]["name"]): one["tid"] for one in events if one["name"] == "thread_name"}
    assert ("rank 0 nc0 (simulated)", "stream 0") in tracks and ("links (simulated)", "rank 0 > rank 1") in tracks
    waits = tracks["rank 0 nc0 (simulated)", "stream 0 waits"]
    assert [one["name"] for one in events if one["ph"] == "X" and one["tid"] == waits] == ["rank 1"]
    assert ("rank 1 nc0 (simulated)", "stream 0 waits") not in tracks
    # Arrows have two ends each, and no two ranks share a number.
    out = [one["id"] for one in events if one["ph"] == "s"]
    assert sorted(out) == sorted(one["id"] for one in events if one["ph"] == "f") and len(set(out)) == len(out) > 0
    slices: dict[int, list[Any]] = {}
    for one in events:
        if one["ph"] == "X":
            slices.setdefault(one["tid"], []).append(one)
    for each in slices.values():
        each.sort(key=lambda one: (one["ts"], one["dur"]))
        assert all(a["ts"] + a["dur"] <= b["ts"] + 1e-9 for a, b in pairwise(each))


def test_perfetto_and_tables(profiled: Callable[..., Ended], tmp_path: Path) -> None:
    assert profiled(2, "--format", "perfetto", "-o", tmp_path / "trace").status == 0
    assert b"rank 1 nc0 (simulated)" in (tmp_path / "trace").read_bytes()
    assert profiled(2, "--format", "csv", "-o", tmp_path / "tables").status == 0
    assert {path.name for path in (tmp_path / "tables").iterdir()} == {
        "rank-0", "rank-1", "Ranks.csv", "Collectives.csv", "Links.csv",
    }  # fmt: skip
    head, *rows = (tmp_path / "tables/Ranks.csv").read_text().splitlines()
    assert head.startswith("rank,node,chip,core,") and len(rows) == 2 and "tensor_busy_percent" in head
    assert (tmp_path / "tables/rank-1/Instruction.csv").exists()
    one = profiled(2, "--format", "csv").out.splitlines()
    assert one[0].startswith("rank,start_ts") and {line[0] for line in one[1:]} == {"0", "1"}
    assert profiled(2, "--format", "json", "-o", tmp_path / "o.json").status == 0
    assert json.loads((tmp_path / "o.json").read_text())["instance"] == "trn2.48xlarge"


def test_what_perfetto_itself_reads(profiled: Callable[..., Ended], tmp_path: Path) -> None:
    messages = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="needs perfetto")
    assert profiled(2, "--format", "perfetto", "-o", tmp_path / "trace").status == 0
    trace = messages.Trace.FromString((tmp_path / "trace").read_bytes())
    found = [each.track_descriptor for each in trace.packet if each.HasField("track_descriptor")]
    assert {"trn2 links (simulated)", "trn2 rank 1 nc0 (simulated)"} <= {each.process.process_name for each in found}
    assert {"stream 0", "rank 0 > rank 1", "critical path over all ranks"} <= {each.name for each in found}


REFUSED: list[tuple[list[object], int, str]] = [
    (["--ranks", 2, "--advice"], 2, "goes without --ranks"),
    (["--ranks", 2, "--no-advice"], 2, "goes without --ranks"),
    (["--rank", 1], 2, "goes with --ranks"),
    (["--instance", "trn2.48xlarge"], 2, "goes with --ranks"),
    (["--nodes", 2], 2, "goes with --ranks"),
    (["--ranks", 2, "--rank", 2], 4, "no rank 2 that runs a program"),
    (["--ranks", 2, "--instance", "trn9.big"], 4, "no instance type 'trn9.big'"),
    (["--ranks", 2, "--instance", "trn1.32xlarge"], 3, "the program is for trn2, trn1.32xlarge has trn1"),
    (["--ranks", 129, "--instance", "trn2.48xlarge"], 3, "129 ranks; trn2.48xlarge has 1 to 128"),
    (["--ranks", 2, "--format", "perfetto"], 2, "say where with --output FILE"),
    (["--ranks", 2, "--what-if", "dma"], 2, "is no NAME=SPEED"),
    (["--ranks", 2, "--inputs", "x.npz"], 4, "x.npz"),
    (["--ranks", 2, "--launch", 2], 2, "only a script launches kernels"),
]


@pytest.mark.parametrize(
    ("options", "status", "message"), REFUSED, ids=[" ".join(map(str, each[0])) for each in REFUSED]
)
def test_what_does_not_fit_is_refused(
    cli: Cli, tmp_path: Path, options: list[object], status: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    neurontools.build(reduced, np.zeros((16, 4), np.float32), target="trn2", lnc=1).save("sum.neff")
    ended = cli("profile", "sum.neff", *options)
    assert ended.status == status and message in ended.err, ended.err


def test_a_file_and_its_budgets(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    neurontools.build(reduced, np.zeros((16, 4), np.float32), target="trn2", lnc=1).save("sum.neff")
    assert cli("profile", "sum.neff", "--ranks", 2, "--inputs", "random:3").status == 0
    ended = cli("profile", "sum.neff", "--ranks", 2, "--max-instructions", 3)
    assert ended.status == 5 and "rank 0: the run was stopped" in ended.err
    assert cli("profile", "sum.neff", "--ranks", 2, "--limit", "100ns").status == 5
    two = cli("profile", "sum.neff", "--ranks", 2, "--nodes", 2, "--json").json["result"]
    assert two["nodes"] == 2


@pytest.mark.parametrize(("command", "options", "instance"), [
    ("run", ["--instance", "trn1.32xlarge", "--ranks", 33], "trn1.32xlarge has 1 to 32"),
    ("debug", ["--target", "trn2", "--ranks", 129], "trn2.48xlarge has 1 to 128"),
    ("check", ["--target", "trn2", "--lnc", 2, "--ranks", 65], "trn2.48xlarge has 1 to 64"),
    ("profile", ["--instance", "trn2.48xlarge", "--nodes", 2, "--ranks", 257], "trn2.48xlarge has 1 to 256"),
])  # fmt: skip
def test_too_many_ranks_are_refused_before_any_script_runs(
    cli: Cli, tmp_path: Path, command: str, options: list[object], instance: str
) -> None:
    (tmp_path / "s.py").write_text("open(__file__ + '.ran', 'w')")
    ended = cli(command, tmp_path / "s.py", *options)
    assert ended.status == 3 and instance in ended.error_line and not (tmp_path / "s.py.ran").exists()


def test_too_many_ranks_for_a_kernel_of_two_cores_are_refused_at_the_first_launch(cli: Cli, tmp_path: Path) -> None:
    """What a launch takes is known once one rank has come to it: the scripts of the others do not run."""
    path = tmp_path / "s.py"
    path.write_text(SCRIPT.replace("rank, world =", "open(__file__ + '.ran', 'a').write('.')\nrank, world =")
                    .replace("total(np", "total[2](np"))  # fmt: skip
    ended = cli("run", path, "--ranks", 100, "--target", "trn2")
    assert ended.status == 3 and "100 ranks; trn2.48xlarge has 1 to 64" in ended.error_line, ended.err
    assert (tmp_path / "s.py.ran").read_text() == "."
