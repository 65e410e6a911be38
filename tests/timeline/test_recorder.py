"""The recorder keeps what a device reports, and stays right when a session goes back and forward."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from emulator.device import Device
from emulator.events import Event
from emulator.timeline import EngineTrack, Owner, QueueTrack, Recorder, Track
from emulator.timeline.measure import data_decides, measure
from neurontools.debugger import Session
from tests.counting import counted
from tests.timeline.support import case, record


def rows(recorder: Recorder) -> dict[Any, Any]:
    """Return everything a recorder holds of completions, as values."""
    found: dict[Any, Any] = {}
    for owner, track in recorder.tracks.items():
        count = len(track)
        if count:
            found[owner] = [
                list(column[:count]) for column in (track.start, track.completed, track.number, track.pc, track.waited)
            ]
    changes = {
        key: (list(one.number), list(one.time), list(one.value)) for key, one in recorder.changes.items() if one.number
    }
    return {"tracks": found, "changes": changes}


class _Seen:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def on_event(self, event: Event) -> None:
        self.events.append(event)


def test_every_completion_has_a_row() -> None:
    neff, inputs = case("tiles")
    session = Session(neff, inputs)
    recorder, seen = Recorder(session.device), _Seen()
    session.device.observers += [recorder, seen]
    session.continue_()
    want = [
        (event.core, event.engine, event.pc, event.issued_ps, event.time_ps, event.number)
        for event in seen.events
        if event.kind in ("instruction", "barrier")
    ]
    got = [
        (track.owner.core, track.owner.name, *row)
        for track in recorder.tracks.values()
        if isinstance(track, EngineTrack)
        for row in zip(track.pc, track.start, track.completed, track.number, strict=True)
    ]
    assert sorted(got) == sorted(want) and len(want) > 30
    moved = [(event.engine, event.time_ps, event.instruction.nbytes) for event in seen.events if event.kind == "dma"]
    assert sorted(moved) == sorted(
        (track.owner.name, *row)
        for track in recorder.tracks.values()
        if isinstance(track, QueueTrack)
        for row in zip(track.completed, track.nbytes, strict=True)
    )
    assert recorder.end_ps == session.device.now_ps


def test_segments_are_those_that_overlap() -> None:
    recorder = record(*case("tiles"))
    for owner in recorder.owners:
        whole = recorder.segments(owner, 0, recorder.end_ps + 1)
        assert len(whole.start) == len(recorder.tracks[owner])
        low, high = recorder.end_ps // 3, recorder.end_ps // 2
        part = recorder.segments(owner, low, high)
        inside = (whole.end > low) & (whole.start < high)
        assert part.number.tolist() == whole.number[inside].tolist()
        assert np.all(part.end > low) and np.all(part.start < high)
    assert recorder.segments(Owner(0, "nobody"), 0, 1).start.size == 0


def test_it_follows_a_session_back_and_forward() -> None:
    neff, inputs = case("softmax")
    straight = record(neff, inputs)
    session = Session(neff, inputs)
    recorder = Recorder(session.device)
    session.device.observers.append(recorder)
    for there, back in ((12, 4), (20, 19), (22, 1)):
        while session.events < there:
            session.step()
        session.reverse_step(back)
        recorder.truncate(session.events)
        assert max(number for track in recorder.tracks.values() for number in track.number) == session.events - 1
    session.continue_()
    assert rows(recorder) == rows(straight)
    holds = {resource: [taken[i] for i in range(len(taken))] for resource, taken in recorder.holds.items()}
    assert holds == {resource: [taken[i] for i in range(len(taken))] for resource, taken in straight.holds.items()}


def test_it_notices_by_itself_that_the_device_went_back() -> None:
    neff, inputs = case("matmul")
    session = Session(neff, inputs)
    recorder = Recorder(session.device)
    session.device.observers.append(recorder)
    session.step(15)
    session.reverse_step(9)
    session.continue_()
    assert rows(recorder) == rows(record(neff, inputs))


def test_whoever_looks_on_the_way_sees_what_the_end_shows() -> None:
    for name in ("softmax", "pair"):
        neff, inputs = case(name)
        session, chance, straight = Session(neff, inputs), Random(0), record(neff, inputs)
        watched = Recorder(session.device)
        session.device.observers.append(watched)
        held: dict[Owner, Track] = {}
        for _ in range(40):
            session.step(chance.randint(1, 5))
            if chance.random() < 0.3:
                session.reverse_step(min(session.events, chance.randint(1, 6)))
                if chance.random() < 0.5:
                    watched.truncate(session.events)
            look = chance.choice(("tracks", "changes", "ports", "late", "holds", "a track"))
            if look == "a track":  # that was asked for before, and shows what came since
                seen = {owner: list(track.number) for owner, track in held.items()}
                assert seen == {owner: list(watched.tracks[owner].number) for owner in held}
            else:
                assert getattr(watched, look) is not None
                held = watched.tracks.copy()
        session.continue_()
        assert rows(watched) == rows(straight)
        assert (watched.ports, watched.late) == (straight.ports, straight.late)


def test_a_recorder_that_nobody_looks_at_does_little_but_note() -> None:
    neff, inputs = case("softmax")
    noted = 0

    def run(recording: bool) -> int:
        nonlocal noted
        device = Device(neff.target, len(neff.subgraphs))
        device.replays = False
        device.load(neff)
        device.set_inputs(inputs)

        def go() -> None:
            if recording:
                device.observers.append(Recorder(device))
            device.run()

        calls, _ = counted(go, builtins=True)
        noted = 2 * device.steps  # a beginning and an end of each
        device.release()
        return calls

    run(False)  # what is bound in the first run is kept
    assert run(True) - run(False) < 6 * noted


def test_a_schedule_without_data_is_the_same_schedule() -> None:
    for name in ("softmax", "tiles", "pair"):
        neff, inputs = case(name)
        assert not data_decides(neff)
        assert rows(measure(neff, inputs, data=False).recorder) == rows(record(neff, inputs))


def test_memory_in_use() -> None:
    neff, inputs = case("matmul")
    usage = {use.space: use for use in measure(neff, inputs, memory=True).usage}
    # One total of 128 x 256 fp32 in PSUM: 1 KiB in each of 128 partitions, half a bank of eight.
    assert usage["PSUM"].peak_bytes == 128 * 1024 and usage["PSUM"].peak_percent == 100 / 16
    assert usage["SBUF"].peak_bytes >= 128 * (128 + 256) * 4
    for use in usage.values():
        assert (use.blocks >= 0).all() and use.blocks[:, -1].sum() == 0
