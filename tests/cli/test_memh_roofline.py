"""`neurontools memh roofline`: ridge, points on both sides, what makes no sense."""

from __future__ import annotations

import pytest

from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def test_the_ridge_of_trn2(cli: Cli) -> None:
    found = checked_json(cli("memh", "roofline", "trn2", "--cores", 8, "--json"), "memh roofline")
    assert found["peak_tflops"] == pytest.approx(667) and found["hbm_gb_per_s"] == pytest.approx(2900)
    assert found["ridge"] == pytest.approx(230) and found["point"] is None


@pytest.mark.parametrize(
    ("flops", "size", "bound", "best"), [(1e9, 1e9, "memory", 1e9 / 362.5e9), (1e12, 1e6, "compute", 1e12 / 83.375e12)]
)
def test_points(cli: Cli, flops: float, size: float, bound: str, best: float) -> None:
    words = ("memh", "roofline", "--flops", flops, "--bytes", size)
    point = checked_json(cli(*words, "--json"), "memh roofline")["point"]
    assert point["bound"] == bound and point["best_us"] == pytest.approx(best * 1e6)
    assert f"bound by {bound}" in cli(*words).out


@pytest.mark.parametrize("words", [("--flops", 1), ("--dtype", "int8"), ("trn1", "--cores", 3)])
def test_what_makes_no_sense(cli: Cli, words: tuple[object, ...]) -> None:
    assert cli("memh", "roofline", *words).status == 2
