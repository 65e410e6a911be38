"""One repository left out: figures come back that captures were made with, the rest take the nearest kind's."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.arch import arch_of
from emulator.cost import cost_of, figure
from emulator.cost.figures import figures_as
from formats import isa
from formats.dtypes import Dtype
from formats.isa import AccessPattern
from neurontools.validation.captures import beside, captures
from neurontools.validation.left_out import _Class, fitted, left_out

CHIP = arch_of("trn2")


def copy(count: int, step: int = 1, dtype: Dtype = Dtype.FLOAT32, to: int = 1) -> isa.Copy:
    return isa.Copy(
        src=AccessPattern(0x4000, (step, 1, 1, 1), (count, 1, 1, 1)),
        dst=AccessPattern(0x8000, (to, 1, 1, 1), (count, 1, 1, 1)),
        src_dtype=dtype,
        dst_dtype=dtype,
    )


def classes(repository: str, engine: str, words: list[isa.Instruction], **planted: float) -> list[_Class]:
    """Return what captures would have of words if figures were as planted."""
    with figures_as(planted, "trn2"):
        captured = [cost_of(word, engine, CHIP).latency_ps / 1000 for word in words]
    emulated = [cost_of(word, engine, CHIP).latency_ps / 1000 for word in words]
    rows = zip(words, captured, emulated, strict=True)
    return [_Class(repository, engine, word, real, mine) for word, real, mine in rows]


def test_figures_have_other_values_only_inside_the_block() -> None:
    before = figure("vector_latency", "trn2")
    with figures_as({"vector_latency": 200.0}, "trn2"):
        with figures_as({"vector_gap": 1.0}, "trn2"):
            assert figure("vector_latency", "trn2") == 200.0 and figure("vector_gap", "trn2") == 1.0
        assert figure("vector_gap", "trn2") != 1.0 and figure("vector_latency", "trn1") != 200.0
        with pytest.raises(KeyError), figures_as({"nop": 5.0}, "trn2"):
            raise KeyError
        assert figure("nop", "trn2") != 5.0
    assert figure("vector_latency", "trn2") == before


def test_planted_figures_are_found_and_others_stay() -> None:
    bf16 = Dtype.BFLOAT16
    words: list[isa.Instruction] = [copy(128, dtype=bf16), copy(256), copy(512), copy(64, 18), copy(128, 9)]
    planted = {"vector_latency": 180.0, "vector_strided_read": 2.2}
    known = [*classes("a", "DVE", words, **planted), *classes("b", "DVE", words[:3], **planted)]
    values, instead = fitted(known, known, CHIP)
    assert values["vector_latency"] == pytest.approx(180, abs=2)
    assert values["vector_strided_read"] == pytest.approx(2.2, abs=0.1)
    assert "scalar_copy_latency" not in values and not instead


def test_a_figure_that_no_other_repository_has_is_the_nearest_kind_s() -> None:
    others = classes("a", "DVE", [copy(128)])
    own = [one._replace(takes_one_time=False) for one in classes("b", "DVE", [copy(128, 18)])]
    values, instead = fitted(others, own, CHIP)
    assert instead == {"vector_strided_read": 1.0}  # documents: half of two a cycle
    assert "vector_strided_read" not in values


def test_the_memory_takes_as_long_over_writes_of_scalar_as_of_vector() -> None:
    others = classes("a", "DVE", [copy(128), copy(128, to=9), copy(512, to=9)], vector_strided_write=2.0)
    own = classes("b", "Activation", [copy(128, to=9)])
    values, instead = fitted(others, own, CHIP)
    clocks = CHIP.clock_ghz("Activation") / CHIP.clock_ghz("DVE")
    assert instead["scalar_strided_write"] == pytest.approx(values["vector_strided_write"] * clocks)
    assert values["vector_strided_write"] == pytest.approx(2.0, abs=0.05)


def test_public_captures_are_predicted_from_those_of_other_repositories(corpus: Path) -> None:
    """No capture of a repository is further off than aimed at by figures that never saw it."""
    pairs = list(captures(corpus))
    rows = list(left_out(corpus, pairs, [beside(corpus, *pair) for pair in pairs]))
    assert len(rows) >= 3
    for row in rows:
        assert row.median_error <= 0.06 and row.largest_error <= 0.15 and row.word_median <= 0.05, row
