"""`neurontools ls`: the documented listings to the byte, every instance type, sessions as programs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from emulator.machine.instances import INSTANCES
from emulator.runtime.ledger_state import FOLDER_VARIABLE
from emulator.runtime.session import Runtime
from neurontools.system.devices import DeviceRow, ProcessRow, ls_lines, topology_lines
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.corpus.files import find

FIRST = """\
+--------+--------+----------+--------+---------------+--------------+---------------+------+
| NEURON | NEURON |  NEURON  | NEURON |   CONNECTED   |     PCI      |      CPU      | NUMA |
| DEVICE | CORES  | CORE IDS | MEMORY |    DEVICES    |     BDF      |   AFFINITY    | NODE |
+--------+--------+----------+--------+---------------+--------------+---------------+------+
| 0      | 4      | 0-3      | 96 GB  | 12, 3, 4, 1   | 0000:cc:00.0 | 48-95,144-191 | 1    |
"""


def blocks(corpus: Path) -> dict[str, list[str]]:
    """Return the documented listings by the command that printed them."""
    text = find(corpus, "aws-neuron-sdk/tools/neuron-sys-tools/neuron-ls.rst").read_text()
    found = {}
    for command, body in re.findall(r"^  \$ (neuron-ls[^\n]*)\n(.*?)(?=^::|^Field)", text, re.DOTALL | re.MULTILINE):
        found[command] = [line.removeprefix("  ").rstrip() for line in body.rstrip().splitlines()]
    return found


def test_the_first_lines(cli: Cli) -> None:
    ended = cli("ls", "--instance", "trn2.48xlarge")
    assert ended.status == 0 and "\n".join(ended.out.splitlines()[3:8]) + "\n" == FIRST
    assert ended.out.splitlines()[2] == "logical-neuroncore-config: 2"


def test_the_documented_listings_to_the_byte(cli: Cli, corpus: Path) -> None:
    theirs = blocks(corpus)
    ours = [line.rstrip() for line in cli("ls").out.splitlines()]
    assert ours[2:] == theirs["neuron-ls"][2:]
    ours = [line.rstrip() for line in cli("ls", "--topology").out.splitlines()]
    assert [one.strip() for one in ours[2:]] == [one.strip() for one in theirs["neuron-ls --topology"][2:]]


def test_the_documented_programs_to_the_byte(cli: Cli, corpus: Path) -> None:
    theirs = blocks(corpus)
    rows = checked_json(cli("ls", "--json"), "ls")["devices"]
    command = "neuron-bench exec --run-as-cc-neff --warmup none --fixed-instance-count 64 --and-more-of-it"
    programs = [ProcessRow(268911, command, "2.0.0")]
    given = [DeviceRow(**{**row, "neuron_processes": programs}) for row in rows]
    assert ls_lines(given, "wide") == theirs["neuron-ls --wide"][3:]
    programs.append(ProcessRow(269192, "neuron-ls --show-all-procs", "NA"))
    given = [DeviceRow(**{**row, "neuron_processes": programs}) for row in rows]
    assert ls_lines(given, "processes") == theirs["neuron-ls --show-all-procs"][3:]


def test_their_json(cli: Cli) -> None:
    first = json.loads(cli("ls", "-j").out)[0]
    assert first == {
        "neuron_device": 0, "bdf": "cc:00.0", "cpu_affinity": "48-95,144-191", "numa_node": "1",
        "connected_to": [12, 3, 4, 1], "nc_count": 4, "logical_neuroncore_config": 2, "memory_size": 103079215104,
        "neuroncore_ids": [0, 1, 2, 3], "neuron_processes": [],
    }  # fmt: skip


@pytest.mark.parametrize("instance", sorted(INSTANCES))
def test_every_instance_type(cli: Cli, instance: str) -> None:
    result = checked_json(cli("ls", "--instance", instance, "--json"), "ls")
    rows = result["devices"]
    assert len(rows) == INSTANCES[instance].chips_per_server
    assert [core for row in rows for core in row["neuroncore_ids"]] == [*range(len(rows) * rows[0]["nc_count"])]
    for row in rows:  # wired both ways
        for other in row["connected_to"] or []:
            assert row["neuron_device"] in rows[other]["connected_to"]
    for how in ("--wide", "--topology", "--show-all-procs"):
        lines = cli("ls", "--instance", instance, how).out.splitlines()
        box = [line for line in lines if line.startswith(("|", "+"))]
        assert len({len(line) for line in box}) == 1 and len(box) >= len(rows) + 4


def test_a_ring_of_four() -> None:
    lines = topology_lines(4, 16)
    assert lines[4] == "*––►[ 0 ]◄––►[ 1 ]◄––►[ 2 ]◄––►[ 3 ]◄––*" and len({len(line) for line in lines[1:20]}) == 1


def test_sessions_are_programs(cli: Cli, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    assert checked_json(cli("ls", "--json"), "ls")["devices"][0]["neuron_processes"] == []
    runtime = Runtime({FOLDER_VARIABLE: str(tmp_path), "NEURON_RT_VISIBLE_CORES": "4-5"})
    runtime.load((root / "fixtures" / "neff" / "idle_pair.neff").read_bytes(), 0)
    runtime.close_state() if hasattr(runtime, "close_state") else wait_for(tmp_path)
    rows = checked_json(cli("ls", "--json"), "ls")["devices"]
    assert [row["neuron_device"] for row in rows if row["neuron_processes"]] == [1]
    runtime.close()


def test_a_state_that_is_being_written_is_none_yet(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    (tmp_path / ".1.json.nt-00000000-1-abcdefgh.json").write_text('{"schema": ')
    ended = cli("ls", "--json")
    assert ended.status == 0 and checked_json(ended, "ls")["devices"][0]["neuron_processes"] == []


def wait_for(folder: Path) -> None:
    """Wait until the session's file shows a loaded model."""
    import time

    for _ in range(100):
        if any('"models": [[' in path.read_text() for path in folder.glob("[!.]*.json")):
            return
        time.sleep(0.05)
    raise AssertionError("the session showed nothing")


@pytest.mark.parametrize(
    ("arguments", "status"), [(("--instance", "x"), 4), (("--instance", "trn1.32xlarge", "--lnc", "2"), 6)]
)
def test_bad_options(cli: Cli, arguments: tuple[str, ...], status: int) -> None:
    assert cli("ls", *arguments).status == status
