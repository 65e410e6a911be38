"""`neurontools run --ranks`: files and scripts on several ranks, their inputs and outputs, and why they wait."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import neurontools
from neurontools.program.arrays import load_arrays, write_arrays
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.emulator.machine.test_ranks import reduced

SCRIPT = """
import os, sys
import numpy as np
import nki, nki.collectives as ncc, nki.language as nl

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

@nki.jit
def total(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    ncc.all_reduce([x], [out], [list(range(world))], nl.add)
    return out

if sys.argv[1:] == [str(rank)]:
    raise SystemExit(3)
y = total(np.full((4, 8), rank + 1.0, np.float32))
assert rank == int(os.environ["RANK"]) and __name__ == "__main__"
z = total(y * (rank + 1))
print("rank", rank, "has", z[0, 0])
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "step.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture(scope="module")
def neff(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ranks") / "sum.neff"
    neurontools.build(reduced, np.zeros((16, 4), np.float32), target="trn2", lnc=1).save(path)
    return path


def test_a_script_runs_once_for_each_rank_and_launches_together(cli: Cli, script: Path, tmp_path: Path) -> None:
    before = dict(os.environ), list(sys.argv), sys.modules["__main__"]
    ended = cli("run", script, "--ranks", 3, "--target", "trn2", "--lnc", 1, "--outputs", tmp_path / "o-{rank}.npz")
    assert ended.status == 0, ended.err
    # 1 + 2 + 3 = 6 at every rank, then 6 + 12 + 18.
    assert ended.out.splitlines() == [f"rank {rank} has 36.0" for rank in range(3)]
    assert (dict(os.environ), list(sys.argv), sys.modules["__main__"]) == before
    for rank in range(3):
        (found,) = load_arrays(tmp_path / f"o-{rank}.npz").values()
        assert (found == 36).all()


def test_ranks_are_told_their_place_on_their_node(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "step.py"
    path.write_text(SCRIPT.replace('"has", z[0, 0]', '"is", os.environ["LOCAL_RANK"]'))
    words = ("--ranks", 4, "--instance", "trn1.2xlarge", "--nodes", 2, "--target", "trn1")
    assert cli("run", path, *words).out.splitlines() == [f"rank {rank} is {rank % 2}" for rank in range(4)]


def test_a_script_as_json(cli: Cli, script: Path) -> None:
    ended = cli("run", script, "--ranks", 2, "--target", "trn2", "--lnc", 1, "--instance", "trn2u.48xlarge", "--json")
    result = checked_json(ended, "run")
    assert ended.status == 0 and result["statuses"] == [0, 0] and len(result["launches"]) == 2
    launch = result["launches"][0]
    assert launch["instance"] == "trn2u.48xlarge" and [row["core"] for row in launch["ranks"]] == [0, 1]
    (met,) = launch["collectives"]
    assert met["name"] == "all_reduce add of 32 FLOAT32" and met["group"] == [0, 1]
    assert 0 < met["begun_ps"] <= met["last_ps"] < met["ended_ps"] <= launch["time_ps"]


def test_a_rank_that_leaves_is_named_with_line(cli: Cli, script: Path) -> None:
    ended = cli("run", script, "--ranks", 3, "--target", "trn2", "--lnc", 1, "--", 1)
    assert ended.status == 5
    assert "missing: rank 0 waits in all_reduce add of 32 FLOAT32 (" in ended.err
    assert "step.py:11) for rank 1, which launched no program" in ended.err
    found = cli("run", script, "--ranks", 3, "--target", "trn2", "--lnc", 1, "--json", "--", 1).json["result"]
    waiting = found["launches"][0]["waiting"]
    assert waiting["cause"] == "missing" and waiting["ranks"] == [1] and waiting["status"] == 1200
    assert [wait["rank"] for wait in waiting["waits"]] == [0, 2]


def test_inputs_and_outputs_of_each_rank(cli: Cli, neff: Path, tmp_path: Path) -> None:
    own = [np.full((16, 4), value, np.float32) for value in (1.0, 5.0)]
    for rank, array in enumerate(own):
        write_arrays(tmp_path / f"x-{rank}.npz", {"x": array})
    write_arrays(tmp_path / "all.npz", {"x@0": own[0], "x": own[1]})
    for given in ("x-{rank}.npz", "all.npz"):
        ended = cli("run", neff, "--ranks", 2, "--inputs", tmp_path / given, "--outputs", tmp_path / "y.npz")
        assert ended.status == 0 and "2 ranks of trn2.48xlarge: done after" in ended.out, ended.err
        found = load_arrays(tmp_path / "y.npz")
        assert sorted(found) == ["out@0", "out@1"] and all((array == 13).all() for array in found.values())


def test_random_inputs_differ_and_programs_may_too(cli: Cli, neff: Path, tmp_path: Path) -> None:
    for rank in range(2):
        (tmp_path / f"p-{rank}.neff").write_bytes(neff.read_bytes())
    one = cli("run", neff, "--ranks", 2, "--inputs", "random:3", "--outputs", tmp_path / "a.npz")
    two = cli("run", tmp_path / "p-{rank}.neff", "--ranks", 2, "--inputs", "random:3", "--outputs", tmp_path / "b.npz")
    assert one.status == two.status == 0
    first, second = load_arrays(tmp_path / "a.npz"), load_arrays(tmp_path / "b.npz")
    assert all((first[name] == second[name]).all() for name in first)
    alike = cli("run", neff, "--ranks", 2, "--inputs", "random:3", "--json", "--seed", 4).json["result"]
    assert alike["ranks"][0]["run"]["outputs"][0]["mean"] == alike["ranks"][1]["run"]["outputs"][0]["mean"]


def test_the_time_only(cli: Cli, neff: Path) -> None:
    full = cli("run", neff, "--ranks", 2, "--json").json["result"]
    ended = cli("run", neff, "--ranks", 2, "--time-only", "--json")
    found = checked_json(ended, "run")
    assert ended.status == 0 and found["histories"] == 1 and full["histories"] == 0
    assert [row["run"]["time_ps"] for row in found["ranks"]] == [row["run"]["time_ps"] for row in full["ranks"]]
    assert found["ranks"][0]["run"]["outputs"] == [] and found["collectives"] == full["collectives"]
    text = cli("run", neff, "--ranks", 2, "--time-only", "--inputs", "random")
    assert "were emulated once: 1 for 2" in text.out and "inputs were not read" in text.err
    alone = cli("run", neff, "--ranks", 2, "--time-only", "--seed", 3)
    assert alone.status == 0 and "each rank was emulated on its own: a seed shakes" in alone.err
    # Words bound without their effects stay with the devices that ran for times only.
    after = neurontools.run_ranks(neff, [{"x": np.full((16, 4), value, np.float32)} for value in (1.0, 5.0)])
    assert all((result.outputs["out"] == 13).all() for result in after.results)


REFUSED: list[tuple[list[object], int, str]] = [
    (["--instance", "trn2.48xlarge"], 2, "goes with --ranks"),
    (["--ranks", 2, "--instance", "trn9.big"], 4, "no instance type 'trn9.big'"),
    (["--ranks", 2, "--instance", "trn1.32xlarge"], 3, "the program is for trn2, trn1.32xlarge has trn1"),
    (["--ranks", 129], 3, "129 ranks; trn2.48xlarge has 1 to 128"),
    (["--ranks", 2, "--record", "r.nrec"], 2, "a recording holds one rank"),
    (["--ranks", 2, "--against", "g.npz"], 2, "goes without --ranks"),
    (["--ranks", 2, "--inputs", "x.npz"], 4, "x.npz"),
    (["--time-only"], 2, "goes with --ranks"),
    (["--ranks", 2, "--time-only", "--outputs", "y.npz"], 2, "has times and no data"),
]


@pytest.mark.parametrize(("options", "status", "message"), REFUSED, ids=[text for _, _, text in REFUSED])
def test_what_does_not_fit_is_refused(
    cli: Cli, neff: Path, options: list[object], status: int, message: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    ended = cli("run", neff, *options)
    assert ended.status == status and message in ended.err, ended.err


def test_the_time_only_of_a_script_is_refused(cli: Cli, script: Path) -> None:
    ended = cli("run", script, "--ranks", 2, "--time-only")
    assert ended.status == 2 and "save its NEFF" in ended.err


def test_an_array_of_a_rank_that_is_not_there(cli: Cli, neff: Path, tmp_path: Path) -> None:
    write_arrays(tmp_path / "x.npz", {"x@7": np.zeros((16, 4), np.float32)})
    ended = cli("run", neff, "--ranks", 2, "--inputs", tmp_path / "x.npz")
    assert ended.status == 3 and "'x@7' is for rank 7, there are 0 to 1" in ended.error_line


def test_the_python_interface(neff: Path) -> None:
    given = [{"x": np.full((16, 4), value, np.float32)} for value in (1.0, 5.0)]
    found = neurontools.run_ranks(neff, given, checks="all")
    assert isinstance(found, neurontools.RankedResult) and found.ok and found.hang is None
    assert all((result.outputs["out"] == 13).all() and not result.findings for result in found.results)
    assert [place.core for place in found.places] == [0, 1] and found.collectives[0].group == (0, 1)
    assert found.time_ps == max(result.time_ps for result in found.results)


def test_check_on_ranks_says_which(cli: Cli, neff: Path, script: Path, tmp_path: Path) -> None:
    clean = cli("check", neff, "--ranks", 2)
    assert clean.status == 0, clean.out
    ended = cli("check", script, "--ranks", 3, "--target", "trn2", "--lnc", 1, "--json", "--", 1)
    assert ended.status == 1
    (found,) = ended.json["result"]["findings"]
    assert (found["tool"], found["kind"]) == ("synccheck", "ranks")
    assert "rank 0 waits in all_reduce add of 32 FLOAT32 (" in found["message"] and "rank 1, which" in found["message"]
    details = {"cause": "missing", "ranks": [1], "cycle": [], "waiting": [0, 2]}
    assert found["details"] == details and found["site"]["source"]["line"] == 11
    assert found["site"]["access"] == "called by ranks 0, 2:" and "leave that rank out" in found["hint"]
    assert "--ranks 3" in found["reproduce"] and [row["rank"] for row in ended.json["result"]["runs"]] == [0, 1, 2]
    assert ended.json["warnings"] == ["the script of rank 1 ended with status 3"]
    # Without the tool that gives it as a finding it is said all the same.
    told = cli("check", script, "--ranks", 3, "--target", "trn2", "--lnc", 1, "--tool", "memcheck", "--", 1)
    assert told.status == 5 and "warning: rank 0 waits in all_reduce" in told.err and "step.py on 3 ranks:" in told.out


def test_dumps_of_all_ranks_are_one_execution_for_triage(cli: Cli, script: Path, tmp_path: Path) -> None:
    """Ranks that wait have the status of a consequence; each is a process of its own on its own core."""
    asked = ("run", script, "--ranks", 3, "--target", "trn2", "--lnc", 1, "--dump-dir", tmp_path / "dumps", "--", 1)
    ended = cli(*asked)
    assert ended.status == 5
    (directory,) = (tmp_path / "dumps").iterdir()
    assert f"dump of rank 0: {directory}" in ended.err and f"dump of rank 2: {directory}" in ended.err
    names = {path.name.split("-pid-")[0] for path in directory.iterdir() if "-nd" in path.name}
    assert names == {"i-emulated-nd0-nc0", "i-emulated-nd0-nc2"}
    result = cli("core", "triage", tmp_path / "dumps", "--json").json["result"]
    assert result["ranks"] == 2 and result["executions"] == 1
    assert "NRT_EXEC_HW_ERR_COLLECTIVES" in json.dumps(result)


def test_every_rank_has_a_folder_of_its_own(cli: Cli, script: Path, tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """As processes have: where one rank's script goes, the others stay."""
    monkeypatch.chdir(tmp_path)
    script.write_text(SCRIPT.replace("y = total", "os.mkdir(str(rank)); os.chdir(str(rank))\ny = total")
                      + "assert os.getcwd().endswith(str(rank))\n")  # fmt: skip
    ended = cli("run", "step.py", "--ranks", 2, "--target", "trn2", "--lnc", 1)
    assert ended.status == 0, ended.err
    assert Path.cwd() == tmp_path
