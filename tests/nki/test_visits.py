"""Lists of tensors that a kernel holds: what is asked at every operation sees each change that names would show."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import neurontools
from formats.neff.visits import read_visits
from neurontools.nki import flow, kept_variables, visits
from neurontools.nki import isa as nisa
from neurontools.nki import language as nl
from neurontools.nki.kept_variables import _DEEP, HOLDERS, KeptVariables, _held, _is_held, _may_hold, _parts
from neurontools.nki.launch import trace_kernel
from neurontools.nki.regions import MemoryRegion
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.visits import VisitRecorder


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


def _kernel(seed: int) -> tuple[Callable[..., Any], str]:
    """Return a kernel of random statements, with its text; it does the same every time it is called."""
    draw = random.Random(seed)
    called = ("z = x", "nisa.memset(t0, 1.0)", "w = y", "nisa.memset(t1, 1.0)", "del w", "nisa.memset(t0, 1.0)")
    inner = ["def inner(x, y):", *(f"    {line}" for line in called)]
    made = [f"t{number} = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.sbuf)" for number in range(2)]
    body = [f"draw = Random({seed})", *made, *inner, *_body(draw, set(), 0),
            *("nisa.memset(t0, 0.0)", "new = 11") * 2, "nisa.memset(t1, 0.0)"]  # fmt: skip
    text = "\n".join(["def kernel(given):", *(f"    {line}" for line in body)])
    scope: dict[str, Any] = {"nl": nl, "nisa": nisa, "Random": random.Random}
    exec(compile(text, f"<made {seed}>", "exec"), scope)
    return scope["kernel"], text


@pytest.mark.parametrize("seed", range(90))
def test_rows_have_what_all_variables_looked_at_anew_would_give(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "_FEW", seed % 3 * 50)  # with few, all are compared at once where some are stored
    kernel, text = _kernel(seed)
    compared = 0
    place = VisitRecorder.place

    def compare(self: VisitRecorder, inner: Any) -> Any:
        found = place(self, inner)
        frame = inner
        while frame.f_code.co_filename != f"<made {seed}>":
            frame = frame.f_back
        call = self._calls[-1]
        _, _, base, _, own = self.rows[found.visit]
        kept = self._kept[-1]
        assert (call.frame, call.visit) == (frame, found.visit)
        assert tuple(found) == (frame.f_code.co_filename, frame.f_lineno)
        variables = frame.f_locals
        now = kept.kept(variables)
        first = self.rows[base][4] if base >= 0 else {}
        expected = {name: value for name, value in now.items() if name not in first or first[name] != value}
        assert [*own.items()] == [*expected.items()], text
        assert [*map(type, own.values())] == [*map(type, expected.values())]
        assert kept.lists == {
            name for name, one in variables.items()
            if type(one) in HOLDERS and (type(one) is not tuple or _may_hold(one) or name in kept.listed)
        }  # fmt: skip
        nonlocal compared
        compared += base >= 0 and bool(own)
        return found

    monkeypatch.setattr(VisitRecorder, "place", compare)
    trace_kernel(kernel, (np.zeros((128, 4), np.float32),), target="trn2")
    assert compared


@pytest.mark.parametrize("seed", range(60))
def test_rows_that_are_worked_out_later_are_those_of_every_visit(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_variables, "_HELD", (64, 2)[seed % 2])  # of longer lists no copies are made
    kernel, text = _kernel(seed)
    rows = []
    for most in (1, 3, visits._PENDING):  # at 1 lists are read themselves, at every visit
        monkeypatch.setattr(visits, "_PENDING", most)
        visited = trace_kernel(kernel, (np.zeros((128, 4), np.float32),), target="trn2")[0].trace.visits
        assert visited is not None
        rows.append([(*row[:4], [(name, type(one), one) for name, one in row[4].items()]) for row in visited.rows])
    assert len(rows[0]) >= 3
    assert rows[0] == rows[1] == rows[2], text


def test_variables_are_looked_at_for_who_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    kept = KeptVariables.kept
    monkeypatch.setattr(KeptVariables, "kept", lambda self, given: looked.append(self.number) or kept(self, given))
    held = []

    class Own:
        pass

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        own = Own()
        held.append(weakref.ref(own))
        tiles: list[Any] = []
        for turn in range(3):
            tiles.append(nl.ndarray((128, 4), dtype=x.dtype, buffer=nl.sbuf))
            nisa.dma_copy(dst=tiles[turn], src=x)
        nisa.dma_copy(dst=out, src=tiles[0])
        tiles.clear()
        return out

    neff = neurontools.build(kernel, np.zeros((128, 4), np.float32), target="trn2")
    assert not looked
    read = read_visits(neff.subgraphs[0])
    assert read is not None and looked
    named = [[name for name in read.variables(number) if name.startswith("tiles")] for number in range(len(read))]
    assert named == [["tiles[0]"], ["tiles[0]", "tiles[1]"], ["tiles[0]", "tiles[1]", "tiles[2]"],
                     ["tiles[0]", "tiles[1]", "tiles[2]"]]  # fmt: skip
    gc.collect()
    assert held[0]() is None, "what the kernel held is let go of once its variables were read"
