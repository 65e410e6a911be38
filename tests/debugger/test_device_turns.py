"""Turns of loops that the device runs: what a stop shows, both ways, beside loops of the kernel, and in a dump."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.core import open_core
from formats.neff import Neff
from formats.neff.visits import Variable
from neurontools import nki
from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from neurontools.core.why import _turn
from neurontools.debugger import Session
from neurontools.debugger.commands.carry_out import carry_out
from neurontools.debugger.frames import backtrace
from neurontools.debugger.post_mortem import DumpedExecution
from neurontools.debugger.results import Ahead
from neurontools.nki import isa as nisa
from neurontools.nki import language as nl
from neurontools.nki.launch import build_neff

FILE = Path(__file__)
X = np.zeros((128, 8), np.float32)
OUTER, INNER = 3, 4

LOOP = """
.target trn2
.dialect extended
.engine act
outer:
    NOP S[7]++@complete cycle=0
inner:
    NOP S[5]++@complete cycle=0
    TENSOR_LOAD addr=uint32@0x2802701014[1,1][1,1] data=$R[2]
    COMPARE_BRANCH cmp_op=EQ dtype=int32 cmp0=$R[2] cmp1=1 label_id=%inner
    COMPARE_BRANCH cmp_op=EQ dtype=int32 cmp0=$R[2] cmp1=3 label_id=%inner
    TENSOR_LOAD addr=uint32@0x280270101c[1,1][1,1] data=$R[3]
    COMPARE_BRANCH cmp_op=LT dtype=int32 cmp0=$R[3] cmp1=3 label_id=%outer
    NOP cycle=0
