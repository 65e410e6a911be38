"""Laws of a whole session: whatever programs do with real files and tensors, every tool's numbers sum to the ledger."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from emulator.machine.instances import instance_of
from emulator.runtime.errors import StatusError
from emulator.runtime.ledger import Ledger
from emulator.runtime.ledger_state import MachineState, dump_state, read_state, state_of
from emulator.runtime.model import Model
from emulator.runtime.session import Runtime
from emulator.runtime.tensor import Placement, Tensor
from formats.nrt.log import parse_line
from formats.nrt.monitor import problems
from formats.nrt.oom import table_lines
from formats.nrt.oom_reading import read_memory_report
from formats.nrt.status import NrtStatus as S
from neurontools.monitor.config import DEFAULT
from neurontools.monitor.report import make_report, sample
from neurontools.sysfs.stores import stores_of
from neurontools.sysfs.tree import tree_of
from neurontools.top.figures import figures
from tests.runtime.support import Session, copying, out_of_bounds, printing

INSTANCE = instance_of("trn2.48xlarge")


def _sysfs(state: MachineState) -> int:
    return sum(one.total for one in tree_of(INSTANCE, [state]).memory.values())


def _store(state: MachineState) -> int:
    stores = stores_of(INSTANCE, state).values()
    return sum(count for store in stores for core in store.cores.values() for name, count in core.items()
               if name.startswith("MEM_USAGE"))  # fmt: skip


def _monitor(state: MachineState) -> Mapping[str, Any]:
    before, now = sample([state], 1.0), sample([state], 2.0)
    report = make_report(now, before, DEFAULT, INSTANCE, state.ledger.lnc)
    assert problems(report) == []
    return report


def check(runtime: Runtime, live: list[Tensor | Model]) -> None:
    """Compare every view with the ledger, and the ledger with what the program holds."""
    ledger = runtime.memory
    assert isinstance(ledger, Ledger)
    state = state_of(runtime)
    total = sum(one.allocation.size for one in ledger.entries.values())
    assert total == sum(ledger.used(stack) for stack in {one.allocation.stack for one in ledger.entries.values()})
    assert total == _sysfs(state) == _store(state)
    report = _monitor(state)
    (process,) = report["neuron_runtime_data"] if total else ({"report": None},)
    if total:
        assert process["report"]["memory_used"]["neuron_runtime_used_bytes"]["neuron_device"] == total
        shown = figures(report)
        assert shown.device_total == total == sum(shown.device.values())
    storages = {one.storage for one in live if isinstance(one, Tensor)}
    tensors = sum(one.allocation.size for one in ledger.entries.values() if one.use == "tensor")
    assert tensors == sum(one.allocation.size for one in storages if one.allocation is not None)
    assert {owner.model for owner in ledger.models} == {one.number for one in live if isinstance(one, Model)}
    for core in runtime.cores:
        used, limit = runtime.memory_stats(core.index)
        assert 0 <= used <= limit and used == sum(ledger.used(stack) for stack in set(core.stacks))


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    lnc = rng.choice((1, 2))
    session = Session({"NEURON_RT_NUM_CORES": "3", "NEURON_LOGICAL_NC_CONFIG": "2"} if lnc == 2 else
                      {"NEURON_RT_NUM_CORES": "3", "NEURON_LOGICAL_NC_CONFIG": "1",
                       "NEURON_SCRATCHPAD_PAGE_SIZE": str(512 * rng.randint(1, 7))})  # fmt: skip
    runtime, live, refused = session.runtime, list[Tensor | Model](), 0
    files = (
        [copying(), out_of_bounds(), printing()]
        if lnc == 1
        else [Path(__file__).parents[2].joinpath("fixtures", "neff", "idle_pair.neff").read_bytes()]
    )
    for step in range(80):
        core, kind = rng.randrange(3), rng.random()
        try:
            if live and kind < 0.35:
                one = live.pop(rng.randrange(len(live)))
                runtime.free(one) if isinstance(one, Tensor) else runtime.unload(one)
            elif kind < 0.55:
                live.append(runtime.load(rng.choice(files), core))
            elif kind < 0.65 and (tensors := [one for one in live if isinstance(one, Tensor) and one.size > 8]):
                live.append(runtime.slice(rng.choice(tensors), 1, 7))
            else:
                size = rng.choice((1, 4096, 100_001, 5 << 30, 11 << 30))
                live.append(runtime.allocate(Placement.DEVICE, core, size))
        except StatusError as error:
            assert error.status is S.NRT_RESOURCE
            refused += 1
        if step % 8 == 0:
            check(runtime, live)
    check(runtime, live)
    assert refused
    # What the log says of memory that is exhausted reads back, and prints to the byte again.
    texts = [found.text for line in session.lines if (found := parse_line(line)) is not None]
    begin = max(index for index, text in enumerate(texts) if "Displaying Current Memory Utilization" in text)
    printed = [text.strip() for text in texts[begin + 2 :] if text.strip()]
    again = [text.strip() for text in table_lines(read_memory_report(printed).table) if text.strip()]
    assert len(again) >= 4 and again == printed[: len(again)]
    # A copy that another process reads has the same numbers.
    state = state_of(runtime)
    (tmp_path / "1.json").write_text(json.dumps(dump_state(state)))
    copy = read_state(tmp_path / "1.json")
    assert (_sysfs(copy), _store(copy)) == (_sysfs(state), _store(state))
    for one in live:
        runtime.free(one) if isinstance(one, Tensor) else runtime.unload(one)
    ledger = runtime.memory
    assert isinstance(ledger, Ledger)
    assert all(one.allocation.name == "core" for one in ledger.entries.values())
    runtime.close()
    assert not ledger.entries and all(counter.total == 0 for counter in ledger.counters.values())
