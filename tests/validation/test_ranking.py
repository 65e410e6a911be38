"""Spearman's coefficient against other ways to compute it, and which versions are ranked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neurontools.validation.measure import Measurement
from neurontools.validation.ranking import library_rows, rankings, ranks, spearman
from neurontools.validation.report import markdown
from neurontools.validation.targets import targets

EXACT = [Measurement(target, target.value) for target in targets()]
TOGETHER = "documented versions and nki-library, together"
FEW = st.integers(0, 6).map(float)  # few values, so that many are equal


def by_counting(values: np.ndarray) -> np.ndarray:
    """Return ranks: how many are below, and half of how many are equal."""
    return (values[:, None] > values).sum(1) + ((values[:, None] == values).sum(1) + 1) / 2


@given(st.lists(st.tuples(FEW, FEW), min_size=2, max_size=30))
def test_equal_values_share_ranks_as_in_a_correlation_of_them(pairs: list[tuple[float, float]]) -> None:
    one, other = np.array(pairs).T
    assert ranks(list(one)) == list(by_counting(one))
    found = spearman(pairs)
    if len(set(one)) == 1 or len(set(other)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(np.corrcoef(by_counting(one), by_counting(other))[0, 1], abs=1e-12)


@given(st.permutations(range(12)))
def test_without_equal_values_it_is_the_sum_of_squared_differences(order: list[int]) -> None:
    squares = sum((place - value) ** 2 for place, value in enumerate(order))
    found = spearman([(10.0**place, float(value)) for place, value in enumerate(order)])
    assert found == pytest.approx(1 - 6 * squares / (12 * (12**2 - 1)))


def test_there_is_none_for_one_pair_or_nothing() -> None:
    assert spearman([]) is spearman([(1.0, 2.0)]) is None


def test_what_is_as_published_is_in_the_published_order() -> None:
    found = {each.versions: each for each in rankings(EXACT)}
    assert found[TOGETHER].number == 8 + 3 + len({row.kernel for row in library_rows()})
    for versions, each in found.items():
        if "nki-library" not in versions and "test_" not in versions:
            assert each.spearman == pytest.approx(1)


def test_an_order_that_is_turned_round_shows() -> None:
    turned = [m._replace(ours=1 / m.target.value) for m in EXACT]
    found = {each.versions: each.spearman for each in rankings(turned)}
    assert found["matrix products C-1 to C-8"] == found["Mamba D-1 to D-3"] == pytest.approx(-1)
    assert found[TOGETHER] < 0.95
    assert "| Mamba D-1 to D-3 | 3 | -1.000 |" in markdown(turned)


def test_units_are_brought_together() -> None:
    """The slowest version is in ms and the rows of nki-library in us; numbers alone would be in another order."""
    first = next(each for each in rankings(EXACT) if each.versions == TOGETHER)
    assert first.spearman > 0.98


def test_a_set_of_which_a_row_is_missing_is_left_out() -> None:
    partly = [m._replace(ours=None) if m.target.id == "C-2" else m for m in EXACT]
    names = {each.versions for each in rankings(partly)}
    assert "of these, trn2: C-5 to C-8" in names and "Mamba D-1 to D-3" in names
    assert not names & {TOGETHER, "matrix products C-1 to C-8", "of these, trn1: C-1 to C-4"}
