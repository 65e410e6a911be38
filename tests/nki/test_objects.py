"""`nl.NKIObject`: the constructor that real kernels rely on."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import neurontools.nki.language as nl


@dataclasses.dataclass
class Section(nl.NKIObject):
    start: int
    end: int = 8
    names: list[str] = dataclasses.field(default_factory=list)
    unannotated = 3


@dataclasses.dataclass(frozen=True)
class Frozen(nl.NKIObject):
    size: int
    scale: float = 1.0


def test_keywords_for_unannotated_attributes_and_missing_fields() -> None:
    one = Section(start=1, unannotated=7)
    assert (one.start, one.end, one.names, one.unannotated) == (1, 8, [], 7)
    assert Section().start is None
    assert Section(1, 2, ["a"]) == Section(start=1, end=2, names=["a"])
    assert Section().names is not Section().names


def test_frozen_dataclasses_stay_frozen() -> None:
    one = Frozen(4)
    assert (one.size, one.scale) == (4, 1.0) and hash(one) == hash(Frozen(4))
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.size = 5  # type: ignore[misc]
    assert dataclasses.replace(one, scale=2.0) == Frozen(4, 2.0)


def test_wrong_arguments_are_type_errors() -> None:
    for call in (lambda: Section(1, 2, [], 4), lambda: Section(1, start=2), lambda: Section(nothing=1)):
        with pytest.raises(TypeError):
            call()


def test_own_constructors_and_post_init_run() -> None:
    class Own(nl.NKIObject):
        def __init__(self, value: int) -> None:
            self.value = value + 1

    class Below(Own):
        extra: Any = None

    @dataclasses.dataclass
    class Checked(nl.NKIObject):
        value: int = 0

        def __post_init__(self) -> None:
            self.double = 2 * self.value

    assert Own(1).value == Below(1).value == 2
    assert Checked(value=4).double == 8
