"""`nl.device_print` is an event of the run: when, where, which values; in loops, before faults, going back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import neurontools.nki as nki
import neurontools.nki.isa as nisa
import neurontools.nki.language as nl
from emulator.runtime import run
from formats.debug_stream import is_printed, prefix_of, tensor_name
from neurontools.debugger import Session
from neurontools.nki.errors import KernelFaultError
from neurontools.nki.launch import build_neff
from neurontools.program.execution import Execution
from neurontools.running.results import program_run
from neurontools.running.rows import printed_row
from neurontools.running.view import result_lines

X = np.arange(6, dtype=np.float32).reshape(2, 3)
TARGETS = ("trn1", "trn2", "trn3")


def counting(x: Any) -> Any:
    out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
    tile = nl.load(x)
    nl.device_print("at first: 100%/é", tile)
    for _ in nl.dynamic_range(nisa.register_alloc(3)):
        nisa.tensor_scalar(tile, tile, nl.add, 1.0)
        nl.device_print("turn", tile)
    nl.store(out, tile)
    return out


@pytest.mark.parametrize("prefix", ["", "plain", "a b/c.d:%", "é"])
def test_names_carry_any_prefix(prefix: str) -> None:
    name = tensor_name(7, prefix)
    assert is_printed(name) and prefix_of(name) == prefix and "/" not in name and not is_printed("out")


@pytest.mark.parametrize("target", TARGETS)
def test_each_turn_of_a_loop_prints(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    neff = build_neff(counting, (X,), {}, target=target)
    result = run(neff, {"x": X})
    assert [one.prefix for one in result.prints] == ["at first: 100%/é", "turn", "turn", "turn"]
    for turn, one in enumerate(result.prints):
        assert (one.values == X + turn).all() and one.core == 0
    times = [one.time_ps for one in result.prints]
    assert times == sorted(times) and times[0] > 0 and times[-1] <= result.time_ps
    made = program_run(Execution("x", result))
    assert [row.name for row in made.outputs] == ["out"]
    row = made.prints[2]
    assert list(row.values) == (X + 2).ravel().tolist() and row.shape == (2, 3) and row.max == 7
    text = "\n".join(result_lines("x", made, result.prints))
    assert text.count("nc0: turn [[") == 3 and text.index("at first: 100%/é [[0. 1. 2.]") < text.index("done after")
    assert (nki.jit(counting, platform_target=target)(X) == X + 3).all()
    assert capsys.readouterr().out.count("turn [[") == 3


def test_infinities_are_text_and_long_tensors_are_cut() -> None:
    values = np.full((2, 100), np.inf, np.float32)

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
        nl.device_print("hbm", x)
        nl.store(out, nl.load(x))
        return out

    (one,) = run(build_neff(kernel, (values,), {}, target="trn2"), {"x": values}).prints
    row = printed_row(one)
    assert list(row.values) == ["inf"] * 64 and row.nonfinite == 200 and row.min is None


def test_both_cores_print_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
        me = nl.program_id(0)
        row = nl.load(x[me : me + 1])
        nl.device_print("row", row)
        nl.store(out[me : me + 1], row)
        return out

    result = run(build_neff(kernel, (X,), {}, lnc=2, target="trn2"), {"x": X})
    found = {one.core: one.values for one in result.prints}
    assert len(result.prints) == 2 and (found[0] == X[:1]).all() and (found[1] == X[1:]).all()


def test_what_came_before_a_fault_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
        tile, index = nl.load(x), nl.ndarray((2, 1), nl.int32)
        nl.device_print("before", tile)
        nisa.memset(index, 9)
        nisa.dma_copy(tile, x.ap([[3, 2], [1, 3]], vector_offset=index))
        nl.store(out, tile)
        return out

    with pytest.raises(KernelFaultError):
        nki.jit(kernel, platform_target="trn2")(X)
    assert capsys.readouterr().out.startswith("before [[0. 1. 2.]")


def test_a_session_knows_what_was_printed_where_it_stands() -> None:
    session = Session(build_neff(counting, (X,), {}, target="trn2"), {"x": X})
    assert session.prints() == ()
    session.continue_()
    every = session.prints()
    assert [one.prefix for one in every][1:] == ["turn"] * 3
    session.goto(f"#{every[1].number + 1}")
    assert [one.number for one in session.prints()] == [one.number for one in every[:2]]
    session.continue_()
    assert all((a.values == b.values).all() and a[:4] == b[:4] for a, b in zip(session.prints(), every, strict=True))
    session.restart()
    assert session.prints() == ()
    session.continue_()
    assert len(session.prints()) == 4
