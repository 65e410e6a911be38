"""Lists of tensors that a kernel holds: what is asked at every operation sees each change that names would show."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import neurontools
from formats.neff.visits import read_visits
from neurontools.nki import flow
from neurontools.nki import isa as nisa
from neurontools.nki import language as nl
from neurontools.nki.launch import trace_kernel
from neurontools.nki.regions import MemoryRegion
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.visits import _DEEP, _HOLDERS, VisitRecorder, _held, _is_held, _may_hold, _parts


def _tensor(number: int) -> NkiTensor:
    return NkiTensor((128, 4), "float32", None, MemoryRegion.sbuf, f"t{number}")


def _structure(draw: random.Random, deep: int) -> Any:
    count = draw.choice((0, 1, 3, 66, 70) if deep == _DEEP else (1, 2))
    parts = [_part(draw, deep) for _ in range(count)]
    return {draw.choice("abcdef") + str(at): part for at, part in enumerate(parts)} if draw.random() < 0.3 else parts


def _part(draw: random.Random, deep: int) -> Any:
    if deep > 1 and draw.random() < 0.2:
        return _structure(draw, deep - 1)
    return draw.choice((1, "text", _tensor(0), _tensor(1), _tensor(2), _tensor(3)))


def _change(draw: random.Random, value: Any) -> None:
    """Change one thing somewhere inside."""
    keys = list(value) if type(value) is dict else range(len(value))
    inner = [value[key] for key in keys if type(value[key]) in (list, dict)]
    if inner and draw.random() < 0.5:
        _change(draw, draw.choice(inner))
    elif len(keys) and draw.random() < 0.5:
        value[draw.choice(keys)] = _tensor(9)
    elif len(keys) and draw.random() < 0.5:
        del value[draw.choice(keys)]
    elif type(value) is dict:
        value["new"] = _tensor(9)
    else:
        value.insert(draw.randrange(len(value) + 1), _tensor(9))


@pytest.mark.parametrize("seed", range(8))
def test_what_is_held_is_told_from_what_has_changed(seed: int) -> None:
    draw = random.Random(seed)
    compared = 0
    for _ in range(150):
        value = _structure(draw, _DEEP)
        held = _held(value, _DEEP)
        if held is None:
            continue
        assert _is_held(value, held)
        before = [(name, id(one)) for name, one in _parts("v", value, _DEEP)]
        _change(draw, value)
        after = [(name, id(one)) for name, one in _parts("v", value, _DEEP)]
        compared += before != after
        assert before == after or not _is_held(value, held)
    assert compared > 20


def test_a_tile_that_replaces_another_in_a_list_is_named_from_there_on() -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        pair = [nl.ndarray((128, 4), dtype=x.dtype, buffer=nl.sbuf, name=name) for name in ("one", "two")]
        inside = {"last": [pair[0]]}
        for tile in pair:
            nisa.memset(tile, 1.0)
        inside["last"][0] = pair[1]
        nisa.dma_copy(dst=out, src=pair[1])
        return out

    neff = neurontools.build(kernel, np.zeros((128, 4), np.float32), target="trn2")
    visits = read_visits(neff.subgraphs[0])
    assert visits is not None
    named = [visits.variables(number).get("inside['last'][0]") for number in range(len(visits))]
    assert [one for one in named if one is not None] == ["one", "one", "two"]


_VALUES = (
    "1", "2", "2", "True", "0.5", "'text'", "None", "(3, 4)", "(t0, t1)", "t0", "t1", "t0", "t1", "t0[0:64]", "[]",
    "[t0]", "[1, 2]", "{'k': t1}", "{'k': 1}", "((t0,), 1)",
)  # fmt: skip


def _body(draw: random.Random, bound: set[str], depth: int) -> list[str]:
    """Return statements that store, change and delete variables, with operations between them."""
    lines: list[str] = []
    for _ in range(draw.randrange(4, 14)):
        name = draw.choice("abcd")
        what = draw.random()
        if what < 0.35:
            lines.append(f"{name} = {draw.choice(_VALUES)}")
            bound.add(name)
        elif what < 0.45 and name in bound and depth == 0:
            lines.append(f"del {name}")
            bound.discard(name)
        elif what < 0.55 and name in bound:
            lines.append(f"if type({name}) is list: {name}.append(draw.choice((t0, t1, 5)))")
        elif what < 0.65 and depth < 2:
            inside = _body(draw, bound, depth + 1)
            lines += [f"for {'ij'[depth]} in range({draw.randrange(1, 4)}):", *(f"    {line}" for line in inside)]
            bound.add("ij"[depth])
        elif what < 0.7 and depth == 0:
            lines.append(f"inner({draw.choice(('t0', 't1', '7'))}, {draw.choice(_VALUES)})")
        else:
            lines.append(f"nisa.memset({draw.choice(('t0', 't1'))}, 0.0)")
    return lines


@pytest.mark.parametrize("seed", range(90))
def test_rows_have_what_all_variables_looked_at_anew_would_give(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    monkeypatch.setattr(flow, "_FEW", seed % 3 * 50)  # with few, all are compared at once where some are stored
    called = ("z = x", "nisa.memset(t0, 1.0)", "w = y", "nisa.memset(t1, 1.0)", "del w", "nisa.memset(t0, 1.0)")
    inner = ["def inner(x, y):", *(f"    {line}" for line in called)]
    made = [f"t{number} = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.sbuf)" for number in range(2)]
    body = [*made, *inner, *_body(draw, set(), 0), *("nisa.memset(t0, 0.0)", "new = 11") * 2,
            "nisa.memset(t1, 0.0)"]  # fmt: skip
    text = "\n".join(["def kernel(given):", *(f"    {line}" for line in body)])
    scope = {"nl": nl, "nisa": nisa, "draw": random.Random(seed)}
    exec(compile(text, f"<made {seed}>", "exec"), scope)
    compared = 0
    place = VisitRecorder.place

    def compare(self: VisitRecorder, frame: Any, callee: Any) -> Any:
        found = place(self, frame, callee)
        call = self._calls[-1]
        _, _, base, _, own = self.rows[found.visit]
        assert (call.frame, call.visit) == (frame, found.visit)
        assert tuple(found) == (frame.f_code.co_filename, frame.f_lineno)
        variables = frame.f_locals
        now = call.kept(variables)
        first = self.rows[base][4] if base >= 0 else {}
        expected = {name: value for name, value in now.items() if name not in first or first[name] != value}
        assert [*own.items()] == [*expected.items()], text
        assert [*map(type, own.values())] == [*map(type, expected.values())]
        assert call.lists == {
            name for name, one in variables.items()
            if type(one) in _HOLDERS and (type(one) is not tuple or _may_hold(one) or name in call.listed)
        }  # fmt: skip
        nonlocal compared
        compared += base >= 0 and bool(own)
        return found

    monkeypatch.setattr(VisitRecorder, "place", compare)
    trace_kernel(scope["kernel"], (np.zeros((128, 4), np.float32),), target="trn2")
    assert compared
