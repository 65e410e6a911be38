"""What a function's code tells of its variables, against what they are."""

import contextlib
import random
import sys
from types import FrameType
from typing import Any

import numpy as np
import pytest

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from neurontools import nki
from neurontools.nki import flow
from neurontools.nki.flow import Flow, flow_of
from neurontools.nki.launch import trace_kernel

_NOTHING = object()


class Looking:
    """What functions call: it holds what changed since the call before against what their code tells."""

    def __init__(self) -> None:
        self.before: dict[FrameType, tuple[int, dict[str, Any]]] = {}
        self.told: list[tuple[str, ...] | None] = []
        self.draws = random.Random(7)

    def __call__(self, *given: object) -> int:
        frame = sys._getframe(1)
        variables = dict(frame.f_locals)
        if frame in self.before:
            at, old = self.before[frame]
            names = flow_of(frame.f_code).changed(at, frame.f_lasti)
            self.told.append(names)
            changed = {one for one in {*old, *variables}
                       if old.get(one, _NOTHING) is not variables.get(one, _NOTHING)}  # fmt: skip
            assert names is None or changed <= {*names}, (frame.f_lineno, changed, names)
        if given != ("silent",):
            self.before[frame] = frame.f_lasti, variables
        if given == ("raise",):
            raise KeyError
        return self.draws.randrange(1 << 40)


def run(source: str, look: Looking, **given: object) -> Any:
    space: dict[str, Any] = {"look": look}
    exec(compile(source, "made.py", "exec"), space)
    return space["made"](**given)


def made(draws: random.Random, depth: int = 0) -> list[str]:
    """Return lines of random statements over variables a to h, in which calls stand everywhere."""
    lines: list[str] = []
    for _ in range(draws.randrange(2, 6)):
        one, other = draws.choices("abcdefgh", k=2)
        kind = draws.randrange(12 if depth < 3 else 5)
        inside = [f"    {line}" for line in made(draws, depth + 1)] if kind >= 5 else []
        lines += [
            [f"{one} = look()"],
            ["look()", "look()"],
            [f"look({one})", f"{one} = {other}"],
            ["look('silent')"],
            [f"{one}, {other} = [look() for {other} in (1, 2)], (a := look())"],
            ["for i in range(look() % 3):", *inside],
            [f"for {one} in (1, look()):", *inside, "else:", f"    {other} = look()"],
            ["if look() % 2:", *inside, "else:", f"    {one} = 0"],
            ["j = look() % 3", "while j:", "    j -= 1", "    if look() % 3 == 0:", "        continue", *inside],
            ["try:", *inside, "    look('raise')", "except KeyError as error:", f"    {one} = look()", "look()"],
            [f"del {one}", *[line[4:] for line in inside], f"{one} = look()"],
            ["for i in (1, 2):", "    if look() % 4 == 0:", "        break", *inside],
        ][kind]
    return lines


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("kind", ["plain", "written", "read"])
def test_what_changes_between_two_calls_is_told(monkeypatch: pytest.MonkeyPatch, seed: int, kind: str) -> None:
    monkeypatch.setattr(flow, "_FEW", 100)
    body = made(random.Random(seed))
    around = {
        "plain": [],
        "written": ["def other():", "    nonlocal b", "    b = look()", "look()", "other()", "look()"],
        "read": ["def other():", "    return b, look()", "other()"],
    }[kind]
    begin = [f"{one} = {number}" for number, one in enumerate("abcdefgh")] + ["look()", "look()"]
    lines = ["def made():", *(f"    {line}" for line in [*begin, *around, *body, *around[-3:]])]
    looking = Looking()
    with contextlib.suppress(UnboundLocalError, NameError):  # a variable that was deleted ends the program
        run("\n".join(lines), looking)
    assert looking.told


def test_straight_code_tells_what_it_stores_and_loops_all_that_they_do() -> None:
    looking = Looking()
    run(
        "def made(x):\n"
        "    y = look()\n    look()\n    look(x, y)\n    z = look()\n    look()\n"
        "    for i in (1, 2):\n        look()\n        w = look()\n"
        "    look()\n", looking, x=1,
    )  # fmt: skip
    assert looking.told == [("y",), (), (), ("z",), ("i", "w"), ("i", "w"), ("i", "w"), ("i", "w"), ("i", "w")]


def test_large_numbers_of_variables_and_long_jumps() -> None:
    names = [f"v{number}" for number in range(300)]
    body = "\n        ".join(f"{name} = look()" for name in names)
    looking = Looking()
    run(f"def made():\n    for i in (1, 2):\n        {body}\n", looking)
    assert len(looking.told) == 599 and set(looking.told) == {None}  # too many to look at one by one


def test_names_that_are_no_variables_of_a_frame_may_all_change() -> None:
    looking = Looking()
    exec("look()\nx = 1\nlook()\nclass A:\n    look()\n    y = 2\n    look()\n", {"look": looking})
    assert looking.told == [None, None]


def test_visits_are_those_of_looking_at_every_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    def helper(dst: Any, src: Any, scale: float) -> None:
        nisa.tensor_scalar(dst=dst, data=src, op0=nl.multiply, operand0=scale)
        if scale > 1:
            half = scale / 2
            nisa.tensor_scalar(dst=dst, data=dst, op0=nl.add, operand0=half)

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tiles, shape, pair = [], (2, 3), ()
        kept = {"a": 1}
        for i in range(4):
            tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x[128 * i : 128 * i + 128])
            if i % 2:
                tiles.append(tile)
                shape, pair = (i, i + 1), (tile, i)
                kept["b"] = tile  # type: ignore[assignment]
            else:
                helper(tile, tile, float(i))
                kept = {"a": i}
            helper(tile, tile, 0.5)
            del tile
            if i == 2:
                pair = shape  # noqa: F841  variables are what is looked at
        for tile in tiles:
            nisa.dma_copy(dst=out[0:128], src=tile)
            nisa.dma_copy(dst=out[128:256], src=tile)
        return out

    x = np.zeros((512, 64), np.float32)
    rows = [trace_kernel(nki.jit(kernel), (x,))[0].trace.visits for _ in range(2)]
    monkeypatch.setattr(Flow, "changed", lambda self, before, now: None)
    rows.append(trace_kernel(nki.jit(kernel), (x,))[0].trace.visits)
    assert all(one is not None for one in rows)
    told = [(one.sites, [(*row[:4], list(row[4].items())) for row in one.rows]) for one in rows if one is not None]
    assert told[0] == told[1] == told[2] and len(told[0][1]) == 21
