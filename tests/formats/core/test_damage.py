"""Damaged dumps: a value, a warning or a FormatError, whatever the bytes are."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from formats.core import NOTES, Core, open_core
from formats.errors import FormatError, NeuronError, NotFoundError
from neurontools.core import diff, disasm, dma, engines, info, ls, memory, queues, semaphores, verify, why
from tests.formats.core import maker

MUTATIONS = 10_000


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return maker.write(tmp_path_factory.mktemp("core") / "small.core").read_bytes()


def look(core: Core) -> tuple[Any, ...]:
    """Read all that a dump holds, without the views."""
    notes = tuple(core.note(kind.record) for kind in NOTES.values())
    memory = tuple((bytes(core.segments.data(s)), core.segments.plane(s)) for s in core.segments)
    for window in core.windows[:4]:
        with suppress(NotFoundError):
            core.read(window.space, window.core, window.base if window.space == "HBM" else 0, 64, engine=window.engine)
    return notes, memory, core.warnings


def view(core: Core) -> None:
    """Print everything."""
    for lines in (
        info.view("x", info.look(core)),
        ls.view("x", ls.parts(core)),
        semaphores.view(semaphores.counters(core, True).counters),
        queues.view(core.queues),
        dma.view(core.dma),
        memory.view(memory.memories(core)),
        verify.view("x", verify.verified(core, None)),
        why.view("x", why.explained(core)),
    ):
        "\n".join(lines).encode()
    for each in (
        lambda: engines.view(engines.states(core, None, None).engines, True),
        lambda: disasm.view(disasm.words(core, None, None, None, 10).engines),
    ):
        with suppress(NeuronError):
            "\n".join(each()).encode()


def test_every_truncation(data: bytes) -> None:
    whole, opened = look(open_core(data)), 0
    for size in range(len(data)):
        try:
            core = open_core(data[:size])
        except FormatError:
            assert size < 64
            continue
        opened += 1
        assert look(core) != whole and core.warnings, f"nothing is said about {size} of {len(data)} bytes"
    assert opened == len(data) - 64


def test_mutations(data: bytes) -> None:
    source = random.Random(5)
    damaged = refused = 0
    for number in range(MUTATIONS):
        changed = bytearray(data)
        for _ in range(source.choice((1, 1, 2, 8))):
            at = source.randrange(source.choice((232, len(data))))
            changed[at] = source.choice((source.randrange(256), changed[at] ^ 1 << source.randrange(8), 0, 255))
        if not source.randrange(8):
            first = source.randrange(len(changed))
            del changed[first : first + source.choice((1, 4, 64))]
        try:
            core = open_core(bytes(changed))
            look(core)
            if number % 5 == 0:
                view(core)
            damaged += bool(core.warnings)
        except FormatError:
            refused += 1
    assert damaged > MUTATIONS // 20 and refused > MUTATIONS // 20


def test_compare_survives_damage(data: bytes) -> None:
    source, whole = random.Random(6), open_core(data)
    for _ in range(300):
        changed = bytearray(data)
        changed[source.randrange(200, len(data))] ^= 1 << source.randrange(8)
        with suppress(FormatError):
            diff.view(diff.compare(whole, open_core(bytes(changed))))


def test_the_debugger_survives_damage(data: bytes) -> None:
    from neurontools.debugger import open_core_session

    source, opened = random.Random(7), 0
    for _ in range(60):
        changed = bytearray(data)
        for _ in range(3):
            at = source.randrange(232, len(data))
            changed[at] = source.choice((source.randrange(256), ord("9"), ord("0"), ord("-")))
        try:
            session = open_core_session(open_core(bytes(changed)))
        except NeuronError:
            continue
        opened += 1
        for ask in (session.state, session.info_engines, session.info_queues, session.info_semaphores, session.why,
                    session.info_memory, session.info_tensors, session.disassemble, session.list_source,
                    session.info_dma, lambda s=session: s.tensor("x"), lambda s=session: s.tensor("t"),
                    lambda s=session: s.examine("0:64", 4), lambda s=session: s.last_write("0:64")):  # fmt: skip
            with suppress(NeuronError):
                ask()
        session.device.release()
    assert opened > 5


def test_a_note_of_another_shape_is_told(tmp_path: Path, data: bytes) -> None:
    core = open_core(data.replace(b'"name":"net"', b'"name": 4444'))
    assert core.neff.name == "" and core.warnings == ("note 'neff': name: expected text, found int",)
    core = open_core(data.replace(b'{"code":5', b'["code":5'))
    assert core.status.code == 0 and "note 'status' is no JSON" in core.warnings[0]


def test_what_is_claimed_twice_is_told(tmp_path: Path) -> None:
    from formats.core import CoreWriter
    from formats.core import records as r

    with CoreWriter(tmp_path / "x.core") as writer:
        writer.note(r.DumpNote(target="trn2", generation="gen3"))
        writer.note(r.StatusNote(5, "NRT_TIMEOUT"))
        writer.note(r.StatusNote(0, "NRT_SUCCESS"))
        writer.note(r.MapNote((r.Window("HBM", 0, "", 0, 1 << 20, 1, 1 << 20),)))
        writer.segment(0, b"a" * 1000)
        writer.segment(16, b"b" * 16)
    core = open_core(str(tmp_path / "x.core"))
    assert core.status.code == 5 and "a second note 'status' is left out" in core.warnings
    # A byte behind the inner segment was not found at all.
    found = core.read("HBM", 0, 500, 8)
    assert (found.data, found.missing) == (b"a" * 8, 0)
    assert "1 of 2 segments have addresses that others have: left out" in core.warnings
