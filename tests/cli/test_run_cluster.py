"""`neurontools run --ranks --cluster`: ranks on the workers of a Dask cluster, and what is said when one is lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neurontools.program.arrays import load_arrays
from neurontools.running import fleet
from tests.cli.conftest import Cli
from tests.emulator.machine.test_timed_ranks import built, overlaps

distributed: Any = pytest.importorskip("distributed", reason="Dask is not installed")


@pytest.fixture(scope="module")
def neff(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fleet") / "step.neff"
    built(overlaps, 4).save(path)
    return path


@pytest.fixture
def cluster() -> Iterator[tuple[str, dict[str, int]]]:
    """Give the address of a scheduler with two workers that are processes, and the process of each."""
    with distributed.LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as made:
        with distributed.Client(made) as client:
            processes = client.run(os.getpid)
        yield made.scheduler_address, processes


def alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two reports differ in nothing but the time that this machine took."""
    for run in (one, other):
        for row in run["ranks"]:
            row["run"]["stats"].pop("seconds", None)
    return one == other


def test_a_cluster_gives_what_one_process_gives(cli: Cli, neff: Path, tmp_path: Path, cluster: Any) -> None:
    address, _ = cluster
    asked = ("run", neff, "--ranks", 4, "--inputs", "random:3", "--json", "--outputs")
    here = cli(*asked, tmp_path / "here.npz")
    there = cli(*asked, tmp_path / "there.npz", "--cluster", address)
    assert there.status == here.status == 0, there.err
    assert alike(here.json["result"], there.json["result"])
    mine, theirs = load_arrays(tmp_path / "here.npz"), load_arrays(tmp_path / "there.npz")
    assert list(mine) == list(theirs) and all(mine[name].tobytes() == theirs[name].tobytes() for name in mine)


def test_workers_without_the_same_package_are_named(
    cli: Cli, neff: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine of the cluster may have another version, or none: that is said before anything runs there."""
    address, _ = cluster
    monkeypatch.setattr(fleet, "__version__", "99.9")
    asked = ("run", neff, "--ranks", 4, "--inputs", "random:3", "--cluster", address)
    ended = cli(*asked)
    assert ended.status == 3 and "expected neurontools 99.9, found neurontools" in ended.error_line
    monkeypatch.setattr(fleet, "_VERSION", "__import__('no_such_package')")
    ended = cli(*asked)
    assert ended.status == 3 and "No module named 'no_such_package'" in ended.error_line


def test_a_worker_that_is_killed_is_an_error_of_one_line(
    cli: Cli, neff: Path, tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, processes = cluster
    asker, asked = fleet._asker, []

    def counted(actor: Any, worker: str) -> Any:
        ask = asker(actor, worker)

        def killing(name: str, *arguments: Any) -> Any:
            asked.append(name)
            if len(asked) == 8:
                os.kill(processes[worker], signal.SIGKILL)
            return ask(name, *arguments)

        return killing

    monkeypatch.setattr(fleet, "_asker", counted)
    output = tmp_path / "out.npz"
    ended = cli("run", neff, "--ranks", 4, "--inputs", "zeros", "--cluster", address, "--outputs", output)
    assert ended.status == 5 and not output.exists()
    (line,) = ended.err.strip().splitlines()
    assert line.startswith("neurontools: the worker tcp://") and "was lost in the middle of the run" in line
    assert len(asked) >= 8


def test_a_script_on_a_cluster(cli: Cli, tmp_path: Path) -> None:
    script = tmp_path / "step.py"
    script.write_text(
        "import os\nimport numpy as np\nimport nki, nki.collectives as ncc, nki.language as nl\n"
        "@nki.jit\ndef total(x):\n    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
        "    ncc.all_reduce([x], [out], [[0, 1, 2]], nl.add)\n    return out\n"
        "print(total(np.full((4, 8), float(os.environ['RANK']), np.float32))[0, 0])\n"
    )
    ended = cli("run", script, "--ranks", 3, "--target", "trn2", "--lnc", 1, "--cluster", "local")
    assert ended.status == 0 and ended.out.splitlines() == ["3.0"] * 3, ended.err


REFUSED: list[tuple[tuple[object, ...], int, str]] = [
    (("--cluster", "local"), 2, "goes with --ranks"),
    (("--ranks", 2, "--cluster", "local", "--dump-dir", "d"), 2, "dumps are of ranks in this process"),
    (("--ranks", 2, "--cluster", "local", "--time-only"), 2, "has times and no data"),
    (("--ranks", 129, "--cluster", "local"), 3, "129 ranks; trn2.48xlarge has 1 to 128"),
    (("--ranks", 2, "--cluster", "tcp://127.0.0.1:9"), 3, "no Dask scheduler answers"),
]


@pytest.mark.parametrize(("options", "status", "message"), REFUSED, ids=[text for _, _, text in REFUSED])
def test_what_does_not_go_together(
    cli: Cli, neff: Path, options: tuple[object, ...], status: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neurontools.command.workers._SECONDS", 1)
    ended = cli("run", neff, "--inputs", "zeros", *options)
    assert ended.status == status and message in ended.error_line, ended.err


def test_without_dask_the_extra_is_named(cli: Cli, neff: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    ended = cli("run", neff, "--inputs", "zeros", "--ranks", 2, "--cluster", "local")
    assert ended.status == 6 and "[fleet]" in ended.error_line


def test_inputs_of_ranks_are_sent(cli: Cli, neff: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.zeros((3, 3), np.float32))
    ended = cli("run", neff, "--ranks", 4, "--cluster", "local", "--inputs", tmp_path / "x.npz")
    assert ended.status == 3
