"""The device as a whole: determinism, schedules, two cores, observers, warnings."""

from __future__ import annotations

import numpy as np
import pytest

from emulator.arch import ARCHS, arch_of
from emulator.device import Device
from emulator.errors import LoadError
from emulator.events import Event
from formats import isa
from formats.errors import UnsupportedError
from formats.neuron_core import PSUM_BASE
from tests.emulator.streams import add, after, device_with, events_of, fill, order_of, signal, tile


def program() -> dict[str, list[isa.Instruction | str]]:
    """Return a race-free program on four engines: fills, sums on two engines, a chain of waits."""
    pool = [fill(0x4000 + 0x100 * i, 16, float(i), **signal(3)) for i in range(8)]
    vector = [add(0x4000 + 0x100 * i, 0x4000, 0x8000 + 0x100 * i, 16, **after(3, i + 1), **signal(6)) for i in range(8)]
    scalar = [
        isa.Cast(
            src=isa.AccessPattern(0x8000 + 0x100 * i, (1,) * 4, (16, 1, 1, 1)),
            src_dtype=10,
            dst_dtype=6,
            dst=isa.AccessPattern(0xC000 + 0x100 * i, (1,) * 4, (16, 1, 1, 1)),
            **after(6, i + 1),
            **signal(4),
        )
        for i in range(8)
    ]
    return {"Pool": pool, "DVE": vector, "Activation": scalar, "SP": [f"NOP S[4]>={i + 1} cycle=0" for i in range(8)]}


def test_runs_repeat_exactly() -> None:
    runs = []
    for _ in range(2):
        device = device_with(program())
        events = [(e.time_ps, e.issued_ps, e.engine, e.pc, e.semaphores) for e in events_of(device)]
        runs.append((events, device.now_ps, device.state_hash()))
    assert runs[0] == runs[1]


def test_stepping_and_running_agree() -> None:
    stepped, ran = device_with(program()), device_with(program())
    events_of(stepped)
    assert ran.run() == "finished"
    assert (stepped.now_ps, stepped.steps, stepped.state_hash()) == (ran.now_ps, ran.steps, ran.state_hash())


def test_a_seed_changes_the_order_and_not_the_result() -> None:
    plain = device_with(program())
    orders = {tuple(order_of(plain))}
    for seed in range(8):
        device = device_with(program(), seed=seed)
        orders.add(tuple(order_of(device)))
        assert device.outcome == "finished"
        assert device.state_hash() == plain.state_hash()
    assert len(orders) > 4


def test_a_seed_repeats_its_schedule() -> None:
    assert order_of(device_with(program(), seed=3)) == order_of(device_with(program(), seed=3))


def test_some_seed_shows_a_race() -> None:
    """Two engines write one place and nothing orders them."""
    racy = {"DVE": [fill(0x4000, 16, 1.0)], "Pool": [fill(0x4000, 16, 2.0)]}
    results = set()
    for seed in range(12):
        device = device_with(racy, seed=seed)
        device.run()
        results.add(float(device.cores[0].sbuf[0, 0x4000:0x4004].view(np.float32)[0]))
    assert results == {1.0, 2.0}


def test_without_timing_every_step_takes_a_picosecond() -> None:
    device = device_with({"SP": ["NOP cycle=0"] * 5}, timing=False)
    assert [event.time_ps for event in events_of(device)] == [1, 2, 3, 4, 5]


def test_until_a_time_or_an_event() -> None:
    device = device_with(program())
    total = len(order_of(device_with(program())))
    assert device.run(until=lambda event: event.engine == "DVE" and event.pc == 3) == "until"
    done = device.steps
    assert 0 < done < total and device.outcome == "running"
    assert device.run(until=device.now_ps) == "until"
    assert device.run() == "finished" and device.steps == total and device.finished


def test_two_cores_meet_at_a_barrier() -> None:
    barrier = isa.CoreBarrier(semaphore=9, barrier_id=1)
    device = device_with(
        {"PE": ["NOP cycle=0", barrier, "NOP cycle=0"]},
        {
            "DVE": [fill(0, 4096)],
            "PE": ["NOP S[6]>=1 cycle=0", barrier],
            "SP": ["DRAIN"],
            "Pool": [fill(64, 512, **signal(6))],
        },
    )
    events = {(e.core, e.engine, e.pc): e for e in events_of(device)}
    assert device.outcome == "finished"
    assert events[0, "PE", 1].kind == "barrier"
    assert events[0, "PE", 1].issued_ps >= events[1, "PE", 0].time_ps
    assert [core.semaphores[9] for core in device.cores] == [0, 0]


def test_barriers_in_a_row() -> None:
    barriers = [isa.CoreBarrier(semaphore=9, barrier_id=i) for i in range(3)]
    device = device_with({"PE": [barriers[0], "NOP cycle=0", *barriers[1:]]}, {"SP": barriers})
    assert device.run() == "finished"
    assert [core.semaphores[9] for core in device.cores] == [0, 0]


def test_a_barrier_needs_a_second_core() -> None:
    device = device_with({"PE": [isa.CoreBarrier(semaphore=9)]})
    assert device.run() == "fault" and device.fault is not None and device.fault.kind == "operand"


