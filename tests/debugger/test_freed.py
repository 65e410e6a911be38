"""What a session has looked at does not keep it: session and device go when nobody holds the session any more."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from neurontools.debugger import Session
from neurontools.debugger.commands.carry_out import carry_out
from neurontools.debugger.commands.info import INFO


@pytest.mark.parametrize("topic", [topic.name for topic in INFO.topics])
def test_sessions_are_freed(program_file: Path, topic: str) -> None:
    session = Session(program_file)
    session.step(3)
    line = topic + {"info values": " y", "info scope": " dve:2"}.get(topic, "")
    for _ in range(2):
        answer = carry_out(session, line)
        assert answer.error is None
    again = [weakref.ref(session.device)]
    session.restart()
    assert carry_out(session, line).error is None
    kept = [weakref.ref(session), weakref.ref(session.device), *again]
    del session, answer
    gc.collect()
    assert [each() for each in kept] == [None] * 3


def test_the_timeline_begins_again_with_the_program(program_file: Path) -> None:
    session = Session(program_file)
    session.record()
    session.step(5)
    before = session.inspector.timeline.spans(0, 1000, 100)
    session.restart()
    assert session.inspector.recorded and not session.inspector.timeline.spans(0, 1000, 100).completed.any()
    session.step(5)
    assert (session.inspector.timeline.spans(0, 1000, 100).completed == before.completed).all()
