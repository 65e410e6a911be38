"""`neurontools selftest jax`."""

from __future__ import annotations

import pytest

from tests.cli.check import checked_json
from tests.cli.conftest import Cli


def test_a_sample_agrees(cli: Cli) -> None:
    pytest.importorskip("jax", reason="jax is not installed")
    pytest.importorskip("absl", reason="absl-py, which the harnesses want, is not installed")
    result = checked_json(cli("selftest", "jax", "--sample", "150", "--json"), "selftest jax")
    assert result["cases"] >= 140 and result["left_out"] < 10
    assert result["agree"] >= 0.95 * result["cases"]
    assert set(result["outcomes"]) <= {"agree", "near"}, result["others"]
    assert sum(group["cases"] for group in result["groups"]) == result["cases"]


def test_other_backends_and_no_jax(cli: Cli) -> None:
    ended = cli("selftest", "jax", "--backend", "nobody")
    assert ended.status == 4 and "there is no backend 'nobody'" in ended.error_line
    try:
        import jax  # noqa: F401 (asked whether it is there)
    except ImportError:
        ended = cli("selftest", "jax", "--sample", "3")
        assert ended.status == 6 and "needs the extra jax" in ended.error_line
