"""`neurontools sysfs datastore`: stores of sessions sum to the ledger."""

from __future__ import annotations

from pathlib import Path

from emulator.machine.instances import instance_of
from emulator.runtime.activity import CoreActivity
from emulator.runtime.ledger_state import read_state
from emulator.runtime.ledger_views import slots
from formats.nrt.datastore import encode
from neurontools.dump.sysfs import PLACE
from neurontools.sysfs.stores import stores_of
from tests.cli.check import checked_json
from tests.cli.conftest import Cli
from tests.cli.test_mem_watch import saved


def test_sums_are_the_ledgers(root: Path, tmp_path: Path) -> None:
    state = read_state(saved(root, tmp_path))._replace(
        counters={(0, "status/success"): 3, (1, "status/dma_abort"): 1},
        activity={0: CoreActivity(3, 9_000_000, 5_000)},
    )
    (store,) = stores_of(instance_of("trn2.48xlarge"), state).values()
    for name, nbytes in slots(state.ledger, 0).items():
        assert sum(one.get(f"MEM_USAGE_{name}_DEVICE", 0) for one in store.cores.values()) == nbytes
    assert store.cores[0]["INFER_COMPLETED"] == 3 and store.cores[2]["HW_ERR_DMA_ABORT"] == 1
    assert (store.cores[0]["LATENCY_TOTAL"], store.cores[0]["NC_TIME"]) == (9000, 5)


def test_a_mounted_store(cli: Cli, root: Path, tmp_path: Path) -> None:
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    state = read_state(saved(root, sessions))
    assert cli("sysfs", "mount", tmp_path / "sys", "--sessions", sessions, "--once").status == 0
    path = tmp_path / "sys" / PLACE / "neuron_ds" / str(state.pid) / "neuron0"
    (store,) = stores_of(instance_of("trn2.48xlarge"), state).values()
    assert path.read_bytes() == encode(store)
    result = checked_json(cli("sysfs", "datastore", path, "--json"), "sysfs datastore")
    assert result["cores"]["0"]["MEM_USAGE_TENSORS_DEVICE"] == (3 << 30) + 8 and result["object_bytes"] == 0
    assert "MEM_USAGE_CODE_DEVICE" in cli("sysfs", "datastore", path).out


def test_bad_files(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"nds\0")
    ended = cli("sysfs", "datastore", tmp_path / "bad")
    assert ended.status == 3 and "bad" in ended.error_line
    assert cli("sysfs", "datastore", tmp_path / "missing").status == 4
