"""`neurontools cc verify`: right results pass, a broken fold is found."""

from __future__ import annotations

import numpy as np
import pytest

from emulator.machine.collectives import memory
from tests.cli.check import checked_json
from tests.cli.conftest import Cli


@pytest.mark.parametrize(
    "words",
    [("allr", "--dtype", "bf16"), ("redsct", "--nodes", 2, "--size", "8kb"), ("alltoall",),
     ("permute", "--size", "4kb"), ("allg", "--instance", "inf2.48xlarge")],
)  # fmt: skip
def test_right_results(cli: Cli, words: tuple[object, ...]) -> None:
    found = checked_json(cli("cc", "verify", *words, "--json"), "cc verify")
    assert found["wrong_ranks"] == [] and not found["seeds_differ"] and found["hangs"] == []
    assert "bit for bit on" in cli("cc", "verify", *words).out


def test_a_fold_in_another_order_is_found(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = memory.folded
    monkeypatch.setattr(memory, "folded", lambda parts, op: whole(list(reversed(parts)), op))
    ended = cli("cc", "verify", "allr", "--algo", "mesh", "--size", "16kb")
    assert ended.status == 1 and "WRONG on ranks" in ended.out
    clean = cli("cc", "verify", "allr", "--algo", "mesh", "--size", "16kb", "--reduce", "max")
    assert clean.status == 0  # the largest does not depend on the order


def test_the_difference_from_a_wide_sum(cli: Cli) -> None:
    found = checked_json(cli("cc", "verify", "allr", "--size", "16kb", "--dtype", "bf16", "--json"), "cc verify")
    assert 0 < found["off_by"] < 1
    assert (
        checked_json(cli("cc", "verify", "allr", "--size", "4kb", "-d", "int32", "--json"), "cc verify")["off_by"]
        is None
    )
    assert np.isfinite(found["off_by"])