def test_a_core_signals_the_other_through_its_register() -> None:
    device = device_with({}, {"PE": ["NOP S[1]>=1 cycle=0"]})
    raise_other = isa.Write(address0=device.addresses.semaphore(1, 1), data0=1)
    again = device_with({"PE": [raise_other]}, {"PE": ["NOP S[1]>=1 cycle=0"]})
    assert again.run() == "finished" and device.run() == "hang"


def test_cores_have_memories_of_their_own() -> None:
    device = device_with({"DVE": [fill(0, 4, 1.0)]}, {"DVE": [fill(0, 4, 2.0)]})
    device.run()
    assert [float(core.sbuf[0, :4].view(np.float32)[0]) for core in device.cores] == [1.0, 2.0]


def test_chips_have_the_cores_they_have() -> None:
    assert len(Device("trn3", cores=2).cores) == 2
    for target, cores in (("trn1", 2), ("trn2", 3), ("trn2", 0)):
        with pytest.raises(LoadError, match="as one logical core"):
            Device(target, cores=cores)
    with pytest.raises(UnsupportedError, match="inf1 is described, not emulated"):
        Device("inf1")


class Watcher:
    """Records what it is told, in order."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, int]] = []
        self.values: list[int] = []
        self.device: Device | None = None

    def on_issue(self, engine: object, loaded: object, now_ps: int) -> None:
        self.seen.append(("issue", engine.name, loaded.pc))  # type: ignore[attr-defined]

    def on_effect(self, event: Event) -> None:
        assert self.device is not None
        self.seen.append(("effect", event.engine, event.pc))
        (region,) = event.writes
        self.values.append(int(self.device.cores[0].sbuf[region.first, region.byte]))

    def on_event(self, event: Event) -> None:
        self.seen.append(("event", event.engine, event.pc))


def test_observers_see_issue_then_effect_then_event() -> None:
    device, watcher = device_with({"DVE": [fill(0x10, 4), fill(0x10, 4)]}), Watcher()
    watcher.device = device
    device.observers.append(watcher)
    device.run()
    assert [what for what, _, pc in watcher.seen if pc == 0] == ["issue", "effect", "event"]
    assert watcher.values == [0xFF, 0x00], "an effect hook sees memory as it was before"


def test_events_carry_regions() -> None:
    (event,) = events_of(device_with({"DVE": [add(0x100, 0x200, 0x300, 4, channels=32)]}))
    assert [region.text for region in event.reads] == ["nc0 SBUF[0:32, 0x100:0x110]", "nc0 SBUF[0:32, 0x200:0x210]"]
    assert [region.text for region in event.writes] == ["nc0 SBUF[0:32, 0x300:0x310]"]
    assert event.text.startswith("TENSOR_TENSOR") and event.kind == "instruction"


def test_reads_of_bytes_never_written_are_warnings() -> None:
    device = device_with({"DVE": [fill(0x100, 2), add(0x100, 0x200, 0x300, 4)]})
    assert device.run() == "finished"
    first, second = device.warnings
    assert (first.kind, first.engine, first.pc, first.operand) == ("unwritten", "DVE", 1, "src0")
    assert first.message == "src0: 1024 of 2048 bytes read were never written"
    assert (second.operand, second.message) == ("src1", "src1: 2048 of 2048 bytes read were never written")


def test_an_accumulating_matmul_reads_its_destination() -> None:
    load = isa.LoadWeights(src=tile(0, 128), dtype=6)
    matmul = isa.MatMul(src=tile(0, 8), dst=tile(PSUM_BASE, 8), dtype=6, acc_flags=2)
    device = device_with({"DVE": [fill(0, 128, **signal(6))], "PE": [load.replace(**after(6, 1)), matmul]})
    device.run()
    assert [warning.operand for warning in device.warnings] == ["dst"]
    whole = device_with(
        {"DVE": [fill(0, 128, **signal(6))], "PE": [load.replace(**after(6, 1)), matmul.replace(acc_flags=3)]}
    )
    whole.run()
    assert whole.warnings == () and whole.cores[0].psum_written.sum() == 128 * 32


def test_only_the_first_hundred_warnings_are_kept() -> None:
    device = device_with({"DVE": [add(0x1000 + 64 * i, 0, 0x8000, 4) for i in range(80)]})
    device.run()
    assert len(device.warnings) == 100


def test_the_state_hash_sees_every_part() -> None:
    hashes = set()
    for change in ("nothing", "sbuf", "psum", "written", "semaphore", "event", "register", "hbm"):
        device = device_with({})
        core = device.cores[0]
        if change == "sbuf":
            core.sbuf[127, -1] = 0
        elif change == "psum":
            core.psum[0, 0] = 0
        elif change == "written":
            core.sbuf_written[0, 0] = True
        elif change == "semaphore":
            core.semaphores.values[255] = 1
        elif change == "event":
            core.events.values[0] = 1
        elif change == "register":
            core.engines["SP"].registers[131] = 1
        elif change == "hbm":
            device.hbm.write(device.hbm.allocate(4, "x"), b"abcd")
        hashes.add(device.state_hash())
    assert len(hashes) == 8


@pytest.mark.parametrize("name", list(ARCHS))
def test_every_number_of_a_chip_has_a_source(name: str) -> None:
    arch = arch_of(name)
    assert len(arch.facts) > 15
    for fact in arch.facts.values():
        assert fact.provenance in ("documented", "observed", "inferred", "ours")
        assert ".md" in fact.cite and fact.value > 0
    assert arch.clock_ghz("SP") == arch.clock_ghz("Activation")
