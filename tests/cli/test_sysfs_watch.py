"""`neurontools sysfs watch`."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from neurontools.dump.sysfs import PLACE
from neurontools.sysfs.watch import changed
from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def test_changes() -> None:
    found = changed({"a": "1", "b": "2"}, {"a": "1", "b": "3", "c": "0"}, 1.5)
    assert [tuple(one) for one in found] == [(1.5, "b", "2", "3"), (1.5, "c", None, "0")]


def test_a_tree_that_changes(cli: Cli, tmp_path: Path) -> None:
    assert cli("sysfs", "mount", tmp_path, "--once", "--instance", "trn1.2xlarge").status == 0
    total = tmp_path / PLACE / "neuron0" / "neuron_core1" / "stats" / "status" / "timeout" / "total"

    def write() -> None:
        time.sleep(0.7)
        total.write_text("7\n")

    writer = threading.Thread(target=write)
    writer.start()
    ended = cli("sysfs", "watch", "neuron0/*/status", "--root", tmp_path, "--for", "2", "--period", "0.1", "--json")
    writer.join()
    (one,) = checked_json(ended, "sysfs watch")["changes"]
    assert (one["attribute"], one["before"], one["after"]) == (
        "neuron0/neuron_core1/stats/status/timeout/total", "0", "7")  # fmt: skip


def test_bad_options(cli: Cli, tmp_path: Path) -> None:
    assert cli("sysfs", "watch", "--root", tmp_path, "--json").status == 2
    assert cli("sysfs", "watch", "--root", tmp_path / "missing", "--for", "0.1").status == 4
