"""Tensors in lists, tuples and dictionaries of a kernel are printed as the kernel writes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from neurontools.debugger import Session, UsageError
from neurontools.debugger.commands.carry_out import carry_out
from neurontools.debugger.results import Computed
from neurontools.nki.launch import build_neff

P, W = 128, 8
X = np.arange(P * W, dtype=np.float32).reshape(P, W)


def tile() -> Any:
    return nl.ndarray((P, W), dtype=nl.float32, buffer=nl.sbuf)


def held(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tiles, more = [tile() for _ in range(2)], []
    for turn in range(3):
        more.append(tile())
        nisa.tensor_scalar(dst=more[turn], data=x_of(x), op0=nl.multiply, operand0=float(turn))
    named, pair = {"w": tiles[0], "grid": [tiles, more]}, (tiles[0], more[2])
    nisa.tensor_tensor(dst=tiles[0], data1=more[0], data2=more[1], op=nl.add)
    tiles[0], tiles[1] = tiles[1], tiles[0]
    nisa.tensor_tensor(dst=tiles[0], data1=pair[1], data2=named["w"], op=nl.add)  # stop
    nisa.dma_copy(dst=out, src=tiles[0])
    return out


def x_of(x: Any) -> Any:
    loaded = tile()
    nisa.dma_copy(dst=loaded, src=x)
    return loaded


@pytest.fixture
def session() -> Session:
    """Return a session behind the last sum."""
    neff: Any = build_neff(held, (X,), {}, target="trn2")
    session = Session(neff, {neff.inputs[0].name: X}, timing=False)
    line = held.__code__.co_firstlineno + 9
    session.break_at(f"{__file__}:{line}")
    assert session.continue_().reason == "breakpoint"
    return session


def array(session: Session, text: str) -> Any:
    found = session.evaluate(text)
    return found.value if isinstance(found, Computed) else found.array


def test_parts_are_the_tensors_that_they_were_there(session: Session) -> None:
    np.testing.assert_array_equal(array(session, "more[2]"), 2 * X)
    np.testing.assert_array_equal(array(session, "tiles[1][3:5, 0]"), X[3:5, 0])  # changed places before
    np.testing.assert_array_equal(array(session, "pair[-1]"), 2 * X)
    np.testing.assert_array_equal(array(session, 'named["w"]'), X)
    np.testing.assert_array_equal(array(session, 'named["grid"][1][2][0]'), 2 * X[0])
    assert array(session, "mean(more[1] - tiles[1])") == 0
    names = {row.name: row.value for row in session.info_locals()}
    assert names["tiles[0]"] != names["tiles[1]"] == names["named['w']"] == names["pair[0]"]


def test_watching_a_part_watches_its_tensor(session: Session) -> None:
    assert carry_out(session, "watch tiles[0]").error is None
    name = next(row.value for row in session.info_locals() if row.name == "tiles[0]")
    assert session.continue_().reason == "watchpoint"
    np.testing.assert_array_equal(session.tensor(str(name)).array, 3 * X)


def test_what_is_no_tensor_says_what_there_is(session: Session) -> None:
    with pytest.raises(UsageError, match=r"tiles holds several tensors; .* tiles\[0\] is \w+, tiles\[1\] is \w+"):
        session.evaluate("tiles")
    with pytest.raises(UsageError, match="more holds several tensors"):
        session.evaluate("more[7]")
    assert carry_out(session, 'print named["no"]').error is not None
