"""`neurontools mem plan`."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.nrt.oom_reading import read_memory_report
from tests.cli.check import checked_json
from tests.cli.conftest import Cli


@pytest.fixture
def pair(root: Path) -> Path:
    """Return a file for trn2 with LNC 2."""
    return root / "fixtures" / "neff" / "idle_pair.neff"


def test_models_of_one_machine(cli: Cli, root: Path) -> None:
    path = root / "fixtures" / "neff" / "add_exp.neff"
    ended = cli("mem", "plan", "--instance", "trn1.32xlarge", "--load", f"nc0:{path}", "--load", f"0:{path}",
                "--load", f"nc3:{path}", "--tensor", "nc3:1.5GiB", "--json")  # fmt: skip
    result = checked_json(ended, "mem plan")
    assert ended.status == 0 and result["fits"] and result["failed"] is None
    places = {(one["device"], one["stack"]): one for one in result["stacks"]}
    assert set(places) == {(0, 0), (1, 1)}
    # Two of the same file share their scratchpad, not their code.
    once, twice = places[1, 1]["categories"], places[0, 0]["categories"]
    assert twice["shared_scratchpad"] == once["shared_scratchpad"] == 64 << 20
    assert once["tensors"] - twice["tensors"] == (3 << 29) - 8  # the generator's table of a file
    assert all(sum(one["categories"].values()) == one["used"] for one in places.values())


def test_what_does_not_fit_is_reported_as_the_runtime_does(cli: Cli, tmp_path: Path) -> None:
    ended = cli("mem", "plan", "--lnc", "1", "--tensor", "nc4:20GiB", "--tensor", "nc5:4GiB", "--emit-log", tmp_path,
                "--json")  # fmt: skip
    result = checked_json(ended, "mem plan")
    assert ended.status == 1 and not result["fits"]
    failed = result["failed"]
    assert (failed["core"], failed["usage"], failed["bytes"], failed["stack"]) == (5, "tensors", 4 << 30, 2)
    assert not failed["fragmented"] and failed["free"] < 4 << 30
    report = read_memory_report(result["log"])
    assert report.problems == () and report.sharing == (4, 5) and report.failures[0].core == 5
    written = (tmp_path / "neuron_mem_table_device_0_hbm_2.log").read_text().splitlines()
    assert written == result["tables"]["neuron_mem_table_device_0_hbm_2.log"]
    assert any("LNC 1 two cores share" in reason for reason in result["reasons"])


def test_profiler_buffers_of_one_core_too_many(cli: Cli) -> None:
    few = ("mem", "plan", "--instance", "trn2.48xlarge", "--lnc", "2", "--profile", "0", "--tensor")
    assert cli(*few, "nc0:16GiB").status == 0
    ended = cli(*few, "nc0:20GiB")
    assert ended.status == 1 and "profile one model at a time" in ended.out


def test_a_file_for_another_lnc_is_said(cli: Cli, pair: Path) -> None:
    ended = cli("mem", "plan", "--lnc", "1", "--load", f"nc0:{pair}")
    assert ended.status == 0 and "made for LNC 2" in ended.err


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ((), 2), (("--tensor", "4GiB"), 2), (("--tensor", "nc0:four"), 2), (("--tensor", "nc900:4KB"), 4),
        (("--load", "nc0:missing.neff"), 4), (("--instance", "trn9.xlarge", "--tensor", "0:1"), 4),
        (("--instance", "trn1.32xlarge", "--lnc", "2", "--tensor", "0:1"), 6),
        (("--instance", "inf1.xlarge", "--tensor", "0:1"), 6), (("--page-size", "5", "--pages", "--tensor", "0:1"), 2),
        (("--tensor", "0:1", "--emit-log", "nowhere"), 4),
    ],
)  # fmt: skip
def test_bad_options(cli: Cli, arguments: tuple[str, ...], status: int) -> None:
    ended = cli("mem", "plan", *arguments)
    assert ended.status == status, ended