"""


@nki.jit
def nested(x: Any, turns: Any) -> Any:
    out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
    tile = nl.ndarray((1, 1), nl.int32, nl.sbuf)
    nisa.dma_copy(tile, turns)
    stop = nisa.register_alloc()
    nisa.register_load(stop, tile)
    total = nl.zeros(x.shape, x.dtype, nl.sbuf)
    for k in nl.affine_range(2):
        for _ in nl.dynamic_range(0, stop):
            nisa.tensor_scalar(dst=total, data=total, op0=nl.add, operand0=float(k))  # OUTER
            for _ in nl.dynamic_range(0, INNER):
                nisa.tensor_scalar(dst=total, data=total, op0=nl.add, operand0=2.0)  # INNER
    nisa.dma_copy(out, total)
    return out


@nki.jit
def past_the_end(x: Any, turns: Any) -> Any:
    out = nl.ndarray((512, 8), x.dtype, nl.shared_hbm)
    tile = nl.ndarray((1, 1), nl.int32, nl.sbuf)
    nisa.dma_copy(tile, turns)
    stop = nisa.register_alloc()
    nisa.register_load(stop, tile)
    zeros = nl.zeros((128, 8), x.dtype, nl.sbuf)
    for i in nl.dynamic_range(380, stop):
        nisa.dma_copy(out.ap([[8, 128], [1, 8]], scalar_offset=i, indirect_dim=0), zeros)
    return out


def at(mark: str) -> int:
    """Return the line that ends with a comment."""
    lines = FILE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))


@pytest.fixture(scope="module")
def neff() -> Neff:
    return build_neff(nested, (X, np.array([[OUTER]], np.int32)), {})


def opened(neff: Neff, **options: Any) -> Session:
    made = Session(neff, {"x": X, "turns": np.array([[OUTER]], np.int32)}, timing=False, **options)
    made.folders.append(FILE.parent)
    return made


def ahead(session: Session) -> Ahead:
    found = session.ahead()
    assert found is not None
    return found


def shown(session: Session) -> tuple[object, ...]:
    return tuple(one.value for one in ahead(session).iteration)


def test_a_stop_in_a_device_loop_shows_its_turn_both_ways(neff: Neff) -> None:
    session = opened(neff)
    session.break_at(f"{FILE.name}:{at('INNER')}")
    seen = []
    while session.continue_().reason == "breakpoint":
        seen.append(shown(session))
        assert ahead(session).iteration[0] == Variable("k", seen[-1][0])
        location = (ahead(session).core, ahead(session).engine, ahead(session).pc)
        frames = backtrace(session.execution.program, location)
        assert tuple(one.value for one in frames[0].iteration) == seen[-1]
    assert seen == [(k, i, j) for k in range(2) for i in range(OUTER) for j in range(INNER)]
    back = []
    while session.reverse_continue().reason == "breakpoint":
        back.append(shown(session))
    assert back == seen[::-1]
    session.continue_()  # what was counted before it went back is counted once
    session.continue_()
    assert shown(session) == (0, 0, 1)


def test_what_has_completed_has_the_turn_it_had(neff: Neff) -> None:
    session = opened(neff)
    session.break_at(f"{FILE.name}:{at('INNER')}")
    session.continue_()
    session.continue_()
    here = shown(session)
    assert session.step().steps[-1].iteration == ahead_of(here)
    assert here == (0, 0, 1)


def ahead_of(values: tuple[object, ...]) -> tuple[Variable, ...]:
    """Return the turns as variables: k is the kernel's, the device's loops have no name."""
    return tuple(Variable(name, value) for name, value in zip(("k", "#", "#"), values, strict=True))  # type: ignore[arg-type]


def test_a_register_is_asked_for_as_words_show_it() -> None:
    session = Session(to_neff(parse_program(LOOP)), timing=False)
    session.break_at("Activation:2", condition="$R[2] == 3")
    stop = session.continue_()
    assert stop.reason == "breakpoint" and shown(session) == (1, 1)
    assert session.evaluate("$R[2] + 1").value == session.evaluate("Activation.R[2] + 1").value == 4  # type: ignore[union-attr]


def test_scope_without_a_place_is_here(neff: Neff) -> None:
    session = opened(neff)
    session.break_at(f"{FILE.name}:{at('INNER')}")
    session.continue_()
    rows = session.info_locals()
    assert carry_out(session, "info scope").value == rows and any(row.name == "k" for row in rows)


def test_without_a_journal_no_turn_is_claimed(neff: Neff) -> None:
    session = opened(neff, journal_bytes=0)
    session.break_at(f"{FILE.name}:{at('INNER')}")
    session.continue_()
    session.continue_()
    assert [one.name for one in ahead(session).iteration] == ["k"]


def test_words_without_a_kernel_count_too() -> None:
    """Two branches of a program from text lead back to its inner loop, which ends at the last of them."""
    session = Session(to_neff(parse_program(LOOP)), timing=False)
    session.break_at("Activation:1")
    seen = []
    while session.continue_().reason == "breakpoint":
        seen.append(tuple(int(str(value)) for value in shown(session)))
    # S[5] is 1 and 3 where the inner loop turns: that is in the first outer turn and, counted on, in the second.
    assert seen == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]


def test_a_dump_shows_turns_as_far_as_its_events_tell(neff: Neff, tmp_path: Path) -> None:
    session = opened(neff)
    session.break_at(f"{FILE.name}:{at('INNER')}", condition="S[6] >= 0")
    for _ in range(3):
        session.continue_()
    here = ahead(session)
    path = tmp_path / "stopped.ncore"
    session.save_core(path)
    dumped = DumpedExecution(open_core(path))
    found = dumped.program.iteration(here.core, here.engine, here.pc)
    assert found == here.iteration == ahead_of((0, 0, 2))
    again = DumpedExecution(open_core(path))
    again.tail.log[:] = again.tail.log[-3:]
    assert [one.name for one in again.program.iteration(here.core, here.engine, here.pc)] == ["k"]


def test_core_why_tells_the_turn_of_a_device_loop(tmp_path: Path) -> None:
    """From row 385 on, that of turn 5, there are fewer than 128 rows."""
    turns = np.array([[1000]], np.int32)
    session = Session(build_neff(past_the_end, (X, turns), {}), {"x": X, "turns": turns}, timing=False)
    assert session.continue_().reason == "fault"
    session.save_core(tmp_path / "fault.ncore")
    core = open_core(tmp_path / "fault.ncore")
    assert core.fault is not None
    assert _turn(core, core.fault) == "turn 5"
