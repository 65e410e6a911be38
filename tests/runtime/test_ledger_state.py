"""A session's ledger: at zero in the end, its state read back, damage refused, memory exhausted as documented."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import pytest

from emulator.runtime.errors import StatusError
from emulator.runtime.ledger import Ledger
from emulator.runtime.ledger_state import FOLDER_VARIABLE, dump_state, read_state, state_of
from emulator.runtime.ledger_views import monitor_memory
from emulator.runtime.memory import Category, Owner
from emulator.runtime.session import Runtime
from emulator.runtime.tensor import Placement
from formats.errors import FormatError
from formats.nrt.oom_reading import read_memory_report

ENVIRONMENT = {
    "NEURONTOOLS_INSTANCE_TYPE": "trn2.48xlarge",
    "NEURON_RT_NUM_CORES": "2",
    "NEURON_LOGICAL_NC_CONFIG": "2",
}


@pytest.fixture
def pair(root: Path) -> bytes:
    """Return a file for trn2 with LNC 2."""
    return (root / "fixtures" / "neff" / "idle_pair.neff").read_bytes()


def ledger_of(runtime: Runtime) -> Ledger:
    assert isinstance(runtime.memory, Ledger)
    return runtime.memory


def test_the_ledger_is_at_zero_in_the_end(pair: bytes) -> None:
    runtime = Runtime(ENVIRONMENT)
    ledger = ledger_of(runtime)
    for _ in range(20):
        model = runtime.load(pair, 1)
        runtime.unload(model)
    kept = runtime.load(pair, 0)
    runtime.allocate(Placement.DEVICE, 0, 5000, "x")
    assert ledger.models and kept.number in {owner.model for owner in ledger.models}
    assert any(one.allocation.name == "x" for one in ledger.entries.values())
    runtime.close()
    assert not ledger.entries and not ledger.models
    assert all(counter.total == 0 for counter in ledger.counters.values())


def test_a_folder_that_goes_away_ends_no_session(pair: bytes, tmp_path: Path) -> None:
    lines: list[str] = []
    folder = tmp_path / "machine"
    folder.mkdir()
    runtime = Runtime({**ENVIRONMENT, FOLDER_VARIABLE: str(folder)}, sink=lambda place, line: lines.append(line))
    shutil.rmtree(folder)
    runtime.load(pair, 0)
    runtime.close()
    assert runtime.closed and sum(FOLDER_VARIABLE in line for line in lines) == 1
    with pytest.raises(StatusError, match=f"NRT_FAILURE.*{FOLDER_VARIABLE}"):
        Runtime({**ENVIRONMENT, FOLDER_VARIABLE: str(folder)})


def test_a_state_comes_back_as_it_was(pair: bytes, tmp_path: Path) -> None:
    runtime = Runtime({**ENVIRONMENT, FOLDER_VARIABLE: str(tmp_path), "NEURON_PROCESS_TAG": "job"})
    runtime.load(pair, 0)
    state = state_of(runtime)
    path = tmp_path / "copy.json"
    path.write_text(json.dumps(dump_state(state)))
    again = read_state(path)
    assert again.tag == "job" and again.counters == state.counters and not again.ended
    assert again.ledger.entries == ledger_of(runtime).entries and again.ledger.counters == ledger_of(runtime).counters
    assert monitor_memory(again.ledger) == monitor_memory(ledger_of(runtime))
    runtime.close()
    (written,) = [one for one in tmp_path.glob("*.json") if one != path]
    last = read_state(written)
    assert last.ended and not last.ledger.entries
    assert not [thread for thread in threading.enumerate() if thread.name == "machine state"]


@pytest.mark.parametrize("key", ["schema", "entries", "memory", "activity", "counters", "models", "lnc", "pid"])
def test_damaged_states(pair: bytes, tmp_path: Path, key: str) -> None:
    runtime = Runtime(ENVIRONMENT)
    runtime.load(pair, 0)
    state = state_of(runtime)
    good = dump_state(state)
    path = tmp_path / "state.json"
    for bad in (None, "text", [["x"]], [[1, 2]], [5], 77 if key != "pid" else "77", {}):
        path.write_text(json.dumps({**good, key: bad}))
        with pytest.raises(FormatError, match="state of a machine"):
            read_state(path)
    for time in (10**400, float("inf"), float("nan")):
        path.write_text(json.dumps({**good, "time": time}))
        with pytest.raises(FormatError, match="time"):
            read_state(path)
    path.write_text(json.dumps({**good, "entries": [*good["entries"], [999, *good["entries"][0][1:]]]}))
    with pytest.raises(FormatError, match="overlap"):
        read_state(path)
    for text in ("", "[]", "{", "\ud800"):
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        with pytest.raises(FormatError):
            read_state(path)
    runtime.close()


def test_memory_that_is_exhausted_is_reported_as_documented(pair: bytes) -> None:
    lines: list[str] = []
    runtime = Runtime({**ENVIRONMENT, "NEURON_LOGICAL_NC_CONFIG": "2"}, sink=lambda place, line: lines.append(line))
    ledger = ledger_of(runtime)
    core = runtime.core(0)
    stack = core.stacks[0]
    ledger.allocate(Category.TENSORS, ledger.allocator(stack).largest - 4096, stack=stack, owner=Owner(0), align=1)
    with pytest.raises(StatusError) as caught:
        runtime.load(pair, 0)
    assert not ledger.models
    assert int(caught.value.status) == 4
    report = read_memory_report(lines)
    assert report.failures and report.problems == () and report.table.rows[0].label == "ND 0 HBM 0"


def test_a_load_logs_its_memory_where_the_level_asks_for_it(pair: bytes) -> None:
    for level, wanted in (("info", 1), ("error", 0)):
        lines: list[str] = []
        environ = {**ENVIRONMENT, "NEURON_RT_LOG_LEVEL_TDRV": level}
        runtime = Runtime(environ, sink=lambda place, line, kept=lines: kept.append(line))  # type: ignore[misc]
        model = runtime.load(pair, 0)
        report = read_memory_report(lines)
        assert len(report.blocks) == wanted and report.problems == ()
        if wanted:
            (block,) = report.blocks
            entries = [one for one in ledger_of(runtime).entries.values() if one.allocation.owner.model == model.number]
            mine = sum(one.allocation.size for one in entries if one.category != "tensors")
            assert block.device == 0 and abs((block.total or 0) - mine) <= mine / 1000
        runtime.close()


def test_page_size_that_is_none() -> None:
    for text in ("700", "4096", "x", "-512"):
        with pytest.raises(StatusError, match="NEURON_SCRATCHPAD_PAGE_SIZE"):
            Runtime({**ENVIRONMENT, "NEURON_SCRATCHPAD_PAGE_SIZE": text})
    runtime = Runtime({**ENVIRONMENT, "NEURON_SCRATCHPAD_PAGE_SIZE": "1024", "NEURON_RT_CONTIGUOUS_SCRATCHPAD": "0"})
    assert ledger_of(runtime).scratchpad[:2] == (False, 1 << 30)
    runtime.close()
