"""`reverse-continue` finds the stops of `continue`, whatever the breakpoints are, on several programs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neurontools.assembly.assemble_neff import to_neff
from neurontools.assembly.assembler import parse_program
from neurontools.debugger import Session
from neurontools.debugger.opening import open_session
from neurontools.debugger.view import POINTS

PROGRAMS = ("vector_add.py", "softmax.py", "attention.py", "race.s", "deadlock.s", "out_of_bounds.s")
CONDITIONS = (
    None, None, None, "time > 2us", "events % 3 == 1", "S[4] >= 1 or S[8] >= 16", "pc < 4 and core == 0",
    "not any(isnan({tensor}))", "E[0] == 0 and DVE.R[0] == 0", "max(abs({tensor}[0])) > 0.5",
)  # fmt: skip


@pytest.fixture(scope="module")
def programs(root: Path) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return file and inputs of every program; one input of each has a NaN and an infinity in it."""
    found = {}
    for name in PROGRAMS:
        path = root / "examples" / name
        if path.suffix == ".s":
            opened = Session(to_neff(parse_program(path.read_text(), str(path))), timing=False)
        else:
            opened = open_session(path)
        inputs = {key: array.copy() for key, array in opened.inputs.items()}
        for array in inputs.values():
            array.reshape(-1)[[7, 300]] = np.nan, np.inf
            break
        found[name] = opened.neff, inputs
    return found


def breakpoints(session: Session, chance: random.Random) -> None:
    """Set one to three breakpoints of any kind, most of them somewhere in the program."""
    tensors = [row.name for row in session.info_tensors() if row.core in (None, 0)]
    tensor = chance.choice(tensors)
    core, engine, words = chance.choice([each for each in session.program.streams() if each[2]])
    word = chance.choice(words)
    source = session.program.source(core, engine, word.pc)
    counters = [f"{'S' if chance.random() < 0.8 else 'E'}[{number}]" for number in (4, 5, 6, 8, 9, 10, 24, 25)]
    choices = [
        lambda test: session.break_at(f"{engine}:{word.pc}", condition=test),
        lambda test: session.break_at(engine, condition=test),
        lambda test: session.break_at(word.word.name, condition=test),
        lambda test: session.break_at(chance.choice(session.device.queues).name, condition=test),
        lambda test: session.break_at(f"{chance.choice(counters)} >= {chance.choice((1, 16))}", condition=test),
        lambda test: session.watch(tensor, chance.choice(("write", "read", "access")), condition=test),
        lambda test: session.watch(f"{tensor}[3:5]", chance.choice(("write", "read", "access")), condition=test),
        lambda test: session.watch("0:0x4000, 64", chance.choice(("write", "read", "access")), condition=test),
        lambda test: session.watch(chance.choice(counters), condition=test),
        lambda test: session.catch("dma", condition=test),
        lambda test: session.catch(f"dma {chance.choice(session.device.queues).name}", condition=test),
        lambda test: session.catch(chance.choice(("nan", "inf")), condition=test),
        lambda test: session.catch(f"{chance.choice(('nan', 'inf'))} {tensor}[0:2]", condition=test),
        lambda test: session.catch("nan 0:0x4000, 256", condition=test),
        lambda test: session.catch(chance.choice(("fault", "hang")), condition=test),
        lambda test: session.catch("finding", condition=test),
    ]  # fmt: skip
    if source is not None:
        choices.append(lambda test: session.break_at(f"{source.file}:{source.line}", condition=test))
    for make in chance.sample(choices, chance.randint(1, 3)):
        test = chance.choice(CONDITIONS)
        make(None if test is None else test.format(tensor=tensor))


def forwards(session: Session) -> list[int]:
    """Return the positions where `continue` stops, without the end."""
    found: list[int] = []
    while True:
        stop = session.continue_()
        if stop.reason not in POINTS:
            assert stop.reason in ("finished", "fault", "hang")
            return [place for place in dict.fromkeys(found) if place != session.events]
        assert stop.breakpoints
        found.append(session.events)


def backwards(session: Session) -> list[int]:
    """Return the positions where `reverse-continue` stops, the first one of the program first."""
    found: list[int] = []
    while True:
        moved = session.reverse_continue()
        if moved.reason == "start":
            return found[::-1]
        assert moved.reason in POINTS and moved.breakpoints
        found.append(session.events)
        if session.events == 0:
            return found[::-1]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", PROGRAMS)
def test_reverse_continue_finds_the_stops_of_continue(programs: dict[str, Any], name: str, seed: int) -> None:
    chance = random.Random(f"{name} {seed}")
    session = Session(*programs[name], seed=chance.choice((None, 1)))
    session.enable_checks("race", "sync")
    breakpoints(session, chance)
    shown = [(each.kind, each.text, str(each.condition)) for each in session.breakpoints]
    there = forwards(session)
    states = session.device.state_hash()
    assert backwards(session) == there, shown
    session.goto("start")
    assert forwards(session) == there, shown
    assert session.device.state_hash() == states
