"""Lists of tensors that a kernel holds: what is asked at every operation sees each change that names would show."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import neurontools
from formats.neff.visits import read_visits
from neurontools.nki import isa as nisa
from neurontools.nki import language as nl
from neurontools.nki.regions import MemoryRegion
from neurontools.nki.tensor import NkiTensor
from neurontools.nki.visits import _DEEP, _held, _is_held, _parts


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
