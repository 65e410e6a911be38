"""What runs equals the table of collectives.md 5: the small sizes here, all of them by `every_size` itself."""

from __future__ import annotations

import pytest

from emulator.machine.collectives import engine
from tests.emulator.machine import every_size


@pytest.mark.parametrize("n", range(2, 13))
def test_counters_are_those_of_the_closed_forms(n: int) -> None:
    found = every_size.walk(n)
    powers = n & (n - 1) == 0
    for operation in every_size.OPERATIONS:
        assert found[f"{operation} ring between nodes"] == found[f"{operation} mesh between nodes"] == 1
        assert found[f"{operation} rdh between nodes"] == powers
        assert found[f"{operation} kangaring inside"] == (n % 4 == 0)
        assert found[f"{operation} flat-ring"] == sum(n % x == 0 for x in range(2, n // 2 + 1))
    assert found["allreduce single-step-mesh between nodes"] == 1


def test_a_move_too_many_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The forms must be able to fail: of every first move of a rank, count the bytes twice."""
    add, kept = engine.Counters.add, dict[int, tuple[engine.Counters, set[int]]]()

    def twice(self: engine.Counters, machine: object, rank: int, *what: object) -> None:
        add(self, machine, rank, *what)  # type: ignore[arg-type]
        _, seen = kept.setdefault(id(self), (self, set()))  # kept, so that no later one has its number
        if rank not in seen:
            seen.add(rank)
            add(self, machine, rank, *what)  # type: ignore[arg-type]

    monkeypatch.setattr(engine.Counters, "add", twice)
    with pytest.raises(every_size.DiffersError, match="sent"):
        every_size.walk(4)
