"""How suites are shared out, sampled, judged and summed up; with a suite of their own."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from formats.errors import FormatError, UnsupportedError
from formats.hlo.text import parse_module
from neurontools.selftest import work
from neurontools.selftest.agreement import compared, flattened
from neurontools.selftest.backends import backend_of
from neurontools.selftest.judged import judged
from neurontools.selftest.rows import CaseRow, summed_up

_TOLERANCES = {"float32": 1e-3}


def _f32(*values: float) -> Any:
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    ("got", "expected", "outcome"),
    [
        ([_f32(1, 2)], [_f32(1, 2.001)], "agree"),
        ([_f32(1, 2)], [_f32(1, 2.01)], "near"),
        ([_f32(1, 2)], [_f32(1, 2.5)], "differ"),
        ([_f32(np.nan, np.inf)], [_f32(np.nan, np.inf)], "agree"),
        ([_f32(np.nan)], [_f32(1)], "differ"),
        ([_f32(np.inf)], [_f32(1)], "differ"),
        ([np.array([1, 2])], [np.array([1, 2])], "agree"),
        ([np.array([1, 3])], [np.array([1, 2])], "differ"),
        ([_f32(1)], [_f32(1, 2)], "differ"),
        ([_f32(1)], [np.array([1.0])], "differ"),
        ([_f32(1)], [], "differ"),
        ([_f32(5)], [None], "agree"),
        ([_f32()], [_f32()], "agree"),
    ],
)
def test_results_are_compared(got: Any, expected: Any, outcome: str) -> None:
    assert compared(got, expected, _TOLERANCES)[0] == outcome


def test_parts_of_a_tuple() -> None:
    assert flattened((1, (2, [3]))) == [1, 2, 3]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(UnsupportedError("x"), "unsupported"), (FormatError("x"), "refused"), (ZeroDivisionError("x"), "error")],
)
def test_errors_are_outcomes(error: Exception, outcome: str) -> None:
    def fails() -> Any:
        raise error

    assert judged(fails, [], {})[0] == outcome


def test_a_sample_is_spread_and_the_same() -> None:
    assert work.sampled(5, None) == work.sampled(5, 9) == [0, 1, 2, 3, 4]
    chosen = work.sampled(1000, 50)
    assert chosen == work.sampled(1000, 50) and len(chosen) == 50
    assert min(chosen) < 100 and max(chosen) > 900
    assert len(work.sampled(7_919, 100)) == 100


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> str:
    module = ModuleType("a_suite")
    module.run = lambda number, backend: CaseRow(  # type: ignore[attr-defined]
        f"case{number}", "even" if number % 2 == 0 else "odd", "agree" if number % 3 else "differ", backend
    )
    monkeypatch.setitem(sys.modules, "a_suite", module)
    return "a_suite"


def test_pieces_of_work(suite: str) -> None:
    found = [row for piece in work.run_suite(suite, "x", range(60)) for row in piece]
    assert [row.name for row in found] == [f"case{number}" for number in range(60)]
    result = summed_up("s", "1", "x", [*found, CaseRow("z", "g", "left-out", "no")])
    assert (result.cases, result.left_out, result.agree) == (60, 1, 40) and result.reasons == {"no": 1}
    assert [group.group for group in result.groups] == ["even", "odd"] and len(result.others) == 20


def test_a_dask_cluster(suite: str) -> None:
    pytest.importorskip("distributed", reason="dask is not installed")
    found = [row for piece in work.run_suite(suite, "x", range(30), dask="local") for row in piece]
    assert len(found) == 30


def test_the_interpreter_is_a_backend() -> None:
    module = parse_module("HloModule m\nENTRY e {\n  a = f32[2] parameter(0)\n  ROOT r = f32[2] add(a, a)\n}")
    assert backend_of("interpreter")(module, [_f32(1, 2)]).tolist() == [2, 4]
