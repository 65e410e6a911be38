"""`neurontools tune`: the best of a small grid, wrong variants left out, going on after an end, workers that die."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from emulator.errors import InputError
from formats.errors import FormatError, UnsupportedError
from neurontools.cli import app
from neurontools.tuning import tune as tuning
from neurontools.tuning import workers as working
from neurontools.tuning.halving import runs_of
from neurontools.tuning.results import METHODS, Order, Trial
from neurontools.tuning.search import search_of
from neurontools.tuning.space import key_of
from neurontools.tuning.trial import run_trial

SCRIPT = Path(__file__).parents[1] / "tuning" / "kernels.py"
ORDER = Order(str(SCRIPT), (), "trn2")
SPACE: dict[str, tuple[Any, ...]] = {"a": (0, 1, 2, 3, 4), "b": (0, 1, 2, 3, 4), "c": ("x", "y", "z", "w")}


def cost(values: dict[str, Any]) -> int:
    """Return a time with one valley, in which two parameters work together."""
    return 1000 + 90 * (values["a"] - 3) ** 2 + 70 * (values["b"] - values["a"]) ** 2 + 200 * "yzxw".index(values["c"])


def tried(method: str, most: int, seed: int) -> list[Trial]:
    if method == "tpe":  # an extra that the tests do not install
        pytest.importorskip("optuna", reason="optuna is not installed")
    search, found = search_of(method, SPACE, seed), list[Trial]()
    while len(found) < most and (values := search.ask()) is not None:
        found.append(Trial(values, "ok", cost(values)))
        search.tell(found[-1])
    return found


@pytest.mark.parametrize("method", METHODS)
def test_a_search_tries_every_variant_once(method: str) -> None:
    found = tried(method, 1000, 1)
    assert sorted(key_of(one.values) for one in found) == sorted(
        key_of(dict(zip(SPACE, each, strict=True))) for each in product(*SPACE.values())
    )


@pytest.mark.parametrize("method", ["climb", "tpe"])
def test_a_search_that_learns_needs_a_fifth(method: str) -> None:
    best = min(cost(dict(zip(SPACE, each, strict=True))) for each in product(*SPACE.values()))
    for seed in range(3):
        assert min(one.time_ps for one in tried(method, 20, seed)) <= 1.05 * best


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("jobs", [1, 7])
def test_halving_takes_the_best_third_of_each_rung_to_the_next(seed: int, jobs: int) -> None:
    """However many are asked for at a time: those of a rung are all known before the next one begins."""
    search, found = search_of("halving", SPACE, seed, 40, 2), list[Trial]()
    while True:
        asked = list[tuple[int, dict[str, Any]]]()
        while len(asked) < jobs and (values := search.ask()) is not None:
            asked.append((search.rung, values))
        if not asked:
            break
        for rung, values in reversed(asked):
            right = values["c"] != "x" or rung
            time_ps = cost(values) * (rung + 1) if right else -1
            found.append(Trial(values, "ok" if right else "wrong", time_ps, rung=rung))
            search.tell(found[-1])
    rungs = [[one for one in found if one.rung == rung] for rung in range(3)]
    assert [*map(len, rungs)] == runs_of(40, 2) == [40, 14, 5]
    for before, after in pairwise(rungs):
        best = sorted(one.time_ps for one in before if one.ok)[: len(after)]
        assert sorted(cost(one.values) * (before[0].rung + 1) for one in after) == best
    assert min(rungs[2], key=lambda one: one.time_ps).values == min(
        (one.values for one in rungs[0] if one.ok), key=cost
    )


def test_halving_ends_where_no_variant_of_a_rung_is_right() -> None:
    search = search_of("halving", SPACE, 0, 4, 3)
    for _ in range(4):
        search.tell(Trial(search.ask() or {}, "wrong", -1))
    assert search.ask() is None and search.ask() is None


def test_a_variant_that_is_good_on_small_problems_is_run_on_the_script_s_own(tmp_path: Path) -> None:
    space = {"width": (64, 128, 256, 512), "broken": (0, 1), "engine": ("vector",)}
    options: dict[str, Any] = {"method": "halving", "rungs": (("16",), ("64",)), "most": 8, "folder": tmp_path}
    found = tuning.tune(ORDER, space, jobs=2, **options)
    tried = [(one.rung, one.ok) for one in found.trials]
    # all eight on the first rung, of which four are broken; the best three of these on the next, then one
    assert [tried.count(each) for each in ((0, True), (0, False), (1, True), (2, True))] == [4, 4, 3, 1]
    assert found.best is not None and found.best.rung == 2
    assert found.best.time_ps == run_trial(ORDER, found.best.values).time_ps
    small = {key_of(one.values): one.time_ps for one in found.trials if one.ok and one.rung == 0}
    assert small[key_of(found.best.values)] == run_trial(ORDER._replace(arguments=("16",)), found.best.values).time_ps
    again = tuning.tune(ORDER, space, **options)
    assert again.resumed == again.evaluated == found.evaluated == 12
    assert again.best is not None and again.best.values == found.best.values
    with pytest.raises(FormatError, match="another script, or with other options"):
        tuning.tune(ORDER, space, **{**options, "rungs": (("32",),)})


def test_the_best_variant_is_right(tmp_path: Path) -> None:
    space = {"width": (256, 1024), "broken": (1, 0), "engine": ("vector",)}
    found = tuning.tune(ORDER, space, most=8, jobs=2, method="grid", folder=tmp_path)
    assert found.variants == found.evaluated == 4 and not found.resumed
    assert found.best is not None and found.best.values["broken"] == 0
    times = {key_of(one.values): one.time_ps for one in found.trials if one.ok}
    assert found.best.time_ps == min(times.values()) < found.baseline.time_ps
    assert {one.state for one in found.trials if one.values["broken"]} == {"wrong"}
    assert "critical path" in found.best.bottleneck and found.baseline.values == {}
    # All of it is there again; a line that was cut off, and what is missing, are tried again.
    path = tmp_path / "trials.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:4]) + lines[4][:9])
    again = tuning.tune(ORDER, space, method="grid", folder=tmp_path)
    assert again.resumed == 3 and again.evaluated == 4
    assert {key_of(one.values): one.time_ps for one in again.trials if one.ok} == times
    with pytest.raises(FormatError, match="another script, or with other options"):
        tuning.tune(ORDER._replace(target="trn1"), {}, most=1, folder=tmp_path)


def test_what_is_wrong_with_a_script_or_a_parameter_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        tuning.tune(Order(str(tmp_path / "none.py")), {})
    quiet = tmp_path / "quiet.py"
    quiet.write_text("print(1)")
    with pytest.raises(FormatError, match="launched no kernel"):
        tuning.tune(Order(str(quiet)), {})
    found = run_trial(ORDER, {"height": 3})
    assert found.state == "refused" and "no kernel that the script launches has a parameter 'height'" in found.message
    assert run_trial(ORDER, {"width": 96}).state in ("wrong", "refused", "finding")
    slow = tmp_path / "slow.py"
    slow.write_text("import time\ntime.sleep(60)")
    assert run_trial(Order(str(slow), max_seconds=-9.5), {}).state == "timeout"


def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    """The process of a trial is killed from outside; the trial is done again."""
    script = tmp_path / "once.py"
    flag = tmp_path / "flag"
    script.write_text(
        f"import os, time\nfrom pathlib import Path\nflag = Path({str(flag)!r})\n"
        "if not flag.exists():\n    flag.write_text(str(os.getpid()))\n    time.sleep(30)\n" + SCRIPT.read_text()
    )

    def kill() -> None:
        while not (flag.exists() and flag.read_text()):
            time.sleep(0.02)
        os.kill(int(flag.read_text()), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = working.persistent_trial(Order(str(script), (), "trn2"), {"width": 256})
    killer.join()
    assert found.ok and found.time_ps == run_trial(ORDER, {"width": 256}).time_ps


def test_a_cluster_gives_the_same() -> None:
    pytest.importorskip("distributed", reason="Dask is not installed")
    here, there = (
        tuning.tune(ORDER, {"width": (512,), "broken": (0,)}, most=2, method="grid", cluster=cluster)
        for cluster in (None, "local")
    )
    assert {key_of(one.values): one.time_ps for one in here.trials} == {
        key_of(one.values): one.time_ps for one in there.trials
    }


def test_a_worker_of_a_cluster_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    """The process of a Dask worker is killed while it has a trial; another worker does the trial."""
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    script, flag, runs = tmp_path / "once.py", tmp_path / "flag", tmp_path / "runs"
    script.write_text(
        "import os, time\nfrom pathlib import Path\n"
        f"flag, runs = Path({str(flag)!r}), open({str(runs)!r}, 'a')\n"
        "print(os.getpid(), file=runs, flush=True)\n"
        f"if os.getppid() != {os.getpid()} and not flag.exists():\n"
        "    flag.write_text(str(os.getppid()) + '.')\n    time.sleep(5)\n" + SCRIPT.read_text()
    )
    order, killed = Order(str(script), (), "trn2"), list[int]()
    space = {"width": (256, 512, 1024), "engine": ("vector",), "broken": (0,)}
    with distributed.LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            processes = set(client.run(os.getpid).values())

        def kill() -> None:
            while not (flag.exists() and flag.read_text().endswith(".")):
                time.sleep(0.02)
            killed.append(int(flag.read_text()[:-1]))
            if killed[0] in processes:
                os.kill(killed[0], signal.SIGKILL)

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        found = tuning.tune(order, space, most=3, method="grid", cluster=cluster.scheduler_address, folder=tmp_path)
        killer.join(30)
    assert killed and killed[0] in processes
    assert found.evaluated == found.variants == 3 and all(one.ok for one in found.trials)
    for one in found.trials:
        assert one.time_ps == run_trial(ORDER, one.values).time_ps
    assert len(runs.read_text().splitlines()) >= 5  # as it stands, three variants, and one of them again


def test_packages_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(UnsupportedError, match=r"\[tune\]"):
        search_of("tpe", SPACE, 0)
    with pytest.raises(UnsupportedError, match=r"\[fleet\]"), working.workers(1, "local"):
        pass


def test_the_command_prints_a_table_and_writes_another(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    table = tmp_path / "trials.parquet"
    words = ["tune", str(SCRIPT), "--target", "trn2", "--param", "width=256,1024", "--param", "broken=0", "--param",
             "engine=vector", "--parquet", str(table)]  # fmt: skip
    made = CliRunner().invoke(app, words)
    assert made.exit_code == 0, made.output
    assert "2 of 2 variants tried (climb), 2 right" in made.output and "+ width=" in made.output
    rows = parquet.read_table(table).to_pylist()
    assert {row["param_width"] for row in rows} == {"256", "1024"} and all(row["time_ps"] > 0 for row in rows)
    made = CliRunner().invoke(app, [*words[:4], "--param", "broken=1", "--param", "width=256", "--json"])
    assert made.exit_code == 1
    assert json.loads(made.stdout)["result"]["best"] is None


def test_the_command_shows_each_rung() -> None:
    words = ["tune", str(SCRIPT), "--target", "trn2", "--param", "width=128,512", "--param", "broken=0", "--param",
             "engine=vector,scalar", "--method", "halving", "--trials", "4"]  # fmt: skip
    made = CliRunner().invoke(app, [*words, "--rung", "16", "--rung", "'32'", "--", "64"])
    assert made.exit_code == 0, made.output
    assert "4 of 4 variants tried (halving), 4 right" in made.output
    assert "rung 0, 16: 4 tried, 4 right" in made.output and "rung 1, 32: 2 tried, 2 right" in made.output
    assert "rung 2, the script's own arguments: 1 tried, 1 right" in made.output
    for wrong in (words, [*words[:-4], "--rung", "16"]):
        made = CliRunner().invoke(app, wrong)
        assert made.exit_code == 2 and "--method halving goes with --rung ARGS" in made.output
    made = CliRunner().invoke(app, [*words, "--rung", "'16"])
    assert made.exit_code == 2 and "No closing quotation" in made.output
    with pytest.raises(InputError, match="rungs"):
        tuning.tune(ORDER, {}, method="halving")


@pytest.mark.parametrize(
    "words", [["--param", "width"], ["--param", "=3"], ["--method", "magic"], ["--tool", "nocheck"]]
)
def test_bad_options_are_refused(words: list[str]) -> None:
    assert CliRunner().invoke(app, ["tune", str(SCRIPT), *words]).exit_code != 0
