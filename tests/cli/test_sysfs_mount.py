"""`neurontools sysfs mount`: the documented tree, sums equal to the ledger, counters that a write clears."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.machine.instances import instance_of
from emulator.runtime.ledger_state import MachineState, read_state
from neurontools.dump.sysfs import PLACE, device_cores
from neurontools.sysfs.mount import Files
from neurontools.sysfs.tree import STATUS_NAMES, tree_of
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.cli.test_mem_watch import saved


@pytest.fixture
def state(root: Path, tmp_path: Path) -> MachineState:
    """Return a session with a model, a tensor, executions and errors."""
    found = read_state(saved(root, tmp_path))
    return found._replace(counters={(0, "status/success"): 3, (0, "status/timeout"): 1, (0, "status/dma_abort"): 2,
                                    (0, "hardware/mem_ecc_uncorrected"): 1, (0, "other_info/inference_count"): 4,
                                    (-1, "status/failure"): 9})  # fmt: skip


def test_the_tree_of_the_guide(cli: Cli, tmp_path: Path) -> None:
    result = checked_json(cli("sysfs", "mount", tmp_path / "sys", "--json"), "sysfs mount")
    top = tmp_path / "sys" / PLACE
    assert result["folder"] == str(top) and len(list(top.glob("neuron[0-9]*"))) == 16
    assert (top / "neuron0" / "connected_devices").read_text() == "12, 3, 4, 1\n"
    assert (top / "neuron0" / "core_count").read_text() == "8\n"
    core = top / "neuron3" / "neuron_core7" / "stats"
    assert {path.name for path in (core / "status").iterdir()} == set(STATUS_NAMES)
    assert {path.name for path in (core / "memory_usage" / "device_mem").iterdir()} == {
        "collectives", "constants", "dma_rings", "driver_memory", "model_code", "model_shared_scratchpad",
        "nonshared_scratchpad", "notifications", "runtime_memory", "tensors", "uncategorized"}  # fmt: skip
    assert {path.name for path in (core / "memory_usage" / "device_mem" / "tensors").iterdir()} == {
        "total",
        "present",
        "peak",
    }
    assert len(list(device_cores(tmp_path / "sys", {}))) == 128


def test_sums_are_the_ledgers(state: MachineState) -> None:
    tree = tree_of(instance_of("trn2.48xlarge"), [state])
    assert sum(one.total for one in tree.memory.values()) == sum(
        one.allocation.size for one in state.ledger.entries.values())  # fmt: skip
    twice = tree_of(instance_of("trn2.48xlarge"), [state, state])
    assert sum(one.total for one in twice.memory.values()) == 2 * sum(one.total for one in tree.memory.values())
    core = "neuron0/neuron_core0/stats/"
    assert tree.counters[f"{core}status/success"] == 3 and tree.counters[f"{core}status/dma_abort"] == 2
    assert tree.counters["neuron0/stats/hardware/mem_ecc_uncorrected"] == 1
    assert tree.texts[f"{core}other_info/inference_count"] == "4"


def test_a_write_clears_and_counting_goes_on(state: MachineState, tmp_path: Path) -> None:
    kind = instance_of("trn2.48xlarge")
    files = Files(tmp_path)
    files.update(tree_of(kind, [state]))
    success = tmp_path / "neuron0" / "neuron_core0" / "stats" / "status" / "success"

    def numbers() -> tuple[str, str]:
        return success.joinpath("total").read_text().strip(), success.joinpath("present").read_text().strip()

    assert numbers() == ("3", "3")
    success.joinpath("total").write_text("1\n")
    files.update(tree_of(kind, [state]))
    assert numbers() == ("0", "0")
    more = state._replace(counters={**state.counters, (0, "status/success"): 5})
    files.update(tree_of(kind, [more]))
    assert numbers() == ("2", "2")
    peak = tmp_path / "neuron0" / "neuron_core0" / "stats" / "memory_usage" / "device_mem" / "tensors" / "peak"
    assert int(peak.read_text()) > 3 << 30
    peak.write_text("x")
    files.update(tree_of(kind, [more]))
    assert peak.read_text() == "0\n"


def test_places_that_hold_something_else(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / PLACE / "neuron0").mkdir(parents=True)
    assert cli("sysfs", "mount", tmp_path, "--once").status == 2
    assert cli("sysfs", "mount", tmp_path / "a" / "b", "--once").status == 4
    assert cli("sysfs", "mount", tmp_path / "c", "--once", "--instance", "x").status == 4
    assert cli("sysfs", "mount", tmp_path / "c", "--once").status == 0
    assert cli("sysfs", "mount", tmp_path / "c", "--once").status == 0  # its own tree, again
