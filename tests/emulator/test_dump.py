"""Dumps of an emulated device, and the debugger on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.device import Device
from emulator.dump import EventTail, write_core
from emulator.dump.memory import full_pieces
from emulator.machine_view import MachineView
from emulator.memory import new_hash
from formats.core import Core, open_core
from formats.errors import FormatError, NotFoundError
from formats.neff import open_neff
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from neurontools.debugger import Session, UsageError, open_core_session

EXAMPLES = ("deadlock", "out_of_bounds", "race")


def assembled(root: Path, name: str) -> bytes:
    path = root / "examples" / f"{name}.s"
    return to_neff(parse_program(path.read_text(), str(path)))


@pytest.fixture(params=EXAMPLES)
def stopped(request: pytest.FixtureRequest, root: Path) -> Session:
    """Return a session that ran an example to its end."""
    session = Session(assembled(root, request.param))
    session.continue_()
    return session


def look(session: Session) -> dict[str, Any]:
    """Return what the looking commands say."""
    found: dict[str, Any] = {
        "state": session.state()._replace(warnings=0, breakpoints=0, ahead=None),
        "queues": session.info_queues(),
        "semaphores": session.info_semaphores(everything=True),
        "registers": session.info_registers(everything=True),
        "memory": session.info_memory(),
        "tensors": session.info_tensors(),
        "warnings": session.warnings(),
        "dma": session.info_dma(),
    }
    for row in session.info_engines():
        found[f"engine {row.engine}"] = row._replace(focus=False)
        why = session.why(row.engine)._replace(met=())  # who satisfied a wait is in the journal of a live session
        # What stands behind the last word, the loader dropped: no dump has it.
        found[f"why {row.engine}"] = why._replace(text=None) if why.state == "done" else why
        found[f"words {row.engine}"] = session.disassemble(row.engine, 0, 100)
    return found


def test_a_full_dump_answers_as_the_live_session(stopped: Session, tmp_path: Path) -> None:
    stopped.save_core(tmp_path / "x.core")
    dead = open_core_session(tmp_path / "x.core")
    assert dead.post_mortem and not stopped.post_mortem and dead.notes == []
    dead.focus(*stopped.focus())
    live, told = look(stopped), look(dead)
    assert set(live) == set(told)
    for name, value in live.items():
        assert told[name] == value, name
    for row in stopped.info_tensors():
        mine, its = stopped.tensor(row.name), dead.tensor(row.name)
        assert mine.array.tobytes() == its.array.tobytes() and mine.unwritten == its.unwritten, row.name
    for address in ("0:0x4000", "127:0x5000", "psum:3:0", "64:0x37ff0"):
        mine_x, its_x = stopped.examine(address, 4), dead.examine(address, 4)
        assert mine_x.values.tobytes() == its_x.values.tobytes() and mine_x.written.tolist() == its_x.written.tolist()
    one, two = stopped.device, dead.device
    for left, right in zip(one.cores, two.cores, strict=True):
        assert np.array_equal(left.memory.sbuf, right.memory.sbuf)
        assert np.array_equal(left.memory.sbuf_written, right.memory.sbuf_written)
        assert np.array_equal(left.memory.psum, right.memory.psum)
        assert np.array_equal(left.memory.psum_written, right.memory.psum_written)
    assert two.fault == one.fault and two.outcome == one.outcome
    assert (two.hang is None) == (one.hang is None)
    if one.hang is not None and two.hang is not None:
        assert two.hang.text() == one.hang.text()


def test_last_write_and_source_lines(stopped: Session, tmp_path: Path) -> None:
    stopped.save_core(tmp_path / "x.core")
    dead = open_core_session(tmp_path / "x.core")
    for place in ("0x4000", "0x5000", "y"):
        mine, its = stopped.last_write(place), dead.last_write(place)
        assert its == mine
    dead.focus(*stopped.focus())
    assert [(r.number, r.text) for r in dead.list_source().rows] == [
        (r.number, r.text) for r in stopped.list_source().rows
    ]


def test_source_lines_that_only_the_dump_has(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "gone.s"
    path.write_text((root / "examples" / "out_of_bounds.s").read_text())
    session = Session(to_neff(parse_program(path.read_text(), str(path))))
    session.folders.append(tmp_path)
    session.continue_()
    session.save_core(tmp_path / "x.core", "light")
    path.unlink()
    rows = {row.number: row for row in open_core_session(tmp_path / "x.core").list_source().rows}
    assert "0x37ff0" in rows[15].text and rows[14].engines == ("dve",)


@pytest.mark.parametrize("command", ["step", "stepi", "next", "continue_", "reverse_step", "reverse_next",
                                     "reverse_continue", "restart", "when", "enable_checks"])  # fmt: skip
def test_nothing_moves(root: Path, tmp_path: Path, command: str) -> None:
    session = Session(assembled(root, "deadlock"))
    session.continue_()
    session.save_core(tmp_path / "x.core")
    dead = open_core_session(tmp_path / "x.core")
    before = digest(dead.device)
    with pytest.raises(UsageError, match="core dump does not move"):
        getattr(dead, command)()
    assert digest(dead.device) == before and dead.ahead() is None


def digest(machine: MachineView) -> str:
    """Return a hash of what a machine holds."""
    found = new_hash()
    for core in machine.cores:
        for space in ("SBUF", "PSUM"):
            found.update(core.memory.array(space))
            found.update(core.memory.written(space))
        engines = [(name, each.pc, each.completed, each.registers) for name, each in core.engines.items()]
        found.update(repr((core.semaphores.values, core.events.values, engines)).encode())
    return str(found.hexdigest())


@pytest.mark.parametrize("command", ["until", "goto", "break_at", "tbreak", "watch", "mark"])
def test_nothing_moves_with_an_argument(root: Path, tmp_path: Path, command: str) -> None:
    session = Session(assembled(root, "deadlock"))
    session.save_core(tmp_path / "x.core")
    with pytest.raises(UsageError, match="core dump does not move"):
        getattr(open_core_session(tmp_path / "x.core"), command)("DVE:1")
    with pytest.raises(UsageError, match="core dump does not move"):
        open_core_session(tmp_path / "x.core").save_core(tmp_path / "y.core")


def run(
    root: Path, name: str, path: Path, change: Callable[[Device], None] = lambda device: None, **options: Any
) -> Core:
    neff = open_neff(assembled(root, name))
    device = Device(neff.target, cores=len(neff.subgraphs))
    device.load(neff)
    tail = EventTail()
    device.observers.append(tail)
    device.run()
    change(device)
    write_core(device, path, journal=tail, **options)
    return open_core(path)


def test_a_fault_names_instruction_line_index_and_limit(root: Path, tmp_path: Path) -> None:
    core = run(root, "out_of_bounds", tmp_path / "x.core")
    fault = core.fault
    assert fault is not None and core.status.code == 1006 and core.error_location == "nrt_execute"
    assert (fault.engine, fault.pc, fault.opcode, fault.operand) == ("DVE", 2, "TENSOR_TENSOR", "src1")
    assert fault.source is not None and fault.source.line == 15
    assert fault.got is not None and "0x380ef" in fault.got
    assert fault.expected is not None and "0x37fff" in fault.expected
    assert core.journal_tail.entries[-1].kind == "fault" and core.level == "light"


def test_a_light_dump_keeps_what_is_named_and_says_what_it_lacks(root: Path, tmp_path: Path) -> None:
    core = run(root, "deadlock", tmp_path / "x.core")
    assert core.read("SBUF", 0, 0x4000, 256, partition=127).missing == 0  # DVE stands at a word that reads it
    assert core.read("SBUF", 0, 0x7000, 1).missing == 1
    session = open_core_session(core)
    assert session.examine("127:0x4000", 4, "f").values.tolist() == [1.0] * 4
    with pytest.raises(NotFoundError, match="32768 of 32768 bytes of x are not in this light dump"):
        session.tensor("x")
    with pytest.raises(NotFoundError, match="4 of 4 bytes of SBUF from 0x7000"):
        session.examine("0x7000", 1)
    assert session.tensor("y").unwritten == 128 * 64  # nothing wrote it: that much is known


def test_a_light_dump_is_bounded(root: Path, tmp_path: Path) -> None:
    def fill(device: Device) -> None:
        device.cores[0].memory.mark_written("SBUF", 0, 128, 0, 1 << 17)

    full = run(root, "deadlock", tmp_path / "full.core", fill, level="full")
    light = run(root, "deadlock", tmp_path / "light.core", fill, level="light")
    assert full.size > 16 << 20 > 2 << 20 > light.size
    assert next(w for w in full.windows if w.space == "SBUF").written == 128 << 17


def test_untouched_pages_are_absent(root: Path, tmp_path: Path) -> None:
    core = run(root, "race", tmp_path / "x.core", level="full")
    (sbuf,) = (window for window in core.windows if window.space == "SBUF")
    assert sbuf.sparse and 0 < sbuf.written <= sbuf.stored < 1 << 20 < sbuf.rows * sbuf.row_bytes
    assert core.size < 1 << 20


def test_scattered_writes_do_not_run_out_of_headers(root: Path, tmp_path: Path) -> None:
    def scatter(device: Device) -> None:
        memory = device.cores[0].memory
        memory.sbuf_written[:, ::1024] = True
        memory.sbuf[:, ::1024] = 7
        memory.psum_written[:, ::1024] = True

    core = run(root, "deadlock", tmp_path / "x.core", scatter, level="full")
    found = core.read("SBUF", 0, 2048, 2, partition=77)
    assert found.data[0] == 7 and list(found.written) == [1, 0]
    assert len(core.segments) < 60_000 and core.warnings == ()


def test_pending_transfers_and_rings(root: Path, tmp_path: Path) -> None:
    neff = open_neff(assembled(root, "deadlock"))
    device = Device(neff.target)
    device.load(neff)
    while not any(queue.pending for queue in device.queues):
        device.step()
    write_core(device, tmp_path / "x.core", level="full")
    core = open_core(tmp_path / "x.core")
    assert core.outcome == "running" and core.fault is None and core.hang is None
    (queue,) = (each for each in core.queues if each.pending)
    live = next(each for each in device.queues if each.pending)
    assert queue.transfers[0].text == live.pending[0].text and queue.transfers[0].nbytes == 32768
    ring = next(each for each in core.dma if each.queue == queue.name)
    mine = device.dma.engines[0].rings[ring.engine][ring.ring]
    assert (ring.head, ring.tail, ring.outstanding) == (mine.head, mine.tail, mine.outstanding)
    assert [tuple(d) for d in ring.descriptors] == [tuple(d) for d in mine.descriptors] and ring.outstanding == 9
    session = open_core_session(core)
    assert session.outcome == "running" and session.info_dma()[0].text == live.pending[0].text


def test_wrong_level_and_wrong_place(root: Path, tmp_path: Path) -> None:
    device = Device("trn2")
    with pytest.raises(ValueError, match="none of light, full"):
        write_core(device, tmp_path / "x.core", level="huge")
    with pytest.raises(FormatError, match="cannot be written"):
        write_core(device, tmp_path / "no" / "x.core")
    write_core(device, tmp_path / "bare.core")
    assert open_core_session(tmp_path / "bare.core").state().outcome == "running"


def test_a_dump_without_its_chip_opens_in_no_debugger(tmp_path: Path) -> None:
    from formats.core import CoreWriter
    from formats.core.records import DumpNote

    with CoreWriter(tmp_path / "x.core") as writer:
        writer.note(DumpNote())
    with pytest.raises(FormatError, match=r"dump\.target"):
        open_core_session(tmp_path / "x.core")


def test_written_again_it_is_the_same_file(root: Path, tmp_path: Path) -> None:
    from formats.core.records import EnvironmentNote

    sizes = [
        run(root, "race", tmp_path / name, level="full", created="2026-01-01", environment=EnvironmentNote()).size
        for name in ("a", "b")
    ]
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() and sizes[0] == sizes[1]


def test_many_fragmented_tensors_fit_an_elf_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of each are few enough; those of all together are not, of 65,534 program headers."""
    monkeypatch.setattr("emulator.dump.memory._HBM_RUNS", 30)
    device = Device("trn2")
    for number in range(4):
        address = device.hbm.allocate(20 * 8192, f"scattered{number}")
        for run_ in range(8 if number else 7):
            device.hbm.write(address + run_ * 8192, b"x")
    found = [(piece.address, piece.data.size) for piece in full_pieces(device) if piece.space == "HBM"]
    assert [size for _, size in found] == [4096] * 7 + [20 * 8192] * 3
